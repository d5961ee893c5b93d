//! The way into the program: everything that is typed, by people and by us, in one line.
//!
//! One task writes to the terminal, so what belongs together arrives together: no person's key
//! falls between a message and its Enter. A program that does not read makes only its writers
//! wait; the terminal's output goes on.

use crate::pty::child;
use crate::pty::draft::{Draft, LineFeed};
use crate::pty::pulse::Pulse;
use rustix::fs::{Mode, OFlags};
use rustix::termios::LocalModes;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// How many things may wait to be typed. A client whose keys find it full waits, and with it only
/// that client; answers to the program's questions are dropped, because it does not read them.
const QUEUE: usize = 64;

/// How many bytes may wait to be typed. Who brings more waits until all else is typed.
const ROOM: u32 = 1 << 20;
/// How long a terminal is left alone that nobody reads and nobody can.
const FULL: Duration = Duration::from_millis(50);

/// What is to be typed.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A person's keys.
    Keys(Vec<u8>),
    /// A person's text, by a program that writes it for them: its last line feed is an Enter.
    Text(Vec<u8>),
    /// The terminal's answer to a question of the program's.
    Answer(Vec<u8>),
    /// Keys that no person typed: interrupts, and what a program types through the socket.
    Bytes(Vec<u8>),
    /// Somebody wants the keyboard for a whole turn.
    Turn(LeaseRequest),
    /// The screen shows that nothing came of the keys so far: they are no draft. They are known by
    /// how many times there were some.
    Forget(u64),
}

/// What a person has typed and not submitted, as far as the keys tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Typing {
    pub(crate) is_open: bool,
    /// How many times there were keys of a draft, or of its end.
    pub(crate) strokes: u64,
    /// How many times there were keys.
    pub(crate) times: u64,
    pub(crate) last: Option<Instant>,
}

/// Asks for the keyboard for a whole turn. It is given back when its strokes end.
#[derive(Debug)]
pub(crate) struct LeaseRequest {
    /// Told once it is this one's turn; an error where a person has a draft.
    granted: oneshot::Sender<Result<(), HasDraft>>,
    strokes: mpsc::Receiver<Stroke>,
}

/// A person has typed something and not submitted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HasDraft;

#[derive(Debug)]
struct Stroke {
    bytes: Vec<u8>,
    written: oneshot::Sender<std::io::Result<()>>,
}

/// The keyboard, for one turn: nobody else's key is written while it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    strokes: mpsc::Sender<Stroke>,
}

