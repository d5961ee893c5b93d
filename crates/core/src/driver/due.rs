//! The work that is due at a time: reads of the journal, expiry, turns and reminders.

use super::{Action, JournalOperation, Observer, SessionDriver};
use crate::delivery::{Decision, DeliveryEvent, Effect};
use crate::moment::Moment;

impl SessionDriver {
    /// Begin everything that is due at `now`.
    pub(super) fn look_for_work(&mut self, now: Moment, observer: &mut impl Observer) {
        self.retry_commits(now);
        self.answer_late_hooks(now);
        self.check_answers(now, observer);
        self.continue_end(now);
        if !self.phase.is_running() {
            return;
        }
        self.tick(now, observer);
        self.tick_nudges(now, observer);
        if self.mail.next_change.is_some_and(|at| at <= now.wall) {
            self.mail.next_change = None;
            self.freshness.set_read_due();
            self.record(now, JournalOperation::Expire);
        }
        if self.freshness.begin_due_read(now.mono) {
            self.actions.push_back(Action::ReadMail);
        }
        self.settle_earlier_offers(now);
        self.read_transcripts(now);
        if !self.check_input(now, observer) {
            // The result of the check brings the driver back here.
            return;
        }
        self.begin_due(now, observer);
    }

    /// Send delivery a tick if one is due.
    pub(super) fn tick(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_due = self.delivery.next_wakeup().is_some_and(|at| at <= now.mono);
        if is_due && self.phase.is_running() {
            self.notify_delivery(now, DeliveryEvent::Tick, observer);
        }
    }

    /// Begin what is due, if the mail is recent enough.
    fn begin_due(&mut self, now: Moment, observer: &mut impl Observer) {
        if !self.freshness.is_fresh() {
            return self.freshness.end_wait();
        }
        let mut lapsed = self.delivery.lapsed(now, &self.mail.pending);
        // Do not record a failure again while its commit is open.
        lapsed.retain(|effect| !self.is_being_recorded(effect));
        self.perform(now, lapsed, observer);
        let chosen = self.delivery.next(now, &self.mail.pending);
        let is_due = matches!(chosen, Decision::Offer { .. });
        if is_due && !self.freshness.may_begin_turn() {
            if self.freshness.begin_read(now.mono) {
                self.actions.push_back(Action::ReadMail);
            }
            return;
        }
        self.freshness.end_wait();
        if is_due {
            observer.on_decision(now, &self.delivery, &self.mail.pending, &chosen);
            let effects = self.delivery.act(now, &self.mail.pending);
            self.perform(now, effects, observer);
        } else if self.freshness.is_current() {
            let effects = self.delivery.remind(now, &self.mail.pending_replies);
            self.perform(now, effects, observer);
        }
    }

    fn is_being_recorded(&self, effect: &Effect) -> bool {
        let Effect::Fail { ids, .. } = effect else {
            return false;
        };
        ids.iter().any(|id| self.commits.has(*id))
    }
}
