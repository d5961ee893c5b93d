//! The program's terminal: reads its output, keeps its screen, and passes the output to viewers,
//! the recording and subscribers.
//!
//! Output never passes through the owner of the session state, which only learns when there was
//! some. A viewer that cannot keep up is redrawn from the screen later, so nothing waits for it and
//! no queue grows.

use crate::host::clock;
use crate::host::log;
use crate::poll::resize_terminal;
use crate::pty::child::trim_heap;
use crate::pty::keyboard::{Keyboard, KeyboardInput};
use crate::pty::output_activity::OutputActivity;
use crate::pty::read_output::{BATCH_BYTES, OutputRead, read, read_now};
use crate::pty::screen_watch::ScreenWatch;
use crate::pty::viewer::{Viewer, ViewerId};
use crate::socket::output::hub::Hub;
use posthaste_core::harness::Sighting;
use posthaste_screen::{Lines, QueryFilter, Recorder, Screen, Size, redraw};
use posthaste_wire::event;
use posthaste_wire::topic::Topic;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// Limit for the unfinished line that is kept for later subscribers.
const MAX_UNFINISHED_BYTES: usize = 64 * 1024;
/// How often viewers of another size are painted.
const PAINT_INTERVAL: Duration = Duration::from_millis(25);
/// How often the recording is written to disk.
const RECORDING_FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// How long the program must be silent before free memory is returned to the system.
const HEAP_TRIM_DELAY: Duration = Duration::from_secs(2);
/// How long output is still read after the program has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How many requests may wait; further requesters wait until there is room.
const REQUEST_QUEUE_LENGTH: usize = 64;

#[derive(Debug)]
pub(crate) enum TerminalRequest {
    Attach(Viewer),
    Detach(ViewerId),
    Resize(ViewerId, Size),
    /// Redraw a viewer that requests it, or that had fallen behind and is ready again.
    Redraw(ViewerId),
    Peek {
        lines: Option<usize>,
        ansi: bool,
        reply: oneshot::Sender<ScreenText>,
    },
    /// Return the last lines of the output.
    Recent {
        lines: usize,
        reply: oneshot::Sender<Vec<String>>,
    },
    /// Recognise the screen, once it shows all output so far.
    Recognise(oneshot::Sender<Sighting>),
    /// Whether no viewer is attached.
    IsUnwatched(oneshot::Sender<bool>),
    /// The program has exited: read the remaining output, then stop.
    End,
}

#[derive(Debug)]
pub(crate) struct ScreenText {
    pub(crate) lines: Vec<String>,
    pub(crate) size: Size,
    pub(crate) title: Option<String>,
}

/// Handle to the terminal's task.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    requests: mpsc::Sender<TerminalRequest>,
}

impl Terminal {
    /// Send a request, and return whether the terminal's task still runs.
    pub(crate) async fn request(&self, request: TerminalRequest) -> bool {
        self.requests.send(request).await.is_ok()
    }

    pub(crate) async fn peek(&self, lines: Option<usize>, ansi: bool) -> Option<ScreenText> {
        let (reply, screen) = oneshot::channel();
        self.request(TerminalRequest::Peek { lines, ansi, reply })
            .await;
        screen.await.ok()
    }

    pub(crate) async fn recent(&self, lines: usize) -> Vec<String> {
        let (reply, recent) = oneshot::channel();
        self.request(TerminalRequest::Recent { lines, reply }).await;
        recent.await.unwrap_or_default()
    }

    /// Recognise the current screen. `None` if the terminal's task has ended.
    pub(crate) async fn recognise(&self) -> Option<Sighting> {
        let (reply, sighting) = oneshot::channel();
        self.request(TerminalRequest::Recognise(reply)).await;
        sighting.await.ok()
    }

    /// Whether no viewer is attached.
    pub(crate) async fn is_unwatched(&self) -> bool {
        let (reply, is_unwatched) = oneshot::channel();
        self.request(TerminalRequest::IsUnwatched(reply)).await;
        is_unwatched.await.unwrap_or(true)
    }
}

