//! `ph`: the post office for coding agents.
//!
//! Parses the command line, runs the verb, and prints its error and returns its exit code. Starts no
//! async runtime: a verb that needs one starts its own.

mod attach;
mod cli;
mod config;
mod context;
mod hook;
mod hook_install;
mod mcp;
mod output;

use clap::CommandFactory;
use context::{Context, GlobalOptions};
use output::Sink;
use posthaste_session::{host, loop_};
use posthaste_store::report::Result;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Helper processes that `ph` starts from its own executable.
    let words: Vec<_> = std::env::args_os().collect();
    if words
        .first()
        .is_some_and(|name| cli::admin::provider::answer::is_called(name))
    {
        return cli::admin::provider::answer::main(&words[1..], &GlobalOptions::default());
    }
    match words.get(1).and_then(|word| word.to_str()) {
        Some(host::start::SESSION_ARGUMENT) => return ended(host::main()),
        Some(loop_::RUNNER_ARGUMENT) => return ended(run_loop()),
        Some(attach::GUARDIAN_ARGUMENT) => return attach::run_guardian(&words),
        _ => {}
    }
    clap_complete::CompleteEnv::with_factory(cli::Cli::command)
        .var(cli::COMPLETE)
        .complete();
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    ended(cli::run(cli))
}

/// Run a loop: the program in its session.
fn run_loop() -> Result<ExitCode> {
    let context = Context::new(&GlobalOptions {
        sink: Sink::Memory,
        ..GlobalOptions::default()
    })?;
    loop_::main(context.home, context.config.patience)
}

fn ended(how: Result<ExitCode>) -> ExitCode {
    how.unwrap_or_else(|report| output::show(&report))
}
