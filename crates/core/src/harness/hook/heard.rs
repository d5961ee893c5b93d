//! What hooks have said so far, and what another one says on top of it.
//!
//! Each runs as a process of its own, so they come late, twice or in another order than they were
//! called in, and those of side sessions come to the same place. What contradicts what was heard
//! just before is not believed: other evidence decides until the next one.

use super::{Report, Side, Turn};
use crate::harness::screen::Says;
use crate::moment::Moment;
use std::time::Duration;

/// Within this time two may come in the wrong order, or one come twice.
const CLOSE: Duration = Duration::from_millis(100);
/// How many are remembered as heard, and how many questions as open.
const REMEMBERED: usize = 32;

/// What an event adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// This is what it does now.
    Does(Says),
    /// What was said before does not hold any more, and nothing new is known.
    Unsure,
    /// Nothing of what it does now.
    Nothing,
}

/// A question that a hook has told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// Told where it says what on, else the event's name.
    pub(crate) what: String,
    named: Option<String>,
    pub(crate) event: String,
    pub(crate) at: Moment,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    turn: Turn,
    at: Duration,
    /// Whether a turn was under way when it came.
    was_open: bool,
}

/// One that was heard just now.
#[derive(Debug, Clone, Copy)]
struct Recent {
    at: Duration,
    print: u64,
    /// In which turn.
    turn: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    New,
    /// It came just now, and nothing since that could make it new.
    Repeat,
    /// It came just now, and another turn has begun since: it may be of either.
    Doubtful,
}

#[derive(Debug, Clone, Default)]
pub struct Heard {
    session: Option<String>,
    /// The session that has ended last: what comes of it now is late.
    ended: Option<String>,
    recent: Vec<Recent>,
    /// How many turns have begun.
    turns: u64,
    last: Option<Last>,
    is_open: bool,
    questions: Vec<Question>,
    /// How many agents within the agent are at work.
    sides: u32,
}

