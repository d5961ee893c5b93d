//! Events that delivery is told of, and the effects that it requests, as actions and commits.

use super::terminal::Purpose;
use super::{Action, KeyboardUser, Observer, Operation, SessionDriver, ToldLetter, Turn};
use crate::delivery::{Effect, Event};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::Letter;
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
                let letters = pick(&self.mail.pending, &ids);
                self.take_keyboard_for(Purpose::Offer { ids }, letters);
            }
            Effect::Remind { ids } => {
                let letters = pick(&self.mail.owed, &ids);
                self.take_keyboard_for(Purpose::Remind { ids }, letters);
            }
            Effect::Resume => self.retake_keyboard(),
            Effect::Write { ids } => {
                let letters = self.keyboard.letters(&ids);
                let told = letters.map(|letters| Turn::Messages(self.told(letters)));
                self.type_turn(now, told, observer);
            }
            Effect::WriteReminder { ids } => {
                let turn = self.keyboard.letters(&ids).map(Turn::Reminder);
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

    pub(super) fn told(&self, letters: Vec<Letter>) -> Vec<ToldLetter> {
        let told = letters.into_iter().map(|letter| {
            let telling = self.delivery.telling(&letter);
            (letter, telling)
        });
        told.collect()
    }

    /// Return the operation that records an offer of these letters by a route.
    pub(super) fn offering(route: Route, ids: Vec<MessageId>, letters: &[Letter]) -> Operation {
        let said = Said::Offering {
            route: route.as_str().to_owned(),
            repeats: Letter::repeats(letters),
        };
        Operation::Say { ids, said }
    }
}

/// Return the letters with these ids, in the order of the ids.
pub(super) fn pick(letters: &[Letter], ids: &[MessageId]) -> Vec<Letter> {
    ids.iter()
        .filter_map(|id| letters.iter().find(|letter| letter.message.id == *id))
        .cloned()
        .collect()
}
