//! Faults that the laws must find.
//!
//! [`FaultyDriver`] wraps the session driver and changes an input or an action; the oracle is told
//! the unchanged one. The simulated journal has faults of its own.
//!
//! A fault that cannot be made from outside the driver is left to mutation testing (`just
//! mutants`).

use crate::activity::Activity;
use crate::delivery::{Decision, Delivery};
use crate::driver::{
    Action, CommitId, Input, JournalOperation, KeyboardUser, NudgeOutcome, NudgeRequest, Observer,
    SessionDriver, TurnContent,
};
use crate::harness::{BoxState, Held, Report, Route, Sighting};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::priority::Priority;
use crate::promotion;
use crate::receipt::Proven;
use crate::why::Hold;
use std::collections::VecDeque;
use std::ops::Deref;
use std::time::Duration;

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

    /// Change an input, or drop it. Also return the input to report to the observer, if delivery
    /// gets a different one.
    fn change_input(
        &mut self,
        fault: Fault,
        now: Moment,
        input: Input,
        observer: &mut impl Observer,
    ) -> Option<(Input, Option<Input>)> {
        match (fault, input) {
            (Fault::DraftIgnored, input @ Input::KeysTyped { is_draft: true })
            | (Fault::PauseIgnored, input @ Input::Paused(_)) => {
                tell_alone(observer, now, &input);
                None
            }
            (Fault::CheckpointMissed, Input::CheckpointRequested) => None,
            (Fault::NeverLetsGo, Input::KeyboardRefused(KeyboardUser::Turn)) => None,
            (Fault::GivesUpOnDisk, Input::NotCommitted { commit, .. })
                if self.offer == Some(commit) =>
            {
                None
            }
            (
                Fault::TypedAgain,
                Input::TerminalFailed {
                    by: by @ KeyboardUser::Turn,
                    why,
                },
            ) => match &self.typing {
                Some(typing) if !is_raw(typing) => {
                    self.added.push_back((true, typing.clone()));
                    None
                }
                _ => Some((Input::TerminalFailed { by, why }, None)),
            },
            (Fault::IdleFirstInOrder, Input::MailRead(mut view)) => {
                let is_idle_first = |state: &MessageState| {
                    promotion::priority(&state.message, now.wall) == Priority::IdleFirst
                };
                let mut groups = view
                    .pending
                    .chunk_by_mut(|a, b| is_idle_first(a) == is_idle_first(b));
                if let Some(group) = groups.find(|group| is_idle_first(&group[0])) {
                    group.reverse();
                }
                Some((Input::MailRead(view), None))
            }
            (Fault::TypedWhileStarting, Input::MailRead(view)) => {
                let is_starting = self.delivery().activity().activity == Activity::Starting;
                if is_starting && !view.pending.is_empty() {
                    let lease = Action::LeaseKeyboard(KeyboardUser::Turn);
                    self.added.push_back((true, lease));
                }
                Some((Input::MailRead(view), None))
            }
            (Fault::AcceptedElsewhere | Fault::AcceptedWhenQueued, input) => {
                Some(self.change_report(fault, input))
            }
            (_, Input::ScreenChanged(seen)) => {
                let changed = self.change_look(fault, false, seen.clone());
                let truth = Input::ScreenChanged(seen);
                Some((Input::ScreenChanged(changed), Some(truth)))
            }
            (
                _,
                Input::Looked {
                    by: by @ KeyboardUser::Turn,
                    sighting: seen,
                },
            ) => {
                let sighting = self.change_look(fault, true, seen.clone());
                let changed = Input::Looked { by, sighting };
                let sighting = seen;
                Some((changed, Some(Input::Looked { by, sighting })))
            }
            (Fault::NudgedLate, Input::NudgeRequested(request)) => {
                let request = NudgeRequest {
                    expires_at: None,
                    ..request
                };
                Some((Input::NudgeRequested(request), None))
            }
            (
                Fault::NudgedUnrecognised,
                Input::Looked {
                    by: by @ KeyboardUser::Nudge,
                    sighting: seen,
                },
            ) if seen.input_box != BoxState::Undescribed => {
                let input_box = match self.line.clone() {
                    Some(text) => BoxState::Holds(Held {
                        text,
                        is_scrolled: false,
                    }),
                    None => BoxState::Empty,
                };
                let sighting = Sighting {
                    input_box,
                    claims: Vec::new(),
                    output: self.last_look.output,
                    ..seen.clone()
                };
                let changed = Input::Looked { by, sighting };
                let sighting = seen;
                Some((changed, Some(Input::Looked { by, sighting })))
            }
            (_, Input::Typed(text)) => {
                self.text.clone_from(&text);
                Some((Input::Typed(text), None))
            }
            (_, input) => Some((input, None)),
        }
    }

    fn change_report(&mut self, fault: Fault, mut input: Input) -> (Input, Option<Input>) {
        let truth = input.clone();
        let Input::HookCalled { report, .. } = &mut input else {
            return (input, None);
        };
        let Report {
            session,
            turn,
            prompt,
            given,
            ..
        } = &mut **report;
        if fault == Fault::AcceptedWhenQueued {
            *given = given.take().or_else(|| prompt.clone());
            return (input, Some(truth));
        }
        if let Some(session) = session {
            // The first hook call with a session id comes from the program itself.
            let own = self.session.get_or_insert_with(|| session.clone());
            if session != own {
                session.clone_from(own);
                // The fault changes the proof, not the reported activity.
                *turn = None;
            }
        }
        (input, Some(truth))
    }

    fn change_look(&mut self, fault: Fault, is_asked_for: bool, seen: Sighting) -> Sighting {
        let mut changed = seen;
        let is_described = changed.input_box != BoxState::Undescribed;
        match (fault, self.stage) {
            (Fault::WrittenUnrecognised, Stage::Recorded) if is_asked_for && is_described => {
                changed = Sighting {
                    input_box: BoxState::Empty,
                    claims: Vec::new(),
                    output: self.last_look.output,
                    ..changed
                };
            }
            (Fault::EnterUnrecognised, Stage::Typed) if is_asked_for && is_described => {
                let text = self.text.clone();
                let held = Held {
                    text,
                    is_scrolled: false,
                };
                changed.input_box = BoxState::Holds(held);
                changed.claims.clear();
            }
            (_, _) => {}
        }
        self.last_look = changed.clone();
        changed
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

    /// Queue the actions that replace an action.
    fn change_action(
        &mut self,
        fault: Fault,
        now: Moment,
        mut action: Action,
        observer: &mut impl Observer,
    ) {
        let stage = self.stage;
        self.note_action(&action);
        let mut is_told = false;
        match (fault, &mut action) {
            (Fault::WrittenFirst, Action::Commit { commit, operation }) => {
                if let JournalOperation::RecordStep {
                    ids,
                    report: OfferReport::Offering { .. },
                } = operation
                {
                    let (commit, ids) = (*commit, std::mem::take(ids));
                    let input = Input::Committed {
                        commit,
                        ids,
                        head: 0,
                        has_more: false,
                    };
                    return self.driver.handle(now, input, observer);
                }
            }
            (
                Fault::ResumedUnread,
                Action::Commit {
                    operation: JournalOperation::SettleEarlierOffers(resumed),
                    ..
                },
            ) => resumed.transcript = None,
            (_, Action::Commit { operation, .. }) => change_receipt(fault, operation),
            (Fault::MessageLeftOut, Action::Type { turn, .. }) => {
                if let TurnContent::Messages(messages) = turn {
                    messages.pop();
                }
            }
            (Fault::RepeatUnmarked, Action::Type { turn, .. }) => {
                if let TurnContent::Messages(messages) = turn {
                    messages
                        .iter_mut()
                        .for_each(|message| unmark(&mut message.state));
                }
            }
            (Fault::RepeatUnmarked, Action::AnswerHook { mail, .. }) => {
                let messages = mail.iter_mut().flat_map(|mail| &mut mail.messages);
                messages.for_each(|message| unmark(&mut message.state));
            }
            (Fault::OfferedTooEarly, Action::Type { .. })
            | (Fault::HandedTooEarly, Action::AnswerHook { mail: Some(_), .. }) => {
                self.offer_early(ids(&action));
            }
            (Fault::EnterIntoQuestion, Action::ReleaseKeyboard(KeyboardUser::Turn))
                if stage == Stage::Typed && self.asks_beside_a_message() =>
            {
                (is_told, action) = (true, press_enter());
            }
            (Fault::NudgedTooEarly, Action::EndNudge { outcome, .. }) if self.line.is_some() => {
                *outcome = NudgeOutcome::Typed;
            }
            (Fault::EnterUnlooked, Action::Look(KeyboardUser::Turn)) if stage == Stage::Typed => {
                (is_told, action) = (true, press_enter());
            }
            (
                Fault::RetypedOnRetry,
                Action::PressEnter {
                    by: KeyboardUser::Turn,
                    ..
                },
            ) if stage == Stage::Entered => {
                if let Some(typing) = self.typing.clone().filter(|typing| !is_raw(typing)) {
                    (is_told, action) = (true, typing);
                }
            }
            (_, _) => {}
        }
        self.added.push_back((is_told, action));
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
            Action::TypeLine(line) => self.line = Some(line.clone()),
            Action::ReleaseKeyboard(KeyboardUser::Nudge) => self.line = None,
            _ => {}
        }
    }

    fn asks_beside_a_message(&self) -> bool {
        let is_message = self.typing.as_ref().is_some_and(|typing| !is_raw(typing));
        is_message && self.delivery().open_question().is_some()
    }

    /// Record these messages as offered too early. The driver no longer knows the commit's number,
    /// and ignores the result.
    fn offer_early(&mut self, ids: Vec<MessageId>) {
        let Some(commit) = self.offer else {
            return;
        };
        let report = OfferReport::Offered {
            route: Route::Terminal.as_str().to_owned(),
            evidence: "sent".to_owned(),
            proof_awaited: false,
        };
        let operation = JournalOperation::RecordStep { ids, report };
        self.added
            .push_back((true, Action::Commit { commit, operation }));
    }
}

