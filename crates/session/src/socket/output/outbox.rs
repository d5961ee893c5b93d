//! The outbox of one connection: responses and events that wait to be written.

use super::write_queue::WriteQueue;
use crate::host::clock;
use crate::socket::Socket;
use posthaste_wire::event::{self, Event};
use posthaste_wire::topic::{Topic, Topics};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How many bytes may wait for one connection. Above that, requests wait and events are dropped.
const MAX_OUTBOX_BYTES: usize = 1 << 20;
/// How long the output waits for a subscriber that reads nothing at all.
pub(super) const NO_PROGRESS_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Outbox {
    state: RefCell<OutboxState>,
    /// Notified when there are bytes to write, or the outbox closes.
    filled: Notify,
    /// Notified when bytes of any outbox are written.
    drained: Rc<Notify>,
}

#[derive(Debug, Default)]
struct OutboxState {
    queue: WriteQueue,
    /// While a batch runs: the events that must follow its response.
    held_events: Option<WriteQueue>,
    topics: Topics,
    /// The number of dropped events that the subscriber does not know about yet.
    missed: u64,
    written: u64,
    /// While the output waits for this connection: `written` at its last progress, and the time.
    progress: Option<(u64, Instant)>,
    /// Whether the connection made no progress for [`NO_PROGRESS_TIMEOUT`].
    is_stalled: bool,
    is_interactive: bool,
    /// The offer that a hook was given and has not confirmed.
    hook_offer: Option<u64>,
    is_closing: bool,
    is_dead: bool,
}

impl Outbox {
    pub(super) fn new(drained: Rc<Notify>) -> Self {
        Self {
            state: RefCell::default(),
            filled: Notify::new(),
            drained,
        }
    }

    /// Queue a response. Requesters wait for room before the next request, see
    /// [`Self::wait_for_room`].
    pub(crate) fn push(&self, response: &[u8]) {
        self.state.borrow_mut().queue.push(response);
        self.filled.notify_one();
    }

    /// Hold events back until the next [`Self::release`].
    pub(crate) fn hold_events(&self) {
        self.state.borrow_mut().held_events.get_or_insert_default();
    }

    /// Queue a response, and after it the events that were held back.
    pub(crate) fn release(&self, response: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.queue.push(response);
        let held = state.held_events.take().unwrap_or_default();
        state.queue.append(held);
        drop(state);
        self.filled.notify_one();
    }

    /// Whether this connection has turned on interactive mode.
    pub(crate) fn is_interactive(&self) -> bool {
        self.state.borrow().is_interactive
    }

    pub(crate) fn set_interactive(&self, enabled: bool) {
        self.state.borrow_mut().is_interactive = enabled;
    }

    pub(crate) fn set_hook_offer(&self, offer: Option<u64>) {
        self.state.borrow_mut().hook_offer = offer;
    }

    /// Return and clear the offer that the hook on this connection has not confirmed.
    pub(crate) fn take_hook_offer(&self) -> Option<u64> {
        self.state.borrow_mut().hook_offer.take()
    }

    /// Whether the connection is closed for writing.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.borrow().is_dead
    }

    /// Wait until there is room for a response, or the connection is dead.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let drained = self.drained.notified();
            {
                let state = self.state.borrow();
                if state.unwritten() < MAX_OUTBOX_BYTES || state.is_dead {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Close the connection once everything is written.
    pub(crate) fn close(&self) {
        self.state.borrow_mut().is_closing = true;
        self.filled.notify_one();
    }

    pub(crate) fn topics(&self) -> Topics {
        self.state.borrow().topics
    }

    pub(crate) fn set_topics(&self, topics: Topics) {
        self.state.borrow_mut().topics = topics;
    }

    pub(super) fn wants(&self, topic: Topic) -> bool {
        self.state.borrow().topics.wants(topic)
    }

    /// Queue `count` serialized events if this connection subscribes to their topic and has room.
    pub(super) fn push_events(&self, topic: Topic, lines: &Rc<[u8]>, count: u64) {
        let mut state = self.state.borrow_mut();
        if state.is_dead || state.is_closing || !state.topics.wants(topic) {
            return;
        }
        state.report_missed();
        if state.missed > 0 || state.unwritten() + lines.len() >= MAX_OUTBOX_BYTES {
            state.missed += count;
            return;
        }
        state.events().push_shared(lines);
        drop(state);
        self.filled.notify_one();
    }

    /// Whether the output must wait for this connection: it subscribes to the output, is behind,
    /// and still reads.
    pub(super) fn delays_output(&self, now: Instant) -> bool {
        self.state.borrow_mut().delays_output(now)
    }

    /// Write the queue to the socket until the outbox is closed or the connection fails.
    pub(crate) async fn write_to(&self, socket: &Socket) {
        while self.write_next(socket).await.is_ok_and(|goes_on| goes_on) {}
        self.state.borrow_mut().is_dead = true;
        self.drained.notify_waiters();
        socket.shutdown();
    }

    /// Write some of the queue, or wait for bytes. Return false at the end.
    async fn write_next(&self, socket: &Socket) -> std::io::Result<bool> {
        let filled = self.filled.notified();
        let written = {
            let state = self.state.borrow();
            if state.queue.is_empty() {
                None
            } else {
                Some(socket.write_now(&state.queue.next()))
            }
        };
        match written {
            None if self.state.borrow().is_closing => return Ok(false),
            None => filled.await,
            Some(Ok(0)) => return Err(ErrorKind::WriteZero.into()),
            Some(Ok(count)) => {
                let mut state = self.state.borrow_mut();
                state.queue.advance(count);
                state.written += count as u64;
                // A subscriber that reads again learns how much it missed, even if no event
                // follows.
                state.report_missed();
                drop(state);
                self.drained.notify_waiters();
            }
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => socket.writable().await?,
            Some(Err(error)) => return Err(error),
        }
        Ok(true)
    }
}

impl OutboxState {
    fn unwritten(&self) -> usize {
        self.queue.len() + self.held_events.as_ref().map_or(0, WriteQueue::len)
    }

    /// Return the queue for events.
    fn events(&mut self) -> &mut WriteQueue {
        self.held_events.as_mut().unwrap_or(&mut self.queue)
    }

    /// Queue an event with the number of missed events, once there is enough room.
    fn report_missed(&mut self) {
        if self.missed > 0 && self.unwritten() < MAX_OUTBOX_BYTES / 2 {
            let lagged = Event::Lagged {
                missed: self.missed,
            };
            let mut line = Vec::new();
            event::append(&mut line, &clock::local_now(), &lagged);
            self.events().push(&line);
            self.missed = 0;
            self.is_stalled = false;
        }
    }

    fn delays_output(&mut self, now: Instant) -> bool {
        if let Some((written, at)) = &mut self.progress {
            if *written != self.written {
                (*written, *at) = (self.written, now);
            }
            self.is_stalled |= now.saturating_duration_since(*at) >= NO_PROGRESS_TIMEOUT;
        }
        let is_behind =
            self.topics.wants(Topic::Output) && self.unwritten() >= MAX_OUTBOX_BYTES / 2;
        let delays = is_behind && !self.is_dead && !self.is_stalled;
        self.progress = match self.progress {
            _ if !delays => None,
            None => Some((self.written, now)),
            since => since,
        };
        delays
    }
}
