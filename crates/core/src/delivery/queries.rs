//! Queries about a delivery, for the driver, the session and the simulation.

use super::routes::Route;
use super::{Delivery, ShownAsk, TurnKind};
use crate::activity::Judgement;
use crate::driver::{Action, JournalOperation};
use crate::harness::{BoxState, Paste, Report, Turn};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::turn::InputMode;
use std::time::Duration;

/// A turn of messages or a reminder on its way through the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInFlight {
    pub ids: Vec<MessageId>,
    pub is_reminder: bool,
    /// How often Enter was pressed; `None` before the text is written.
    pub enters: Option<u8>,
}

impl Delivery {
    /// Return the activity of the agent. An open question counts for more than silence or output.
    pub fn activity(&self) -> Judgement {
        self.at.agent.judgement()
    }

    /// Return the state of the agent's turn according to its hooks.
    pub fn doing(&self) -> Option<Turn> {
        self.at.agent.doing()
    }

    /// Whether the program cannot be written to yet.
    pub fn is_starting(&self) -> bool {
        self.at.agent.judge.is_starting()
    }

    /// Return the evidence that the program can be written to.
    pub fn ready_evidence(&self) -> String {
        self.at.agent.judge.pace().evidence.clone()
    }

    /// Return the open question.
    pub fn open_question(&self) -> Option<&str> {
        let open = self.at.agent.questions.open.as_ref();
        open.map(|dialog| dialog.what.as_str())
    }

    /// Return the number of the open question.
    pub fn question_number(&self) -> Option<u64> {
        self.at.agent.question_number()
    }

    /// Whether an answer is being typed, or its effect is awaited.
    pub fn is_answering(&self) -> bool {
        self.terminal.answer().is_some()
    }

    /// Return the open question as an ask, once it has settled.
    pub fn shown_ask(&self, now: Moment) -> Option<ShownAsk> {
        self.at.agent.shown_ask(now)
    }

    /// Return when the open question can become an ask.
    pub fn ask_settles_at(&self) -> Option<Duration> {
        self.at.agent.ask_settles_at()
    }

    /// Return the keys that choose an option of the open question.
    pub fn keys_for(&self, key: &str) -> Option<String> {
        let open = self.at.agent.questions.open.as_ref()?;
        open.view.as_ref()?.keys_for(key)
    }

    /// Return whether a report belongs to the agent's own conversation.
    pub fn is_own(&self, report: &Report) -> bool {
        self.at.agent.heard.is_own(report)
    }

    /// Whether the harness can read the screen of this program.
    pub fn reads_screen(&self) -> bool {
        self.at.reads_screen()
    }

    /// Return how the program takes text now.
    pub fn input(&self) -> InputMode {
        self.at.input_box.mode
    }

    pub fn paste(&self) -> Paste {
        self.at.config.harness.submit.paste
    }

    /// Return how long the program has left its input unread, if it has.
    pub fn unread_for(&self, now: Moment) -> Option<Duration> {
        self.at.unread_for(now)
    }

    /// Whether the screen shows that a person's keys did not reach the input box: the box is empty,
    /// or the keys went to a dialog and the box holds only our text.
    pub fn keys_missed_box(&self) -> bool {
        let input_box = &self.at.input_box;
        match (input_box.state(), self.terminal.awaiting_text()) {
            (BoxState::Empty, _) => true,
            (BoxState::Holds(_), Some(text)) => {
                input_box.is_typed_to_question() && input_box.holds_only(text)
            }
            (BoxState::Holds(_), None) | (BoxState::Unrecognised(_) | BoxState::Undescribed, _) => {
                false
            }
        }
    }

    /// Whether delivery is paused.
    pub fn is_paused(&self) -> bool {
        !self.at.pauses.is_empty()
    }

    /// Whether a turn is partly written, or about to be, so that a person's keys must wait.
    pub fn is_writing(&self) -> bool {
        self.terminal.is_writing()
    }

    /// Whether a turn waits for the keyboard, or for the journal.
    pub fn is_offering(&self) -> bool {
        self.terminal.is_offering()
    }

    /// Return the messages or the reminder on its way through the terminal, if any.
    pub fn turn_in_flight(&self) -> Option<TurnInFlight> {
        let interrupting = self.interruption.as_ref().map(|i| &i.turn);
        let turn = interrupting.or_else(|| self.terminal.turn())?;
        let is_reminder = match turn.kind {
            TurnKind::Messages | TurnKind::Answer(_) => false,
            TurnKind::Reminder => true,
            TurnKind::Line(_) => return None,
        };
        Some(TurnInFlight {
            ids: turn.ids(),
            is_reminder,
            enters: self.terminal.enters(),
        })
    }

    /// Whether no turn is in flight that keys or output could affect.
    pub fn is_at_rest(&self) -> bool {
        let is_idle = self.terminal.is_free() && !self.terminal.is_awaiting_enter();
        is_idle && self.interruption.is_none() && self.at.backoff.is_none()
    }

    /// Return the monotonic time from which output must be reported at once. Of earlier output, only
    /// the last needs a report, before the next event or decision.
    pub fn output_matters_from(&self) -> Option<Duration> {
        match self.is_at_rest() {
            true => self.at.agent.judge.heeds_output_from(),
            false => Some(Duration::ZERO),
        }
    }

    /// Return whether the next decision needs all input to be read: unread keys may still take
    /// effect.
    pub fn awaits_reading(&self) -> bool {
        self.interruption.is_none() && self.terminal.awaits_reading(&self.at)
    }

    /// Whether a turn in the terminal carries this message, or reminds the agent of it.
    pub(super) fn is_in_terminal(&self, id: MessageId) -> bool {
        let interrupting = self.interruption.as_ref().map(|i| &i.turn);
        let mut turns = self.terminal.turns().chain(interrupting);
        turns.any(|turn| turn.has(id))
    }

    /// Whether a message is on its way to a hook or to the agent's API.
    pub fn is_offered_directly(&self, id: MessageId) -> bool {
        self.hook.has(id) || self.http.has(id)
    }

    /// Whether any message is on its way to a hook or to the agent's API.
    pub fn has_direct_offers(&self) -> bool {
        self.hook.is_offering() || self.http.turn().is_some()
    }

    /// Return why the API is not used now, and for how long, in words.
    pub fn http_failure_text(&self, now: Moment) -> Option<String> {
        self.http.failure_text(now, &self.at)
    }

    /// Return whether a message awaits a proof by the transcript.
    pub fn needs_transcript(&self) -> bool {
        self.at.needs_transcript()
    }

    /// Return why an offered message cannot be proven to be accepted, if there is a reason.
    pub fn lacks_proof(&self, mail: &MessageState) -> Option<String> {
        self.at.lacks_proof(mail)
    }

    /// Return the action that commits an operation.
    pub(crate) fn commit(&mut self, operation: JournalOperation) -> Action {
        self.at.commit(operation)
    }
}
