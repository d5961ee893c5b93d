//! Requests whose reply the driver decides: who waits for which reply.

use super::Tell;
use super::hook_calls::HookCalls;
use crate::socket::dispatch::Sink;
use posthaste_core::driver::RequestToken;
use std::collections::BTreeMap;

/// The way back to whoever waits.
pub(super) enum Reply {
    Nudge(Sink),
    /// Told why an answer is refused, or nothing if it can be recorded.
    AnswerCheck(Tell<Option<String>>),
}

#[derive(Default)]
pub(super) struct PendingReplies {
    count: u64,
    replies: BTreeMap<u64, Reply>,
    pub(super) hook_calls: HookCalls,
}

impl PendingReplies {
    pub(super) fn insert(&mut self, reply: Reply) -> RequestToken {
        self.count += 1;
        self.replies.insert(self.count, reply);
        RequestToken(self.count)
    }

    pub(super) fn take(&mut self, token: RequestToken) -> Option<Reply> {
        self.replies.remove(&token.0)
    }
}
