//! Faults that change an action, or add one.

use super::{Fault, FaultyDriver, Stage};
use crate::driver::{
    Action, HookMail, Input, JournalOperation, KeyboardUser, NudgeOutcome, Observer, TurnContent,
};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::receipt::Proven;

impl FaultyDriver {
    /// Queue the actions that replace an action.
    pub(super) fn change_action(
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
            (Fault::MessageLeftOut, Action::PutMail { messages, .. }) => {
                messages.pop();
            }
            (Fault::RepeatUnmarked, Action::PutMail { messages, .. }) => {
                messages
                    .iter_mut()
                    .for_each(|message| unmark(&mut message.state));
            }
            (Fault::ApiMailDoubled, Action::PutMail { .. }) => {
                self.added.push_back((false, action.clone()));
            }
            (Fault::NotContinued, Action::ApiContinue { .. }) => return,
            (Fault::ContinuedTwice, Action::ApiContinue { .. }) => {
                self.added.push_back((false, action.clone()));
                is_told = true;
            }
            (Fault::OfferedTooEarly, Action::Type { .. })
            | (Fault::ApiOfferedTooEarly, Action::PutMail { .. })
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

    pub(super) fn asks_beside_a_message(&self) -> bool {
        let is_message = self.typing.as_ref().is_some_and(|typing| !is_raw(typing));
        is_message && self.delivery().open_question().is_some()
    }

    /// Record these messages as offered too early. The driver no longer knows the commit's number,
    /// and ignores the result.
    pub(super) fn offer_early(&mut self, ids: Vec<MessageId>) {
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

pub(super) fn press_enter() -> Action {
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
            mail: Some(HookMail { messages, .. }),
            ..
        }
        | Action::PutMail { messages, .. } => TurnContent::Messages(messages.clone()).messages(),
        _ => Vec::new(),
    }
}

pub(super) fn ids(action: &Action) -> Vec<MessageId> {
    let messages = messages(action);
    messages.iter().map(|state| state.message.id).collect()
}

/// Whether only answers are typed. A reminder counts as an answer, because it has no receipts.
pub(super) fn is_raw(action: &Action) -> bool {
    messages(action)
        .iter()
        .all(|state| state.message.envelope.raw)
}
