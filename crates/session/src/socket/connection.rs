//! One connection to a session's socket, from its first byte to its last.
//!
//! Hands lines to the dispatcher one after the other, and turns into an attached terminal where it
//! is asked to. What it reads is data from outside: nothing that comes in here can stop the
//! session or its other connections.

use crate::Shared;
use crate::host::log;
use crate::socket::attached;
use crate::socket::dispatch::{self, Next};
use crate::socket::hub::Outbox;
use crate::socket::lines::{Line, Lines};
use crate::socket::peer::Peer;
use crate::socket::{NO_DESCRIPTORS, Socket};
use posthaste_wire::plain;
use posthaste_wire::rpc::{self, Failure, Id, Said};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;
use tracing::warn;

/// How many connections a session has at once; one more is told so and closed.
const CONNECTIONS: usize = 4_096;

/// How long a connection may take to send its first line.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many connections may be without a first line before the timeout is shortened.
const MAX_SILENT_CONNECTIONS: usize = 1_024;
const CROWDED_FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(5);

/// Accepts connections for as long as the session lives.
pub(crate) async fn accept(shared: Rc<Shared>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = shared.clone();
                tokio::task::spawn_local(serve(shared, stream));
            }
            Err(error) => {
                warn!(target: log::VIEWERS, "cannot accept a connection: {error}");
                tokio::time::sleep(NO_DESCRIPTORS).await;
            }
        }
    }
}

/// How a conversation ended.
enum Ended {
    /// By what was said; what is owed is still written.
    Closed,
    /// Nothing can be written any more, or nothing more is to be.
    Written,
    Attach(plain::Attach),
}

async fn serve(shared: Rc<Shared>, stream: UnixStream) {
    let Ok(peer) = Peer::of(&stream) else {
        return;
    };
    let socket = match Socket::of(stream) {
        Ok(socket) => Rc::new(socket),
        Err(error) => return warn!(target: log::VIEWERS, "a connection is let go: {error}"),
    };
    let outbox = shared.hub.outbox();
    let refusal = if !peer.is_this_user() {
        Some("this session belongs to another user")
    } else if shared.hub.count() > CONNECTIONS {
        Some("too many connections")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        outbox.push(&rpc::refusal(&Id::null(), &Failure::internal(refusal)));
        outbox.close();
        return outbox.write_to(&socket).await;
    }
    let mut lines = Lines::new(&socket, shared.connections.room.clone());
    let ended = {
        let mut writing = std::pin::pin!(outbox.write_to(&socket));
        let ended = tokio::select! {
            ended = converse(&shared, &outbox, &peer, &mut lines) => ended,
            () = &mut writing => Ended::Written,
        };
        if matches!(ended, Ended::Closed) {
            outbox.close();
            writing.await;
        }
        ended
    };
    match ended {
        Ended::Closed | Ended::Written => {}
        Ended::Attach(request) => {
            attached::serve(&shared, &request, lines.into_rest(), &socket).await;
        }
    }
    dispatch::leave(&shared, &outbox).await;
    drop(outbox);
    shared.hub.recount();
}

async fn converse(
    shared: &Rc<Shared>,
    outbox: &Rc<Outbox>,
    peer: &Peer,
    lines: &mut Lines<'_>,
) -> Ended {
    let mut waiting = Some(FirstLineWait::begin(shared));
    loop {
        outbox.room().await;
        let line = match &waiting {
            Some(waiting) => waiting.first(lines).await,
            None => Some(lines.next().await),
        };
        let Some(line) = line else {
            let late = Failure::internal("no request arrived in time; the connection is closed");
            outbox.push(&rpc::refusal(&Id::null(), &late));
            return Ended::Closed;
        };
        let is_first = waiting.is_some();
        let said = match line {
            Line::Whole(line) if is_first => rpc::read(&line),
            Line::Whole(line) => rpc::read_on(&line),
            Line::TooLong => {
                outbox.push(&rpc::refusal(&Id::null(), &Failure::line_too_long()));
                continue;
            }
            Line::NoRoom => {
                let busy = Failure::internal("too much is being sent to this session at once");
                outbox.push(&rpc::refusal(&Id::null(), &busy));
                return Ended::Closed;
            }
            Line::End => return Ended::Closed,
        };
        match said {
            Said::Blank => continue,
            Said::One(request) => dispatch::one(shared, outbox, peer, request).await,
            Said::Batch(requests) => dispatch::batch(shared, outbox, peer, requests).await,
            Said::Plain(request) => match dispatch::plain(shared, outbox, peer, request).await {
                Next::Close => return Ended::Closed,
                Next::Attach(request) => return Ended::Attach(request),
            },
        }
        waiting = None;
    }
}

/// A connection that has not sent its first line yet. It is closed after a timeout, so that silent
/// connections do not use up the descriptors of others.
struct FirstLineWait<'a> {
    shared: &'a Shared,
    until: Instant,
}

impl<'a> FirstLineWait<'a> {
    fn begin(shared: &'a Shared) -> Self {
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

    /// Return the next line, or `None` if it is not complete in time.
    async fn first(&self, lines: &mut Lines<'_>) -> Option<Line> {
        let line = tokio::time::timeout_at(self.until, lines.next()).await;
        line.ok()
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
