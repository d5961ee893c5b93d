//! Copies bytes between the agent's and the session's terminal until the agent exits or has to be
//! ended.
//!
//! One thread waits on all descriptors. Passes events on to the runner, which decides whether the
//! agent has to be ended.

use super::agent::Agent;
use super::json_output::JsonRenderer;
use super::terminal_output::TerminalOutput;
use super::wakeups::{CHECK_INTERVAL, WakeupSources};
use crate::poll::{self, GONE, TerminalRead, read_terminal};
use posthaste_core::loop_::completion::Detector;
use rustix::event::PollFlags;
use rustix::stdio::stdin;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

const READ_BUFFER_BYTES: usize = 64 << 10;
/// How long output is read after the agent has exited. Other processes may still write.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Why [`AgentIo::run`] returned.
#[derive(Debug)]
pub(super) enum RunEnd {
    Exited(std::io::Result<ExitStatus>),
    /// The agent wrote nothing for too long.
    Idle,
    Stopped(StopReason),
}

/// Why the runner ends an agent, or the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// An urgent message has arrived.
    Interrupt,
    /// The session asked the runner to end.
    EndRequested,
    /// The session is gone, so nothing can be recorded.
    SessionGone,
}

/// The runner's reply to a [`RunEvent`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunnerReply {
    pub(super) stop: Option<StopReason>,
    /// Whether interactive mode is on. `None` if the runner did not check.
    pub(super) is_interactive: Option<bool>,
}

/// An event that the runner is told of while its agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEvent {
    /// The prompt is written completely.
    PromptWritten,
    /// The journal may have changed.
    JournalMayHaveChanged,
}

pub(super) struct AgentIo<'a> {
    pub(super) wakeups: &'a mut WakeupSources,
    pub(super) terminal: &'a mut TerminalOutput,
    pub(super) detector: &'a mut Detector,
    /// Renders output in JSON as text.
    pub(super) renderer: Option<JsonRenderer>,
    /// How long the agent may write nothing.
    pub(super) idle_timeout: Option<Duration>,
}

/// Descriptors that are ready.
struct Ready {
    signals: bool,
    bell: bool,
    keys: bool,
    output: bool,
    input: bool,
    prompt: bool,
}

