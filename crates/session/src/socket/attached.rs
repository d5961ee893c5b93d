//! An attached terminal: its keys go to the program, the program's output to it.
//!
//! The two directions do not wait for each other. A viewer that stops reading loses output and
//! is drawn anew when it reads again; one whose keys find the program not reading waits alone.

use crate::Shared;
use crate::host::log;
use crate::pty::child::unread_by_peer;
use crate::pty::keyboard::Typed;
use crate::pty::terminal::Ask;
use crate::pty::viewer::{Framed, Outlet, Viewer, ViewerId};
use crate::socket::Socket;
use crate::socket::lines::{Rest, Taken};
use crate::state::StateRequest;
use posthaste_screen::Size;
use posthaste_wire::frames::{self, Decoder, Frame, FromClient, ToClient};
use posthaste_wire::plain::{Attach, Reply};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

/// Our own client, which reads the reply and nothing past it.
const OURS: &str = "ph";
/// How often we look whether the reply has been read: at first, and after a while.
const LOOK: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(50);
/// How often we look whether a viewer whose keys wait is still there.
const HANG_UP: Duration = Duration::from_millis(100);
/// The size of a client that does not say any.
const USUAL: Size = Size { cols: 80, rows: 24 };

pub(crate) async fn serve(shared: &Rc<Shared>, request: &Attach, rest: Rest, socket: &Rc<Socket>) {
    if socket.write_all(&Reply::ok().line()).await.is_err() {
        return;
    }
    if request.client != OURS {
        let mut ended = shared.watches.ended.clone();
        tokio::select! {
            () = wait_until_read(socket) => {}
            _ = ended.wait_for(Option::is_some) => return,
        }
    }
    let id = shared.next_viewer();
    let outlet = Outlet::new(socket.clone());
    let size = size_of(request.cols, request.rows);
    let (viewer, waiting) = Viewer::new(id, size, outlet.clone());
    if !shared.terminal.ask(Ask::Attach(viewer)).await {
        return;
    }
    let (client, read_only) = (&request.client, request.read_only);
    let size = format_args!("{}x{}", size.cols, size.rows);
    info!(target: log::VIEWERS, viewer = id.0, client, %size, read_only, "attached");
    if request.take && !request.read_only {
        shared.request(StateRequest::TakeKeyboard(id)).await;
    }
    let keys = Keys {
        shared,
        id,
        is_read_only: request.read_only,
        socket,
        decoder: Decoder::default(),
        room: rest.room,
    };
    // A task of its own: a key does not make it look whether there is something to show.
    let mut showing = JoinSet::new();
    showing.spawn_local(show(shared.clone(), id, waiting, outlet));
    tokio::select! {
        () = keys.read(rest.bytes) => {}
        _ = showing.join_next() => {}
    }
    showing.shutdown().await;
    shared.terminal.ask(Ask::Detach(id)).await;
    shared.request(StateRequest::ReleaseKeyboard(id)).await;
    info!(target: log::VIEWERS, viewer = id.0, "detached");
    socket.shutdown();
}

/// Some clients read their reply through a buffer and throw away what else is in it. So nothing
/// follows before the reply is gone, be it read or because the client is gone itself.
async fn wait_until_read(socket: &Socket) {
    let mut pause = LOOK;
    loop {
        match unread_by_peer(socket) {
            Ok(0) => return,
            Ok(_) => tokio::time::sleep(pause).await,
            Err(_) => return tokio::time::sleep(LATER).await,
        }
        pause = LATER.min(pause + pause / 2);
    }
}

fn size_of(cols: u16, rows: u16) -> Size {
    Size {
        cols: if cols == 0 { USUAL.cols } else { cols },
        rows: if rows == 0 { USUAL.rows } else { rows },
    }
}

/// Writes the output, and what else a viewer should know, until one of the two is gone.
async fn show(
    shared: Rc<Shared>,
    id: ViewerId,
    mut waiting: mpsc::Receiver<Framed>,
    outlet: Rc<Outlet>,
) {
    let mut taken = shared.watches.taken.clone();
    let mut ended = shared.watches.ended.clone();
    let mut notice = shared.watches.notice.clone();
    loop {
        let bytes = tokio::select! {
            biased;
            Ok(()) = notice.changed() => {
                let text = notice.borrow_and_update().clone();
                control(&ToClient::Notice { text })
            }
            Ok(()) = taken.changed() => {
                let owner = *taken.borrow_and_update();
                control(&ToClient::Keyboard {
                    taken: owner.is_some(),
                    yours: owner == Some(id),
                })
            }
            frame = waiting.recv() => match frame {
                Some(frame) => frame,
                None => return,
            },
            how = ended.wait_for(Option::is_some) => {
                let how = how.ok().and_then(|how| how.clone()).unwrap_or_default();
                if show_last(&shared, id, &mut waiting, &outlet).await.is_err() {
                    return;
                }
                let _ = outlet.write_all(&control(&ToClient::Ended { how })).await;
                return;
            }
        };
        if outlet.write_all(&bytes).await.is_err() {
            return;
        }
        if outlet.is_behind() && waiting.is_empty() {
            shared.terminal.ask(Ask::Redraw(id)).await;
        }
    }
}

