//! Moves bytes between an agent's terminal and the session's until the agent has ended, or has to.
//!
//! One thread, one wait. What the agent writes is shown and listened to as it comes; keys and sizes
//! go the other way. Whatever else happens, it says so and lets the runner decide.

use super::agent::{Agent, Output};
use super::json_output::Reader;
use super::terminal_output::Face;
use super::wakeups::{Ears, Keys, TICK, keys};
use posthaste_core::build::completion::Detector;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdin;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Read at a time.
const PIECE: usize = 64 << 10;

/// Why there is no more to wait for.
#[derive(Debug)]
pub(super) enum Stopped {
    Exited(std::io::Result<ExitStatus>),
    /// It wrote nothing for too long.
    Idle,
    /// The runner wants it to end.
    Halted(Halt),
}

/// Why the runner ends an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// A message cannot wait.
    Interrupted,
    /// We were asked to end.
    Ended,
    /// The session is gone: nobody is left to record anything for.
    Orphaned,
}

/// What the runner says to that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) halt: Option<Halt>,
    /// Whether interactive mode is on, where it was looked up.
    pub(super) is_interactive: Option<bool>,
}

/// What the runner is told while its agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// All of the prompt is written.
    Fed,
    /// The journal may have something new.
    Rung,
}

pub(super) struct Pump<'a> {
    pub(super) ears: &'a mut Ears,
    pub(super) face: &'a mut Face,
    pub(super) detector: &'a mut Detector,
    /// What makes its output readable, where it is not.
    pub(super) reader: Option<Reader>,
    /// How long the agent may write nothing.
    pub(super) patience: Option<Duration>,
}

/// Who has something for us.
#[derive(Default)]
struct Ready {
    signals: bool,
    rings: bool,
    keys: bool,
    output: bool,
    input: bool,
    prompt: bool,
}

