//! The route through the terminal. The keyboard is taken before an offer is recorded, and kept until
//! the turn is written completely, so that no key of a person gets into its text.

use crate::delivery::DeliveryEvent;
use crate::driver::journal::commits::CommitPurpose;
use crate::driver::{
    Action, JournalOperation, KeyboardUser, Observer, SessionDriver, TurnContent, pick,
};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;

const TERMINAL_GONE: &str = "the terminal is gone";
const NO_TEXT: &str = "its text is not available";

/// The purpose of a lease of the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyboardPurpose {
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
    Asked(KeyboardPurpose),
    /// The journal is asked to record the turn.
    Committing,
    Held,
    /// A text or an Enter is being typed.
    Typing,
}

#[derive(Debug, Default)]
pub(crate) struct Keyboard {
    lease: Lease,
    /// The messages of the turn, as read before the turn was recorded. A later read does not return
    /// them.
    messages: Vec<MessageState>,
}

impl Keyboard {
    pub(crate) fn is_offering(&self) -> bool {
        matches!(self.lease, Lease::Asked(_) | Lease::Committing)
    }

    pub(crate) fn refuse(&mut self) {
        self.lease = Lease::Free;
    }

    pub(crate) fn hold(&mut self) {
        self.lease = Lease::Held;
    }

    pub(crate) fn begin_typing(&mut self) {
        self.lease = Lease::Typing;
    }

    /// Release the keyboard, unless a turn is being offered or typed. Return whether it was held.
    pub(crate) fn release(&mut self) -> bool {
        match self.lease {
            Lease::Held => {
                self.lease = Lease::Free;
                true
            }
            Lease::Free | Lease::Asked(_) | Lease::Committing | Lease::Typing => false,
        }
    }

    /// Return the messages of a turn that is to be typed, or `None` if one of them is missing.
    pub(crate) fn messages(&self, ids: &[MessageId]) -> Option<Vec<MessageState>> {
        let messages = pick(&self.messages, ids);
        (messages.len() == ids.len()).then_some(messages)
    }
}

impl SessionDriver {
    pub(crate) fn take_keyboard_for(
        &mut self,
        purpose: KeyboardPurpose,
        messages: Vec<MessageState>,
    ) {
        self.keyboard.messages = messages;
        self.lease_keyboard(purpose);
    }

    /// Take the keyboard again, for a text that waits for its Enter.
    pub(crate) fn retake_keyboard(&mut self) {
        self.lease_keyboard(KeyboardPurpose::Resume);
    }

    /// Ask for the keyboard. If a turn still holds the keyboard, that turn has ended: release the
    /// keyboard first, so that a person's keys go before the new turn.
    fn lease_keyboard(&mut self, purpose: KeyboardPurpose) {
        if self.keyboard.release() {
            self.actions
                .push_back(Action::ReleaseKeyboard(KeyboardUser::Turn));
        }
        self.keyboard.lease = Lease::Asked(purpose);
        self.actions
            .push_back(Action::LeaseKeyboard(KeyboardUser::Turn));
    }

    pub(crate) fn keyboard_leased(&mut self, now: Moment, observer: &mut impl Observer) {
        let Lease::Asked(purpose) = std::mem::take(&mut self.keyboard.lease) else {
            self.actions
                .push_back(Action::ReleaseKeyboard(KeyboardUser::Turn));
            return;
        };
        let operation = match &purpose {
            KeyboardPurpose::Offer { ids } => {
                Self::offering(Route::Terminal, ids.clone(), &self.keyboard.messages)
            }
            KeyboardPurpose::Remind { ids } => JournalOperation::RecordStep {
                ids: ids.clone(),
                report: OfferReport::Reminded {
                    route: Route::Terminal.as_str().to_owned(),
                },
            },
            KeyboardPurpose::Resume => {
                self.keyboard.hold();
                self.notify_delivery(now, DeliveryEvent::Resumed, observer);
                return;
            }
        };
        self.keyboard.lease = Lease::Committing;
        self.commit(operation, CommitPurpose::Turn);
    }

    pub(crate) fn keyboard_gone(&mut self) -> DeliveryEvent {
        let why = TERMINAL_GONE.to_owned();
        match std::mem::take(&mut self.keyboard.lease) {
            Lease::Asked(KeyboardPurpose::Offer { .. } | KeyboardPurpose::Remind { .. }) => {
                DeliveryEvent::NotRecorded(why)
            }
            Lease::Asked(KeyboardPurpose::Resume)
            | Lease::Free
            | Lease::Committing
            | Lease::Held
            | Lease::Typing => DeliveryEvent::WriteFailed(why),
        }
    }

    /// Type a turn. If a message of the turn is missing or the keyboard is not held, nothing is
    /// typed.
    pub(crate) fn type_turn(
        &mut self,
        now: Moment,
        turn: Option<TurnContent>,
        observer: &mut impl Observer,
    ) {
        let (Some(turn), Lease::Held) = (turn, &self.keyboard.lease) else {
            return self.notify_delivery(
                now,
                DeliveryEvent::WriteFailed(NO_TEXT.to_owned()),
                observer,
            );
        };
        self.keyboard.begin_typing();
        let mode = self.delivery.input();
        self.actions.push_back(Action::Type { turn, mode });
    }

    /// Tell delivery that a text or Enter was typed, or could not be typed.
    pub(crate) fn finish_typing(
        &mut self,
        now: Moment,
        event: DeliveryEvent,
        observer: &mut impl Observer,
    ) {
        if let Lease::Typing = self.keyboard.lease {
            self.keyboard.hold();
        }
        self.notify_delivery(now, event, observer);
    }
}
