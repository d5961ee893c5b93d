//! Sets up the input and output of a session's program: terminal, recording and keyboard, and the
//! values that they publish. Starts their tasks and decides nothing.

use crate::host::log;
use crate::pty::keyboard::{Keyboard, TypingState};
use crate::pty::output_activity::OutputActivity;
use crate::pty::program::ProgramFiles;
use crate::pty::screen_watch::ScreenWatch;
use crate::pty::terminal::{self, Terminal, TerminalParts};
use crate::socket::output::hub::Hub;
use posthaste_core::harness::{Manifest, Sighting};
use posthaste_screen::{Recorder, RecordingInfo, Screen, Size};
use posthaste_store::live::{SessionDir, SessionRecord};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};
use tracing::warn;

/// Number of scrollback lines that are kept in memory. The recording has older lines.
pub const SCROLLBACK_LINES: usize = 500;
/// Stem of the names of a recording's files.
pub const RECORDING_STEM: &str = "output";
/// Maximum size of a recording.
const MAX_RECORDING_BYTES: u64 = 8 << 20;

pub(crate) struct ProgramIo {
    pub(crate) terminal: Terminal,
    pub(crate) keyboard: Keyboard,
    /// Connections that are sent output and events.
    pub(crate) hub: Rc<Hub>,
    pub(crate) observers: Observers,
    /// Completes when the program's last output was read.
    pub(crate) drained: oneshot::Receiver<()>,
}

/// Sources of what is known about the program.
pub(crate) struct Observers {
    pub(crate) output: Rc<OutputActivity>,
    pub(crate) screen: watch::Receiver<Sighting>,
    pub(crate) typing: watch::Receiver<TypingState>,
    pub(crate) files: Rc<ProgramFiles>,
}

impl ProgramIo {
    pub(crate) fn open(
        session_dir: &SessionDir,
        record: &SessionRecord,
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
        let (typing_sender, typing) = watch::channel(TypingState::default());
        let child = (record.child_pid, record.child_started);
        let files = Rc::new(ProgramFiles::of(harness, &record.launch, child));
        let (screen_watch, screen) = ScreenWatch::new(harness.clone(), files.clone());
        let (keyboard, keyboard_task) =
            Keyboard::new(pty.clone(), typing_sender, output_activity.clone());
        tokio::task::spawn_local(keyboard_task);
        let (drained_sender, drained) = oneshot::channel();
        let (terminal, terminal_task) = terminal::open(TerminalParts {
            pty,
            screen: screen_model(harness, size, SCROLLBACK_LINES),
            recorder: recorder(session_dir, record, size),
            keyboard: keyboard.clone(),
            output_activity: output_activity.clone(),
            screen_watch,
            hub: hub.clone(),
            drained: Some(drained_sender),
        });
        tokio::task::spawn_local(terminal_task);
        Self {
            terminal,
            keyboard,
            hub,
            observers: Observers {
                output: output_activity,
                screen,
                typing,
                files,
            },
            drained,
        }
    }
}

/// Create the model of a program's terminal, which keeps the status notes that the harness reads.
pub(crate) fn screen_model(harness: &Manifest, size: Size, scrollback_lines: usize) -> Screen {
    let mut screen = Screen::new(size, scrollback_lines);
    if let Some(osc) = &harness.activity.osc {
        screen.listen(osc.number);
    }
    screen
}

fn recorder(session_dir: &SessionDir, record: &SessionRecord, size: Size) -> Option<Recorder> {
    let about = RecordingInfo {
        size,
        started: record.started_at.as_second(),
        command: record.launch.command.join(" "),
        title: record.launch.name.to_string(),
    };
    match Recorder::create(
        &session_dir.dir(),
        RECORDING_STEM,
        MAX_RECORDING_BYTES,
        about,
    ) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            warn!(target: log::SESSION, "the terminal is not recorded: {error}");
            None
        }
    }
}