impl Heard {
    /// Takes an event in; nothing where it is none of this session's, or was heard before.
    pub fn hear(&mut self, now: Moment, report: &Report) -> Option<Word> {
        if report.means_nothing() || self.is_foreign(report) {
            return None;
        }
        let news = self.news(now, report);
        match (news, report.turn) {
            (News::Repeat, _) => return None,
            // The end of the turn before, told twice, or already that of this one.
            (News::Doubtful, Some(Turn::Idle)) => {
                self.forget();
                return Some(Word::Unsure);
            }
            (News::New | News::Doubtful, _) => {}
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

    /// The session that the agent is in, as far as hooks tell.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether an event that was heard is of the agent's own session.
    pub(crate) fn is_own(&self, report: &Report) -> bool {
        report.session.is_none() || report.session == self.session
    }

    /// Whether what its hooks print may go to an agent within it.
    pub(crate) fn is_aside(&self) -> bool {
        self.sides > 0
    }

    /// One that breaks off does not say so: the next prompt is the agent's own in any case.
    fn count_sides(&mut self, report: &Report) {
        let is_over = matches!(report.turn, Some(Turn::Submitted | Turn::Idle));
        self.sides = match report.side {
            _ if is_over || report.ends || report.begins => 0,
            Some(Side::Begins) => self.sides.saturating_add(1),
            Some(Side::Ends) => self.sides.saturating_sub(1),
            None => self.sides,
        };
    }

    /// What it does, as far as hooks tell.
    pub fn doing(&self) -> Option<Turn> {
        self.last.map(|last| last.turn)
    }

    /// The oldest question that stands open.
    pub(crate) fn question(&self) -> Option<&Question> {
        self.questions.first()
    }

    /// It was seen otherwise that the questions are answered. After a no many agents say nothing.
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

    fn news(&mut self, now: Moment, report: &Report) -> News {
        self.recent
            .retain(|recent| now.mono.saturating_sub(recent.at) < CLOSE);
        let known = self.recent.iter_mut().find(|r| r.print == report.print);
        if let Some(known) = known {
            let before = std::mem::replace(&mut known.turn, self.turns);
            return if before == self.turns {
                News::Repeat
            } else {
                News::Doubtful
            };
        }
        if self.recent.len() == REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push(Recent {
            at: now.mono,
            print: report.print,
            // The turn that it begins itself is no reason to hear it twice.
            turn: self.turns + u64::from(report.turn == Some(Turn::Submitted)),
        });
        News::New
    }

    fn take(&mut self, now: Moment, turn: Turn, report: &Report) -> Word {
        let word = self.weigh(now, turn);
        match word {
            Word::Nothing => {}
            Word::Unsure => self.forget(),
            Word::Does(_) => {
                self.ask(now, turn, report);
                self.last = Some(Last {
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

    /// What an event says of now, after the one before it.
    fn weigh(&self, now: Moment, turn: Turn) -> Word {
        use Turn::{Blocked, Idle, Submitted, Tool, Working};
        let says = Word::Does(match turn {
            Blocked => Says::Blocked,
            Submitted | Tool | Working => Says::Working,
            Idle => Says::Idle,
        });
        let close = |last: &Last| now.mono.saturating_sub(last.at) < CLOSE;
        let Some(last) = self.last.filter(close) else {
            return says;
        };
        match (last.turn, turn) {
            // It led to the question, or is of the turn before; nobody answers so fast.
            (Blocked, Submitted | Tool | Working | Idle) => Word::Nothing,
            // The end of a turn has overtaken what was in it.
            (Idle, Tool | Working) => Word::Nothing,
            // Or its beginning.
            (Idle, Submitted) if !last.was_open => Word::Unsure,
            // A turn was under way: this may be its end, or already that of the next.
            (Submitted, Idle) if last.was_open => Word::Unsure,
            (Idle, Blocked | Submitted | Idle)
            | (Submitted, Blocked | Submitted | Tool | Working | Idle)
            | (Tool | Working, Blocked | Submitted | Tool | Working | Idle)
            | (Blocked, Blocked) => says,
        }
    }

    /// Keeps count of the questions. Tools may run side by side: that one has ended answers only
    /// the question about it.
    fn ask(&mut self, now: Moment, turn: Turn, report: &Report) {
        match turn {
            Turn::Blocked => {
                // One that does not say what it is about is told of once more.
                let is_known = report.what.is_none() && !self.questions.is_empty();
                if !is_known && self.questions.len() < REMEMBERED {
                    let named = report.what.clone();
                    self.questions.push(Question {
                        what: named.clone().unwrap_or_else(|| report.event.clone()),
                        named,
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

    /// Events, each with its time and some of its payload; what the last one adds; the question
    /// that is open then.
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
    fn a_turn_is_followed() {
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
        // Another tool that ends beside it answers nothing, nor does one that begins.
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
    fn what_comes_late_or_twice_says_nothing() {
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
        // What led to a question does not answer it.
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
        // One turn ends and the next begins, in either order.
        check(&also(&[(900, "Stop", ""), (940, PROMPT, "")]), "working");
        check(&also(&[(900, PROMPT, ""), (940, "Stop", "")]), "unsure");
        // A turn that is over at once, in either order.
        check(&[(0, PROMPT, ""), (40, "Stop", "")], "idle");
        check(&[(0, "Stop", ""), (40, PROMPT, "")], "unsure");
        check(&[(0, PROMPT, ""), (40, PROMPT, "")], "ignored");
        // Two turns within a moment: the end of the second is no repeat of the first's.
        let two = [
            (0, PROMPT, ""),
            (20, "Stop", ""),
            (40, PROMPT, "next"),
            (60, "Stop", ""),
        ];
        check(&two, "unsure");
    }

    #[test]
    fn side_sessions_say_nothing() {
        let begun = [(0, "SessionStart", "a startup"), (500, PROMPT, "a ")];
        let also = |more: &[(u64, &'static str, &'static str)]| [&begun[..], more].concat();
        check(&also(&[(900, "Stop", "b ")]), "ignored");
        check(&also(&[(900, "SessionStart", "b startup")]), "ignored");
        check(&also(&[(900, "SessionEnd", "b other")]), "ignored");
        check(&also(&[(900, "Stop", "a ")]), "idle");
        // It goes on under another id; what comes of the old one is late.
        let cleared = also(&[
            (900, "SessionEnd", "a clear"),
            (910, "SessionStart", "b clear"),
        ]);
        check(&cleared, "unsure");
        let after = |more: &[(u64, &'static str, &'static str)]| [&cleared[..], more].concat();
        check(&after(&[(2_000, PROMPT, "b ")]), "working");
        check(&after(&[(920, "Stop", "a ")]), "ignored");
        // The same in the wrong order.
        let swapped = also(&[
            (900, "SessionStart", "b clear"),
            (910, "SessionEnd", "a clear"),
        ]);
        check(&swapped, "ignored");
        let swapped = [&swapped[..], &[(2_000, "Stop", "b ")]].concat();
        check(&swapped, "idle");
        // After an end another may begin, but the old one is over.
        let over = also(&[(900, "SessionEnd", "a exit")]);
        check(&over, "unsure");
        check(&[&over[..], &[(950, "Stop", "a ")]].concat(), "ignored");
        check(&[&over[..], &[(2_000, PROMPT, "c ")]].concat(), "working");
        let again = [(2_000, "SessionStart", "a resume"), (3_000, PROMPT, "a ")];
        check(&[&over[..], &again].concat(), "working");
        // One that does not say whose it is, is believed.
        check(&also(&[(900, "Stop", "")]), "idle");
    }
}
