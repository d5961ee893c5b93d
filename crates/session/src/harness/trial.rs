//! Tries a harness on a program: runs it on a terminal of its own, and reports each change of what
//! the harness recognises. This is not a session: nothing is stored, the program gets no mail, and
//! all its processes end with the trial.

use crate::host::ending;
use crate::host::launch_files::{LaunchContext, PreparedLaunch};
use crate::host::program_io::screen_model;
use crate::poll::{TerminalRead, read_terminal};
use crate::pty::child;
use crate::pty::program::ProgramFiles;
use crate::pty::screen_watch::ScreenWatch;
use crate::routes::http::HttpApi;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Delivery, DeliveryConfig};
use posthaste_core::driver::Input;
use posthaste_core::harness::{BoxState, Manifest, Sighting};
use posthaste_core::moment::Moment;
use posthaste_core::session::Ending;
use posthaste_core::text;
use posthaste_screen::{Screen, Size};
use posthaste_store::Home;
use posthaste_store::live::{Launch, SessionDir, process};
use posthaste_store::report::{Report, Result};
use rustix::process::{Resource, Signal};
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use uuid::Uuid;

/// How long the program may take to exit after it was asked to.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Signal to the program if this process is killed.
const ORPHAN_SIGNAL: Signal = Signal::KILL;
/// How many bytes of output are read at once.
const READ_BYTES: usize = 64 << 10;
const PASTE_WANTED: &str = "wanted";
const PASTE_NOT_WANTED: &str = "not wanted";
const BOX_UNDESCRIBED: &str = "undescribed";

/// A change that the trial reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    pub kind: &'static str,
    pub is: String,
    pub evidence: String,
}

fn observation(
    kind: &'static str,
    is: impl Into<String>,
    evidence: impl Into<String>,
) -> Observation {
    Observation {
        kind,
        is: is.into(),
        evidence: evidence.into(),
    }
}

/// Whether the program was recognised as ready during a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    WasReady,
    NeverReady,
}

fn cannot_try(error: impl std::fmt::Display) -> Report {
    Report::storage(format!("cannot try a harness: {error}"))
}

/// Called with each observation, and the time since the start.
pub(crate) type OnObservation<'a> = &'a mut dyn FnMut(Duration, &Observation) -> Result<()>;

/// Run the program until it exits, the limit is reached or the user presses Ctrl+C.
pub fn run(
    harness: Manifest,
    launch: &Launch,
    limit: Option<Duration>,
    report: OnObservation<'_>,
) -> Result<Readiness> {
    let dir = tempfile::tempdir().map_err(cannot_try)?;
    let home = Home::open(dir.path(), None)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot_try)?;
    runtime.block_on(async {
        let http = HttpApi::for_program(&harness, launch)?;
        let context = LaunchContext {
            resume: None,
            home: &home,
            session_dir: &SessionDir::of(&home, &launch.name),
            socket: &dir.path().join("none.sock"),
            launch,
            run: Uuid::new_v4(),
            http: http.as_ref(),
        };
        let prepared = PreparedLaunch::prepare(&context, &harness.start)?;
        let files = rustix::process::getrlimit(Resource::Nofile);
        let (pty, child) = child::spawn(&context, &harness, &prepared, files, ORPHAN_SIGNAL)?;
        let pid = child.id().unwrap_or_default();
        let id = (pid, process::started(pid).unwrap_or_default());
        let files = ProgramFiles::of(&harness, launch, id);
        let mut trial = Trial::new(Arc::new(harness), launch, pty, files);
        trial.watch(child, id, limit, report).await
    })
}

struct Trial {
    pty: AsyncFd<OwnedFd>,
    screen: Screen,
    screen_watch: ScreenWatch,
    sightings: watch::Receiver<Sighting>,
    delivery: Delivery,
    started: Instant,
    /// The last observation of each kind.
    reported: BTreeMap<&'static str, Observation>,
}

impl Trial {
    fn new(
        harness: Arc<Manifest>,
        launch: &Launch,
        pty: AsyncFd<OwnedFd>,
        files: ProgramFiles,
    ) -> Self {
        let size = Size {
            cols: launch.cols,
            rows: launch.rows,
        };
        let screen = screen_model(&harness, size, 0);
        let (screen_watch, sightings) = ScreenWatch::new(harness.clone(), Rc::new(files));
        let config = DeliveryConfig {
            harness,
            path_bytes: 0,
            reach: posthaste_core::delivery::Reach::Terminal,
            has_hooks: false,
        };
        let started = Instant::now();
        let now = moment(started);
        // The state of every program at its start is not a change.
        let unreported = [
            observation("title", "", ""),
            observation("paste", PASTE_NOT_WANTED, ""),
            observation("input", BOX_UNDESCRIBED, ""),
        ];
        Self {
            pty,
            screen,
            screen_watch,
            sightings,
            delivery: Delivery::new(config, now),
            started,
            reported: unreported.map(|first| (first.kind, first)).into(),
        }
    }

