//! The states of the route through the terminal.
//!
//! ```text
//! Preparing:   CheckingInterrupt ─▶ Interrupting ─┐          (interrupts only)
//!   Free ────────┴────────────────────────┴───────┴▶ Settling ─▶ Recording ─▶ CheckingBox ─▶ Writing
//! Submitting:  Writing ─▶ Delaying ─▶ Checking(Enter) ─▶ Entering ─▶ Confirming ─▶ Free
//!              Confirming ─▶ Checking(Retry) ─▶ Entering     (the box still holds the text)
//!              Confirming ─▶ Checking(Verdict) ─▶ Writing    (answers only)
//!              any ─▶ awaiting_enter ─▶ Resuming ─▶ Delaying (a question, a draft, work)
//! Recording ─▶ Backoff ─▶ Free                               (the journal failed)
//! ```

use super::super::Effect;
use super::super::proof::{FoundMessages, MessageHeader};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::promotion;
use crate::turn;
use jiff::Timestamp;
use std::time::Duration;

/// A class of messages with common delivery rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Raw,
    Interrupt,
    Normal,
    Idle,
}

impl Lane {
    pub(crate) fn of(mail: &MessageState) -> Self {
        Self::with(mail, mail.message.envelope.priority)
    }

    /// Return the lane at `now`, when the message may have been promoted.
    pub(crate) fn at(mail: &MessageState, now: Timestamp) -> Self {
        Self::with(mail, promotion::priority(&mail.message, now))
    }

    fn with(mail: &MessageState, priority: Priority) -> Self {
        match priority {
            _ if mail.message.envelope.raw => Self::Raw,
            Priority::Interrupt => Self::Interrupt,
            Priority::Normal => Self::Normal,
            Priority::IdleFirst | Priority::Idle => Self::Idle,
        }
    }

    pub(crate) fn goes_alone(self) -> bool {
        match self {
            Self::Raw | Self::Interrupt => true,
            Self::Normal | Self::Idle => false,
        }
    }
}

/// A question of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) number: u64,
    pub(crate) what: String,
}

/// The kind of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Messages,
    /// A reminder that these messages expect replies. Its only receipt is recorded before it is
    /// typed.
    Reminders,
}

/// Steps that were taken to interrupt the agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interruption {
    /// The harm for which the interrupt key was not pressed.
    pub(crate) avoided_harm: Option<&'static str>,
    /// The dialog that the interrupt key has cancelled.
    pub(crate) cancelled_dialog: Option<String>,
    /// The clear key was pressed, because the program restored a prompt after the interrupt.
    pub(crate) has_cleared: bool,
    /// Number of interrupts by the agent's API.
    pub(crate) aborts: u8,
}

/// The keys of an answer, and the state of the screen before they were typed.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) keys: Option<String>,
    /// How often the keys were typed.
    pub(crate) attempts: u8,
    /// Amount of output that the program had written.
    pub(crate) output: Option<u64>,
    /// The text before the cursor.
    pub(crate) at_cursor: Option<String>,
    /// Key of the option to which the keys move the marker. Enter then chooses it.
    pub(crate) arrows_to: Option<String>,
}

impl Answer {
    pub(crate) fn new(mail: Option<&MessageState>) -> Self {
        let keys = mail.and_then(turn::raw);
        let answers = mail.and_then(|mail| mail.message.envelope.answers.as_ref());
        let is_relative = keys.is_some_and(|keys| keys.starts_with('\u{1b}'));
        let key = answers.map(|answers| answers.key.clone());
        Self {
            arrows_to: key.filter(|_| is_relative),
            keys: keys.map(str::to_owned),
            attempts: 0,
            output: None,
            at_cursor: None,
        }
    }

    /// The keys without surrounding blanks.
    pub(crate) fn trimmed(&self) -> &str {
        self.keys.as_deref().unwrap_or_default().trim()
    }
}

/// A turn on its way to the program.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingTurn {
    pub(crate) ids: Vec<MessageId>,
    /// The headers of all messages that were due.
    pub(crate) headers: Vec<MessageHeader>,
    pub(crate) kind: TurnKind,
    pub(crate) lane: Lane,
    pub(crate) since: Moment,
    /// The question that was open when the turn began.
    pub(crate) question: Option<Question>,
    /// Present only in the lane of raw messages.
    pub(crate) answer: Option<Answer>,
    pub(crate) interruption: Interruption,
    /// Why the turn is typed although the agent has an API.
    pub(crate) http_failure: Option<String>,
}