impl Pump<'_> {
    /// Until the agent has ended. `hear` is told what happens, and may want it to end.
    pub(super) fn run(&mut self, agent: &mut Agent, mut hear: impl FnMut(News) -> Said) -> Stopped {
        let mut piece = vec![0; PIECE];
        let mut heard_at = Instant::now();
        let mut is_closed = false;
        let mut looked_at = Instant::now();
        loop {
            let idle_at = self.patience.map(|patience| heard_at + patience);
            if idle_at.is_some_and(|at| at <= Instant::now()) {
                return Stopped::Idle;
            }
            let tick = looked_at + TICK;
            let due = idle_at.map_or(tick, |at| at.min(tick));
            let ready = self.wait(agent, is_closed, due);
            if ready.signals {
                let signalled = self.ears.signalled();
                if signalled.end {
                    return Stopped::Halted(Halt::Ended);
                }
                if signalled.resized {
                    agent.resize(self.face.size());
                }
            }
            if ready.output {
                match agent.read(&mut piece) {
                    Output::Some(count) => {
                        heard_at = Instant::now();
                        self.show(&piece[..count]);
                    }
                    Output::None => {}
                    Output::Closed => is_closed = true,
                }
            }
            if let Some(halt) = self.keys(agent, &ready, &mut piece) {
                return Stopped::Halted(halt);
            }
            if ready.prompt && agent.feed() {
                hear(News::Fed);
            }
            let mut said = Said::default();
            if ready.rings || looked_at.elapsed() >= TICK {
                self.ears.hush();
                looked_at = Instant::now();
                said = hear(News::Rung);
            }
            if let Some(is_interactive) = said.is_interactive {
                self.detector.set_interactive(is_interactive);
            }
            if let Some(status) = agent.status() {
                self.drain(agent, &mut piece);
                return Stopped::Exited(status);
            }
            if let Some(halt) = said.halt {
                return Stopped::Halted(halt);
            }
        }
    }

    fn wait(&self, agent: &Agent, is_closed: bool, due: Instant) -> Ready {
        let when = |is_wanted, flags| if is_wanted { flags } else { PollFlags::empty() };
        let terminal = when(!is_closed, PollFlags::IN) | when(agent.has_keys(), PollFlags::OUT);
        let nobody = self.ears.rings();
        let feeding = agent.feeding();
        // A terminal that is closed would be ready for ever.
        let shown = if is_closed { nobody } else { agent.terminal() };
        let wanted = [
            (self.ears.signals(), PollFlags::IN),
            (self.ears.rings(), PollFlags::IN),
            // Its end is heard in any case.
            (
                stdin(),
                when(agent.room() > 0, PollFlags::IN) | PollFlags::HUP,
            ),
            (shown, when(!is_closed, terminal)),
            (
                feeding.unwrap_or(nobody),
                when(feeding.is_some(), PollFlags::OUT),
            ),
        ];
        let [signals, rings, keys, terminal, prompt] = wait_for(wanted, due);
        Ready {
            signals,
            rings,
            keys,
            output: terminal && !is_closed,
            input: terminal && agent.has_keys(),
            prompt: prompt && feeding.is_some(),
        }
    }

    fn keys(&mut self, agent: &mut Agent, ready: &Ready, piece: &mut [u8]) -> Option<Halt> {
        if ready.input {
            agent.type_on();
        }
        if !ready.keys {
            return None;
        }
        let room = agent.room();
        if room == 0 {
            return Some(Halt::Orphaned);
        }
        match keys(&mut piece[..room]) {
            Keys::Some(count) => agent.press(&piece[..count]),
            Keys::None => {}
            Keys::Gone => return Some(Halt::Orphaned),
        }
        None
    }

    fn show(&mut self, bytes: &[u8]) {
        match &mut self.reader {
            Some(reader) => {
                let width = usize::from(self.face.size().0);
                self.face.pass(&reader.read(bytes, width));
            }
            None => self.face.pass(bytes),
        }
        self.detector.feed(bytes);
    }

    /// Its last words: what its terminal holds when it has ended.
    fn drain(&mut self, agent: &Agent, piece: &mut [u8]) {
        // What it has left running may write on; that is not waited for.
        let deadline = Instant::now() + Duration::from_secs(1);
        while let Output::Some(count) = agent.read(piece) {
            self.show(&piece[..count]);
            if Instant::now() > deadline {
                break;
            }
        }
        if let Some(reader) = &mut self.reader {
            let width = usize::from(self.face.size().0);
            self.face.pass(&reader.finish(width));
        }
    }
}

/// Waits, with no agent there, for a ring, a signal or the time.
pub(super) fn rest(ears: &mut Ears, due: Option<Instant>) -> Option<Halt> {
    let tick = Instant::now() + TICK;
    let due = due.map_or(tick, |due| due.min(tick));
    let wanted = [
        (ears.signals(), PollFlags::IN),
        (ears.rings(), PollFlags::IN),
        (stdin(), PollFlags::IN),
    ];
    let [signals, _, typed] = wait_for(wanted, due);
    ears.hush();
    // Nobody is there to have it.
    if typed && matches!(keys(&mut [0; 4 << 10]), Keys::Gone) {
        return Some(Halt::Orphaned);
    }
    (signals && ears.signalled().end).then_some(Halt::Ended)
}

/// Which of these has something, at the latest when it is due.
fn wait_for<const N: usize>(wanted: [(BorrowedFd<'_>, PollFlags); N], due: Instant) -> [bool; N] {
    let mut fds = wanted.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
    let left = due.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).ok();
    // Interrupted, or not possible at all: looking is harmless.
    let _ = poll(&mut fds, left.as_ref());
    let mut at = 0;
    wanted.map(|(_, flags)| {
        let seen = fds[at].revents();
        at += 1;
        let gone = PollFlags::HUP | PollFlags::ERR;
        !flags.is_empty() && seen.intersects(flags | gone)
    })
}
