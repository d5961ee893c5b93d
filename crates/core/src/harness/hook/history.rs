//! Interprets the sequence of hook events: activity, questions and side sessions.
//!
//! Every hook is a process of its own, so events can arrive late, twice or out of order, and side
//! sessions share the channel. An event that contradicts another one of the last moment is not
//! trusted: other evidence decides until the next event.

use super::{Report, SubagentEvent, Turn};
use crate::harness::screen::Says;
use crate::moment::Moment;
use std::time::Duration;

/// Time within which events can arrive out of order or twice.
const REORDER_WINDOW: Duration = Duration::from_millis(100);
/// Maximum number of remembered events, and of open questions.
const MAX_REMEMBERED: usize = 32;

/// The effect of an event on the known activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The program's current activity.
    Does(Says),
    /// The last activity no longer holds, and no other is known.
    Unsure,
    /// The event says nothing about the activity.
    Nothing,
}

/// A question that a hook reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The question's text if the event has it, otherwise the event's name.
    pub(crate) what: String,
    named: Option<String>,
    /// All of the request.
    pub(crate) detail: Option<String>,
    pub(crate) event: String,
    pub(crate) at: Moment,
}

#[derive(Debug, Clone, Copy)]
struct LastEvent {
    turn: Turn,
    at: Duration,
    /// Whether a turn was open when the event arrived.
    was_open: bool,
}

/// An event that arrived recently.
#[derive(Debug, Clone, Copy)]
struct RecentEvent {
    at: Duration,
    print: u64,
    /// The turn in which the event arrived.
    turn: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Novelty {
    New,
    /// An equal event arrived just now, and no turn has begun since.
    Repeat,
    /// An equal event arrived just now, and a turn has begun since; the event may belong to either
    /// turn.
    Doubtful,
}

#[derive(Debug, Clone, Default)]
pub struct Heard {
    session: Option<String>,
    /// The session that ended last. Its further events are late.
    ended: Option<String>,
    recent: Vec<RecentEvent>,
    /// Number of turns that have begun.
    turns: u64,
    last: Option<LastEvent>,
    /// Time of the last event that contradicted the one before.
    contradicted_at: Option<Duration>,
    is_open: bool,
    questions: Vec<Question>,
    /// Number of running subagents.
    sides: u32,
}

impl Heard {
    /// Apply an event. Returns `None` if it belongs to another session or repeats an earlier event.
    pub fn hear(&mut self, now: Moment, report: &Report) -> Option<Word> {
        if report.means_nothing() || self.is_foreign(report) {
            return None;
        }
        let news = self.news(now, report);
        match (news, report.turn) {
            (Novelty::Repeat, _) => return None,
            // A repeated end of the previous turn, or already the end of this one.
            (Novelty::Doubtful, Some(Turn::Idle)) => {
                self.forget();
                self.contradicted_at = Some(now.mono);
                return Some(Word::Unsure);
            }
            (Novelty::New | Novelty::Doubtful, _) => {}
        }
        self.count_sides(report);
        let is_another = report.session.is_some() && report.session != self.session;
        if is_another {
            let had_one = self.session.is_some();
            self.session.clone_from(&report.session);
            self.ended = None;
            if had_one {
                self.forget();
            }
        }
        if report.ends {
            self.ended = self.session.take();
            self.forget();
            return Some(Word::Unsure);
        }
        let word = match report.turn {
            Some(turn) => self.take(now, turn, report),
            None if report.begins => Word::Unsure,
            None => Word::Nothing,
        };
        Some(word)
    }

    /// Return the agent's current session, if hooks have named one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether an applied event belongs to the agent's own session.
    pub(crate) fn is_own(&self, report: &Report) -> bool {
        report.session.is_none() || report.session == self.session
    }

    /// Whether the output of a hook may reach a subagent instead of the agent.
    pub(crate) fn is_aside(&self) -> bool {
        self.sides > 0
    }

