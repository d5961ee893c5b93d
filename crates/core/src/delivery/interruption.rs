//! The interrupt before an offer: pressed a few times at most, and never where it could end the
//! program or approve something. It goes by the agent's API if that is the route.
//!
//! ```text
//! begin ─▶ Checking ─look▶ Waiting ─the agent has stopped, or does not stop▶ the turn is carried
//!             │              │ ▲ └──▶ Waiting, once more: the program's restored prompt is cleared
//!             │              └─┴─ 3 keys at most
//!             └──────────────┴─ a rule, or the interrupt has no effect ─▶ the turn stays pending
//! ```

use super::{Delivery, Lane, OutgoingTurn, Rule};
use crate::activity::Activity;
use crate::driver::{Action, Input, KeyboardUser};
use crate::why::Hold;
use std::time::Duration;

/// Maximum number of interrupts of one turn, by key or by API.
const INTERRUPT_ATTEMPTS: u8 = 3;
/// How long a program may take to empty its box after the clear keys.
const CLEARED_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Look at the screen before the next key.
    Checking,
    /// The last key may take effect until this time.
    Waiting { until: Duration },
}

/// An interrupt, and the turn that follows it.
#[derive(Debug, Clone)]
pub(super) struct Interruption {
    pub(super) turn: OutgoingTurn,
    state: State,
    /// Number of interrupts, including those by the API.
    keys: u8,
    /// Number of interrupts by the agent's API.
    aborts: u8,
    /// The clear keys were pressed, because the program restored a prompt after the interrupt.
    has_cleared: bool,
    /// The interrupt key was not pressed, because it might have ended the program.
    has_avoided_end: bool,
    /// The dialog that the interrupt key has cancelled.
    cancelled_dialog: Option<String>,
}

impl Interruption {
    pub(super) fn new(turn: OutgoingTurn) -> Self {
        Self {
            turn,
            state: State::Checking,
            keys: 0,
            aborts: 0,
            has_cleared: false,
            has_avoided_end: false,
            cancelled_dialog: None,
        }
    }

    /// Return the turn, with the notes for its evidence.
    fn into_turn(self) -> OutgoingTurn {
        let mut turn = self.turn;
        if self.has_avoided_end {
            turn.notes += "; no interrupt key: it might have ended the program";
        }
        if let Some(what) = self.cancelled_dialog {
            turn.notes += &format!("; a dialog was cancelled for it: {what}");
        }
        turn
    }

    /// Explain the message that interrupts. `wait` is how long one interrupt may take.
    pub(super) fn explain(&self, wait: Duration) -> Hold {
        let aborts = self.aborts;
        let keys = self.keys.saturating_sub(aborts);
        let aborted =
            (aborts > 0).then(|| format!("its own HTTP API was told {aborts} time(s) to stop it"));
        let pressed = (keys > 0 || aborted.is_none())
            .then(|| format!("the interrupt key was pressed {keys} time(s)"));
        let done: Vec<_> = aborted.into_iter().chain(pressed).collect();
        let wait = wait.as_secs_f32();
        Hold {
            rule: "interrupting",
            since: self.turn.since.wall,
            reason: "it interrupts what the agent is doing, and waits for that to stop".to_owned(),
            evidence: done.join("; "),
            release: format!("the agent is idle, or has not stopped after three times {wait} s"),
        }
    }

    /// Do not count a key that the full keyboard queue dropped. It is pressed again.
    fn drop_key(&mut self) {
        if let State::Waiting { .. } = self.state {
            self.keys = self.keys.saturating_sub(1);
        }
    }
}

impl Delivery {
    /// Interrupt the agent. Check the screen first if the key could do harm.
    pub(super) fn interrupt(&mut self, mut interruption: Interruption) -> Vec<Action> {
        let quits = self.at.config.harness.interrupt.quits_when_idle && !self.at.agent.is_asking();
        let is_by_api = self.http.is_route(&self.at, Lane::Interrupt);
        if quits || self.at.input_box.is_described() && !is_by_api {
            interruption.state = State::Checking;
            self.interruption = Some(interruption);
            return vec![Action::Look(KeyboardUser::Turn)];
        }
        self.interrupt_if_working(interruption)
    }

    /// Handle an input that concerns the interrupt.
    pub(super) fn on_interruption(&mut self, input: &Input) -> Vec<Action> {
        let by = KeyboardUser::Turn;
        match (&mut self.interruption, input) {
            (Some(interruption), Input::KeysDropped) => interruption.drop_key(),
            (Some(_), Input::Looked { by: user, .. }) if *user == by => return self.looked(),
            (Some(interruption), Input::TerminalFailed { by: user, .. }) if *user == by => {
                if interruption.state == State::Checking {
                    self.interruption = None;
                }
            }
            (_, _) => {}
        }
        Vec::new()
    }

    /// Continue an interrupt after its look at the screen.
    fn looked(&mut self) -> Vec<Action> {
        let Some(mut interruption) = self.interruption.take_if(|i| i.state == State::Checking)
        else {
            return Vec::new();
        };
        let agent = &self.at.agent;
        if self.interrupt_rule().is_some() {
            return Vec::new();
        }
        if !self.at.config.harness.interrupt.quits_when_idle {
            return self.interrupt_if_working(interruption);
        }
        if agent.is_asking() || agent.judge.surely_works() {
            return self.interrupt_now(interruption);
        }
        interruption.has_avoided_end |= agent.activity() != Activity::Idle;
        self.clear_or_carry(interruption)
    }

