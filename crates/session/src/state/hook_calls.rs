//! The calls of the agent's hooks, and their answers.

use super::{SessionState, Tell};
use crate::host::log;
use crate::routes::transcript;
use crate::state::actions;
use posthaste_core::driver::{HookCall, HookMail, Input};
use posthaste_core::turn;
use posthaste_wire::method::{HookEvent, Hooked};
use std::collections::BTreeMap;
use tracing::debug;

/// A hook call that waits for its answer.
struct OpenHookCall {
    event: String,
    tell: Tell<Hooked>,
}

/// The hook calls that wait for their answers, by number.
#[derive(Default)]
pub(super) struct HookCalls {
    count: u64,
    open: BTreeMap<u64, OpenHookCall>,
}

impl HookCalls {
    fn insert(&mut self, call: OpenHookCall) -> HookCall {
        self.count += 1;
        self.open.insert(self.count, call);
        HookCall(self.count)
    }

    fn take(&mut self, call: HookCall) -> Option<OpenHookCall> {
        self.open.remove(&call.0)
    }
}

impl SessionState {
    /// Tell the driver of a hook call. Ignore hooks of another kind of agent, which belong to a
    /// program that this agent has started, and hooks of another run, which have outlived their
    /// program.
    pub(super) fn hook(&mut self, hook: HookEvent, tell: Tell<Hooked>) {
        let harness = self.setup.harness.clone();
        let is_ours = |named: &String| *named == harness.name;
        let run = self.setup.shared.run.to_string();
        let is_now = |named: &String| *named == run;
        let event = &hook.event_name;
        if !hook.harness.as_ref().is_none_or(is_ours) || !hook.run.as_ref().is_none_or(is_now) {
            debug!(target: log::HOOKS, event, "ignored: of another program or run");
            return tell(Hooked::noted());
        }
        debug!(target: log::HOOKS, event, takes_context = hook.takes_context, "called");
        let report = Box::new(harness.hook.read(event, hook.payload.get()));
        let event = hook.event_name;
        let call = self.replies.hook_calls.insert(OpenHookCall { event, tell });
        self.tell(Input::HookCalled {
            call,
            report,
            takes_mail: hook.takes_context,
        });
        // Do not delay the answer: the agent waits for its hook.
        self.drive();
    }

    /// Answer a hook call, with the mail that the hook is to pass on, if any.
    pub(super) fn answer_hook(&mut self, call: HookCall, mail: Option<HookMail>) {
        let Some(OpenHookCall { event, tell }) = self.replies.hook_calls.take(call) else {
            return;
        };
        let Some(HookMail { offer, messages }) = mail else {
            return tell(Hooked::noted());
        };
        match actions::told(&self.setup.shared, &messages, turn::text) {
            Ok(text) => {
                let format = self.setup.harness.hook.format;
                tell(Hooked {
                    output: Some(format.print(&event, &text)),
                    offer: Some(offer),
                    ..Hooked::noted()
                });
            }
            Err(error) => {
                tell(Hooked::noted());
                let ids = messages.iter().map(|message| message.state.message.id);
                self.tell(Input::HookUnanswered {
                    offer,
                    ids: ids.collect(),
                    why: error.to_string(),
                });
            }
        }
    }

    /// Read the transcripts to their end, after the program has ended.
    pub(super) async fn read_last(&mut self) {
        if self.driver.delivery().needs_transcript() {
            let found = transcript::read_now(self.transcripts.begin()).await;
            let shown = self.transcripts.finish(found);
            self.tell(Input::TranscriptsRead(shown));
        }
    }
}