impl AgentIo<'_> {
    /// Run until the agent exits or has to be ended. `on_event` may ask for the agent's end.
    pub(super) fn run(
        &mut self,
        agent: &mut Agent,
        mut on_event: impl FnMut(RunEvent) -> RunnerReply,
    ) -> RunEnd {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let mut last_output = Instant::now();
        let mut last_check = Instant::now();
        let mut is_closed = false;
        loop {
            let idle_at = self.idle_timeout.map(|timeout| last_output + timeout);
            if idle_at.is_some_and(|at| at <= Instant::now()) {
                return RunEnd::Idle;
            }
            let check_at = last_check + CHECK_INTERVAL;
            let ready = self.wait(
                agent,
                is_closed,
                idle_at.map_or(check_at, |at| at.min(check_at)),
            );
            if ready.signals {
                let signals = self.wakeups.take_signals();
                if signals.end {
                    return RunEnd::Stopped(StopReason::EndRequested);
                }
                if signals.resize {
                    agent.resize(self.terminal.size());
                }
            }
            if ready.output {
                match agent.read(&mut buffer) {
                    TerminalRead::Bytes(count) => {
                        last_output = Instant::now();
                        self.show(&buffer[..count]);
                    }
                    TerminalRead::Nothing => {}
                    TerminalRead::Closed => is_closed = true,
                }
            }
            if let Some(reason) = self.copy_keys(agent, &ready, &mut buffer) {
                return RunEnd::Stopped(reason);
            }
            if ready.prompt && agent.write_prompt() {
                on_event(RunEvent::PromptWritten);
            }
            let mut reply = RunnerReply::default();
            if ready.bell || last_check.elapsed() >= CHECK_INTERVAL {
                self.wakeups.clear_bell();
                last_check = Instant::now();
                reply = on_event(RunEvent::JournalMayHaveChanged);
            }
            if let Some(is_interactive) = reply.is_interactive {
                self.detector.set_interactive(is_interactive);
            }
            if let Some(status) = agent.exit_status() {
                self.show_last_output(agent, &mut buffer);
                return RunEnd::Exited(status);
            }
            if let Some(reason) = reply.stop {
                return RunEnd::Stopped(reason);
            }
        }
    }

    fn wait(&self, agent: &Agent, is_closed: bool, deadline: Instant) -> Ready {
        let when = |is_wanted, flags| if is_wanted { flags } else { PollFlags::empty() };
        let wanted = [
            (Some(self.wakeups.signals()), PollFlags::IN),
            (Some(self.wakeups.bell()), PollFlags::IN),
            (
                Some(stdin()),
                when(agent.free_key_bytes() > 0, PollFlags::IN),
            ),
            // A closed terminal would be ready forever.
            (
                (!is_closed).then(|| agent.terminal()),
                PollFlags::IN | when(agent.has_keys(), PollFlags::OUT),
            ),
            (agent.prompt_pipe(), PollFlags::OUT),
        ];
        // After an error nothing counts as ready, but the agent's exit and the journal are checked.
        let events = poll::wait(wanted, Some(deadline)).unwrap_or([PollFlags::empty(); 5]);
        let [signals, bell, keys, terminal, prompt] =
            events.map(|events| events.intersects(PollFlags::IN | PollFlags::OUT | GONE));
        Ready {
            signals,
            bell,
            keys,
            output: terminal,
            input: terminal && agent.has_keys(),
            prompt,
        }
    }

    fn copy_keys(
        &mut self,
        agent: &mut Agent,
        ready: &Ready,
        buffer: &mut [u8],
    ) -> Option<StopReason> {
        if ready.input {
            agent.flush_keys();
        }
        if !ready.keys {
            return None;
        }
        let free = agent.free_key_bytes();
        if free == 0 {
            // Keys were not waited for, so the terminal was closed.
            return Some(StopReason::SessionGone);
        }
        match read_terminal(stdin(), &mut buffer[..free]) {
            TerminalRead::Bytes(count) => agent.send_keys(&buffer[..count]),
            TerminalRead::Nothing => {}
            TerminalRead::Closed => return Some(StopReason::SessionGone),
        }
        None
    }

    fn show(&mut self, bytes: &[u8]) {
        match &mut self.renderer {
            Some(renderer) => {
                let width = usize::from(self.terminal.size().0);
                self.terminal.forward(&renderer.render(bytes, width));
            }
            None => self.terminal.forward(bytes),
        }
        self.detector.feed(bytes);
    }

    /// Show the output that is left in the terminal of an agent that has exited.
    fn show_last_output(&mut self, agent: &Agent, buffer: &mut [u8]) {
        let deadline = Instant::now() + LAST_OUTPUT_TIMEOUT;
        while let TerminalRead::Bytes(count) = agent.read(buffer) {
            self.show(&buffer[..count]);
            if Instant::now() > deadline {
                break;
            }
        }
        if let Some(renderer) = &mut self.renderer {
            let width = usize::from(self.terminal.size().0);
            self.terminal.forward(&renderer.finish(width));
        }
    }
}

/// Wait, while no agent runs, for the bell, a signal or `deadline`.
pub(super) fn wait_without_agent(
    wakeups: &mut WakeupSources,
    deadline: Option<Instant>,
) -> Option<StopReason> {
    let check_at = Instant::now() + CHECK_INTERVAL;
    let wanted = [wakeups.signals(), wakeups.bell(), stdin()].map(|fd| (Some(fd), PollFlags::IN));
    let deadline = deadline.map_or(check_at, |deadline| deadline.min(check_at));
    let events = poll::wait(wanted, Some(deadline)).unwrap_or([PollFlags::empty(); 3]);
    let [signals, _, keys] = events.map(|events| events.intersects(PollFlags::IN | GONE));
    wakeups.clear_bell();
    // No agent runs, so the keys are discarded.
    if keys
        && matches!(
            read_terminal(stdin(), &mut [0; 4 << 10]),
            TerminalRead::Closed
        )
    {
        return Some(StopReason::SessionGone);
    }
    (signals && wakeups.take_signals().end).then_some(StopReason::EndRequested)
}
