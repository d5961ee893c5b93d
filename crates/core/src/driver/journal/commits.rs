//! Open commits, and retries of receipts that the journal has not recorded.

use crate::delivery::{DeliveryEvent, JOURNAL_RETRY_INTERVAL};
use crate::driver::end::EarlierOffers;
use crate::driver::{Action, CommitId, Input, JournalOperation, Observer, SessionDriver};
use crate::id::MessageId;
use crate::moment::Moment;
use std::time::Duration;

/// How long a record is retried. A receipt that is lost after that leaves its offer to the next
/// session, which finds it cut off.
const RECORD_RETRIED_FOR: Duration = Duration::from_secs(180);

/// The purpose of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommitPurpose {
    /// A turn for which the keyboard is held.
    Turn,
    /// An offer to a hook or the API, by its number.
    DirectOffer(u64),
    /// A check that the next periodic check repeats.
    Check,
    /// A record that is retried, because nothing else would repeat it.
    Record { give_up_at: Duration },
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

    pub(crate) fn has_operation(&self, operation: &JournalOperation) -> bool {
        self.open
            .iter()
            .any(|commit| commit.operation == *operation)
    }

    /// Whether a change of an ask is being recorded, or waits to be retried.
    pub(crate) fn has_ask(&self) -> bool {
        use JournalOperation::{CloseAsk, OpenAsk};
        self.open
            .iter()
            .any(|commit| matches!(commit.operation, OpenAsk { .. } | CloseAsk { .. }))
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
            | Self::CloseKilledHooks
            | Self::CloseUnproven
            | Self::OpenAsk { .. }
            | Self::CloseAsk { .. } => false,
        }
    }
}

impl SessionDriver {
    pub(crate) fn commit(&mut self, operation: JournalOperation, purpose: CommitPurpose) {
        self.commits.count += 1;
        let id = CommitId(self.commits.count);
        self.actions.push_back(Action::Commit {
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

    /// Commit an operation, and retry until the journal has recorded it.
    pub(crate) fn record(&mut self, now: Moment, operation: JournalOperation) {
        let give_up_at = now.mono + RECORD_RETRIED_FOR;
        self.commit(operation, CommitPurpose::Record { give_up_at });
    }

    pub(crate) fn committed(
        &mut self,
        now: Moment,
        id: CommitId,
        ids: Vec<MessageId>,
        has_more: bool,
        observer: &mut impl Observer,
    ) {
        let Some(commit) = self.commits.take(id) else {
            return;
        };
        match commit.purpose {
            CommitPurpose::Turn => {
                self.keyboard.hold();
                self.notify_delivery(now, DeliveryEvent::Recorded(ids), observer);
            }
            CommitPurpose::DirectOffer(offer) => {
                self.deliver_directly(now, offer, ids, observer);
            }
            CommitPurpose::Check => {}
            CommitPurpose::Record { .. } if has_more => self.record(now, commit.operation),
            CommitPurpose::Record { .. } => {
                if let JournalOperation::SettleEarlierOffers(_) = commit.operation {
                    self.earlier_offers = EarlierOffers::Settled;
                }
            }
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
            CommitPurpose::Turn => {
                self.keyboard.hold();
                self.notify_delivery(now, DeliveryEvent::NotRecorded(why.to_owned()), observer);
            }
            CommitPurpose::DirectOffer(offer) => {
                let (offer, why) = (offer, why.to_owned());
                let ids = Vec::new();
                self.refuse_direct(offer);
                self.handle(now, Input::HookUnanswered { offer, ids, why }, observer);
            }
            CommitPurpose::Check => observer.on_commit_lost(&commit.operation, why),
            CommitPurpose::Record { .. } if self.is_superseded(&commit.operation) => {}
            CommitPurpose::Record { give_up_at } if is_final || now.mono >= give_up_at => {
                observer.on_commit_lost(&commit.operation, why);
                match commit.operation {
                    // The next hook that names the conversation has it recorded.
                    JournalOperation::RecordConversation(_) if !is_final => {
                        self.conversation = None;
                    }
                    JournalOperation::SettleEarlierOffers(_) => {
                        self.earlier_offers = EarlierOffers::Lost;
                    }
                    JournalOperation::RecordStep { .. }
                    | JournalOperation::Expire
                    | JournalOperation::RecordConversation(_)
                    | JournalOperation::CloseKilledHooks
                    | JournalOperation::CloseUnproven
                    | JournalOperation::OpenAsk { .. }
                    | JournalOperation::CloseAsk { .. } => {}
                }
            }
            CommitPurpose::Record { .. } => {
                if !commit.has_failed {
                    observer.on_commit_retry(&commit.operation, why);
                }
                commit.has_failed = true;
                commit.retry_at = Some(now.mono + JOURNAL_RETRY_INTERVAL);
                self.commits.open.push(commit);
            }
        }
    }

    /// Whether a retry would undo a later record: the program is in another conversation by now.
    fn is_superseded(&self, operation: &JournalOperation) -> bool {
        match operation {
            JournalOperation::RecordConversation(conversation) => {
                self.conversation.as_ref() != Some(conversation)
            }
            JournalOperation::RecordStep { .. }
            | JournalOperation::Expire
            | JournalOperation::SettleEarlierOffers(_)
            | JournalOperation::CloseKilledHooks
            | JournalOperation::CloseUnproven
            | JournalOperation::OpenAsk { .. }
            | JournalOperation::CloseAsk { .. } => false,
        }
    }

    pub(crate) fn retry_commits(&mut self, now: Moment) {
        for commit in &mut self.commits.open {
            if commit.retry_at.take_if(|at| *at <= now.mono).is_some() {
                self.actions.push_back(Action::Commit {
                    commit: commit.id,
                    operation: commit.operation.clone(),
                });
            }
        }
    }
}
