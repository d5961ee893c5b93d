//! `ph`: the post office for coding agents.
//!
//! Reads the command line, hands over to the verb, and turns how it ended into words and an exit
//! code. Starts no runtime: a verb that needs one starts its own.

mod cli;
mod config;
mod context;
mod letterbox;
mod output;
mod report;
#[allow(
    dead_code,
    unused_imports,
    reason = "sessions, which use all of it, come next"
)]
mod screen;
mod times;

use clap::CommandFactory;
use std::process::ExitCode;

fn main() -> ExitCode {
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
