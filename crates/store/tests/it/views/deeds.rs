//! Random deeds: everything that may be done to a journal, in any order and at any time.

use posthaste_core::{Ending, NoteType, Order, Priority, Step, TaskStatus};
use proptest::prelude::*;

pub(super) const AGENTS: [&str; 3] = ["alice", "bob", "human"];
/// So few that ids, keys and prefixes collide.
pub(super) const IDS: u8 = 10;

/// A deed, and its delay after the previous one in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Act {
    pub(super) pass: i64,
    pub(super) deed: Deed,
}

#[derive(Debug, Clone)]
pub(super) enum Deed {
    Post(Vec<Wish>),
    Order {
        who: usize,
        order: Order,
        ids: Vec<u8>,
    },
    Inject {
        agent: usize,
    },
    /// An operation of a session on the mail of its agent.
    Deliver {
        agent: usize,
        said: Saying,
        ids: Vec<u8>,
    },
    Run {
        agent: usize,
        run: u8,
        end: Option<Ending>,
    },
    /// A change of an agent's tasks, notes or completion.
    Work {
        agent: usize,
        deed: Chore,
    },
    /// An imported change, perhaps of a task that was not imported yet.
    BringMove {
        of: u8,
        status: TaskStatus,
    },
    /// An imported step, perhaps of a message that was not imported yet.
    Bring {
        of: u8,
        step: Step,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Chore {
    Add {
        id: u8,
        status: TaskStatus,
    },
    Move {
        id: u8,
        who: usize,
        status: TaskStatus,
        iteration: Option<u32>,
    },
    Note {
        kind: NoteType,
        iteration: Option<u32>,
    },
    Complete,
}

fn chore() -> impl Strategy<Value = Chore> {
    let status = || proptest::sample::select(&TaskStatus::ALL[..]);
    let iteration = || proptest::option::of(0..4_u32);
    prop_oneof![
        (0..IDS, status()).prop_map(|(id, status)| Chore::Add { id, status }),
        (0..IDS, 0..AGENTS.len(), status(), iteration()).prop_map(
            |(id, who, status, iteration)| {
                Chore::Move {
                    id,
                    who,
                    status,
                    iteration,
                }
            }
        ),
        (proptest::sample::select(&NoteType::ALL[..]), iteration())
            .prop_map(|(kind, iteration)| Chore::Note { kind, iteration }),
        Just(Chore::Complete),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saying {
    Offer,
    Offered,
    Accepted,
    Uncertain,
    AllUncertain,
    OfferedAwaitingProof,
    NeverProven,
    Withdraw,
    Remind,
    Fail,
    Expire,
}

pub(super) const SAYINGS: [Saying; 11] = [
    Saying::Offer,
    Saying::Offered,
    Saying::Accepted,
    Saying::Uncertain,
    Saying::AllUncertain,
    Saying::OfferedAwaitingProof,
    Saying::NeverProven,
    Saying::Withdraw,
    Saying::Remind,
    Saying::Fail,
    Saying::Expire,
];

#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) id: u8,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) priority: Priority,
    pub(super) reply_to: Option<u8>,
    pub(super) key: Option<u8>,
    pub(super) ttl: Option<i64>,
    pub(super) not_before: Option<i64>,
    pub(super) deadline: Option<i64>,
    pub(super) expects_reply: bool,
    pub(super) closes: Option<u8>,
}

/// Nanoseconds: a few seconds forwards or backwards.
fn nanos() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => 0..90_000_000_000_i64,
        1 => -60_000_000_000_i64..0,
        1 => Just(0),
        1 => Just(1),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    (
        0..IDS,
        0..AGENTS.len(),
        0..AGENTS.len(),
        proptest::sample::select(&Priority::ALL[..]),
        proptest::option::weighted(0.3, 0..IDS),
        proptest::option::weighted(0.3, 0..3_u8),
        proptest::option::weighted(0.4, nanos()),
        proptest::option::weighted(0.3, nanos()),
        (
            proptest::option::weighted(0.4, nanos()),
            proptest::bool::weighted(0.4),
            proptest::option::weighted(0.1, 0..IDS),
        ),
    )
        .prop_map(
            |(id, from, to, priority, reply_to, key, ttl, not_before, more)| Wish {
                id,
                from,
                to,
                priority,
                reply_to,
                key,
                ttl,
                not_before,
                deadline: more.0,
                expects_reply: more.1,
                closes: more.2,
            },
        )
}

fn deed() -> impl Strategy<Value = Deed> {
    let orders = [
        Order::MarkRead,
        Order::MarkUnread,
        Order::Archive,
        Order::Delete,
        Order::Cancel,
        Order::Show,
        Order::Expire,
    ];
    prop_oneof![
        4 => proptest::collection::vec(wish(), 1..4).prop_map(Deed::Post),
        3 => (
            0..AGENTS.len(),
            proptest::sample::select(orders.to_vec()),
            proptest::collection::vec(0..IDS, 1..3)
        )
            .prop_map(|(who, order, ids)| Deed::Order { who, order, ids }),
        1 => (0..AGENTS.len()).prop_map(|agent| Deed::Inject { agent }),
        3 => (
            0..AGENTS.len(),
            proptest::sample::select(&SAYINGS[..]),
            proptest::collection::vec(0..IDS, 1..6)
        )
            .prop_map(|(agent, said, ids)| Deed::Deliver { agent, said, ids }),
        1 => (
            0..AGENTS.len(),
            0..3_u8,
            proptest::option::of(proptest::sample::select(&[Ending::Exit(0), Ending::Crashed][..]))
        )
            .prop_map(|(agent, run, end)| Deed::Run { agent, run, end }),
        3 => (0..AGENTS.len(), chore()).prop_map(|(agent, deed)| Deed::Work { agent, deed }),
        1 => (0..IDS, proptest::sample::select(&TaskStatus::ALL[..]))
            .prop_map(|(of, status)| Deed::BringMove { of, status }),
        2 => (0..IDS, proptest::sample::select(&Step::ALL[..]))
            .prop_map(|(of, step)| Deed::Bring { of, step }),
    ]
}

pub(super) fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (nanos(), deed()).prop_map(|(pass, deed)| Act { pass, deed });
    proptest::collection::vec(act, 1..30)
}
