//! `ph demo`: the script of the demo. `stage.rs` runs its commands.

mod stage;

use crate::attach::die_of;
use crate::cli::prelude::*;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use stage::Stage;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run a demo: a person and two agents, in a temporary home
///
/// Runs real commands, prints each with its output, and removes everything at the end. The agents
/// are two small scripts, each in a terminal of its own: one is busy, the other asks for
/// permission.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph demo")]
pub(crate) struct Args {}

/// Scripts that stand in for coding agents, and their harness manifest.
const CODER: &str = include_str!("../../../../../lab/agents/coder.sh");
const REVIEWER: &str = include_str!("../../../../../lab/agents/reviewer.sh");
const HARNESS: &str = include_str!("../../../../../lab/agents/demo.toml");

pub(crate) fn run(_: &Args, options: &GlobalOptions) -> Result<Code> {
    let stop_signal = catch_signals()?;
    let home = tempfile::Builder::new()
        .prefix("posthaste-demo-")
        .tempdir()
        .map_err(|error| Report::storage(format!("cannot make a temporary home: {error}")))?;
    let mut stage = Stage::new(options, home.path(), stop_signal.clone())?;
    let played = play(&mut stage);
    // Stop the agents even if the demo failed.
    for agent in ["coder", "reviewer"] {
        stage.quietly(&["stop", "--kill", agent]);
    }
    let flushed = stage.end();
    let signal = stop_signal.load(Ordering::Relaxed);
    if let Ok(signal @ 1..) = i32::try_from(signal) {
        drop(home);
        die_of(signal);
    }
    played?;
    flushed?;
    Ok(Code::Ok)
}

/// Catch the signals that would end this process and leave its agents running.
fn catch_signals() -> Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, asked.clone(), number)
            .map_err(|error| Report::storage(format!("cannot handle signals: {error}")))?;
    }
    Ok(asked)
}

fn play(stage: &mut Stage<'_>) -> Result<()> {
    let request = before_agents_start(stage)?;
    agents_start(stage, &request)?;
    let later = priorities(stage)?;
    question(stage)?;
    answer(stage, &request, &later)
}

/// Return the id of the person's request.
fn before_agents_start(stage: &mut Stage<'_>) -> Result<String> {
    stage.say(
        "1. A person writes to an agent that is not running yet. The message is on disk before \
        'ph send' prints its id, and waits in the inbox.",
    )?;
    let request = stage.ph(&[
        "send",
        "coder",
        "--subject",
        "login",
        "Please fix the login page.",
    ])?;
    stage.ph(&["why", &request])?;
    Ok(request)
}

fn agents_start(stage: &mut Stage<'_>, request: &str) -> Result<()> {
    stage.say(
        "2. Two agents start, each in a terminal that outlives its window. They are small scripts. \
        A manifest describes how to recognise that such an agent is ready, working, idle or \
        blocked; a new kind of agent needs only a manifest.",
    )?;
    stage.file("harness/demo.toml", HARNESS)?;
    stage.agent("coder", CODER)?;
    stage.agent("reviewer", REVIEWER)?;
    // The coder marks the message as read when it starts to work on it.
    stage.until_read(request)
}

/// Return the id of the message that waited for the coder to become idle.
fn priorities(stage: &mut Stage<'_>) -> Result<String> {
    stage.say(
        "3. The message was typed into the coder's terminal as soon as the coder was ready, and the \
        coder works on it. A message with priority idle waits until the coder is idle; 'ph why' \
        explains why it waits, since when, and on what evidence.",
    )?;
    let later = stage.ph(&[
        "send",
        "coder",
        "--priority",
        "idle",
        "Later: tidy the changelog.",
    ])?;
    stage.ph(&["why", &later])?;
    stage.ph(&["ls"])?;
    stage.say("A normal message reaches the coder while it works.")?;
    let now = stage.ph(&[
        "send",
        "coder",
        "The form is in login.html.",
        "--wait",
        "offered",
    ])?;
    stage.until_read(&now)?;
    stage.say(
        "An interrupt stops the coder first: ph presses its interrupt key, waits until the coder is \
        idle, and only then types.",
    )?;
    stage.ph(&[
        "send",
        "coder",
        "--priority",
        "interrupt",
        "Stop: only the timeout is wrong.",
        "--wait",
        "offered",
    ])?;
    stage.until_read(&later)?;
    stage.say(
        "Then the coder is idle and gets the idle message too. Its terminal shows them all.",
    )?;
    stage.ph(&["peek", "coder"])?;
    Ok(later)
}

fn question(stage: &mut Stage<'_>) -> Result<()> {
    let ask = stage.until_asked("reviewer")?;
    stage.say(
        "4. The coder has written to the reviewer, and the reviewer asks for permission. Any key \
        typed now could grant it, above all Enter: messages wait.",
    )?;
    stage.ph(&["peek", "reviewer"])?;
    let held = stage.ph(&["send", "reviewer", "Mind the error messages, too."])?;
    stage.ph(&["why", &held])?;
    stage.say("The person sees what waits, and answers; then the message is typed.")?;
    stage.ph(&["asks"])?;
    stage.ph(&["answer", &ask, "allow"])?;
    stage.until_read(&held)?;
    stage.ph(&["peek", "reviewer"])?;
    Ok(())
}

fn answer(stage: &mut Stage<'_>, request: &str, later: &str) -> Result<()> {
    let answer = stage.until_answered()?;
    stage.until_ended(request)?;
    stage.say("5. The coder has received the review and has replied to the person.")?;
    stage.ph(&["read", &answer])?;
    stage.say(
        "Every message has receipts, which say only what is proven: 'offered' means that all of it \
        was written to a running program's terminal; 'read' and 'archived' were set by the coder.",
    )?;
    stage.ph(&["show", request])?;
    stage.ph(&["why", later])?;
    stage.say("The agents are stopped. If they had been killed, no message would be lost.")?;
    stage.ph(&["stop", "coder"])?;
    stage.ph(&["stop", "reviewer"])?;
    stage.say("The journal has recorded all of it.")?;
    stage.ph(&["log"])?;
    stage.say(
        "No message was lost, duplicated or typed at the wrong moment, and 'ph why' explained every \
        wait. The temporary home is removed now. Next: ph run, ph send, ph attach, ph help.",
    )
}
