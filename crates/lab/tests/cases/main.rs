//! Real agents under the real `ph` with a fake model, in a namespace whose only network is
//! loopback: every case for each agent, and a table of the results. `just lab` runs them; a plain
//! `cargo test` skips them. `docs/lab.md` explains the table.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod args;
mod facts;
mod list;
mod play;
mod scenarios;
mod scene;
mod table;

use args::Args;
use list::Case;
use play::{Late, Play};
use posthaste_lab::agents::{self, Agent, Release, Wanted};
use posthaste_lab::say;
use scene::Start;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use table::{Cell, Entry};

/// Path of the `ph` binary to test. If unset, `ph` is built before the network namespace is
/// entered, because the namespace has no network.
const PH: &str = "PH_LAB_PH";
/// Number of cases that may be late at first, because the machine may be busy. A case that is late
/// twice is red, and so is at once a message that arrived twice, was approved, or has a receipt
/// beyond its proof.
const MAX_LATE_CASES: usize = 2;

fn main() -> ExitCode {
    if !agents::is_requested("just lab") {
        return ExitCode::SUCCESS;
    }
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            say(&format!("{wrong}\n"));
            return ExitCode::from(2);
        }
    };
    let ph = || std::env::var_os(PH).unwrap_or_else(|| posthaste_lab::ph().into());
    let setup = || vec![(PH, ph())];
    agents::run_inside(args.wanted, &args.agents, setup, |releases| {
        run(releases, &args)
    })
}

fn run(releases: &[Release], args: &Args) -> ExitCode {
    assert_eq!(agents::interfaces(), ["lo"], "there is more than loopback");
    // Failures are reported with their case.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let ph = PathBuf::from(std::env::var_os(PH).expect("the outside says where it is"));
    let waiting = Mutex::new(releases.iter());
    let entries = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| {
                loop {
                    let Some(release) = waiting.lock().unwrap().next() else {
                        return;
                    };
                    let row = column(release, &ph, args);
                    entries.lock().unwrap().extend(row);
                }
            });
        }
    });
    let entries = entries.into_inner().unwrap();
    if args.json {
        let json = serde_json::to_string(&entries).expect("a table is plain");
        say(&format!("{json}\n"));
    } else {
        let names: Vec<&str> = args.cases.iter().map(|case| case.name).collect();
        let table = table::drawn(&[&names[..], &Start::ENDS].concat(), &entries);
        let took = begun.elapsed().as_secs_f64();
        say(&format!("\n{table}{took:.1} s\n"));
    }
    let left = agents::others();
    if !left.is_empty() {
        say(&format!("left behind: {left:?}\n"));
    }
    let late = entries.iter().filter(|entry| entry.was_late).count();
    if late > MAX_LATE_CASES {
        say(&format!(
            "{late} cases were late at first; {MAX_LATE_CASES} may be\n"
        ));
    }
    if args.wanted == Wanted::Newest {
        for release in releases {
            let name = release.agent.name();
            let is_red = |entry: &&Entry| entry.agent == name && entry.is_red();
            let red = entries.iter().filter(is_red).count();
            say(&format!("{release}: {red} cases differ\n"));
        }
        return ExitCode::SUCCESS;
    }
    if left.is_empty() && late <= MAX_LATE_CASES && !entries.iter().any(Entry::is_red) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Run all cases of one agent in one run of it. After a failure the agent is started anew.
fn column(release: &Release, ph: &Path, args: &Args) -> Vec<Entry> {
    let mut column = Column {
        agent: release.agent,
        release,
        ph,
        args,
        play: None,
        entries: Vec::new(),
    };
    for case in &args.cases {
        column.case(*case);
    }
    column.end();
    column.entries
}

struct Column<'a> {
    agent: Agent,
    release: &'a Release,
    ph: &'a Path,
    args: &'a Args,
    play: Option<Play>,
    entries: Vec<Entry>,
}

