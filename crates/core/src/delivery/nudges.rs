//! Nudges: lines that are typed and submitted, and are not messages. A line obeys the rules of a
//! normal message. It is not stored and not repeated: if it cannot be typed soon, it is refused.
//!
//! A line goes through the terminal like a turn of messages, before messages that are due. It is
//! never typed after its sender has given up.

use super::{Conditions, Delivery, Lane, Rule, TurnKind};
use crate::driver::Action;
use crate::moment::Moment;
use crate::text;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum length of a line, in characters. A terminal in canonical mode takes no line of 4,096
/// bytes, and a character has at most four bytes.
const MAX_LINE_CHARS: usize = 1_000;
/// Maximum number of nudges that wait for the one before them. Further nudges are refused.
const MAX_WAITING: usize = 64;
/// How long a nudge waits for the keyboard.
const KEYBOARD_LEASED_WITHIN: Duration = Duration::from_secs(5);

/// Reason to refuse a request whose sender has given up.
pub const TOO_LATE: &str = "it was requested too long ago, and its sender has given up";
pub(super) const BUSY: &str = "something else is still being typed, or has not been read";
const GONE: &str = "the terminal is gone";
const TOO_MANY: &str = "too many other lines wait to be typed";

/// Names a request. It is chosen by the session, and comes back with the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestToken(pub u64);

/// A request to type a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NudgeRequest {
    pub token: RequestToken,
    pub text: String,
    /// When the sender gives up.
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NudgeOutcome {
    /// The line was typed, and Enter was pressed.
    Typed,
    Refused(String),
}

/// A line that is to be typed.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// `None` once the sender has its outcome.
    pub(crate) token: Option<RequestToken>,
    expires_at: Option<Timestamp>,
    /// When the sender is told that the line takes too long.
    pub(crate) reply_by: Duration,
}

impl Line {
    pub(crate) fn has_expired(&self, now: Moment) -> bool {
        self.expires_at.is_some_and(|at| at < now.wall)
    }

    /// Return why the line is refused because of its text: it would look like a question.
    pub(crate) fn text_refusal(&self, at: &Conditions) -> Option<&'static str> {
        let asks = at.config.harness.would_ask(&self.text);
        asks.then_some("it reads like a question of the program's own")
    }

    /// Tell the sender the outcome, unless it was told before.
    pub(crate) fn end(&mut self, outcome: NudgeOutcome) -> Option<Action> {
        let token = self.token.take()?;
        Some(Action::EndNudge { token, outcome })
    }

    pub(crate) fn refuse(&mut self, reason: &str) -> Option<Action> {
        self.end(NudgeOutcome::Refused(reason.to_owned()))
    }
}

/// Lines that wait for the one before them, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Nudges(VecDeque<Line>);

impl Nudges {
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        self.0.front().map(|line| line.reply_by)
    }

    /// Refuse the lines that have waited for too long.
    pub(super) fn tick(&mut self, now: Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(mut late) = self.0.pop_front_if(|line| line.reply_by <= now.mono) {
            actions.extend(late.refuse(BUSY));
        }
        actions
    }

    /// Refuse every line, because the program has ended.
    pub(super) fn refuse_all(&mut self) -> Vec<Action> {
        let refused = self.0.drain(..).filter_map(|mut line| line.refuse(GONE));
        refused.collect()
    }
}

impl Delivery {
    /// Take a request for a nudge, or refuse it.
    pub(super) fn nudge_requested(&mut self, request: &NudgeRequest) -> Vec<Action> {
        let now = self.at.now;
        let mut line = Line {
            text: text::one_line(&request.text, MAX_LINE_CHARS),
            token: Some(request.token),
            expires_at: request.expires_at,
            reply_by: now.mono + KEYBOARD_LEASED_WITHIN,
        };
        let rule = self.at.terminal_rule(Lane::Normal);
        let is_held = rule.is_some_and(|rule| rule != Rule::Settling);
        let refusal = match rule {
            _ if line.has_expired(now) => Some(TOO_LATE.to_owned()),
            Some(Rule::Exited) => Some(GONE.to_owned()),
            _ if is_held => self.at.line_refusal(),
            _ => (self.nudges.0.len() == MAX_WAITING).then(|| TOO_MANY.to_owned()),
        };
        if let Some(reason) = refusal {
            return line.refuse(&reason).into_iter().collect();
        }
        self.nudges.0.push_back(line);
        Vec::new()
    }

    /// Begin to type the next line that is not refused, unless something else is on its way.
    pub(super) fn begin_line(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while self.terminal.is_free()
            && self.interruption.is_none()
            && let Some(line) = self.nudges.0.pop_front()
        {
            let turn = self.turn(Vec::new(), TurnKind::Line(line), Lane::Normal);
            actions.extend(self.carry_by_terminal(turn));
        }
        actions
    }
}
