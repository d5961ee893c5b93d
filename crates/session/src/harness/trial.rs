//! A harness tried on a program: it runs on a terminal of its own, and what is recognised is told
//! as it changes. No session: nothing is stored, nobody can write to it, and whatever it starts
//! ends with the trial.

use crate::host::ending;
use crate::host::layer::{Outfit, Told};
use crate::pty::child;
use crate::pty::program::ProgramFiles;
use crate::pty::sight::Sight;
use crate::routes::door::Key;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Delivery, DeliveryConfig, DeliveryEvent};
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

/// How long a program that was asked to end may take.
const GRACE: Duration = Duration::from_secs(2);
/// What ends it where we are killed: nobody comes after us who would.
const ORPHANED: Signal = Signal::KILL;
/// How much is read before the rest gets its turn.
const PIECE: usize = 64 << 10;

/// Something that was recognised, or happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Noted {
    pub kind: &'static str,
    pub is: String,
    pub evidence: String,
}

fn noted(kind: &'static str, is: impl Into<String>, evidence: impl Into<String>) -> Noted {
    Noted {
        kind,
        is: is.into(),
        evidence: evidence.into(),
    }
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    WasReady,
    NeverReady,
}

/// Tells what is noted, and how long after the start.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(Duration, &Noted) -> Result<()>;

/// Runs the program until it exits, the limit is reached or somebody presses Ctrl+C.
pub fn run(
    harness: Manifest,
    launch: &Launch,
    limit: Option<Duration>,
    tell: Tell<'_>,
) -> Result<Outcome> {
    let cannot = |error: std::io::Error| Report::storage(format!("cannot try a harness: {error}"));
    let dir = tempfile::tempdir().map_err(cannot)?;
    let home = Home::open(dir.path(), None)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    runtime.block_on(async {
        let door = Key::for_program(&harness, launch)?;
        let told = Told {
            resume: None,
            home: &home,
            place: &Place::of(&home, &launch.name),
            socket: &dir.path().join("none.sock"),
            launch,
            run: Uuid::new_v4(),
            door: door.as_ref(),
        };
        let outfit = Outfit::prepare(&told, &harness.start)?;
        let files = rustix::process::getrlimit(Resource::Nofile);
        let (pty, child) = child::spawn(&told, &harness, &outfit, files, ORPHANED)?;
        let pid = child.id().unwrap_or_default();
        let started = process::started(pid).unwrap_or_default();
        let files = ProgramFiles::of(&harness, launch, (pid, started));
        let mut trial = Trial::new(Arc::new(harness), launch, pty, files);
        trial.watch(child, limit, tell).await
    })
}

struct Trial {
    pty: AsyncFd<OwnedFd>,
    screen: Screen,
    sight: Sight,
    sighted: watch::Receiver<Sighting>,
    delivery: Delivery,
    begun: Instant,
    shown: Shown,
}

