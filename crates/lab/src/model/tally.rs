//! Incremental counts of the model's log, which do not read the whole log again.

use super::log::{Log, Record};
use super::request::{Author, ModelRequest};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug)]
pub struct Tally {
    log: Log,
    /// Offset in the log.
    read: u64,
    turns: Vec<ModelRequest>,
    /// When each of the turns came.
    times: Vec<Timestamp>,
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
            times: Vec::new(),
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
                Record::Asked { at, asked, .. } if asked.is_turn() => {
                    for (text, count) in &mut self.counts {
                        count.add(asked.count(text));
                    }
                    self.turns.push(asked);
                    self.times.push(at);
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

    /// Return the time of the first request that contains a text.
    pub fn first_given(&self, text: &str) -> Option<Timestamp> {
        let at = self.turns.iter().position(|turn| turn.count(text) > 0)?;
        Some(self.times[at])
    }

    /// Count how often a text was given to the model: in each conversation, in different prompts or
    /// repeatedly at once. The growth from one request to the next says nothing, because Gemini CLI
    /// sends its first prompt after a resume without the history. `conversation_at` names the
    /// conversation of a request that does not name its own.
    pub fn times_given(
        &self,
        text: &str,
        conversation_at: impl Fn(Timestamp) -> Option<String>,
    ) -> usize {
        let mut given: BTreeMap<Option<String>, (BTreeSet<&str>, usize)> = BTreeMap::new();
        for (turn, at) in self.turns.iter().zip(&self.times) {
            let count = turn.count(text);
            if count == 0 {
                continue;
            }
            let conversation = turn.conversation.clone().or_else(|| conversation_at(*at));
            let (prompts, at_once) = given.entry(conversation).or_default();
            let heard = turn.pieces.iter().filter(|p| p.voice != Author::Model);
            let heard = heard.map(|piece| piece.text.as_str());
            prompts.extend(heard.filter(|prompt| prompt.contains(text)));
            *at_once = count.max(*at_once);
        }
        let times = given.values();
        times
            .map(|(prompts, at_once)| prompts.len().max(*at_once))
            .sum()
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
    use super::super::request::claude_request;
    use super::*;

    fn turn(number: u64, said: &[&str]) -> Record {
        let pieces: Vec<_> = said.iter().map(|text| (Author::User, *text)).collect();
        let asked = claude_request(&pieces);
        let at = Timestamp::UNIX_EPOCH;
        Record::Asked { at, number, asked }
    }

    #[test]
    fn a_text_is_counted_in_each_conversation() {
        let check = |requests: &[(&str, &[&str])], want: usize| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let writer = LogWriter::open(&path).unwrap();
            for (second, (conversation, said)) in (1..).zip(requests) {
                let Record::Asked { number, asked, .. } = turn(second, said) else {
                    unreachable!("a turn was asked");
                };
                let at = Timestamp::from_second(second.cast_signed()).unwrap();
                let named = (!conversation.is_empty()).then(|| (*conversation).to_owned());
                let asked = ModelRequest {
                    conversation: named,
                    ..asked
                };
                writer.write(&Record::Asked { at, number, asked }).unwrap();
            }
            let mut tally = Tally::of(&Log::at(&path));
            tally.look();
            // A request that names no conversation is in 'old' for two seconds, then in 'new'.
            let conversation_at = |at: Timestamp| {
                let is_old = at.as_second() <= 2;
                Some(if is_old { "old" } else { "new" }.to_owned())
            };
            assert_eq!(tally.times_given("id1]", conversation_at), want);
            let first = tally.first_given("id1]").map(Timestamp::as_second);
            let with = |(_, said): &(&str, &[&str])| said.iter().any(|text| text.contains("id1]"));
            let at = requests.iter().position(with);
            assert_eq!(first, at.map(|at| i64::try_from(at).unwrap() + 1));
        };
        check(&[("a", &["hello"])], 0);
        check(&[("a", &["id1] hi"]), ("a", &["id1] hi", "next"])], 1);
        check(&[("a", &["id1] hi"]), ("b", &["id1] hi"])], 2);
        check(&[("a", &["id1] hi", "id1] hi"])], 2);
        check(&[("a", &["id1] hi"]), ("a", &["again id1] hi"])], 2);
        check(&[("", &["id1] hi"]), ("", &["id1] hi"])], 1);
        check(&[("", &["id1] hi"]), ("", &["x"]), ("", &["id1] hi"])], 2);
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
