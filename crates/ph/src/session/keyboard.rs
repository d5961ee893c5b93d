//! The way into the program: everything that is typed, by people and by us, in one line.
//!
//! One task writes to the terminal, so what belongs together arrives together: no person's key
//! falls between a message and its Enter. A program that does not read makes only its writers
//! wait; the terminal's output goes on.

use super::draft::Draft;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot, watch};

/// How many things may wait to be typed. A client whose keys find it full waits, and with it only
/// that client; answers to the program's questions are dropped, because it does not read them.
const QUEUE: usize = 64;

/// What is to be typed.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A person's keys.
    Keys(Vec<u8>),
    /// The terminal's answer to a question of the program's.
    Answer(Vec<u8>),
    /// Keys that no person typed: interrupts, and what a program types through the socket.
    Bytes(Vec<u8>),
    /// Somebody wants the keyboard for a whole turn.
    Turn(Lease),
}

/// Asks for the keyboard, and then says what to type.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Told once it is this one's turn; an error where a person has a draft.
    pub(crate) granted: oneshot::Sender<Result<(), HasDraft>>,
    /// What to type; dropped where it is to be nothing after all.
    pub(crate) turn: oneshot::Receiver<Turn>,
}

/// A person has typed something and not submitted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HasDraft;

/// A text and the Enter that submits it.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) text: Vec<u8>,
    pub(crate) delay: Duration,
    pub(crate) enter: Vec<u8>,
    /// Told when all of it is written, or that the terminal is gone.
    pub(crate) written: oneshot::Sender<std::io::Result<()>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Keyboard {
    queue: mpsc::Sender<Typed>,
}

impl Keyboard {
    /// The keyboard, and the task that writes; what is being drafted shows in `draft`.
    pub(crate) fn new(
        pty: Rc<AsyncFd<OwnedFd>>,
        draft: watch::Sender<bool>,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        (Self { queue }, write(pty, waiting, draft))
    }

    /// Waits for room, and no longer than the terminal is there.
    pub(crate) async fn type_in(&self, what: Typed) {
        let _ = self.queue.send(what).await;
    }

    /// Types if there is room.
    pub(crate) fn try_type_in(&self, what: Typed) {
        let _ = self.queue.try_send(what);
    }
}

async fn write(
    pty: Rc<AsyncFd<OwnedFd>>,
    mut waiting: mpsc::Receiver<Typed>,
    drafted: watch::Sender<bool>,
) {
    let mut draft = Draft::default();
    while let Some(typed) = waiting.recv().await {
        let written = match typed {
            Typed::Keys(keys) => {
                draft.see(&keys);
                let is_open = draft.is_open();
                drafted.send_if_modified(|was| std::mem::replace(was, is_open) != is_open);
                write_all(&pty, &keys).await
            }
            Typed::Answer(bytes) | Typed::Bytes(bytes) => write_all(&pty, &bytes).await,
            Typed::Turn(lease) => take_turn(&pty, lease, &draft).await,
        };
        if written.is_err() {
            // The terminal is gone; whoever waits is told by the queue's end.
            break;
        }
    }
}

async fn take_turn(
    pty: &AsyncFd<OwnedFd>,
    lease: Lease,
    draft: &Draft,
) -> std::io::Result<()> {
    if draft.is_open() {
        let _ = lease.granted.send(Err(HasDraft));
        return Ok(());
    }
    if lease.granted.send(Ok(())).is_err() {
        return Ok(());
    }
    let Ok(turn) = lease.turn.await else {
        return Ok(());
    };
    let all = async {
        write_all(pty, &turn.text).await?;
        tokio::time::sleep(turn.delay).await;
        write_all(pty, &turn.enter).await
    };
    match all.await {
        Ok(()) => {
            let _ = turn.written.send(Ok(()));
            Ok(())
        }
        Err(error) => {
            let _ = turn.written.send(Err(error.kind().into()));
            Err(error)
        }
    }
}

async fn write_all(pty: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        // Try first: a terminal nearly always has room.
        match rustix::io::write(pty.get_ref(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::AGAIN) => {
                let mut ready = pty.writable().await?;
                ready.clear_ready();
                match rustix::io::write(pty.get_ref(), bytes) {
                    Ok(count) => {
                        ready.retain_ready();
                        bytes = &bytes[count..];
                    }
                    Err(rustix::io::Errno::AGAIN) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
