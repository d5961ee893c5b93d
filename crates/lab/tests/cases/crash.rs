//! Our session killed, and the agent: what was said of their mail stays true, and it comes once.

use crate::list::Told;
use crate::play::{Play, Sent};
use posthaste_core::turn::REPEAT;
use posthaste_lab::agents::Agent;
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// What has an agent go on with its last conversation.
fn resumed(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude | Agent::OpenCode => &["--continue"],
        Agent::Codex => &["resume", "--last"],
        Agent::Gemini => &["--resume", "latest"],
    }
}

/// `kill -9` with one message there, one half in and one that comes meanwhile; then the same
/// conversation again. The agent stands still before, so that it shows nothing of the second.
pub(crate) fn killed(play: &mut Play) -> Told {
    // One of its own: Gemini goes on with the one that was begun last.
    let before = play.fresh("uncrashed");
    play.prompt(&before);
    play.free();
    crate::talks::anew(play, &before);
    let first = play.send("lab: before the crash");
    play.settle(std::slice::from_ref(&first));
    let agent = play.agents_pid();
    play.stop_agent(agent);
    let second = play.send("lab: cut off by the crash");
    play.until("an offer to begin", |play| play.noted(&second, "offering"));
    play.kill_session();
    let third = play.send("lab: while nobody runs");
    play.reopen_with(resumed(play.agent));
    assert!(!runs(agent), "what was left of the old agent lives");
    let both = [second, third];
    let receipt = play.settle(&both);
    let turns = play.tally.turns();
    let last = turns.last().expect("the model was asked");
    assert_eq!(last.count(&first.mark), 1, "it is another conversation");
    let [second, _] = &both;
    is_repeat(play, second);
    let what = "the first stays one, what was cut off came again and said so, the third came after";
    let what = what.to_owned();
    Told { what, receipt }
}

/// The agent dies with a message half in: nobody may say that it had it, unless it had. It stands
/// still from before that, so that it shows nothing of the text and Enter is waited with.
pub(crate) fn mid_offer(play: &mut Play) -> Told {
    let agent = play.agents_pid();
    play.stop_agent(agent);
    let sent = play.send("lab: into a dying agent");
    play.until("an offer to begin", |play| play.noted(&sent, "offering"));
    play.kill_agent(agent);
    play.judge();
    assert_eq!(play.tally.seen(&sent.mark), 0, "it stood still");
    let shown = play.asked(&["show", &sent.id]);
    assert_eq!(shown["receipt"], "uncertain", "{shown}");
    play.reopen();
    let after = play.settle(std::slice::from_ref(&sent));
    is_repeat(play, &sent);
    let what = "uncertain at its death, came again and said so".to_owned();
    Told {
        what,
        receipt: after,
    }
}

/// It came once, marked as one that may have come before.
#[track_caller]
fn is_repeat(play: &mut Play, sent: &Sent) {
    let marked = format!("{}{REPEAT}", sent.mark);
    assert_eq!(play.tally.seen(&marked), 1, "{marked}");
}

impl Play {
    /// Ends the session by the number of its process, as a crash would.
    fn kill_session(&mut self) {
        let pid = number(&self.status()["pid"]);
        rustix::process::kill_process(pid, Signal::KILL).expect("the session runs");
        self.terminal.wait_exit();
    }

    fn agents_pid(&self) -> Pid {
        number(&self.status()["child_pid"])
    }

    /// It runs no further until it is killed.
    fn stop_agent(&self, pid: Pid) {
        rustix::process::kill_process_group(pid, Signal::STOP).expect("the agent runs");
    }

    fn kill_agent(&mut self, pid: Pid) {
        rustix::process::kill_process_group(pid, Signal::KILL).expect("the agent runs");
        self.terminal.wait_exit();
    }
}

fn runs(pid: Pid) -> bool {
    rustix::process::test_kill_process_group(pid).is_ok()
}

fn number(value: &Value) -> Pid {
    let number = value.as_i64().and_then(|pid| i32::try_from(pid).ok());
    number
        .and_then(Pid::from_raw)
        .expect("a status has the numbers of its processes")
}
