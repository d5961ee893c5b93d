mod stage;

use crate::attach::die_of;
use crate::context::Said;
use posthaste_store::report::{Code, Report, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use stage::Stage;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Run a demo: a person and two agents, in a temporary home
///
/// Runs the real commands, prints each with its output, and leaves nothing behind. The agents are
/// two small scripts, each in a real terminal of its own: one is busy, the other asks for a
/// permission.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph demo")]
pub(crate) struct Args {}

/// Stand-ins for coding agents, with nothing to install, and what ph must know of them.
const CODER: &str = include_str!("../../../../../lab/agents/coder.sh");
const REVIEWER: &str = include_str!("../../../../../lab/agents/reviewer.sh");
const HARNESS: &str = include_str!("../../../../../lab/agents/demo.toml");

pub(crate) fn run(_: &Args, said: &Said) -> Result<Code> {
    let asked_to_end = listen()?;
    let home = tempfile::Builder::new()
        .prefix("posthaste-demo-")
        .tempdir()
        .map_err(|error| Report::storage(format!("cannot make a temporary home: {error}")))?;
    let mut stage = Stage::new(said, home.path(), asked_to_end.clone())?;
    let played = play(&mut stage);
    // However it went, nothing of it stays.
    for agent in ["coder", "reviewer"] {
        stage.quietly(&["stop", "--kill", agent]);
    }
    let flushed = stage.end();
    let signal = asked_to_end.load(Ordering::Relaxed);
    if let Ok(signal @ 1..) = i32::try_from(signal) {
        drop(home);
        die_of(signal);
    }
    played?;
    flushed?;
    Ok(Code::Ok)
}

/// Takes note of the signals that would end this program and leave its agents behind.
fn listen() -> Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, asked.clone(), number)
            .map_err(|error| Report::storage(format!("cannot listen to signals: {error}")))?;
    }
    Ok(asked)
}

fn play(stage: &mut Stage<'_>) -> Result<()> {
    let wish = before_anybody_runs(stage)?;
    agents_start(stage, &wish)?;
    let later = priorities(stage)?;
    question(stage)?;
    answer(stage, &wish, &later)
}

/// Gives back the id of what the person wants.
fn before_anybody_runs(stage: &mut Stage<'_>) -> Result<String> {
    stage.say(
        "1. A person writes to an agent. Nothing runs yet: the message is on disk before its \
         sender hears its id, and waits in the inbox.",
    )?;
    let wish = stage.ph(&[
        "send",
        "coder",
        "--subject",
        "login",
        "Please fix the login page.",
    ])?;
    stage.ph(&["why", &wish])?;
    Ok(wish)
}

fn agents_start(stage: &mut Stage<'_>, wish: &str) -> Result<()> {
    stage.say(
        "2. Two agents start, each in a terminal of its own that no window holds open. They are \
         small scripts. A manifest says how to tell when such an agent is ready, works, rests or \
         asks; one of your own is all that a new kind of agent needs.",
    )?;
    stage.file("harness/demo.toml", HARNESS)?;
    stage.agent("coder", CODER)?;
    stage.agent("reviewer", REVIEWER)?;
    // The coder says so once it has begun.
    stage.until_read(wish)
}

/// Gives back the id of what waited for the coder to rest.
fn priorities(stage: &mut Stage<'_>) -> Result<String> {
    stage.say(
        "3. The message was typed into the coder's terminal as soon as that was ready, and the \
         coder works on it. What is not urgent waits until it rests; ph says why it waits, since \
         when, and on what evidence.",
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
    stage.say("A normal message reaches it in the middle of its work.")?;
    let now = stage.ph(&[
        "send",
        "coder",
        "The form is in login.html.",
        "--wait",
        "offered",
    ])?;
    stage.until_read(&now)?;
    stage.say(
        "An interrupt stops it first: its key is pressed, ph waits until the coder rests, and \
         only then types.",
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
    stage.say("Then it rests, and what was not urgent comes too. Its terminal shows it all.")?;
    stage.ph(&["peek", "coder"])?;
    Ok(later)
}

fn question(stage: &mut Stage<'_>) -> Result<()> {
    stage.until_blocked("reviewer")?;
    stage.say(
        "4. The coder has asked the reviewer, and the reviewer asks for a permission. Anything \
         typed now could grant it, Enter most of all: messages wait.",
    )?;
    stage.ph(&["peek", "reviewer"])?;
    let held = stage.ph(&["send", "reviewer", "Mind the error messages, too."])?;
    stage.ph(&["why", &held])?;
    stage.say("The person answers the question; then the message goes in.")?;
    stage.ph(&["answer", "reviewer", "y", "--wait", "offered"])?;
    stage.until_read(&held)?;
    stage.ph(&["peek", "reviewer"])?;
    Ok(())
}

fn answer(stage: &mut Stage<'_>, wish: &str, later: &str) -> Result<()> {
    let answer = stage.until_answered()?;
    stage.until_ended(wish)?;
    stage.say("5. The coder has the review, and has written back to the person.")?;
    stage.ph(&["read", &answer])?;
    stage.say(
        "Every message has its receipts, which say only what is proven: 'offered' is written \
         whole to a running program's terminal; 'read' and 'archived' are the coder's own deeds.",
    )?;
    stage.ph(&["show", wish])?;
    stage.ph(&["why", later])?;
    stage.say("The agents are ended. Had they been killed, nothing would be lost.")?;
    stage.ph(&["stop", "coder"])?;
    stage.ph(&["stop", "reviewer"])?;
    stage.say("All of it stands in the journal.")?;
    stage.ph(&["log"])?;
    stage.say(
        "What happened: no message was lost, doubled or typed at the wrong moment, and each wait \
         had a reason that you could ask for. The temporary home is removed now. Next: ph run, \
         ph send, ph attach, ph help.",
    )
}
