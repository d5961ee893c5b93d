//! What delivery makes of the screen, and what it says about the program's input.

use super::question::ShownQuestion;
use super::rules::HANDED_OVER;
use super::{Delivery, Lane, Rule};
use crate::harness::{BoxState, Paste, Sighting};
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::turn::{self, TextPlacement};

impl Delivery {
    /// Whether the harness can tell that no question stands open.
    pub fn knows_dialogs(&self) -> bool {
        self.agent.knows_dialogs()
    }

    /// Whether the screen tells anything about this program.
    pub fn reads_screen(&self) -> bool {
        self.config.harness.looks()
    }

    /// The question that is open.
    pub fn open_question(&self) -> Option<&str> {
        let open = self.agent.questions.open.as_ref();
        open.map(|dialog| dialog.what.as_str())
    }

    /// Whether the program cannot be written to yet.
    pub fn is_starting(&self) -> bool {
        self.agent.judge.is_starting()
    }

    /// The evidence that the program can be written to.
    pub fn ready_evidence(&self) -> String {
        self.agent.judge.pace().evidence.clone()
    }

    /// Where the words of a message stand: on the screen, they must not pass for a question of
    /// the program's. That would hold them up for ever, and all that comes after them.
    pub fn placement(&self, message_state: &MessageState) -> TextPlacement {
        let would_ask = |text: &str| self.config.harness.would_ask(text);
        let asks = turn::words(message_state).is_some_and(|words| {
            let head = turn::beginning(message_state, self.input_box.mode);
            would_ask(&words) || would_ask(&head)
        });
        if asks {
            TextPlacement::File
        } else {
            TextPlacement::Inline
        }
    }

    /// Why a line that is no message is not for this program: it would pass for a question.
    pub fn line_refusal(&self, line: &str) -> Option<String> {
        let asks = self.config.harness.would_ask(line);
        asks.then(|| "it reads like a question of the program's own".to_owned())
    }

    /// Whether nothing is typed only because the screen has just changed.
    pub fn is_settling(&self) -> bool {
        self.terminal_rule(Lane::Normal) == Some(Rule::Settling)
    }

    /// Why Enter may not follow a line that is no message.
    pub fn enter_refusal(&self, line: &str) -> Option<String> {
        if let Some(what) = self.open_question() {
            return Some(format!("a question opened ({what})"));
        }
        if self.agent.handed_over.is_some() {
            return Some(HANDED_OVER.to_owned());
        }
        if self.agent.is_at_work() {
            return Some("the agent is working".to_owned());
        }
        if !self.input_box.is_described() {
            return None;
        }
        match self.input_box.state() {
            BoxState::Holds(_) if self.input_box.holds_only(line) => None,
            BoxState::Holds(_) => Some("the input box does not hold exactly this line".to_owned()),
            BoxState::Empty => Some("the input box is empty and does not show the line".to_owned()),
            BoxState::Unrecognised(_) | BoxState::Undescribed => {
                Some(self.input_box.mismatch_text())
            }
        }
    }

    /// How long the input box may take to show a text.
    pub fn text_seen_within(&self) -> std::time::Duration {
        self.config.harness.submit.seen_within.get()
    }

    pub fn paste(&self) -> Paste {
        self.config.harness.submit.paste
    }

    pub fn enter_key(&self) -> &[u8] {
        self.config.harness.submit.enter.bytes()
    }

    /// How long after a text Enter is pressed.
    pub fn enter_after(&self) -> std::time::Duration {
        self.config.harness.submit.delay.get()
    }

    /// Whether the screen shows that no key of a person's has reached the input box: it is empty,
    /// or holds what we have written and nothing else, and the keys went to a dialog.
    pub fn keys_missed_box(&self) -> bool {
        match (self.input_box.state(), &self.terminal.awaiting_enter) {
            (BoxState::Empty, _) => true,
            (BoxState::Holds(_), Some(waiting)) => {
                let is_typed = self.input_box.is_typed_to_question();
                is_typed && self.input_box.holds_only(&waiting.text)
            }
            (BoxState::Holds(_), None) | (BoxState::Unrecognised(_) | BoxState::Undescribed, _) => {
                false
            }
        }
    }

    /// Take over what a look at the screen shows.
    pub(super) fn screen_changed(&mut self, now: Moment, mut sighting: Sighting) {
        self.agent.look(now, &sighting);
        let question = sighting.question.take();
        let shown = sighting.dialog.take().map(|what| ShownQuestion {
            text: question.unwrap_or_else(|| what.clone()),
            what,
        });
        let answer = self.terminal.answer();
        let is_announced = sighting.announced;
        self.agent.note_look(now, shown, is_announced, answer);
        self.input_box.look(now, sighting);
        self.hasten_enter(now);
    }

    /// Whether the input box holds a draft. While a turn of ours is under way, the text there is our
    /// own, because nobody else can type.
    pub(super) fn has_draft(&self) -> bool {
        let is_ours = self.is_writing() || self.terminal.is_awaiting_enter();
        self.input_box.is_typed() || (self.input_box.shows_text() && !is_ours)
    }
}