/// Everything that the terminal's task is given.
pub(crate) struct TerminalParts {
    pub(crate) pty: Rc<AsyncFd<OwnedFd>>,
    pub(crate) screen: Screen,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) keyboard: Keyboard,
    pub(crate) output_activity: Rc<OutputActivity>,
    pub(crate) screen_watch: ScreenWatch,
    pub(crate) hub: Rc<Hub>,
    /// Sent when the last output is read.
    pub(crate) drained: Option<oneshot::Sender<()>>,
}

/// Create the terminal, and the task that runs it until the program's output ends.
pub(crate) fn open(parts: TerminalParts) -> (Terminal, impl Future<Output = ()>) {
    let (requests, queue) = mpsc::channel(REQUEST_QUEUE_LENGTH);
    let task = TerminalTask {
        parts,
        filter: QueryFilter::default(),
        lines: Lines::default(),
        publishes_lines: false,
        unfinished: Vec::new(),
        viewers: Vec::new(),
        started: Instant::now(),
        painted_at: Instant::now(),
        recorded_at: Instant::now(),
        is_unrecorded: false,
        trims_at: None,
        filtered: Vec::new(),
        events: Vec::new(),
    };
    (Terminal { requests }, task.run(queue))
}

struct TerminalTask {
    parts: TerminalParts,
    filter: QueryFilter,
    lines: Lines,
    /// Whether the lines of the last output were published.
    publishes_lines: bool,
    /// The output since the last line end.
    unfinished: Vec<u8>,
    viewers: Vec<Viewer>,
    started: Instant,
    painted_at: Instant,
    recorded_at: Instant,
    is_unrecorded: bool,
    /// When free memory is returned to the system, unless output comes first.
    trims_at: Option<Instant>,
    /// Buffer for output without terminal queries, reused for every batch.
    filtered: Vec<u8>,
    /// Buffer for output events, reused for every batch.
    events: Vec<u8>,
}

impl TerminalTask {
    async fn run(mut self, mut requests: mpsc::Receiver<TerminalRequest>) {
        let mut buffer = vec![0; BATCH_BYTES];
        let mut ends_at: Option<Instant> = None;
        // Resetting a timer costs more than comparing its deadline, which most output does not
        // change.
        let mut alarm = pin!(tokio::time::sleep_until(Instant::now().into()));
        loop {
            let wakeup = self.wakeup(ends_at).map(Into::into);
            if let Some(at) = wakeup.filter(|at| *at != alarm.deadline()) {
                alarm.as_mut().reset(at);
            }
            tokio::select! {
                biased;
                request = requests.recv() => match request {
                    Some(TerminalRequest::End) => ends_at = Some(Instant::now() + DRAIN_TIMEOUT),
                    Some(TerminalRequest::Recognise(reply)) => {
                        // The screen must show all output that is already written.
                        let read = read_now(&mut self.parts, &mut buffer);
                        if let OutputRead::Drained(count) | OutputRead::Batch(count) = read {
                            self.output(&buffer[..count]);
                        }
                        self.parts.screen_watch.request(reply, &self.parts.screen);
                    }
                    Some(request) => self.answer(request),
                    None => break,
                },
                () = &mut alarm, if wakeup.is_some() => {
                    let now = Instant::now();
                    if ends_at.is_some_and(|end| end <= now) {
                        break;
                    }
                    self.tick(now);
                }
                read = self.read(&mut buffer) => match read {
                    OutputRead::Drained(count) => self.output(&buffer[..count]),
                    OutputRead::Batch(count) => {
                        self.output(&buffer[..count]);
                        // More output is available, so other tasks would not run otherwise.
                        tokio::task::yield_now().await;
                    }
                    OutputRead::Nothing => {}
                    OutputRead::End => break,
                },
            }
        }
        self.finish(requests).await;
    }

    /// Read the next output. If no person watches, wait first for subscribers that are behind.
    async fn read(&mut self, buffer: &mut [u8]) -> OutputRead {
        if self.publishes_lines && self.viewers.is_empty() {
            self.parts.hub.wait_for_readers().await;
        }
        read(&mut self.parts, buffer).await
    }

