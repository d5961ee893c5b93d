//! What others request of a session, granted or refused. An answer goes out before what it causes is
//! told to listeners.

use super::replies::Reply;
use super::{SessionState, StateRequest};
use crate::host::clock;
use crate::host::log;
use crate::pty::viewer::ViewerId;
use crate::socket::dispatch::Sink;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::PausedBy;
use posthaste_core::driver::{Input, NudgeRequest};
use posthaste_core::harness::Turn;
use posthaste_core::{MessageState, ReceiptState, Timestamp};
use posthaste_store::live::place::Launch;
use posthaste_wire::event::StateChange;
use posthaste_wire::method;
use posthaste_wire::{self as wire, Mode, Run, plain};
use std::path::Path;
use tracing::info;

impl SessionState {
    pub(super) fn handle(&mut self, request: StateRequest) {
        self.catch_up();
        match request {
            StateRequest::Status { recent, sink } => {
                let status = self.looped.add_to(self.status(recent));
                sink.answer::<method::GetStatus>(&status);
            }
            StateRequest::Loop(view) => self.see_loop(view),
            StateRequest::Session(tell) => tell(self.session()),
            StateRequest::Agent(tell) => tell(self.agent_info()),
            StateRequest::Hook { hook, tell } => self.hook(hook, tell),
            StateRequest::Taken(offer) => self.tell(Input::HookPassedOn(offer)),
            StateRequest::Dropped(offer) => self.tell(Input::HookGone(offer)),
            StateRequest::Why { state, sink } => sink.answer::<method::Why>(&self.why(&state)),
            StateRequest::Stop(sink) => {
                sink.answer::<method::Stop>(&method::Stopping::StopRequested);
                info!(target: log::SESSION, "a client asks the session to end");
                self.end();
            }
            StateRequest::Kill(sink) => {
                sink.answer::<method::Kill>(&method::Killed::Killed);
                self.insist();
            }
            StateRequest::Checkpoint(sink) => {
                sink.answer::<method::Checkpoint>(&method::Checkpointing::CheckpointRequested);
                self.is_checkpoint_asked = true;
            }
            StateRequest::Pause { on, sink } => self.pause(on, sink),
            StateRequest::Interactive { enabled, sink } => self.interact(enabled, sink),
            StateRequest::Nudge {
                text,
                asked_at,
                sink,
            } => self.nudge(text, asked_at, sink),
            StateRequest::CheckAnswer { asked_at, tell } => {
                let token = self.replies.insert(Reply::AnswerCheck(tell));
                self.tell(Input::AnswerRequested { token, asked_at });
            }
            StateRequest::Take(viewer) => self.take(viewer),
            StateRequest::Release(viewer) => self.release(viewer),
        }
    }

    fn why(&self, state: &MessageState) -> wire::Why {
        let now = posthaste_store::times::now();
        if state.message.to != self.setup.shared.agent {
            return wire::Why::new(state, now);
        }
        let mut why = wire::Why::live(state, now, self.driver.hold(state));
        if why.receipt == ReceiptState::Offered.as_str() {
            let unread = self.transcripts.trouble();
            let unread = unread.map(|why| format!("; no transcript: {why}"));
            let doubt = self.driver.delivery().lacks_proof().or(unread);
            why.reason = why.reason.map(|reason| reason + &doubt.unwrap_or_default());
        }
        why
    }

    pub(super) fn is_paused(&self) -> bool {
        self.driver.delivery().is_paused()
    }

    fn pause(&mut self, on: bool, sink: Sink) {
        info!(target: log::DELIVERY, "{}", if on { "paused by a client" } else { "unpaused by a client" });
        if on {
            self.tell(Input::Paused(PausedBy::Request));
        } else {
            // Whoever resumes means all that was asked for; who sits at the keyboard stays.
            for by in [PausedBy::Request, PausedBy::Checkpoint] {
                self.tell(Input::Unpaused(by));
            }
            self.is_checkpoint_asked = false;
        }
        let answer = method::Paused {
            paused: self.is_paused(),
            reason: self.driver.delivery().paused_because().filter(|_| !on),
        };
        if on {
            sink.answer::<method::Pause>(&answer);
        } else {
            sink.answer::<method::Resume>(&answer);
            self.set_run(Run::Running);
        }
        self.tell_changes();
    }

    /// A checkpoint that was asked for comes into force at the end of a turn.
    pub(super) fn reach_checkpoint(&mut self) {
        let is_at_rest = self.driver.delivery().activity().activity == Activity::Idle;
        if self.is_checkpoint_asked && is_at_rest && !self.driver.delivery().is_writing() {
            self.is_checkpoint_asked = false;
            info!(target: log::DELIVERY, "paused at a checkpoint");
            self.tell(Input::Paused(PausedBy::Checkpoint));
            self.set_run(Run::Checkpointed);
        }
    }