/// What was told last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
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
        let (sight, sighted) = Sight::new(harness.clone(), Rc::new(files));
        let manner = DeliveryConfig {
            harness,
            path_bytes: 0,
            reach: posthaste_core::delivery::Reach::Terminal,
            has_hooks: false,
        };
        let begun = Instant::now();
        let now = moment(begun);
        Self {
            pty,
            screen,
            sight,
            sighted,
            delivery: Delivery::new(manner, now),
            begun,
            shown: Shown::default(),
        }
    }

    async fn watch(
        &mut self,
        mut child: Child,
        limit: Option<Duration>,
        tell: Tell<'_>,
    ) -> Result<Outcome> {
        let cannot =
            |error: std::io::Error| Report::storage(format!("cannot try a harness: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let pid = child.id().unwrap_or_default();
        let started = process::started(pid).unwrap_or_default();
        let ends_at = limit.map(|limit| self.begun + limit);
        let mut is_open = true;
        let status = loop {
            self.say(tell)?;
            let wakeup = self.wakeup().into_iter().chain(ends_at).min();
            let wakeup = wakeup.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600));
            tokio::select! {
                biased;
                _ = interrupt.recv() => break None,
                _ = terminate.recv() => break None,
                status = child.wait() => break Some(status),
                is_more = read(&self.pty, &mut self.screen), if is_open => match is_more {
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
                // Its last words, as far as they are there.
                while read_now(&self.pty, &mut self.screen) == Some(true) {
                    self.output();
                }
                self.sight.finish(&self.screen);
                self.tick();
                self.say(tell)?;
                ending(&status)
            }
            None => {
                let how = end(&mut child, pid, started).await;
                tell(self.begun.elapsed(), &noted("ended", "by us", ""))?;
                how
            }
        };
        process::signal_all(pid, started, Signal::KILL);
        self.exit(&how, tell)?;
        Ok(if self.shown.was_ready {
            Outcome::WasReady
        } else {
            Outcome::NeverReady
        })
    }

    fn exit(&mut self, how: &Ending, tell: Tell<'_>) -> Result<()> {
        self.delivery
            .on(moment(self.begun), DeliveryEvent::Exited(how.clone()));
        self.say(tell)
    }

    fn wakeup(&self) -> Option<Instant> {
        let delivery = self.delivery.next_wakeup().map(|at| self.begun + at);
        let sync = self.screen.sync_deadline();
        let look = self.sight.due(&self.screen);
        [delivery, sync, look].into_iter().flatten().min()
    }

    fn output(&mut self) {
        let answers = self.screen.take_replies();
        // A program that does not read its answers gets none.
        let _ = rustix::io::write(self.pty.get_ref(), &answers);
        self.sight.changed(Instant::now());
        self.delivery.on(moment(self.begun), DeliveryEvent::Output);
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if self.screen.sync_deadline().is_some_and(|at| at <= now) {
            self.screen.stop_sync();
            self.sight.changed(now);
        }
        self.sight.tick(now, &self.screen);
        let event = match self.sighted.has_changed() {
            Ok(true) => DeliveryEvent::ScreenChanged(self.sighted.borrow_and_update().clone()),
            Ok(false) | Err(_) => DeliveryEvent::Tick,
        };
        self.delivery.on(moment(self.begun), event);
    }

    /// Tells what has changed.
    fn say(&mut self, tell: Tell<'_>) -> Result<()> {
        let at = self.begun.elapsed();
        let judged = self.delivery.activity();
        let title = self.screen.title().map(|title| text::one_line(title, 80));
        if title != self.shown.title {
            let is = title.clone().unwrap_or_default();
            tell(at, &noted("title", is, ""))?;
            self.shown.title = title;
        }
        let paste = self.screen.bracketed_paste();
        if paste != self.shown.paste {
            let is = if paste { "wanted" } else { "not wanted" };
            tell(at, &noted("paste", is, ""))?;
            self.shown.paste = paste;
        }
        let input_box = self.sighted.borrow().input_box.clone();
        if input_box != self.shown.input_box {
            let (is, what) = match &input_box {
                BoxState::Undescribed => ("undescribed", String::new()),
                BoxState::Unrecognised(mismatch) => ("unrecognised", mismatch.to_string()),
                BoxState::Empty => ("empty", String::new()),
                BoxState::Holds(held) => ("draft", text::one_line(&held.text, 60)),
            };
            tell(at, &noted("input", is, what))?;
            self.shown.input_box = input_box;
        }
        let activity = (judged.activity, judged.evidence);
        if Some(&activity) == self.shown.activity.as_ref() {
            return Ok(());
        }
        let is_up = !matches!(activity.0, Activity::Starting | Activity::Exited);
        if is_up && !self.delivery.is_starting() && !self.shown.was_ready {
            self.shown.was_ready = true;
            tell(at, &noted("ready", "yes", self.delivery.ready_evidence()))?;
        }
        let is = match &activity.0 {
            Activity::Blocked(on) => format!("blocked on {}", text::one_line(on, 80)),
            other => other.to_string(),
        };
        tell(at, &noted("activity", is, text::one_line(&activity.1, 100)))?;
        self.shown.activity = Some(activity);
        Ok(())
    }
}

fn moment(begun: Instant) -> Moment {
    Moment {
        wall: posthaste_store::times::now(),
        mono: begun.elapsed(),
    }
}

/// Whether there was something to read; nothing at the end.
async fn read(pty: &AsyncFd<OwnedFd>, screen: &mut Screen) -> Option<bool> {
    let mut ready = pty.readable().await.ok()?;
    let read = read_now(pty, screen);
    if read == Some(false) {
        ready.clear_ready();
    }
    read
}

fn read_now(pty: &AsyncFd<OwnedFd>, screen: &mut Screen) -> Option<bool> {
    let mut buffer = vec![0; PIECE];
    match rustix::io::read(pty.get_ref(), &mut buffer[..]) {
        Ok(count @ 1..) => {
            screen.feed(&buffer[..count]);
            Some(true)
        }
        Err(Errno::AGAIN | Errno::INTR) => Some(false),
        Ok(_) | Err(_) => None,
    }
}

/// Asks the program to end, and insists.
async fn end(child: &mut Child, pid: u32, started: u64) -> Ending {
    for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
        process::signal_group(pid, signal);
    }
    let status = match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            process::signal_all(pid, started, Signal::KILL);
            child.wait().await
        }
    };
    ending(&status)
}