    fn wakeup(&self, ends_at: Option<Instant>) -> Option<Instant> {
        let flush = self
            .is_unrecorded
            .then(|| self.recorded_at + RECORDING_FLUSH_INTERVAL);
        let is_unpainted = self.viewers.iter().any(Viewer::is_unpainted);
        let paint = is_unpainted.then(|| self.painted_at + PAINT_INTERVAL);
        let sync = self.parts.screen.sync_deadline();
        let screen_watch = self.parts.screen_watch.due(&self.parts.screen);
        let all = [flush, paint, sync, screen_watch, ends_at, self.trims_at];
        all.into_iter().flatten().min()
    }

    /// Pass on output that the screen has processed.
    fn output(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        let replies = self.parts.screen.take_replies();
        if !replies.is_empty() {
            let replies = KeyboardInput::QueryReply(replies);
            self.parts.keyboard.try_type_in(replies);
        }
        self.filtered.clear();
        self.filter.pass(bytes, &mut self.filtered);
        for viewer in &mut self.viewers {
            viewer.output(&self.filtered);
        }
        if let Some(recorder) = &mut self.parts.recorder {
            recorder.output(now - self.started, &self.filtered);
            self.is_unrecorded = true;
        }
        self.publish_lines(bytes);
        let wants_paste = self.parts.screen.bracketed_paste();
        self.parts.output_activity.record(now, wants_paste);
        self.parts.screen_watch.changed(now);
        self.trims_at = Some(now + HEAP_TRIM_DELAY);
    }

    fn publish_lines(&mut self, bytes: &[u8]) {
        if !self.has_subscribers() {
            return self.keep_unfinished(bytes);
        }
        let at = clock::local_now();
        let mut count = 0;
        self.events.clear();
        let events = &mut self.events;
        self.lines.feed(bytes, &mut |line: &str| {
            event::append_output(events, &at, line);
            count += 1;
        });
        if count > 0 {
            self.parts
                .hub
                .publish_lines(Topic::Output, &self.events, count);
        }
        self.keep_unfinished(bytes);
    }

    /// Whether any connection subscribes to the output. A new subscriber gets the line that is
    /// already begun as a whole.
    fn has_subscribers(&mut self) -> bool {
        let is_wanted = self.parts.hub.wants_output();
        if is_wanted && !self.publishes_lines {
            self.lines = Lines::default();
            self.lines.feed(&self.unfinished, &mut |_: &str| {});
        }
        self.publishes_lines = is_wanted;
        is_wanted
    }

    fn keep_unfinished(&mut self, bytes: &[u8]) {
        let start = memchr::memrchr(b'\n', bytes).map(|end| end + 1);
        if start.is_some() || self.unfinished.len() + bytes.len() > MAX_UNFINISHED_BYTES {
            self.unfinished.clear();
        }
        self.unfinished
            .extend_from_slice(&bytes[start.unwrap_or(0)..]);
    }

    fn tick(&mut self, now: Instant) {
        if self
            .parts
            .screen
            .sync_deadline()
            .is_some_and(|at| at <= now)
        {
            self.parts.screen.stop_sync();
            self.parts.screen_watch.changed(now);
        }
        self.parts.screen_watch.tick(now, &self.parts.screen);
        if self.painted_at + PAINT_INTERVAL <= now {
            self.painted_at = now;
            for viewer in &mut self.viewers {
                viewer.paint(&self.parts.screen);
            }
        }
        if self.is_unrecorded && self.recorded_at + RECORDING_FLUSH_INTERVAL <= now {
            self.flush_recording(now);
        }
        if self.trims_at.is_some_and(|at| at <= now) {
            self.trims_at = None;
            trim_heap();
        }
    }

    fn flush_recording(&mut self, now: Instant) {
        self.recorded_at = now;
        self.is_unrecorded = false;
        if let Some(recorder) = &mut self.parts.recorder
            && let Err(error) = recorder.flush(&mut self.parts.screen, now - self.started)
        {
            warn!(target: log::SESSION, "the recording stops: {error}");
        }
    }

