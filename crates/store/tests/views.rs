//! The views say what a replay of the facts says, whatever happened and at whatever time.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

use jiff::{SignedDuration, Timestamp};
use posthaste_core::work::{NewNote, NewTask};
use posthaste_core::{
    AgentName, Draft, Ended, Ending, Event, Evidence, Fact, Limits, Mail, MessageId, NoteId,
    NoteType, Order, Priority, Progress, Record, Started, Step, TaskId, TaskStatus, work,
};
use posthaste_lab::{
    TempHome, assert_intact, assert_views_agree, at, draft, id, moments, name, order, post, records,
};
use posthaste_store::{Cut, Done, Job, Journal, Listing, Patience, portable};
use proptest::prelude::*;
use uuid::Uuid;

const AGENTS: [&str; 3] = ["alice", "bob", "human"];
/// Few enough that ids, keys and prefixes meet.
const IDS: u8 = 10;

/// Something that is done to a journal, and how many nanoseconds after the last.
#[derive(Debug, Clone)]
struct Act {
    pass: i64,
    deed: Deed,
}

#[derive(Debug, Clone)]
enum Deed {
    Post(Vec<Wish>),
    Order {
        who: usize,
        order: Order,
        ids: Vec<u8>,
    },
    Inject {
        agent: usize,
    },
    /// What a session does with the mail of its agent.
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
    /// Something about an agent's tasks, notes or completion.
    Work {
        agent: usize,
        deed: Chore,
    },
    /// A change from elsewhere, perhaps of a task that has not come yet.
    BringMove {
        of: u8,
        status: TaskStatus,
    },
    /// A step from elsewhere, perhaps of a message that has not come yet.
    Bring {
        of: u8,
        step: Step,
    },
}

