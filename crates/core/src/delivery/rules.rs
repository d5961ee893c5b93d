//! The rules that hold messages: one function for each route, and the parts that they share. How a
//! rule is put into words is in `explain`.

use super::{Conditions, Lane, PausedBy, Reach};
use crate::activity::Activity;
use crate::harness::BoxState;

/// A reason to hold messages in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Exited,
    /// Another process has the conversation.
    HandedOver,
    Starting,
    Paused,
    Draft,
    Blocked,
    /// Another message is written and waits for its Enter.
    AwaitingEnter,
    NotReading,
    Working,
    /// The screen does not show the input box that the harness describes.
    Unrecognised,
    /// The screen shows the box, but has just changed.
    Settling,
    /// The message goes to the agent's next hook.
    Hook,
    /// The message is in a loop's next prompt.
    Loop,
}

impl Rule {
    /// Whether the rule holds messages on the route through the terminal only.
    pub(super) fn holds_terminal_only(self) -> bool {
        match self {
            Self::Draft
            | Self::AwaitingEnter
            | Self::NotReading
            | Self::Working
            | Self::Unrecognised
            | Self::Settling => true,
            Self::Exited
            | Self::HandedOver
            | Self::Starting
            | Self::Paused
            | Self::Blocked
            | Self::Hook
            | Self::Loop => false,
        }
    }
}

impl Conditions {
    /// Return the rule that holds messages of a lane on every route that bypasses the terminal.
    /// Neither a draft nor unread input holds them.
    pub(crate) fn direct_rule(&self, lane: Lane) -> Option<Rule> {
        match self.agent.activity() {
            Activity::Exited => Some(Rule::Exited),
            Activity::Starting => Some(Rule::Starting),
            Activity::Blocked(_) => Some(Rule::Blocked),
            Activity::Idle | Activity::Working => self.is_paused_for(lane).then_some(Rule::Paused),
        }
    }

    /// Return the rule that holds messages of a lane on the route through the terminal.
    pub(crate) fn terminal_rule(&self, lane: Lane) -> Option<Rule> {
        if self.config.reach == Reach::Prompt {
            let has_exited = self.agent.has_exited();
            return Some(if has_exited { Rule::Exited } else { Rule::Loop });
        }
        if self.agent.is_handed_over() {
            return Some(Rule::HandedOver);
        }
        // A terminal takes little input. If it were full, a person's Ctrl+C would find no room; an
        // interrupt presses that key first.
        let is_unread = lane != Lane::Interrupt && self.input_box.unread.is_some();
        // Only an answer, or a key that dismisses the question, may go before a written text that the
        // question holds.
        let open = self.agent.questions.open.as_ref();
        let is_ahead = match lane {
            Lane::Raw => true,
            Lane::Interrupt => open.is_some_and(|dialog| !dialog.ignores_interrupt),
            Lane::Normal | Lane::Idle => false,
        };
        let is_behind = !is_ahead && self.input_box.own.is_awaiting_enter();
        self.activity_rule(lane)
            .or(is_behind.then_some(Rule::AwaitingEnter))
            .or(is_unread.then_some(Rule::NotReading))
    }