fn change_receipt(fault: Fault, operation: &mut JournalOperation) {
    let JournalOperation::RecordStep { report, .. } = operation else {
        return;
    };
    let OfferReport::Offered {
        route,
        evidence,
        proof_awaited,
    } = report
    else {
        return;
    };
    match fault {
        Fault::ProofNotAwaited => *proof_awaited = false,
        Fault::AcceptedByEnter => {
            *report = OfferReport::Accepted {
                route: route.clone(),
                evidence: evidence.clone(),
            };
        }
        _ => {}
    }
}

fn press_enter() -> Action {
    let (by, keys) = (KeyboardUser::Turn, vec![b'\r']);
    Action::PressEnter { by, keys }
}

/// Make a repeat look like a message that was never offered.
fn unmark(state: &mut MessageState) {
    if state.status.proven == Proven::Uncertain {
        state.status.proven = Proven::Stored;
    }
}

fn messages(action: &Action) -> Vec<MessageState> {
    match action {
        Action::Type {
            turn: turn @ TurnContent::Messages(_),
            ..
        } => turn.messages(),
        Action::AnswerHook {
            mail: Some(mail), ..
        } => TurnContent::Messages(mail.messages.clone()).messages(),
        _ => Vec::new(),
    }
}

fn ids(action: &Action) -> Vec<MessageId> {
    let messages = messages(action);
    messages.iter().map(|state| state.message.id).collect()
}