#[derive(Debug, Clone)]
enum Chore {
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

impl Chore {
    fn job(&self, now: Timestamp, agent: AgentName) -> Job {
        match self {
            Self::Add { id, status } => Job::AddTask {
                now,
                task: NewTask {
                    id: task_numbered(*id),
                    text: format!("task {id}"),
                    status: *status,
                    iteration: None,
                    by: agent.clone(),
                },
                agent,
            },
            Self::Move {
                id,
                who,
                status,
                iteration,
            } => Job::MoveTask {
                now,
                who: name(AGENTS[*who]),
                task: task_numbered(*id),
                status: *status,
                iteration: *iteration,
            },
            Self::Note { kind, iteration } => Job::AddNote {
                now,
                note: NewNote {
                    id: NoteId(Uuid::new_v4()),
                    kind: *kind,
                    text: "noted".to_owned(),
                    iteration: *iteration,
                    by: agent.clone(),
                },
                agent,
            },
            Self::Complete => Job::Complete {
                now,
                who: agent.clone(),
                agent,
                iteration: None,
            },
        }
    }
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

/// Ids of which several begin alike, and none is a message's.
fn task_numbered(n: u8) -> TaskId {
    TaskId(Uuid::from_u128(
        (0xdef0 << 112) | (u128::from(n % 3) << 100) | u128::from(n),
    ))
}

#[derive(Debug, Clone, Copy)]
enum Saying {
    Offer,
    Offered,
    Accepted,
    Uncertain,
    AllUncertain,
    NotShown,
    Withdraw,
    Remind,
    Fail,
    Expire,
}

const SAYINGS: [Saying; 10] = [
    Saying::Offer,
    Saying::Offered,
    Saying::Accepted,
    Saying::Uncertain,
    Saying::AllUncertain,
    Saying::NotShown,
    Saying::Withdraw,
    Saying::Remind,
    Saying::Fail,
    Saying::Expire,
];

impl Saying {
    fn job(self, now: Timestamp, agent: AgentName, ids: Vec<MessageId>) -> Job {
        let word = String::from;
        let uncertain = |agent, cut| Job::Uncertain {
            now,
            agent,
            cut,
            reason: word("crash"),
        };
        match self {
            Self::Offer => Job::Offer {
                now,
                agent,
                ids,
                route: word("terminal"),
            },
            Self::Offered => Job::Offered {
                now,
                agent,
                ids,
                route: word("terminal"),
                evidence: word("written"),
            },
            Self::Accepted => Job::Accepted {
                now,
                agent,
                ids,
                route: "terminal".to_owned(),
                evidence: word("hook"),
            },
            Self::Uncertain => uncertain(agent, Cut::These(ids)),
            Self::AllUncertain => uncertain(agent, Cut::All),
            Self::NotShown => uncertain(agent, Cut::Shown(ids)),
            Self::Withdraw => Job::Withdraw {
                now,
                agent,
                ids,
                reason: word("a draft"),
            },
            Self::Remind => Job::Remind {
                now,
                agent,
                ids,
                route: word("terminal"),
            },
            Self::Fail => Job::Fail {
                now,
                agent,
                ids,
                reason: word("gone"),
            },
            Self::Expire => Job::Expire { now, agent },
        }
    }
}

fn run(now: Timestamp, agent: AgentName, run: u8, end: Option<Ending>) -> Job {
    let run = Uuid::from_u128(run.into());
    match end {
        Some(how) => Job::Ended {
            now,
            agent,
            ended: Ended { run, how },
        },
        None => Job::Started {
            now,
            agent,
            started: Started {
                run,
                pid: 1,
                pid_started: 2,
                child_pid: 3,
                child_started: 4,
                command: vec!["cat".to_owned()],
                cwd: "/".to_owned(),
                harness: "generic".to_owned(),
                boot: "boot".to_owned(),
            },
        },
    }
}

#[derive(Debug, Clone)]
struct Wish {
    id: u8,
    from: usize,
    to: usize,
    priority: Priority,
    reply_to: Option<u8>,
    key: Option<u8>,
    ttl: Option<i64>,
    not_before: Option<i64>,
    deadline: Option<i64>,
    expects_reply: bool,
    closes: Option<u8>,
}

/// Ids of which several begin alike.
fn numbered(n: u8) -> MessageId {
    id(0xabc0_0000 + (u32::from(n % 3) << 24) + u32::from(n))
}

/// Nanoseconds around a few seconds, also backwards.
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

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (nanos(), deed()).prop_map(|(pass, deed)| Act { pass, deed });
    proptest::collection::vec(act, 1..30)
}

impl Wish {
    fn draft(&self, now: Timestamp) -> Draft {
        let [from, to] = [self.from, self.to].map(|index| name(AGENTS[index]));
        Draft {
            priority: self.priority,
            reply_to: self.reply_to.map(numbered),
            key: self.key.map(|key| key.to_string()),
            ttl: self.ttl.map(SignedDuration::from_nanos),
            not_before: self.not_before.map(|n| now + SignedDuration::from_nanos(n)),
            deadline: self.deadline.map(SignedDuration::from_nanos),
            expects_reply: self.expects_reply,
            closes: self.closes.map(numbered),
            // Few enough that some are too many.
            limits: Limits { hops: 2, rate: 4 },
            from_evidence: Evidence::Env,
            allow_self: true,
            ..Draft::new(numbered(self.id), from, to, format!("body {}", self.id % 4))
        }
    }
}

/// Does it, and checks what must hold of every single piece of work.
fn carry_out(journal: &mut Journal, now: Timestamp, deed: &Deed) {
    let head = journal.head().unwrap();
    let job = match deed {
        Deed::Post(wishes) => Job::Post {
            now,
            drafts: wishes.iter().map(|wish| wish.draft(now)).collect(),
        },
        Deed::Order { who, order, ids } => Job::Order {
            now,
            who: name(AGENTS[*who]),
            order: *order,
            ids: ids.iter().copied().map(numbered).collect(),
        },
        Deed::Inject { agent } => Job::Inject {
            now,
            agent: name(AGENTS[*agent]),
        },
        Deed::Deliver { agent, said, ids } => {
            let ids = ids.iter().copied().map(numbered).collect();
            said.job(now, name(AGENTS[*agent]), ids)
        }
        Deed::Run { agent, run: n, end } => run(now, name(AGENTS[*agent]), *n, end.clone()),
        Deed::Work { agent, deed } => {
            // A task has one id for ever; the journal would refuse a second.
            if let Chore::Add { id, .. } = deed
                && journal.task(&task_numbered(*id).into()).is_ok()
            {
                return;
            }
            deed.job(now, name(AGENTS[*agent]))
        }
        Deed::BringMove { of, status } => {
            let moved = work::Moved {
                task: task_numbered(*of),
                status: *status,
                iteration: None,
                by: AgentName::human(),
            };
            return bring(journal, now, Event::Work(work::Deed::Moved(moved)));
        }
        Deed::Bring { of, step } => {
            let event = Event::Progress(Progress::of(numbered(*of), *step));
            return bring(journal, now, event);
        }
    };
    let mail = Mail::replay(&records(journal));
    let agent = match deed {
        Deed::Inject { agent } | Deed::Deliver { agent, .. } => name(AGENTS[*agent]),
        Deed::Post(_)
        | Deed::Order { .. }
        | Deed::Run { .. }
        | Deed::Work { .. }
        | Deed::BringMove { .. }
        | Deed::Bring { .. } => AgentName::human(),
    };
    let pending: Vec<_> = mail.pending(&agent, now);
    let pending: Vec<_> = pending.iter().map(|letter| letter.message.id).collect();
    match journal.commit(job).unwrap() {
        Err(_) => assert_eq!(journal.head().unwrap(), head, "denied: nothing was written"),
        Ok(Done::Posted(posted)) => {
            for posted in posted {
                let there = journal.letter(posted.letter.message.id).unwrap().unwrap();
                assert_eq!(there.message, posted.letter.message);
            }
        }
        Ok(Done::Moved(done)) => {
            for id in &done.moved {
                let letter = journal.letter(*id).unwrap().unwrap();
                assert_eq!(letter.message.to, agent);
                let is_offer = matches!(
                    deed,
                    Deed::Deliver {
                        said: Saying::Offer,
                        ..
                    }
                );
                assert!(!is_offer || pending.contains(id), "{id} was not pending");
            }
        }
        Ok(Done::Ordered(_) | Done::Expired(_) | Done::Started { .. } | Done::Ended { .. }) => {}
        Ok(Done::Completed { .. } | Done::Loop { .. }) => {}
        Ok(Done::Note(note)) => {
            let notes = journal.notes(&note.agent, &[note.kind]).unwrap();
            assert_eq!(notes.last(), Some(&note));
        }
        Ok(Done::Task { task, is_changed }) => {
            assert_eq!(journal.task(&task.id.into()).unwrap(), task);
            assert_eq!(is_changed, journal.head().unwrap() > head);
        }
        Ok(Done::Injected(injection)) => {
            // The most urgent, and now they were shown; of idle-first the last in.
            let shown: Vec<_> = injection.letters.iter().map(|l| l.message.id).collect();
            assert_eq!(shown, pending[..pending.len().min(3)]);
            assert_eq!(injection.unread, mail.unread(&agent, now).count() as u64);
        }
    }
}

/// Brings in something that happened elsewhere.
fn bring(journal: &mut Journal, now: Timestamp, event: Event) {
    let fact = Fact {
        id: Uuid::new_v4(),
        at: now,
        agent: AgentName::human(),
        event,
    };
    let line = portable::to_line(&Record {
        seq: 1,
        origin: "elsewhere".to_owned(),
        id: fact.id.to_string(),
        at: fact.at.to_string(),
        agent: fact.agent.to_string(),
        kind: fact.event.kind().to_owned(),
        data: fact.event.data(),
    });
    let imported = portable::import(journal, &mut line.as_bytes(), |_| {}).unwrap();
    assert_eq!(imported.added, 1);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions"),
        )),
        ..ProptestConfig::default()
    })]

    #[test]
    fn views_equal_a_replay_whatever_was_done(acts in acts()) {
        let home = TempHome::new();
        let mut journal = home.journal();
        let mut now = at(0);
        for Act { pass, deed } in &acts {
            now += SignedDuration::from_nanos(*pass);
            carry_out(&mut journal, now, deed);
        }
        let facts = records(&journal);
        let times = moments(&Mail::replay(&facts));
        assert_views_agree(&mut journal, &times);
        let kept = rows(&home);
        journal.rebuild_views().unwrap();
        prop_assert_eq!(rows(&home), kept);
        assert_views_agree(&mut journal, &times);
        assert_intact(&mut journal);
        prop_assert_eq!(records(&journal), facts);
    }
}

