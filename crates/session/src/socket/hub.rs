//! Who listens, and what each is still owed.
//!
//! Every connection has an outbox of bounded size. An event is written down once for everybody who
//! wants it; one whose outbox is full misses it, is told how many it missed once there is room, and
//! holds nobody up. Only where no person watches, the output waits a little for listeners that do
//! read, within a credit that all of them share.

use crate::socket::Socket;
use crate::socket::pieces::Pieces;
use posthaste_wire::event::{self, Event};
use posthaste_wire::topic::{Topic, Topics};
use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How many bytes may wait for one connection.
const OUTBOX: usize = 1 << 20;
/// How long the output waits for a listener that reads nothing at all.
const NO_PROGRESS: Duration = Duration::from_secs(1);
/// How long it waits for all of them together. It comes back at a tenth of the time.
const CREDIT: Duration = Duration::from_secs(3);
const REFUND: u32 = 10;

/// What is to be written to one connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    out: RefCell<Out>,
    /// There is something to write.
    filled: Notify,
    /// There is room again.
    drained: Rc<Notify>,
}

#[derive(Debug)]
struct Out {
    waiting: Pieces,
    /// While a batch is carried out: the events that its answer must come before.
    held: Option<Pieces>,
    topics: Topics,
    missed: u64,
    /// Grows with every byte that was written: the sign of a reader.
    written: u64,
    /// While the output waits for it: what was written when it last read something, and when.
    awaited: Option<(u64, Instant)>,
    gave_up: bool,
    is_interactive: bool,
    /// What its hook was given, and has not said that it passed on.
    hand: Option<u64>,
    is_closing: bool,
    is_dead: bool,
}

impl Outbox {
    /// Adds an answer. Whoever asks waits for room before it asks again.
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.out.borrow_mut().waiting.push(bytes);
        self.filled.notify_one();
    }

    /// Keeps events back until the next [`Self::release`].
    pub(crate) fn hold(&self) {
        self.out.borrow_mut().held.get_or_insert_default();
    }

    /// Adds an answer, and the events that waited for it.
    pub(crate) fn release(&self, answer: &[u8]) {
        let mut out = self.out.borrow_mut();
        out.waiting.push(answer);
        let held = out.held.take().unwrap_or_default();
        out.waiting.append(held);
        drop(out);
        self.filled.notify_one();
    }

    /// Whether this connection has asked for interactive mode.
    pub(crate) fn is_interactive(&self) -> bool {
        self.out.borrow().is_interactive
    }

    pub(crate) fn set_interactive(&self, enabled: bool) {
        self.out.borrow_mut().is_interactive = enabled;
    }

    /// What the hook at the other end was given.
    pub(crate) fn set_hand(&self, hand: Option<u64>) {
        self.out.borrow_mut().hand = hand;
    }

    pub(crate) fn take_hand(&self) -> Option<u64> {
        self.out.borrow_mut().hand.take()
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.out.borrow().is_dead
    }

    /// Waits until there is room for an answer.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            {
                let out = self.out.borrow();
                if out.owed() < OUTBOX || out.is_dead {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Ends the connection once everything is written.
    pub(crate) fn close(&self) {
        self.out.borrow_mut().is_closing = true;
        self.filled.notify_one();
    }

    pub(crate) fn topics(&self) -> Topics {
        self.out.borrow().topics
    }

    pub(crate) fn set_topics(&self, topics: Topics) {
        self.out.borrow_mut().topics = topics;
    }

    /// Writes what comes in, until it is closed or nobody can be written to.
    pub(crate) async fn write_to(&self, socket: &Socket) {
        while self.write_next(socket).await.is_ok_and(|goes_on| goes_on) {}
        self.out.borrow_mut().is_dead = true;
        self.drained.notify_waiters();
        socket.shutdown();
    }

    /// Writes some of what waits, or waits for something; false where nothing more will come.
    async fn write_next(&self, socket: &Socket) -> std::io::Result<bool> {
        let filled = self.filled.notified();
        let written = {
            let out = self.out.borrow();
            if out.waiting.is_empty() {
                None
            } else {
                Some(socket.write_now(&out.waiting.next()))
            }
        };
        match written {
            None if self.out.borrow().is_closing => return Ok(false),
            None => filled.await,
            Some(Ok(0)) => return Err(ErrorKind::WriteZero.into()),
            Some(Ok(count)) => {
                let mut out = self.out.borrow_mut();
                out.waiting.written(count);
                out.written += count as u64;
                // A listener that came back hears how much it missed, even if nothing else follows.
                out.tell_missed();
                drop(out);
                self.drained.notify_waiters();
            }
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => socket.room().await?,
            Some(Err(error)) => return Err(error),
        }
        Ok(true)
    }
}

impl Out {
    fn owed(&self) -> usize {
        self.waiting.len() + self.held.as_ref().map_or(0, Pieces::len)
    }

    /// Where events go.
    fn events(&mut self) -> &mut Pieces {
        self.held.as_mut().unwrap_or(&mut self.waiting)
    }

    fn tell_missed(&mut self) {
        if self.missed > 0 && self.owed() < OUTBOX / 2 {
            let lagged = Event::Lagged {
                missed: self.missed,
            };
            let mut line = Vec::new();
            event::append(&mut line, &crate::host::clock::local_now(), &lagged);
            self.events().push(&line);
            self.missed = 0;
            self.gave_up = false;
        }
    }