impl OutgoingTurn {
    pub(crate) fn new(ids: Vec<MessageId>, kind: TurnKind, lane: Lane, since: Moment) -> Self {
        Self {
            ids,
            headers: Vec::new(),
            kind,
            lane,
            since,
            question: None,
            answer: None,
            interruption: Interruption::default(),
            http_failure: None,
        }
    }

    pub(super) fn is_answer(&self) -> bool {
        self.lane == Lane::Raw
    }

    /// Return the effect that records the offer.
    pub(super) fn offer(&self) -> Effect {
        let ids = self.ids.clone();
        match self.kind {
            TurnKind::Messages => Effect::Offer { ids },
            TurnKind::Reminders => Effect::Remind { ids },
        }
    }

    pub(super) fn write(&self) -> Effect {
        let ids = self.ids.clone();
        match self.kind {
            TurnKind::Messages => Effect::Write { ids },
            TurnKind::Reminders => Effect::WriteReminder { ids },
        }
    }

    pub(super) fn withdrawn(&self, why: &str) -> Vec<Effect> {
        let reason = format!("nothing was written: {why}");
        self.receipt(|ids| Effect::Withdraw { ids, reason })
    }

    pub(super) fn uncertain(&self, reason: &str) -> Vec<Effect> {
        let reason = reason.to_owned();
        self.receipt(|ids| Effect::Uncertain { ids, reason })
    }

    fn offered(&self, evidence: String) -> Vec<Effect> {
        let route = Route::Terminal;
        self.receipt(|ids| Effect::Offered {
            ids,
            evidence,
            route,
            // The screen, not a proof, shows whether a raw answer had its effect.
            proof_awaited: !self.is_answer(),
        })
    }

    fn receipt(&self, of: impl FnOnce(Vec<MessageId>) -> Effect) -> Vec<Effect> {
        match self.kind {
            TurnKind::Messages => vec![of(self.ids.clone())],
            TurnKind::Reminders => Vec::new(),
        }
    }
}

const CUT_OFF: &str = "a person pressed Enter, and the submitted text does not show it";

/// A turn whose text is in the terminal, or is being typed.
#[derive(Debug, Clone)]
pub(crate) struct TypedTurn {
    pub(crate) turn: OutgoingTurn,
    /// The text as it was typed; empty until then.
    pub(crate) text: String,
    /// Deadline for the box to show the text before Enter.
    pub(super) shown_by: Duration,
    pub(crate) enters: u8,
    /// When Enter was first pressed.
    pub(super) entered_at: Option<Duration>,
    /// The agent's evidence that the text was submitted.
    pub(crate) proof: Option<FoundMessages>,
    /// Whether the text has waited for its Enter with the keyboard released.
    pub(super) has_waited: bool,
}

impl TypedTurn {
    pub(super) fn new(turn: OutgoingTurn) -> Self {
        Self {
            turn,
            text: String::new(),
            shown_by: Duration::ZERO,
            enters: 0,
            entered_at: None,
            proof: None,
            has_waited: false,
        }
    }

    /// Return the receipts of a completely written text. If a person has pressed Enter, only the
    /// messages in the proof are known to be submitted.
    pub(crate) fn receipts(&self, evidence: String) -> Vec<Effect> {
        let turn = &self.turn;
        let Some(proof) = &self.proof else {
            return turn.offered(evidence);
        };
        let is_submitted = |id: &MessageId| self.entered_at.is_some() || proof.ids.contains(id);
        let (submitted, cut_off): (Vec<_>, Vec<_>) =
            turn.ids.iter().copied().partition(is_submitted);
        let part = |ids| OutgoingTurn {
            ids,
            ..turn.clone()
        };
        let mut effects = part(submitted).offered(evidence);
        effects.extend(proof.effect());
        if !cut_off.is_empty() {
            effects.extend(part(cut_off).uncertain(CUT_OFF));
        }
        effects
    }

