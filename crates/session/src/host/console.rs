//! What a session's program is seen and typed by, set up together: its terminal, its recording, its
//! keyboard, and what they tell. It starts their tasks, and decides nothing.

use crate::host::log;
use crate::pty::keyboard::{Keyboard, TypingState};
use crate::pty::output_activity::OutputActivity;
use crate::pty::program::ProgramFiles;
use crate::pty::screen_watch::ScreenWatch;
use crate::pty::terminal::{self, Terminal, TerminalParts};
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
    pub(crate) output_activity: Rc<OutputActivity>,
    pub(crate) sighted: watch::Receiver<Sighting>,
    pub(crate) drafted: watch::Receiver<TypingState>,
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
        let output_activity = Rc::new(OutputActivity::default());
        let (draft, drafted) = watch::channel(TypingState::default());
        let child = (record.child_pid, record.child_started);
        let files = Rc::new(ProgramFiles::of(harness, &record.launch, child));
        let (screen_watch, sighted) = ScreenWatch::new(harness.clone(), files.clone());
        let (keyboard, typing) = Keyboard::new(pty.clone(), draft, output_activity.clone());
        tokio::task::spawn_local(typing);
        let (quiet, drained) = oneshot::channel();
        let (terminal, showing) = terminal::open(TerminalParts {
            pty,
            screen: screen(harness, size),
            recorder: recorder(place, record, size),
            keyboard: keyboard.clone(),
            output_activity: output_activity.clone(),
            screen_watch,
            hub: hub.clone(),
            drained: Some(quiet),
        });
        tokio::task::spawn_local(showing);
        Self {
            terminal,
            keyboard,
            hub,
            output_activity,
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
