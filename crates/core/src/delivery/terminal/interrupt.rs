//! The interrupt key before an offer: pressed a few times at most, and never where it could end the
//! program or approve something.

use super::super::{Delivery, Effect, Rule};
use super::state::{Lane, OutgoingTurn, Preparation, State};
use crate::activity::Activity;
use crate::moment::Moment;
use std::time::Duration;

/// Maximum number of times that the interrupt key is pressed.
const INTERRUPT_ATTEMPTS: u8 = 3;
/// How long a program may take to empty its box after the clear keys.
const CLEARED_WITHIN: Duration = Duration::from_secs(2);
/// The harm that the interrupt key might do to an idle program.
const ENDS_PROGRAM: &str = "ended the program";

impl Delivery {
    /// Press the interrupt key. Check the screen first if the key could do harm.
    pub(crate) fn interrupt(&mut self, now: Moment, turn: OutgoingTurn, keys: u8) -> Vec<Effect> {
        let quits = self.config.harness.interrupt.quits_when_idle && !self.agent.is_asking();
        if quits || self.input_box.is_described() && !self.goes_by_http(Lane::Interrupt) {
            self.terminal.state = State::Preparing(turn, Preparation::CheckingInterrupt { keys });
            return vec![Effect::Look];
        }
        self.interrupt_if_working(now, turn, keys)
    }

    /// Continue an interrupt after its look at the screen.
    pub(super) fn interrupt_after_look(
        &mut self,
        now: Moment,
        mut turn: OutgoingTurn,
        keys: u8,
    ) -> Vec<Effect> {
        if self.interrupt_rule().is_some() {
            self.terminal.state = State::Free;
            return Vec::new();
        }
        if !self.config.harness.interrupt.quits_when_idle {
            return self.interrupt_if_working(now, turn, keys);
        }
        if self.agent.is_asking() || self.agent.judge.surely_works() {
            return self.interrupt_now(now, turn, keys);
        }
        if self.agent.activity() != Activity::Idle {
            turn.interruption.avoided_harm = Some(ENDS_PROGRAM);
        }
        self.clear_or_record(now, turn, keys)
    }

    /// Press the interrupt key only if a dialog is open or the agent may be working. Our own typing
    /// can look like work, and the key could quit an idle agent.
    fn interrupt_if_working(
        &mut self,
        now: Moment,
        mut turn: OutgoingTurn,
        keys: u8,
    ) -> Vec<Effect> {
        let may_be_reading = self.input_box.unread.is_none();
        if !self.agent.is_asking() && may_be_reading && !self.agent.judge.may_work() {
            turn.interruption.avoided_harm = Some(ENDS_PROGRAM);
            return self.clear_or_record(now, turn, keys);
        }
        self.interrupt_now(now, turn, keys)
    }

    fn interrupt_now(&mut self, now: Moment, mut turn: OutgoingTurn, keys: u8) -> Vec<Effect> {
        let interrupt = &self.config.harness.interrupt;
        let until = now.mono + interrupt.wait.get();
        let effect = if self.goes_by_http(Lane::Interrupt) {
            turn.interruption.aborts = turn.interruption.aborts.saturating_add(1);
            self.agent.judge.interrupted(now);
            Effect::Abort
        } else {
            let dialog = self.agent.questions.open.as_ref();
            let key = match (dialog, &interrupt.dismiss) {
                (Some(_), Some(dismiss)) => dismiss,
                (_, _) => &interrupt.keys,
            };
            let key = key.bytes().to_vec();
            if let Some(dialog) = dialog {
                turn.interruption.cancelled_dialog = Some(dialog.what.clone());
            }
            self.input_box.note_interrupt();
            self.agent.judge.interrupted(now);
            self.agent.judge.typed(now);
            Effect::Key(key)
        };
        self.terminal.state = State::Preparing(turn, Preparation::Interrupting { keys, until });
        vec![effect]
    }

    /// Whether the box holds a prompt that the program restored after an interrupt, and the harness
    /// has keys that clear it.
    pub(crate) fn must_clear(&self) -> bool {
        self.input_box.clear_keys().is_some()
    }