    /// Count running subagents. An interrupted one reports no end, but the next prompt is the
    /// agent's own in any case.
    fn count_sides(&mut self, report: &Report) {
        let is_over = matches!(report.turn, Some(Turn::Submitted | Turn::Idle));
        self.sides = match report.side {
            _ if is_over || report.ends || report.begins => 0,
            Some(SubagentEvent::Begins) => self.sides.saturating_add(1),
            Some(SubagentEvent::Ends) => self.sides.saturating_sub(1),
            None => self.sides,
        };
    }

    /// Return the current activity, if hooks have reported one.
    pub fn doing(&self) -> Option<Turn> {
        self.last.map(|last| last.turn)
    }

    /// Return the oldest open question.
    pub(crate) fn question(&self) -> Option<&Question> {
        self.questions.first()
    }

    /// Close all questions, because other evidence shows that they are answered. Many agents report
    /// no refusal.
    pub(crate) fn answered(&mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        self.last = None;
        self.is_open = false;
        self.questions.clear();
    }

    fn is_foreign(&self, report: &Report) -> bool {
        match (&report.session, &self.session) {
            (None, _) => false,
            (Some(id), Some(own)) => id != own && !report.begins,
            (Some(id), None) => {
                let starts = report.begins || report.ready;
                self.ended.as_ref() == Some(id) && !starts
            }
        }
    }

    fn news(&mut self, now: Moment, report: &Report) -> Novelty {
        self.recent
            .retain(|recent| now.mono.saturating_sub(recent.at) < REORDER_WINDOW);
        let known = self.recent.iter_mut().find(|r| r.print == report.print);
        if let Some(known) = known {
            let before = std::mem::replace(&mut known.turn, self.turns);
            return if before == self.turns {
                Novelty::Repeat
            } else {
                Novelty::Doubtful
            };
        }
        if self.recent.len() == MAX_REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push(RecentEvent {
            at: now.mono,
            print: report.print,
            // A repeated event must not count as new because of the turn that it begins.
            turn: self.turns + u64::from(report.turn == Some(Turn::Submitted)),
        });
        Novelty::New
    }

    fn take(&mut self, now: Moment, turn: Turn, report: &Report) -> Word {
        let word = self.weigh(now, turn);
        match word {
            Word::Nothing => {}
            Word::Unsure => {
                self.forget();
                self.contradicted_at = Some(now.mono);
            }
            Word::Does(_) => {
                self.ask(now, turn, report);
                self.last = Some(LastEvent {
                    turn,
                    at: now.mono,
                    was_open: self.is_open,
                });
                self.is_open = turn != Turn::Idle;
                self.turns += u64::from(turn == Turn::Submitted);
            }
        }
        word
    }

    /// Return the effect of an activity event, given the one before.
    fn weigh(&self, now: Moment, turn: Turn) -> Word {
        use Turn::{Blocked, Idle, Submitted, Tool, Working};
        let says = Word::Does(match turn {
            Blocked => Says::Blocked,
            Submitted | Tool | Working => Says::Working,
            Idle => Says::Idle,
        });
        let is_close = |at: Duration| now.mono.saturating_sub(at) < REORDER_WINDOW;
        let Some(last) = self.last.filter(|last| is_close(last.at)) else {
            // The event may belong to a turn whose end has just arrived.
            let is_doubtful = self.contradicted_at.is_some_and(is_close);
            return match turn {
                Tool | Working if is_doubtful => Word::Nothing,
                Submitted | Tool | Working | Idle | Blocked => says,
            };
        };
        match (last.turn, turn) {
            // The event led to the question or belongs to the previous turn: no answer comes this
            // fast.
            (Blocked, Submitted | Tool | Working | Idle) => Word::Nothing,
            // The end of the turn has overtaken an event of the turn.
            (Idle, Tool | Working) => Word::Nothing,
            // The end of the turn has overtaken its beginning.
            (Idle, Submitted) if !last.was_open => Word::Unsure,
            // A turn was open: this may be its end, or already that of the next turn.
            (Submitted, Idle) if last.was_open => Word::Unsure,
            (Idle, Blocked | Submitted | Idle)
            | (Submitted, Blocked | Submitted | Tool | Working | Idle)
            | (Tool | Working, Blocked | Submitted | Tool | Working | Idle)
            | (Blocked, Blocked) => says,
        }
    }

