//! Requests to the owner of the state, and their replies. A reply is sent before the changes that the
//! request causes are published.

pub(in crate::state) mod hook_calls;
pub(in crate::state) mod pending_replies;

use super::SessionState;
use super::journal_view::loop_view::LoopView;
use crate::host::clock;
use crate::host::log;
use crate::pty::viewer::ViewerId;
use crate::socket::dispatch::Sink;
use pending_replies::Reply;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::PausedBy;
use posthaste_core::driver::{AnswerRequest, Input, NudgeRequest};
use posthaste_core::harness::Turn;
use posthaste_core::{AskId, MessageState, ReceiptState, Timestamp};
use posthaste_store::live::Launch;
use posthaste_wire::event::StateChange;
use posthaste_wire::method;
use posthaste_wire::{self as wire, Mode, RunStatus, plain};
use std::path::Path;
use tracing::info;

/// Takes the reply to a request.
pub(crate) type ReplyFn<T> = Box<dyn FnOnce(T)>;

/// Request to the owner of a session's state.
pub(crate) enum StateRequest {
    Status {
        recent: Vec<String>,
        sink: Sink,
    },
    /// The current state of the loop, sent before a request whose answer depends on it.
    Loop(LoopView),
    Session(ReplyFn<wire::Session>),
    /// The session, in the plain dialect.
    Agent(ReplyFn<plain::AgentInfo>),
    /// Call of one of the agent's hooks.
    Hook {
        hook: method::HookEvent,
        reply: ReplyFn<method::Hooked>,
    },
    /// Something that only the driver handles.
    Input(Input),
    Why {
        state: Box<MessageState>,
        sink: Sink,
    },
    Stop(Sink),
    Kill(Sink),
    Checkpoint(Sink),
    Pause {
        on: bool,
        sink: Sink,
    },
    Interactive {
        enabled: bool,
        sink: Sink,
    },
    Nudge {
        text: String,
        /// Time of the request. The nudge expires, because its sender stops waiting.
        asked_at: Option<Timestamp>,
        sink: Sink,
    },
    /// Check whether an answer would reach the dialog that was open at this time.
    CheckAnswer {
        asked_at: Timestamp,
        /// The ask and the key of the chosen option.
        choice: Option<(AskId, String)>,
        /// Receives the keys of the chosen option, or the reason for the refusal.
        reply: ReplyFn<Result<Option<String>, String>>,
    },
    /// Give the keyboard to this viewer alone.
    TakeKeyboard(ViewerId),
    ReleaseKeyboard(ViewerId),
}

impl std::fmt::Debug for StateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateRequest")
    }
}

impl SessionState {
    pub(super) fn handle(&mut self, request: StateRequest) {
        self.catch_up();
        match request {
            StateRequest::Status { recent, sink } => {
                let status = self.loop_watch.add_to(self.status(recent));
                sink.answer::<method::GetStatus>(&status);
            }
            StateRequest::Loop(view) => self.apply_loop_view(view),
            StateRequest::Session(reply) => reply(self.session()),
            StateRequest::Agent(reply) => reply(self.agent_info()),
            StateRequest::Hook { hook, reply } => self.handle_hook_call(hook, reply),
            StateRequest::Input(input) => self.feed(input),
            StateRequest::Why { state, sink } => sink.answer::<method::Why>(&self.why(&state)),
            StateRequest::Stop(sink) => {
                sink.answer::<method::Stop>(&method::Stopping::StopRequested);
                info!(target: log::SESSION, "a client requests the end of the session");
                self.request_end();
            }
            StateRequest::Kill(sink) => {
                sink.answer::<method::Kill>(&method::Killed::Killed);
                self.kill();
            }
            StateRequest::Checkpoint(sink) => {
                sink.answer::<method::Checkpoint>(&method::Checkpointing::CheckpointRequested);
                self.feed(Input::CheckpointRequested);
            }
            StateRequest::Pause { on, sink } => self.pause(on, sink),
            StateRequest::Interactive { enabled, sink } => self.set_interactive(enabled, sink),
            StateRequest::Nudge {
                text,
                asked_at,
                sink,
            } => self.nudge(text, asked_at, sink),
            StateRequest::CheckAnswer {
                asked_at,
                choice,
                reply,
            } => {
                let token = self.replies.insert(Reply::AnswerCheck(reply));
                self.feed(Input::AnswerRequested(AnswerRequest {
                    token,
                    asked_at,
                    choice,
                }));
            }
            StateRequest::TakeKeyboard(viewer) => self.take_keyboard(viewer),
            StateRequest::ReleaseKeyboard(viewer) => self.release_keyboard(viewer),
        }
    }

