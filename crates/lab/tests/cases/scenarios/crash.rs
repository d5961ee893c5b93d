//! Kills of the session and of the agent: receipts stay true, and each message arrives once.

use crate::list::CaseOutcome;
use crate::play::{CLEAR, ESCAPE, Play, Sent};
use posthaste_core::turn::REPEAT;
use posthaste_lab::agents::{Agent, Sign};
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// Kill the session with one message accepted, one partly written, and one sent while no session
/// runs. `ph run` then resumes the conversation. The agent is stopped before the kill, so that the
/// second message does not appear on its screen.
pub(crate) fn killed(play: &mut Play) -> CaseOutcome {
    // A conversation of its own: Gemini resumes the one that was started last.
    let before = play.fresh("uncrashed");
    play.prompt(&before);
    play.free();
    crate::scenarios::talks::anew(play, &before);
    let first = play.send("lab: before the crash");
    play.settle(std::slice::from_ref(&first));
    let agent = play.agents_pid();
    play.stop_agent(agent);
    let second = play.send("lab: cut off by the crash");
    play.until("an offer to begin", |play| play.noted(&second, "offering"));
    play.kill_session();
    let third = play.send("lab: while nobody runs");
    play.reopen();
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
    CaseOutcome { what, receipt }
}

/// Kill the agent while a message is partly written: it must not be accepted unless the model had
/// it. The agent is stopped before that, so that the text does not appear and Enter is withheld.
pub(crate) fn mid_offer(play: &mut Play) -> CaseOutcome {
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
    CaseOutcome {
        what,
        receipt: after,
    }
}

/// `ph restart` resumes the conversation; with --fresh it starts a new one. A conversation that the
/// person has left does not come back, if the agent's hooks say so before the next prompt.
pub(crate) fn restarted(play: &mut Play) -> CaseOutcome {
    let first = play.send("lab: before the restart");
    play.settle(std::slice::from_ref(&first));
    play.restart(&[]);
    let second = play.send("lab: after the restart");
    let receipt = play.settle(std::slice::from_ref(&second));
    let has = |play: &Play, sent: &Sent| {
        let last = play.tally.turns().last().expect("the model was asked");
        last.count(&sent.mark)
    };
    assert_eq!(has(play, &first), 1, "it is another conversation");
    play.restart(&["--fresh"]);
    let third = play.send("lab: after a fresh start");
    play.settle(std::slice::from_ref(&third));
    assert_eq!(has(play, &first), 0, "it is the same conversation");
    if matches!(play.agent, Agent::Claude | Agent::Gemini) {
        crate::scenarios::talks::anew(play, "lab: after a fresh start");
        play.restart(&[]);
        let fourth = play.send("lab: after the conversation was left");
        play.settle(std::slice::from_ref(&fourth));
        assert_eq!(has(play, &third), 0, "it came back");
    }
    let what = "the conversation went on, --fresh began another, and one that was left stayed away";
    let what = what.to_owned();
    CaseOutcome { what, receipt }
}

/// Make the agent queue a message while its model streams a reply.
fn queue(play: &mut Play, body: &str) -> Sent {
    let before = play.fresh("streams");
    play.prompt(&format!("{before} slow=40"));
    play.until_sign(Sign::Working);
    let sent = play.send(body);
    play.until("the message to be offered", |play| {
        play.noted(&sent, "offered")
    });
    assert_eq!(play.tally.seen(&sent.mark), 0, "it was not queued");
    assert!(!play.noted(&sent, "accepted"), "the model has not seen it");
    play.expect_repeats(&sent);
    sent
}

/// A person takes a queued message back and clears it: it is uncertain, and is offered again as a
/// repeat.
pub(crate) fn withdrawn(play: &mut Play) -> CaseOutcome {
    let sent = queue(play, "lab: taken back from the queue");
    play.until("the queue on the screen", |play| {
        play.has_on_screen("edit queued messages")
    });
    play.terminal.type_keys("\x1b[A");
    play.until("the message to be uncertain", |play| {
        play.noted(&sent, "uncertain")
    });
    play.terminal.type_keys(CLEAR);
    play.until("the repeat to be queued", |play| play.offers(&sent) == 2);
    play.terminal.type_keys(ESCAPE);
    let receipt = play.settle(std::slice::from_ref(&sent));
    is_repeat(play, &sent);
    let what = "uncertain when it was taken back, came again and said so".to_owned();
    CaseOutcome { what, receipt }
}

/// The session is killed while the agent has a queued message: the message is offered again as a
/// repeat.
pub(crate) fn queued(play: &mut Play) -> CaseOutcome {
    let sent = queue(play, "lab: queued at the crash");
    play.kill_session();
    play.reopen();
    play.until("the message to be uncertain", |play| {
        play.noted(&sent, "uncertain")
    });
    let receipt = play.settle(std::slice::from_ref(&sent));
    is_repeat(play, &sent);
    let what = "offered while it was queued, uncertain after the crash, came again and said so";
    let what = what.to_owned();
    CaseOutcome { what, receipt }
}

/// Check that a message arrived once, marked as a possible repeat.
#[track_caller]
fn is_repeat(play: &mut Play, sent: &Sent) {
    let marked = format!("{}{REPEAT}", sent.mark);
    assert_eq!(play.tally.seen(&marked), 1, "{marked}");
}

impl Play {
    /// Return the number of offers of a message.
    fn offers(&self, sent: &Sent) -> usize {
        let shown = self.asked(&["show", &sent.id]);
        let steps = shown["receipts"].as_array().cloned().unwrap_or_default();
        steps
            .iter()
            .filter(|step| step["state"] == "offered")
            .count()
    }

    /// Kill the session's process, as a crash would end it.
    pub(crate) fn kill_session(&mut self) {
        let pid = number(&self.status(), "pid");
        rustix::process::kill_process(pid, Signal::KILL).expect("the session runs");
        self.terminal.wait_exit();
    }

    pub(crate) fn agents_pid(&self) -> Pid {
        number(&self.status(), "child_pid")
    }

    /// Start the agent again by `ph restart` or, after a crash, `ph run`. Both resume the
    /// conversation.
    pub(crate) fn start_again(&mut self, by_restart: bool) {
        match by_restart {
            true => self.restart(&[]),
            false => self.reopen(),
        }
    }

    /// Stop the agent's process until it is killed.
    fn stop_agent(&self, pid: Pid) {
        rustix::process::kill_process_group(pid, Signal::STOP).expect("the agent runs");
    }

    pub(crate) fn kill_agent(&mut self, pid: Pid) {
        rustix::process::kill_process_group(pid, Signal::KILL).expect("the agent runs");
        self.terminal.wait_exit();
    }
}

fn runs(pid: Pid) -> bool {
    rustix::process::test_kill_process_group(pid).is_ok()
}

fn number(status: &Value, field: &str) -> Pid {
    let number = status[field]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok());
    let number = number.and_then(Pid::from_raw);
    number.unwrap_or_else(|| panic!("a status has the numbers of its processes: {status}"))
}
