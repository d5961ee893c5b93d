//! Checks of the route through the program's API.

use crate::activity::Activity;
use crate::delivery::Delivery;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::sim::oracle::Oracle;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::typing::MAX_INTERRUPT_KEYS;

impl Oracle {
    /// Whether mail goes through the API now. Answers never do.
    pub(super) fn goes_by_api(&self, now: Moment, delivery: &Delivery) -> bool {
        let is_steady = match delivery.activity().activity {
            Activity::Idle | Activity::Working => true,
            Activity::Starting | Activity::Blocked(_) | Activity::Exited => false,
        };
        is_steady && self.record.api.is_usable(now)
    }

    /// Check that an offer of a message through the API may begin now. Neither a draft nor unread
    /// input holds it.
    pub(super) fn check_may_go_by_api(
        &self,
        delivery: &Delivery,
        id: MessageId,
        priority: Priority,
    ) -> Checked {
        let record = &self.record;
        let activity = delivery.activity().activity;
        let waits_for_idle = match priority {
            Priority::IdleFirst | Priority::Idle => true,
            Priority::Interrupt | Priority::Normal => false,
        };
        let is_too_early = waits_for_idle && activity == Activity::Working;
        let is_right_moment = !record.is_paused_for(priority == Priority::Interrupt)
            && !record.is_waiting_for_enter
            && !is_too_early;
        Law::TheRightMoment.holds(is_right_moment, || {
            format!(
                "{} ({priority}) goes through the API while {activity}, {} pauses, waiting for \
                 Enter: {}",
                id.id8(),
                record.pauses.len(),
                record.is_waiting_for_enter
            )
        })
    }

    /// Check that the messages that were chosen last may be offered to the API.
    pub(super) fn check_api_offer(&self, now: Moment, delivery: &Delivery) -> Checked {
        let ids = &self.record.api.chosen;
        let is_raw = ids.iter().any(|id| self.is_raw(*id));
        Law::CannotAct.holds(!is_raw, || "an API is given an answer")?;
        self.check_api_is_usable(now, delivery)?;
        Law::TheRightMoment.holds(
            !self.record.api.is_calling(),
            || "two calls of the API are under way",
        )?;
        Law::TheRightMoment.holds(
            !self.record.api.continues(now),
            || "the agent is told to continue, although the next message has it continue",
        )?;
        self.check_may_write(delivery, false, self.is_urgent(ids))
    }

    fn check_api_is_usable(&self, now: Moment, delivery: &Delivery) -> Checked {
        Law::OnlyRecognised.holds(
            self.goes_by_api(now, delivery),
            || "an API is called that does not exist, has failed or is not known to be the agent's",
        )
    }

    /// Check an interrupt through the API.
    pub(super) fn check_api_interrupt(&mut self, now: Moment, delivery: &Delivery) -> Checked {
        self.record.interrupt_keys += 1;
        self.check_api_is_usable(now, delivery)?;
        let is_free = !self.record.is_paused_for(true);
        Law::CannotAct.holds(is_free, || "the agent is interrupted while a person types")?;
        Law::TheRightMoment.holds(
            self.record.interrupt_keys <= MAX_INTERRUPT_KEYS,
            || "a fourth interrupt",
        )
    }

    /// Check that the agent may be told to continue: an idle agent, once for each turn in whose
    /// middle its API has taken mail.
    pub(super) fn check_continue(&self, now: Moment, delivery: &Delivery) -> Checked {
        self.check_api_is_usable(now, delivery)?;
        let is_idle = delivery.activity().activity == Activity::Idle;
        let is_alone = !self.record.api.is_calling();
        Law::TheRightMoment.holds(
            is_idle && is_alone && self.record.api.needs_continue,
            || "the agent is told to continue without a reason",
        )?;
        let is_paused = self.record.is_checkpoint_wanted || self.record.is_paused_for(false);
        Law::TheRightMoment.holds(!is_paused, || "the agent is told to continue in a pause")
    }

    /// Check the text of a request. `messages` are the messages in it.
    pub(crate) fn check_put(
        &mut self,
        offer: u64,
        messages: &[MessageState],
        text: &str,
    ) -> Checked {
        let ids: Vec<_> = messages.iter().map(|state| state.message.id).collect();
        let is_whole = self.record.api.sent_messages(offer) == Some(&ids);
        Law::NothingLost.holds(is_whole, || "a request lacks a message of its offer")?;
        for id in ids {
            self.check_shown(id, text)?;
        }
        let is_quiet = |c: char| !c.is_control() || c == '\n' || c == '\t';
        Law::CannotAct.holds(text.chars().all(is_quiet), || {
            format!("a request has a control character: {text:?}")
        })
    }
}
