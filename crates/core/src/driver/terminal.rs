//! The route through the terminal. The keyboard is taken before an offer is recorded, and kept until
//! the turn is written completely, so that no key of a person gets into its text.

use super::commits::For;
use super::{Action, KeyboardUser, Observer, Operation, SessionDriver, Turn, pick};
use crate::delivery::Event;
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::Said;

const TERMINAL_GONE: &str = "the terminal is gone";
const NO_TEXT: &str = "its text is not at hand";

/// What the keyboard is taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    Offer {
        ids: Vec<MessageId>,
    },
    Remind {
        ids: Vec<MessageId>,
    },
    /// Enter for a text that is already written.
    Resume,
}

#[derive(Debug, Default)]
enum Lease {
    #[default]
    Free,
    Asked(Purpose),
    /// The journal is asked to record the turn.
    Committing,
    Held,
    /// A text or an Enter is being typed.
    Typing,
}

#[derive(Debug, Default)]
pub(super) struct Keyboard {
    lease: Lease,
    /// The messages of the turn, as read before the turn was recorded. A later read does not find them
    /// any more.
    messages: Vec<MessageState>,
}

impl Keyboard {
    pub(super) fn is_offering(&self) -> bool {
        matches!(self.lease, Lease::Asked(_) | Lease::Committing)
    }

    pub(super) fn refuse(&mut self) {
        self.lease = Lease::Free;
    }

    pub(super) fn hold(&mut self) {
        self.lease = Lease::Held;
    }

    pub(super) fn begin_typing(&mut self) {
        self.lease = Lease::Typing;
    }

    /// Release the keyboard, unless a turn is being offered or typed. Return whether it was held.
    pub(super) fn release(&mut self) -> bool {
        match self.lease {
            Lease::Held => {
                self.lease = Lease::Free;
                true
            }
            Lease::Free | Lease::Asked(_) | Lease::Committing | Lease::Typing => false,
        }
    }

    /// Return the messages of a turn that is to be typed, or `None` if one of them is missing.
    pub(super) fn messages(&self, ids: &[MessageId]) -> Option<Vec<MessageState>> {
        let messages = pick(&self.messages, ids);
        (messages.len() == ids.len()).then_some(messages)
    }
}

impl SessionDriver {
    pub(super) fn take_keyboard_for(&mut self, purpose: Purpose, messages: Vec<MessageState>) {
        self.keyboard.messages = messages;
        self.lease_keyboard(purpose);
    }

    /// Take the keyboard again, for a text that waits for its Enter.
    pub(super) fn retake_keyboard(&mut self) {
        self.lease_keyboard(Purpose::Resume);
    }

    /// Ask for the keyboard. If a turn still holds the keyboard, that turn has ended: release the
    /// keyboard first, so that a person's keys go before the new turn.
    fn lease_keyboard(&mut self, purpose: Purpose) {
        if self.keyboard.release() {
            self.actions
                .push(Action::ReleaseKeyboard(KeyboardUser::Turn));
        }
        self.keyboard.lease = Lease::Asked(purpose);
        self.actions.ask(Action::LeaseKeyboard(KeyboardUser::Turn));
    }

    pub(super) fn keyboard_leased(&mut self, now: Moment, observer: &mut impl Observer) {
        let Lease::Asked(purpose) = std::mem::take(&mut self.keyboard.lease) else {
            self.actions
                .push(Action::ReleaseKeyboard(KeyboardUser::Turn));
            return;
        };
        let operation = match &purpose {
            Purpose::Offer { ids } => {
                Self::offering(Route::Terminal, ids.clone(), &self.keyboard.messages)
            }
            Purpose::Remind { ids } => Operation::Say {
                ids: ids.clone(),
                said: Said::Reminded {
                    route: Route::Terminal.as_str().to_owned(),
                },
            },
            Purpose::Resume => {
                self.keyboard.hold();
                self.tell(now, Event::Resumed, observer);
                return;
            }
        };
        self.keyboard.lease = Lease::Committing;
        self.commit(operation, For::Turn(purpose));
    }

    pub(super) fn keyboard_gone(&mut self) -> Event {
        let why = TERMINAL_GONE.to_owned();
        match std::mem::take(&mut self.keyboard.lease) {
            Lease::Asked(Purpose::Offer { .. } | Purpose::Remind { .. }) => Event::NotRecorded(why),
            Lease::Asked(Purpose::Resume)
            | Lease::Free
            | Lease::Committing
            | Lease::Held
            | Lease::Typing => Event::WriteFailed(why),
        }
    }

    /// Type a turn. If a state of the turn is missing or the keyboard is not held, nothing is typed.
    pub(super) fn type_turn(
        &mut self,
        now: Moment,
        turn: Option<Turn>,
        observer: &mut impl Observer,
    ) {
        let (Some(turn), Lease::Held) = (turn, &self.keyboard.lease) else {
            return self.tell(now, Event::WriteFailed(NO_TEXT.to_owned()), observer);
        };
        self.keyboard.begin_typing();
        let mode = self.delivery.input();
        self.actions.ask(Action::Type { turn, mode });
    }

    /// Tell delivery that a text or Enter was typed, or could not be typed.
    pub(super) fn tell_typed(&mut self, now: Moment, event: Event, observer: &mut impl Observer) {
        if let Lease::Typing = self.keyboard.lease {
            self.keyboard.hold();
        }
        self.tell(now, event, observer);
    }
}
