//! Real agents with a fake model, each in a terminal, in a namespace whose only network is
//! loopback. `just lab-bare` runs them; a plain `cargo test` skips them.
//!
//! Arguments: names of agents (default: all). `--size COLSxROWS`, repeatable, sets the terminal's
//! size (default: 80x24). `--newest` runs npm's newest version instead of the pinned one. `--keep`
//! writes the screens to `fixtures/agents`. `--views` records the agents' views instead of running
//! the cases, `--view NAME` (repeatable) records some of them.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod play;
mod table;
mod views;

use play::{CASES, Play};
use posthaste_lab::agents::{self, Agent, Release, Wanted};
use posthaste_lab::pty::Size;
use posthaste_lab::say;
use std::process::ExitCode;
use std::time::Instant;
use table::{Cell, Row};

struct Args {
    agents: Vec<Agent>,
    wanted: Wanted,
    sizes: Vec<Size>,
    /// Record views instead of running the cases: those named, or all.
    views: Option<Vec<String>>,
    keep: bool,
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        agents: Vec::new(),
        wanted: Wanted::Pinned,
        sizes: Vec::new(),
        views: None,
        keep: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--keep" => args.keep = true,
            "--views" => args.views = Some(args.views.unwrap_or_default()),
            "--view" => {
                let name = words.next().ok_or("--view needs a name")?;
                args.views.get_or_insert_default().push(name);
            }
            "--newest" => args.wanted = Wanted::Newest,
            "--size" => {
                let size = words.next().unwrap_or_default();
                let parsed = Size::parse(&size);
                args.sizes
                    .push(parsed.ok_or(format!("--size {size:?} is not COLSxROWS"))?);
            }
            name => match Agent::named(name) {
                Some(agent) => args.agents.push(agent),
                None => return Err(format!("no agent of the lab is called {name:?}")),
            },
        }
    }
    if args.agents.is_empty() {
        args.agents.extend(Agent::ALL);
    }
    if args.sizes.is_empty() {
        args.sizes.push(Size::USUAL);
    }
    Ok(args)
}

fn main() -> ExitCode {
    if !agents::is_requested("just lab-bare") {
        return ExitCode::SUCCESS;
    }
    let args = match args() {
        Ok(args) => args,
        Err(wrong) => {
            say(&format!("{wrong}\n"));
            return ExitCode::from(2);
        }
    };
    agents::run_inside(args.wanted, &args.agents, Vec::new, |releases| {
        run(releases, &args)
    })
}

fn run(releases: &[Release], args: &Args) -> ExitCode {
    assert_eq!(agents::interfaces(), ["lo"], "there is more than loopback");
    let mut passed = true;
    for size in &args.sizes {
        let begun = Instant::now();
        if let Some(names) = &args.views {
            for release in releases {
                passed &= views::record(release, *size, names, args.keep);
            }
            continue;
        }
        let row = |release| row(release, *size, args.keep);
        let rows: Vec<Row> = releases.iter().map(row).collect();
        passed &= rows.iter().all(Row::has_passed);
        let table = table::drawn(&CASES.map(|case| case.name), &rows);
        let took = begun.elapsed().as_secs_f64();
        say(&format!("\n{size}\n{table}\n{took:.1} s\n"));
    }
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Run the cases in order, in one run of the agent. After a failure the others would prove nothing.
fn row(release: &Release, size: Size, keep: bool) -> Row {
    let name = release.to_string();
    let mut cells = Vec::new();
    let mut play = Play::new(release, size);
    for case in CASES {
        if let Some(why) = (case.absent)(release.agent) {
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
    if keep && row.has_passed() {
        play.keep();
    }
    row
}
