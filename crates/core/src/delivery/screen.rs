//! Delivery's conclusions from the screen, and the properties of the program's input.

use super::question::{ShownAsk, ShownQuestion};
use super::{Delivery, Lane, Rule};
use crate::harness::{BoxState, Paste, Sighting};
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::turn::{self, TextPlacement};
use std::time::Duration;

impl Delivery {
    /// Whether the harness can tell that no question is open.
    pub fn knows_dialogs(&self) -> bool {
        self.agent.knows_dialogs()
    }

    /// Whether the harness can read the screen of this program.
    pub fn reads_screen(&self) -> bool {
        self.config.harness.looks()
    }

    /// Return the open question.
    pub fn open_question(&self) -> Option<&str> {
        let open = self.agent.questions.open.as_ref();
        open.map(|dialog| dialog.what.as_str())
    }

    /// Return the number of the open question.
    pub fn question_number(&self) -> Option<u64> {
        self.agent.question_number()
    }

    /// Whether an answer is being typed, or its effect is awaited.
    pub fn is_answering(&self) -> bool {
        self.terminal.answer().is_some()
    }

    /// Return the open question as an ask, once it has settled.
    pub fn shown_ask(&self, now: Moment) -> Option<ShownAsk> {
        self.agent.shown_ask(now)
    }

    /// Return when the open question can become an ask.
    pub fn ask_settles_at(&self) -> Option<Duration> {
        self.agent.ask_settles_at()
    }

    /// Return the keys that choose an option of the open question.
    pub fn keys_for(&self, key: &str) -> Option<String> {
        let open = self.agent.questions.open.as_ref()?;
        open.view.as_ref()?.keys_for(key)
    }

    /// Whether the program cannot be written to yet.
    pub fn is_starting(&self) -> bool {
        self.agent.judge.is_starting()
    }

    /// Return the evidence that the program can be written to.
    pub fn ready_evidence(&self) -> String {
        self.agent.judge.pace().evidence.clone()
    }

    /// Return where the text of a message goes. On the screen, the text must not look like a
    /// question of the program, which would hold this message and all later ones for ever.
    pub fn placement(&self, mail: &MessageState) -> TextPlacement {
        let would_ask = |text: &str| self.config.harness.would_ask(text);
        let asks = turn::words(mail).is_some_and(|words| {
            let head = turn::beginning(mail, self.input_box.mode);
            would_ask(&words) || would_ask(&head)
        });
        if asks {
            TextPlacement::File
        } else {
            TextPlacement::Inline
        }
    }

    /// Return why a nudge is refused because of its text: the line would look like a question.
    pub fn line_refusal(&self, line: &str) -> Option<String> {
        let asks = self.config.harness.would_ask(line);
        asks.then(|| "it reads like a question of the program's own".to_owned())
    }

    /// Whether a recent change of the screen is the only reason to type nothing.
    pub fn is_settling(&self) -> bool {
        self.terminal_rule(Lane::Normal) == Some(Rule::Settling)
    }

    /// Return why Enter may not follow a nudge that is typed.
    pub fn enter_refusal(&self, line: &str) -> Option<String> {
        if let Some(rule) = self.enter_rule(Lane::Normal) {
            let question = self.open_question().filter(|_| rule == Rule::Blocked);
            let opened = question.map(|what| format!("a question opened ({what})"));
            return Some(opened.unwrap_or_else(|| self.reason(rule).to_owned()));
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

    /// Return how long the input box may take to show a text.
    pub fn text_seen_within(&self) -> Duration {
        self.config.harness.submit.seen_within.get()
    }

    pub fn paste(&self) -> Paste {
        self.config.harness.submit.paste
    }

    pub fn enter_key(&self) -> &[u8] {
        self.config.harness.submit.enter.bytes()
    }

    /// Return the time between a text and its Enter.
    pub fn enter_after(&self) -> Duration {
        self.config.harness.submit.delay.get()
    }

    /// Whether the screen shows that a person's keys did not reach the input box: the box is empty,
    /// or the keys went to a dialog and the box holds only our text.
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

    /// Update the agent and the input box from a look at the screen.
    pub(super) fn screen_changed(&mut self, now: Moment, mut sighting: Sighting) {
        self.agent.look(now, &sighting);
        let question = sighting.question.take();
        let view = sighting.dialog_view.take();
        let shown = sighting.dialog.take().map(|what| ShownQuestion {
            text: question.unwrap_or_else(|| what.clone()),
            what,
            view,
        });
        let answer = self.terminal.answer();
        let is_announced = sighting.announced;
        self.agent.note_look(now, shown, is_announced, answer);
        self.input_box.look(now, sighting);
        self.hasten_enter(now);
    }

    /// Whether the input box holds a draft. During our own turn the text in the box is ours, because
    /// nobody else can type.
    pub(super) fn has_draft(&self) -> bool {
        let is_ours = self.is_writing() || self.terminal.is_awaiting_enter();
        self.input_box.is_typed() || (self.input_box.shows_text() && !is_ours)
    }
}
