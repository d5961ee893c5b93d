//! Performs the driver's actions and passes their results to the driver. Decides nothing.

pub(super) mod task_queue;
pub(crate) mod tasks;

use super::SessionState;
use crate::host::log;
use crate::pty::keyboard::{KeyboardInput, Lease};
use crate::routes::http;
use crate::routes::transcript;
use posthaste_core::driver::{Action, Input, KeyboardUser};
use posthaste_wire::RunStatus;
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
            Action::Type { turn, mode } => self.write(KeyboardUser::Turn, |lease| {
                tasks::type_turn(shared, lease, turn, mode)
            }),
            Action::TypeLine(line) => {
                self.write(KeyboardUser::Nudge, |lease| tasks::type_line(lease, line));
            }
            Action::PressEnter { by, keys } => {
                self.write(by, |lease| tasks::press_enter(lease, by, keys));
            }
            Action::PressKeys(keys) => self.press(KeyboardInput::Bytes(keys)),
            Action::ClearBox(keys) => self.press(KeyboardInput::ClearBox {
                keys,
                key_inputs: self.key_inputs(),
            }),
            Action::Look(by) => self.tasks.spawn(tasks::look(shared, by)),
            Action::CheckInput => self.feed(Input::InputChecked {
                is_unread: shared.keyboard.is_unread(),
            }),
            Action::ForgetKeys => {
                let reset = KeyboardInput::ResetDraft(self.key_inputs());
                shared.keyboard.try_type_in(reset);
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
                self.tasks.spawn(transcript::read(self.transcripts.begin()));
            }
            Action::ReportCheckpoint => self.report_checkpoint(),
            Action::EndProcesses => self.end.begin_ending_processes(),
            Action::EndNudge { token, outcome } => self.replies.end_nudge(token, outcome),
            Action::EndAnswerCheck { token, keys } => self.replies.end_answer_check(token, keys),
        }
    }

    fn report_checkpoint(&mut self) {
        info!(target: log::DELIVERY, "paused at a checkpoint");
        self.set_run(RunStatus::Checkpointed);
    }

    /// Write to the terminal with the lease of this user.
    fn write<T: Future<Output = TaskReport> + 'static>(
        &mut self,
        by: KeyboardUser,
        task: impl FnOnce(Lease) -> T,
    ) {
        match self.leases.of(by).clone() {
            Some(lease) => self.tasks.spawn(task(lease)),
            None => self.feed(tasks::terminal_gone(by)),
        }
    }

    /// Press keys of the session itself.
    fn press(&mut self, keys: KeyboardInput) {
        if !self.setup.shared.keyboard.try_type_in(keys) {
            self.feed(Input::KeysDropped);
        }
    }

    /// Return the number of inputs with a person's keys so far.
    fn key_inputs(&self) -> u64 {
        self.setup.observers.typing.borrow().key_inputs
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
