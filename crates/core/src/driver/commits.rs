//! Open commits, and retries of records that the journal has not taken.

use super::end::EarlierOffers;
use super::{Action, CommitId, JournalOperation, Observer, SessionDriver};
use crate::delivery::JOURNAL_RETRY_INTERVAL;
use crate::id::MessageId;
use crate::moment::Moment;
use crate::offer::OfferReport;
use std::time::Duration;

/// How long a record is retried. A receipt that is lost after that leaves its offer to the next
/// session, which finds it cut off.
const RECORD_RETRIED_FOR: Duration = Duration::from_secs(180);

#[derive(Debug, Clone)]
struct Commit {
    id: CommitId,
    operation: JournalOperation,
    has_failed: bool,
    /// When a retry is given up.
    give_up_at: Duration,
    /// When the commit is retried, after a failure.
    retry_at: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Commits(Vec<Commit>);

impl Commits {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, id: MessageId) -> bool {
        self.0.iter().any(|commit| commit.operation.has(id))
    }

    pub(super) fn has_operation(&self, operation: &JournalOperation) -> bool {
        self.0.iter().any(|commit| commit.operation == *operation)
    }

    /// Whether a change of an ask is being recorded, or waits to be retried.
    pub(super) fn has_ask(&self) -> bool {
        use JournalOperation::{CloseAsk, OpenAsk};
        let is_ask = |operation| matches!(operation, &OpenAsk { .. } | &CloseAsk { .. });
        self.0.iter().any(|commit| is_ask(&commit.operation))
    }

    pub(super) fn next_retry(&self) -> Option<Duration> {
        self.0.iter().filter_map(|commit| commit.retry_at).min()
    }

    fn take(&mut self, id: CommitId) -> Option<Commit> {
        let at = self.0.iter().position(|commit| commit.id == id)?;
        Some(self.0.remove(at))
    }
}

impl JournalOperation {
    /// Whether a failed commit is retried. An offer that is not recorded is begun again, and the next
    /// periodic check repeats a check; nothing would repeat anything else.
    fn is_retried(&self) -> bool {
        !self.begins_offer() && *self != Self::CloseKilledHooks
    }
}

impl SessionDriver {
    /// Queue an action.
    pub(super) fn push(&mut self, now: Moment, action: Action) {
        if let Action::Commit { commit, operation } = &action {
            if let JournalOperation::RecordStep {
                report: OfferReport::Offered { .. },
                ..
            } = operation
            {
                self.transcripts.read_soon(now.mono);
                self.note_offered();
            }
            self.commits.0.push(Commit {
                id: *commit,
                operation: operation.clone(),
                has_failed: false,
                give_up_at: now.mono + RECORD_RETRIED_FOR,
                retry_at: None,
            });
        }
        self.actions.push_back(action);
    }

    /// Have the journal record an operation.
    pub(super) fn record(&mut self, now: Moment, operation: JournalOperation) {
        let commit = self.delivery.commit(operation);
        self.push(now, commit);
    }

    /// Close a commit. Return whether it recorded an offer, which continues then.
    pub(super) fn committed(&mut self, now: Moment, id: CommitId, has_more: bool) -> bool {
        let Some(Commit { operation, .. }) = self.commits.take(id) else {
            return false;
        };
        if let JournalOperation::SettleEarlierOffers(_) = operation {
            self.earlier_offers = EarlierOffers::Settled;
        }
        let begins_offer = operation.begins_offer();
        if has_more {
            self.record(now, operation);
        }
        begins_offer
    }

    /// Close or retry a commit that has failed. Return whether it was to record an offer, which ends
    /// then.
    pub(super) fn not_committed(
        &mut self,
        now: Moment,
        id: CommitId,
        why: &str,
        is_final: bool,
        observer: &mut impl Observer,
    ) -> bool {
        let Some(mut commit) = self.commits.take(id) else {
            return false;
        };
        let operation = &commit.operation;
        let is_retried = operation.is_retried();
        if is_retried && self.is_superseded(operation) {
            return false;
        }
        if !is_retried || is_final || now.mono >= commit.give_up_at {
            observer.on_commit_lost(operation, why);
            match operation {
                // The next hook that names the conversation has it recorded.
                JournalOperation::RecordConversation(_) if !is_final => self.conversation = None,
                JournalOperation::SettleEarlierOffers(_) => {
                    self.earlier_offers = EarlierOffers::Lost;
                }
                _ => {}
            }
            return commit.operation.begins_offer();
        }
        if !commit.has_failed {
            observer.on_commit_retry(operation, why);
        }
        commit.has_failed = true;
        commit.retry_at = Some(now.mono + JOURNAL_RETRY_INTERVAL);
        self.commits.0.push(commit);
        false
    }

    /// Whether a retry would undo a later record: the program is in another conversation by now.
    fn is_superseded(&self, operation: &JournalOperation) -> bool {
        let JournalOperation::RecordConversation(conversation) = operation else {
            return false;
        };
        self.conversation.as_ref() != Some(conversation)
    }

    pub(super) fn retry_commits(&mut self, now: Moment) {
        for commit in &mut self.commits.0 {
            if commit.retry_at.take_if(|at| *at <= now.mono).is_some() {
                self.actions.push_back(Action::Commit {
                    commit: commit.id,
                    operation: commit.operation.clone(),
                });
            }
        }
    }
}
