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
        self.update_asks(now);
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

    /// Begin what is due. If mail may have come since the last read, read the journal once more
    /// first, because new mail may go before what is due. After that read, begin even if more mail
    /// has come meanwhile.
    fn begin_due(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_rechecked = self.freshness.take_rechecked();
        if self.freshness.is_fresh() {
            let mut lapsed = self.delivery.lapsed(now, &self.mail.pending);
            // Do not record a failure again while its commit is open.
            lapsed.retain(|effect| !self.is_being_recorded(effect));
            self.perform(now, lapsed, observer);
        }
        let is_fresh = self.freshness.is_fresh();
        let chosen = is_fresh.then(|| self.delivery.next(now, &self.mail.pending));
        let is_due = matches!(chosen, Some(Decision::Offer { .. }));
        let is_current = self.freshness.is_current();
        if is_due && !is_current && !is_rechecked {
            if self.freshness.recheck(now.mono) {
                self.actions.push_back(Action::ReadMail);
            }
            return;
        }
        self.freshness.needs_no_recheck();
        if let Some(chosen) = chosen.filter(|_| is_due) {
            observer.on_decision(now, &self.delivery, &self.mail.pending, &chosen);
            let effects = self.delivery.act(now, &self.mail.pending);
            self.perform(now, effects, observer);
        } else if is_fresh && is_current {
            let continues = self.delivery.continue_by_api();
            let effects = match continues {
                Some(continues) => vec![continues],
                None => self.delivery.remind(now, &self.mail.pending_replies),
            };
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
