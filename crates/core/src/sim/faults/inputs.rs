//! Faults that change an input, or drop it.

use super::actions::is_raw;
use super::truthful::tell_alone;
use super::{Fault, FaultyDriver, Stage};
use crate::activity::Activity;
use crate::driver::{Action, Input, KeyboardUser, NudgeRequest, Observer};
use crate::harness::{BoxState, Held, Report, Sighting};
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::promotion;

impl FaultyDriver {
    /// Change an input, or drop it. Also return the input to report to the observer, if delivery
    /// gets a different one.
    pub(super) fn change_input(
        &mut self,
        fault: Fault,
        now: Moment,
        input: Input,
        observer: &mut impl Observer,
    ) -> Option<(Input, Option<Input>)> {
        match (fault, input) {
            (Fault::DraftIgnored, input @ Input::KeysTyped { is_draft: true })
            | (Fault::PauseIgnored, input @ Input::Paused(_)) => {
                tell_alone(observer, now, &input);
                None
            }
            (Fault::CheckpointMissed, Input::CheckpointRequested) => None,
            (Fault::NeverLetsGo, Input::KeyboardRefused(KeyboardUser::Turn)) => None,
            (Fault::GivesUpOnDisk, Input::NotCommitted { commit, .. })
                if self.offer == Some(commit) =>
            {
                None
            }
            (
                Fault::TypedAgain,
                Input::TerminalFailed {
                    by: by @ KeyboardUser::Turn,
                    why,
                },
            ) => match &self.typing {
                Some(typing) if !is_raw(typing) => {
                    self.added.push_back((true, typing.clone()));
                    None
                }
                _ => Some((Input::TerminalFailed { by, why }, None)),
            },
            (Fault::IdleFirstInOrder, Input::MailRead(mut view)) => {
                let is_idle_first = |state: &MessageState| {
                    promotion::priority(&state.message, now.wall) == Priority::IdleFirst
                };
                let mut groups = view
                    .pending
                    .chunk_by_mut(|a, b| is_idle_first(a) == is_idle_first(b));
                if let Some(group) = groups.find(|group| is_idle_first(&group[0])) {
                    group.reverse();
                }
                Some((Input::MailRead(view), None))
            }
            (Fault::TypedWhileStarting, Input::MailRead(view)) => {
                let is_starting = self.delivery().activity().activity == Activity::Starting;
                if is_starting && !view.pending.is_empty() {
                    let lease = Action::LeaseKeyboard(KeyboardUser::Turn);
                    self.added.push_back((true, lease));
                }
                Some((Input::MailRead(view), None))
            }
            (Fault::AcceptedElsewhere | Fault::AcceptedWhenQueued, input) => {
                Some(self.change_report(fault, input))
            }
            (_, Input::ScreenChanged(seen)) => {
                let changed = self.change_look(fault, false, seen.clone());
                let truth = Input::ScreenChanged(seen);
                Some((Input::ScreenChanged(changed), Some(truth)))
            }
            (
                _,
                Input::Looked {
                    by: by @ KeyboardUser::Turn,
                    sighting: seen,
                },
            ) => {
                let sighting = self.change_look(fault, true, seen.clone());
                let changed = Input::Looked { by, sighting };
                let sighting = seen;
                Some((changed, Some(Input::Looked { by, sighting })))
            }
            (
                Fault::WithdrawnAccepted | Fault::WithdrawnIgnored,
                Input::TranscriptsRead {
                    mut shown,
                    trouble,
                    is_complete,
                },
            ) => {
                let withdrawn = std::mem::take(&mut shown.withdrawn);
                if fault == Fault::WithdrawnAccepted {
                    shown.given += &withdrawn;
                }
                let changed = Input::TranscriptsRead {
                    shown,
                    trouble,
                    is_complete,
                };
                Some((changed, None))
            }
            (Fault::ApiUnchecked, Input::ApiRefused { offer, ids, .. })
                if offer > 0 && ids.is_empty() =>
            {
                Some((Input::ApiConfirmed(offer), None))
            }
            (Fault::ApiSilenceRefused, Input::ApiSilent(offer)) => {
                let ids = self.api_mail.clone();
                let why = "it did not answer".to_owned();
                Some((Input::ApiRefused { offer, ids, why }, None))
            }
            (Fault::ApiRefusalTaken, Input::ApiRefused { offer, ids, .. }) if !ids.is_empty() => {
                Some((Input::ApiAccepted(offer), None))
            }
            (Fault::NudgedLate, Input::NudgeRequested(request)) => {
                let request = NudgeRequest {
                    expires_at: None,
                    ..request
                };
                Some((Input::NudgeRequested(request), None))
            }
            (
                Fault::NudgedUnrecognised,
                Input::Looked {
                    by: by @ KeyboardUser::Nudge,
                    sighting: seen,
                },
            ) if seen.input_box != BoxState::Undescribed => {
                let input_box = match self.line.clone() {
                    Some(text) => BoxState::Holds(Held {
                        text,
                        is_scrolled: false,
                    }),
                    None => BoxState::Empty,
                };
                let sighting = Sighting {
                    input_box,
                    claims: Vec::new(),
                    output: self.last_look.output,
                    ..seen.clone()
                };
                let changed = Input::Looked { by, sighting };
                let sighting = seen;
                Some((changed, Some(Input::Looked { by, sighting })))
            }
            (_, Input::Typed(text)) => {
                self.text.clone_from(&text);
                Some((Input::Typed(text), None))
            }
            (_, input) => Some((input, None)),
        }
    }

    pub(super) fn change_report(
        &mut self,
        fault: Fault,
        mut input: Input,
    ) -> (Input, Option<Input>) {
        let truth = input.clone();
        let Input::HookCalled { report, .. } = &mut input else {
            return (input, None);
        };
        let Report {
            session,
            turn,
            prompt,
            given,
            ..
        } = &mut **report;
        if fault == Fault::AcceptedWhenQueued {
            *given = given.take().or_else(|| prompt.clone());
            return (input, Some(truth));
        }
        if let Some(session) = session {
            // The first hook call with a session id comes from the program itself.
            let own = self.session.get_or_insert_with(|| session.clone());
            if session != own {
                session.clone_from(own);
                // The fault changes the proof, not the reported activity.
                *turn = None;
            }
        }
        (input, Some(truth))
    }

    pub(super) fn change_look(
        &mut self,
        fault: Fault,
        is_asked_for: bool,
        seen: Sighting,
    ) -> Sighting {
        let mut changed = seen;
        let is_described = changed.input_box != BoxState::Undescribed;
        match (fault, self.stage) {
            (Fault::WrittenUnrecognised, Stage::Recorded) if is_asked_for && is_described => {
                changed = Sighting {
                    input_box: BoxState::Empty,
                    claims: Vec::new(),
                    output: self.last_look.output,
                    ..changed
                };
            }
            (Fault::EnterUnrecognised, Stage::Typed) if is_asked_for && is_described => {
                let text = self.text.clone();
                let held = Held {
                    text,
                    is_scrolled: false,
                };
                changed.input_box = BoxState::Holds(held);
                changed.claims.clear();
            }
            (_, _) => {}
        }
        self.last_look = changed.clone();
        changed
    }
}
