//! Checks of the choice of the next turn from the pending mail.

use crate::activity::Activity;
use crate::delivery::{Decision, Delivery};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::known_message::KnownMessage;
use crate::sim::oracle::{MESSAGE_PATH, Oracle};
use crate::turn::{self, InputMode};

impl Oracle {
    /// Check that an offer of a message may begin now. An interrupt may try its key on an open
    /// question.
    pub(super) fn check_may_go(&self, now: Moment, delivery: &Delivery, id: MessageId) -> Checked {
        let Some(known) = self.ledger.get(id) else {
            return Law::TheRightMoment.violated("a message that is not stored is offered");
        };
        let priority = known.priority(now.wall);
        if !known.raw && self.goes_by_api(now, delivery) {
            return self.check_may_go_by_api(delivery, id, priority);
        }
        self.check_no_draft(known.raw, "it would be typed")?;
        if known.raw {
            self.check_answer(now, known)?;
        }
        let activity = delivery.activity().activity;
        let is_right_moment = match (&activity, priority) {
            _ if self
                .record
                .is_paused_for(known.raw || priority == Priority::Interrupt) =>
            {
                false
            }
            (Activity::Starting | Activity::Exited, _) => false,
            // Only a message that may close the question goes before the message that it blocks.
            (Activity::Blocked(_), Priority::Interrupt) => true,
            (_, _) if self.record.is_waiting_for_enter && !known.raw => false,
            (Activity::Blocked(_), _) if known.raw => true,
            (Activity::Blocked(_), priority) => priority == Priority::Interrupt,
            (Activity::Working, Priority::IdleFirst | Priority::Idle) => known.raw,
            (Activity::Working, Priority::Normal) => known.raw || !self.record.holds_during_work(),
            (Activity::Working, Priority::Interrupt) => true,
            (Activity::Idle, _) => true,
        };
        let is_read =
            priority == Priority::Interrupt && !known.raw || self.record.unread_since.is_none();
        let pauses = self.record.pauses.len();
        Law::TheRightMoment.holds(is_right_moment && is_read, || {
            format!(
                "{} ({priority}) goes while {activity}, {pauses} pauses, read: {}, \
                 waiting for Enter: {}",
                id.id8(),
                self.record.unread_since.is_none(),
                self.record.is_waiting_for_enter
            )
        })
    }

    /// Check that no draft is in the way. A prompt that the program restored after an interrupt is
    /// not a draft.
    pub(super) fn check_no_draft(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_ours = record.is_waiting_for_enter || is_raw;
        let has_draft = record.typed_draft_since.is_some() || (record.box_holds_text() && !is_ours);
        let is_clear = !has_draft || (!is_raw && record.may_be_restored_input());
        Law::CannotAct.holds(is_clear, || format!("{what} into a draft"))
    }

    /// Check that an answer belongs to the open question: sent in this session while the question
    /// was open, and given once.
    pub(super) fn check_answer(&self, now: Moment, known: &KnownMessage) -> Checked {
        let record = &self.record;
        let is_ours = record
            .started_at
            .is_none_or(|begun| begun.wall <= known.sent);
        let is_older = |(_, since): &(String, Moment)| since.wall <= known.sent;
        let was_open = record
            .question
            .as_ref()
            .map_or(!record.shows_questions(), is_older);
        // If the clock was set back since, the question of the answer is unknown.
        let is_past = known.sent <= now.wall;
        Law::CannotAct.holds(
            is_ours && was_open && is_past && !known.was_uncertain,
            || format!("an answer goes into another question: {known:?}"),
        )
    }

    /// Check delivery's choice of the next turn from the pending mail.
    pub(crate) fn check_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        view: &[MessageState],
        chosen: &Decision,
    ) -> Checked {
        let Decision::Offer { ids, interrupt } = chosen else {
            return Ok(());
        };
        self.record.interrupt_keys = 0;
        self.record.api.chosen.clone_from(ids);
        let is_idle = delivery.activity().activity == Activity::Idle;
        let is_paused = self.record.is_checkpoint_wanted && is_idle;
        Law::TheRightMoment.holds(
            !is_paused || self.is_urgent(ids),
            || "a turn begins at a checkpoint",
        )?;
        for id in ids {
            self.check_may_go(now, delivery, *id)?;
        }
        let is_free =
            delivery.activity().activity == Activity::Idle && self.record.unread_since.is_none();
        Law::TheRightMoment.holds(!interrupt || !is_free, || {
            "an idle agent is interrupted".to_owned()
        })?;
        let want = self.expected_turn(now, delivery, view, ids[0]);
        let list = |ids: &[MessageId]| ids.iter().map(|id| id.id8()).collect::<Vec<_>>().join(" ");
        Law::DeliveryOrder.holds(*ids == want, || {
            format!("the turn has {}; it should have {}", list(ids), list(&want))
        })
    }

    /// Return the messages that the next turn must have. Only delivery knows whether an interrupt
    /// may still try its key on a question, so `first` is accepted there.
    pub(super) fn expected_turn(
        &self,
        now: Moment,
        delivery: &Delivery,
        view: &[MessageState],
        first: MessageId,
    ) -> Vec<MessageId> {
        let is_asked = matches!(delivery.activity().activity, Activity::Blocked(_));
        // An urgent message passes the messages that wait for a hook of a working agent.
        let goes_alone = self.ledger.get(first).is_some_and(KnownMessage::goes_alone);
        let has_hooks = self
            .record
            .profile
            .is_some_and(|profile| profile.hooks_take_mail);
        let is_working = delivery.activity().activity == Activity::Working;
        let is_by_hook = has_hooks && is_working && goes_alone;
        let mut open: Vec<_> = view
            .iter()
            .filter_map(|state| Some((state, self.ledger.get(state.message.id)?)))
            .filter(|(state, known)| {
                let id = state.message.id;
                let is_by_hook = is_by_hook && !known.goes_alone();
                let is_skipped = (is_asked && !known.raw || is_by_hook) && id != first;
                let is_there = known.is_due(now.wall) && state.is_pending(now.wall);
                is_there && !is_skipped && self.check_may_go(now, delivery, id).is_ok()
            })
            .collect();
        open.sort_by_key(|(_, known)| known.order(now.wall));
        let input = delivery.input();
        let is_by_api = self.goes_by_api(now, delivery);
        let mut bytes = 0;
        let fits = |(at, (state, known)): &(usize, &(&MessageState, &KnownMessage))| {
            bytes += turn::size(
                state,
                turn::TextPlacement::Inline,
                input,
                MESSAGE_PATH.len(),
            );
            let may_join = input == InputMode::Pasted || is_by_api;
            let joins = may_join && !known.goes_alone() && bytes <= turn::TURN;
            *at == 0 || joins
        };
        let goes_alone = open.first().is_some_and(|(_, known)| known.goes_alone());
        let most = if goes_alone { 1 } else { open.len() };
        let turn = open.iter().take(most).enumerate().take_while(fits);
        turn.map(|(_, (state, _))| state.message.id).collect()
    }
}
