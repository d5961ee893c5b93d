//! Open commits, and retries of receipts that the journal has not recorded.

use super::terminal::Purpose;
use super::{Action, CommitId, Input, Observer, Operation, SessionDriver};
use crate::delivery::{Event, REST};
use crate::id::MessageId;
use crate::moment::Moment;
use std::time::Duration;

/// How long the commit of a receipt is retried. After that, the receipt is lost, and the next
/// session finds the offer cut off.
const RECEIPT_RETRIED_FOR: Duration = Duration::from_secs(180);

/// What a commit is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum For {
    /// A turn for which the keyboard is held.
    Turn(Purpose),
    /// Mail for a hook or the API, by the number of its offer.
    Handover(u64),
    /// Nothing waits for the commit, and a failed commit is not retried.
    Nothing,
    /// A receipt of an offer. It is retried, because without it the next session would take a
    /// completed offer for uncertain.
    Receipt { give_up_at: Duration },
}

#[derive(Debug, Clone)]
struct Commit {
    id: CommitId,
    operation: Operation,
    purpose: For,
    has_failed: bool,
    /// When the commit is retried, after a failure.
    retry_at: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Commits {
    count: u64,
    open: Vec<Commit>,
}

impl Commits {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn has(&self, id: MessageId) -> bool {
        self.open.iter().any(|commit| commit.operation.has(id))
    }

    pub(super) fn next_retry(&self) -> Option<Duration> {
        self.open.iter().filter_map(|commit| commit.retry_at).min()
    }

    fn take(&mut self, id: CommitId) -> Option<Commit> {
        let at = self.open.iter().position(|commit| commit.id == id)?;
        Some(self.open.remove(at))
    }
}

impl Operation {
    pub fn has(&self, id: MessageId) -> bool {
        match self {
            Self::Say { ids, .. } => ids.contains(&id),
            Self::Expire
            | Self::Converse(_)
            | Self::SettleEarlierOffers(_)
            | Self::CloseKilledHooks => false,
        }
    }
}

impl SessionDriver {
    pub(super) fn commit(&mut self, operation: Operation, purpose: For) {
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

    pub(super) fn commit_receipt(&mut self, now: Moment, operation: Operation) {
        let give_up_at = now.mono + RECEIPT_RETRIED_FOR;
        self.commit(operation, For::Receipt { give_up_at });
    }

    pub(super) fn committed(
        &mut self,
        now: Moment,
        id: CommitId,
        ids: Vec<MessageId>,
        head: u64,
        observer: &mut impl Observer,
    ) {
        self.freshness.commit(head);
        match self.commits.take(id).map(|commit| commit.purpose) {
            Some(For::Turn(_)) => {
                self.keyboard.hold();
                self.tell(now, Event::Recorded(ids), observer);
            }
            Some(For::Handover(offer)) => self.hand_over(now, offer, ids, observer),
            Some(For::Nothing | For::Receipt { .. }) | None => {}
        }
    }

    pub(super) fn not_committed(
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
            For::Turn(_) => {
                self.keyboard.hold();
                self.tell(now, Event::NotRecorded(why.to_owned()), observer);
            }
            For::Handover(offer) => {
                let (offer, why) = (offer, why.to_owned());
                let ids = Vec::new();
                self.refuse_hook(offer);
                self.handle(now, Input::HookUnanswered { offer, ids, why }, observer);
            }
            For::Nothing => {}
            For::Receipt { give_up_at } if is_final || now.mono >= give_up_at => {
                if let Operation::Say { ids, .. } = &commit.operation {
                    observer.gives_up(ids, why);
                }
            }
            For::Receipt { .. } => {
                if let (Operation::Say { ids, .. }, false) = (&commit.operation, commit.has_failed)
                {
                    observer.retries(ids, why);
                }
                commit.has_failed = true;
                commit.retry_at = Some(now.mono + REST);
                self.commits.open.push(commit);
            }
        }
    }

    pub(super) fn retry_commits(&mut self, now: Moment) {
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
