//! Reminders of expected replies. The agent is reminded in one turn when it becomes idle, after all
//! pending mail, and never while a draft or a question is open.

use super::terminal::{OutgoingTurn, TurnKind};
use super::{Delivery, Effect, Lane};
use crate::activity::Activity;
use crate::mail::MessageState;
use crate::mail::pending_replies;
use crate::moment::Moment;
use std::time::Duration;

/// Time between two reminders without another turn in between; it doubles with each reminder.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub(super) struct Reminders {
    /// The beginning of the idle period in which the agent was last reminded.
    reminded_in: Option<Duration>,
    /// Number of reminders since the last turn of anything else.
    in_a_row: u32,
    /// When the next reminder may come.
    not_before: Option<Duration>,
}

impl Reminders {
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        self.not_before
    }

    pub(super) fn tick(&mut self, now: Moment) {
        self.not_before.take_if(|at| *at <= now.mono);
    }

    /// Note the end of a turn. The agent is idle again at the end of a reminder, which is no reason
    /// for the next one.
    pub(super) fn note_turn(&mut self, now: Moment, kind: TurnKind) {
        match kind {
            TurnKind::Messages => (self.in_a_row, self.not_before) = (0, None),
            TurnKind::Reminders => {
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
    pub fn remind(&mut self, now: Moment, pending_replies: &[MessageState]) -> Vec<Effect> {
        let judged = self.activity();
        let is_quiet = self.terminal.is_free() && !self.http.is_calling();
        let is_free = is_quiet && judged.activity == Activity::Idle;
        let is_done = self.reminders.reminded_in == Some(judged.since.mono);
        let is_early = self.reminders.not_before.is_some_and(|at| now.mono < at);
        if !is_free || is_done || is_early || self.terminal_rule(Lane::Idle).is_some() {
            return Vec::new();
        }
        let may_be = pending_replies
            .iter()
            .filter(|mail| pending_replies::may_be_reminded(mail, now.wall));
        let ids: Vec<_> = may_be
            .take(pending_replies::AT_ONCE)
            .map(|mail| mail.message.id)
            .collect();
        // Also if no reply is expected: a later message is for the next idle period.
        self.reminders.reminded_in = Some(judged.since.mono);
        if ids.is_empty() {
            return Vec::new();
        }
        self.record(OutgoingTurn::new(ids, TurnKind::Reminders, Lane::Idle, now))
    }
}
