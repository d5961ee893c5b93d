//! The real agents on a fake model, each in a terminal of its own, in a namespace where loopback is
//! all the network there is. `just lab-bare` runs it; in a plain `cargo test` it says that it is
//! skipped.
//!
//! Arguments: names of agents (all, if none is given); `--keep` writes what their screens showed
//! to `fixtures/agents`, `--large` takes a large terminal.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod play;
mod table;

use play::{CASES, Play};
use posthaste_lab::agents::{self, Agent};
use posthaste_lab::pty::Size;
use posthaste_lab::skip_or_fail;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;
use table::{Cell, Row};

/// Set by `just lab-bare`: the agents are installed from the network, and take minutes.
const WANTED: &str = "PH_LAB";

struct Args {
    agents: Vec<Agent>,
    size: Size,
    keep: bool,
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        agents: Vec::new(),
        size: Size::USUAL,
        keep: false,
    };
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--keep" => args.keep = true,
            "--large" => args.size = Size::LARGE,
            name => match Agent::named(name) {
                Some(agent) => args.agents.push(agent),
                None => return Err(format!("no agent of the lab is called {name:?}")),
            },
        }
    }
    if args.agents.is_empty() {
        args.agents.extend(Agent::ALL);
    }
    Ok(args)
}

fn main() -> ExitCode {
    if std::env::var_os(WANTED).is_none() {
        say("skipped: the real agents are installed from the network; 'just lab-bare' runs them\n");
        return ExitCode::SUCCESS;
    }
    let args = match args() {
        Ok(args) => args,
        Err(wrong) => {
            say(&format!("{wrong}\n"));
            return ExitCode::from(2);
        }
    };
    if !agents::is_inside()
        && let Err(reason) = install(&args.agents)
    {
        skip_or_fail(&reason);
        return ExitCode::SUCCESS;
    }
    match agents::enter() {
        None => run(&args),
        Some(Ok(code)) => code,
        Some(Err(reason)) => {
            skip_or_fail(&reason);
            ExitCode::SUCCESS
        }
    }
}

/// Outside, where there is a network.
fn install(agents: &[Agent]) -> Result<(), String> {
    for agent in agents {
        let installed = agents::install(*agent, &agents::cache())?;
        if let Some(took) = installed.took {
            let (name, version) = (agent.name(), agent.version());
            say(&format!(
                "installed {name} {version} in {:.1} s\n",
                took.as_secs_f64()
            ));
        }
    }
    Ok(())
}

fn run(args: &Args) -> ExitCode {
    assert_eq!(agents::interfaces(), ["lo"], "there is more than loopback");
    let begun = Instant::now();
    let rows: Vec<Row> = args.agents.iter().map(|agent| row(*agent, args)).collect();
    let passed = rows.iter().all(Row::has_passed);
    let table = table::drawn(&CASES.map(|case| case.name), &rows);
    say(&format!(
        "\n{table}\n{:.1} s\n",
        begun.elapsed().as_secs_f64()
    ));
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The cases one after the other, in one run of the agent; after one that fails the rest would say
/// nothing.
fn row(agent: Agent, args: &Args) -> Row {
    let name = format!("{} {}", agent.name(), agent.version());
    let mut cells = Vec::new();
    let mut play = Play::new(agent, args.size);
    for case in CASES {
        if let Some(why) = (case.absent)(agent) {
            cells.push(Cell::Absent(why));
            continue;
        }
        let begun = Instant::now();
        let act = std::panic::AssertUnwindSafe(|| (case.act)(&mut play));
        if std::panic::catch_unwind(act).is_err() {
            say(&format!("{name}: {} failed\n", case.name));
            cells.push(Cell::Failed);
            break;
        }
        cells.push(Cell::Passed(begun.elapsed()));
    }
    let row = Row { name, cells };
    if args.keep && row.has_passed() {
        play.keep();
    }
    row
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