/// Every row of every view, so that nothing is left behind that no look-up happens to show.
fn rows(home: &TempHome) -> Vec<String> {
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    let look = |sql: &str| -> Vec<String> {
        let mut look = conn.prepare(sql).unwrap();
        let columns = look.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let values = (0..columns).map(|n| row.get_unwrap::<_, rusqlite::types::Value>(n));
            Ok(format!("{:?}", values.collect::<Vec<_>>()))
        };
        let rows = look.query_map([], row).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    };
    let tables = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'v[0-9]*'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<rusqlite::Result<Vec<String>>>()
        .unwrap();
    assert!(!tables.is_empty());
    let mut all = Vec::new();
    for table in tables {
        let rows = look(&format!("SELECT * FROM {table} ORDER BY 1, 2"));
        all.extend(rows.into_iter().map(|row| format!("{table} {row}")));
    }
    all.sort_unstable();
    all
}

#[test]
fn order_is_the_journal_s_and_not_the_clock_s() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let mut sent = Vec::new();
    for hour in [5, 4, 9, -3, 0, 0] {
        let letter = draft("alice", "bob", "tick");
        post(&mut journal, at(hour * 3600), &letter);
        sent.push(letter.id);
    }
    let inbox = journal.inbox(&name("bob"), Listing::Unread, at(0)).unwrap();
    let listed: Vec<_> = inbox.iter().map(|letter| letter.message.id).collect();
    assert_eq!(listed, sent);
    assert_views_agree(&mut journal, &[at(-36_000), at(36_000)]);
}

