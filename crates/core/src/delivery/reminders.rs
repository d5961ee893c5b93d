//! Reminding the agent of the answers that it owes: when it becomes idle again, in one turn, after
//! all mail that waits, and never into anything that a person or a question has begun.

use super::{Cargo, Desk, Effect, Flight, Lane};
use crate::activity::Activity;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::owed;
use std::time::Duration;

/// How long after one reminder the next comes, where nothing else came between.
const GAP: Duration = Duration::from_secs(60);

impl Desk {
    /// Begins to remind the agent of what it owes, where it has just become idle. For when nothing
    /// else is due; `owed` must have been looked up after the last report.
    pub fn remind(&mut self, now: Moment, owed: &[Letter]) -> Vec<Effect> {
        let judged = self.activity();
        let is_free = self.is_free() && judged.activity == Activity::Idle;
        let is_done = self.reminded == Some(judged.since.mono);
        let is_early = self.spaced.is_some_and(|at| now.mono < at);
        if !is_free || is_done || is_early || self.rule_of_terminal(Lane::Idle).is_some() {
            return Vec::new();
        }
        let may_be = owed.iter().filter(|l| owed::may_be_reminded(l, now.wall));
        let ids: Vec<_> = may_be.take(owed::AT_ONCE).map(|l| l.message.id).collect();
        // Whether it owes anything or not: what comes later is for another time.
        self.reminded = Some(judged.since.mono);
        if ids.is_empty() {
            return Vec::new();
        }
        self.record(Flight::new(ids, Cargo::Reminders, Lane::Idle, now))
    }

    /// It stands in the journal; what has come between in that moment goes before it, and the next
    /// time it is idle there is another reminder.
    pub(super) fn write_reminder(&mut self, flight: Flight) -> Vec<Effect> {
        if self.barrier(Lane::Idle).is_some() {
            return Vec::new();
        }
        self.begin(flight)
    }

    /// A reminder is a turn of its own, at whose end the agent is idle again: that is no reason for
    /// the next.
    pub(super) fn space_reminders(&mut self, now: Moment, cargo: Cargo) {
        match cargo {
            Cargo::Messages => (self.reminders, self.spaced) = (0, None),
            Cargo::Reminders => {
                let gap = GAP * 2_u32.saturating_pow(self.reminders.min(10));
                self.spaced = Some(now.mono + gap);
                self.reminders = self.reminders.saturating_add(1);
            }
        }
    }
}
