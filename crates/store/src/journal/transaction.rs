//! The pieces of work that a writer carries out inside one transaction: the core decides on views
//! at head, what it decides is appended as facts, and the views follow.

use crate::operation::{Answer, Cut, Denied, Done, Injection, Job, Ordered, Outcome, Posted};
use crate::views::Views;
use crate::views::marks::{self, Kind};
use crate::views::messages;
use crate::views::replies;
use jiff::Timestamp;
use posthaste_core::offer::Said;
use posthaste_core::post::{self, Correspondence};
use posthaste_core::receipt::{self, Order};
use posthaste_core::{
    AgentName, Draft, Event, Fact, Letter, MessageId, Posting, Record, Refusal, Standing, inject,
};
use rusqlite::{Connection, Result, params};
use uuid::Uuid;

/// The end of the journal, inside a writer's transaction.
pub(crate) struct Log<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) views: Views,
    pub(crate) origin: &'a str,
    /// The number of the last fact.
    pub(crate) head: &'a mut u64,
}

impl Log<'_> {
    /// Does one piece of work, or none of it.
    pub(crate) fn carry_out(&mut self, job: &Job) -> Result<Answer> {
        // Each message is decided on what those before it in the same job have left; what a
        // refused job has appended by then is taken back.
        let is_of_several = match job {
            Job::Post { drafts, .. } => drafts.len() > 1,
            Job::Order { ids, .. } => ids.len() > 1,
            Job::Inject { .. }
            | Job::Offer { .. }
            | Job::Say { .. }
            | Job::Uncertain { .. }
            | Job::Expire { .. }
            | Job::Started { .. }
            | Job::Conversation { .. }
            | Job::Ended { .. }
            | Job::AddTask { .. }
            | Job::MoveTask { .. }
            | Job::AddNote { .. }
            | Job::Complete { .. }
            | Job::Loop { .. } => false,
        };
        let head = *self.head;
        if is_of_several {
            self.conn.execute_batch("SAVEPOINT job")?;
        }
        let answer = self.answer(job)?;
        if is_of_several && answer.is_err() {
            self.conn.execute_batch("ROLLBACK TO job")?;
            *self.head = head;
        }
        if is_of_several {
            self.conn.execute_batch("RELEASE job")?;
        }
        Ok(answer)
    }

    fn answer(&mut self, job: &Job) -> Result<Answer> {
        let done = match job {
            Job::Post { now, drafts } => return self.post(*now, drafts),
            Job::Order {
                now,
                who,
                order,
                ids,
            } => return self.order(*now, who, *order, ids),
            Job::Inject { now, agent } => self.inject(*now, agent)?,
            Job::Offer {
                now,
                agent,
                ids,
                route,
                repeats,
            } => {
                let (route, repeats) = (route.clone(), repeats.clone());
                self.say(*now, agent, ids, &Said::Offering { route, repeats })?
            }
            Job::Say {
                now,
                agent,
                ids,
                said,
            } => self.say(*now, agent, ids, said)?,
            Job::Uncertain {
                now,
                agent,
                cut,
                reason,
            } => self.cut_off(*now, agent, cut, reason)?,
            Job::Expire { now, agent } => self.expire(*now, agent)?,
            Job::Started {
                now,
                agent,
                started,
            } => self.start(*now, agent, started)?,
            Job::Conversation {
                now,
                agent,
                conversation,
            } => self.converse(*now, agent, conversation)?,
            Job::Ended { now, agent, ended } => self.end(*now, agent, ended)?,
            Job::AddTask { now, agent, task } => return self.add_task(*now, agent, task),
            Job::MoveTask {
                now,
                who,
                task,
                status,
                iteration,
            } => return self.move_task(*now, who, *task, *status, *iteration),
            Job::AddNote { now, agent, note } => return self.add_note(*now, agent, note),
            Job::Complete {
                now,
                who,
                agent,
                iteration,
            } => return self.complete(*now, who, agent, *iteration),
            Job::Loop { now, agent, order } => return self.order_loop(*now, agent, order),
        };
        Ok(Ok(done))
    }

    fn post(&mut self, now: Timestamp, drafts: &[Draft]) -> Result<Answer> {
        let posted = drafts.iter().map(|draft| self.post_one(now, draft));
        let posted = posted.collect::<Result<std::result::Result<_, _>>>()?;
        Ok(posted.map(Done::Posted))
    }

    fn post_one(
        &mut self,
        now: Timestamp,
        draft: &Draft,
    ) -> Result<std::result::Result<Posted, Denied>> {
        let mut known = match self.correspondence(now, draft)? {
            Ok(known) => known,
            Err(denied) => return Ok(Err(denied)),
        };
        // An id is random, so that it is taken already is found out by trying.
        loop {
            let (event, also) = match post::decide(now, draft, &known) {
                Ok(Posting::New { envelope, also }) => (Event::Message(*envelope), also),
                Ok(Posting::Already(id)) => {
                    let there = messages::letter(self.conn, self.views, id)?;
                    let posted = there.map(|letter| Posted {
                        letter,
                        is_new: false,
                        unfiled: None,
                        touched: Vec::new(),
                    });
                    return Ok(posted.ok_or(Denied::NotFound(id)));
                }
                Err(refusal) => return Ok(Err(Denied::Refused { id: None, refusal })),
            };
            let fact = Fact {
                id: draft.id.0,
                at: now,
                agent: draft.to.clone(),
                event,
            };
            match self.append(&fact) {
                Ok(()) => return self.posted(now, draft, &fact, also),
                Err(error) if is_taken(&error) && known.same_id.is_none() => {}
                Err(error) => return Err(error),
            }
            match messages::letter(self.conn, self.views, draft.id)? {
                Some(letter) => known.same_id = Some(letter.message),
                // A fact that is no message has it, or a message that this version cannot read.
                None => {
                    let refusal = Refusal::IdTaken;
                    return Ok(Err(Denied::Refused { id: None, refusal }));
                }
            }
        }
    }

    fn posted(
        &mut self,
        now: Timestamp,
        draft: &Draft,
        fact: &Fact,
        also: Vec<(AgentName, Event)>,
    ) -> Result<std::result::Result<Posted, Denied>> {
        let mut touched = vec![draft.to.clone()];
        let is_all = also.is_empty();
        for (agent, event) in also {
            self.append_events(now, &agent, vec![event])?;
            touched.push(agent);
        }
        touched.dedup();
        // Who lets one message expire has let others: see what became of them.
        if draft.ttl.is_some() {
            self.sweep(now, &draft.to)?;
        }
        let letter = if is_all {
            fact.message().map(|message| Letter {
                message,
                standing: Standing::default(),
                receipts: fact.receipt().into_iter().collect(),
            })
        } else {
            messages::letter(self.conn, self.views, draft.id)?
        };
        let posted = letter.map(|letter| Posted {
            letter,
            is_new: true,
            unfiled: None,
            touched,
        });
        Ok(posted.ok_or(Denied::NotFound(draft.id)))
    }

    fn correspondence(
        &self,
        now: Timestamp,
        draft: &Draft,
    ) -> Result<std::result::Result<Correspondence, Denied>> {
        let mut known = Correspondence::default();
        for (id, place) in [
            (draft.reply_to, &mut known.parent),
            (draft.closes, &mut known.closed),
        ] {
            let Some(id) = id else { continue };
            match messages::letter(self.conn, self.views, id)? {
                Some(letter) => *place = Some(letter),
                None => return Ok(Err(Denied::NotFound(id))),
            }
        }
        if !draft.from.is_human() {
            let (from, to, most) = (&draft.from, &draft.to, draft.limits.rate);
            known.given = replies::given(self.conn, self.views, from)?;
            if most < u32::MAX {
                known.recent = replies::recent(self.conn, self.views, (from, to), now, most)?;
            }
        }
        if let Some(key) = &draft.key {
            let whose = marks::key(draft.from.as_str(), draft.to.as_str(), key);
            if let Some(last) = self.views.last_marked(self.conn, Kind::Key, &whose)? {
                known.same_key = messages::letter_at(self.conn, self.views, last)?;
            }
            // Then nothing is appended that would show whether the id is taken.
            if known.same_key.is_some() {
                let there = messages::letter(self.conn, self.views, draft.id)?;
                known.same_id = there.map(|letter| letter.message);
            }
        }
        Ok(Ok(known))
    }

    fn order(
        &mut self,
        now: Timestamp,
        who: &AgentName,
        order: Order,
        ids: &[MessageId],
    ) -> Result<Answer> {
        let mut ordered = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(letter) = messages::letter(self.conn, self.views, *id)? else {
                return Ok(Err(Denied::NotFound(*id)));
            };
            let message = letter.message;
            let outcome = match receipt::decide(now, order, who, &message, letter.standing) {
                Ok(events) if events.is_empty() => Outcome::Unchanged,
                Ok(events) => {
                    self.append_events(now, &message.to, events)?;
                    Outcome::Changed
                }
                Err(Refusal::AlreadyArchived) => Outcome::AlreadyArchived,
                Err(refusal) => {
                    return Ok(Err(Denied::Refused {
                        id: Some(*id),
                        refusal,
                    }));
                }
            };
            ordered.push(Ordered { message, outcome });
        }
        Ok(Ok(Done::Ordered(ordered)))
    }

    fn inject(&mut self, now: Timestamp, agent: &AgentName) -> Result<Done> {
        self.sweep(now, agent)?;
        self.cut_off(now, agent, &Cut::Injected, inject::UNPRINTED)?;
        // Load the messages before the offer is recorded: the offer ends the state `uncertain`, which
        // marks a repeat.
        let pending =
            messages::pending(self.conn, self.views, agent, now, messages::Pending::MOST)?;
        let letters = inject::choose(pending);
        let ids: Vec<_> = letters.iter().map(|letter| letter.message.id).collect();
        let route = inject::ROUTE.to_owned();
        let repeats = Letter::repeats(&letters);
        self.say(now, agent, &ids, &Said::Offering { route, repeats })?;
        let unread = messages::count(self.conn, self.views, agent, now)?.unread;
        Ok(Done::Injected(Injection { letters, unread }))
    }

    pub(crate) fn append_events(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        events: Vec<Event>,
    ) -> Result<()> {
        for event in events {
            self.append(&Fact {
                id: Uuid::new_v4(),
                at: now,
                agent: agent.clone(),
                event,
            })?;
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, fact: &Fact) -> Result<()> {
        let record = Record {
            seq: *self.head + 1,
            origin: self.origin.to_owned(),
            id: fact.id.hyphenated().to_string(),
            at: fact.at.to_string(),
            agent: fact.agent.to_string(),
            kind: fact.event.kind().to_owned(),
            data: fact.event.data(),
        };
        insert(self.conn, &record)?;
        *self.head = record.seq;
        self.views.apply_fact(self.conn, record.seq, fact)
    }
}

/// Whether a fact was not taken because its id stands in the journal already.
fn is_taken(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Puts a record into the journal; only under the writers' lock and after the last one, so that
/// no number is left out.
pub(crate) fn insert(conn: &Connection, record: &Record) -> Result<()> {
    conn.prepare_cached("INSERT INTO facts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
        .execute(params![
            record.seq,
            record.origin,
            record.id,
            record.at,
            record.agent,
            record.kind,
            record.data
        ])?;
    Ok(())
}