    pub(super) fn set_run(&mut self, run: Run) {
        if let Some(change) = self.published.set_run(run) {
            self.changed(change);
        }
    }

    fn interact(&mut self, enabled: bool, sink: Sink) {
        if self.setup.shared.is_loop {
            return self.interact_in_loop(enabled, sink);
        }
        let was = self.setup.interactive.send_replace(enabled);
        if was != enabled {
            info!(target: log::DELIVERY, enabled, "interactive mode");
        }
        self.tell(if enabled {
            Input::Paused(PausedBy::Interactive)
        } else {
            Input::Unpaused(PausedBy::Interactive)
        });
        sink.answer::<method::SetInteractiveMode>(&method::InteractiveMode {
            interactive_mode: enabled,
        });
        if was != enabled {
            self.changed(StateChange {
                interactive_mode: Some(enabled),
                ..StateChange::default()
            });
        }
    }

    fn nudge(&mut self, text: String, asked_at: Option<Timestamp>, sink: Sink) {
        // Whoever is nudged is to look: so do we.
        self.setup.shared.round.notify_one();
        let token = self.replies.insert(Reply::Nudge(sink));
        self.tell(Input::NudgeRequested(NudgeRequest {
            token,
            text,
            expires_at: asked_at.and_then(|at| at.checked_add(method::GOOD_FOR).ok()),
        }));
    }

    fn take(&mut self, viewer: ViewerId) {
        // The last one who asks has it; that is told to both.
        self.setup.taken.send_replace(Some(viewer));
        info!(target: log::VIEWERS, viewer = viewer.0, "keyboard taken");
        self.tell(Input::Paused(PausedBy::Viewer));
    }

    fn release(&mut self, viewer: ViewerId) {
        let is_its = *self.setup.taken.borrow() == Some(viewer);
        if is_its {
            self.setup.taken.send_replace(None);
            info!(target: log::VIEWERS, viewer = viewer.0, "keyboard given back");
            self.tell(Input::Unpaused(PausedBy::Viewer));
        }
    }

    fn status(&self, recent_output: Vec<String>) -> wire::Status {
        let record = &self.setup.record;
        let interactive_mode = *self.setup.interactive.borrow();
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
        let judged = self.driver.delivery().activity();
        let (activity, looped) = self.activity();
        let told = looped.map(|looped| looped.told(posthaste_store::times::now()));
        let since = looped.and_then(|looped| looped.since);
        let (activity, blocked_on) = wire_activity(&activity);
        let end = (judged.activity == Activity::Exited)
            .then(|| (judged.since.wall, judged.evidence.clone()));
        let (ended_at, exit) = end.unzip();
        let version = self.setup.sighted.borrow().program.version.clone();
        // Read anew: the program may have written it without drawing anything.
        let handed_over = self.setup.files.handed_over();
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
            since: since.unwrap_or(judged.since.wall),
            evidence: told.unwrap_or_else(|| judged.told(self.driver.now())),
            unread: self.mail.unread(),
            queued: self.mail.queued(),
            paused: self.driver.delivery().paused_because(),
            mail_trouble: self.setup.shared.mail_trouble.borrow().clone(),
            door: self.driver.delivery().http_failure_text(self.driver.now()),
            build: self.looped.status().cloned(),
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
}

impl SessionState {
    fn agent_info(&self) -> plain::AgentInfo {
        let mut info = plain::AgentInfo::new(&self.session(), posthaste_store::times::now());
        if let (true, Some(turn)) = (info.sub_state.is_empty(), self.driver.delivery().doing()) {
            info.works(match turn {
                Turn::Submitted | Turn::Working => Some(plain::Work::Thinking),
                Turn::Tool => Some(plain::Work::ToolUse),
                Turn::Blocked | Turn::Idle => None,
            });
        }
        info
    }
}

/// Where a loop's prd is, as clients of the original expect it; else where the program runs.
fn task_dir(launch: &Launch) -> String {
    let prd = launch.build.as_ref().and_then(|build| build.prd.as_deref());
    let dir = prd.and_then(|prd| Path::new(prd).parent());
    dir.unwrap_or(&launch.cwd).to_string_lossy().into_owned()
}

/// An activity as the socket says it, and what it is blocked on.
pub(super) fn wire_activity(activity: &Activity) -> (wire::Activity, Option<String>) {
    match activity {
        Activity::Starting => (wire::Activity::Starting, None),
        Activity::Idle => (wire::Activity::Idle, None),
        Activity::Working => (wire::Activity::Working, None),
        Activity::Blocked(on) => (wire::Activity::Blocked, Some(on.clone())),
        Activity::Exited => (wire::Activity::Exited, None),
    }
}