    fn activity_rule(&self, lane: Lane) -> Option<Rule> {
        let is_starting = self.agent.judge.is_starting();
        match (self.agent.activity(), lane) {
            (Activity::Starting, _) => Some(Rule::Starting),
            // A question during the start can be answered, and nothing else can be typed.
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) if is_starting => {
                Some(Rule::Starting)
            }
            (Activity::Working, Lane::Idle) => self.typing_rule(lane).or(Some(Rule::Working)),
            (Activity::Working, Lane::Normal) if !self.config.harness.submit.while_working => {
                self.typing_rule(lane).or(Some(Rule::Working))
            }
            (Activity::Blocked(_), Lane::Interrupt) => self.dialog_interrupt_rule(),
            (Activity::Working, Lane::Interrupt) if self.agent.ignores_interrupts => {
                self.typing_rule(lane).or(Some(Rule::Working))
            }
            (Activity::Working, Lane::Interrupt) => self.typing_rule(lane).or_else(|| {
                self.box_rule(lane)
                    .filter(|rule| !matches!(rule, Rule::Settling | Rule::Working))
            }),
            (Activity::Idle | Activity::Working, Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                self.typing_rule(lane).or_else(|| self.box_rule(lane))
            }
            (Activity::Blocked(_) | Activity::Exited, _) | (_, Lane::Raw) => self.typing_rule(lane),
        }
    }

    /// Return the rule that holds an interrupt while a dialog is open. The interrupt key may cancel
    /// a dialog that the screen shows. It could also destroy a draft, so a draft holds the
    /// interrupt.
    fn dialog_interrupt_rule(&self) -> Option<Rule> {
        let ignores_interrupt = self
            .agent
            .questions
            .open
            .as_ref()
            .is_some_and(|dialog| dialog.ignores_interrupt);
        let is_held = |rule: &Rule| *rule != Rule::Blocked || ignores_interrupt;
        let rule = self.typing_rule(Lane::Interrupt).filter(is_held);
        let is_visible =
            !self.agent.is_question_unshown() || self.input_box.state().is_recognised();
        let is_known = !self.input_box.is_described() || is_visible;
        rule.or((!is_known).then_some(Rule::Unrecognised))
    }

    /// Return the rule by which the input box forbids typing, if any.
    fn box_rule(&self, lane: Lane) -> Option<Rule> {
        if self.input_box.own.is_there() {
            return None;
        }
        match self.input_box.state() {
            BoxState::Undescribed if self.input_box.is_described() => Some(Rule::Unrecognised),
            BoxState::Undescribed => None,
            BoxState::Unrecognised(_) => Some(Rule::Unrecognised),
            BoxState::Holds(_) if lane == Lane::Interrupt && self.input_box.must_clear() => None,
            BoxState::Holds(_) => Some(Rule::Draft),
            BoxState::Empty if self.agent.is_at_work() => Some(Rule::Working),
            BoxState::Empty if self.input_box.is_empty_and_steady() => None,
            BoxState::Empty => Some(Rule::Settling),
        }
    }

    /// Return the rule that forbids typing at any stage of an offer, for interrupts too.
    pub(crate) fn typing_rule(&self, lane: Lane) -> Option<Rule> {
        match (self.agent.activity(), lane) {
            (Activity::Exited, _) => Some(Rule::Exited),
            (_, _) if self.agent.is_handed_over() => Some(Rule::HandedOver),
            (_, _) if self.is_paused_for(lane) => Some(Rule::Paused),
            (_, Lane::Interrupt) if self.input_box.must_clear() => None,
            (_, _) if self.input_box.has_draft() => Some(Rule::Draft),
            // A raw message may be the answer. Before the question is on the screen, the text of the
            // answer would go into the box, and its Enter would accept the dialog's first option.
            (Activity::Blocked(_), Lane::Raw) => {
                self.agent.is_question_unshown().then_some(Rule::Blocked)
            }
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                Some(Rule::Blocked)
            }
            // The question of a raw message has closed meanwhile.
            (Activity::Starting, _) => Some(Rule::Starting),
            (Activity::Idle | Activity::Working, _) => None,
        }
    }

    /// Return the rule that withholds Enter from a written text. A pause does not withhold it: a turn
    /// that has begun is finished.
    pub(crate) fn enter_rule(&self, lane: Lane) -> Option<Rule> {
        match (self.agent.activity(), lane) {
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                Some(Rule::Blocked)
            }
            (_, _) if self.agent.handed_over.is_some() => Some(Rule::HandedOver),
            // An empty box has nothing to submit.
            (_, Lane::Interrupt | Lane::Normal | Lane::Idle)
                if self.agent.is_at_work() && *self.input_box.state() != BoxState::Empty =>
            {
                Some(Rule::Working)
            }
            (_, _) => self.input_box.is_typed().then_some(Rule::Draft),
        }
    }

    /// Whether a pause holds messages of a lane. A requested pause lets answers and interrupts pass.
    /// Nothing is typed over a person.
    pub(crate) fn is_paused_for(&self, lane: Lane) -> bool {
        self.pauses.iter().any(|pause| match (pause.by, lane) {
            (PausedBy::Viewer | PausedBy::Interactive, _) => true,
            (PausedBy::Request | PausedBy::Checkpoint, Lane::Normal | Lane::Idle) => true,
            (PausedBy::Request | PausedBy::Checkpoint, Lane::Raw | Lane::Interrupt) => false,
        })
    }
}
