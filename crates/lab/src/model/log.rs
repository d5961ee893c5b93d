//! Log of the model server: one line per request, written by the server and read by tests. Each
//! line is written at once.

use super::request::ModelRequest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum LogEntry {
    /// A request to a model.
    Asked {
        at: Timestamp,
        number: u64,
        #[serde(flatten)]
        asked: ModelRequest,
    },
    /// The client closed the connection before the end of its reply.
    Cut { at: Timestamp, number: u64 },
    /// Another request: a list of models, a token count, or an unknown path.
    Other {
        at: Timestamp,
        number: u64,
        request: String,
        status: u16,
    },
    /// An invalid request.
    Malformed {
        at: Timestamp,
        number: u64,
        request: String,
        reason: String,
    },
}

/// Writer of the log.
#[derive(Debug, Clone)]
pub(super) struct LogWriter(Arc<File>);

impl LogWriter {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Self(Arc::new(file)))
    }

    pub(super) fn write(&self, record: &LogEntry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        (&*self.0).write_all(&line)
    }
}

/// Reader of the log.
#[derive(Debug, Clone)]
pub struct Log(PathBuf);

impl Log {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Return all entries. A line that is being written is omitted.
    pub fn records(&self) -> Vec<LogEntry> {
        self.records_from(0).0
    }

    /// Return the entries after this offset, and the new offset. A line that is being written is
    /// left for the next call.
    pub(super) fn records_from(&self, from: u64) -> (Vec<LogEntry>, u64) {
        let mut text = Vec::new();
        // A missing file counts as empty.
        let _ = File::open(&self.0).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)
        });
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        text.truncate(whole.map_or(0, |last| last + 1));
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let records = lines
            .map(|line| serde_json::from_slice(line).expect("the server writes records"))
            .collect();
        (records, from + text.len() as u64)
    }

    /// Return the requests of the conversation: with tools, without titles and the like.
    pub fn turns(&self) -> Vec<ModelRequest> {
        let turn = |record| match record {
            LogEntry::Asked { asked, .. } => asked.is_turn().then_some(asked),
            LogEntry::Cut { .. } | LogEntry::Other { .. } | LogEntry::Malformed { .. } => None,
        };
        self.records().into_iter().filter_map(turn).collect()
    }

    /// Count how often a text is new in the conversation. Every request repeats the conversation,
    /// and a failed one is sent again, so only additional occurrences count.
    pub fn seen(&self, text: &str) -> usize {
        let counts = self.turns().into_iter().map(|turn| turn.count(text));
        let mut before = 0;
        let newly = counts.map(|count| count.saturating_sub(std::mem::replace(&mut before, count)));
        newly.sum()
    }

    /// Return the user's text of each turn, in order.
    pub fn prompts(&self) -> Vec<String> {
        self.turns()
            .iter()
            .filter_map(ModelRequest::prompt)
            .collect()
    }

    /// Return the number of replies whose client closed the connection.
    pub fn cuts(&self) -> usize {
        let cut = |record: &LogEntry| matches!(record, LogEntry::Cut { .. });
        self.records().iter().filter(|record| cut(record)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{Author, claude_request};
    use super::*;

    fn turn(number: u64, tools: &[&str], pieces: &[(Author, &str)]) -> LogEntry {
        let asked = ModelRequest {
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            ..claude_request(pieces)
        };
        let at = Timestamp::UNIX_EPOCH;
        LogEntry::Asked { at, number, asked }
    }

    #[test]
    fn a_repeated_conversation_is_counted_once() {
        use Author::{Model, User};
        let dir = tempfile::tempdir().unwrap();
        let log = Log::at(dir.path().join("log"));
        assert_eq!(log.seen("id1"), 0);
        let writer = LogWriter::open(&log.0).unwrap();
        let tools = ["Bash"];
        let title = turn(1, &[], &[(User, "id1")]);
        let first = turn(2, &tools, &[(User, "id1")]);
        let again = turn(3, &tools, &[(User, "id1")]);
        let next = turn(4, &tools, &[(User, "id1"), (Model, "ok"), (User, "id2")]);
        for record in [&title, &first, &again, &next] {
            writer.write(record).unwrap();
        }
        assert_eq!((log.seen("id1"), log.seen("id2")), (1, 1));
        assert_eq!(log.prompts(), ["id1", "id1", "id2"]);
        // Twice in one turn, and once more after the conversation was restarted.
        let twice = turn(5, &tools, &[(User, "id1"), (User, "id2"), (User, "id2")]);
        let cleared = turn(6, &tools, &[(User, "hello")]);
        let anew = turn(7, &tools, &[(User, "hello"), (User, "id1")]);
        let cut = LogEntry::Cut {
            at: Timestamp::UNIX_EPOCH,
            number: 7,
        };
        for record in [&twice, &cleared, &anew, &cut] {
            writer.write(record).unwrap();
        }
        assert_eq!((log.seen("id1"), log.seen("id2")), (2, 2));
        assert_eq!(log.cuts(), 1);
        assert_eq!(log.records().len(), 8);
    }
}
