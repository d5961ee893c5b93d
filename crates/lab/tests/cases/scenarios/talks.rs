//! Conversations of an agent: a new one, and back to an older one. Mail goes to the one on the
//! screen.

use crate::list::CaseOutcome;
use crate::play::{ENTER, Play, Sent};
use posthaste_lab::agents::{Agent, Sign};

/// The person starts a new conversation, whose screen has none of the old text.
pub(crate) fn anew(play: &mut Play, before: &str) {
    play.slash(match play.agent {
        Agent::Claude | Agent::Gemini => "/clear",
        Agent::Codex | Agent::OpenCode => "/new",
    });
    play.until("a new conversation", |play| !play.has_on_screen(before));
    play.free();
}

/// Check that a message reached the model in this conversation and not in that one.
#[track_caller]
fn is_in(play: &Play, sent: &Sent, this: Option<&str>, other: &str) {
    let turns = play.tally.turns().iter();
    for turn in turns.filter(|turn| turn.count(&sent.mark) > 0) {
        assert_eq!(turn.count(other), 0, "it is the other conversation");
        if let Some(this) = this {
            assert_eq!(turn.count(this), 1, "it is not this conversation");
        }
    }
}

pub(crate) fn clear(play: &mut Play) -> CaseOutcome {
    let old = play.fresh("old");
    play.prompt(&old);
    play.free();
    anew(play, &old);
    let sent = play.send("lab: after a new beginning");
    let receipt = play.settle(std::slice::from_ref(&sent));
    is_in(play, &sent, None, &old);
    let what = "went into the new one".to_owned();
    CaseOutcome { what, receipt }
}

/// Start two conversations, then return to the first by the agent's list.
pub(crate) fn older(play: &mut Play) -> CaseOutcome {
    let first = play.fresh("before");
    play.prompt(&first);
    play.free();
    anew(play, &first);
    let old = play.fresh("older");
    play.prompt(&old);
    play.free();
    anew(play, &old);
    let new = play.fresh("newer");
    play.prompt(&new);
    play.free();
    play.slash(match play.agent {
        Agent::Claude | Agent::Codex | Agent::Gemini => "/resume",
        Agent::OpenCode => "/sessions",
    });
    play.until("a list of conversations", |play| play.has_on_screen(&old));
    // An Enter in the list would select a conversation.
    if play.agent != Agent::OpenCode {
        play.until("the session to know of the list", |play| {
            play.status()["activity"] == "blocked"
        });
    }
    choose(play, &old, &new);
    play.free();
    let sent = play.send("lab: to an older conversation");
    let receipt = play.settle(std::slice::from_ref(&sent));
    is_in(play, &sent, Some(&old), &new);
    let what = "went into the older one".to_owned();
    CaseOutcome { what, receipt }
}

/// Select a conversation by its name: each list is searched by typing. In Claude Code's list the
/// first Enter only ends the search.
fn choose(play: &mut Play, old: &str, new: &str) {
    if play.agent == Agent::Gemini {
        play.terminal.type_keys("/");
    }
    play.keys(old);
    let is_there = |play: &mut Play| {
        let is_free = play.sign() == Sign::Free && play.has_empty_box();
        is_free && !play.has_on_screen(new)
    };
    for _ in 0..2 {
        play.terminal.type_keys(ENTER);
        if play.soon(is_there) {
            return;
        }
    }
    play.until("the older conversation", is_there);
}
