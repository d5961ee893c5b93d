//! Open commits, and retries of receipts that the journal has not recorded.

use crate::delivery::{DeliveryEvent, JOURNAL_RETRY_INTERVAL};
use crate::driver::terminal::keyboard::KeyboardPurpose;
use crate::driver::{Action, CommitId, Input, JournalOperation, Observer, SessionDriver};
use crate::id::MessageId;
use crate::moment::Moment;
use std::time::Duration;

/// How long the commit of a receipt is retried. After that, the receipt is lost, and the next
/// session finds the offer cut off.
const RECEIPT_RETRIED_FOR: Duration = Duration::from_secs(180);

/// The purpose of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommitPurpose {
    /// A turn for which the keyboard is held.
    Turn(KeyboardPurpose),
    /// An offer to a hook or the API, by its number.
    DirectOffer(u64),
    /// Nothing waits for the commit, and a failed commit is not retried.
    Nothing,
    /// A receipt of an offer. It is retried, because without it the next session would take a
    /// completed offer for uncertain.
    Receipt { give_up_at: Duration },
}

#[derive(Debug, Clone)]
struct Commit {
    id: CommitId,
    operation: JournalOperation,
    purpose: CommitPurpose,
    has_failed: bool,
    /// When the commit is retried, after a failure.
    retry_at: Option<Duration>,
}

#[derive(Debug, Default)]
pub(crate) struct Commits {
    count: u64,
    open: Vec<Commit>,
}

impl Commits {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn has(&self, id: MessageId) -> bool {
        self.open.iter().any(|commit| commit.operation.has(id))
    }

    pub(crate) fn next_retry(&self) -> Option<Duration> {
        self.open.iter().filter_map(|commit| commit.retry_at).min()
    }

    fn take(&mut self, id: CommitId) -> Option<Commit> {
        let at = self.open.iter().position(|commit| commit.id == id)?;
        Some(self.open.remove(at))
    }
}

impl JournalOperation {
    pub fn has(&self, id: MessageId) -> bool {
        match self {
            Self::RecordStep { ids, .. } => ids.contains(&id),
            Self::Expire
            | Self::RecordConversation(_)
            | Self::SettleEarlierOffers(_)
            | Self::CloseKilledHooks => false,
        }
    }
}

impl SessionDriver {
    pub(crate) fn commit(&mut self, operation: JournalOperation, purpose: CommitPurpose) {
        self.commits.count += 1;
        let id = CommitId(self.commits.count);
        self.actions.push(Action::Commit {
            commit: id,
            operation: operation.clone(),
        });
        self.commits.open.push(Commit {
            id,
            operation,
            purpose,
            has_failed: false,
            retry_at: None,
        });
    }

    pub(crate) fn commit_receipt(&mut self, now: Moment, operation: JournalOperation) {
        let give_up_at = now.mono + RECEIPT_RETRIED_FOR;
        self.commit(operation, CommitPurpose::Receipt { give_up_at });
    }

    pub(crate) fn committed(
        &mut self,
        now: Moment,
        id: CommitId,
        ids: Vec<MessageId>,
        head: u64,
        observer: &mut impl Observer,
    ) {
        self.freshness.commit(head);
        match self.commits.take(id).map(|commit| commit.purpose) {
            Some(CommitPurpose::Turn(_)) => {
                self.keyboard.hold();
                self.notify_delivery(now, DeliveryEvent::Recorded(ids), observer);
            }
            Some(CommitPurpose::DirectOffer(offer)) => {
                self.deliver_directly(now, offer, ids, observer);
            }
            Some(CommitPurpose::Nothing | CommitPurpose::Receipt { .. }) | None => {}
        }
    }

    pub(crate) fn not_committed(
        &mut self,
        now: Moment,
        id: CommitId,
        why: &str,
        is_final: bool,
        observer: &mut impl Observer,
    ) {
        let Some(mut commit) = self.commits.take(id) else {
            return;
        };
        match commit.purpose {
            CommitPurpose::Turn(_) => {
                self.keyboard.hold();
                self.notify_delivery(now, DeliveryEvent::NotRecorded(why.to_owned()), observer);
            }
            CommitPurpose::DirectOffer(offer) => {
                let (offer, why) = (offer, why.to_owned());
                let ids = Vec::new();
                self.refuse_direct(offer);
                self.handle(now, Input::HookUnanswered { offer, ids, why }, observer);
            }
            CommitPurpose::Nothing => {}
            CommitPurpose::Receipt { give_up_at } if is_final || now.mono >= give_up_at => {
                if let JournalOperation::RecordStep { ids, .. } = &commit.operation {
                    observer.on_receipt_lost(ids, why);
                }
            }
            CommitPurpose::Receipt { .. } => {
                if let (JournalOperation::RecordStep { ids, .. }, false) =
                    (&commit.operation, commit.has_failed)
                {
                    observer.on_receipt_retry(ids, why);
                }
                commit.has_failed = true;
                commit.retry_at = Some(now.mono + JOURNAL_RETRY_INTERVAL);
                self.commits.open.push(commit);
            }
        }
    }

    pub(crate) fn retry_commits(&mut self, now: Moment) {
        for commit in &mut self.commits.open {
            if commit.retry_at.take_if(|at| *at <= now.mono).is_some() {
                self.actions.push(Action::Commit {
                    commit: commit.id,
                    operation: commit.operation.clone(),
                });
            }
        }
    }
}
