//! The rules that hold messages: one function for each route, and the choice of the route for a lane.

use super::terminal::Lane;
use super::{Delivery, PausedBy};
use crate::activity::Activity;
use crate::harness::{BoxState, Route};
use crate::moment::Moment;
use std::time::Duration;

/// Time after which a message in flight needs an explanation.
pub(super) const SLOW_AFTER: Duration = Duration::from_secs(1);
const UNSUBMITTED: &str =
    "an earlier text is still in the input box, because Enter did not submit it";

/// A reason for delivery to be paused, and since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    pub(super) by: PausedBy,
    pub(super) since: Moment,
}

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
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::HandedOver => "handed-over",
            Self::Starting => "starting",
            Self::Paused => "paused",
            Self::Draft => "draft",
            Self::Blocked => "blocked",
            Self::AwaitingEnter => "in-flight",
            Self::NotReading => "not-reading",
            Self::Working => "working",
            Self::Unrecognised => "unrecognised",
            Self::Settling => "settling",
            Self::Hook => "hook",
            Self::Loop => "loop",
        }
    }

    /// Return the reason in words, as far as the rule alone decides it.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Exited => "the program has exited",
            Self::HandedOver => {
                "the agent's conversation has moved to another process that ph cannot see, so nothing \
                 is typed"
            }
            Self::Starting => "the program is starting",
            Self::Paused => "delivery is paused",
            Self::Draft => "a person has typed something and not submitted it",
            Self::Blocked => "the program waits for an answer",
            Self::AwaitingEnter => "another message is in the input box and waits for its Enter",
            Self::NotReading => "the program has not read what was typed before",
            Self::Working => "the agent is working",
            Self::Unrecognised => "the screen does not show the agent's input box",
            Self::Settling => "the screen is changing",
            Self::Hook => "the agent is working, and its next hook takes it in",
            Self::Loop => "this is a loop, and nothing is typed into it",
        }
    }

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

impl Delivery {
    /// Return the reason for which a rule holds messages, in words.
    pub(super) fn reason(&self, rule: Rule) -> &'static str {
        match rule == Rule::Draft && self.input_box.has_unsubmitted() {
            true => UNSUBMITTED,
            false => rule.reason(),
        }
    }

    /// Return the route that carries messages of a lane now.
    fn route(&self, lane: Lane) -> Route {
        if lane == Lane::Normal && self.awaits_hook() && !self.is_paused_for(lane) {
            Route::Hook
        } else if self.goes_by_http(lane) {
            Route::Http
        } else {
            Route::Terminal
        }
    }

    /// Return the rule that holds messages of a lane on the route that carries them, if any.
    pub(super) fn rule(&self, lane: Lane) -> Option<Rule> {
        if self.agent.is_handed_over() {
            return Some(Rule::HandedOver);
        }
        match self.route(lane) {
            // The hook takes the messages when it is called.
            Route::Hook => Some(Rule::Hook),
            route @ (Route::Http | Route::Terminal | Route::Queue) => self.rule_of(route, lane),
        }
    }

    /// Return the rule by which a route cannot carry messages of a lane now. An offer that bypasses
    /// the terminal is checked by the same rule before and after it is recorded, so that an offer
    /// that begins is not withdrawn without a change.
    pub(super) fn rule_of(&self, route: Route, lane: Lane) -> Option<Rule> {
        match route {
            Route::Hook => self.direct_rule(lane),
            Route::Http => self.direct_rule(lane).or_else(|| self.http_rule(lane)),
            Route::Terminal | Route::Queue => self.terminal_rule(lane),
        }
    }

    /// Return the rule that holds messages of a lane on every route that bypasses the terminal.
    /// Neither a draft nor unread input holds them.
    fn direct_rule(&self, lane: Lane) -> Option<Rule> {
        match self.agent.activity() {
            Activity::Exited => Some(Rule::Exited),
            Activity::Starting => Some(Rule::Starting),
            Activity::Blocked(_) => Some(Rule::Blocked),
            Activity::Idle | Activity::Working => self.is_paused_for(lane).then_some(Rule::Paused),
        }
    }

    fn http_rule(&self, lane: Lane) -> Option<Rule> {
        match self.agent.activity() {
            Activity::Working if lane == Lane::Idle => Some(Rule::Working),
            // A text that waits for its Enter was due before.
            _ if self.terminal.is_awaiting_enter() => Some(Rule::AwaitingEnter),
            _ => None,
        }
    }

    /// Return the rule that holds messages of a lane on the route through the terminal.
    pub(super) fn terminal_rule(&self, lane: Lane) -> Option<Rule> {
        if let Some(rule) = self.loop_rule() {
            return Some(rule);
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
        let is_behind = !is_ahead && self.terminal.is_awaiting_enter();
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
        // The box holds our own text.
        if self.terminal.is_awaiting_enter() || self.is_writing() {
            return None;
        }
        match self.input_box.state() {
            BoxState::Undescribed if self.input_box.is_described() => Some(Rule::Unrecognised),
            BoxState::Undescribed => None,
            BoxState::Unrecognised(_) => Some(Rule::Unrecognised),
            BoxState::Holds(_) if lane == Lane::Interrupt && self.must_clear() => None,
            BoxState::Holds(_) => Some(Rule::Draft),
            BoxState::Empty if self.agent.is_at_work() => Some(Rule::Working),
            BoxState::Empty if self.input_box.is_empty_and_steady() => None,
            BoxState::Empty => Some(Rule::Settling),
        }
    }

    /// Return the rule that forbids typing at any stage of an offer, for interrupts too.
    pub(super) fn typing_rule(&self, lane: Lane) -> Option<Rule> {
        match (self.agent.activity(), lane) {
            (Activity::Exited, _) => Some(Rule::Exited),
            (_, _) if self.agent.is_handed_over() => Some(Rule::HandedOver),
            (_, _) if self.is_paused_for(lane) => Some(Rule::Paused),
            (_, Lane::Interrupt) if self.must_clear() => None,
            (_, _) if self.has_draft() => Some(Rule::Draft),
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

    /// Whether a pause holds messages of a lane. A requested pause lets answers and interrupts pass.
    /// Nothing is typed over a person.
    pub(super) fn is_paused_for(&self, lane: Lane) -> bool {
        self.pauses.iter().any(|pause| match (pause.by, lane) {
            (PausedBy::Viewer | PausedBy::Interactive, _) => true,
            (PausedBy::Request | PausedBy::Checkpoint, Lane::Normal | Lane::Idle) => true,
            (PausedBy::Request | PausedBy::Checkpoint, Lane::Raw | Lane::Interrupt) => false,
        })
    }
}
