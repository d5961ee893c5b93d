//! The oracle: observes a run and reports the first broken law.
//!
//! Sees delivery's inputs and actions, and checks them by rules of its own, which are as simple as
//! the design states them.

pub(crate) mod answer_targets;
mod api;
pub(crate) mod api_record;
pub(crate) mod delivery_record;
pub(crate) mod explanations;
pub(crate) mod law;
pub(crate) mod ledger;
pub(crate) mod observer;
mod turn_choice;
mod typing;

use crate::activity::Activity;
use crate::delivery::Delivery;
use crate::driver::{Action, HookMail, JournalOperation, KeyboardUser, TurnContent, TurnMessage};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::sim::oracle::answer_targets::AnswerTargets;
use crate::sim::oracle::delivery_record::DeliveryRecord;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::Ledger;
use crate::sim::oracle::ledger::known_message::KnownMessage;
use crate::sim::script::ProgramProfile;
use crate::sim::session::Turn;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Maximum number of times that an answer is typed.
const MAX_ANSWER_ATTEMPTS: u8 = 2;
/// Path of every message's file. Long, so that a few messages fill a turn.
pub(crate) static MESSAGE_PATH: LazyLock<String> = LazyLock::new(|| "/deep".repeat(500));

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) ledger: Ledger,
    pub(crate) record: DeliveryRecord,
    pub(crate) answer_targets: AnswerTargets,
    acknowledged: BTreeSet<MessageId>,
    /// Whether the text of a turn is in the terminal and its Enter is not.
    is_half_typed: bool,
    /// Whether the wall clock was set back, so that past times prove nothing.
    pub(crate) was_set_back: bool,
}

impl Oracle {
    /// Begin a session, with an empty record.
    pub(crate) fn begin_session(&mut self, profile: ProgramProfile, now: Moment) {
        self.record = DeliveryRecord::new(profile, now);
        self.answer_targets.begin_session();
        self.is_half_typed = false;
    }

    pub(crate) fn acknowledge(&mut self, id: MessageId) {
        self.acknowledged.insert(id);
    }

    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = MessageId> {
        self.acknowledged.iter().copied()
    }

    /// Check an action that delivery requests. `turn` is the current turn.
    pub(crate) fn check_action(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        action: &Action,
        turn: &Turn,
    ) -> Checked {
        let is_working = delivery.activity().activity == Activity::Working;
        let checked = self.check_action_now(now, delivery, action, turn);
        self.record.api.record_action(now, action, is_working);
        checked
    }

    fn check_action_now(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        action: &Action,
        turn: &Turn,
    ) -> Checked {
        match action {
            Action::ClearBox(_) => self.check_clear_keys(),
            Action::PressKeys(_) => self.check_interrupt_key(),
            Action::LeaseKeyboard(KeyboardUser::Turn) => self.check_lease(now, delivery),
            Action::ReleaseKeyboard(KeyboardUser::Turn) => self.check_keyboard_release(turn),
            Action::Type {
                turn: content @ TurnContent::Messages(_),
                ..
            } => self.check_text_begin(delivery, &ids(&content.messages()), turn),
            Action::Type {
                turn: TurnContent::Reminder(_),
                ..
            } => {
                self.record.reminders_typed += 1;
                let many = self.record.reminders_typed;
                Law::RemindersAreFew.holds(many == 1, || "a reminder is typed twice")?;
                self.check_box(false, "a reminder")?;
                self.check_box_is_free(false, "a reminder")?;
                self.check_may_write(delivery, false, false)
            }
            Action::PressEnter {
                by: KeyboardUser::Turn,
                ..
            } => self.check_enter(delivery, turn),
            Action::Commit {
                operation: JournalOperation::RecordStep { ids, report },
                ..
            } => {
                match report {
                    OfferReport::Offered { .. } => self.note_offered(ids, turn),
                    // The keys of an unapplied answer do not count as a partly typed text.
                    OfferReport::Failed { .. } => {
                        self.is_half_typed &= !ids.iter().any(|id| turn.ids.contains(id));
                    }
                    // The following facts are checked instead.
                    OfferReport::Offering { .. }
                    | OfferReport::Reminded { .. }
                    | OfferReport::Accepted { .. }
                    | OfferReport::Withdrawn { .. }
                    | OfferReport::Uncertain { .. } => {}
                }
                Ok(())
            }
            Action::AnswerHook {
                mail: Some(HookMail { messages, .. }),
                ..
            }
            | Action::PutMail { messages, .. } => {
                let ids = sent_ids(messages);
                let is_raw = ids.iter().any(|id| self.is_raw(*id));
                Law::CannotAct.holds(!is_raw, || "a hook or an API is given an answer")?;
                self.check_may_write(delivery, false, self.is_urgent(&ids))
            }
            Action::CheckApi { .. } => self.check_api_offer(now, delivery),
            Action::ApiInterrupt { .. } => self.check_api_interrupt(now, delivery),
            Action::ApiContinue { .. } => self.check_continue(now, delivery),
            _ => Ok(()),
        }
    }

