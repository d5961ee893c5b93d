//! The connection of an attached terminal: passes its keys to the program, and output to it.
//!
//! The two directions do not wait for each other. A viewer that stops reading misses output and is
//! redrawn when it reads again. If the program does not read keys, only the viewer that sent them
//! waits.

use crate::Shared;
use crate::host::log;
use crate::pty::child::unread_by_peer;
use crate::pty::draft::LineFeed;
use crate::pty::keyboard::KeyboardInput;
use crate::pty::terminal::TerminalRequest;
use crate::pty::viewer::{Framed, Viewer, ViewerId, ViewerWriter};
use crate::socket::Socket;
use crate::socket::lines::{BufferShare, Rest};
use crate::state::StateRequest;
use posthaste_screen::Size;
use posthaste_wire::frames::{self, Decoder, Frame, FromClient, ToClient};
use posthaste_wire::plain::{Attach, Reply};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

/// Name of our own client, which never reads past the reply to `attach`.
const PH_CLIENT: &str = "ph";
/// First interval between checks whether the client has read the reply; later ones are longer.
const MIN_REPLY_CHECK_INTERVAL: Duration = Duration::from_millis(1);
const MAX_REPLY_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between checks whether a viewer whose keys wait has hung up.
const HANG_UP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Size of a client that sends none.
const DEFAULT_SIZE: Size = Size { cols: 80, rows: 24 };

pub(crate) async fn serve(shared: &Rc<Shared>, request: &Attach, rest: Rest, socket: &Rc<Socket>) {
    if socket.write_all(&Reply::ok().line()).await.is_err() {
        return;
    }
    if request.client != PH_CLIENT {
        let mut ended = shared.watches.ended.clone();
        tokio::select! {
            () = wait_until_read(socket) => {}
            _ = ended.wait_for(Option::is_some) => return,
        }
    }
    let id = shared.next_viewer();
    let writer = ViewerWriter::new(socket.clone());
    let size = size_of(request.cols, request.rows);
    let (viewer, queue) = Viewer::new(id, size, writer.clone());
    if !shared
        .terminal
        .request(TerminalRequest::Attach(viewer))
        .await
    {
        return;
    }
    let (client, read_only) = (&request.client, request.read_only);
    let size = format_args!("{}x{}", size.cols, size.rows);
    info!(target: log::VIEWERS, viewer = id.0, client, %size, read_only, "attached");
    if request.take && !request.read_only {
        shared.request(StateRequest::TakeKeyboard(id)).await;
    }
    let input = ViewerInput {
        shared,
        id,
        is_read_only: request.read_only,
        socket,
        decoder: Decoder::default(),
        share: rest.share,
    };
    // Output has its own task, which keys do not wake.
    let mut output = JoinSet::new();
    output.spawn_local(write_output(shared.clone(), id, queue, writer));
    tokio::select! {
        () = input.read(rest.bytes) => {}
        _ = output.join_next() => {}
    }
    output.shutdown().await;
    shared.terminal.request(TerminalRequest::Detach(id)).await;
    shared.request(StateRequest::ReleaseKeyboard(id)).await;
    info!(target: log::VIEWERS, viewer = id.0, "detached");
    socket.shutdown();
}

/// Wait until the client has read its reply, or has hung up. Some clients read the reply through a
/// buffer and drop the bytes after it.
async fn wait_until_read(socket: &Socket) {
    let mut pause = MIN_REPLY_CHECK_INTERVAL;
    loop {
        match unread_by_peer(socket) {
            Ok(0) => return,
            Ok(_) => tokio::time::sleep(pause).await,
            Err(_) => return tokio::time::sleep(MAX_REPLY_CHECK_INTERVAL).await,
        }
        pause = MAX_REPLY_CHECK_INTERVAL.min(pause + pause / 2);
    }
}

fn size_of(cols: u16, rows: u16) -> Size {
    Size {
        cols: if cols == 0 { DEFAULT_SIZE.cols } else { cols },
        rows: if rows == 0 { DEFAULT_SIZE.rows } else { rows },
    }
}