/// Writes what is still to be seen of a session that has ended: what waits, and the last screen
/// where this viewer had fallen behind or has only just come.
async fn show_last(
    shared: &Shared,
    id: ViewerId,
    waiting: &mut mpsc::Receiver<Framed>,
    outlet: &Outlet,
) -> std::io::Result<()> {
    loop {
        // Once this is answered, what was asked before it has been done.
        shared.terminal.is_unwatched().await;
        while let Ok(frame) = waiting.try_recv() {
            outlet.write_all(&frame).await?;
        }
        if !outlet.is_behind() || !shared.terminal.ask(Ask::Redraw(id)).await {
            return Ok(());
        }
    }
}

fn control(said: &ToClient) -> Framed {
    let payload = serde_json::to_vec(said).unwrap_or_default();
    frames::encode(frames::CONTROL, &payload)
}

/// Waits until the other side is gone. What it has sent before is still to be read, so this can
/// only look now and then.
async fn hung_up(socket: &Socket) {
    loop {
        tokio::time::sleep(HANG_UP).await;
        if let Ok(true) = tokio::time::timeout(HANG_UP, socket.is_hung_up()).await {
            return;
        }
    }
}

/// What comes from the viewer.
struct Keys<'a> {
    shared: &'a Shared,
    id: ViewerId,
    is_read_only: bool,
    socket: &'a Socket,
    decoder: Decoder,
    /// What it has sent and is not whole yet takes up some.
    room: Taken,
}

impl Keys<'_> {
    async fn read(mut self, bytes: Vec<u8>) {
        self.decoder.feed(&bytes);
        drop(bytes);
        let mut buffer = Vec::with_capacity(16 * 1024);
        loop {
            loop {
                match self.decoder.next_frame() {
                    Ok(Some(frame)) => tokio::select! {
                        biased;
                        () = self.take(frame) => {}
                        // A program that does not read must not keep somebody who has left.
                        () = hung_up(self.socket) => return,
                    },
                    Ok(None) if self.room.take(self.decoder.kept()) => break,
                    Ok(None) => {
                        self.let_go(&"too much is being sent at once");
                        return;
                    }
                    Err(error) => {
                        self.let_go(&error);
                        return;
                    }
                }
            }
            buffer.clear();
            match self.socket.read_onto(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => self.decoder.feed(&buffer),
            }
        }
    }

    fn let_go(&self, why: &dyn std::fmt::Display) {
        warn!(target: log::VIEWERS, viewer = self.id.0, %why, "connection closed");
    }

    async fn take(&self, frame: Frame) {
        match frame {
            Frame::Data(keys) => {
                let owner = *self.shared.watches.taken.borrow();
                let is_locked_out = owner.is_some_and(|owner| owner != self.id);
                if !self.is_read_only && !is_locked_out && !keys.is_empty() {
                    self.shared.keyboard.type_in(Typed::Keys(keys)).await;
                }
            }
            Frame::Control(said) => match serde_json::from_slice(&said) {
                Ok(FromClient::Resize { cols, rows }) => {
                    let size = size_of(cols, rows);
                    self.shared.terminal.ask(Ask::Resize(self.id, size)).await;
                }
                Ok(FromClient::Take) if !self.is_read_only => {
                    self.shared
                        .request(StateRequest::TakeKeyboard(self.id))
                        .await;
                }
                Ok(FromClient::Take) => {}
                Ok(FromClient::Release) => {
                    self.shared
                        .request(StateRequest::ReleaseKeyboard(self.id))
                        .await
                }
                Ok(FromClient::Redraw) => {
                    self.shared.terminal.ask(Ask::Redraw(self.id)).await;
                }
                // Of a later version, or of another program.
                Err(_) => {}
            },
            Frame::Unknown(_) => {}
        }
    }
}
