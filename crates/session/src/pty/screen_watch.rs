//! Reads the screen by the program's manifest: when its output pauses, and at least every
//! [`SCREEN_READ_INTERVAL`] while it does not. Reads nothing while the program writes nothing, or
//! if the manifest recognises nothing.
//!
//! Reads only the screen and the program's own files. Output does not wait for it.

use crate::pty::program::ProgramFiles;
use posthaste_core::harness::{Glance, Manifest, ProgramFacts, Sighting};
use posthaste_screen::Screen;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// How long after the last output the screen is read.
const OUTPUT_PAUSE: Duration = Duration::from_millis(2);
const SCREEN_READ_INTERVAL: Duration = Duration::from_millis(50);

/// Read a screen by a manifest. `output` counts the changes of the screen so far.
pub(crate) fn read_screen(harness: &Manifest, screen: &Screen, output: u64) -> Sighting {
    let (lines, cursor) = screen.foot(harness.lines());
    harness.recognise(&Glance {
        title: screen.title(),
        osc: screen.note(),
        lines: &lines,
        cursor,
        before: &screen.before_cursor(),
        cursor_shown: screen.cursor_visible(),
        columns: screen.size().cols.into(),
        output,
    })
}

#[derive(Debug)]
pub(crate) struct ScreenWatch {
    harness: Arc<Manifest>,
    /// Whether the manifest recognises anything on a screen.
    is_enabled: bool,
    files: Rc<ProgramFiles>,
    version: Option<String>,
    /// Whether the program may still show its version on the screen, as it does when it starts.
    expects_banner: bool,
    sightings: watch::Sender<Sighting>,
    /// Requests for the next reading, at most one per requester.
    requests: Vec<oneshot::Sender<Sighting>>,
    /// The first and the last change since the last reading.
    unread: Option<(Instant, Instant)>,
    change_count: u64,
}

impl ScreenWatch {
    /// Create a watch, and the receiver of its latest reading.
    pub(crate) fn new(
        harness: Arc<Manifest>,
        files: Rc<ProgramFiles>,
    ) -> (Self, watch::Receiver<Sighting>) {
        let (sightings, latest) = watch::channel(Sighting::default());
        let watch = Self {
            is_enabled: harness.looks(),
            version: files.version.clone(),
            expects_banner: harness.version.banner.is_some(),
            files,
            harness,
            sightings,
            requests: Vec::new(),
            unread: None,
            change_count: 0,
        };
        (watch, latest)
    }

    /// Note that the screen has changed.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.change_count += 1;
        if self.is_enabled {
            let first = self.unread.map_or(now, |(first, _)| first);
            self.unread = Some((first, now));
        }
    }

    /// Return when the screen must be read next. A synchronized update must end first.
    pub(crate) fn due(&self, screen: &Screen) -> Option<Instant> {
        let (first, last) = self.unread?;
        let at = (last + OUTPUT_PAUSE).min(first + SCREEN_READ_INTERVAL);
        screen.sync_deadline().is_none().then_some(at)
    }

    pub(crate) fn tick(&mut self, now: Instant, screen: &Screen) {
        if self.due(screen).is_some_and(|due| due <= now) {
            self.read(screen);
        }
    }

    /// Send a reading of the screen, once it shows all output so far.
    pub(crate) fn request(&mut self, reply: oneshot::Sender<Sighting>, screen: &Screen) {
        self.requests.push(reply);
        if self.unread.is_none() && screen.sync_deadline().is_none() {
            self.read(screen);
        } else if self.unread.is_none() {
            let now = Instant::now();
            self.unread = Some((now, now));
        }
    }

    /// Read the last screen, because no output will follow.
    pub(crate) fn finish(&mut self, screen: &Screen) {
        if self.unread.is_some() || !self.requests.is_empty() {
            self.read(screen);
        }
    }

    /// Return the version of the program. Its banner takes precedence over its installed files,
    /// which may be newer than the running program.
    fn version(&mut self, screen: &Screen, is_ready: bool) -> Option<String> {
        if self.expects_banner {
            let (rows, _) = screen.foot(screen.size().rows.into());
            let shown = self.harness.version.on_screen(&rows);
            self.expects_banner = shown.is_none() && !is_ready;
            self.version = shown.or(self.version.take());
        }
        self.version.clone()
    }

    fn read(&mut self, screen: &Screen) {
        self.unread = None;
        let mut sighting = read_screen(&self.harness, screen, self.change_count);
        let facts = ProgramFacts {
            version: self.version(screen, sighting.ready),
            handed_over: self.files.handed_over(),
        };
        sighting.program = Arc::new(facts);
        for reply in self.requests.drain(..) {
            let _ = reply.send(sighting.clone());
        }
        self.sightings.send_if_modified(|last| {
            let is_new = !last.is_like(&sighting);
            *last = sighting;
            is_new
        });
    }
}
