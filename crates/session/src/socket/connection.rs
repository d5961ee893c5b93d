//! One connection to a session's socket, from its first byte to its last.
//!
//! Passes lines to the dispatcher one after the other, and becomes an attached terminal on request.
//! No input can stop the session or its other connections.

use crate::Shared;
use crate::host::log;
use crate::socket::attached;
use crate::socket::dispatch;
use crate::socket::dispatch::plain_dialect::{self, Next};
use crate::socket::lines::{InputLine, LineReader};
use crate::socket::output::outbox::Outbox;
use crate::socket::peer::Peer;
use crate::socket::{NO_DESCRIPTORS_DELAY, Socket};
use posthaste_wire::plain;
use posthaste_wire::rpc::{self, Failure, Id, Said};
use rustix::process::Resource;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;
use tracing::warn;

/// Limit for the connections of a session. Further connections are refused with an error.
const MAX_CONNECTIONS: usize = 4_096;

/// How long a connection may take to send its first line.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many connections may be without a first line before the timeout is shortened.
const MAX_SILENT_CONNECTIONS: usize = 1_024;
const CROWDED_FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many silent connections are closed if no descriptor is free.
const SHED_CONNECTIONS: usize = 64;

/// Accepts connections for as long as the session lives.
pub(crate) async fn accept(shared: Rc<Shared>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if shared.connections.silent.get() >= silent_limit() {
                    shed_silent(&shared, 1);
                }
                let shared = shared.clone();
                tokio::task::spawn_local(serve(shared, stream));
            }
            Err(error) => {
                warn!(target: log::VIEWERS, "cannot accept a connection: {error}");
                shed_silent(&shared, SHED_CONNECTIONS);
                tokio::time::sleep(NO_DESCRIPTORS_DELAY).await;
            }
        }
    }
}

/// Return how many connections may be silent at once: half of the descriptors that this process may
/// have, so that silent connections leave room for requests.
fn silent_limit() -> usize {
    let files = rustix::process::getrlimit(Resource::Nofile).current;
    files.map_or(usize::MAX, |files| {
        usize::try_from(files / 2).unwrap_or(usize::MAX)
    })
}

/// Close up to `count` silent connections, the oldest first.
fn shed_silent(shared: &Shared, count: usize) {
    for _ in 0..count.min(shared.connections.silent.get()) {
        shared.connections.shed.notify_one();
    }
}

/// How the exchange of requests ended.
enum RequestsEnd {
    /// No further request is read. The outbox is still to be written.
    Closed,
    /// Nothing more can or must be written.
    Written,
    Attach(plain::Attach),
}

async fn serve(shared: Rc<Shared>, stream: UnixStream) {
    let Ok(peer) = Peer::of(&stream) else {
        return;
    };
    let socket = match Socket::new(stream) {
        Ok(socket) => Rc::new(socket),
        Err(error) => return warn!(target: log::VIEWERS, "a connection is closed: {error}"),
    };
    let outbox = shared.hub.outbox();
    let refusal = if !peer.is_this_user() {
        Some("this session belongs to another user")
    } else if shared.hub.count() > MAX_CONNECTIONS {
        Some("too many connections")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        outbox.push(&rpc::refusal(&Id::null(), &Failure::internal(refusal)));
        outbox.close();
        return outbox.write_to(&socket).await;
    }
    let mut lines = LineReader::new(&socket, shared.connections.buffered_bytes.clone());
    let ended = {
        let mut writing = std::pin::pin!(outbox.write_to(&socket));
        let ended = tokio::select! {
            ended = serve_requests(&shared, &outbox, &peer, &mut lines) => ended,
            () = &mut writing => RequestsEnd::Written,
        };
        if matches!(ended, RequestsEnd::Closed) {
            outbox.close();
            writing.await;
        }
        ended
    };
    match ended {
        RequestsEnd::Closed | RequestsEnd::Written => {}
        RequestsEnd::Attach(request) => {
            attached::serve(&shared, &request, lines.into_rest(), &socket).await;
        }
    }
    dispatch::disconnected(&shared, &outbox).await;
    drop(outbox);
    shared.hub.update_subscriptions();
}

async fn serve_requests(
    shared: &Rc<Shared>,
    outbox: &Rc<Outbox>,
    peer: &Peer,
    lines: &mut LineReader<'_>,
) -> RequestsEnd {
    let mut first_line = Some(FirstLineWait::start(shared));
    loop {
        outbox.wait_for_room().await;
        let line = match &first_line {
            Some(wait) => wait.next(lines).await,
            None => Ok(lines.next().await),
        };
        let line = match line {
            Ok(line) => line,
            Err(why) => {
                outbox.push(&rpc::refusal(&Id::null(), &Failure::internal(why)));
                return RequestsEnd::Closed;
            }
        };
        let is_first = first_line.is_some();
        let requests = match line {
            InputLine::Whole(line) if is_first => rpc::read(&line),
            InputLine::Whole(line) => rpc::read_on(&line),
            InputLine::TooLong => {
                outbox.push(&rpc::refusal(&Id::null(), &Failure::line_too_long()));
                continue;
            }
            InputLine::NoRoom => {
                let busy = Failure::internal("the input buffers of this session are full");
                outbox.push(&rpc::refusal(&Id::null(), &busy));
                return RequestsEnd::Closed;
            }
            InputLine::End => return RequestsEnd::Closed,
        };
        match requests {
            Said::Blank => continue,
            Said::One(request) => dispatch::one(shared, outbox, peer, request).await,
            Said::Batch(requests) => dispatch::batch(shared, outbox, peer, requests).await,
            Said::Plain(request) => {
                match plain_dialect::answer(shared, outbox, peer, request).await {
                    Next::Close => return RequestsEnd::Closed,
                    Next::Attach(request) => return RequestsEnd::Attach(request),
                }
            }
        }
        first_line = None;
    }
}

/// A connection that has not sent its first line yet. It is closed after a timeout, so that silent
/// connections do not use up the descriptors of others.
struct FirstLineWait<'a> {
    shared: &'a Shared,
    until: Instant,
}

impl<'a> FirstLineWait<'a> {
    fn start(shared: &'a Shared) -> Self {
        let count = shared.connections.silent.get() + 1;
        shared.connections.silent.set(count);
        let timeout = match count {
            ..=MAX_SILENT_CONNECTIONS => FIRST_LINE_TIMEOUT,
            _ => CROWDED_FIRST_LINE_TIMEOUT,
        };
        Self {
            shared,
            until: Instant::now() + timeout,
        }
    }

    /// Return the first line, or why the connection is not to wait for it any longer.
    async fn next(&self, lines: &mut LineReader<'_>) -> Result<InputLine, &'static str> {
        tokio::select! {
            // A line that has arrived counts, even if the connection is to be closed now.
            biased;
            line = lines.next() => Ok(line),
            () = tokio::time::sleep_until(self.until) => {
                Err("no request arrived in time; the connection is closed")
            }
            () = self.shared.connections.shed.notified() => {
                Err("too many connections are silent; this one is closed")
            }
        }
    }
}

impl Drop for FirstLineWait<'_> {
    fn drop(&mut self) {
        self.shared
            .connections
            .silent
            .set(self.shared.connections.silent.get() - 1);
    }
}
