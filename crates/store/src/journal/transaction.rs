//! The transaction of a writer: appends facts, and keeps the views at head.

use crate::operation::Decided;
use crate::views::Views;
use jiff::Timestamp;
use posthaste_core::{AgentName, Event, Fact, Record};
use rusqlite::{Connection, Result, params};
use uuid::Uuid;

/// A writer's transaction, with the writers' lock held and views at head.
#[derive(Debug)]
pub struct Transaction<'a> {
    conn: &'a Connection,
    pub(crate) views: Views<'a>,
    origin: &'a str,
    /// Seq of the last fact before this transaction.
    start: u64,
    /// Seq of the last fact.
    head: u64,
    /// Agents of the facts that were appended, whose bells ring after the commit.
    agents: Vec<AgentName>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(views: Views<'a>, origin: &'a str, head: u64) -> Self {
        Self {
            conn: views.conn,
            views,
            origin,
            start: head,
            head,
            agents: Vec::new(),
        }
    }

    /// Count the appended facts as applied, and return the agents whose bells must ring.
    pub(super) fn finish(mut self) -> Result<Vec<AgentName>> {
        self.views.count_facts(self.head - self.start)?;
        self.agents.sort_unstable();
        self.agents.dedup();
        Ok(self.agents)
    }

    /// Seq of the last fact.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Run `decide`, which decides about `items` one by one, each on what those before it have
    /// left. If one is denied, take back what was appended for the others.
    pub(crate) fn undo_if_denied<T>(
        &mut self,
        items: usize,
        decide: impl FnOnce(&mut Self) -> Result<Decided<T>>,
    ) -> Result<Decided<T>> {
        // A single item appends nothing if it is denied.
        if items < 2 {
            return decide(self);
        }
        let (head, agents) = (self.head, self.agents.len());
        self.conn.execute_batch("SAVEPOINT operation")?;
        let decided = decide(self)?;
        if decided.is_err() {
            self.conn.execute_batch("ROLLBACK TO operation")?;
            self.head = head;
            self.agents.truncate(agents);
        }
        self.conn.execute_batch("RELEASE operation")?;
        Ok(decided)
    }

    pub(crate) fn append_events(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        events: Vec<Event>,
    ) -> Result<()> {
        for event in events {
            self.append_with_id(Uuid::new_v4(), now, agent, event)?;
        }
        Ok(())
    }

    pub(crate) fn append_with_id(
        &mut self,
        id: Uuid,
        now: Timestamp,
        agent: &AgentName,
        event: Event,
    ) -> Result<Fact> {
        let fact = Fact {
            id,
            at: now,
            agent: agent.clone(),
            event,
        };
        self.append(&fact)?;
        Ok(fact)
    }

    pub(crate) fn append(&mut self, fact: &Fact) -> Result<()> {
        let record = Record {
            seq: self.head + 1,
            origin: self.origin.to_owned(),
            id: fact.id.hyphenated().to_string(),
            at: fact.at.to_string(),
            agent: fact.agent.to_string(),
            kind: fact.event.kind().to_owned(),
            data: fact.event.data(),
        };
        self.insert(&record)?;
        self.agents.push(fact.agent.clone());
        self.views.apply(record.seq, fact)
    }

    /// Append a fact of another journal, under the next seq.
    pub(crate) fn append_imported(&mut self, record: &Record) -> Result<()> {
        let record = Record {
            seq: self.head + 1,
            ..record.clone()
        };
        self.insert(&record)?;
        self.agents.extend(AgentName::parse(&record.agent).ok());
        self.views.apply_record(&record)
    }

    fn insert(&mut self, record: &Record) -> Result<()> {
        self.conn
            .prepare_cached("INSERT INTO facts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute(params![
                record.seq,
                record.origin,
                record.id,
                record.at,
                record.agent,
                record.kind,
                record.data
            ])?;
        self.head = record.seq;
        Ok(())
    }
}
