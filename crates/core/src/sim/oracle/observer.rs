//! The observer of a simulated driver: lets the oracle check every event, choice and effect, and
//! keeps track of the current turn.

use crate::delivery::{Decision, Delivery, DeliveryEvent, Effect};
use crate::driver::{DecisionLines, JournalOperation, LogLine, NudgeOutcome, Observer};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::sim::oracle::law::Checked;
use crate::sim::session::actions::clock;
use crate::sim::session::{Turn, TurnKind, World};
use crate::sim::world::hook_mail::HookWithMail;

pub(crate) struct OracleObserver<'a, 'w> {
    pub(crate) world: &'a mut World<'w>,
    pub(crate) turn: &'a mut Turn,
    pub(crate) waiting: &'a mut Option<Turn>,
    pub(crate) hooks: &'a mut Vec<HookWithMail>,
    pub(crate) given_up: &'a mut Vec<MessageId>,
    pub(crate) decisions: &'a mut DecisionLines,
    /// The first broken law.
    pub(crate) checked: Checked,
}

impl OracleObserver<'_, '_> {
    fn check(&mut self, checked: Checked) {
        if self.checked.is_ok() {
            self.checked = checked;
        }
    }

    /// Keep a line of the session's log.
    fn log(&mut self, line: Option<LogLine>) {
        if let Some(line) = line {
            self.world.trace.note(|| format!("  log: {line}"));
        }
    }

    fn begin_turn(&mut self, kind: TurnKind, ids: &[MessageId]) {
        let last = std::mem::replace(self.turn, Turn::new(kind, ids.to_vec()));
        // No effect reports that a reminder was given up, so an open reminder may have ended.
        let is_told =
            last.kind == TurnKind::Messages || self.world.oracle.record.is_waiting_for_enter;
        if last.is_open && is_told {
            *self.waiting = Some(last);
        }
    }

    fn write(&mut self, ids: &[MessageId]) {
        self.turn.is_open = true;
        self.turn.attempts += 1;
        self.turn.ids = ids.to_vec();
    }

    /// Note the end of an offer of these messages.
    fn end(&mut self, ids: &[MessageId]) {
        if ids.iter().any(|id| self.turn.ids.contains(id)) {
            self.turn.is_open = false;
        }
        let is_in = |waiting: &mut Turn| ids.iter().any(|id| waiting.ids.contains(id));
        self.waiting.take_if(is_in);
    }
}

impl Observer for OracleObserver<'_, '_> {
    fn on_event(&mut self, now: Moment, event: &DeliveryEvent) {
        let trace = &mut self.world.trace;
        trace.note(|| format!("  {} delivery receives {event:?}", clock(now.mono)));
        if trace.is_kept() {
            let line = self.decisions.on_event(event);
            self.log(line);
        }
        self.world.oracle.record.record(now, event);
    }

    fn after_event(&mut self) {
        self.world.oracle.record.current_look = None;
    }

    fn on_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
        chosen: &Decision,
    ) {
        let is_free = |state: &&MessageState| {
            let id = state.message.id;
            let has_it = |hook: &HookWithMail| hook.ids.contains(&id) && !hook.is_given_up;
            !self.hooks.iter().any(has_it) && !delivery.is_offered_directly(id)
        };
        let view: Vec<_> = pending.iter().filter(is_free).cloned().collect();
        let checked = self
            .world
            .oracle
            .check_decision(now, delivery, &view, chosen);
        self.check(checked);
    }

    fn on_effect(&mut self, now: Moment, delivery: &Delivery, effect: &Effect) {
        let trace = &mut self.world.trace;
        trace.note(|| format!("  {} delivery requests {effect:?}", clock(now.mono)));
        if trace.is_kept() {
            let line = self.decisions.on_effect(delivery, effect);
            self.log(line);
        }
        let checked = self.world.oracle.check_effect(delivery, effect, self.turn);
        self.check(checked);
        match effect {
            Effect::Offer { ids } => self.begin_turn(TurnKind::Messages, ids),
            Effect::Remind { ids } => self.begin_turn(TurnKind::Reminder, ids),
            Effect::Resume => {
                if let Some(waiting) = self.waiting.take() {
                    *self.turn = waiting;
                }
            }
            Effect::Write { ids } | Effect::WriteReminder { ids } => self.write(ids),
            Effect::Uncertain { ids, .. } => {
                let has_one = |hook: &&mut HookWithMail| hook.ids.iter().any(|id| ids.contains(id));
                for hook in self.hooks.iter_mut().filter(has_one) {
                    hook.is_given_up = true;
                }
                self.end(ids);
            }
            Effect::Offered { ids, .. }
            | Effect::Accepted { ids, .. }
            | Effect::Withdraw { ids, .. }
            | Effect::Fail { ids, .. } => self.end(ids),
            Effect::Key(_)
            | Effect::Clear(_)
            | Effect::Abort
            | Effect::Continue
            | Effect::OfferByApi { .. }
            | Effect::Enter
            | Effect::Look
            | Effect::SendDirect { .. } => {}
        }
    }

    fn on_keyboard_released(&mut self) {
        let checked = self.world.oracle.check_keyboard_release(self.turn);
        self.check(checked);
    }

    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str) {
        let line = self.decisions.on_commit_retry(operation, why);
        self.log(Some(line));
    }

    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str) {
        let line = self.decisions.on_commit_lost(operation, why);
        self.log(Some(line));
        if let JournalOperation::RecordStep { ids, .. } = operation {
            self.given_up.extend(ids);
        }
    }

    fn on_nudge_end(&mut self, outcome: &NudgeOutcome) {
        let line = self.decisions.on_nudge_end(outcome);
        self.log(Some(line));
    }

    fn on_answer_refused(&mut self, reason: &str) {
        let line = self.decisions.on_answer_refused(reason);
        self.log(Some(line));
    }
}
