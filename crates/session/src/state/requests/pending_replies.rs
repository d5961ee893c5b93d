//! Requests that wait for a decision of the driver, and the way to reply to each.

use super::ReplyFn;
use super::hook_calls::HookCalls;
use crate::socket::dispatch::Sink;
use posthaste_core::driver::{NudgeOutcome, RequestToken};
use posthaste_wire::method;
use std::collections::BTreeMap;

/// Sends the reply to a request.
pub(in crate::state) enum Reply {
    Nudge(Sink),
    /// Takes the keys of the chosen option, if there is one, or why the answer is refused.
    AnswerCheck(ReplyFn<Result<Option<String>, String>>),
}

#[derive(Default)]
pub(in crate::state) struct PendingReplies {
    count: u64,
    replies: BTreeMap<u64, Reply>,
    pub(in crate::state) hook_calls: HookCalls,
}

impl PendingReplies {
    pub(in crate::state) fn insert(&mut self, reply: Reply) -> RequestToken {
        self.count += 1;
        self.replies.insert(self.count, reply);
        RequestToken(self.count)
    }

    pub(in crate::state) fn end_nudge(&mut self, token: RequestToken, outcome: NudgeOutcome) {
        if let Some(Reply::Nudge(sink)) = self.replies.remove(&token.0) {
            sink.answer::<method::Nudge>(&match outcome {
                NudgeOutcome::Typed => method::Nudged::Nudged,
                NudgeOutcome::Refused(reason) => method::Nudged::Held { reason },
            });
        }
    }

    pub(in crate::state) fn end_answer_check(
        &mut self,
        token: RequestToken,
        keys: Result<Option<String>, String>,
    ) {
        if let Some(Reply::AnswerCheck(reply)) = self.replies.remove(&token.0) {
            reply(keys);
        }
    }
}
