//! Doing it, with what must hold of every single piece of work.

use super::deeds::{AGENTS, Chore, Deed, Saying, Wish};
use jiff::{SignedDuration, Timestamp};
use posthaste_core::offer::Said;
use posthaste_core::work::{NewNote, NewTask};
use posthaste_core::{
    AgentName, Draft, Ended, Ending, Event, Evidence, Fact, Letter, Limits, Mail, MessageId,
    NoteId, Progress, Record, Step, TaskId, inject, work,
};
use posthaste_lab::{id, name, records, started};
use posthaste_store::{Answer, Cut, Done, Job, Journal, Moved, transfer};
use uuid::Uuid;

/// Does it, and checks what must hold of every single piece of work.
pub(super) fn carry_out(journal: &mut Journal, now: Timestamp, deed: &Deed) {
    let Some(job) = job(journal, now, deed) else {
        return;
    };
    let head = journal.head().unwrap();
    let before = Before::of(journal, now, deed);
    let answer = journal.commit(job).unwrap();
    check(journal, head, &before, answer);
}

/// The piece of work, where it is one of this journal's.
fn job(journal: &mut Journal, now: Timestamp, deed: &Deed) -> Option<Job> {
    Some(match deed {
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
                return None;
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
            bring(journal, now, Event::Work(work::Deed::Moved(moved)));
            return None;
        }
        Deed::Bring { of, step } => {
            let event = Event::Progress(Progress::of(numbered(*of), *step));
            bring(journal, now, event);
            return None;
        }
    })
}

/// What a replay says of the mail before a piece of work.
struct Before {
    /// Whose mail is delivered.
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
            pending.retain(|letter| !letter.message.envelope.raw);
        }
        Self {
            is_offer: matches!(deed, Deed::Deliver { said, .. } if *said == offer),
            pending: pending.iter().map(|letter| letter.message.id).collect(),
            unread: mail.unread(&agent, now).count() as u64,
            agent,
        }
    }

    fn check_moved(&self, journal: &mut Journal, done: &Moved) {
        for id in &done.moved {
            let letter = journal.letter(*id).unwrap().unwrap();
            assert_eq!(letter.message.to, self.agent);
            let was_pending = self.pending.contains(id);
            assert!(!self.is_offer || was_pending, "{id} was not pending");
        }
    }
}

/// Mark the offers that earlier hooks left open as uncertain, as every hook does first.
fn cut_off_injected(mail: &mut Mail, now: Timestamp, agent: &AgentName) {
    let is_left = |l: &&Letter| l.message.to == *agent && inject::is_under_way(l);
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

fn check(journal: &mut Journal, head: u64, before: &Before, answer: Answer) {
    match answer {
        Err(_) => assert_eq!(journal.head().unwrap(), head, "denied: nothing was written"),
        Ok(Done::Posted(posted)) => {
            for posted in posted {
                let there = journal.letter(posted.letter.message.id).unwrap().unwrap();
                assert_eq!(there.message, posted.letter.message);
            }
        }
        Ok(Done::Moved(done)) => before.check_moved(journal, &done),
        Ok(Done::Ordered(_) | Done::Expired(_) | Done::Started { .. } | Done::Ended { .. }) => {}
        Ok(Done::Completed { .. } | Done::Loop { .. } | Done::Conversation { .. }) => {}
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
            let pending = &before.pending;
            assert_eq!(shown, pending[..pending.len().min(3)]);
            assert_eq!(injection.unread, before.unread);
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

impl Saying {
    fn job(self, now: Timestamp, agent: AgentName, ids: Vec<MessageId>) -> Job {
        let word = String::from;
        let (route, reason) = (word("terminal"), word("crash"));
        let said = match self {
            Self::Offer => {
                return Job::Offer {
                    now,
                    agent,
                    repeats: ids.clone(),
                    ids,
                    route,
                };
            }
            Self::AllUncertain => {
                return Job::Uncertain {
                    now,
                    agent,
                    cut: Cut::All,
                    reason,
                };
            }
            Self::NeverProven => {
                return Job::Uncertain {
                    now,
                    agent,
                    cut: Cut::Unproven,
                    reason,
                };
            }
            Self::Uncertain => {
                return Job::Uncertain {
                    now,
                    agent,
                    cut: Cut::These(ids),
                    reason,
                };
            }
            Self::Expire => return Job::Expire { now, agent },
            Self::Offered | Self::OfferedAwaitingProof => Said::Offered {
                route,
                evidence: word("written"),
                proof_awaited: self == Self::OfferedAwaitingProof,
            },
            Self::Accepted => Said::Accepted {
                route,
                evidence: word("hook"),
            },
            Self::Withdraw => Said::Withdrawn {
                reason: word("a draft"),
            },
            Self::Remind => Said::Reminded { route },
            Self::Fail => Said::Failed {
                reason: word("gone"),
            },
        };
        Job::Say {
            now,
            agent,
            ids,
            said,
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
            started: started(run),
        },
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