    fn why(&self, state: &MessageState) -> wire::Why {
        let now = posthaste_store::times::now();
        if state.message.to != self.setup.shared.agent {
            return wire::Why::new(state, now);
        }
        let mut why = wire::Why::live(state, now, self.driver.hold(state));
        if why.receipt == ReceiptState::Offered.as_str() {
            let no_proof = self.driver.lacks_proof(state);
            why.reason = why
                .reason
                .map(|reason| reason + &no_proof.unwrap_or_default());
        }
        why
    }

    pub(super) fn is_paused(&self) -> bool {
        self.driver.delivery().is_paused()
    }

    fn pause(&mut self, on: bool, sink: Sink) {
        info!(target: log::DELIVERY, "{}", if on { "paused by a client" } else { "unpaused by a client" });
        if on {
            self.feed(Input::Paused(PausedBy::Request));
        } else {
            // End every pause that was requested. A viewer that has the keyboard keeps it.
            for by in [PausedBy::Request, PausedBy::Checkpoint] {
                self.feed(Input::Unpaused(by));
            }
        }
        let answer = method::Paused {
            paused: self.is_paused(),
            reason: self.driver.delivery().paused_because().filter(|_| !on),
        };
        if on {
            sink.answer::<method::Pause>(&answer);
        } else {
            sink.answer::<method::Resume>(&answer);
            self.set_run(RunStatus::Running);
        }
        self.publish_changes();
    }

    pub(super) fn set_run(&mut self, run: RunStatus) {
        if let Some(change) = self.published.set_run(run) {
            self.publish(change);
        }
    }

    fn set_interactive(&mut self, enabled: bool, sink: Sink) {
        let was = self.setup.publishers.interactive.send_replace(enabled);
        // The journal has the mode of a loop, and its runner obeys it.
        if !self.setup.shared.is_loop {
            if was != enabled {
                info!(target: log::DELIVERY, enabled, "interactive mode");
            }
            self.feed(if enabled {
                Input::Paused(PausedBy::Interactive)
            } else {
                Input::Unpaused(PausedBy::Interactive)
            });
        }
        sink.answer::<method::SetInteractiveMode>(&method::InteractiveMode {
            interactive_mode: enabled,
        });
        if was != enabled {
            self.publish(StateChange {
                interactive_mode: Some(enabled),
                ..StateChange::default()
            });
        }
    }

    fn nudge(&mut self, text: String, asked_at: Option<Timestamp>, sink: Sink) {
        // A nudge often follows new mail, so check the script for mail too.
        self.setup.shared.wakeups.script_check.notify_one();
        let token = self.replies.insert(Reply::Nudge(sink));
        self.feed(Input::NudgeRequested(NudgeRequest {
            token,
            text,
            expires_at: asked_at
                .and_then(|at| at.checked_add(method::TYPING_REQUEST_VALIDITY).ok()),
        }));
    }

    fn take_keyboard(&mut self, viewer: ViewerId) {
        // The latest viewer gets the keyboard. The previous one is notified by the watch.
        self.setup.publishers.taken.send_replace(Some(viewer));
        info!(target: log::VIEWERS, viewer = viewer.0, "keyboard taken");
        self.feed(Input::Paused(PausedBy::Viewer));
    }

    fn release_keyboard(&mut self, viewer: ViewerId) {
        let is_owner = *self.setup.publishers.taken.borrow() == Some(viewer);
        if is_owner {
            self.setup.publishers.taken.send_replace(None);
            info!(target: log::VIEWERS, viewer = viewer.0, "keyboard released");
            self.feed(Input::Unpaused(PausedBy::Viewer));
        }
    }

