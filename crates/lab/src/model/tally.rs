//! Incremental counts of the model's log, which do not read the whole log again.

use super::log::{Log, LogEntry};
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
    /// All distinct texts that are not the model's own, and the turns that have them: every request
    /// repeats the conversation.
    texts: HashMap<String, Vec<usize>>,
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
            texts: HashMap::new(),
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
                LogEntry::Asked { at, asked, .. } if asked.is_turn() => {
                    for (text, count) in &mut self.counts {
                        count.add(asked.count(text));
                    }
                    let heard = asked.pieces.iter().filter(|p| p.voice != Author::Model);
                    for piece in heard {
                        let turns = self.texts.entry(piece.text.clone()).or_default();
                        turns.push(self.turns.len());
                    }
                    self.turns.push(asked);
                    self.times.push(at);
                }
                LogEntry::Asked { .. } | LogEntry::Other { .. } => {}
                LogEntry::Cut { .. } => self.cuts += 1,
                LogEntry::Malformed { reason, .. } => self.malformed.push(reason),
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

    /// Return when the model was first given a text, and how often: in each conversation, in
    /// different prompts or repeatedly at once. The growth from one request to the next says
    /// nothing, because Gemini CLI sends its first prompt after a resume without the history.
    /// `conversation_at` names the conversation of a request that does not name its own.
    pub fn given(
        &self,
        text: &str,
        conversation_at: impl Fn(Timestamp) -> Option<String>,
    ) -> Option<(Timestamp, usize)> {
        let mut counts: BTreeMap<usize, (usize, Vec<&str>)> = BTreeMap::new();
        for (heard, turns) in &self.texts {
            let count = heard.matches(text).count();
            for turn in turns.iter().filter(|_| count > 0) {
                let (sum, prompts) = counts.entry(*turn).or_default();
                *sum += count;
                prompts.push(heard);
            }
        }
        let first = self.times[*counts.keys().next()?];
        let mut given: BTreeMap<Option<String>, (BTreeSet<&str>, usize)> = BTreeMap::new();
        for (turn, (count, prompts)) in counts {
            let conversation = self.turns[turn].conversation.clone();
            let conversation = conversation.or_else(|| conversation_at(self.times[turn]));
            let (distinct, at_once) = given.entry(conversation).or_default();
            distinct.extend(prompts);
            *at_once = count.max(*at_once);
        }
        let times = given.values();
        let times = times.map(|(distinct, at_once)| distinct.len().max(*at_once));
        Some((first, times.sum()))
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

    fn turn(number: u64, texts: &[&str]) -> LogEntry {
        let pieces: Vec<_> = texts.iter().map(|text| (Author::User, *text)).collect();
        let asked = claude_request(&pieces);
        let at = Timestamp::UNIX_EPOCH;
        LogEntry::Asked { at, number, asked }
    }

    #[test]
    fn a_text_is_counted_in_each_conversation() {
        let check = |requests: &[(&str, &[&str])], want: Option<(i64, usize)>| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let writer = LogWriter::open(&path).unwrap();
            for (second, (conversation, texts)) in (1..).zip(requests) {
                let LogEntry::Asked { number, asked, .. } = turn(second, texts) else {
                    unreachable!("a turn was asked");
                };
                let at = Timestamp::from_second(second.cast_signed()).unwrap();
                let named = (!conversation.is_empty()).then(|| (*conversation).to_owned());
                let asked = ModelRequest {
                    conversation: named,
                    ..asked
                };
                writer
                    .write(&LogEntry::Asked { at, number, asked })
                    .unwrap();
            }
            let mut tally = Tally::of(&Log::at(&path));
            tally.look();
            // A request that names no conversation is in 'old' for two seconds, then in 'new'.
            let conversation_at = |at: Timestamp| {
                let is_old = at.as_second() <= 2;
                Some(if is_old { "old" } else { "new" }.to_owned())
            };
            let given = tally.given("id1]", conversation_at);
            let given = given.map(|(first, times)| (first.as_second(), times));
            assert_eq!(given, want, "{requests:?}");
        };
        check(&[("a", &["hello"])], None);
        let next = ("a", &["id1] hi", "next"][..]);
        check(&[("a", &["id1] hi"]), next], Some((1, 1)));
        check(
            &[("a", &["x"]), ("a", &["id1] hi"]), ("b", &["id1] hi"])],
            Some((2, 2)),
        );
        check(&[("a", &["id1] hi", "id1] hi"])], Some((1, 2)));
        check(
            &[("a", &["id1] hi"]), ("a", &["again id1] hi"])],
            Some((1, 2)),
        );
        check(&[("", &["id1] hi"]), ("", &["id1] hi"])], Some((1, 1)));
        check(
            &[("", &["id1] hi"]), ("", &["x"]), ("", &["id1] hi"])],
            Some((1, 2)),
        );
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
        let turns: [&[&str]; 5] = [
            &["id1"],
            &["id1", "id2"],
            &["hello"],
            &["hello", "id1"],
            &["hello", "id1", "id2 id2"],
        ];
        for (number, texts) in (1..).zip(turns) {
            writer.write(&turn(number, texts)).unwrap();
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
