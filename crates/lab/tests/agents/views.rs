//! Records the agents' views, each from a fresh start.

use crate::say;
use posthaste_lab::agents::{self, Release, Shot, Sign, Stage, Step, Trust, View};
use posthaste_lab::model::Model;
use posthaste_lab::pty::{Size, Terminal};
use rustix::process::{Pid, Signal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
/// Delay between a paste and its Enter.
const SETTLE: Duration = Duration::from_millis(300);
/// Time without a change after which a screen is at rest.
const REST: Duration = Duration::from_millis(700);
/// Limit after which a changing screen is recorded as it is: it has a spinner.
const RESTLESS: Duration = Duration::from_secs(4);

/// Record the views with these names, or all. Return whether each was reached.
pub(crate) fn record(release: &Release, size: Size, names: &[String], keep: bool) -> bool {
    let mut reached = true;
    for view in release.agent.views() {
        if !names.is_empty() && !names.iter().any(|name| name == view.name) {
            continue;
        }
        let name = view.name;
        match catch_unwind(AssertUnwindSafe(|| walk(release, size, &view))) {
            Ok(shot) if shot.has_wrapped(view.shows) => {
                say(&format!("{release} {size} {name}: ok\n"));
                if keep {
                    shot.keep_view(release, size, &view).unwrap();
                }
            }
            Ok(shot) => {
                reached = false;
                let screen = shot.screen.join("\n");
                say(&format!(
                    "{release} {size} {name}: not reached:\n{screen}\n"
                ));
            }
            Err(_) => {
                reached = false;
                say(&format!("{release} {size} {name}: not reached\n"));
            }
        }
        end_others();
    }
    reached
}

fn walk(release: &Release, size: Size, view: &View) -> Shot {
    let agent = release.agent;
    let dir = tempfile::Builder::new()
        .prefix("ph-lab-log-")
        .tempdir()
        .unwrap();
    let model = Model::start(&dir.path().join("log"));
    let program = agents::install(release, &agents::cache()).unwrap().program;
    let stage = Stage::new(agent, &program, model.port(), Trust::Given).unwrap();
    for (path, text) in view.files {
        let path = stage.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(stage.work().join("notes.txt"), "a file to complete\n").unwrap();
    let mut command = stage.command();
    command.args(view.args);
    let mut terminal = Terminal::start(command, size).with_timeout(PATIENCE);
    let sign = |terminal: &Terminal| agent.sign(&Shot::of(terminal));
    if view.at_start {
        terminal.wait_for_text(view.shows);
    } else {
        terminal.wait_until("a free box", |terminal| sign(terminal) == Sign::Free);
    }
    rest(&mut terminal);
    for step in &view.steps {
        match step {
            Step::Keys(keys) => terminal.type_keys(keys),
            Step::Press(keys) => {
                terminal.type_keys(keys);
                terminal.watch(SETTLE);
                continue;
            }
            Step::Paste(text) => terminal.type_keys(format!("\x1b[200~{text}\x1b[201~")),
            Step::Submit(line) => {
                let asked = model.log().prompts().len();
                terminal.type_keys(format!("\x1b[200~{line}\x1b[201~"));
                terminal.watch(SETTLE);
                terminal.type_keys("\r");
                let log = model.log().clone();
                terminal.wait_until("the model to be asked", |_| log.prompts().len() > asked);
            }
            Step::See(text) => terminal.wait_for_text(text),
            Step::Idle => terminal.wait_until("an idle agent", |terminal| {
                sign(terminal) == Sign::Free && agent.has_empty_box(&Shot::of(terminal))
            }),
        }
        rest(&mut terminal);
    }
    stage.anonymous(&Shot::of(&terminal))
}

fn rest(terminal: &mut Terminal) {
    let begun = Instant::now();
    while begun.elapsed() < RESTLESS {
        let before = terminal.screen();
        terminal.watch(REST);
        if terminal.screen() == before {
            return;
        }
    }
}

/// Kill all processes that a view has left behind in this PID namespace.
fn end_others() {
    assert!(agents::is_inside());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let others = agents::others();
        if others.is_empty() || Instant::now() > deadline {
            return;
        }
        for other in others {
            let pid = other.split(' ').next().and_then(|pid| pid.parse().ok());
            if let Some(pid) = pid.and_then(Pid::from_raw) {
                // The process may have ended meanwhile.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
