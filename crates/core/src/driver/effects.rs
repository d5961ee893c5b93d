//! Passes events to delivery, and turns its effects into actions and commits.

use super::terminal::keyboard::KeyboardPurpose;
use super::{
    Action, JournalOperation, KeyboardUser, Observer, SessionDriver, TurnContent, TurnMessage,
};
use crate::delivery::{DeliveryEvent, Effect};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;

impl SessionDriver {
    /// Pass an event to delivery, and carry out the effects.
    pub(super) fn notify_delivery(
        &mut self,
        now: Moment,
        event: DeliveryEvent,
        observer: &mut impl Observer,
    ) {
        observer.on_event(now, &event);
        let effects = self.delivery.on(now, event);
        self.perform(now, effects, observer);
        observer.after_event();
        // Before anything is offered to the agent that has become idle.
        self.reach_checkpoint(now, observer);
        // A turn that has to wait releases the keyboard too, because the answer to a dialog needs it.
        if !self.delivery.is_writing() && self.keyboard.release() {
            self.actions
                .push_back(Action::ReleaseKeyboard(KeyboardUser::Turn));
            observer.on_keyboard_released();
        }
    }

    pub(super) fn perform(
        &mut self,
        now: Moment,
        effects: Vec<Effect>,
        observer: &mut impl Observer,
    ) {
        for effect in effects {
            observer.on_effect(now, &self.delivery, &effect);
            self.carry_out(now, effect, observer);
        }
    }

    fn carry_out(&mut self, now: Moment, effect: Effect, observer: &mut impl Observer) {
        match effect {
            Effect::Key(keys) => self.actions.push_back(Action::PressKeys(keys)),
            Effect::Clear(keys) => self.actions.push_back(Action::ClearBox(keys)),
            Effect::Offer { ids } => {
                self.skip_transcripts();
                let messages = pick(&self.mail.pending, &ids);
                self.take_keyboard_for(KeyboardPurpose::Offer { ids }, messages);
            }
            Effect::Remind { ids } => {
                let messages = pick(&self.mail.pending_replies, &ids);
                self.take_keyboard_for(KeyboardPurpose::Remind { ids }, messages);
            }
            Effect::Resume => self.retake_keyboard(),
            Effect::Write { ids } => {
                let messages = self.keyboard.messages(&ids);
                let turn = messages.map(|m| TurnContent::Messages(self.turn_messages(m)));
                self.type_turn(now, turn, observer);
            }
            Effect::WriteReminder { ids } => {
                let turn = self.keyboard.messages(&ids).map(TurnContent::Reminder);
                self.type_turn(now, turn, observer);
            }
            Effect::Enter => {
                self.keyboard.begin_typing();
                let (by, keys) = (KeyboardUser::Turn, self.delivery.enter_key().to_vec());
                self.actions.push_back(Action::PressEnter { by, keys });
            }
            Effect::Look => self.actions.push_back(Action::Look(KeyboardUser::Turn)),
            Effect::SendDirect { number, ids } => self.send_direct(number, &ids),
            Effect::OfferByApi { number, ids } => self.call_api(number, &ids),
            Effect::Abort => {
                let conversation = self.api_conversation();
                self.actions
                    .push_back(Action::ApiInterrupt { conversation });
            }
            Effect::Continue => {
                let conversation = self.api_conversation();
                self.actions.push_back(Action::ApiContinue { conversation });
            }
            Effect::Offered {
                ids,
                evidence,
                route,
                proof_awaited,
            } => {
                self.transcripts.read_soon(now.mono);
                self.note_offered();
                let report = OfferReport::Offered {
                    route: route.as_str().to_owned(),
                    evidence,
                    proof_awaited,
                };
                self.record_step(now, ids, report);
            }
            Effect::Accepted {
                ids,
                evidence,
                route,
            } => {
                let route = route.as_str().to_owned();
                self.record_step(now, ids, OfferReport::Accepted { route, evidence });
            }
            Effect::Withdraw { ids, reason } => {
                self.record_step(now, ids, OfferReport::Withdrawn { reason });
            }
            Effect::Uncertain { ids, reason } => {
                self.record_step(now, ids, OfferReport::Uncertain { reason });
            }
            Effect::Fail { ids, reason } => {
                self.record_step(now, ids, OfferReport::Failed { reason });
            }
        }
    }

    fn record_step(&mut self, now: Moment, ids: Vec<MessageId>, report: OfferReport) {
        self.record(now, JournalOperation::RecordStep { ids, report });
    }

    pub(super) fn turn_messages(&self, messages: Vec<MessageState>) -> Vec<TurnMessage> {
        let messages = messages.into_iter().map(|state| TurnMessage {
            placement: self.delivery.placement(&state),
            state,
        });
        messages.collect()
    }

    /// Return the operation that records an offer of these messages by a route.
    pub(super) fn offering(
        route: Route,
        ids: Vec<MessageId>,
        messages: &[MessageState],
    ) -> JournalOperation {
        let report = OfferReport::Offering {
            route: route.as_str().to_owned(),
            repeats: MessageState::repeats(messages),
        };
        JournalOperation::RecordStep { ids, report }
    }
}

/// Return the messages with these ids, in the order of the ids.
pub(super) fn pick(messages: &[MessageState], ids: &[MessageId]) -> Vec<MessageState> {
    ids.iter()
        .filter_map(|id| messages.iter().find(|mail| mail.message.id == *id))
        .cloned()
        .collect()
}
