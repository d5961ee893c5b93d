//! Carries out the deeds, and checks every single operation.

use super::deeds::{AGENTS, Chore, Deed, Saying, Wish};
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

/// Do it, and check what must hold after every single operation.
pub(super) fn carry_out(journal: &mut Journal, now: Timestamp, deed: &Deed) {
    let before = Before::of(journal, now, deed);
    match deed {
        Deed::Post(wishes) => {
            let drafts = wishes.iter().map(|wish| wish.draft(now)).collect();
            for posted in before
                .commit(journal, Post { now, drafts })
                .into_iter()
                .flatten()
            {
                let stored = journal.state(posted.state.message.id).unwrap().unwrap();
                assert_eq!(stored.message, posted.state.message);
            }
        }
        Deed::Order { who, order, ids } => {
            let apply = ApplyOrder {
                now,
                who: name(AGENTS[*who]),
                order: *order,
                ids: ids.iter().copied().map(numbered).collect(),
            };
            before.commit(journal, apply);
        }
        Deed::Inject { .. } => {
            let agent = before.agent.clone();
            let injection = before.commit(journal, Inject { now, agent }).unwrap();
            // The most urgent messages; of idle-first ones the last comes first.
            let shown: Vec<_> = injection.messages.iter().map(|l| l.message.id).collect();
            let pending = &before.pending;
            assert_eq!(shown, pending[..pending.len().min(3)]);
            assert_eq!(injection.unread, before.unread);
        }
        Deed::Deliver { said, ids, .. } => {
            let ids = ids.iter().copied().map(numbered).collect();
            said.carry_out(journal, now, &before, ids);
        }
        Deed::Run { agent, run: n, end } => {
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
        Deed::Work { agent, deed } => {
            deed.carry_out(journal, now, &before, name(AGENTS[*agent]));
        }
        Deed::BringMove { of, status } => {
            let moved = tasks::Moved {
                task: task_numbered(*of),
                status: *status,
                iteration: None,
                by: AgentName::human(),
            };
            bring(journal, now, Event::Work(tasks::Deed::Moved(moved)));
        }
        Deed::Bring { of, step } => {
            let event = Event::Progress(Progress::of(numbered(*of), *step));
            bring(journal, now, event);
        }
    }
}

/// State of the mail before an operation, as a replay has it.
struct Before {
    head: u64,
    /// The agent whose mail is delivered.
    agent: AgentName,
    is_offer: bool,
    pending: Vec<MessageId>,
    unread: u64,
}

impl Before {
    fn of(journal: &Journal, now: Timestamp, deed: &Deed) -> Self {
        let mut mail = Mail::replay(&records(journal));
        let agent = match deed {
            Deed::Inject { agent } | Deed::Deliver { agent, .. } => name(AGENTS[*agent]),
            Deed::Post(_)
            | Deed::Order { .. }
            | Deed::Run { .. }
            | Deed::Work { .. }
            | Deed::BringMove { .. }
            | Deed::Bring { .. } => AgentName::human(),
        };
        if let Deed::Inject { .. } = deed {
            cut_off_injected(&mut mail, now, &agent);
        }
        let offer = Saying::Offer;
        let mut pending = mail.pending(&agent, now);
        if let Deed::Inject { .. } = deed {
            pending.retain(|state| !state.message.envelope.raw);
        }
        Self {
            head: journal.head().unwrap(),
            is_offer: matches!(deed, Deed::Deliver { said, .. } if *said == offer),
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
fn bring(journal: &mut Journal, now: Timestamp, event: Event) {
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

impl Chore {
    fn carry_out(&self, journal: &mut Journal, now: Timestamp, before: &Before, agent: AgentName) {
        let by = agent.clone();
        match self {
            Self::Add { id, status } => {
                let id = task_numbered(*id);
                // Every task has an id of its own; the journal would refuse a second one.
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

impl Saying {
    fn carry_out(
        self,
        journal: &mut Journal,
        now: Timestamp,
        before: &Before,
        ids: Vec<MessageId>,
    ) {
        let agent = before.agent.clone();
        let word = String::from;
        let (route, reason) = (word("terminal"), word("crash"));
        let mark = |offers| MarkUncertain {
            now,
            agent: agent.clone(),
            offers,
            reason,
        };
        let say = |said, ids| RecordDelivery {
            now,
            agent: agent.clone(),
            ids,
            said,
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
                before.commit(journal, say(OfferReport::Offering { route, repeats }, ids))
            }
            Self::Offered | Self::OfferedAwaitingProof => {
                let said = OfferReport::Offered {
                    route,
                    evidence: word("written"),
                    proof_awaited: self == Self::OfferedAwaitingProof,
                };
                before.commit(journal, say(said, ids))
            }
            Self::Accepted => {
                let evidence = word("hook");
                before.commit(journal, say(OfferReport::Accepted { route, evidence }, ids))
            }
            Self::Withdraw => {
                let reason = word("a draft");
                before.commit(journal, say(OfferReport::Withdrawn { reason }, ids))
            }
            Self::Remind => before.commit(journal, say(OfferReport::Reminded { route }, ids)),
            Self::Fail => {
                let reason = word("gone");
                before.commit(journal, say(OfferReport::Failed { reason }, ids))
            }
        };
        if let Some(recorded) = recorded {
            before.check_moved(journal, &recorded);
        }
    }
}

/// Ids of which several begin alike.
fn numbered(n: u8) -> MessageId {
    id(0xabc0_0000 + (u32::from(n % 3) << 24) + u32::from(n))
}

/// Ids of which several begin alike, and none is a message's.
fn task_numbered(n: u8) -> TaskId {
    TaskId(Uuid::from_u128(
        (0xdef0 << 112) | (u128::from(n % 3) << 100) | u128::from(n),
    ))
}
