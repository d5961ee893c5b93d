//! The observer of a simulated driver: lets the oracle check every input, choice and action, and
//! keeps track of the current turn.

use crate::delivery::{Decision, Delivery};
use crate::driver::{
    Action, DecisionLines, Input, JournalOperation, KeyboardUser, LogLine, Observer, TurnContent,
};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
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
    /// Whether the end of an ask could not be recorded.
    pub(crate) has_lost_ask: &'a mut bool,
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

    fn write(&mut self, turn: &TurnContent) {
        let ids = turn.messages().into_iter().map(|mail| mail.message.id);
        self.turn.is_open = true;
        self.turn.attempts += 1;
        self.turn.ids = ids.collect();
    }

    /// Note a step in the delivery of these messages.
    fn step(&mut self, ids: &[MessageId], report: &OfferReport) {
        match report {
            OfferReport::Offering { .. } | OfferReport::Reminded { .. } => {}
            OfferReport::Uncertain { .. } => {
                let has_one = |hook: &&mut HookWithMail| hook.ids.iter().any(|id| ids.contains(id));
                for hook in self.hooks.iter_mut().filter(has_one) {
                    hook.is_given_up = true;
                }
                self.end(ids);
            }
            OfferReport::Offered { .. }
            | OfferReport::Accepted { .. }
            | OfferReport::Withdrawn { .. }
            | OfferReport::Failed { .. } => self.end(ids),
        }
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
    fn on_input(&mut self, now: Moment, input: &Input) {
        let trace = &mut self.world.trace;
        trace.note(|| format!("  {} delivery receives {input:?}", clock(now.mono)));
        if trace.is_kept() {
            let line = self.decisions.on_input(input);
            self.log(line);
        }
        self.world.oracle.record.record(now, input);
    }

    fn after_input(&mut self) {
        self.world.oracle.record.current_look = None;
        self.world.oracle.record.api.after_input();
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

    fn on_action(&mut self, now: Moment, delivery: &Delivery, action: &Action) {
        let trace = &mut self.world.trace;
        trace.note(|| format!("  {} delivery requests {action:?}", clock(now.mono)));
        if trace.is_kept() {
            let line = self.decisions.on_action(delivery, action);
            self.log(line);
        }
        let oracle = &mut self.world.oracle;
        let checked = oracle.check_action(now, delivery, action, self.turn);
        self.check(checked);
        match action {
            Action::LeaseKeyboard(KeyboardUser::Turn) => match delivery.turn_in_flight() {
                Some(turn) if turn.enters.is_some() => {
                    if let Some(waiting) = self.waiting.take() {
                        *self.turn = waiting;
                    }
                }
                Some(turn) if turn.is_reminder => self.begin_turn(TurnKind::Reminder, &turn.ids),
                Some(turn) => self.begin_turn(TurnKind::Messages, &turn.ids),
                None => {}
            },
            Action::Type { turn, .. } => self.write(turn),
            Action::Commit {
                operation: JournalOperation::RecordStep { ids, report },
                ..
            } => self.step(ids, report),
            _ => {}
        }
    }

    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str) {
        let line = self.decisions.on_commit_retry(operation, why);
        self.log(Some(line));
    }

    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str) {
        let line = self.decisions.on_commit_lost(operation, why);
        self.log(Some(line));
        match operation {
            operation if operation.begins_offer() => {}
            JournalOperation::RecordStep { ids, .. } => self.given_up.extend(ids),
            JournalOperation::CloseAsk { .. } => *self.has_lost_ask = true,
            _ => {}
        }
    }
}
