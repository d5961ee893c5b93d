//! Performs the driver's actions and passes their results to the driver. Decides nothing.

pub(super) mod task_queue;
pub(crate) mod tasks;

use super::SessionState;
use super::requests::pending_replies::Reply;
use crate::host::log;
use crate::pty::keyboard::KeyboardInput;
use crate::routes::http;
use crate::routes::transcript;
use posthaste_core::driver::{Action, Input, KeyboardUser, NudgeOutcome};
use posthaste_wire::RunStatus;
use posthaste_wire::method::{self, Nudged};
use tasks::TaskReport;
use tracing::info;

impl SessionState {
    pub(super) fn perform(&mut self, action: Action) {
        let shared = self.setup.shared.clone();
        match action {
            Action::ReadMail => self.reader.begin(shared),
            Action::Commit { commit, operation } => {
                self.tasks.spawn(tasks::commit(shared, commit, operation));
            }
            Action::LeaseKeyboard(user) => self.tasks.spawn(tasks::lease(shared, user)),
            Action::ReleaseKeyboard(user) => *self.leases.of(user) = None,
            Action::Type { turn, mode } => match self.leases.of(KeyboardUser::Turn).clone() {
                Some(lease) => self
                    .tasks
                    .spawn(tasks::type_turn(shared, lease, turn, mode)),
                None => self.feed(tasks::terminal_gone(KeyboardUser::Turn)),
            },
            Action::TypeLine(line) => match self.leases.of(KeyboardUser::Nudge).clone() {
                Some(lease) => self.tasks.spawn(tasks::type_line(lease, line)),
                None => self.feed(tasks::terminal_gone(KeyboardUser::Nudge)),
            },
            Action::PressEnter { by, keys } => match self.leases.of(by).clone() {
                Some(lease) => self.tasks.spawn(tasks::press_enter(lease, by, keys)),
                None => self.feed(tasks::terminal_gone(by)),
            },
            Action::PressKeys(keys) => {
                if !self
                    .setup
                    .shared
                    .keyboard
                    .try_type_in(KeyboardInput::Bytes(keys))
                {
                    self.feed(Input::KeysDropped);
                }
            }
            Action::ClearBox(keys) => {
                let key_inputs = self.setup.observers.typing.borrow().key_inputs;
                let clear = KeyboardInput::ClearBox { keys, key_inputs };
                if !self.setup.shared.keyboard.try_type_in(clear) {
                    self.feed(Input::KeysDropped);
                }
            }
            Action::Look(by) => self.tasks.spawn(tasks::look(shared, by)),
            Action::CheckInput => {
                let is_unread = self.setup.shared.keyboard.is_unread();
                self.feed(Input::InputChecked { is_unread });
            }
            Action::ForgetKeys => {
                let key_inputs = self.setup.observers.typing.borrow().key_inputs;
                self.setup
                    .shared
                    .keyboard
                    .try_type_in(KeyboardInput::ResetDraft(key_inputs));
            }
            Action::AnswerHook { call, mail } => self.answer_hook(call, mail),
            Action::CheckApi {
                offer,
                conversation,
            } => self.tasks.spawn(http::check(shared, offer, conversation)),
            Action::PutMail {
                offer,
                messages,
                conversation,
            } => self
                .tasks
                .spawn(http::put(shared, offer, messages, conversation)),
            Action::ApiInterrupt { conversation } => {
                self.tasks.spawn(http::interrupt(shared, conversation));
            }
            Action::ApiContinue { conversation } => {
                self.tasks
                    .spawn(http::resume_conversation(shared, conversation));
            }
            Action::FollowTranscript { path, from_start } => {
                self.transcripts.follow(&path, from_start);
            }
            Action::SkipTranscripts => self.transcripts.skip_to_end(),
            Action::ReadTranscripts => {
                let files = self.transcripts.begin();
                self.tasks.spawn(transcript::read(files));
            }
            Action::ReportCheckpoint => {
                info!(target: log::DELIVERY, "paused at a checkpoint");
                self.set_run(RunStatus::Checkpointed);
            }
            Action::EndProcesses => self.end.begin_ending_processes(),
            Action::EndNudge { token, outcome } => {
                if let Some(Reply::Nudge(sink)) = self.replies.take(token) {
                    sink.answer::<method::Nudge>(&match outcome {
                        NudgeOutcome::Typed => Nudged::Nudged,
                        NudgeOutcome::Refused(reason) => Nudged::Held { reason },
                    });
                }
            }
            Action::EndAnswerCheck { token, refusal } => {
                if let Some(Reply::AnswerCheck(reply)) = self.replies.take(token) {
                    reply(refusal);
                }
            }
        }
    }

    /// Apply the report of a task.
    pub(super) fn apply_report(&mut self, report: TaskReport) {
        match report {
            TaskReport::Input(input) => self.feed(input),
            TaskReport::Leased(user, lease) => {
                *self.leases.of(user) = Some(lease);
                self.feed(Input::KeyboardLeased(user));
            }
            TaskReport::Transcripts(found) => {
                let is_complete = found.is_complete;
                let (shown, trouble) = self.transcripts.finish(found);
                self.feed(Input::TranscriptsRead {
                    shown,
                    trouble,
                    is_complete,
                });
            }
        }
    }
}