    /// Whether the output should wait for this one.
    fn is_worth_waiting_for(&mut self, now: Instant) -> bool {
        if let Some((written, at)) = &mut self.awaited {
            if *written != self.written {
                (*written, *at) = (self.written, now);
            }
            self.gave_up |= now.saturating_duration_since(*at) >= NO_PROGRESS;
        }
        let is_behind = self.topics.wants(Topic::Output) && self.owed() >= OUTBOX / 2;
        let is_worth_it = is_behind && !self.is_dead && !self.gave_up;
        self.awaited = match self.awaited {
            _ if !is_worth_it => None,
            None => Some((self.written, now)),
            since => since,
        };
        is_worth_it
    }
}

/// How much longer the output may wait for its listeners.
#[derive(Debug)]
struct Patience {
    credit: Duration,
    looked_at: Instant,
    is_waiting: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            credit: CREDIT,
            looked_at: Instant::now(),
            is_waiting: false,
        }
    }
}

impl Patience {
    /// Whether to wait (on), where there is somebody to wait for.
    fn allows(&mut self, is_worth_it: bool, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.looked_at);
        self.looked_at = now;
        self.credit = if self.is_waiting {
            self.credit.saturating_sub(passed)
        } else {
            (self.credit + passed / REFUND).min(CREDIT)
        };
        self.is_waiting = is_worth_it && !self.credit.is_zero();
        self.is_waiting
    }
}

/// All connections of a session.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    patience: RefCell<Patience>,
    outboxes: RefCell<Vec<Weak<Outbox>>>,
    drained: Rc<Notify>,
    listeners: Cell<bool>,
}

impl Hub {
    pub(crate) fn outbox(&self) -> Rc<Outbox> {
        let outbox = Rc::new(Outbox {
            out: RefCell::new(Out {
                waiting: Pieces::default(),
                held: None,
                topics: Topics::default(),
                missed: 0,
                written: 0,
                awaited: None,
                gave_up: false,
                is_interactive: false,
                hand: None,
                is_closing: false,
                is_dead: false,
            }),
            filled: Notify::new(),
            drained: self.drained.clone(),
        });
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

    /// Whether anybody wants to hear of the output.
    pub(crate) fn wants_output(&self) -> bool {
        self.listeners.get()
    }

    /// Looks again who wants what; after every change of a subscription.
    pub(crate) fn recount(&self) {
        let mut wanted = false;
        self.each(|outbox| {
            let out = outbox.out.borrow();
            wanted |= !out.is_dead && out.topics.wants(Topic::Output);
        });
        self.listeners.set(wanted);
    }

    /// Whether anybody wants to hear of this.
    pub(crate) fn wants(&self, topic: Topic) -> bool {
        let mut wanted = false;
        self.each(|outbox| wanted |= outbox.out.borrow().topics.wants(topic));
        wanted
    }

    /// Tells everybody who wants to hear of it.
    pub(crate) fn tell(&self, topic: Topic, event: &Event) {
        let mut line = Vec::new();
        event::append(&mut line, &crate::host::clock::local_now(), event);
        self.publish(topic, &line, 1);
    }

    /// Hands `count` finished event lines to everybody who wants them.
    pub(crate) fn publish(&self, topic: Topic, lines: &[u8], count: u64) {
        let mut shared: Option<Rc<[u8]>> = None;
        self.each(|outbox| {
            let mut out = outbox.out.borrow_mut();
            if out.is_dead || out.is_closing || !out.topics.wants(topic) {
                return;
            }
            out.tell_missed();
            if out.missed > 0 || out.owed() + lines.len() >= OUTBOX {
                out.missed += count;
                return;
            }
            let shared = shared.get_or_insert_with(|| lines.into());
            out.events().push_shared(shared);
            drop(out);
            outbox.filled.notify_one();
        });
    }

    /// Waits for listeners that are behind and do read, as long as the credit lasts. May be broken
    /// off and begun again: the time counts all the same.
    pub(crate) async fn wait_for_readers(&self) {
        loop {
            let drained = self.drained.notified();
            let now = Instant::now();
            let mut is_worth_it = false;
            self.each(|outbox| is_worth_it |= outbox.out.borrow_mut().is_worth_waiting_for(now));
            if !self.patience.borrow_mut().allows(is_worth_it, now) {
                return;
            }
            let _ = tokio::time::timeout(NO_PROGRESS / 10, drained).await;
        }
    }

    /// Closes all connections once what they are owed is written.
    pub(crate) fn close(&self) {
        self.each(Outbox::close);
    }

    /// How many connections there are.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|outbox| {
            if !outbox.out.borrow().is_dead {
                count += 1;
            }
        });
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_waits_within_its_credit_and_no_longer() {
        let begun = Instant::now();
        let mut patience = Patience {
            credit: CREDIT,
            looked_at: begun,
            is_waiting: false,
        };
        let at = |tenths: u32| begun + CREDIT / 10 * tenths;
        // Whoever it waits for, the time is the same for all.
        for tenths in 0..10 {
            assert!(patience.allows(true, at(tenths)), "{tenths}");
        }
        assert!(!patience.allows(true, at(10)));
        // It comes back at a tenth of the time.
        assert!(patience.allows(true, at(20)));
        assert!(!patience.allows(true, at(21)));
        assert!(!patience.allows(false, at(200)));
        for tenths in 200..210 {
            assert!(patience.allows(true, at(tenths)), "{tenths}");
        }
        assert!(!patience.allows(true, at(210)));
    }
}
