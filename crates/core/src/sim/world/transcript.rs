//! Transcripts of the simulated program: one file per conversation, which survives the program and
//! the session. A row appears some time after the model received its prompt. Hooks may name the
//! file late, and the file may never exist.

use crate::driver::Input;
use crate::harness::transcript::Shown;
use crate::id::MessageId;
use crate::sim::oracle::law::Checked;
use crate::sim::session::{Session, World};
use crate::sim::world::hook_calls::WrittenText;
use crate::sim::world::terminal::TurnNo;
use std::collections::BTreeMap;

/// The path of the transcript that the program names.
pub(crate) const TRANSCRIPT_PATH: &str = "/transcript";

/// A prompt that the model received, or that a person took back from the program's queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) is_withdrawn: bool,
    /// The messages whose headers are readable, and whether each is marked as a repeat.
    pub(crate) messages: Vec<(MessageId, bool)>,
}

impl Row {
    pub(crate) fn of(turns: &[(TurnNo, bool)], all: &[WrittenText]) -> Self {
        let part = |(turn, is_whole): &(TurnNo, bool)| all[*turn].part(*is_whole).to_owned();
        let text: String = turns.iter().map(part).collect();
        let mark = |id: MessageId| {
            let repeat = format!("id: {} (repeat", id.id8());
            (id, text.contains(&repeat))
        };
        // A part of another text before the header may make the header unreadable, and a reminder
        // has no header.
        let is_plain = matches!(turns, [(_, true)]) && text.contains("[ph message from: ");
        let given = Session::received(turns, all)
            .into_iter()
            .filter(|_| is_plain);
        let messages = given.map(mark).collect();
        Self {
            text,
            is_withdrawn: false,
            messages,
        }
    }

    pub(crate) fn withdrawn(self) -> Self {
        Self {
            is_withdrawn: true,
            ..self
        }
    }
}

/// The rows of every conversation.
pub(crate) type Transcripts = BTreeMap<String, Vec<Row>>;

/// Return all prompts that the model received, according to these rows, as one text.
pub(crate) fn given(rows: &[Row]) -> String {
    joined(rows.iter().filter(|row| !row.is_withdrawn))
}

fn joined<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    rows.map(|row| row.text.clone() + "\n").collect()
}

/// A read of the transcript that is under way.
#[derive(Debug, Clone)]
pub(crate) enum TranscriptRead {
    Requested,
    /// The result, with its first row and the row after its last.
    Found {
        shown: Shown,
        from: usize,
        to: usize,
    },
}

impl Session {
    pub(crate) fn follow_transcript(&mut self, from_start: bool, world: &World<'_>) {
        let rows = world
            .transcripts
            .get(&self.conversation)
            .map_or(0, Vec::len);
        self.transcript_offset = self
            .transcript_offset
            .or(Some(if from_start { 0 } else { rows }));
    }

    pub(crate) fn skip_transcript(&mut self, world: &World<'_>) {
        if let Some(transcript_offset) = &mut self.transcript_offset {
            *transcript_offset = world
                .transcripts
                .get(&self.conversation)
                .map_or(0, Vec::len);
        }
    }

    pub(crate) fn step_transcript_read(&mut self, world: &mut World<'_>) -> Checked {
        match self.transcript_read.take() {
            Some(TranscriptRead::Requested) => {
                let none = Vec::new();
                let rows = world.transcripts.get(&self.conversation).unwrap_or(&none);
                let from = self.transcript_offset.unwrap_or(rows.len());
                let shown = Shown {
                    given: given(&rows[from..]),
                    withdrawn: joined(rows[from..].iter().filter(|row| row.is_withdrawn)),
                };
                let to = rows.len();
                self.transcript_read = Some(TranscriptRead::Found { shown, from, to });
                Ok(())
            }
            Some(TranscriptRead::Found { shown, from, to }) => {
                // If the offset was moved meanwhile, the new offset counts.
                if self.transcript_offset == Some(from) {
                    self.transcript_offset = Some(to);
                }
                let rows = world.transcripts.get(&self.conversation);
                if let Some(rows) = rows.and_then(|rows| rows.get(from..to)) {
                    world.oracle.ledger.note_rows_read(rows);
                }
                let read = Input::TranscriptsRead {
                    shown,
                    trouble: None,
                    is_complete: true,
                };
                self.tell(read, world)
            }
            None => Ok(()),
        }
    }

    /// Write the next row, also after the program's exit by a process that it left.
    pub(crate) fn write_row(&mut self, world: &mut World<'_>) {
        if let Some(row) = self.unwritten_rows.pop_front()
            && !self.program.profile().transcript_is_missing
        {
            world
                .trace
                .note(|| format!("  a row is written: {:?}", row.messages));
            let rows = world.transcripts.entry(self.conversation.clone());
            rows.or_default().push(row);
        }
    }
}
