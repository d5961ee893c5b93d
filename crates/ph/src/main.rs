//! `ph`: the post office for coding agents.
//!
//! Reads the command line, hands over to the verb, and turns how it ended into words and an exit
//! code. Starts no runtime: a verb that needs one starts its own.

mod attach;
mod cli;
mod config;
mod context;
mod letterbox;
mod output;
mod report;
mod times;

use clap::CommandFactory;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == attach::GUARDIAN) {
        return attach::guard(&words);
    }
    clap_complete::CompleteEnv::with_factory(cli::Cli::command)
        .var(cli::COMPLETE)
        .complete();
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli::run(cli) {
        Ok(code) => code.into(),
        Err(report) => report.show(),
    }
}
