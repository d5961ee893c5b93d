//! The program's terminal: reads its output, keeps its screen, and shows it to everybody who
//! watches, records or listens.
//!
//! The bytes stream past the owner of the session's state, which hears only that there were some.
//! A viewer that cannot keep up is drawn anew from the screen when it is ready again, so nobody
//! waits for it and nothing piles up.

use crate::host::clock;
use crate::host::log;
use crate::pty::child::give_back_memory;
use crate::pty::keyboard::{Keyboard, Typed};
use crate::pty::pulse::Pulse;
use crate::pty::reading::{BATCH, Read, read, read_now};
use crate::pty::sight::Sight;
use crate::pty::viewer::{Viewer, ViewerId};
use crate::socket::hub::Hub;
use posthaste_core::harness::Sighting;
use posthaste_screen::{Lines, Recorder, Screen, Sieve, Size, redraw};
use posthaste_wire::event;
use posthaste_wire::topic::Topic;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// How much of an unfinished line is kept for who begins to listen.
const UNFINISHED: usize = 64 * 1024;
/// How often the recording is written, and viewers of another size are drawn.
const FRAME: Duration = Duration::from_millis(25);
const RECORD: Duration = Duration::from_millis(250);
/// How long the program has written nothing when memory is given back.
const QUIET: Duration = Duration::from_secs(2);
/// How long output may still come once the program has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How many requests may wait; who comes when it is full waits for room.
const QUEUE: usize = 64;

/// What others want of the terminal.
#[derive(Debug)]
pub(crate) enum Ask {
    Attach(Viewer),
    Detach(ViewerId),
    Resize(ViewerId, Size),
    /// Draw this viewer anew: it asks for it, or it had fallen behind and is ready again.
    Redraw(ViewerId),
    Peek {
        lines: Option<usize>,
        ansi: bool,
        seen: oneshot::Sender<Seen>,
    },
    /// The last lines of the output.
    Recent {
        lines: usize,
        recent: oneshot::Sender<Vec<String>>,
    },
    /// What the screen means, once all that the program has written is on it.
    Look(oneshot::Sender<Sighting>),
    /// Whether nobody watches any more.
    IsUnwatched(oneshot::Sender<bool>),
    /// The program has ended: read what is left, then stop.
    End,
}

#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) lines: Vec<String>,
    pub(crate) size: Size,
    pub(crate) title: Option<String>,
}

/// The way to a terminal; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    asks: mpsc::Sender<Ask>,
}

impl Terminal {
    /// False where the terminal is gone.
    pub(crate) async fn ask(&self, ask: Ask) -> bool {
        self.asks.send(ask).await.is_ok()
    }

    pub(crate) async fn peek(&self, lines: Option<usize>, ansi: bool) -> Option<Seen> {
        let (seen, answer) = oneshot::channel();
        self.ask(Ask::Peek { lines, ansi, seen }).await;
        answer.await.ok()
    }

    pub(crate) async fn recent(&self, lines: usize) -> Vec<String> {
        let (recent, answer) = oneshot::channel();
        self.ask(Ask::Recent { lines, recent }).await;
        answer.await.unwrap_or_default()
    }

    /// What the screen means now; nothing where the terminal is gone.
    pub(crate) async fn look(&self) -> Option<Sighting> {
        let (tell, answer) = oneshot::channel();
        self.ask(Ask::Look(tell)).await;
        answer.await.ok()
    }

    /// Whether nobody watches any more.
    pub(crate) async fn is_unwatched(&self) -> bool {
        let (is_so, answer) = oneshot::channel();
        self.ask(Ask::IsUnwatched(is_so)).await;
        answer.await.unwrap_or(true)
    }
}

/// What the terminal's task owns.
pub(crate) struct Stage {
    pub(crate) pty: Rc<AsyncFd<OwnedFd>>,
    pub(crate) screen: Screen,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) keyboard: Keyboard,
    pub(crate) pulse: Rc<Pulse>,
    pub(crate) sight: Sight,
    pub(crate) hub: Rc<Hub>,
    /// Told when the last output is read.
    pub(crate) drained: Option<oneshot::Sender<()>>,
}

/// The terminal, and the task that runs it until the program's output ends.
pub(crate) fn open(stage: Stage) -> (Terminal, impl Future<Output = ()>) {
    let (asks, waiting) = mpsc::channel(QUEUE);
    let task = Task {
        stage,
        sieve: Sieve::default(),
        lines: Lines::default(),
        listened: false,
        unfinished: Vec::new(),
        viewers: Vec::new(),
        begun: Instant::now(),
        drawn_at: Instant::now(),
        recorded_at: Instant::now(),
        is_unrecorded: false,
        tidies_at: None,
        passed: Vec::new(),
        told: Vec::new(),
    };
    (Terminal { asks }, task.run(waiting))
}

