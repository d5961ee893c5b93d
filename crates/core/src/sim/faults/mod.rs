//! Faults that the laws must find.
//!
//! [`FaultyDriver`] wraps the session driver and changes an input or an action; the oracle is told
//! the unchanged one. The simulated journal has faults of its own.
//!
//! A fault that cannot be made from outside the driver is left to mutation testing (`just
//! mutants`).

mod actions;
mod inputs;
mod truthful;

use crate::activity::Activity;
use crate::driver::{
    Action, CommitId, Input, JournalOperation, KeyboardUser, Observer, SessionDriver,
};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::why::Hold;
use actions::{ids, is_raw};
use std::collections::VecDeque;
use std::ops::Deref;
use std::time::Duration;
use truthful::Truthful;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The journal acknowledges a message before it is synced.
    AnsweredUnsynced,
    /// The journal lets an ended message be offered.
    CancelledShown,
    /// The journal counts an answered message as owed.
    RemindsAnswered,
    /// A message is missing from the text of its turn.
    MessageLeftOut,
    /// The text is typed before the journal has recorded the offer.
    WrittenFirst,
    /// "Offered" is recorded when typing begins.
    OfferedTooEarly,
    /// "Offered" is recorded when a hook receives mail, not when it has passed the mail on.
    HandedTooEarly,
    /// "Accepted" is recorded in place of "offered".
    AcceptedByEnter,
    /// An offer is recorded as if no proof were awaited.
    ProofNotAwaited,
    /// The text is typed again after a failed write.
    TypedAgain,
    /// The text is typed again in place of the second Enter.
    RetypedOnRetry,
    /// A repeat is shown without its mark.
    RepeatUnmarked,
    /// Enter is pressed although a question has opened after the text.
    EnterIntoQuestion,
    /// Enter follows the text without a look at the screen.
    EnterUnlooked,
    /// Text is typed although the screen does not show an empty input box.
    WrittenUnrecognised,
    /// Enter is pressed although the input box does not hold exactly the text.
    EnterUnrecognised,
    /// Enter for an answer goes into another question.
    AnswersAnother,
    /// A draft does not delay a message.
    DraftIgnored,
    /// A pause does not delay a message.
    PauseIgnored,
    /// A request for a pause at the end of the turn is forgotten.
    CheckpointMissed,
    /// Text is offered to a program that is starting.
    TypedWhileStarting,
    /// Idle-first messages go oldest first.
    IdleFirstInOrder,
    /// The driver requests no wakeup.
    SleepsThrough,
    /// An offer stays open although a person has typed first.
    NeverLetsGo,
    /// An offer stays open although the journal has failed.
    GivesUpOnDisk,
    /// A message waits without a reason.
    NoReason,
    /// The transcript of the resumed conversation is not read.
    ResumedUnread,
    /// A hook of another session counts as proof.
    AcceptedElsewhere,
    /// A submitted text counts as given to the model, although it may be queued.
    AcceptedWhenQueued,
    /// A prompt that a person took back from the queue counts as given to the model.
    WithdrawnAccepted,
    /// A prompt that a person took back from the queue still counts as queued.
    WithdrawnIgnored,
    /// Mail is sent to the API although the terminal shows another conversation.
    ApiUnchecked,
    /// Mail is sent to the API twice.
    ApiMailDoubled,
    /// "Offered" is recorded when mail is sent to the API, not when the API has taken it.
    ApiOfferedTooEarly,
    /// Mail counts as refused if the API does not answer.
    ApiSilenceRefused,
    /// Mail counts as taken if the API refuses it.
    ApiRefusalTaken,
    /// The agent is not told to continue with mail from the middle of its turn.
    NotContinued,
    /// The agent is told to continue twice.
    ContinuedTwice,
    /// A nudge is typed after its sender has given up.
    NudgedLate,
    /// A nudge is typed and submitted although the input box is not recognised.
    NudgedUnrecognised,
    /// A nudge is reported as typed although its Enter was withheld.
    NudgedTooEarly,
}

