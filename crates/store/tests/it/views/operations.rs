//! Strategies for random operations on a journal, in any order and at any time.

use posthaste_core::{Ending, NoteType, Order, Priority, Step, TaskStatus};
use proptest::prelude::*;

pub(super) const AGENTS: [&str; 3] = ["alice", "bob", "human"];
/// Number of ids: small, so that ids, keys and prefixes collide.
pub(super) const IDS: u8 = 10;

/// An operation, and its delay after the previous one in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct TimedOperation {
    pub(super) delay: i64,
    pub(super) operation: TestOperation,
}

#[derive(Debug, Clone)]
pub(super) enum TestOperation {
    Post(Vec<TestDraft>),
    Order {
        who: usize,
        order: Order,
        ids: Vec<u8>,
    },
    Inject {
        agent: usize,
    },
    /// A session's operation on its agent's mail.
    Deliver {
        agent: usize,
        operation: DeliveryOperation,
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
        operation: WorkOperation,
    },
    /// Import a change of a task, which may not be imported yet.
    ImportMove {
        of: u8,
        status: TaskStatus,
    },
    /// Import a step of a message, which may not be imported yet.
    ImportStep {
        of: u8,
        step: Step,
    },
}

#[derive(Debug, Clone)]
pub(super) enum WorkOperation {
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

fn work_operation() -> impl Strategy<Value = WorkOperation> {
    let status = || proptest::sample::select(&TaskStatus::ALL[..]);
    let iteration = || proptest::option::of(0..4_u32);
    prop_oneof![
        (0..IDS, status()).prop_map(|(id, status)| WorkOperation::Add { id, status }),
        (0..IDS, 0..AGENTS.len(), status(), iteration()).prop_map(
            |(id, who, status, iteration)| {
                WorkOperation::Move {
                    id,
                    who,
                    status,
                    iteration,
                }
            }
        ),
        (proptest::sample::select(&NoteType::ALL[..]), iteration())
            .prop_map(|(kind, iteration)| WorkOperation::Note { kind, iteration }),
        Just(WorkOperation::Complete),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryOperation {
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

pub(super) const DELIVERY_OPERATIONS: [DeliveryOperation; 11] = [
    DeliveryOperation::Offer,
    DeliveryOperation::Offered,
    DeliveryOperation::Accepted,
    DeliveryOperation::Uncertain,
    DeliveryOperation::AllUncertain,
    DeliveryOperation::OfferedAwaitingProof,
    DeliveryOperation::NeverProven,
    DeliveryOperation::Withdraw,
    DeliveryOperation::Remind,
    DeliveryOperation::Fail,
    DeliveryOperation::Expire,
];

#[derive(Debug, Clone)]
pub(super) struct TestDraft {
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

/// Generate a delay in nanoseconds: up to 90 s forwards or 60 s backwards.
fn nanos() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => 0..90_000_000_000_i64,
        1 => -60_000_000_000_i64..0,
        1 => Just(0),
        1 => Just(1),
    ]
}

fn test_draft() -> impl Strategy<Value = TestDraft> {
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
            |(id, from, to, priority, reply_to, key, ttl, not_before, more)| TestDraft {
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

fn test_operation() -> impl Strategy<Value = TestOperation> {
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
        4 => proptest::collection::vec(test_draft(), 1..4).prop_map(TestOperation::Post),
        3 => (
            0..AGENTS.len(),
            proptest::sample::select(orders.to_vec()),
            proptest::collection::vec(0..IDS, 1..3)
        )
            .prop_map(|(who, order, ids)| TestOperation::Order { who, order, ids }),
        1 => (0..AGENTS.len()).prop_map(|agent| TestOperation::Inject { agent }),
        3 => (
            0..AGENTS.len(),
            proptest::sample::select(&DELIVERY_OPERATIONS[..]),
            proptest::collection::vec(0..IDS, 1..6)
        )
            .prop_map(|(agent, operation, ids)| TestOperation::Deliver { agent, operation, ids }),
        1 => (
            0..AGENTS.len(),
            0..3_u8,
            proptest::option::of(proptest::sample::select(&[Ending::Exit(0), Ending::Crashed][..]))
        )
            .prop_map(|(agent, run, end)| TestOperation::Run { agent, run, end }),
        3 => (0..AGENTS.len(), work_operation()).prop_map(|(agent, operation)| TestOperation::Work { agent, operation }),
        1 => (0..IDS, proptest::sample::select(&TaskStatus::ALL[..]))
            .prop_map(|(of, status)| TestOperation::ImportMove { of, status }),
        2 => (0..IDS, proptest::sample::select(&Step::ALL[..]))
            .prop_map(|(of, step)| TestOperation::ImportStep { of, step }),
    ]
}

pub(super) fn operations() -> impl Strategy<Value = Vec<TimedOperation>> {
    let operation = (nanos(), test_operation())
        .prop_map(|(delay, operation)| TimedOperation { delay, operation });
    proptest::collection::vec(operation, 1..30)
}
