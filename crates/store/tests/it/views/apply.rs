//! Applies random operations to a journal, and checks the result of each.

use super::operations::{AGENTS, DeliveryOperation, TestDraft, TestOperation, WorkOperation};
use jiff::{SignedDuration, Timestamp};
use posthaste_core::offer::OfferReport;
use posthaste_core::tasks::{NewNote, NewTask};
use posthaste_core::{
    AgentName, Draft, Ended, Event, Evidence, Fact, Limits, Mail, MessageId, MessageState, NoteId,
    Progress, Record, Step, Task, TaskId, inject, tasks,
};
use posthaste_lab::{id, name, records, started};
use posthaste_store::operation::{
    AddNote, AddTask, ApplyOrder, EndRun, Expire, Inject, MarkUncertain, MoveTask, OpenOffers,
    Post, RecordCompletion, RecordDelivery, RecordedDelivery, StartRun, TaskChange,
};
use posthaste_store::{Journal, Operation, transfer};
use uuid::Uuid;

/// Apply an operation, and check its result against the state before it.
pub(super) fn apply(journal: &mut Journal, now: Timestamp, operation: &TestOperation) {
    let before = Before::of(journal, now, operation);
    match operation {
        TestOperation::Post(drafts) => {
            let drafts = drafts.iter().map(|draft| draft.draft(now)).collect();
            for posted in before
                .commit(journal, Post { now, drafts })
                .into_iter()
                .flatten()
            {
                let stored = journal.state(posted.state.message.id).unwrap().unwrap();
                assert_eq!(stored.message, posted.state.message);
            }
        }
        TestOperation::Order { who, order, ids } => {
            let apply = ApplyOrder {
                now,
                who: name(AGENTS[*who]),
                order: *order,
                ids: ids.iter().copied().map(numbered).collect(),
            };
            before.commit(journal, apply);
        }
        TestOperation::Inject { .. } => {
            let agent = before.agent.clone();
            let injection = before.commit(journal, Inject { now, agent }).unwrap();
            // The three most urgent messages.
            let shown: Vec<_> = injection.messages.iter().map(|l| l.message.id).collect();
            let pending = &before.pending;
            assert_eq!(shown, pending[..pending.len().min(3)]);
            assert_eq!(injection.unread, before.unread);
        }
        TestOperation::Deliver { operation, ids, .. } => {
            let ids = ids.iter().copied().map(numbered).collect();
            operation.apply(journal, now, &before, ids);
        }
        TestOperation::Run { agent, run: n, end } => {
            let (agent, run) = (name(AGENTS[*agent]), Uuid::from_u128((*n).into()));
            if let Some(how) = end.clone() {
                let ended = Ended { run, how };
                before.commit(journal, EndRun { now, agent, ended });
            } else {
                let started = started(run);
                before.commit(
                    journal,
                    StartRun {
                        now,
                        agent,
                        started,
                    },
                );
            }
        }
        TestOperation::Work { agent, operation } => {
            operation.apply(journal, now, &before, name(AGENTS[*agent]));
        }
        TestOperation::ImportMove { of, status } => {
            let moved = tasks::Moved {
                task: task_numbered(*of),
                status: *status,
                iteration: None,
                by: AgentName::human(),
            };
            import_event(journal, now, Event::Work(tasks::Deed::Moved(moved)));
        }
        TestOperation::ImportStep { of, step } => {
            let event = Event::Progress(Progress::of(numbered(*of), *step));
            import_event(journal, now, event);
        }
    }
}

/// State of the mail before an operation, from a replay of the facts.
struct Before {
    head: u64,
    /// The agent whose mail is delivered.
    agent: AgentName,
    is_offer: bool,
    pending: Vec<MessageId>,
    unread: u64,
}

