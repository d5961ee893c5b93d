//! Reminders of expected replies. The agent is reminded in one turn when it becomes idle, after all
//! pending mail, and never while a draft or a question is open.

use super::{Delivery, Lane, TurnKind};
use crate::activity::Activity;
use crate::driver::Action;
use crate::mail::MessageState;
use crate::mail::pending_replies;
use crate::moment::Moment;
use std::time::Duration;

/// Time between two reminders without another turn in between; it doubles with each reminder.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub(crate) struct Reminders {
    /// The beginning of the idle period in which the agent was last reminded.
    reminded_in: Option<Duration>,
    /// Number of reminders since the last turn of anything else.
    in_a_row: u32,
    /// When the next reminder may come.
    not_before: Option<Duration>,
}

impl Reminders {
    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        self.not_before
    }

    pub(crate) fn tick(&mut self, now: Moment) {
        self.not_before.take_if(|at| *at <= now.mono);
    }

    /// Note the end of a turn. The agent is idle again at the end of a reminder, which is no reason
    /// for the next one.
    pub(crate) fn note_turn(&mut self, now: Moment, kind: &TurnKind) {
        match kind {
            TurnKind::Messages | TurnKind::Answer(_) => {
                (self.in_a_row, self.not_before) = (0, None);
            }
            TurnKind::Line(_) => {}
            TurnKind::Reminder => {
                let interval = REMINDER_INTERVAL * 2_u32.saturating_pow(self.in_a_row.min(10));
                self.not_before = Some(now.mono + interval);
                self.in_a_row = self.in_a_row.saturating_add(1);
            }
        }
    }
}

impl Delivery {
    /// Begin to remind the agent of expected replies, if it has just become idle. Call this when
    /// nothing else is due. `pending_replies` must have been read after the last report.
    pub fn remind(&mut self, now: Moment, pending_replies: &[MessageState]) -> Vec<Action> {
        self.at.now = now;
        let judged = self.activity();
        let reminders = &mut self.at.reminders;
        let is_done = reminders.reminded_in == Some(judged.since.mono);
        let is_early = reminders.not_before.is_some_and(|at| now.mono < at);
        let is_free = self.is_free() && judged.activity == Activity::Idle;
        if !is_free || is_done || is_early || self.at.terminal_rule(Lane::Idle).is_some() {
            return Vec::new();
        }
        let may_be = pending_replies
            .iter()
            .filter(|mail| pending_replies::may_be_reminded(mail, now.wall));
        let messages: Vec<_> = may_be.take(pending_replies::AT_ONCE).cloned().collect();
        // Also if no reply is expected: a later message is for the next idle period.
        self.at.reminders.reminded_in = Some(judged.since.mono);
        if messages.is_empty() {
            return Vec::new();
        }
        let turn = self.turn(messages, TurnKind::Reminder, Lane::Idle);
        self.carry_by_terminal(turn)
    }
}
