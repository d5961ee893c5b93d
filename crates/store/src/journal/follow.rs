//! Follows a journal: its facts so far, then a mark, then new facts of any process.
//!
//! Returns every fact once and in order. Never blocks a writer.

use crate::error::Result;
use crate::journal::Journal;
use crate::journal::bell::{BELL_CHECK_INTERVAL, BellListener};
use posthaste_core::{AgentName, Record};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    Fact(Record),
    /// Every fact up to `seq` was returned. The facts after it are new.
    Mark {
        seq: u64,
    },
}

/// Returns the facts of a journal, and waits for new ones.
#[derive(Debug)]
pub struct Follower {
    journal: Journal,
    listener: BellListener,
    agent: Option<AgentName>,
    last: u64,
    /// One page at most: the next is read when this is empty.
    ready: VecDeque<Record>,
    marked: bool,
}

impl Follower {
    /// Follow all facts after `after`, or one agent's.
    pub fn new(journal: Journal, after: u64, agent: Option<AgentName>) -> Result<Self> {
        // Listen before the first read, so that no fact is missed in between.
        let listener = BellListener::on(journal.home(), agent.as_ref())?;
        Ok(Self {
            journal,
            listener,
            agent,
            last: after,
            ready: VecDeque::new(),
            marked: false,
        })
    }

    /// Return whether the next call has to read or wait.
    pub fn is_caught_up(&self) -> bool {
        self.ready.is_empty()
    }

    /// Return the next fact, or `None` at `deadline`. Without a deadline, wait forever.
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
                None => BELL_CHECK_INTERVAL,
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    None | Some(Duration::ZERO) => return Ok(None),
                    Some(left) => left.min(BELL_CHECK_INTERVAL),
                },
            };
            self.listener.wait(patience);
        }
    }

    /// Read the facts after the last one. Return false if there are none.
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