#[test]
fn an_inbox_longer_than_a_page_is_listed_whole() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let drafts: Vec<_> = (0..2_100)
        .map(|n| Draft {
            priority: Priority::ALL[n % 4],
            ..draft("alice", "bob", n.to_string())
        })
        .collect();
    let sent: Vec<_> = drafts.iter().map(|draft| draft.id).collect();
    let now = at(0);
    journal.commit(Job::Post { now, drafts }).unwrap().unwrap();
    order(&mut journal, now, "bob", Order::MarkRead, &sent[500..1_600]);
    order(&mut journal, now, "bob", Order::Show, &sent[..50]);
    let mut check = |listing, want: &[MessageId]| {
        let listed = journal.inbox(&name("bob"), listing, now).unwrap();
        let ids: Vec<_> = listed.iter().map(|letter| letter.message.id).collect();
        assert_eq!(ids, want, "{listing:?}");
    };
    check(Listing::All, &sent);
    check(Listing::Unread, &[&sent[..500], &sent[1_600..]].concat());
}

#[test]
fn views_that_were_thrown_away_are_there_again_in_another_process_too() {
    let home = TempHome::new();
    let mut one = home.journal();
    let mut other = Journal::open(home.home(), Patience::DEFAULT).unwrap();
    let drafts: Vec<_> = (0..1_500)
        .map(|n| draft("alice", "bob", n.to_string()))
        .collect();
    one.commit(Job::Post { now: at(0), drafts })
        .unwrap()
        .unwrap();
    assert_eq!(other.count(&name("bob"), at(0)).unwrap().unread, 1_500);
    one.rebuild_views().unwrap();
    assert_eq!(other.count(&name("bob"), at(0)).unwrap().unread, 1_500);
    assert_views_agree(&mut other, &[at(0)]);
}

#[test]
fn an_inbox_that_changes_while_it_is_listed_names_nothing_twice() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let drafts: Vec<_> = (0..8)
        .map(|n| draft("alice", "bob", n.to_string()))
        .collect();
    let ids: Vec<_> = drafts.iter().map(|draft| draft.id).collect();
    journal
        .commit(Job::Post { now: at(0), drafts })
        .unwrap()
        .unwrap();
    let mut reader = home.journal();
    std::thread::scope(|scope| {
        let marking = scope.spawn(|| {
            for _ in 0..30 {
                order(&mut journal, at(0), "bob", Order::MarkRead, &ids);
                order(&mut journal, at(0), "bob", Order::MarkUnread, &ids);
            }
        });
        while !marking.is_finished() {
            let listed = reader.inbox(&name("bob"), Listing::All, at(0)).unwrap();
            let mut seen: Vec<_> = listed.iter().map(|letter| letter.message.id).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), listed.len());
        }
    });
}
