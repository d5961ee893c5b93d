//! Requests that wait for a decision of the driver, and the way to reply to each.

use super::ReplyFn;
use super::hook_calls::HookCalls;
use crate::socket::dispatch::Sink;
use posthaste_core::driver::RequestToken;
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

    pub(in crate::state) fn take(&mut self, token: RequestToken) -> Option<Reply> {
        self.replies.remove(&token.0)
    }
}