    /// Report changes until the program has ended. `(pid, started)` identifies it.
    async fn watch(
        &mut self,
        mut child: Child,
        (pid, started): (u32, u64),
        limit: Option<Duration>,
        report: OnObservation<'_>,
    ) -> Result<Readiness> {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot_try)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot_try)?;
        let ends_at = limit.map(|limit| self.started + limit);
        let mut is_open = true;
        let status = loop {
            self.report_changes(report)?;
            let wakeup = self.wakeup().into_iter().chain(ends_at).min();
            let wakeup = wakeup.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600));
            tokio::select! {
                biased;
                _ = interrupt.recv() => break None,
                _ = terminate.recv() => break None,
                status = child.wait() => break Some(status),
                read = read(&self.pty, &mut self.screen), if is_open => match read {
                    TerminalRead::Bytes(_) => self.output(),
                    TerminalRead::Nothing => {}
                    TerminalRead::Closed => is_open = false,
                },
                () = tokio::time::sleep_until(wakeup.into()) => {}
            }
            self.tick();
            if ends_at.is_some_and(|at| at <= Instant::now()) {
                break None;
            }
        };
        let how = match status {
            Some(status) => {
                // Read the rest of the output.
                while let TerminalRead::Bytes(_) = read_now(&self.pty, &mut self.screen) {
                    self.output();
                }
                self.screen_watch.finish(&self.screen);
                self.tick();
                self.report_changes(report)?;
                ending(&status)
            }
            None => {
                let how = end(&mut child, pid, started).await;
                report(self.started.elapsed(), &observation("ended", "by us", ""))?;
                how
            }
        };
        process::signal_all(pid, started, Signal::KILL);
        let exited = Input::Exited(how);
        self.delivery.on(moment(self.started), &exited);
        self.report_changes(report)?;
        Ok(match self.was_ready() {
            true => Readiness::WasReady,
            false => Readiness::NeverReady,
        })
    }

    fn wakeup(&self) -> Option<Instant> {
        let delivery = self.delivery.next_wakeup().map(|at| self.started + at);
        let sync = self.screen.sync_deadline();
        let screen_watch = self.screen_watch.due(&self.screen);
        [delivery, sync, screen_watch].into_iter().flatten().min()
    }

    fn output(&mut self) {
        let replies = self.screen.take_replies();
        // Replies are dropped if the program does not read them.
        let _ = rustix::io::write(self.pty.get_ref(), &replies);
        self.screen_watch.changed(Instant::now());
        self.delivery.on(moment(self.started), &Input::OutputSeen);
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if self.screen.sync_deadline().is_some_and(|at| at <= now) {
            self.screen.stop_sync();
            self.screen_watch.changed(now);
        }
        self.screen_watch.tick(now, &self.screen);
        match self.sightings.has_changed() {
            Ok(true) => {
                let sighting = self.sightings.borrow_and_update().clone();
                let changed = Input::ScreenChanged(sighting);
                self.delivery.on(moment(self.started), &changed);
            }
            Ok(false) | Err(_) => {
                self.delivery.tick(moment(self.started));
            }
        }
    }

    fn report_changes(&mut self, report: OnObservation<'_>) -> Result<()> {
        for observation in self.observations() {
            if self.reported.get(observation.kind) != Some(&observation) {
                report(self.started.elapsed(), &observation)?;
                self.reported.insert(observation.kind, observation);
            }
        }
        Ok(())
    }

    /// Return the current observations, in the order in which changes are reported.
    fn observations(&self) -> Vec<Observation> {
        let title = self.screen.title().map(|title| text::one_line(title, 80));
        let paste = match self.screen.bracketed_paste() {
            true => PASTE_WANTED,
            false => PASTE_NOT_WANTED,
        };
        let (input_box, held) = match &self.sightings.borrow().input_box {
            BoxState::Undescribed => (BOX_UNDESCRIBED, String::new()),
            BoxState::Unrecognised(mismatch) => ("unrecognised", mismatch.to_string()),
            BoxState::Empty => ("empty", String::new()),
            BoxState::Holds(held) => ("draft", text::one_line(&held.text, 60)),
        };
        let judgement = self.delivery.activity();
        let activity = match &judgement.activity {
            Activity::Blocked(on) => format!("blocked on {}", text::one_line(on, 80)),
            other => other.to_string(),
        };
        let is_up = !matches!(judgement.activity, Activity::Starting | Activity::Exited);
        let is_ready = is_up && !self.delivery.is_starting() && !self.was_ready();
        [
            Some(observation("title", title.unwrap_or_default(), "")),
            Some(observation("paste", paste, "")),
            Some(observation("input", input_box, held)),
            is_ready.then(|| observation("ready", "yes", self.delivery.ready_evidence())),
            Some(observation(
                "activity",
                activity,
                text::one_line(&judgement.evidence, 100),
            )),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn was_ready(&self) -> bool {
        self.reported.contains_key("ready")
    }
}

fn moment(started: Instant) -> Moment {
    Moment {
        wall: posthaste_store::times::now(),
        mono: started.elapsed(),
    }
}

/// Wait for output, and read it.
async fn read(pty: &AsyncFd<OwnedFd>, screen: &mut Screen) -> TerminalRead {
    let Ok(mut ready) = pty.readable().await else {
        return TerminalRead::Closed;
    };
    let read = read_now(pty, screen);
    if let TerminalRead::Nothing = read {
        ready.clear_ready();
    }
    read
}

fn read_now(pty: &AsyncFd<OwnedFd>, screen: &mut Screen) -> TerminalRead {
    let mut buffer = vec![0; READ_BYTES];
    let read = read_terminal(pty.get_ref(), &mut buffer);
    if let TerminalRead::Bytes(count) = read {
        screen.feed(&buffer[..count]);
    }
    read
}

/// Ask the program to exit, and kill it if it does not exit in time.
async fn end(child: &mut Child, pid: u32, started: u64) -> Ending {
    process::request_group_end(pid);
    let status = match tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            process::signal_all(pid, started, Signal::KILL);
            child.wait().await
        }
    };
    ending(&status)
}