/// Progress of the current turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Recorded,
    Typed,
    Entered,
}

#[derive(Debug)]
pub(crate) struct FaultyDriver {
    driver: SessionDriver,
    fault: Option<Fault>,
    stage: Stage,
    /// The commit of the last offer through the terminal or a hook.
    offer: Option<CommitId>,
    /// The last text that the driver requested to type.
    typing: Option<Action>,
    /// The last text that was typed.
    text: String,
    /// The last typed line of a nudge.
    line: Option<String>,
    last_look: Sighting,
    /// The messages that were last sent to the API.
    api_mail: Vec<MessageId>,
    /// The program's own session id, which its hooks name.
    session: Option<String>,
    /// Actions that the fault adds, and whether the observer is told of them first.
    added: VecDeque<(bool, Action)>,
}

impl Deref for FaultyDriver {
    type Target = SessionDriver;

    fn deref(&self) -> &SessionDriver {
        &self.driver
    }
}

impl FaultyDriver {
    pub(crate) fn new(driver: SessionDriver, fault: Option<Fault>) -> Self {
        Self {
            driver,
            fault,
            stage: Stage::Recorded,
            offer: None,
            typing: None,
            text: String::new(),
            line: None,
            last_look: Sighting::default(),
            api_mail: Vec::new(),
            session: None,
            added: VecDeque::new(),
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        let next = self.driver.delivery().next_wakeup();
        next.filter(|_| self.fault != Some(Fault::SleepsThrough))
    }

    pub(crate) fn hold(&self, now: Moment, state: &MessageState) -> Option<Hold> {
        let delivery = self.driver.delivery();
        let is_working = delivery.activity().activity == Activity::Working;
        if self.fault == Some(Fault::NoReason) && is_working {
            return None;
        }
        delivery.hold(now, state, &self.driver.mail().pending)
    }

    pub(crate) fn handle(&mut self, now: Moment, input: Input, observer: &mut impl Observer) {
        let Some(fault) = self.fault else {
            return self.driver.handle(now, input, observer);
        };
        let Some((input, truth)) = self.change_input(fault, now, input, observer) else {
            return;
        };
        let is_begun = fault == Fault::AnswersAnother && self.stage == Stage::Typed;
        let answer = self
            .typing
            .as_ref()
            .filter(|typing| is_begun && is_raw(typing));
        let mut observer = Truthful {
            observer,
            truth,
            answer: answer.map(ids).unwrap_or_default(),
        };
        self.driver.handle(now, input, &mut observer);
    }

    pub(crate) fn poll_action(
        &mut self,
        now: Moment,
        observer: &mut impl Observer,
    ) -> Option<Action> {
        loop {
            if let Some((is_told, action)) = self.added.pop_front() {
                if is_told {
                    observer.on_action(now, self.driver.delivery(), &action);
                }
                return Some(action);
            }
            let action = self.driver.poll_action(now, observer)?;
            let Some(fault) = self.fault else {
                return Some(action);
            };
            self.change_action(fault, now, action, observer);
        }
    }

    fn note_action(&mut self, action: &Action) {
        match action {
            Action::Commit {
                commit,
                operation:
                    JournalOperation::RecordStep {
                        report: OfferReport::Offering { .. },
                        ..
                    },
            } => {
                self.offer = Some(*commit);
                self.stage = Stage::Recorded;
            }
            Action::Type { .. } => {
                self.typing = Some(action.clone());
                self.stage = Stage::Typed;
            }
            Action::PressEnter {
                by: KeyboardUser::Turn,
                ..
            } => self.stage = Stage::Entered,
            Action::PutMail { .. } => self.api_mail = ids(action),
            Action::TypeLine(line) => self.line = Some(line.clone()),
            Action::ReleaseKeyboard(KeyboardUser::Nudge) => self.line = None,
            _ => {}
        }
    }
}
