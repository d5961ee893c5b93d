//! What a desk makes of what is seen on the screen.

use super::hold::{HANDED_OVER, Rule};
use super::question::Shown;
use super::{Desk, Lane, Phase};
use crate::harness::{BoxState, Paste, Says, Sighting};
use crate::mail::Letter;
use crate::moment::Moment;
use crate::turn::{self, Telling};

impl Desk {
    /// Whether the harness can tell that no question stands open.
    pub fn knows_dialogs(&self) -> bool {
        self.manner.harness.knows_dialogs()
    }

    /// Whether the screen tells anything about this program.
    pub fn looks(&self) -> bool {
        self.manner.harness.looks()
    }

    /// Whether it cannot be written to yet.
    pub fn is_starting(&self) -> bool {
        self.judge.is_starting()
    }

    /// What showed that it can.
    pub fn ready_evidence(&self) -> String {
        self.judge.pace().evidence.clone()
    }

    /// Where the words of a message stand: on the screen, they must not pass for a question of
    /// the program's. That would hold them up for ever, and all that comes after them.
    pub fn telling(&self, letter: &Letter) -> Telling {
        let would_ask = |text: &str| self.manner.harness.would_ask(text);
        let asks = turn::words(letter).is_some_and(|words| {
            let head = turn::beginning(letter, self.input);
            would_ask(&words) || would_ask(&head)
        });
        if asks { Telling::InFile } else { Telling::Here }
    }

    /// Why a line that is no message is not for this program: it would pass for a question.
    pub fn bars_words(&self, line: &str) -> Option<String> {
        let asks = self.manner.harness.would_ask(line);
        asks.then(|| "it reads like a question of the program's own".to_owned())
    }

    /// Whether nothing is typed only because the screen has just changed.
    pub fn is_settling(&self) -> bool {
        self.rule_of_terminal(Lane::Normal) == Some(Rule::Settling)
    }

    /// Why Enter may not follow a line that is no message.
    pub fn bars_enter_after(&self, line: &str) -> Option<String> {
        if let Some(what) = self.asks() {
            return Some(format!("a question opened ({what})"));
        }
        if self.handed_over.is_some() {
            return Some(HANDED_OVER.to_owned());
        }
        if self.is_at_work() {
            return Some("the agent is working".to_owned());
        }
        let input_box = self.manner.harness.input_box.as_ref()?;
        match self.drafting.state() {
            BoxState::Holds(held) if input_box.is_text(held, line) => None,
            BoxState::Holds(_) => Some("the input box does not hold exactly this line".to_owned()),
            BoxState::Empty => Some("the input box is empty and does not show the line".to_owned()),
            BoxState::Unrecognised(_) | BoxState::Undescribed => Some(self.mismatch_says()),
        }
    }

    /// How long the input box may take to show a text.
    pub fn text_seen_within(&self) -> std::time::Duration {
        self.manner.harness.submit.seen_within.get()
    }

    pub fn paste(&self) -> Paste {
        self.manner.harness.submit.paste
    }

    pub fn enter_key(&self) -> &[u8] {
        self.manner.harness.submit.enter.bytes()
    }

    /// How long after a text Enter is pressed.
    pub fn enter_after(&self) -> std::time::Duration {
        self.manner.harness.submit.delay.get()
    }

    /// Whether the screen shows that no key of a person's has reached the input box: it is empty,
    /// or holds what we have written and nothing else, and the keys went to a dialog.
    pub fn is_field_ours(&self) -> bool {
        match (self.drafting.state(), &self.parked) {
            (BoxState::Empty, _) => true,
            (BoxState::Holds(_), Some(parked)) => {
                self.drafting.is_typed_to_question() && self.holds_only(parked)
            }
            (BoxState::Holds(_), None) | (BoxState::Unrecognised(_) | BoxState::Undescribed, _) => {
                false
            }
        }
    }

    pub(super) fn seen(&mut self, now: Moment, sighting: Sighting) {
        let Sighting {
            ready,
            claims,
            dialog,
            question,
            announced,
            input_box,
            output,
            before,
            program,
        } = sighting;
        self.at_cursor = before;
        let work = claims.iter().find(|claim| claim.says == Says::Working);
        self.shows_work = work.map(|claim| claim.evidence.clone());
        self.see_handover(now, program.handed_over.as_deref());
        self.judge.seen(now, &claims);
        if ready {
            self.judge.ready(now);
        }
        let shown = dialog.map(|what| Shown {
            text: question.unwrap_or_else(|| what.clone()),
            what,
        });
        if let (Some(shown), true, false) = (&shown, self.announced, announced) {
            self.drawn(now, shown);
        }
        self.announced = announced;
        self.see(now, shown);
        self.drafting.see(now, input_box, output);
        self.drafting.tick(now);
        self.see_text(now);
    }

    fn see_handover(&mut self, now: Moment, job: Option<&str>) {
        let since = self.handed_over.take().map_or(now, |(since, _)| since);
        self.handed_over = job.map(|job| (since, job.to_owned()));
    }

    /// Enter need not wait any longer for a text that the box shows.
    fn see_text(&mut self, now: Moment) {
        let soon = now.mono + self.enter_after();
        let is_there = match &self.phase {
            Phase::Written { flight, .. } => self.holds_only(flight),
            _ => false,
        };
        if let (Phase::Written { enter_at, .. }, true) = (&mut self.phase, is_there) {
            *enter_at = soon.min(*enter_at);
        }
    }

    /// Whether the input box holds a draft. While a turn of ours is under way, the text there is our
    /// own, because nobody else can type.
    pub(super) fn has_draft(&self) -> bool {
        let is_ours = self.is_writing() || self.parked.is_some();
        self.drafting.is_typed() || (self.drafting.is_shown() && !is_ours)
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self.phase, Phase::Free)
    }
}