impl Lease {
    /// Types this; answers when the terminal has all of it.
    pub(crate) async fn write(&self, bytes: Vec<u8>) -> std::io::Result<()> {
        let gone = || std::io::Error::other("the terminal is gone");
        let (written, is_written) = oneshot::channel();
        let stroke = Stroke { bytes, written };
        self.strokes.send(stroke).await.map_err(|_| gone())?;
        is_written.await.map_err(|_| gone())?
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Keyboard {
    pty: Rc<AsyncFd<OwnedFd>>,
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// What waits to be typed, and the room that it takes until then.
#[derive(Debug)]
struct Waiting {
    typed: Typed,
    _room: Option<OwnedSemaphorePermit>,
}

impl Keyboard {
    /// The keyboard, and the task that writes; what is being drafted shows in `draft`. Whoever
    /// waits for that is woken when a draft begins and ends, and by other keys where they are heeded.
    pub(crate) fn new(
        pty: Rc<AsyncFd<OwnedFd>>,
        draft: watch::Sender<Typing>,
        pulse: Rc<Pulse>,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let room = Arc::new(Semaphore::new(ROOM as usize));
        let typing = write(pty.clone(), waiting, draft, pulse);
        (Self { pty, queue, room }, typing)
    }

    /// Whether the terminal holds whole lines, or keys, that the program has not read.
    pub(crate) fn is_unread(&self) -> bool {
        let other_side = rustix::pty::ptsname(self.pty.get_ref(), Vec::new()).and_then(|path| {
            let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(path.as_c_str(), flags, Mode::empty())
        });
        other_side
            .and_then(|terminal| rustix::io::ioctl_fionread(&terminal))
            .is_ok_and(|bytes| bytes > 0)
    }

    /// Waits for room, and no longer than the terminal is there.
    pub(crate) async fn type_in(&self, typed: Typed) {
        let bytes = match &typed {
            Typed::Keys(bytes)
            | Typed::Text(bytes)
            | Typed::Answer(bytes)
            | Typed::Bytes(bytes) => bytes.len(),
            Typed::Turn(_) | Typed::Forget(_) => 0,
        };
        let bytes = u32::try_from(bytes).unwrap_or(ROOM).min(ROOM);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes) => room.ok(),
            () = self.queue.closed() => return,
        };
        let _ = self.queue.send(Waiting { typed, _room: room }).await;
    }

    /// The keyboard for a turn, when it is free; an error where a person has a draft. Nothing
    /// where the terminal is gone.
    pub(crate) async fn lease(&self) -> Option<Result<Lease, HasDraft>> {
        let (granted, is_granted) = oneshot::channel();
        let (strokes, typed) = mpsc::channel(1);
        let request = LeaseRequest {
            granted,
            strokes: typed,
        };
        self.type_in(Typed::Turn(request)).await;
        let granted = is_granted.await.ok()?;
        Some(granted.map(|()| Lease { strokes }))
    }

    /// Types if there is room; says whether there was.
    pub(crate) fn try_type_in(&self, typed: Typed) -> bool {
        let waiting = Waiting { typed, _room: None };
        self.queue.try_send(waiting).is_ok()
    }
}

async fn write(
    pty: Rc<AsyncFd<OwnedFd>>,
    mut waiting: mpsc::Receiver<Waiting>,
    drafted: watch::Sender<Typing>,
    pulse: Rc<Pulse>,
) {
    let mut draft = Draft::default();
    let mut times = 0;
    let tell = |draft: &Draft, times: u64| {
        let is_open = draft.is_open();
        drafted.send_if_modified(|was| {
            let is_news = is_open || was.is_open;
            let wakes = is_open != was.is_open || (is_news && pulse.heeds_keys());
            *was = Typing {
                is_open,
                strokes: was.strokes + u64::from(is_news),
                times,
                last: Some(Instant::now()),
            };
            wakes
        });
    };
    while let Some(Waiting { typed, _room }) = waiting.recv().await {
        let written = match typed {
            Typed::Keys(keys) => {
                draft.see(&keys, line_feed(&pty, &keys, LineFeed::Breaks));
                times += 1;
                tell(&draft, times);
                write_all(&pty, &keys).await
            }
            Typed::Text(text) => {
                draft.see(&text, line_feed(&pty, &text, LineFeed::SubmitsAtTheEnd));
                times += 1;
                tell(&draft, times);
                write_all(&pty, &text).await
            }
            Typed::Forget(seen) => {
                if seen == times {
                    draft = Draft::default();
                    tell(&draft, times);
                }
                Ok(())
            }
            Typed::Answer(bytes) | Typed::Bytes(bytes) => write_all(&pty, &bytes).await,
            Typed::Turn(request) => take_turn(&pty, request, &draft).await,
        };
        if written.is_err() {
            // The terminal is gone; whoever waits is told by the queue's end.
            break;
        }
    }
}

/// What a line feed in `keys` does: the terminal's mode says so where it gives out whole lines.
fn line_feed(pty: &AsyncFd<OwnedFd>, keys: &[u8], otherwise: LineFeed) -> LineFeed {
    if !keys.contains(&b'\n') {
        return otherwise;
    }
    match rustix::termios::tcgetattr(pty.get_ref()) {
        Ok(mode) if mode.local_modes.contains(LocalModes::ICANON) => LineFeed::Submits,
        Ok(_) | Err(_) => otherwise,
    }
}

async fn take_turn(
    pty: &AsyncFd<OwnedFd>,
    mut request: LeaseRequest,
    draft: &Draft,
) -> std::io::Result<()> {
    if draft.is_open() {
        let _ = request.granted.send(Err(HasDraft));
        return Ok(());
    }
    if request.granted.send(Ok(())).is_err() {
        return Ok(());
    }
    while let Some(stroke) = request.strokes.recv().await {
        match write_all(pty, &stroke.bytes).await {
            Ok(()) => drop(stroke.written.send(Ok(()))),
            Err(error) => {
                let _ = stroke.written.send(Err(error.kind().into()));
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn write_all(pty: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        // Try first: a terminal nearly always has room.
        match rustix::io::write(pty.get_ref(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::AGAIN) => room(pty.get_ref()).await?,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until a terminal that was full has room. Only then is the kernel asked to tell: it would
/// tell of every key that is read, and wake the session in the middle of its echo.
async fn room(pty: &OwnedFd) -> std::io::Result<()> {
    let own = child::watched(pty.try_clone()?, Interest::WRITABLE)?;
    let ready = own.writable().await?;
    // With nobody on the other side it stays full and is called ready all the same.
    if ready.ready().is_write_closed() {
        tokio::time::sleep(FULL).await;
    }
    Ok(())
}