struct Task {
    stage: Stage,
    sieve: Sieve,
    lines: Lines,
    /// Whether the lines of the output were told last time.
    listened: bool,
    /// The output since the last line end.
    unfinished: Vec<u8>,
    viewers: Vec<Viewer>,
    begun: Instant,
    drawn_at: Instant,
    recorded_at: Instant,
    is_unrecorded: bool,
    /// When it will have been quiet long enough to give memory back.
    tidies_at: Option<Instant>,
    /// Space to work in, kept from batch to batch.
    passed: Vec<u8>,
    told: Vec<u8>,
}

impl Task {
    async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut buffer = vec![0; BATCH];
        let mut ends_at: Option<Instant> = None;
        // Set anew only where it changes, which it does not with every output.
        let mut alarm = pin!(tokio::time::sleep_until(Instant::now().into()));
        loop {
            let wakeup = self.wakeup(ends_at).map(Into::into);
            if let Some(at) = wakeup.filter(|at| *at != alarm.deadline()) {
                alarm.as_mut().reset(at);
            }
            tokio::select! {
                biased;
                ask = asks.recv() => match ask {
                    Some(Ask::End) => ends_at = Some(Instant::now() + LAST_WORDS),
                    Some(Ask::Look(tell)) => {
                        // What has been written by now is to be seen.
                        let stage = &mut self.stage;
                        if let Read::Some(count) | Read::Batch(count) = read_now(stage, &mut buffer) {
                            self.output(&buffer[..count]);
                        }
                        self.stage.sight.want(tell, &self.stage.screen);
                    }
                    Some(ask) => self.answer(ask),
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
                    // The others get their turn while the next is waited for.
                    Read::Some(count) => self.output(&buffer[..count]),
                    Read::Batch(count) => {
                        self.output(&buffer[..count]);
                        tokio::task::yield_now().await;
                    }
                    Read::Nothing => {}
                    Read::End => break,
                },
            }
        }
        self.finish(asks).await;
    }

    /// The next output, once there is room for it where it is heard.
    async fn read(&mut self, buffer: &mut [u8]) -> Read {
        // A person who watches waits for no program that listens.
        if self.listened && self.viewers.is_empty() {
            self.stage.hub.wait_for_readers().await;
        }
        read(&mut self.stage, buffer).await
    }

    fn wakeup(&self, ends_at: Option<Instant>) -> Option<Instant> {
        let record = self.is_unrecorded.then(|| self.recorded_at + RECORD);
        let is_due = self.viewers.iter().any(Viewer::is_unpainted);
        let draw = is_due.then(|| self.drawn_at + FRAME);
        let sync = self.stage.screen.sync_deadline();
        let look = self.stage.sight.due(&self.stage.screen);
        let all = [record, draw, sync, look, ends_at, self.tidies_at];
        all.into_iter().flatten().min()
    }

    /// Passes on what the screen has taken in.
    fn output(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        let answers = self.stage.screen.take_replies();
        if !answers.is_empty() {
            self.stage.keyboard.try_type_in(Typed::Answer(answers));
        }
        self.passed.clear();
        self.sieve.pass(bytes, &mut self.passed);
        for viewer in &mut self.viewers {
            viewer.output(&self.passed);
        }
        if let Some(recorder) = &mut self.stage.recorder {
            recorder.output(now - self.begun, &self.passed);
            self.is_unrecorded = true;
        }
        self.tell_lines(bytes);
        let wants_paste = self.stage.screen.bracketed_paste();
        self.stage.pulse.beat(now, wants_paste);
        self.stage.sight.changed(now);
        self.tidies_at = Some(now + QUIET);
    }

    fn tell_lines(&mut self, bytes: &[u8]) {
        if !self.is_listened() {
            return self.keep_unfinished(bytes);
        }
        let at = clock::local_now();
        let mut count = 0;
        self.told.clear();
        let told = &mut self.told;
        self.lines.feed(bytes, &mut |line: &str| {
            event::append_output(told, &at, line);
            count += 1;
        });
        if count > 0 {
            self.stage.hub.publish(Topic::Output, &self.told, count);
        }
        self.keep_unfinished(bytes);
    }

    /// Whether somebody hears of the lines. Who begins to listen in the middle of one hears all
    /// of it once it is finished.
    fn is_listened(&mut self) -> bool {
        let is_wanted = self.stage.hub.wants_output();
        if is_wanted && !self.listened {
            self.lines = Lines::default();
            self.lines.feed(&self.unfinished, &mut |_: &str| {});
        }
        self.listened = is_wanted;
        is_wanted
    }

    fn keep_unfinished(&mut self, bytes: &[u8]) {
        let begins = memchr::memrchr(b'\n', bytes).map(|end| end + 1);
        if begins.is_some() || self.unfinished.len() + bytes.len() > UNFINISHED {
            self.unfinished.clear();
        }
        self.unfinished
            .extend_from_slice(&bytes[begins.unwrap_or(0)..]);
    }

    fn tick(&mut self, now: Instant) {
        if self
            .stage
            .screen
            .sync_deadline()
            .is_some_and(|at| at <= now)
        {
            self.stage.screen.stop_sync();
            self.stage.sight.changed(now);
        }
        self.stage.sight.tick(now, &self.stage.screen);
        if self.drawn_at + FRAME <= now {
            self.drawn_at = now;
            for viewer in &mut self.viewers {
                viewer.paint(&self.stage.screen);
            }
        }
        if self.is_unrecorded && self.recorded_at + RECORD <= now {
            self.record(now);
        }
        if self.tidies_at.is_some_and(|at| at <= now) {
            self.tidies_at = None;
            give_back_memory();
        }
    }

    fn record(&mut self, now: Instant) {
        self.recorded_at = now;
        self.is_unrecorded = false;
        if let Some(recorder) = &mut self.stage.recorder
            && let Err(error) = recorder.flush(&mut self.stage.screen, now - self.begun)
        {
            warn!(target: log::SESSION, "the recording stops: {error}");
        }
    }

    fn answer(&mut self, ask: Ask) {
        let screen = &self.stage.screen;
        match ask {
            Ask::Attach(viewer) => {
                self.viewers.push(viewer);
                let id = self.viewers.last().map(Viewer::id);
                self.fit();
                id.into_iter().for_each(|id| self.redraw(id));
            }
            Ask::Detach(id) => {
                self.viewers.retain(|viewer| viewer.id() != id);
                self.fit();
            }
            Ask::Resize(id, size) => {
                if let Some(viewer) = self.viewers.iter_mut().find(|v| v.id() == id) {
                    viewer.resize(size);
                }
                self.fit();
                self.redraw(id);
            }
            Ask::Redraw(id) => self.redraw(id),
            Ask::Peek { lines, ansi, seen } => {
                let shown = if ansi {
                    screen.ansi(lines)
                } else {
                    screen.text(lines)
                };
                let _ = seen.send(Seen {
                    lines: shown,
                    size: screen.size(),
                    title: screen.title().map(str::to_owned),
                });
            }
            Ask::Recent { lines, recent } => {
                let _ = recent.send(screen.recent(lines));
            }
            Ask::IsUnwatched(is_so) => {
                let _ = is_so.send(self.viewers.is_empty());
            }
            Ask::Look(tell) => self.stage.sight.want(tell, &self.stage.screen),
            Ask::End => {}
        }
    }

    fn redraw(&mut self, id: ViewerId) {
        // An update that is held back has reached the others already.
        self.stage.screen.stop_sync();
        let screen = &self.stage.screen;
        if let Some(viewer) = self.viewers.iter_mut().find(|v| v.id() == id) {
            viewer.redraw(screen, || redraw(screen));
        }
    }

    /// Makes the terminal as large as the smallest viewer; without any it stays as it is.
    fn fit(&mut self) {
        let sizes = self.viewers.iter().map(Viewer::size);
        let Some(size) = sizes.reduce(|a, b| Size {
            cols: a.cols.min(b.cols),
            rows: a.rows.min(b.rows),
        }) else {
            return;
        };
        let before = self.stage.screen.size();
        self.stage.screen.resize(size);
        let size = self.stage.screen.size();
        if size == before {
            return;
        }
        self.stage.sight.changed(Instant::now());
        let shape = rustix::termios::Winsize {
            ws_row: size.rows,
            ws_col: size.cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // The kernel tells the program with SIGWINCH.
        if let Err(error) = rustix::termios::tcsetwinsize(self.stage.pty.get_ref(), shape) {
            warn!(target: log::SESSION, "cannot resize the terminal: {error}");
        }
        if let Some(recorder) = &mut self.stage.recorder {
            recorder.resize(self.begun.elapsed(), size);
        }
        let ids: Vec<_> = self.viewers.iter().map(Viewer::id).collect();
        ids.into_iter().for_each(|id| self.redraw(id));
    }

    /// Tells the last line, writes the rest of the recording, and lets everybody go.
    async fn finish(mut self, mut asks: mpsc::Receiver<Ask>) {
        if self.is_listened() {
            let at = clock::local_now();
            let mut told = Vec::new();
            let mut count = 0;
            self.lines.finish(&mut |line: &str| {
                event::append_output(&mut told, &at, line);
                count += 1;
            });
            self.stage.hub.publish(Topic::Output, &told, count);
        }
        self.stage.screen.stop_sync();
        self.stage.sight.finish(&self.stage.screen);
        // What was held back as the beginning of something is nothing more than that now.
        self.passed.clear();
        self.sieve.finish(&mut self.passed);
        let now = Instant::now();
        if let Some(recorder) = &mut self.stage.recorder {
            recorder.output(now - self.begun, &self.passed);
        }
        for viewer in &mut self.viewers {
            viewer.output(&self.passed);
            viewer.paint(&self.stage.screen);
        }
        self.record(now);
        let Stage { drained, .. } = &mut self.stage;
        if let Some(drained) = drained.take() {
            let _ = drained.send(());
        }
        // Viewers go when the session says how it ended; until then questions are answered.
        while let Some(ask) = asks.recv().await {
            self.answer(ask);
            self.stage.sight.finish(&self.stage.screen);
        }
    }
}