    /// Check a request for the keyboard.
    fn check_lease(&mut self, now: Moment, delivery: &Delivery) -> Checked {
        match delivery.turn_in_flight() {
            None => self.check_may_write(delivery, false, false),
            Some(turn) if turn.enters.is_some() => {
                self.record.note_resumed(turn.ids);
                Ok(())
            }
            Some(turn) if turn.is_reminder => self.check_reminder(delivery),
            Some(turn) => {
                let is_raw = turn.ids.iter().all(|id| self.is_raw(*id));
                if is_raw {
                    self.record.answered_question = self.record.question_number();
                }
                Law::TheRightMoment.holds(
                    is_raw || !self.goes_by_api(now, delivery),
                    || "mail is typed although the agent's API can be used",
                )?;
                self.check_no_draft(is_raw, "it is offered")?;
                self.check_may_write(delivery, is_raw, self.is_urgent(&turn.ids))
            }
        }
    }

    /// Check that the text of messages may be typed now.
    fn check_text_begin(&self, delivery: &Delivery, ids: &[MessageId], turn: &Turn) -> Checked {
        let is_raw = ids.iter().all(|id| self.is_raw(*id));
        let is_new = !ids.iter().any(|id| self.ledger.is_partly_written(*id));
        // An answer without effect is typed once more.
        let is_retry = is_raw && turn.attempts < MAX_ANSWER_ATTEMPTS;
        Law::NothingDoubled.holds(is_new || is_retry, || "a text is typed again")?;
        self.check_box(is_raw, "text")?;
        self.check_box_is_free(is_raw, "text")?;
        self.check_may_write(delivery, is_raw, self.is_urgent(ids))?;
        self.check_question(is_raw)
    }

    fn note_offered(&mut self, ids: &[MessageId], turn: &Turn) {
        // A person has pressed Enter for the text, and the program's hook reports it.
        if ids
            .iter()
            .any(|id| self.record.waiting_messages.contains(id))
        {
            self.record.is_waiting_for_enter = false;
        }
        // A single key may have answered the question.
        let is_raw = ids.iter().all(|id| self.is_raw(*id));
        self.is_half_typed &= !is_raw;
        let is_answered = self.record.question_number() != self.record.answered_question;
        if is_raw && turn.is_whole && is_answered {
            ids.iter().for_each(|id| self.ledger.note_complete(*id));
        }
    }

    fn check_reminder(&mut self, delivery: &Delivery) -> Checked {
        let judged = delivery.activity();
        let is_idle = judged.activity == Activity::Idle;
        Law::RemindersAreFew.holds(
            !self.record.api.is_calling(),
            || "a reminder is sent while mail is on its way to the API",
        )?;
        let is_read = self.record.unread_since.is_none() && !self.record.is_waiting_for_enter;
        Law::RemindersAreFew.holds(
            is_idle && is_read,
            || "a reminder is sent to an agent that is not idle",
        )?;
        let since = Some(judged.since.mono);
        Law::RemindersAreFew.holds(
            self.record.reminded_in_idle_since != since,
            || "the agent is reminded twice in one idle period",
        )?;
        (
            self.record.reminded_in_idle_since,
            self.record.reminders_typed,
        ) = (since, 0);
        self.check_no_draft(false, "a reminder goes")?;
        self.check_may_write(delivery, false, false)
    }

    fn is_raw(&self, id: MessageId) -> bool {
        self.ledger.get(id).is_some_and(|known| known.raw)
    }

    fn is_urgent(&self, ids: &[MessageId]) -> bool {
        let known = |id: &MessageId| self.ledger.get(*id);
        ids.iter()
            .all(|id| known(id).is_some_and(KnownMessage::goes_alone))
    }

    /// Check, against the delivery record, that the agent can be written to.
    fn check_may_write(&self, delivery: &Delivery, is_raw: bool, is_urgent: bool) -> Checked {
        let activity = delivery.activity().activity;
        let is_starting = activity == Activity::Starting;
        let is_asked = self.record.question.is_some();
        let is_open = !self.record.is_paused_for(is_urgent);
        Law::CannotAct.holds(is_raw || !is_asked, || "text goes into a question")?;
        Law::TheRightMoment.holds(is_open, || "text is typed while paused")?;
        Law::TheRightMoment.holds(!is_starting, || "text is typed while starting")?;
        Law::TheRightMoment.holds(
            activity != Activity::Exited,
            || "it is typed after the program has ended",
        )
    }

    /// Check a block with which a hook shows these messages.
    pub(crate) fn check_injected(&mut self, messages: &[MessageState], block: &str) -> Checked {
        for state in messages {
            let id = state.message.id;
            let line = block.lines().find(|line| line.contains(&id.id8()));
            let is_marked = line.is_some_and(|line| line.contains("(repeat"));
            self.ledger.note_shown(id, is_marked)?;
        }
        Ok(())
    }
}

fn ids(messages: &[MessageState]) -> Vec<MessageId> {
    messages.iter().map(|state| state.message.id).collect()
}

fn sent_ids(messages: &[TurnMessage]) -> Vec<MessageId> {
    let ids = messages.iter().map(|message| message.state.message.id);
    ids.collect()
}
