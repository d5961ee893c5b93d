//! `ph`: the post office for coding agents.
//!
//! Reads the command line, hands over to the verb, and turns how it ended into words and an exit
//! code. Starts no runtime: a verb that needs one starts its own.

mod attach;
mod book;
mod build;
mod cli;
mod config;
mod context;
mod harness;
mod hook;
mod hooks;
mod letterbox;
mod mcp;
mod output;
mod session;
mod worklist;

use clap::CommandFactory;
use std::process::ExitCode;

fn main() -> ExitCode {
    // What this program starts itself as, beside itself.
    let words: Vec<_> = std::env::args_os().collect();
    if words
        .first()
        .is_some_and(|name| cli::provider::answer::is_called(name))
    {
        return cli::provider::answer::main(&words[1..], &context::Said::default());
    }
    match words.get(1).and_then(|word| word.to_str()) {
        Some(session::start::HOST) => return session::host::main(),
        Some(build::RUNNER) => return build::main(),
        Some(attach::GUARDIAN) => return attach::guard(&words),
        _ => {}
    }
    clap_complete::CompleteEnv::with_factory(cli::Cli::command)
        .var(cli::COMPLETE)
        .complete();
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli::run(cli) {
        Ok(code) => code,
        Err(report) => output::show(&report),
    }
}