    fn answer(&mut self, request: TerminalRequest) {
        let screen = &self.parts.screen;
        match request {
            TerminalRequest::Attach(viewer) => {
                self.viewers.push(viewer);
                let id = self.viewers.last().map(Viewer::id);
                self.fit();
                id.into_iter().for_each(|id| self.redraw(id));
            }
            TerminalRequest::Detach(id) => {
                self.viewers.retain(|viewer| viewer.id() != id);
                self.fit();
            }
            TerminalRequest::Resize(id, size) => {
                if let Some(viewer) = self.viewers.iter_mut().find(|v| v.id() == id) {
                    viewer.resize(size);
                }
                self.fit();
                self.redraw(id);
            }
            TerminalRequest::Redraw(id) => self.redraw(id),
            TerminalRequest::Peek { lines, ansi, reply } => {
                let lines = if ansi {
                    screen.ansi(lines)
                } else {
                    screen.text(lines)
                };
                let _ = reply.send(ScreenText {
                    lines,
                    size: screen.size(),
                    title: screen.title().map(str::to_owned),
                });
            }
            TerminalRequest::Recent { lines, reply } => {
                let _ = reply.send(screen.recent(lines));
            }
            TerminalRequest::IsUnwatched(reply) => {
                let _ = reply.send(self.viewers.is_empty());
            }
            TerminalRequest::Recognise(reply) => {
                self.parts.screen_watch.request(reply, &self.parts.screen);
            }
            TerminalRequest::End => {}
        }
    }

    fn redraw(&mut self, id: ViewerId) {
        // Other viewers already have the output of an unfinished synchronized update.
        self.parts.screen.stop_sync();
        let screen = &self.parts.screen;
        if let Some(viewer) = self.viewers.iter_mut().find(|v| v.id() == id) {
            viewer.redraw(screen, || redraw(screen));
        }
    }

    /// Resize the terminal to the smallest viewer. Without viewers it keeps its size.
    fn fit(&mut self) {
        let sizes = self.viewers.iter().map(Viewer::size);
        let Some(size) = sizes.reduce(|a, b| Size {
            cols: a.cols.min(b.cols),
            rows: a.rows.min(b.rows),
        }) else {
            return;
        };
        let before = self.parts.screen.size();
        self.parts.screen.resize(size);
        let size = self.parts.screen.size();
        if size == before {
            return;
        }
        self.parts.screen_watch.changed(Instant::now());
        // The kernel informs the program with SIGWINCH.
        if let Err(error) = resize_terminal(self.parts.pty.get_ref(), size.cols, size.rows) {
            warn!(target: log::SESSION, "cannot resize the terminal: {error}");
        }
        if let Some(recorder) = &mut self.parts.recorder {
            recorder.resize(self.started.elapsed(), size);
        }
        let ids: Vec<_> = self.viewers.iter().map(Viewer::id).collect();
        ids.into_iter().for_each(|id| self.redraw(id));
    }

    /// Publish the last line and finish the recording. Then answer requests about the last screen
    /// until the session ends.
    async fn finish(mut self, mut requests: mpsc::Receiver<TerminalRequest>) {
        if self.has_subscribers() {
            let at = clock::local_now();
            let mut events = Vec::new();
            let mut count = 0;
            self.lines.finish(&mut |line: &str| {
                event::append_output(&mut events, &at, line);
                count += 1;
            });
            self.parts.hub.publish_lines(Topic::Output, &events, count);
        }
        self.parts.screen.stop_sync();
        self.parts.screen_watch.finish(&self.parts.screen);
        // Bytes that the filter holds as the possible start of a query are output now.
        self.filtered.clear();
        self.filter.finish(&mut self.filtered);
        let now = Instant::now();
        if let Some(recorder) = &mut self.parts.recorder {
            recorder.output(now - self.started, &self.filtered);
        }
        for viewer in &mut self.viewers {
            viewer.output(&self.filtered);
            viewer.paint(&self.parts.screen);
        }
        self.flush_recording(now);
        if let Some(drained) = self.parts.drained.take() {
            let _ = drained.send(());
        }
        // Viewers leave once the session has reported how it ended.
        while let Some(request) = requests.recv().await {
            self.answer(request);
            self.parts.screen_watch.finish(&self.parts.screen);
        }
    }
}
