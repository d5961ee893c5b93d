//! Events that delivery is told of, and the effects that it requests, as actions and commits.

use super::terminal::Purpose;
use super::{Action, KeyboardUser, Observer, Operation, SessionDriver, Turn, TurnMessage};
use crate::delivery::{Effect, Event};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::Said;

impl SessionDriver {
    /// Tell delivery of an event, and carry out the effects.
    pub(super) fn tell(&mut self, now: Moment, event: Event, observer: &mut impl Observer) {
        observer.hears(now, &event);
        let effects = self.delivery.on(now, event);
        self.perform(now, effects, observer);
        observer.has_heard();
        // A turn that has to wait releases the keyboard too, because the answer to a dialog needs it.
        if !self.delivery.is_writing() && self.keyboard.release() {
            self.actions
                .push(Action::ReleaseKeyboard(KeyboardUser::Turn));
            observer.releases_keyboard();
        }
    }

    pub(super) fn perform(
        &mut self,
        now: Moment,
        effects: Vec<Effect>,
        observer: &mut impl Observer,
    ) {
        for effect in effects {
            observer.wants(now, &self.delivery, &effect);
            self.carry_out(now, effect, observer);
        }
    }

    fn carry_out(&mut self, now: Moment, effect: Effect, observer: &mut impl Observer) {
        match effect {
            Effect::Key(keys) => self.actions.push(Action::PressKeys(keys)),
            Effect::Offer { ids } => {
                self.skip_transcripts();
                let messages = pick(&self.mail.pending, &ids);
                self.take_keyboard_for(Purpose::Offer { ids }, messages);
            }
            Effect::Remind { ids } => {
                let messages = pick(&self.mail.owed, &ids);
                self.take_keyboard_for(Purpose::Remind { ids }, messages);
            }
            Effect::Resume => self.retake_keyboard(),
            Effect::Write { ids } => {
                let messages = self.keyboard.messages(&ids);
                let told = messages.map(|messages| Turn::Messages(self.told(messages)));
                self.type_turn(now, told, observer);
            }
            Effect::WriteReminder { ids } => {
                let turn = self.keyboard.messages(&ids).map(Turn::Reminder);
                self.type_turn(now, turn, observer);
            }
            Effect::Enter => {
                self.keyboard.begin_typing();
                let (by, keys) = (KeyboardUser::Turn, self.delivery.enter_key().to_vec());
                self.actions.ask(Action::PressEnter { by, keys });
            }
            Effect::Look => self.actions.ask(Action::Look(KeyboardUser::Turn)),
            Effect::Give { number, ids } => self.give(number, &ids),
            Effect::Call { number, ids } => self.call_api(number, &ids),
            Effect::Abort => {
                let conversation = self.api_conversation();
                self.actions.ask(Action::ApiInterrupt { conversation });
            }
            Effect::GoOn => {
                let conversation = self.api_conversation();
                self.actions.ask(Action::ApiContinue { conversation });
            }
            Effect::Offered {
                ids,
                evidence,
                route,
                proof_awaited,
            } => {
                self.transcripts.read_soon(now.mono);
                let said = Said::Offered {
                    route: route.as_str().to_owned(),
                    evidence,
                    proof_awaited,
                };
                self.record(now, ids, said);
            }
            Effect::Accepted {
                ids,
                evidence,
                route,
            } => {
                let route = route.as_str().to_owned();
                self.record(now, ids, Said::Accepted { route, evidence });
            }
            Effect::Withdraw { ids, reason } => self.record(now, ids, Said::Withdrawn { reason }),
            Effect::Uncertain { ids, reason } => self.record(now, ids, Said::Uncertain { reason }),
            Effect::Fail { ids, reason } => {
                self.record(now, ids, Said::Failed { reason });
            }
        }
    }

    fn record(&mut self, now: Moment, ids: Vec<MessageId>, said: Said) {
        self.commit_receipt(now, Operation::Say { ids, said });
    }

    pub(super) fn told(&self, messages: Vec<MessageState>) -> Vec<TurnMessage> {
        let told = messages.into_iter().map(|state| {
            let telling = self.delivery.telling(&state);
            (state, telling)
        });
        told.collect()
    }

    /// Return the operation that records an offer of these messages by a route.
    pub(super) fn offering(
        route: Route,
        ids: Vec<MessageId>,
        messages: &[MessageState],
    ) -> Operation {
        let said = Said::Offering {
            route: route.as_str().to_owned(),
            repeats: MessageState::repeats(messages),
        };
        Operation::Say { ids, said }
    }
}

/// Return the messages with these ids, in the order of the ids.
pub(super) fn pick(messages: &[MessageState], ids: &[MessageId]) -> Vec<MessageState> {
    ids.iter()
        .filter_map(|id| messages.iter().find(|state| state.message.id == *id))
        .cloned()
        .collect()
}