/// Write output, notices and changes of the keyboard's owner, until the viewer or the session ends.
async fn write_output(
    shared: Rc<Shared>,
    id: ViewerId,
    mut queue: mpsc::Receiver<Framed>,
    writer: Rc<ViewerWriter>,
) {
    let mut keyboard_owner = shared.watches.keyboard_owner.clone();
    let mut ended = shared.watches.ended.clone();
    let mut notice = shared.watches.notice.clone();
    loop {
        let bytes = tokio::select! {
            biased;
            Ok(()) = notice.changed() => {
                let text = notice.borrow_and_update().clone();
                control(&ToClient::Notice { text })
            }
            Ok(()) = keyboard_owner.changed() => {
                let owner = *keyboard_owner.borrow_and_update();
                control(&ToClient::Keyboard {
                    taken: owner.is_some(),
                    yours: owner == Some(id),
                })
            }
            frame = queue.recv() => match frame {
                Some(frame) => frame,
                None => return,
            },
            how = ended.wait_for(Option::is_some) => {
                let how = how.ok().and_then(|how| how.clone()).unwrap_or_default();
                if write_last(&shared, id, &mut queue, &writer).await.is_err() {
                    return;
                }
                let _ = writer.write_all(&control(&ToClient::Ended { how })).await;
                return;
            }
        };
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
        if writer.is_behind() && queue.is_empty() {
            shared.terminal.request(TerminalRequest::Redraw(id)).await;
        }
    }
}

/// Write the queued frames of a session that has ended, and the last screen if this viewer is
/// behind.
async fn write_last(
    shared: &Shared,
    id: ViewerId,
    queue: &mut mpsc::Receiver<Framed>,
    writer: &ViewerWriter,
) -> std::io::Result<()> {
    loop {
        // The terminal answers requests in order, so earlier redraws are queued once this returns.
        shared.terminal.is_unwatched().await;
        while let Ok(frame) = queue.try_recv() {
            writer.write_all(&frame).await?;
        }
        if !writer.is_behind() || !shared.terminal.request(TerminalRequest::Redraw(id)).await {
            return Ok(());
        }
    }
}

fn control(message: &ToClient) -> Framed {
    let payload = serde_json::to_vec(message).unwrap_or_default();
    frames::encode(frames::CONTROL, &payload)
}

/// Wait until the client hangs up. Unread input keeps the socket readable, so this polls.
async fn hung_up(socket: &Socket) {
    loop {
        tokio::time::sleep(HANG_UP_CHECK_INTERVAL).await;
        if let Ok(true) = tokio::time::timeout(HANG_UP_CHECK_INTERVAL, socket.is_hung_up()).await {
            return;
        }
    }
}

/// Reads frames from the viewer: keys and control messages.
struct ViewerInput<'a> {
    shared: &'a Shared,
    id: ViewerId,
    is_read_only: bool,
    socket: &'a Socket,
    decoder: Decoder,
    /// Accounts for the bytes of an incomplete frame.
    share: BufferShare,
}

impl ViewerInput<'_> {
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
                        // The program may never read the keys of a viewer that has left.
                        () = hung_up(self.socket) => return,
                    },
                    Ok(None) if self.share.resize(self.decoder.kept()) => break,
                    Ok(None) => {
                        self.log_closed(&"too much is being sent at once");
                        return;
                    }
                    Err(error) => {
                        self.log_closed(&error);
                        return;
                    }
                }
            }
            buffer.clear();
            match self.socket.read_into(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => self.decoder.feed(&buffer),
            }
        }
    }

    fn log_closed(&self, why: &dyn std::fmt::Display) {
        warn!(target: log::VIEWERS, viewer = self.id.0, %why, "connection closed");
    }

    async fn take(&self, frame: Frame) {
        let &Self { shared, id, .. } = self;
        let message = match frame {
            Frame::Data(bytes) => {
                let owner = *shared.watches.keyboard_owner.borrow();
                let is_locked_out = owner.is_some_and(|owner| owner != id);
                if !self.is_read_only && !is_locked_out && !bytes.is_empty() {
                    let line_feed = LineFeed::Breaks;
                    let keys = KeyboardInput::Typed { bytes, line_feed };
                    shared.keyboard.type_in(keys).await;
                }
                return;
            }
            Frame::Control(message) => serde_json::from_slice(&message),
            Frame::Unknown(_) => return,
        };
        match message {
            Ok(FromClient::Resize { cols, rows }) => {
                let request = TerminalRequest::Resize(id, size_of(cols, rows));
                shared.terminal.request(request).await;
            }
            Ok(FromClient::Take) if self.is_read_only => {}
            Ok(FromClient::Take) => shared.request(StateRequest::TakeKeyboard(id)).await,
            Ok(FromClient::Release) => shared.request(StateRequest::ReleaseKeyboard(id)).await,
            Ok(FromClient::Redraw) => {
                shared.terminal.request(TerminalRequest::Redraw(id)).await;
            }
            // A message of a later version, or of another program.
            Err(_) => {}
        }
    }
}
