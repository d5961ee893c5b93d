//! The real agents under the real `ph`, on a fake model, in a namespace where loopback is all the
//! network there is: every case for each of them, and a table of what happened. `just lab` runs it;
//! in a plain `cargo test` it says that it is skipped. `docs/lab.md` tells how to read the table.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod args;
mod crash;
mod facts;
mod list;
mod looped;
mod own;
mod play;
mod race;
mod scene;
mod table;
mod talks;

use args::Args;
use list::Case;
use play::{Late, Play, Under};
use posthaste_lab::agents::{self, Agent};
use posthaste_lab::skip_or_fail;
use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use table::{Cell, Entry};

/// Set by `just lab`: the agents are installed from the network, and take minutes.
const WANTED: &str = "PH_LAB";
/// Where `ph` is, for the inside: there is no network there to build it with.
const PH: &str = "PH_LAB_PH";
/// Rows beside the cases: how a run of an agent ended.
const END: &str = "end";
const END_TYPED: &str = "end-typed";
const END_HELD: &str = "end-held";
/// How often a race is run with an agent that is not said to lose it.
const FEW: u32 = 3;
/// How many cases may be late at first: these are programs of others, on a machine that may be
/// busy. What is late twice is red, and so is at once what came twice, was approved, or is said to
/// be more than it is.
const LATE: usize = 2;

fn main() -> ExitCode {
    if std::env::var_os(WANTED).is_none() {
        say("skipped: the real agents are installed from the network; 'just lab' runs them\n");
        return ExitCode::SUCCESS;
    }
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            say(&format!("{wrong}\n"));
            return ExitCode::from(2);
        }
    };
    if agents::is_inside() {
        return run(&args);
    }
    if let Err(reason) = install(&args.agents) {
        skip_or_fail(&reason);
        return ExitCode::SUCCESS;
    }
    match agents::enter_with(&[(PH, posthaste_lab::ph().as_os_str())]) {
        Ok(code) => code,
        Err(reason) => {
            skip_or_fail(&reason);
            ExitCode::SUCCESS
        }
    }
}

/// Outside, where there is a network.
fn install(agents: &[Agent]) -> Result<(), String> {
    for agent in agents {
        agents::install(*agent, &agents::cache())?;
    }
    Ok(())
}

fn run(args: &Args) -> ExitCode {
    assert_eq!(agents::interfaces(), ["lo"], "there is more than loopback");
    // What goes wrong is told with its case.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let ph = PathBuf::from(std::env::var_os(PH).expect("the outside says where it is"));
    let waiting = Mutex::new(args.agents.iter());
    let entries = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| {
                loop {
                    let Some(agent) = waiting.lock().unwrap().next() else {
                        return;
                    };
                    let row = column(*agent, &ph, args);
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
        let table = table::drawn(
            &[&names[..], &[END, END_TYPED, END_HELD]].concat(),
            &entries,
        );
        let took = begun.elapsed().as_secs_f64();
        say(&format!("\n{table}{took:.1} s\n"));
    }
    let left = agents::others();
    if !left.is_empty() {
        say(&format!("left behind: {left:?}\n"));
    }
    let late = entries.iter().filter(|entry| entry.was_late).count();
    if late > LATE {
        say(&format!("{late} cases were late at first; {LATE} may be\n"));
    }
    if left.is_empty() && late <= LATE && !entries.iter().any(Entry::is_red) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// All cases of one agent, in one run of it; after one that fails it is started anew.
fn column(agent: Agent, ph: &Path, args: &Args) -> Vec<Entry> {
    let mut column = Column {
        agent,
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
        let is_other = |play: &Play| play.under() != case.under;
        if self.play.as_ref().is_some_and(is_other) {
            self.end();
        }
        let begun = Instant::now();
        let times = match (case.often, self.agent) {
            (false, _) => 1,
            // Every one of these is in between: more of them show no more.
            (true, _) if case.under == Under::Held => self.args.repeat.min(FEW),
            (true, Agent::Claude) => self.args.repeat,
            (true, Agent::Codex | Agent::OpenCode | Agent::Gemini) => self.args.repeat.min(FEW),
        };
        let mut cell = Cell::Absent {
            why: "not run".to_owned(),
        };
        let mut was_late = false;
        for time in 1..=times {
            cell = self.once(case);
            if let (Cell::Late { why }, false) = (&cell, was_late) {
                let agent = self.agent.name();
                say(&format!(
                    "{agent} {}: late, and tried again: {why}\n",
                    case.name
                ));
                was_late = true;
                cell = self.once(case);
            }
            match &mut cell {
                Cell::Green { what, .. } if times > 1 => *what = format!("{time} runs: {what}"),
                Cell::Late { why } | Cell::Red { why } if times > 1 => {
                    *why = format!("at the {time}th: {why}");
                }
                Cell::Green { .. } | Cell::Absent { .. } | Cell::Late { .. } | Cell::Red { .. } => {
                }
            }
            if matches!(cell, Cell::Late { .. } | Cell::Red { .. }) {
                break;
            }
        }
        if let (Cell::Green { what, .. }, true) = (&mut cell, was_late) {
            what.push_str(", at a second try");
        }
        self.enter(case.name, begun, cell, was_late);
    }

    fn once(&mut self, case: Case) -> Cell {
        let deadline = Instant::now() + self.args.limit;
        let mut play = match self.play.take() {
            Some(play) => play,
            None => {
                let open = || Play::open(self.agent, self.ph, deadline, case.under);
                match catch_unwind(AssertUnwindSafe(open)) {
                    Ok(play) => play,
                    Err(panic) => return red(&*panic),
                }
            }
        };
        play.until_when(Instant::now() + self.args.limit);
        let done = catch_unwind(AssertUnwindSafe(|| (case.act)(&mut play)));
        let cell = match done {
            Ok(told) => Cell::Green {
                what: told.what,
                receipt: told.receipt,
            },
            // What is left of it goes with it: the next case has an agent of its own.
            Err(panic) => return red(&*panic),
        };
        self.play = Some(play);
        cell
    }

    /// Closes what runs, and says what is left of it.
    fn end(&mut self) {
        let Some(play) = self.play.take() else {
            return;
        };
        let begun = Instant::now();
        let name = match play.under() {
            Under::Session | Under::Nobody => END,
            Under::Typed => END_TYPED,
            Under::Held => END_HELD,
        };
        let cell = match catch_unwind(AssertUnwindSafe(|| play.close())) {
            Ok(()) => Cell::Green {
                what: "each message once, nobody left".to_owned(),
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
            let told = match &cell {
                Cell::Green { what, receipt } => format!("ok, {what}; {receipt}"),
                Cell::Absent { why } => format!("absent, {why}"),
                Cell::Late { why } | Cell::Red { why } => format!("RED, {why}"),
            };
            say(&format!("{agent} {case}: {told} ({seconds:.1} s)\n"));
        }
        self.entries.push(Entry {
            agent,
            version: self.agent.version(),
            case,
            seconds,
            was_late,
            cell,
        });
    }
}

fn red(panic: &(dyn Any + Send)) -> Cell {
    if let Some(Late(why)) = panic.downcast_ref() {
        let why = why.clone();
        return Cell::Late { why };
    }
    let said = panic.downcast_ref::<String>().cloned();
    let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
    let why = said.unwrap_or_else(|| "it broke without a word".to_owned());
    Cell::Red { why }
}

/// The time that a case has, unless said otherwise: agents take long on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