impl Before {
    fn of(journal: &Journal, now: Timestamp, operation: &TestOperation) -> Self {
        let mut mail = Mail::replay(&records(journal));
        let agent = match operation {
            TestOperation::Inject { agent } | TestOperation::Deliver { agent, .. } => {
                name(AGENTS[*agent])
            }
            TestOperation::Post(_)
            | TestOperation::Order { .. }
            | TestOperation::Run { .. }
            | TestOperation::Work { .. }
            | TestOperation::ImportMove { .. }
            | TestOperation::ImportStep { .. } => AgentName::human(),
        };
        if let TestOperation::Inject { .. } = operation {
            cut_off_injected(&mut mail, now, &agent);
        }
        let offer = DeliveryOperation::Offer;
        let mut pending = mail.pending(&agent, now);
        if let TestOperation::Inject { .. } = operation {
            pending.retain(|state| !state.message.envelope.raw);
        }
        Self {
            head: journal.head().unwrap(),
            is_offer: matches!(operation, TestOperation::Deliver { operation, .. } if *operation == offer),
            pending: pending.iter().map(|state| state.message.id).collect(),
            unread: mail.unread(&agent, now).count() as u64,
            agent,
        }
    }

    /// Commit, and check that nothing was written if the operation was denied.
    fn commit<O: Operation>(&self, journal: &mut Journal, operation: O) -> Option<O::Output> {
        let decided = journal.commit(operation).unwrap();
        if decided.is_err() {
            let head = journal.head().unwrap();
            assert_eq!(head, self.head, "denied: nothing was written");
        }
        decided.ok()
    }

    fn check_moved(&self, journal: &mut Journal, done: &RecordedDelivery) {
        for id in &done.moved {
            let state = journal.state(*id).unwrap().unwrap();
            assert_eq!(state.message.to, self.agent);
            let was_pending = self.pending.contains(id);
            assert!(!self.is_offer || was_pending, "{id} was not pending");
        }
    }

    fn check_task(&self, journal: &mut Journal, task: &Task, is_changed: bool) {
        assert_eq!(journal.task(&task.id.into()).unwrap(), *task);
        assert_eq!(is_changed, journal.head().unwrap() > self.head);
    }
}

/// Mark the offers that earlier hooks left open as uncertain, as every hook does first.
fn cut_off_injected(mail: &mut Mail, now: Timestamp, agent: &AgentName) {
    let is_left = |l: &&MessageState| l.message.to == *agent && inject::is_under_way(l);
    let left: Vec<_> = mail.all().filter(is_left).map(|l| l.message.id).collect();
    for id in left {
        mail.apply(&Fact {
            id: Uuid::new_v4(),
            at: now,
            agent: agent.clone(),
            event: Event::Progress(Progress::of(id, Step::Uncertain)),
        });
    }
}

/// Import a fact of another journal.
fn import_event(journal: &mut Journal, now: Timestamp, event: Event) {
    let fact = Fact {
        id: Uuid::new_v4(),
        at: now,
        agent: AgentName::human(),
        event,
    };
    let line = transfer::to_line(&Record {
        seq: 1,
        origin: "elsewhere".to_owned(),
        id: fact.id.to_string(),
        at: fact.at.to_string(),
        agent: fact.agent.to_string(),
        kind: fact.event.kind().to_owned(),
        data: fact.event.data(),
    });
    let imported = transfer::import(journal, &mut line.as_bytes(), |_| {}).unwrap();
    assert_eq!(imported.added, 1);
}

impl TestDraft {
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
            // Small limits, so that some drafts exceed them.
            limits: Limits { hops: 2, rate: 4 },
            from_evidence: Evidence::Env,
            allow_self: true,
            ..Draft::new(numbered(self.id), from, to, format!("body {}", self.id % 4))
        }
    }
}

