//! The work that is due at a time: reads of the journal, expiry, turns and reminders.

use super::{Action, JournalOperation, Observer, SessionDriver};
use crate::delivery::Decision;
use crate::mail::MessageState;
use crate::moment::Moment;

impl SessionDriver {
    /// Begin everything that is due at `now`.
    pub(super) fn look_for_work(&mut self, now: Moment, observer: &mut impl Observer) {
        self.retry_commits(now);
        self.tick(now, observer);
        self.check_answers(now, observer);
        self.continue_end(now);
        if !self.phase.is_running() {
            return;
        }
        self.update_asks(now);
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

    /// Let delivery do what is due.
    fn tick(&mut self, now: Moment, observer: &mut impl Observer) {
        if self.delivery.next_wakeup().is_some_and(|at| at <= now.mono) {
            let actions = self.delivery.tick(now);
            self.request(now, actions, observer);
            self.reach_checkpoint(now, observer);
        }
    }

    /// Begin what is due, if the mail is recent enough.
    fn begin_due(&mut self, now: Moment, observer: &mut impl Observer) {
        if !self.freshness.is_fresh() {
            return self.freshness.end_wait();
        }
        // Do not record a failure again while its commit is open.
        let is_open = |mail: &&MessageState| !self.commits.has(mail.message.id);
        let mail = self.mail.pending.iter().filter(is_open);
        let failed = self.delivery.fail_lapsed(now, mail);
        self.request(now, failed, observer);
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
            let actions = self.delivery.act(now, &self.mail.pending);
            self.request(now, actions, observer);
        } else if self.freshness.is_current() {
            let actions = match self.delivery.continue_by_api() {
                Some(continues) => vec![continues],
                None => self.delivery.remind(now, &self.mail.pending_replies),
            };
            self.request(now, actions, observer);
        }
    }
}
