//! Looking at the screen by what is known of the program: when its output pauses, and else not
//! too often; never where nothing is to be recognised, and never while nothing is written.
//!
//! Reads the screen and the program's own files, and changes nothing. Output does not wait for it.

use crate::pty::program::ProgramFiles;
use posthaste_core::harness::{Glance, Manifest, ProgramFacts, Sighting};
use posthaste_screen::Screen;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// So long after the last output it has paused: what is drawn is drawn.
const PAUSE: Duration = Duration::from_millis(2);
/// Output that does not pause is looked at this often.
const AT_LEAST: Duration = Duration::from_millis(50);

/// Read a screen by a manifest. `output` counts the changes of the screen so far.
pub(crate) fn glance(harness: &Manifest, screen: &Screen, output: u64) -> Sighting {
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
pub(crate) struct Sight {
    harness: Arc<Manifest>,
    /// Whether there is anything to recognise.
    looks: bool,
    files: Rc<ProgramFiles>,
    version: Option<String>,
    /// Whether the program may still show its version on the screen: it does so as it starts.
    seeks_banner: bool,
    seen: watch::Sender<Sighting>,
    /// Who waits for a look; whoever asks has one question at a time.
    wanted: Vec<oneshot::Sender<Sighting>>,
    /// The first and the last output since the last look.
    unseen: Option<(Instant, Instant)>,
    /// How often the screen has changed.
    output: u64,
}

impl Sight {
    /// Each change of what is seen goes to the other end, the latest alone.
    pub(crate) fn new(
        harness: Arc<Manifest>,
        files: Rc<ProgramFiles>,
    ) -> (Self, watch::Receiver<Sighting>) {
        let (seen, sightings) = watch::channel(Sighting::default());
        let sight = Self {
            looks: harness.looks(),
            version: files.version.clone(),
            seeks_banner: harness.version.banner.is_some(),
            files,
            harness,
            seen,
            wanted: Vec::new(),
            unseen: None,
            output: 0,
        };
        (sight, sightings)
    }

    /// The screen has changed.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.output += 1;
        if self.looks {
            let first = self.unseen.map_or(now, |(first, _)| first);
            self.unseen = Some((first, now));
        }
    }

    /// When it is time to look. Not while an update is half drawn: that ends by itself.
    pub(crate) fn due(&self, screen: &Screen) -> Option<Instant> {
        let (first, last) = self.unseen?;
        let at = (last + PAUSE).min(first + AT_LEAST);
        screen.sync_deadline().is_none().then_some(at)
    }

    pub(crate) fn tick(&mut self, now: Instant, screen: &Screen) {
        if self.due(screen).is_some_and(|due| due <= now) {
            self.look(screen);
        }
    }

    /// Somebody wants to know what is to be seen, once all that was written is.
    pub(crate) fn want(&mut self, tell: oneshot::Sender<Sighting>, screen: &Screen) {
        self.wanted.push(tell);
        if self.unseen.is_none() && screen.sync_deadline().is_none() {
            self.look(screen);
        } else if self.unseen.is_none() {
            let now = Instant::now();
            self.unseen = Some((now, now));
        }
    }

    /// The end: nothing more will be drawn.
    pub(crate) fn finish(&mut self, screen: &Screen) {
        if self.unseen.is_some() || !self.wanted.is_empty() {
            self.look(screen);
        }
    }

    /// Return the version of the program. Its banner counts for more than its installed files, which
    /// may be newer than the running program.
    fn version(&mut self, screen: &Screen, is_ready: bool) -> Option<String> {
        if self.seeks_banner {
            let (rows, _) = screen.foot(screen.size().rows.into());
            let shown = self.harness.version.on_screen(&rows);
            self.seeks_banner = shown.is_none() && !is_ready;
            self.version = shown.or(self.version.take());
        }
        self.version.clone()
    }

    fn look(&mut self, screen: &Screen) {
        self.unseen = None;
        let mut sighting = glance(&self.harness, screen, self.output);
        let facts = ProgramFacts {
            version: self.version(screen, sighting.ready),
            handed_over: self.files.handed_over(),
        };
        sighting.program = Arc::new(facts);
        for tell in self.wanted.drain(..) {
            let _ = tell.send(sighting.clone());
        }
        self.seen.send_if_modified(|was| {
            let is_new = !was.is_like(&sighting);
            *was = sighting;
            is_new
        });
    }
}
