//! A loop with a real agent, headless, on the fake model: five iterations, a message in the second,
//! a kill in the fourth, and its completion token in the fifth.

use crate::list::CaseOutcome;
use crate::play::Play;
use posthaste_lab::agents::Agent;
use posthaste_lab::model::ModelRequest;
use rustix::process::{Pid, Signal};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Agent name of the loop.
const LOOPER: &str = "looper";

/// Additional time for the case, because the agent starts six times.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// A running loop, which is stopped when dropped.
struct Looped {
    dir: PathBuf,
    end: Command,
}

impl Drop for Looped {
    fn drop(&mut self) {
        // The loop may have ended already.
        let _ = self.end.output();
    }
}

/// Return the name under which each agent offers one of our tools to the model.
fn tool(agent: Agent, name: &str) -> String {
    match agent {
        Agent::Claude | Agent::Codex => format!("mcp__ph__{name}"),
        Agent::OpenCode => format!("ph_{name}"),
        Agent::Gemini => format!("mcp_ph_{name}"),
    }
}

impl Looped {
    fn start(play: &mut Play) -> Self {
        let name = play.fresh("loop");
        let dir = play.stage.dir().join(name);
        std::fs::create_dir(&dir).expect("a directory");
        let write = |name: &str, text: String| {
            std::fs::write(dir.join(name), text).expect("a file");
        };
        write("spec.md", "Build a small house.\n".to_owned());
        // The model replies in an iteration once it is released.
        let wait = format!("until={}/go-{{{{iteration}}}}.", dir.display());
        write(
            "template",
            format!("{wait}\n{{{{injected}}}}\n{{{{inbox}}}}\n{{{{context}}}}\n"),
        );
        let mut end = play.command();
        end.args(["stop", "--kill", LOOPER]).stdin(Stdio::null());
        let looped = Self { dir, end };
        let path = |name: &str| looped.dir.join(name).to_string_lossy().into_owned();
        let (spec, template) = (path("spec.md"), path("template"));
        let mut build = play.command();
        build.args(["build", "--detach", "--name", LOOPER, "--iterations", "8"]);
        build.args(["--spec", &spec, "--template", &template, "--failures", "2"]);
        build.args(["--harness", play.agent.name(), "--"]);
        let done = build.arg(play.stage.program()).output();
        let done = done.expect("ph can be started");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ph build: {errors}");
        looped
    }

    /// Return the prompts of an iteration that the model has got.
    fn prompts(&self, play: &Play, iteration: u32) -> Vec<String> {
        let mark = format!("go-{iteration}.");
        let turns = play.tally.turns().iter();
        let first = turns.filter(|turn| turn.result().is_none());
        let prompts = first.filter_map(ModelRequest::prompt);
        prompts.filter(|prompt| prompt.contains(&mark)).collect()
    }

    /// Wait for the prompt of an iteration to reach the model for the given time, and return it.
    #[track_caller]
    fn prompt(&self, play: &mut Play, iteration: u32, times: usize) -> String {
        let what = format!("the prompt of iteration {iteration}");
        play.until(&what, |play| {
            let outcome = play.asked(&["status", LOOPER]);
            assert_ne!(outcome["activity"], "exited", "{outcome}\n{}", shown(play));
            self.prompts(play, iteration).len() >= times
        });
        self.prompts(play, iteration).pop().unwrap_or_default()
    }

    fn go(&self, iteration: u32) {
        let file = self.dir.join(format!("go-{iteration}."));
        std::fs::write(file, "").expect("a file");
    }
}

/// Return the last rows of its terminal, for diagnosis.
fn shown(play: &Play) -> String {
    let log = play.ph(&["log", "--agent", LOOPER]);
    let peek = play.ph(&["replay", LOOPER, "--cast"]);
    let text = |out: &[u8]| String::from_utf8_lossy(out).into_owned();
    let cast = text(&peek.stdout);
    let from = cast.len().saturating_sub(3_000);
    format!(
        "{}\n{}",
        text(&log.stdout),
        cast.get(from..).unwrap_or(&cast)
    )
}

#[track_caller]
fn well(play: &Play, words: &[&str]) -> String {
    let done = play.ph(words);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ph {words:?}: {errors}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Make the model call a tool in the next iteration.
fn call_next(play: &Play, name: &str, arguments: &str) {
    let call = format!("tool={}:{arguments}", tool(play.agent, name));
    well(play, &["inject", LOOPER, &call]);
}

pub(crate) fn five(play: &mut Play) -> CaseOutcome {
    // An agent is started six times, and some start slowly.
    play.until_when(play.deadline() + START_TIMEOUT);
    let looped = Looped::start(play);
    looped.prompt(play, 1, 1);
    looped.go(1);
    looped.prompt(play, 2, 1);
    let mark = play.fresh("loop-mail");
    let id = well(play, &["send", LOOPER, &mark]);
    let arguments = format!(r#"{{"session_name":"{LOOPER}","id":"{}"}}"#, &id[..8]);
    call_next(play, "inbox_mark_read", &arguments);
    looped.go(2);
    let third = looped.prompt(play, 3, 1);
    assert_eq!(third.matches(&mark).count(), 1, "{third}");
    looped.go(3);
    let fourth = looped.prompt(play, 4, 1);
    assert_eq!(fourth.matches(&mark).count(), 0, "{fourth}");
    let shown = play.asked(&["show", &id]);
    assert_eq!(shown["receipt"], "read", "{shown}");
    // Kill the iteration in its middle, like a crash.
    let pid = play.asked(&["status", LOOPER])["pid"].as_i64();
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    rustix::process::kill_process(pid.expect("it runs"), Signal::KILL).expect("it runs");
    well(play, &["restart", LOOPER, "--detach"]);
    looped.prompt(play, 4, 2);
    call_next(
        play,
        "session_complete",
        &format!(r#"{{"session_name":"{LOOPER}"}}"#),
    );
    looped.go(4);
    looped.prompt(play, 5, 1);
    looped.go(5);
    play.until("the end of the loop", |play| {
        play.asked(&["status", LOOPER])["activity"] == "exited"
    });
    let status = play.asked(&["status", LOOPER]);
    let log = well(play, &["log", "--agent", LOOPER]);
    assert_eq!(status["loop"]["status"], "completed", "{log}");
    assert_eq!(status["loop"]["iteration"], 5, "{log}");
    assert!(log.contains("iteration 4 failed: cut off"), "{log}");
    let offers = shown["receipts"].as_array().map_or(0, |receipts| {
        let is_offer = |step: &&serde_json::Value| step["route"] == "prompt";
        receipts.iter().filter(is_offer).count()
    });
    assert_eq!(offers, 2, "offering and offered: {shown}");
    CaseOutcome {
        what: "five iterations; the message in the third alone, marked by the tool; killed in the \
               fourth, which went on; ended by session_complete"
            .to_owned(),
        receipt: "read, prompt".to_owned(),
    }
}
