//! The queue of everything that is typed into the program, by people and by the session.
//!
//! One task writes to the terminal, so that no person's key falls between a message and its Enter.
//! A program that does not read delays only those who type; its output goes on.

use crate::pty::child;
use crate::pty::draft::{DraftTracker, LineFeed};
use crate::pty::output_activity::OutputActivity;
use rustix::fs::{Mode, OFlags};
use rustix::termios::LocalModes;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// How many inputs may wait. If the queue is full, a client waits; replies to the program's
/// terminal queries are dropped, because the program does not read them.
const INPUT_QUEUE_LENGTH: usize = 64;

/// How many bytes may wait. A larger input waits until the queue is empty.
const MAX_QUEUED_BYTES: u32 = 1 << 20;
/// Delay before a full terminal whose other side is closed is tried again.
const CLOSED_TERMINAL_DELAY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) enum KeyboardInput {
    /// A person's keys, or a person's text that a client types.
    Typed {
        bytes: Vec<u8>,
        /// The effect of a line feed in these bytes, unless the terminal's mode decides it.
        line_feed: LineFeed,
    },
    /// The reply to a terminal query of the program.
    QueryReply(Vec<u8>),
    /// Keys of the session itself, such as an interrupt.
    Bytes(Vec<u8>),
    /// Keys of the session that clear the input box. Ignored if `key_inputs` is no longer this
    /// number: a person has typed since the look that showed the text, and would lose that key.
    ClearBox {
        keys: Vec<u8>,
        key_inputs: u64,
    },
    Lease(LeaseRequest),
    /// Reset the draft, because the screen shows an empty input box. Ignored if `key_inputs` has
    /// changed since it had this value.
    ResetDraft(u64),
}

/// Whether a person has typed text that is not submitted, as far as keys determine that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TypingState {
    pub(crate) has_draft: bool,
    /// The number of inputs that belonged to a draft or ended one.
    pub(crate) draft_inputs: u64,
    /// The number of inputs with a person's keys.
    pub(crate) key_inputs: u64,
    pub(crate) last_at: Option<Instant>,
}

/// A request to have the keyboard alone. The lease ends when `writes` is closed.
#[derive(Debug)]
pub(crate) struct LeaseRequest {
    granted: oneshot::Sender<Result<(), HasDraft>>,
    writes: mpsc::Receiver<LeasedWrite>,
}

/// A lease is refused because a person has typed text and not submitted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HasDraft;

#[derive(Debug)]
struct LeasedWrite {
    bytes: Vec<u8>,
    written: oneshot::Sender<std::io::Result<()>>,
}

/// Exclusive use of the keyboard, until it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    writes: mpsc::Sender<LeasedWrite>,
}