impl WorkOperation {
    fn apply(&self, journal: &mut Journal, now: Timestamp, before: &Before, agent: AgentName) {
        let by = agent.clone();
        match self {
            Self::Add { id, status } => {
                let id = task_numbered(*id);
                // The journal would refuse a second task with this id.
                if journal.task(&id.into()).is_ok() {
                    return;
                }
                let task = NewTask {
                    id,
                    text: format!("task {id}"),
                    status: *status,
                    iteration: None,
                    by,
                };
                if let Some(task) = before.commit(journal, AddTask { now, agent, task }) {
                    before.check_task(journal, &task, true);
                }
            }
            Self::Move {
                id,
                who,
                status,
                iteration,
            } => {
                let change = MoveTask {
                    now,
                    who: name(AGENTS[*who]),
                    task: task_numbered(*id),
                    status: *status,
                    iteration: *iteration,
                };
                if let Some(TaskChange { task, is_changed }) = before.commit(journal, change) {
                    before.check_task(journal, &task, is_changed);
                }
            }
            Self::Note { kind, iteration } => {
                let note = NewNote {
                    id: NoteId(Uuid::new_v4()),
                    kind: *kind,
                    text: "noted".to_owned(),
                    iteration: *iteration,
                    by,
                };
                if let Some(note) = before.commit(journal, AddNote { now, agent, note }) {
                    let notes = journal.notes(&note.agent, &[note.kind]).unwrap();
                    assert_eq!(notes.last(), Some(&note));
                }
            }
            Self::Complete => {
                let complete = RecordCompletion {
                    now,
                    who: by,
                    agent,
                    iteration: None,
                };
                before.commit(journal, complete);
            }
        }
    }
}

impl DeliveryOperation {
    fn apply(self, journal: &mut Journal, now: Timestamp, before: &Before, ids: Vec<MessageId>) {
        let agent = before.agent.clone();
        let word = String::from;
        let (route, reason) = (word("terminal"), word("crash"));
        let mark = |offers| MarkUncertain {
            now,
            agent: agent.clone(),
            offers,
            reason,
        };
        let record = |report, ids| RecordDelivery {
            now,
            agent: agent.clone(),
            ids,
            report,
        };
        let recorded = match self {
            Self::Expire => {
                before.commit(journal, Expire { now, agent });
                return;
            }
            Self::AllUncertain => before.commit(journal, mark(OpenOffers::All)),
            Self::NeverProven => before.commit(journal, mark(OpenOffers::Unproven)),
            Self::Uncertain => before.commit(journal, mark(OpenOffers::These(ids))),
            Self::Offer => {
                let repeats = ids.clone();
                before.commit(
                    journal,
                    record(OfferReport::Offering { route, repeats }, ids),
                )
            }
            Self::Offered | Self::OfferedAwaitingProof => {
                let offered = OfferReport::Offered {
                    route,
                    evidence: word("written"),
                    proof_awaited: self == Self::OfferedAwaitingProof,
                };
                before.commit(journal, record(offered, ids))
            }
            Self::Accepted => {
                let evidence = word("hook");
                before.commit(
                    journal,
                    record(OfferReport::Accepted { route, evidence }, ids),
                )
            }
            Self::Withdraw => {
                let reason = word("a draft");
                before.commit(journal, record(OfferReport::Withdrawn { reason }, ids))
            }
            Self::Remind => before.commit(journal, record(OfferReport::Reminded { route }, ids)),
            Self::Fail => {
                let reason = word("gone");
                before.commit(journal, record(OfferReport::Failed { reason }, ids))
            }
        };
        if let Some(recorded) = recorded {
            before.check_moved(journal, &recorded);
        }
    }
}

/// Return the `n`th message id. Several ids have the same prefix.
fn numbered(n: u8) -> MessageId {
    id(0xabc0_0000 + (u32::from(n % 3) << 24) + u32::from(n))
}

/// Return the `n`th task id. Several ids have the same prefix, and none is a message's.
fn task_numbered(n: u8) -> TaskId {
    TaskId(Uuid::from_u128(
        (0xdef0 << 112) | (u128::from(n % 3) << 100) | u128::from(n),
    ))
}
