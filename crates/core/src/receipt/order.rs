//! Orders about a stored message: who may give them, and their steps.

use super::{End, MessageStatus, ReceiptState, Step};
use crate::ask::AskRefusal;
use crate::fact::{Event, Progress};
use crate::id::MessageId;
use crate::message::Message;
use crate::name::AgentName;
use jiff::Timestamp;

/// A change that somebody requests for a stored message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    MarkRead,
    MarkUnread,
    Archive,
    Delete,
    Cancel,
    /// Record that `check --inject` showed the message.
    Show,
    /// Record that the message has expired.
    Expire,
}

impl Order {
    fn verb(self) -> &'static str {
        match self {
            Self::MarkRead => "mark",
            Self::MarkUnread => "mark",
            Self::Archive => "archive",
            Self::Delete => "delete",
            Self::Cancel => "cancel",
            Self::Show => "show",
            Self::Expire => "expire",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{who} cannot {verb} a message that belongs to {owner}")]
    NotYours {
        who: AgentName,
        owner: AgentName,
        verb: &'static str,
    },
    #[error("{who} cannot cancel a message that {sender} sent")]
    NotSender { who: AgentName, sender: AgentName },
    #[error("already archived")]
    AlreadyArchived,
    #[error("it has ended already: {0}")]
    Ended(ReceiptState),
    #[error("it can no longer be cancelled: {0}")]
    OutOfReach(&'static str),
    #[error("{0} cannot send to itself")]
    ToSelf(AgentName),
    #[error("a different message already has this id")]
    IdTaken,
    #[error("the text of a message cannot be empty")]
    Empty,
    #[error("a raw message has at most 4000 bytes")]
    RawTooLong,
    #[error("{0} is neither sender nor recipient of that message")]
    NotTheirsToClose(AgentName),
    #[error("message {} expects no reply", .0.id8())]
    NothingExpected(MessageId),
    #[error(transparent)]
    Ask(#[from] AskRefusal),
}

/// Check that `who` may give the order: the person may give any, the sender may cancel, and the
/// recipient may give the others.
fn check_permission(who: &AgentName, order: Order, message: &Message) -> Result<(), Refusal> {
    let (owner, sender) = (&message.to, &message.envelope.from);
    match order {
        _ if who.is_human() => Ok(()),
        Order::Cancel if who == sender => Ok(()),
        Order::Cancel => Err(Refusal::NotSender {
            who: who.clone(),
            sender: sender.clone(),
        }),
        Order::MarkRead
        | Order::MarkUnread
        | Order::Archive
        | Order::Delete
        | Order::Show
        | Order::Expire => {
            if who == owner {
                return Ok(());
            }
            Err(Refusal::NotYours {
                who: who.clone(),
                owner: owner.clone(),
                verb: order.verb(),
            })
        }
    }
}

/// Decide an order about one message. No steps means that there is nothing to change.
pub fn decide(
    now: Timestamp,
    order: Order,
    who: &AgentName,
    message: &Message,
    status: MessageStatus,
) -> Result<Vec<Event>, Refusal> {
    let present = status.at(message, now);
    check_permission(who, order, message)?;
    let step = match (order, present.end) {
        (Order::Delete, Some(End::Deleted)) => None,
        (Order::Delete, _) => Some(Step::Deleted),
        (Order::Archive, Some(End::Archived)) => return Err(Refusal::AlreadyArchived),
        (Order::Cancel, Some(End::Cancelled)) => None,
        // Expired by the clock, but not yet in the journal.
        (Order::Expire, Some(End::Expired)) if status.end.is_none() => Some(Step::Expired),
        (Order::Expire | Order::Show, Some(_)) => None,
        (_, Some(_)) => return Err(Refusal::Ended(present.receipt())),
        (Order::Archive, None) => Some(Step::Archived),
        (Order::MarkRead, None) => (!present.read).then_some(Step::Read),
        (Order::MarkUnread, None) => present.read.then_some(Step::Unread),
        (Order::Cancel, None) if present.is_reached() => {
            return Err(Refusal::OutOfReach(present.describe_reach()));
        }
        (Order::Cancel, None) => Some(Step::Cancelled),
        (Order::Show, None) => (!present.shown).then_some(Step::Shown),
        (Order::Expire, None) => None,
    };
    Ok(step
        .map(|step| {
            Event::Progress(Progress {
                by: Some(who.clone()),
                ..Progress::of(message.id, step)
            })
        })
        .into_iter()
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name};
    use crate::receipt::tests::after;

    #[test]
    fn orders_depend_on_the_person_and_the_state() {
        use Step::*;
        let now = Timestamp::from_second(1_000).unwrap();
        let stored = message(1, "alice", "bob");
        let check = |order: Order, who: &str, before: &[Step], want: Result<Option<Step>, &str>| {
            let got = decide(now, order, &name(who), &stored, after(before));
            let got = got.map_err(|r| r.to_string()).map(|events| {
                assert!(events.len() <= 1);
                events.into_iter().next().map(|event| match event {
                    Event::Progress(p) => p.step,
                    other => panic!("an order writes steps alone: {other:?}"),
                })
            });
            assert_eq!(
                got,
                want.map_err(str::to_owned),
                "{order:?} by {who} after {before:?}"
            );
        };
        check(Order::MarkRead, "bob", &[], Ok(Some(Read)));
        check(Order::MarkRead, "human", &[], Ok(Some(Read)));
        check(Order::MarkRead, "bob", &[Read], Ok(None));
        check(
            Order::MarkRead,
            "alice",
            &[],
            Err("alice cannot mark a message that belongs to bob"),
        );
        check(
            Order::MarkRead,
            "bob",
            &[Archived],
            Err("it has ended already: archived"),
        );
        check(Order::MarkUnread, "bob", &[Read], Ok(Some(Unread)));
        check(Order::MarkUnread, "bob", &[], Ok(None));
        check(Order::Archive, "bob", &[], Ok(Some(Archived)));
        check(
            Order::Archive,
            "bob",
            &[Read, Archived],
            Err("already archived"),
        );
        check(
            Order::Archive,
            "bob",
            &[Cancelled],
            Err("it has ended already: cancelled"),
        );
        check(Order::Delete, "bob", &[Archived], Ok(Some(Deleted)));
        check(
            Order::Delete,
            "alice",
            &[],
            Err("alice cannot delete a message that belongs to bob"),
        );
        check(Order::Cancel, "alice", &[], Ok(Some(Cancelled)));
        check(Order::Cancel, "human", &[], Ok(Some(Cancelled)));
        check(
            Order::Cancel,
            "bob",
            &[],
            Err("bob cannot cancel a message that alice sent"),
        );
        let shown = "it can no longer be cancelled: a hook showed it to its agent";
        check(Order::Cancel, "alice", &[Shown], Err(shown));
        let read = "it can no longer be cancelled: it was read before";
        check(Order::Cancel, "alice", &[Read, Unread], Err(read));
        let cut = "it can no longer be cancelled: uncertain";
        check(Order::Cancel, "alice", &[Offering, Uncertain], Err(cut));
        // A withdrawn offer was certainly not shown.
        let back = [Offering, Withdrawn];
        check(Order::Cancel, "alice", &back, Ok(Some(Cancelled)));
        check(Order::Cancel, "alice", &[Cancelled], Ok(None));
        check(
            Order::Cancel,
            "alice",
            &[Offering],
            Err("it can no longer be cancelled: offering"),
        );
        check(
            Order::Cancel,
            "alice",
            &[Read],
            Err("it can no longer be cancelled: read"),
        );
        check(Order::Show, "bob", &[], Ok(Some(Shown)));
        check(Order::Show, "bob", &[Shown], Ok(None));
        check(Order::Show, "bob", &[Archived], Ok(None));
        check(Order::Expire, "bob", &[], Ok(None));
    }
}