impl Lease {
    /// Type `bytes`, and return when the terminal has all of them.
    pub(crate) async fn write(&self, bytes: Vec<u8>) -> std::io::Result<()> {
        let closed = || std::io::Error::other("the terminal is closed");
        let (written, is_written) = oneshot::channel();
        let write = LeasedWrite { bytes, written };
        self.writes.send(write).await.map_err(|_| closed())?;
        is_written.await.map_err(|_| closed())?
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Keyboard {
    pty: Rc<AsyncFd<OwnedFd>>,
    queue: mpsc::Sender<QueuedInput>,
    free_bytes: Arc<Semaphore>,
}

/// An input in the queue, with its share of [`MAX_QUEUED_BYTES`].
#[derive(Debug)]
struct QueuedInput {
    input: KeyboardInput,
    _bytes: Option<OwnedSemaphorePermit>,
}

impl Keyboard {
    /// Create the keyboard and its writer task. Receivers of `typing` are woken when a draft begins
    /// or ends, and by other keys of a draft if `activity` says so.
    pub(crate) fn new(
        pty: Rc<AsyncFd<OwnedFd>>,
        typing: watch::Sender<TypingState>,
        activity: Rc<OutputActivity>,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, inputs) = mpsc::channel(INPUT_QUEUE_LENGTH);
        let free_bytes = Arc::new(Semaphore::new(MAX_QUEUED_BYTES as usize));
        let writer = write(pty.clone(), inputs, typing, activity);
        let keyboard = Self {
            pty,
            queue,
            free_bytes,
        };
        (keyboard, writer)
    }

    /// Whether the terminal holds input that the program has not read.
    pub(crate) fn is_unread(&self) -> bool {
        let other_side = rustix::pty::ptsname(self.pty.get_ref(), Vec::new()).and_then(|path| {
            let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(path.as_c_str(), flags, Mode::empty())
        });
        other_side
            .and_then(|terminal| rustix::io::ioctl_fionread(&terminal))
            .is_ok_and(|bytes| bytes > 0)
    }

    /// Queue an input. Waits while the queue is full, and does nothing if the terminal is closed.
    pub(crate) async fn type_in(&self, input: KeyboardInput) {
        let bytes = match &input {
            KeyboardInput::Typed { bytes, .. }
            | KeyboardInput::QueryReply(bytes)
            | KeyboardInput::Bytes(bytes)
            | KeyboardInput::ClearBox { keys: bytes, .. } => bytes.len(),
            KeyboardInput::Lease(_) | KeyboardInput::ResetDraft(_) => 0,
        };
        let bytes = u32::try_from(bytes).unwrap_or(MAX_QUEUED_BYTES);
        let bytes = bytes.min(MAX_QUEUED_BYTES);
        let permit = tokio::select! {
            permit = self.free_bytes.clone().acquire_many_owned(bytes) => permit.ok(),
            () = self.queue.closed() => return,
        };
        let queued = QueuedInput {
            input,
            _bytes: permit,
        };
        let _ = self.queue.send(queued).await;
    }

    /// Wait for a lease of the keyboard. `None` if the terminal is closed.
    pub(crate) async fn lease(&self) -> Option<Result<Lease, HasDraft>> {
        let (granted, is_granted) = oneshot::channel();
        let (sender, writes) = mpsc::channel(1);
        let request = LeaseRequest { granted, writes };
        self.type_in(KeyboardInput::Lease(request)).await;
        let granted = is_granted.await.ok()?;
        Some(granted.map(|()| Lease { writes: sender }))
    }

    /// Queue an input if the queue has room, and return whether it had.
    pub(crate) fn try_type_in(&self, input: KeyboardInput) -> bool {
        let queued = QueuedInput {
            input,
            _bytes: None,
        };
        self.queue.try_send(queued).is_ok()
    }
}

async fn write(
    pty: Rc<AsyncFd<OwnedFd>>,
    mut inputs: mpsc::Receiver<QueuedInput>,
    typing: watch::Sender<TypingState>,
    activity: Rc<OutputActivity>,
) {
    let mut draft = DraftTracker::default();
    let mut key_inputs = 0;
    let publish = |draft: &DraftTracker, key_inputs: u64| {
        let has_draft = draft.is_open();
        typing.send_if_modified(|was| {
            let is_of_draft = has_draft || was.has_draft;
            let wakes = has_draft != was.has_draft || (is_of_draft && activity.wakes_on_keys());
            *was = TypingState {
                has_draft,
                draft_inputs: was.draft_inputs + u64::from(is_of_draft),
                key_inputs,
                last_at: Some(Instant::now()),
            };
            wakes
        });
    };
    while let Some(QueuedInput { input, _bytes }) = inputs.recv().await {
        let written = match input {
            KeyboardInput::Typed { bytes, line_feed } => {
                draft.feed(&bytes, effective_line_feed(&pty, &bytes, line_feed));
                key_inputs += 1;
                publish(&draft, key_inputs);
                write_all(&pty, &bytes).await
            }
            KeyboardInput::ResetDraft(at) => {
                if at == key_inputs {
                    draft = DraftTracker::default();
                    publish(&draft, key_inputs);
                }
                Ok(())
            }
            KeyboardInput::ClearBox { key_inputs: at, .. } if at != key_inputs => Ok(()),
            KeyboardInput::QueryReply(bytes)
            | KeyboardInput::Bytes(bytes)
            | KeyboardInput::ClearBox { keys: bytes, .. } => write_all(&pty, &bytes).await,
            KeyboardInput::Lease(request) => serve_lease(&pty, request, &draft).await,
        };
        if written.is_err() {
            // The terminal is closed. Dropping the queue informs everyone who waits.
            break;
        }
    }
}

/// Determine the effect of a line feed in `keys`. A terminal in canonical mode submits with it.
fn effective_line_feed(pty: &AsyncFd<OwnedFd>, keys: &[u8], otherwise: LineFeed) -> LineFeed {
    if !keys.contains(&b'\n') {
        return otherwise;
    }
    match rustix::termios::tcgetattr(pty.get_ref()) {
        Ok(mode) if mode.local_modes.contains(LocalModes::ICANON) => LineFeed::Submits,
        Ok(_) | Err(_) => otherwise,
    }
}

/// Grant a lease unless there is a draft, and write for it until it ends.
async fn serve_lease(
    pty: &AsyncFd<OwnedFd>,
    mut request: LeaseRequest,
    draft: &DraftTracker,
) -> std::io::Result<()> {
    if draft.is_open() {
        let _ = request.granted.send(Err(HasDraft));
        return Ok(());
    }
    if request.granted.send(Ok(())).is_err() {
        return Ok(());
    }
    while let Some(write) = request.writes.recv().await {
        match write_all(pty, &write.bytes).await {
            Ok(()) => drop(write.written.send(Ok(()))),
            Err(error) => {
                let _ = write.written.send(Err(error.kind().into()));
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn write_all(pty: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        // A terminal nearly always has room, so try before waiting.
        match rustix::io::write(pty.get_ref(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::AGAIN) => writable(pty.get_ref()).await?,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Wait until a full terminal has room. Writability is registered only here: otherwise the kernel
/// would wake the session for every key that the program reads, in the middle of the key's echo.
async fn writable(pty: &OwnedFd) -> std::io::Result<()> {
    let duplicate = child::register(pty.try_clone()?, Interest::WRITABLE)?;
    let ready = duplicate.writable().await?;
    // If the other side is closed, the kernel reports a full terminal as writable.
    if ready.ready().is_write_closed() {
        tokio::time::sleep(CLOSED_TERMINAL_DELAY).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::OpenptFlags;
    use rustix::termios::OptionalActions;
    use std::io::Read;

    /// Open a terminal in raw mode. Return the session's side, and the program's side.
    fn open_terminal() -> (Rc<AsyncFd<OwnedFd>>, std::fs::File) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let pty = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&pty).unwrap();
        rustix::pty::unlockpt(&pty).unwrap();
        let path = rustix::pty::ptsname(&pty, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = rustix::fs::open(path.as_c_str(), flags, Mode::empty()).unwrap();
        let mut mode = rustix::termios::tcgetattr(&program).unwrap();
        mode.make_raw();
        rustix::termios::tcsetattr(&program, OptionalActions::Now, &mode).unwrap();
        rustix::io::ioctl_fionbio(&pty, true).unwrap();
        let pty = child::register(pty, Interest::READABLE).unwrap();
        (Rc::new(pty), program.into())
    }

    #[tokio::test]
    async fn keys_that_clear_the_box_are_dropped_if_a_person_has_typed() {
        let (pty, mut program) = open_terminal();
        let (typing, _) = watch::channel(TypingState::default());
        let (keyboard, writer) = Keyboard::new(pty.clone(), typing, Rc::default());
        let clear = |keys: &str, key_inputs| KeyboardInput::ClearBox {
            keys: keys.into(),
            key_inputs,
        };
        let key = KeyboardInput::Typed {
            bytes: b"x".to_vec(),
            line_feed: LineFeed::Breaks,
        };
        for input in [clear("1", 0), key, clear("2", 0), clear("3", 1)] {
            assert!(keyboard.try_type_in(input));
        }
        drop(keyboard);
        writer.await;
        let mut typed = [0; 3];
        program.read_exact(&mut typed).unwrap();
        assert_eq!(&typed, b"1x3");
    }
}
