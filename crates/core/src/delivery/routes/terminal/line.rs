//! A line on its way: it goes through the states of a turn, and its sender is told the outcome. It is
//! refused where a message would wait.

use super::{Preparation, State, Submission, TERMINAL_GONE, TerminalRoute, WrittenTurn};
use crate::delivery::nudges::{BUSY, Line, NudgeOutcome, TOO_LATE};
use crate::delivery::{Conditions, Lane, OutgoingTurn, Rule, TurnKind};
use crate::driver::Action;
use crate::moment::Moment;
use std::time::Duration;

/// How long a line waits for a screen that keeps changing.
const SCREEN_SETTLES_WITHIN: Duration = Duration::from_secs(1);
/// How long the program may take to read a line. After that, the sender is told that it does not
/// read its input.
const LINE_READ_WITHIN: Duration = Duration::from_secs(5);
const UNREAD: &str = "the program does not read its input";
const NOT_ENTERED: &str = "; the line was typed, and Enter was not pressed";

impl OutgoingTurn {
    /// Tell the sender of a line that it is refused. Messages stay pending and have no receipt.
    pub(super) fn refused(mut self, reason: &str) -> Vec<Action> {
        let refused = self.line_mut().and_then(|line| line.refuse(reason));
        refused.into_iter().collect()
    }

    fn line_mut(&mut self) -> Option<&mut Line> {
        match &mut self.kind {
            TurnKind::Line(line) => Some(line),
            TurnKind::Messages | TurnKind::Answer(_) | TurnKind::Reminder => None,
        }
    }

    fn settled_by(&self) -> Duration {
        self.since.mono + SCREEN_SETTLES_WITHIN
    }
}

impl WrittenTurn {
    pub(super) fn is_line(&self) -> bool {
        self.turn.line().is_some()
    }
}

impl TerminalRoute {
    /// Take the keyboard for a line once the box is steady. Refuse a line that a rule holds.
    pub(super) fn settle_line(&mut self, at: &Conditions, turn: OutgoingTurn) -> Vec<Action> {
        match at.terminal_rule(Lane::Normal) {
            None => self.lease_when_steady(at, turn),
            Some(Rule::Settling) if at.now.mono < turn.settled_by() => {
                self.state = State::Preparing(turn, Preparation::Settling);
                Vec::new()
            }
            Some(_) => turn.refused(&at.line_refusal().unwrap_or_default()),
        }
    }

    /// Have a line written, if no rule holds it and its sender still waits.
    pub(super) fn write_line(
        &mut self,
        at: &mut Conditions,
        mut turn: OutgoingTurn,
    ) -> Vec<Action> {
        if at.terminal_rule(Lane::Normal).is_some() {
            return self.settle_line(at, turn);
        }
        let Some(line) = turn.line_mut() else {
            return Vec::new();
        };
        if let Some(reason) = line.text_refusal(at) {
            return turn.refused(reason);
        }
        // The sender may have been told that the keyboard is busy.
        if line.has_expired(at.now) || line.token.is_none() {
            return turn.refused(TOO_LATE);
        }
        line.reply_by = at.now.mono + LINE_READ_WITHIN;
        let text = line.text.clone();
        at.input_box.forget_restored();
        self.state = State::Writing(turn);
        vec![Action::TypeLine(text)]
    }

    /// The terminal has all of the line.
    pub(super) fn line_typed(&mut self, at: &Conditions, turn: OutgoingTurn) -> Vec<Action> {
        let text = turn.line().map(|line| line.text.clone());
        self.typed(at, turn, text.unwrap_or_default())
    }

    /// Press Enter after a line if the box holds exactly that line. Wait for a while if it does not.
    pub(super) fn submit_line(&mut self, at: &Conditions, written: WrittenTurn) -> Vec<Action> {
        match at.enter_refusal(&written.text) {
            None => self.press_enter(at, written),
            Some(_) if at.now.mono < written.shown_by => {
                let enter_at = written.shown_by;
                self.keep(written, Submission::Delaying { enter_at })
            }
            Some(reason) => written.turn.refused(&(reason + NOT_ENTERED)),
        }
    }

    pub(super) fn finish_line(at: &mut Conditions, mut written: WrittenTurn) -> Option<Action> {
        let what = "a line was written to it";
        at.agent.judge.given(at.now, written.entered_at, what);
        written.turn.line_mut()?.end(NudgeOutcome::Typed)
    }

    /// End a line because the program, or its terminal, is gone.
    pub(super) fn cut_off_line(&mut self) -> Vec<Action> {
        match std::mem::take(&mut self.state) {
            State::Free => Vec::new(),
            State::Preparing(turn, _) | State::Writing(turn) => turn.refused(TERMINAL_GONE),
            State::Submitting(written, _) => written.turn.refused(TERMINAL_GONE),
        }
    }

    /// Return when a line in flight is given up, or its sender is told that it takes too long.
    pub(super) fn line_timeout(&self) -> Option<Duration> {
        let turn = self.turn()?;
        let line = turn.line()?;
        match &self.state {
            State::Preparing(_, Preparation::Settling) => Some(turn.settled_by()),
            State::Free | State::Preparing(_, Preparation::CheckingBox) => None,
            State::Preparing(..) | State::Writing(_) | State::Submitting(..) => {
                line.token.map(|_| line.reply_by)
            }
        }
    }

    /// Tell the sender of a line that it takes too long. A line that is being written is finished. A
    /// line that waits for the keyboard is dropped once the result of that request has come.
    pub(super) fn tick_line(&mut self, now: Moment) -> Vec<Action> {
        if self.line_timeout().is_none_or(|at| at > now.mono) {
            return Vec::new();
        }
        let (turn, reason) = match &mut self.state {
            State::Preparing(turn, Preparation::Leasing) => (turn, BUSY),
            State::Writing(turn) => (turn, UNREAD),
            State::Submitting(written, _) => (&mut written.turn, UNREAD),
            State::Free | State::Preparing(..) => return Vec::new(),
        };
        let told = turn.line_mut().and_then(|line| line.refuse(reason));
        told.into_iter().collect()
    }
}
