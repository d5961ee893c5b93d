//! Performs the driver's actions and tells the driver their results. Decides nothing.

use super::SessionState;
use super::replies::Reply;
use crate::pty::keyboard::KeyboardInput;
use crate::routes::door;
use crate::routes::transcript;
use crate::state::actions::{self, Report};
use posthaste_core::driver::{Action, Input, KeyboardUser, NudgeOutcome};
use posthaste_wire::method::{self, Nudged};

impl SessionState {
    pub(super) fn perform(&mut self, action: Action) {
        let shared = self.setup.shared.clone();
        match action {
            Action::ReadMail => self.mail.begin(shared),
            Action::Commit { commit, operation } => {
                self.tasks.spawn(actions::commit(shared, commit, operation));
            }
            Action::LeaseKeyboard(user) => self.tasks.spawn(actions::lease(shared, user)),
            Action::ReleaseKeyboard(user) => *self.leases.of(user) = None,
            Action::Type { turn, mode } => match self.leases.of(KeyboardUser::Turn).clone() {
                Some(lease) => self
                    .tasks
                    .spawn(actions::type_turn(shared, lease, turn, mode)),
                None => self.tell(actions::terminal_gone(KeyboardUser::Turn)),
            },
            Action::TypeLine(line) => match self.leases.of(KeyboardUser::Nudge).clone() {
                Some(lease) => self.tasks.spawn(actions::type_line(lease, line)),
                None => self.tell(actions::terminal_gone(KeyboardUser::Nudge)),
            },
            Action::PressEnter { by, keys } => match self.leases.of(by).clone() {
                Some(lease) => self.tasks.spawn(actions::press_enter(lease, by, keys)),
                None => self.tell(actions::terminal_gone(by)),
            },
            Action::PressKeys(keys) => {
                if !self
                    .setup
                    .shared
                    .keyboard
                    .try_type_in(KeyboardInput::Bytes(keys))
                {
                    self.tell(Input::KeysDropped);
                }
            }
            Action::Look(by) => self.tasks.spawn(actions::look(shared, by)),
            Action::CheckInput => {
                let is_unread = self.setup.shared.keyboard.is_unread();
                self.tell(Input::InputChecked { is_unread });
            }
            Action::ForgetKeys => {
                let key_inputs = self.setup.drafted.borrow().key_inputs;
                self.setup
                    .shared
                    .keyboard
                    .try_type_in(KeyboardInput::ResetDraft(key_inputs));
            }
            Action::AnswerHook { call, mail } => self.answer_hook(call, mail),
            Action::CheckApi {
                offer,
                conversation,
            } => self.tasks.spawn(door::check(shared, offer, conversation)),
            Action::PutMail {
                offer,
                messages,
                conversation,
            } => self
                .tasks
                .spawn(door::put(shared, offer, messages, conversation)),
            Action::ApiInterrupt { conversation } => {
                self.tasks.spawn(door::interrupt(shared, conversation));
            }
            Action::ApiContinue { conversation } => {
                self.tasks
                    .spawn(door::resume_conversation(shared, conversation));
            }
            Action::FollowTranscript { path, from_start } => {
                self.transcripts.follow(&path, from_start);
            }
            Action::SkipTranscripts => self.transcripts.skip_to_end(),
            Action::ReadTranscripts => {
                let files = self.transcripts.begin();
                self.tasks.spawn(transcript::read(files));
            }
            Action::EndNudge { token, outcome } => {
                if let Some(Reply::Nudge(sink)) = self.replies.take(token) {
                    sink.answer::<method::Nudge>(&match outcome {
                        NudgeOutcome::Typed => Nudged::Nudged,
                        NudgeOutcome::Refused(reason) => Nudged::Held { reason },
                    });
                }
            }
            Action::EndAnswerCheck { token, refusal } => {
                if let Some(Reply::AnswerCheck(tell)) = self.replies.take(token) {
                    tell(refusal);
                }
            }
        }
    }

    pub(super) fn hear(&mut self, report: Report) {
        match report {
            Report::Input(input) => self.tell(input),
            Report::Leased(user, lease) => {
                *self.leases.of(user) = Some(lease);
                self.tell(Input::KeyboardLeased(user));
            }
            Report::Transcripts(found) => {
                let shown = self.transcripts.finish(found);
                self.tell(Input::TranscriptsRead(shown));
            }
        }
    }
}