/// Whether only answers are typed. A reminder counts as an answer, because it has no receipts.
fn is_raw(action: &Action) -> bool {
    messages(action)
        .iter()
        .all(|state| state.message.envelope.raw)
}

/// Report an input to the observer and not to delivery.
fn tell_alone(observer: &mut impl Observer, now: Moment, input: &Input) {
    observer.on_input(now, input);
    observer.after_input();
}

/// Reports to the observer the input that delivery should have received.
struct Truthful<'a, O> {
    observer: &'a mut O,
    truth: Option<Input>,
    /// Messages of an answer that delivery ends without Enter. The fault presses Enter first.
    answer: Vec<MessageId>,
}

impl<O: Observer> Observer for Truthful<'_, O> {
    fn on_input(&mut self, now: Moment, input: &Input) {
        let is_same =
            |truth: &Input| std::mem::discriminant(truth) == std::mem::discriminant(input);
        let truth = self.truth.take_if(|truth| is_same(truth));
        self.observer.on_input(now, truth.as_ref().unwrap_or(input));
    }

    fn after_input(&mut self) {
        self.observer.after_input();
    }

    fn on_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
        chosen: &Decision,
    ) {
        self.observer.on_decision(now, delivery, pending, chosen);
    }

    fn on_action(&mut self, now: Moment, delivery: &Delivery, action: &Action) {
        if let Action::Commit {
            operation:
                JournalOperation::RecordStep {
                    ids,
                    report: OfferReport::Offered { .. },
                },
            ..
        } = action
            && *ids == self.answer
        {
            self.observer.on_action(now, delivery, &press_enter());
        }
        self.observer.on_action(now, delivery, action);
    }

    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str) {
        self.observer.on_commit_retry(operation, why);
    }

    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str) {
        self.observer.on_commit_lost(operation, why);
    }
}
