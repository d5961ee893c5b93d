//! The queue of actions, and the count of those whose result has not come.

use super::Action;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct ActionQueue {
    queue: VecDeque<Action>,
    unanswered: usize,
}

impl ActionQueue {
    pub(super) fn push(&mut self, action: Action) {
        self.queue.push_back(action);
    }

    /// Queue an action whose result is one input, and count it.
    pub(super) fn push_counted(&mut self, action: Action) {
        self.unanswered += 1;
        self.queue.push_back(action);
    }

    pub(super) fn pop(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }

    /// Note the result of an action that was queued with [`Self::push_counted`].
    pub(super) fn note_result(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// Whether every result has come.
    pub(super) fn are_answered(&self) -> bool {
        self.unanswered == 0
    }
}
