//! Tries a harness on a program: runs it on a terminal of its own, and reports each change of what
//! the harness recognises. This is not a session: nothing is stored, the program gets no mail, and
//! all its processes end with the trial.

use crate::host::ending;
use crate::host::launch_files::{LaunchContext, PreparedLaunch};
use crate::pty::child;
use crate::pty::program::ProgramFiles;
use crate::pty::screen_watch::ScreenWatch;
use crate::routes::http::HttpRoute;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Delivery, DeliveryConfig};
use posthaste_core::driver::Input;
use posthaste_core::harness::{BoxState, Manifest, Sighting};
use posthaste_core::moment::Moment;
use posthaste_core::session::Ending;
use posthaste_core::text;
use posthaste_screen::{Screen, Size};
use posthaste_store::Home;
use posthaste_store::live::place::{Launch, Place};
use posthaste_store::live::process;
use posthaste_store::report::{Report, Result};
use rustix::io::Errno;
use rustix::process::{Resource, Signal};
use serde::Serialize;
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

/// Called with each observation, and the time since the start.
pub(crate) type OnObservation<'a> = &'a mut dyn FnMut(Duration, &Observation) -> Result<()>;

/// Run the program until it exits, the limit is reached or the user presses Ctrl+C.
pub fn run(
    harness: Manifest,
    launch: &Launch,
    limit: Option<Duration>,
    report: OnObservation<'_>,
) -> Result<Readiness> {
    let cannot = |error: std::io::Error| Report::storage(format!("cannot try a harness: {error}"));
    let dir = tempfile::tempdir().map_err(cannot)?;
    let home = Home::open(dir.path(), None)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    runtime.block_on(async {
        let http = HttpRoute::for_program(&harness, launch)?;
        let context = LaunchContext {
            resume: None,
            home: &home,
            place: &Place::of(&home, &launch.name),
            socket: &dir.path().join("none.sock"),
            launch,
            run: Uuid::new_v4(),
            http: http.as_ref(),
        };
        let prepared = PreparedLaunch::prepare(&context, &harness.start)?;
        let files = rustix::process::getrlimit(Resource::Nofile);
        let (pty, child) = child::spawn(&context, &harness, &prepared, files, ORPHAN_SIGNAL)?;
        let pid = child.id().unwrap_or_default();
        let started = process::started(pid).unwrap_or_default();
        let files = ProgramFiles::of(&harness, launch, (pid, started));
        let mut trial = Trial::new(Arc::new(harness), launch, pty, files);
        trial.watch(child, limit, report).await
    })
}

struct Trial {
    pty: AsyncFd<OwnedFd>,
    screen: Screen,
    screen_watch: ScreenWatch,
    sightings: watch::Receiver<Sighting>,
    delivery: Delivery,
    started: Instant,
    reported: Reported,
}