    fn status(&self, recent_output: Vec<String>) -> wire::Status {
        let record = &self.setup.record;
        let interactive_mode = *self.setup.publishers.interactive.borrow();
        wire::Status {
            task_name: record.launch.name.to_string(),
            task_dir: task_dir(&record.launch),
            iteration: 0,
            max_iterations: 0,
            current_story: None,
            agent: record.launch.harness.clone(),
            status: self.published.run,
            interactive_mode,
            mode_indicator: Mode::new(interactive_mode),
            started_at: clock::local_text(record.started_at),
            updated_at: clock::local_text(self.published.updated_at),
            recent_output,
        }
    }

    pub(super) fn session(&self) -> wire::Session {
        let record = &self.setup.record;
        let observed = self.driver.delivery().activity();
        let (activity, loop_status) = self.activity();
        let loop_evidence =
            loop_status.map(|status| status.describe(posthaste_store::times::now()));
        let since = loop_status.and_then(|status| status.since);
        let (activity, blocked_on) = wire_activity(&activity);
        let end = (observed.activity == Activity::Exited)
            .then(|| (observed.since.wall, observed.evidence.clone()));
        let (ended_at, exit) = end.unzip();
        let version = self.setup.observers.screen.borrow().program.version.clone();
        // The program may have written the file without drawing anything, so read it again.
        let handed_over = self.setup.observers.files.handed_over();
        let tested_versions = self
            .setup
            .harness
            .version
            .tested_instead(version.as_deref());
        wire::Session {
            activity,
            blocked_on,
            version,
            tested_versions: tested_versions.to_vec(),
            handed_over,
            since: since.unwrap_or(observed.since.wall),
            evidence: loop_evidence.unwrap_or_else(|| observed.told(self.driver.now())),
            unread: self.reader.unread(),
            queued: self.reader.queued(),
            paused: self.driver.delivery().paused_because(),
            mail_trouble: self.setup.shared.watches.mail_trouble.borrow().clone(),
            door: self.driver.delivery().http_failure_text(self.driver.now()),
            loop_status: self.loop_watch.status().cloned(),
            ended_at,
            exit,
            pid: Some(record.pid),
            child_pid: Some(record.child_pid),
            socket: Some(record.socket.to_string_lossy().into_owned()),
            ..wire::Session::starting(
                record.launch.name.as_str(),
                record.started_at,
                &record.launch.command,
                &record.launch.cwd.to_string_lossy(),
                &record.launch.harness,
            )
        }
    }

    fn agent_info(&self) -> plain::AgentInfo {
        let mut info = plain::AgentInfo::new(&self.session(), posthaste_store::times::now());
        if let (true, Some(turn)) = (info.sub_state.is_empty(), self.driver.delivery().doing()) {
            info.works(match turn {
                Turn::Submitted | Turn::Working => Some(plain::SubState::Thinking),
                Turn::Tool => Some(plain::SubState::ToolUse),
                Turn::Blocked | Turn::Idle => None,
            });
        }
        info
    }
}

/// Return the directory of a loop's prd, as clients of the original expect it, or the program's
/// directory.
fn task_dir(launch: &Launch) -> String {
    let prd = launch.build.as_ref().and_then(|build| build.prd.as_deref());
    let dir = prd.and_then(|prd| Path::new(prd).parent());
    dir.unwrap_or(&launch.cwd).to_string_lossy().into_owned()
}

/// Convert an activity to the words of the socket, and to the dialog that blocks it.
pub(super) fn wire_activity(activity: &Activity) -> (wire::Activity, Option<String>) {
    match activity {
        Activity::Starting => (wire::Activity::Starting, None),
        Activity::Idle => (wire::Activity::Idle, None),
        Activity::Working => (wire::Activity::Working, None),
        Activity::Blocked(on) => (wire::Activity::Blocked, Some(on.clone())),
        Activity::Exited => (wire::Activity::Exited, None),
    }
}
