//! Reads NDJSON into a journal.

use super::{BodyLine, bad, read_line};
use crate::error::{Error, Result, io, sqlite};
use crate::files;
use crate::journal::{FACTS_PER_TURN, Journal, bell};
use crate::operation::Durability;
use crate::views::records;
use posthaste_core::{Body, MessageId, Record};
use std::io::BufRead;

/// Facts that one transaction imports at most, in bytes.
const IMPORT_BATCH_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: u64,
    /// Facts that the journal already had, byte for byte.
    pub known: u64,
    /// Ids that the journal has with different bytes. These facts were not imported.
    pub conflicts: Vec<String>,
}

/// Read NDJSON into the journal, releasing the writers' lock every thousand facts. In an empty
/// journal every fact keeps its seq; otherwise seqs are assigned in the order of the lines. The
/// facts before a bad line are imported.
pub fn import(
    journal: &mut Journal,
    input: &mut dyn BufRead,
    mut progress: impl FnMut(u64),
) -> Result<Imported> {
    let mut done = Imported::default();
    let mut lines = Lines { input, number: 0 };
    loop {
        let mut batch = Vec::new();
        let more = lines.read_batch(journal, &mut batch);
        if !batch.is_empty() {
            add(journal, &batch, &mut done)?;
            journal.tidy()?;
            progress(done.added + done.known);
        }
        match more {
            Ok(true) => {}
            Ok(false) => return Ok(done),
            Err(Error::BadImport { line, why }) => {
                let kept = done.added + done.known;
                return Err(bad(
                    line,
                    &format!("{why} (the {kept} facts before it were imported)"),
                ));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The lines of an import.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
}

impl Lines<'_> {
    /// Read facts into `batch`, and write the bodies that precede them to their files. Return false
    /// at the end of the input.
    fn read_batch(&mut self, journal: &Journal, batch: &mut Vec<Record>) -> Result<bool> {
        let mut pending: Option<(MessageId, String)> = None;
        let mut line = Vec::new();
        let mut bytes = 0;
        while pending.is_some()
            || (batch.len() < FACTS_PER_TURN as usize && bytes < IMPORT_BATCH_BYTES)
        {
            line.clear();
            let count = self
                .input
                .read_until(b'\n', &mut line)
                .map_err(io("read", std::path::Path::new("the import")))?;
            self.number += 1;
            let text = std::str::from_utf8(&line)
                .map_err(|_| bad(self.number, "not UTF-8"))?
                .trim();
            if let Ok(part) = serde_json::from_str::<BodyLine>(text) {
                match &mut pending {
                    Some((id, body)) if *id == part.body_of => body.push_str(&part.text),
                    Some((id, _)) => return Err(bodiless(self.number, *id)),
                    None => pending = Some((part.body_of, part.text)),
                }
            } else if !text.is_empty() {
                let record = read_line(self.number, text)?;
                place_body(journal, self.number, &record, pending.take())?;
                bytes += count;
                batch.push(record);
            }
            if count == 0 {
                return match pending {
                    Some((id, _)) => Err(bodiless(self.number, id)),
                    None => Ok(false),
                };
            }
        }
        Ok(true)
    }
}

/// Write a body that preceded its fact, if it has the length and hash that the fact has.
fn place_body(
    journal: &Journal,
    number: u64,
    record: &Record,
    body: Option<(MessageId, String)>,
) -> Result<()> {
    // A body that was lost before the export stays lost.
    let Some((id, text)) = body else {
        return Ok(());
    };
    let message = record.read().ok().and_then(|fact| fact.message());
    let message = message
        .filter(|message| message.id == id)
        .ok_or_else(|| bodiless(number, id))?;
    let Body::Filed { bytes, blake3 } = &message.envelope.body else {
        return Err(bad(
            number,
            "a separate body for a message that contains its body",
        ));
    };
    if text.len() as u64 != *bytes || blake3::hash(text.as_bytes()).to_hex().as_str() != blake3 {
        return Err(bad(
            number,
            &format!("the body of {id} does not match the hash in its fact"),
        ));
    }
    let stored = records::with_id(&journal.conn, &record.id);
    let stored = stored.map_err(sqlite(&journal.home.journal()))?;
    let is_wanted = stored.is_none_or(|stored| is_same(&stored, record));
    if is_wanted && files::body(journal.home(), &message).is_err() {
        files::store_body(&files::names_of(journal.home(), &message), &text)?;
    }
    Ok(())
}

/// Return whether two records are the same fact. Every home assigns its own seqs.
fn is_same(stored: &Record, record: &Record) -> bool {
    let renumbered = Record {
        seq: record.seq,
        ..stored.clone()
    };
    renumbered == *record
}

fn add(journal: &mut Journal, batch: &[Record], done: &mut Imported) -> Result<()> {
    let (step, agents) = journal.write(Durability::Synced, |tx| {
        let mut step = Imported::default();
        for record in batch {
            match records::with_id(tx.views.conn, &record.id)? {
                Some(stored) if is_same(&stored, record) => step.known += 1,
                Some(_) => step.conflicts.push(record.id.clone()),
                None => {
                    tx.append_imported(record)?;
                    step.added += 1;
                }
            }
        }
        Ok(step)
    })?;
    bell::ring(journal.home(), &agents);
    done.added += step.added;
    done.known += step.known;
    done.conflicts.extend(step.conflicts);
    Ok(())
}

fn bodiless(line: u64, id: MessageId) -> Error {
    bad(line, &format!("the body of {id} has no message"))
}
