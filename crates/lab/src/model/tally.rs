//! Incremental counts of the model's log, which do not read the whole log again.

use super::log::{Log, Record};
use super::request::ModelRequest;
use std::collections::HashMap;

#[derive(Debug)]
pub struct Tally {
    log: Log,
    /// Offset in the log.
    read: u64,
    turns: Vec<ModelRequest>,
    counts: HashMap<String, Count>,
    cuts: usize,
    malformed: Vec<String>,
}

/// Occurrences of a text. Every request repeats the conversation, so only additional ones are new.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Occurrences in the latest turn.
    last: usize,
    newly: usize,
}

impl Count {
    fn add(&mut self, count: usize) {
        self.newly += count.saturating_sub(self.last);
        self.last = count;
    }
}

impl Tally {
    pub fn of(log: &Log) -> Self {
        Self {
            log: log.clone(),
            read: 0,
            turns: Vec::new(),
            counts: HashMap::new(),
            cuts: 0,
            malformed: Vec::new(),
        }
    }

    /// Read new entries.
    pub fn look(&mut self) {
        let (records, read) = self.log.records_from(self.read);
        self.read = read;
        for record in records {
            match record {
                Record::Asked { asked, .. } if asked.is_turn() => {
                    for (text, count) in &mut self.counts {
                        count.add(asked.count(text));
                    }
                    self.turns.push(asked);
                }
                Record::Asked { .. } | Record::Other { .. } => {}
                Record::Cut { .. } => self.cuts += 1,
                Record::Malformed { reason, .. } => self.malformed.push(reason),
            }
        }
    }

    /// Return how often a text was new in the conversation, as of the last read.
    pub fn seen(&mut self, text: &str) -> usize {
        if let Some(count) = self.counts.get(text) {
            return count.newly;
        }
        let mut count = Count::default();
        for turn in &self.turns {
            count.add(turn.count(text));
        }
        self.counts.insert(text.to_owned(), count);
        count.newly
    }

    /// Return the requests of the conversation, oldest first.
    pub fn turns(&self) -> &[ModelRequest] {
        &self.turns
    }

    /// Return the number of replies whose client closed the connection.
    pub fn cuts(&self) -> usize {
        self.cuts
    }

    /// Return the invalid requests, with reasons.
    pub fn malformed(&self) -> &[String] {
        &self.malformed
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::LogWriter;
    use super::super::request::{Author, claude_request};
    use super::*;
    use jiff::Timestamp;

    fn turn(number: u64, said: &[&str]) -> Record {
        let pieces: Vec<_> = said.iter().map(|text| (Author::User, *text)).collect();
        let asked = claude_request(&pieces);
        let at = Timestamp::UNIX_EPOCH;
        Record::Asked { at, number, asked }
    }

    #[test]
    fn a_tally_agrees_with_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Log::at(&path);
        let writer = LogWriter::open(&path).unwrap();
        let mut tally = Tally::of(&log);
        tally.look();
        assert_eq!(tally.seen("id1"), 0);
        let said: [&[&str]; 5] = [
            &["id1"],
            &["id1", "id2"],
            &["hello"],
            &["hello", "id1"],
            &["hello", "id1", "id2 id2"],
        ];
        for (number, said) in (1..).zip(said) {
            writer.write(&turn(number, said)).unwrap();
            tally.look();
            for text in ["id1", "id2"] {
                assert_eq!(tally.seen(text), log.seen(text), "{text} at {number}");
            }
        }
        assert_eq!((tally.seen("id1"), tally.seen("id2")), (2, 3));
        assert_eq!(tally.seen("hello"), 1, "what is first asked for late");
        assert_eq!(tally.turns().len(), 5);
    }
}
