//! Output events to a hundred subscribers.

use super::setup::limit::{self, Server};
use super::setup::stage::{PATIENCE, Stage, mark};
use memchr::{memchr_iter, memmem};
use posthaste_lab::bench::{Goal, Table, Unit, middle};
use posthaste_wire::method::Subscribe;
use posthaste_wire::param::Events;
use posthaste_wire::topic::Interest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::Instant;

const LISTENERS: u8 = 100;
const BYTES: usize = 4 << 20;
const ROUNDS: usize = 7;
/// Longer than the line of an event.
const LAST_LINE: usize = 512;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let mut player = stage.session("bot");
    let mut listeners: Vec<_> = (0..LISTENERS)
        .map(|_| {
            let mut connection = stage.connect("bot");
            let events = Events(vec![Interest::Output]);
            connection.call(&Subscribe { events });
            Listener::new(connection.stream.into_inner())
        })
        .collect();
    // The limit writes the bytes that one subscriber gets in a first round.
    listeners[0].kept = Some(Vec::new());
    player.begin(&format!("lines {BYTES} {}", mark(0)));
    read_until_mark(&mut listeners, &mark(0));
    player.wait();
    let events = listeners[0].kept.take().unwrap();
    let whole = usize::from(LISTENERS) * memchr_iter(b'\n', &events).count();
    let file = stage.dir().join("events");
    std::fs::write(&file, events).unwrap();
    let mut server = Server::start(stage, limit::FAN, &[&file]);
    server.send(LISTENERS);
    let mut readers: Vec<_> = (0..LISTENERS)
        .map(|_| Listener::new(server.connect()))
        .collect();
    let [mut ours, mut limits, mut parts] = [const { Vec::new() }; 3];
    for round in 1..=ROUNDS {
        let begun = Instant::now();
        player.begin(&format!("lines {BYTES} {}", mark(round)));
        let lines = read_until_mark(&mut listeners, &mark(round));
        ours.push(lines as f64 / begun.elapsed().as_secs_f64());
        parts.push(lines as f64 / whole as f64);
        player.wait();
        let begun = Instant::now();
        server.send(1);
        let lines = read_until_mark(&mut readers, &mark(0));
        limits.push(lines as f64 / begun.elapsed().as_secs_f64());
        assert_eq!(lines, whole, "the limit leaves nothing out");
    }
    table.turns(
        &format!("events to {LISTENERS} listeners, against bare writes"),
        Unit::PerSecond,
        &ours,
        &limits,
        &Goal::None,
    );
    let part = 100.0 * middle(parts);
    table.line(&format!("  of the events the listeners got {part:.1} %"));
}

/// Reader of a connection with events.
struct Listener {
    stream: UnixStream,
    /// All received bytes, if wanted.
    kept: Option<Vec<u8>>,
    lines: usize,
    /// End of the received bytes, which may contain the beginning of a mark.
    tail: Vec<u8>,
    is_done: bool,
}

impl Listener {
    fn new(stream: UnixStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            kept: None,
            lines: 0,
            tail: Vec::new(),
            is_done: false,
        }
    }

    /// Read once. Return whether the mark and the end of its line were received.
    fn read(&mut self, buffer: &mut [u8], mark: &memmem::Finder<'_>) {
        let count = match self.stream.read(buffer) {
            Ok(0) => panic!("the connection is closed"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("cannot read events: {error}"),
        };
        let new = &buffer[..count];
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(new);
        }
        self.lines += memchr_iter(b'\n', new).count();
        // The mark is in the last line.
        self.tail
            .extend_from_slice(&new[new.len().saturating_sub(LAST_LINE)..]);
        self.is_done = new.ends_with(b"\n") && mark.find(&self.tail).is_some();
        let end = self.tail.len().saturating_sub(LAST_LINE);
        self.tail.drain(..end);
    }
}

/// Read until all connections have received the mark. Return the number of lines.
fn read_until_mark(listeners: &mut [Listener], mark: &str) -> usize {
    let mark = memmem::Finder::new(mark);
    let patience = Timespec::try_from(PATIENCE).unwrap();
    let mut buffer = vec![0; 64 << 10];
    for listener in &mut *listeners {
        listener.lines = 0;
        listener.is_done = false;
        listener.tail.clear();
    }
    loop {
        let waiting: Vec<_> = (0..listeners.len())
            .filter(|at| !listeners[*at].is_done)
            .collect();
        if waiting.is_empty() {
            return listeners.iter().map(|listener| listener.lines).sum();
        }
        let mut fds: Vec<_> = waiting
            .iter()
            .map(|at| PollFd::new(&listeners[*at].stream, PollFlags::IN))
            .collect();
        assert_ne!(poll(&mut fds, Some(&patience)), Ok(0), "nothing comes");
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (at, _) in waiting.iter().zip(ready).filter(|(_, ready)| *ready) {
            listeners[*at].read(&mut buffer, &mark);
        }
    }
}