    /// Update the open questions. Tools may run in parallel: the end of a tool answers only that
    /// tool's question.
    fn ask(&mut self, now: Moment, turn: Turn, report: &Report) {
        match turn {
            Turn::Blocked => {
                // A question without a text can repeat a known one.
                let is_known = report.what.is_none() && !self.questions.is_empty();
                if !is_known && self.questions.len() < MAX_REMEMBERED {
                    let named = report.what.clone();
                    self.questions.push(Question {
                        what: named.clone().unwrap_or_else(|| report.event.clone()),
                        named,
                        detail: report.detail.clone(),
                        event: report.event.clone(),
                        at: now,
                    });
                }
            }
            Turn::Working => {
                let about = |question: &Question| question.named == report.what;
                if let Some(at) = self.questions.iter().position(about) {
                    self.questions.remove(at);
                }
            }
            Turn::Tool => {}
            Turn::Submitted | Turn::Idle => self.questions.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::tests::ms;
    use crate::harness::hook::tests::like_claude;

    /// Apply events, each with its time and a part of its payload, and compare the effect of the
    /// last one and the open question.
    fn check(events: &[(u64, &str, &str)], want: &str) {
        let (hooks, mut heard) = (like_claude(), Heard::default());
        let mut last = None;
        for (at, event, payload) in events {
            let payload = match payload.split_once(' ') {
                _ if payload.is_empty() => "{}".to_owned(),
                None => format!(r#"{{"tool_name":"{payload}"}}"#),
                Some((id, "")) => format!(r#"{{"session_id":"{id}"}}"#),
                Some((id, source)) => format!(r#"{{"session_id":"{id}","source":"{source}"}}"#),
            };
            last = heard.hear(ms(*at), &hooks.read(event, &payload));
        }
        let word = match last {
            None => "ignored".to_owned(),
            Some(Word::Does(says)) => format!("{says:?}").to_lowercase(),
            Some(Word::Unsure) => "unsure".to_owned(),
            Some(Word::Nothing) => "nothing".to_owned(),
        };
        let asks = heard.question().map(|q| format!(", asks {}", q.what));
        assert_eq!(
            format!("{word}{}", asks.unwrap_or_default()),
            want,
            "{events:?}"
        );
    }

    const PROMPT: &str = "UserPromptSubmit";
    const ASKS: &str = "PermissionRequest";

    #[test]
    fn events_of_a_turn_set_the_activity() {
        check(&[(0, PROMPT, "")], "working");
        check(&[(0, PROMPT, ""), (500, "PreToolUse", "Bash")], "working");
        let asked = [
            (0, PROMPT, ""),
            (500, "PreToolUse", "Bash"),
            (600, ASKS, "Bash"),
        ];
        check(&asked, "blocked, asks Bash");
        let also = |more: &[(u64, &'static str, &'static str)]| [&asked[..], more].concat();
        check(&also(&[(5_000, "PostToolUse", "Bash")]), "working");
        check(&also(&[(5_000, "Stop", "")]), "idle");
        check(&also(&[(5_000, PROMPT, "")]), "working");
        // Neither the end nor the start of another tool answers a question.
        let beside = also(&[(5_000, "PostToolUse", "Read")]);
        check(&beside, "working, asks Bash");
        let begun = also(&[(5_000, "PreToolUse", "Bash")]);
        check(&begun, "working, asks Bash");
        let two = also(&[(1_000, ASKS, "Read"), (5_000, "PostToolUse", "Bash")]);
        check(&two, "working, asks Read");
        let told_again = also(&[(6_000, "Notification", "")]);
        check(&told_again, "ignored, asks Bash");
        check(&[(0, ASKS, "")], "blocked, asks PermissionRequest");
        check(&[(0, "Unknown", "")], "ignored");
    }

    #[test]
    fn late_and_repeated_events_have_no_effect() {
        let turn = [(0, PROMPT, ""), (500, "PreToolUse", "Bash")];
        let also = |more: &[(u64, &'static str, &'static str)]| [&turn[..], more].concat();
        check(
            &also(&[(900, "Stop", ""), (940, "PostToolUse", "Bash")]),
            "nothing",
        );
        check(
            &also(&[(900, "Stop", ""), (1_100, "PostToolUse", "Bash")]),
            "working",
        );
        check(&also(&[(900, "Stop", ""), (910, "Stop", "")]), "ignored");
        check(&also(&[(900, "Stop", ""), (1_100, "Stop", "")]), "idle");
        // An event that led to a question does not answer it.
        let early = [(0, ASKS, "Bash"), (40, "PreToolUse", "Bash")];
        check(&early, "nothing, asks Bash");
        let early = [(0, ASKS, "Bash"), (40, "PostToolUse", "Bash")];
        check(&early, "nothing, asks Bash");
        let early = [(0, ASKS, "Bash"), (40, "Stop", "")];
        check(&early, "nothing, asks Bash");
        check(
            &[(0, ASKS, "Bash"), (10, ASKS, "Bash")],
            "ignored, asks Bash",
        );
        // The end of a turn and the beginning of the next, in either order.
        check(&also(&[(900, "Stop", ""), (940, PROMPT, "")]), "working");
        check(&also(&[(900, PROMPT, ""), (940, "Stop", "")]), "unsure");
        // The work of the first or of the second turn.
        let work = also(&[
            (900, PROMPT, ""),
            (940, "Stop", ""),
            (960, "PreToolUse", "Read"),
        ]);
        check(&work, "nothing");
        let later = [&work[..], &[(1_100, "PreToolUse", "Edit")]].concat();
        check(&later, "working");
        // A turn that ends at once, in either order.
        check(&[(0, PROMPT, ""), (40, "Stop", "")], "idle");
        check(&[(0, "Stop", ""), (40, PROMPT, "")], "unsure");
        check(&[(0, PROMPT, ""), (40, PROMPT, "")], "ignored");
        // Two short turns: the end of the second does not repeat that of the first.
        let two = [
            (0, PROMPT, ""),
            (20, "Stop", ""),
            (40, PROMPT, "next"),
            (60, "Stop", ""),
        ];
        check(&two, "unsure");
    }

    #[test]
    fn events_of_side_sessions_are_ignored() {
        let begun = [(0, "SessionStart", "a startup"), (500, PROMPT, "a ")];
        let also = |more: &[(u64, &'static str, &'static str)]| [&begun[..], more].concat();
        check(&also(&[(900, "Stop", "b ")]), "ignored");
        check(&also(&[(900, "SessionStart", "b startup")]), "ignored");
        check(&also(&[(900, "SessionEnd", "b other")]), "ignored");
        check(&also(&[(900, "Stop", "a ")]), "idle");
        // The session goes on under another id; events of the old id are late.
        let cleared = also(&[
            (900, "SessionEnd", "a clear"),
            (910, "SessionStart", "b clear"),
        ]);
        check(&cleared, "unsure");
        let after = |more: &[(u64, &'static str, &'static str)]| [&cleared[..], more].concat();
        check(&after(&[(2_000, PROMPT, "b ")]), "working");
        check(&after(&[(920, "Stop", "a ")]), "ignored");
        // The same events out of order.
        let swapped = also(&[
            (900, "SessionStart", "b clear"),
            (910, "SessionEnd", "a clear"),
        ]);
        check(&swapped, "ignored");
        let swapped = [&swapped[..], &[(2_000, "Stop", "b ")]].concat();
        check(&swapped, "idle");
        // After an end, another session may begin, but the old one is over.
        let over = also(&[(900, "SessionEnd", "a exit")]);
        check(&over, "unsure");
        check(&[&over[..], &[(950, "Stop", "a ")]].concat(), "ignored");
        check(&[&over[..], &[(2_000, PROMPT, "c ")]].concat(), "working");
        let again = [(2_000, "SessionStart", "a resume"), (3_000, PROMPT, "a ")];
        check(&[&over[..], &again].concat(), "working");
        // An event without a session id is trusted.
        check(&also(&[(900, "Stop", "")]), "idle");
    }
}