    /// Interrupt only if a dialog is open or the agent may be working. Our own typing can look like
    /// work, and the key could quit an idle agent.
    fn interrupt_if_working(&mut self, mut interruption: Interruption) -> Vec<Action> {
        let agent = &self.at.agent;
        let may_be_reading = self.at.input_box.unread.is_none();
        if !agent.is_asking() && may_be_reading && !agent.judge.may_work() {
            interruption.has_avoided_end = true;
            return self.clear_or_carry(interruption);
        }
        self.interrupt_now(interruption)
    }

    fn interrupt_now(&mut self, mut interruption: Interruption) -> Vec<Action> {
        let interrupt = &self.at.config.harness.interrupt;
        let until = self.at.now.mono + interrupt.wait.get();
        let action = if self.http.is_route(&self.at, Lane::Interrupt) {
            interruption.aborts = interruption.aborts.saturating_add(1);
            self.http.interrupt(&self.at)
        } else {
            let dialog = self.at.agent.questions.open.as_ref();
            let key = match (dialog, &interrupt.dismiss) {
                (Some(_), Some(dismiss)) => dismiss,
                (_, _) => &interrupt.keys,
            };
            let key = key.bytes().to_vec();
            if let Some(dialog) = dialog {
                interruption.cancelled_dialog = Some(dialog.what.clone());
            }
            self.at.input_box.note_interrupt();
            Action::PressKeys(key)
        };
        self.at.agent.judge.interrupted(self.at.now);
        if let Action::PressKeys(_) = action {
            self.at.agent.judge.typed(self.at.now);
        }
        interruption.keys = interruption.keys.saturating_add(1);
        interruption.state = State::Waiting { until };
        self.interruption = Some(interruption);
        vec![action]
    }

    /// Clear a prompt that the program has restored, once.
    pub(super) fn clear(&mut self, mut interruption: Interruption) -> Vec<Action> {
        let Some(keys) = self.at.input_box.clear_keys() else {
            return Vec::new();
        };
        let until = self.at.now.mono + CLEARED_WITHIN;
        interruption.has_cleared = true;
        interruption.state = State::Waiting { until };
        self.interruption = Some(interruption);
        vec![Action::ClearBox(keys)]
    }

    /// Carry the turn, after clearing a prompt that the program has restored.
    fn clear_or_carry(&mut self, interruption: Interruption) -> Vec<Action> {
        if !self.at.input_box.must_clear() {
            return self.carry(interruption.into_turn());
        }
        if interruption.has_cleared {
            // The keys did not empty the box: its text is treated as a draft.
            self.at.input_box.forget_restored();
            return Vec::new();
        }
        self.clear(interruption)
    }

    /// Continue an interrupt as far as possible now.
    pub(super) fn continue_interruption(&mut self) -> Vec<Action> {
        let Some(interruption) = self.interruption.take() else {
            return Vec::new();
        };
        let State::Waiting { until } = interruption.state else {
            // An exit ends the interrupt before its look.
            self.interruption = Some(interruption).filter(|_| !self.at.agent.has_exited());
            return Vec::new();
        };
        if self.interrupt_rule().is_some() {
            return Vec::new();
        }
        let is_clearing = self.at.input_box.must_clear() && interruption.has_cleared;
        let is_due = match self.settles_at() {
            Some(at) => at <= self.at.now.mono && !(is_clearing && self.at.now.mono < until),
            None => until <= self.at.now.mono,
        };
        if !is_due {
            self.interruption = Some(interruption);
            return Vec::new();
        }
        if self.settles_at().is_none() && interruption.keys < INTERRUPT_ATTEMPTS {
            return self.interrupt(interruption);
        }
        let is_at_work = self.at.agent.is_at_work();
        match (self.at.agent.activity(), &mut self.at.agent.questions.open) {
            // Nothing is typed into an agent that continues to work.
            (Activity::Working, _) if is_at_work => {
                self.at.agent.ignores_interrupts = true;
                Vec::new()
            }
            // Nothing is typed into an open question.
            (Activity::Blocked(_), Some(dialog)) => {
                dialog.ignores_interrupt = true;
                Vec::new()
            }
            (
                Activity::Starting
                | Activity::Idle
                | Activity::Working
                | Activity::Blocked(_)
                | Activity::Exited,
                _,
            ) => self.clear_or_carry(interruption),
        }
    }

    /// Return when the screen of an agent that has stopped is complete. An agent with unread input
    /// has not stopped, even if it is silent.
    fn settles_at(&self) -> Option<Duration> {
        let judged = self.at.agent.judgement();
        let is_read = self.at.input_box.unread.is_none();
        let has_stopped = judged.activity == Activity::Idle && is_read;
        let settle = self.at.config.harness.interrupt.settle.get();
        has_stopped.then(|| judged.since.mono + settle)
    }

    /// Return when an interrupt continues without another input.
    pub(super) fn interruption_wakeup(&self) -> Option<Duration> {
        let interruption = self.interruption.as_ref()?;
        let State::Waiting { until } = interruption.state else {
            return None;
        };
        let is_clearing = interruption.has_cleared && self.at.input_box.must_clear();
        let settles_at = self.settles_at().filter(|_| !is_clearing);
        Some(settles_at.unwrap_or(until))
    }

    /// Return the rule that holds an interrupt key. A changing screen delays only the text that
    /// follows the key.
    fn interrupt_rule(&self) -> Option<Rule> {
        self.rule(Lane::Interrupt)
            .filter(|rule| *rule != Rule::Settling)
    }
}
