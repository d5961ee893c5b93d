//! Following the journal: its history, then a mark, then what comes, across processes.

use crate::error::Result;
use crate::journal::Journal;
use crate::journal::bell::{Ear, TICK};
use posthaste_core::{AgentName, Record};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    Fact(Record),
    /// All that stood in the journal when following began has been told; what comes is live.
    Mark {
        seq: u64,
    },
}

/// Tells every fact once, in order, however many are written meanwhile.
#[derive(Debug)]
pub struct Follower {
    journal: Journal,
    ear: Ear,
    agent: Option<AgentName>,
    last: u64,
    /// At most a page, because the next is read only when it is empty.
    ready: VecDeque<Record>,
    marked: bool,
}

impl Follower {
    /// Follows from after `seq`, all facts or one agent's.
    pub fn new(journal: Journal, after: u64, agent: Option<AgentName>) -> Result<Self> {
        // Listening begins before the first look, so that nothing falls in between.
        let ear = Ear::on(journal.home(), agent.as_ref())?;
        Ok(Self {
            journal,
            ear,
            agent,
            last: after,
            ready: VecDeque::new(),
            marked: false,
        })
    }

    /// Whether nothing is at hand that could be told without waiting or reading.
    pub fn is_caught_up(&self) -> bool {
        self.ready.is_empty()
    }

    /// The next fact, waiting for it at most until `deadline`; for ever where there is none.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Followed>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(Followed::Fact(record)));
            }
            if self.read_page()? {
                continue;
            }
            if !self.marked {
                self.marked = true;
                return Ok(Some(Followed::Mark { seq: self.last }));
            }
            let patience = match deadline {
                None => TICK,
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    None | Some(Duration::ZERO) => return Ok(None),
                    Some(left) => left.min(TICK),
                },
            };
            self.ear.wait(patience);
        }
    }

    /// Reads what follows the last fact told; false where there is nothing.
    fn read_page(&mut self) -> Result<bool> {
        let page = self.journal.facts_after(self.last)?;
        let Some(end) = page.last() else {
            return Ok(false);
        };
        self.last = end.seq;
        let wanted = |record: &Record| {
            self.agent
                .as_ref()
                .is_none_or(|agent| record.agent == agent.as_str())
        };
        self.ready.extend(page.into_iter().filter(wanted));
        Ok(true)
    }
}