/// The values that were reported last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reported {
    activity: Option<(Activity, String)>,
    input_box: BoxState,
    title: Option<String>,
    paste: bool,
    was_ready: bool,
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
        let mut screen = Screen::new(size, 0);
        if let Some(osc) = &harness.activity.osc {
            screen.listen(osc.number);
        }
        let (screen_watch, sightings) = ScreenWatch::new(harness.clone(), Rc::new(files));
        let config = DeliveryConfig {
            harness,
            path_bytes: 0,
            reach: posthaste_core::delivery::Reach::Terminal,
            has_hooks: false,
        };
        let started = Instant::now();
        let now = moment(started);
        Self {
            pty,
            screen,
            screen_watch,
            sightings,
            delivery: Delivery::new(config, now),
            started,
            reported: Reported::default(),
        }
    }

    async fn watch(
        &mut self,
        mut child: Child,
        limit: Option<Duration>,
        report: OnObservation<'_>,
    ) -> Result<Readiness> {
        let cannot =
            |error: std::io::Error| Report::storage(format!("cannot try a harness: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let pid = child.id().unwrap_or_default();
        let started = process::started(pid).unwrap_or_default();
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
                has_output = read(&self.pty, &mut self.screen), if is_open => match has_output {
                    Some(true) => self.output(),
                    Some(false) => {}
                    None => is_open = false,
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
                while read_now(&self.pty, &mut self.screen) == Some(true) {
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
        self.exit(&how, report)?;
        Ok(if self.reported.was_ready {
            Readiness::WasReady
        } else {
            Readiness::NeverReady
        })
    }

    fn exit(&mut self, how: &Ending, report: OnObservation<'_>) -> Result<()> {
        self.delivery
            .on(moment(self.started), &Input::Exited(how.clone()));
        self.report_changes(report)
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
        let at = self.started.elapsed();
        let judgement = self.delivery.activity();
        let title = self.screen.title().map(|title| text::one_line(title, 80));
        if title != self.reported.title {
            let is = title.clone().unwrap_or_default();
            report(at, &observation("title", is, ""))?;
            self.reported.title = title;
        }
        let paste = self.screen.bracketed_paste();
        if paste != self.reported.paste {
            let is = if paste { "wanted" } else { "not wanted" };
            report(at, &observation("paste", is, ""))?;
            self.reported.paste = paste;
        }
        let input_box = self.sightings.borrow().input_box.clone();
        if input_box != self.reported.input_box {
            let (is, what) = match &input_box {
                BoxState::Undescribed => ("undescribed", String::new()),
                BoxState::Unrecognised(mismatch) => ("unrecognised", mismatch.to_string()),
                BoxState::Empty => ("empty", String::new()),
                BoxState::Holds(held) => ("draft", text::one_line(&held.text, 60)),
            };
            report(at, &observation("input", is, what))?;
            self.reported.input_box = input_box;
        }
        let activity = (judgement.activity, judgement.evidence);
        if Some(&activity) == self.reported.activity.as_ref() {
            return Ok(());
        }
        let is_up = !matches!(activity.0, Activity::Starting | Activity::Exited);
        if is_up && !self.delivery.is_starting() && !self.reported.was_ready {
            self.reported.was_ready = true;
            report(
                at,
                &observation("ready", "yes", self.delivery.ready_evidence()),
            )?;
        }
        let is = match &activity.0 {
            Activity::Blocked(on) => format!("blocked on {}", text::one_line(on, 80)),
            other => other.to_string(),
        };
        report(
            at,
            &observation("activity", is, text::one_line(&activity.1, 100)),
        )?;
        self.reported.activity = Some(activity);
        Ok(())
    }
}

fn moment(started: Instant) -> Moment {
    Moment {
        wall: posthaste_store::times::now(),
        mono: started.elapsed(),
    }
}

/// Wait for output, and return whether any was read. `None` at the end of the output.
async fn read(pty: &AsyncFd<OwnedFd>, screen: &mut Screen) -> Option<bool> {
    let mut ready = pty.readable().await.ok()?;
    let read = read_now(pty, screen);
    if read == Some(false) {
        ready.clear_ready();
    }
    read
}

fn read_now(pty: &AsyncFd<OwnedFd>, screen: &mut Screen) -> Option<bool> {
    let mut buffer = vec![0; READ_BYTES];
    match rustix::io::read(pty.get_ref(), &mut buffer[..]) {
        Ok(count @ 1..) => {
            screen.feed(&buffer[..count]);
            Some(true)
        }
        Err(Errno::AGAIN | Errno::INTR) => Some(false),
        Ok(_) | Err(_) => None,
    }
}

/// Ask the program to exit, and kill it if it does not exit in time.
async fn end(child: &mut Child, pid: u32, started: u64) -> Ending {
    for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
        process::signal_group(pid, signal);
    }
    let status = match tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            process::signal_all(pid, started, Signal::KILL);
            child.wait().await
        }
    };
    ending(&status)
}
