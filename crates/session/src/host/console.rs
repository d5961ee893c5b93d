//! What a session's program is seen and typed by, set up together: its terminal, its recording, its
//! keyboard, and what they tell. It starts their tasks, and decides nothing.

use crate::host::log;
use crate::pty::keyboard::{Keyboard, Typing};
use crate::pty::program::ProgramFiles;
use crate::pty::pulse::Pulse;
use crate::pty::sight::Sight;
use crate::pty::terminal::{self, Stage, Terminal};
use crate::socket::hub::Hub;
use posthaste_core::harness::{Manifest, Sighting};
use posthaste_screen::{About, Recorder, Screen, Size};
use posthaste_store::live::place::{Place, Record};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};
use tracing::warn;

/// How many lines of scrollback are kept in memory; the recording has the rest.
pub const SCROLLBACK: usize = 500;
/// What a recording's files are called.
pub const RECORDING_STEM: &str = "output";
/// How large a recording gets.
const RECORDING: u64 = 8 << 20;

pub(crate) struct Console {
    pub(crate) terminal: Terminal,
    pub(crate) keyboard: Keyboard,
    /// Who listens to what it shows.
    pub(crate) hub: Rc<Hub>,
    pub(crate) pulse: Rc<Pulse>,
    pub(crate) sighted: watch::Receiver<Sighting>,
    pub(crate) drafted: watch::Receiver<Typing>,
    /// Told when the last output is read.
    pub(crate) drained: oneshot::Receiver<()>,
    pub(crate) files: Rc<ProgramFiles>,
}

impl Console {
    pub(crate) fn open(
        place: &Place,
        record: &Record,
        harness: &Arc<Manifest>,
        pty: AsyncFd<OwnedFd>,
    ) -> Self {
        let pty = Rc::new(pty);
        let size = Size {
            cols: record.launch.cols,
            rows: record.launch.rows,
        };
        let hub = Rc::new(Hub::default());
        let pulse = Rc::new(Pulse::default());
        let (draft, drafted) = watch::channel(Typing::default());
        let child = (record.child_pid, record.child_started);
        let files = Rc::new(ProgramFiles::of(harness, &record.launch, child));
        let (sight, sighted) = Sight::new(harness.clone(), files.clone());
        let (keyboard, typing) = Keyboard::new(pty.clone(), draft, pulse.clone());
        tokio::task::spawn_local(typing);
        let (quiet, drained) = oneshot::channel();
        let (terminal, showing) = terminal::open(Stage {
            pty,
            screen: screen(harness, size),
            recorder: recorder(place, record, size),
            keyboard: keyboard.clone(),
            pulse: pulse.clone(),
            sight,
            hub: hub.clone(),
            drained: Some(quiet),
        });
        tokio::task::spawn_local(showing);
        Self {
            terminal,
            keyboard,
            hub,
            pulse,
            sighted,
            drafted,
            drained,
            files,
        }
    }
}

fn screen(harness: &Manifest, size: Size) -> Screen {
    let mut screen = Screen::new(size, SCROLLBACK);
    if let Some(osc) = &harness.activity.osc {
        screen.listen(osc.number);
    }
    screen
}

fn recorder(place: &Place, record: &Record, size: Size) -> Option<Recorder> {
    let about = About {
        size,
        started: record.started_at.as_second(),
        command: record.launch.command.join(" "),
        title: record.launch.name.to_string(),
    };
    match Recorder::create(&place.dir(), RECORDING_STEM, RECORDING, about) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            warn!(target: log::SESSION, "nothing is recorded: {error}");
            None
        }
    }
}
