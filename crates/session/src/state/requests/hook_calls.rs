//! Calls of the agent's hooks, and their replies.

use super::ReplyFn;
use crate::host::log;
use crate::state::SessionState;
use crate::state::actions::tasks;
use posthaste_core::driver::{HookCall, HookMail, Input};
use posthaste_core::turn;
use posthaste_wire::method::{HookEvent, Hooked};
use std::collections::BTreeMap;
use tracing::debug;

/// A hook call that waits for its reply.
struct OpenHookCall {
    event: String,
    reply: ReplyFn<Hooked>,
}

/// The hook calls that wait for their replies, by number.
#[derive(Default)]
pub(in crate::state) struct HookCalls {
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
    /// Pass a hook call to the driver. Ignore hooks of another kind of agent, which belong to a program
    /// that this agent has started, and hooks of another run, which have outlived their program.
    pub(super) fn handle_hook_call(&mut self, hook: HookEvent, reply: ReplyFn<Hooked>) {
        let harness = self.setup.harness.clone();
        let is_this_harness = |name: &String| *name == harness.name;
        let run = self.setup.shared.run.to_string();
        let is_this_run = |id: &String| *id == run;
        let event = &hook.event_name;
        if !hook.harness.as_ref().is_none_or(is_this_harness)
            || !hook.run.as_ref().is_none_or(is_this_run)
        {
            debug!(target: log::HOOKS, event, "ignored: it belongs to another program or run");
            return reply(Hooked::noted());
        }
        debug!(target: log::HOOKS, event, takes_context = hook.takes_context, "called");
        let report = Box::new(harness.hook.read(event, hook.payload.get()));
        let event = hook.event_name;
        let call = self
            .replies
            .hook_calls
            .insert(OpenHookCall { event, reply });
        self.feed(Input::HookCalled {
            call,
            report,
            takes_mail: hook.takes_context,
        });
        // Do not delay the answer: the agent waits for its hook.
        self.perform_actions();
    }

    /// Reply to a hook call, with the mail that the hook is to pass on, if any.
    pub(in crate::state) fn answer_hook(&mut self, call: HookCall, mail: Option<HookMail>) {
        let Some(OpenHookCall { event, reply }) = self.replies.hook_calls.take(call) else {
            return;
        };
        let Some(HookMail { offer, messages }) = mail else {
            return reply(Hooked::noted());
        };
        match tasks::render_messages(&self.setup.shared, &messages, turn::text) {
            Ok(text) => {
                let format = self.setup.harness.hook.format;
                reply(Hooked {
                    output: Some(format.print(&event, &text)),
                    offer: Some(offer),
                    ..Hooked::noted()
                });
            }
            Err(error) => {
                reply(Hooked::noted());
                let ids = messages.iter().map(|message| message.state.message.id);
                self.feed(Input::HookUnanswered {
                    offer,
                    ids: ids.collect(),
                    why: error.to_string(),
                });
            }
        }
    }
}