    /// Clear a prompt that the program has restored, once.
    pub(crate) fn clear(&mut self, now: Moment, mut turn: OutgoingTurn, keys: u8) -> Vec<Effect> {
        let is_first = !turn.interruption.has_cleared;
        let Some(clear) = self.input_box.clear_keys().filter(|_| is_first) else {
            return Vec::new();
        };
        turn.interruption.has_cleared = true;
        let until = now.mono + CLEARED_WITHIN;
        self.terminal.state = State::Preparing(turn, Preparation::Interrupting { keys, until });
        vec![Effect::Clear(clear)]
    }

    /// Record the offer, after clearing a prompt that the program has restored.
    fn clear_or_record(&mut self, now: Moment, turn: OutgoingTurn, keys: u8) -> Vec<Effect> {
        if !self.must_clear() {
            return self.record(turn);
        }
        if turn.interruption.has_cleared {
            // The keys did not empty the box: its text is treated as a draft.
            self.input_box.forget_restored();
            self.terminal.state = State::Free;
            return Vec::new();
        }
        self.clear(now, turn, keys)
    }

    pub(super) fn continue_interrupting(
        &mut self,
        now: Moment,
        turn: OutgoingTurn,
        keys: u8,
        until: Duration,
    ) -> Vec<Effect> {
        if self.interrupt_rule().is_some() {
            self.terminal.state = State::Free;
            return Vec::new();
        }
        if let Some(at) = self.settles_at() {
            let has_cleared = turn.interruption.has_cleared;
            let is_clearing = self.must_clear() && has_cleared && now.mono < until;
            return match at <= now.mono && !is_clearing {
                true => self.clear_or_record(now, turn, keys),
                false => Vec::new(),
            };
        }
        if now.mono < until {
            return Vec::new();
        }
        if keys < INTERRUPT_ATTEMPTS {
            return self.interrupt(now, turn, keys + 1);
        }
        let is_at_work = self.agent.is_at_work();
        match (self.agent.activity(), &mut self.agent.questions.open) {
            // Nothing is typed into an agent that continues to work.
            (Activity::Working, _) if is_at_work => {
                self.agent.ignores_interrupts = true;
                self.terminal.state = State::Free;
                Vec::new()
            }
            // Nothing is typed into an open question.
            (Activity::Blocked(_), Some(dialog)) => {
                dialog.ignores_interrupt = true;
                self.terminal.state = State::Free;
                Vec::new()
            }
            (
                Activity::Starting
                | Activity::Idle
                | Activity::Working
                | Activity::Blocked(_)
                | Activity::Exited,
                _,
            ) => self.clear_or_record(now, turn, keys),
        }
    }

    /// Return when the screen of an agent that has stopped is complete. An agent with unread input
    /// has not stopped, even if it is silent.
    fn settles_at(&self) -> Option<Duration> {
        let judged = self.agent.judgement();
        let has_stopped = judged.activity == Activity::Idle && self.input_box.unread.is_none();
        let settle = self.config.harness.interrupt.settle.get();
        has_stopped.then(|| judged.since.mono + settle)
    }

    /// Return when an interrupting offer continues without another event.
    pub(super) fn interrupt_wakeup(&self, turn: &OutgoingTurn, until: Duration) -> Duration {
        let is_clearing = turn.interruption.has_cleared && self.must_clear();
        let settles_at = self.settles_at().filter(|_| !is_clearing);
        settles_at.unwrap_or(until)
    }

    /// Do not count a key that the full keyboard queue dropped. It is pressed again.
    pub(crate) fn keys_dropped(&mut self) {
        if let State::Preparing(_, Preparation::Interrupting { keys, .. }) =
            &mut self.terminal.state
        {
            *keys = keys.saturating_sub(1);
        }
    }

    /// Return the rule that holds an interrupt key. A changing screen delays only the text that
    /// follows the key.
    pub(crate) fn interrupt_rule(&self) -> Option<Rule> {
        self.rule(Lane::Interrupt)
            .filter(|rule| *rule != Rule::Settling)
    }
}