impl Column<'_> {
    fn case(&mut self, case: Case) {
        if let Some(why) = case.absent(self.agent) {
            let why = why.to_owned();
            return self.enter(case.name, Instant::now(), Cell::Absent { why }, false);
        }
        let is_other = |play: &Play| play.start() != case.start;
        if self.play.as_ref().is_some_and(is_other) {
            self.end();
        }
        if case.often {
            return self.repeat(case);
        }
        let begun = Instant::now();
        let mut cell = self.once(case);
        let mut was_late = false;
        if let Cell::Late { why } = &cell {
            let agent = self.agent.name();
            let name = case.name;
            say(&format!("{agent} {name}: late, and tried again: {why}\n"));
            was_late = true;
            cell = self.once(case);
        }
        if let (Cell::Green { what, .. }, true) = (&mut cell, was_late) {
            what.push_str(", at a second try");
        }
        self.enter(case.name, begun, cell, was_late);
    }

    /// Run a case as often as requested, and count the faults.
    fn repeat(&mut self, case: Case) {
        let begun = Instant::now();
        let mut faults = Faults::default();
        let mut last = None;
        for time in 1..=self.args.repeat {
            match self.once(case) {
                Cell::Green { what, receipt } => last = Some((what, receipt)),
                Cell::Absent { .. } => {}
                Cell::Late { why } => {
                    faults.lost += 1;
                    self.report(case, time, &why);
                }
                Cell::Red { why } => {
                    faults.count(&why);
                    self.report(case, time, &why);
                }
            }
        }
        let (what, receipt) = last.unwrap_or_default();
        let summary = format!("{} tries: {faults}; {what}", self.args.repeat);
        // A late case may be the machine's fault, and is counted as late.
        let cell = match faults.is_more_than_late() {
            true => Cell::Red { why: summary },
            false => Cell::Green {
                what: summary,
                receipt,
            },
        };
        self.enter(case.name, begun, cell, faults.lost > 0);
    }

    fn report(&self, case: Case, time: u32, why: &str) {
        let agent = self.agent.name();
        say(&format!("{agent} {}: try {time}: {why}\n", case.name));
    }

    fn once(&mut self, case: Case) -> Cell {
        let deadline = Instant::now() + self.args.limit;
        let mut play = match self.play.take() {
            Some(play) => play,
            None => {
                let open = || Play::open(self.release, self.ph, deadline, case.start);
                match catch_unwind(AssertUnwindSafe(open)) {
                    Ok(play) => play,
                    Err(panic) => return red(&*panic),
                }
            }
        };
        play.until_when(Instant::now() + self.args.limit);
        let done = catch_unwind(AssertUnwindSafe(|| (case.act)(&mut play)));
        let cell = match done {
            Ok(outcome) => Cell::Green {
                what: outcome.what,
                receipt: outcome.receipt,
            },
            // The agent ends with its stage: the next case gets an agent of its own.
            Err(panic) => return red(&*panic),
        };
        self.play = Some(play);
        cell
    }

    /// End the agent, and report its remaining processes.
    fn end(&mut self) {
        let Some(play) = self.play.take() else {
            return;
        };
        let begun = Instant::now();
        let name = play.start().end;
        let cell = match catch_unwind(AssertUnwindSafe(|| play.close())) {
            Ok(()) => Cell::Green {
                what: "each message once, no process left".to_owned(),
                receipt: String::new(),
            },
            Err(panic) => red(&*panic),
        };
        self.enter(name, begun, cell, false);
    }

    fn enter(&mut self, case: &'static str, begun: Instant, cell: Cell, was_late: bool) {
        let agent = self.agent.name();
        let seconds = begun.elapsed().as_secs_f64();
        if !self.args.json {
            let text = match &cell {
                Cell::Green { what, receipt } => format!("ok, {what}; {receipt}"),
                Cell::Absent { why } => format!("absent, {why}"),
                Cell::Late { why } | Cell::Red { why } => format!("RED, {why}"),
            };
            say(&format!("{agent} {case}: {text} ({seconds:.1} s)\n"));
        }
        self.entries.push(Entry {
            agent,
            version: self.release.version.clone(),
            case,
            seconds,
            was_late,
            cell,
        });
    }
}

/// Counts of the faults in the tries of one case.
#[derive(Default)]
struct Faults {
    approved: u32,
    /// Number of waits that timed out.
    lost: u32,
    doubled: u32,
    mixed: u32,
    other: u32,
}

impl Faults {
    fn count(&mut self, why: &str) {
        let fault = match why {
            why if why.starts_with("approved") || why.contains("approved by us: [\"") => {
                &mut self.approved
            }
            why if why.starts_with("the model was sent") => &mut self.doubled,
            why if why.starts_with("mixed") => &mut self.mixed,
            _ => &mut self.other,
        };
        *fault += 1;
    }

    fn is_more_than_late(&self) -> bool {
        self.approved + self.lost + self.doubled + self.mixed + self.other > 0
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            approved,
            lost,
            doubled,
            mixed,
            other,
        } = self;
        write!(
            f,
            "{approved} approved, {lost} lost, {doubled} doubled, {mixed} mixed"
        )?;
        match other {
            0 => Ok(()),
            _ => write!(f, ", {other} otherwise wrong"),
        }
    }
}

fn red(panic: &(dyn Any + Send)) -> Cell {
    if let Some(Late(why)) = panic.downcast_ref() {
        let why = why.clone();
        return Cell::Late { why };
    }
    let message = panic.downcast_ref::<String>().cloned();
    let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let why = message.unwrap_or_else(|| "it panicked without a message".to_owned());
    Cell::Red { why }
}

/// Default timeout of a case: agents are slow on a busy machine.
const DEFAULT_LIMIT: Duration = Duration::from_secs(120);
