//! All connections of a session, and the events that they subscribe to.
//!
//! An event is serialized once for all subscribers. A subscriber whose outbox is full misses it,
//! and learns later how many events it missed; others are not delayed. Only if no person watches
//! the terminal, the output waits briefly for subscribers that are behind and still read, within a
//! [`WaitBudget`] that all of them share.

use crate::host::clock;
use crate::socket::output::outbox::{NO_PROGRESS_TIMEOUT, Outbox};
use posthaste_wire::event::{self, Event};
use posthaste_wire::topic::Topic;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the output waits for all subscribers together.
const WAIT_BUDGET: Duration = Duration::from_secs(3);
/// The budget is refilled at a fraction of the time in which nothing waits: one part in this
/// number.
const REFILL_DIVISOR: u32 = 10;

/// How much longer the output may wait for its subscribers.
#[derive(Debug)]
struct WaitBudget {
    left: Duration,
    updated_at: Instant,
    is_waiting: bool,
}

impl Default for WaitBudget {
    fn default() -> Self {
        Self {
            left: WAIT_BUDGET,
            updated_at: Instant::now(),
            is_waiting: false,
        }
    }
}

impl WaitBudget {
    /// Whether the output may wait, if `has_reason` to.
    fn allows(&mut self, has_reason: bool, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.updated_at);
        self.updated_at = now;
        self.left = if self.is_waiting {
            self.left.saturating_sub(passed)
        } else {
            (self.left + passed / REFILL_DIVISOR).min(WAIT_BUDGET)
        };
        self.is_waiting = has_reason && !self.left.is_zero();
        self.is_waiting
    }
}

#[derive(Debug, Default)]
pub(crate) struct Hub {
    wait_budget: RefCell<WaitBudget>,
    outboxes: RefCell<Vec<Weak<Outbox>>>,
    drained: Rc<Notify>,
    wants_output: Cell<bool>,
}

impl Hub {
    /// Create the outbox of a new connection.
    pub(crate) fn outbox(&self) -> Rc<Outbox> {
        let outbox = Rc::new(Outbox::new(self.drained.clone()));
        self.outboxes.borrow_mut().push(Rc::downgrade(&outbox));
        outbox
    }

    fn each(&self, mut visit: impl FnMut(&Outbox)) {
        self.outboxes
            .borrow_mut()
            .retain(|outbox| match outbox.upgrade() {
                Some(outbox) => {
                    visit(&outbox);
                    true
                }
                None => false,
            });
    }

    /// Whether any connection subscribes to the output.
    pub(crate) fn wants_output(&self) -> bool {
        self.wants_output.get()
    }

    /// Update [`Self::wants_output`] after a subscription has changed or a connection has ended.
    pub(crate) fn update_subscriptions(&self) {
        let mut wanted = false;
        self.each(|outbox| wanted |= !outbox.is_dead() && outbox.wants(Topic::Output));
        self.wants_output.set(wanted);
    }

    /// Whether any connection subscribes to this topic.
    pub(crate) fn wants(&self, topic: Topic) -> bool {
        let mut wanted = false;
        self.each(|outbox| wanted |= outbox.wants(topic));
        wanted
    }

    /// Send an event to all subscribers of its topic.
    pub(crate) fn publish(&self, topic: Topic, event: &Event) {
        let mut line = Vec::new();
        event::append(&mut line, &clock::local_now(), event);
        self.publish_lines(topic, &line, 1);
    }

    /// Send `count` serialized events to all subscribers of their topic.
    pub(crate) fn publish_lines(&self, topic: Topic, lines: &[u8], count: u64) {
        let lines: Rc<[u8]> = lines.into();
        self.each(|outbox| outbox.push_events(topic, &lines, count));
    }

    /// Wait for subscribers that are behind and still read, as long as the budget lasts. May be
    /// cancelled and called again: the budget counts all waits.
    pub(crate) async fn wait_for_readers(&self) {
        loop {
            let drained = self.drained.notified();
            let now = Instant::now();
            let mut has_reason = false;
            self.each(|outbox| has_reason |= outbox.delays_output(now));
            if !self.wait_budget.borrow_mut().allows(has_reason, now) {
                return;
            }
            let _ = tokio::time::timeout(NO_PROGRESS_TIMEOUT / 10, drained).await;
        }
    }

    /// Close all connections once their outboxes are written.
    pub(crate) fn close(&self) {
        self.each(Outbox::close);
    }

    /// Return the number of live connections.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|outbox| count += usize::from(!outbox.is_dead()));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_waits_until_the_budget_is_used_up() {
        let start = Instant::now();
        let mut budget = WaitBudget {
            left: WAIT_BUDGET,
            updated_at: start,
            is_waiting: false,
        };
        let at = |tenths: u32| start + WAIT_BUDGET / 10 * tenths;
        for tenths in 0..10 {
            assert!(budget.allows(true, at(tenths)), "{tenths}");
        }
        assert!(!budget.allows(true, at(10)));
        // The budget is refilled at a tenth of the time.
        assert!(budget.allows(true, at(20)));
        assert!(!budget.allows(true, at(21)));
        assert!(!budget.allows(false, at(200)));
        for tenths in 200..210 {
            assert!(budget.allows(true, at(tenths)), "{tenths}");
        }
        assert!(!budget.allows(true, at(210)));
    }
}