    /// Whether one of these messages is in the text.
    pub(crate) fn has(&self, ids: &[MessageId]) -> bool {
        let is_in = |id: &MessageId| ids.contains(id);
        self.turn.kind == TurnKind::Messages && self.turn.ids.iter().any(is_in)
    }
}

/// Progress of a turn before its text is written.
#[derive(Debug, Clone)]
pub(crate) enum Preparation {
    /// Look at the screen before press number `keys` of the interrupt key.
    CheckingInterrupt { keys: u8 },
    /// The interrupt key was pressed `keys` times, and may take effect until this time.
    Interrupting { keys: u8, until: Duration },
    /// The box is empty, but has just changed.
    Settling,
    /// Lease the keyboard and record the offer.
    Recording,
    /// The last look at the box before the text.
    CheckingBox,
}

/// The step that follows a look at the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Enter,
    /// Enter once more.
    Retry,
    /// The verdict on an answer: whether its question is still open.
    Verdict,
}

/// Progress of a turn whose text is written, or is being written.
#[derive(Debug, Clone)]
pub(crate) enum Submission {
    Writing,
    /// Enter is pressed at this time.
    Delaying {
        enter_at: Duration,
    },
    /// Look at the screen. If the program `has_read` its input since, the look may be older.
    Checking {
        before: Before,
        has_read: bool,
    },
    Entering,
    /// Deadline for the text to leave the box.
    Confirming {
        until: Duration,
    },
    /// Lease the keyboard again, for a text that has waited for its Enter.
    Resuming,
}

/// The journal could not be written, and is not used until this time.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    pub(crate) since: Moment,
    pub(crate) until: Duration,
    pub(crate) why: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) enum State {
    #[default]
    Free,
    Preparing(OutgoingTurn, Preparation),
    Submitting(TypedTurn, Submission),
    Backoff(Backoff),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TerminalRoute {
    pub(crate) state: State,
    /// A text that is written and waits for its Enter, because the box does not show it alone.
    pub(crate) awaiting_enter: Option<TypedTurn>,
}

impl TerminalRoute {
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Whether a text waits for its Enter, with the keyboard released.
    pub(crate) fn is_awaiting_enter(&self) -> bool {
        self.awaiting_enter.is_some()
    }

    /// Whether a turn is partly written, so that a person's keys must wait.
    pub(crate) fn is_writing(&self) -> bool {
        match &self.state {
            State::Preparing(_, progress) => matches!(progress, Preparation::CheckingBox),
            State::Submitting(_, progress) => !matches!(progress, Submission::Resuming),
            State::Free | State::Backoff(_) => false,
        }
    }

    /// Return the turn whose text is in the terminal or being typed.
    pub(crate) fn typed(&self) -> Option<&TypedTurn> {
        match &self.state {
            State::Submitting(typed, _) => Some(typed),
            State::Free | State::Preparing(..) | State::Backoff(_) => None,
        }
    }

    pub(crate) fn typed_mut(&mut self) -> Option<&mut TypedTurn> {
        match &mut self.state {
            State::Submitting(typed, _) => Some(typed),
            State::Free | State::Preparing(..) | State::Backoff(_) => None,
        }
    }

    /// Return the turn in flight.
    pub(crate) fn turn(&self) -> Option<&OutgoingTurn> {
        match &self.state {
            State::Preparing(turn, _) => Some(turn),
            State::Submitting(typed, _) => Some(&typed.turn),
            State::Free | State::Backoff(_) => None,
        }
    }

    /// Whether a message is in flight, or waits for its Enter.
    pub(crate) fn has(&self, id: MessageId) -> bool {
        let waiting = self.awaiting_enter.as_ref().map(|typed| &typed.turn);
        let mut turns = self.turn().into_iter().chain(waiting);
        turns.any(|turn| turn.ids.contains(&id))
    }

    /// Note that the program has read all its input.
    pub(crate) fn note_reading(&mut self) {
        if let State::Submitting(_, Submission::Checking { has_read, .. }) = &mut self.state {
            *has_read = true;
        }
    }

    /// Return the answer that is being typed.
    pub(crate) fn answer(&self) -> Option<&str> {
        let typed = self.typed().filter(|_| self.is_writing())?;
        typed.turn.answer.as_ref()?.keys.as_deref()
    }
}
