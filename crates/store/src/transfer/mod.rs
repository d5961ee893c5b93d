//! Export and import: the journal as NDJSON, a fact a line, byte for byte.
//!
//! A body that is kept in a file goes ahead of its fact, in lines of its own. What comes in is
//! data from outside: every line is checked, and nothing in it names a file.

use crate::error::{Error, Result, io, sqlite};
use crate::files;
use crate::journal::bell;
use crate::journal::transaction;
use crate::journal::{Journal, STRETCH};
use crate::operation::Durability;
use posthaste_core::{AgentName, Body, MessageId, Record, text};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{BufRead, Write};

/// How much of a large body stands on one line.
const CHUNK: usize = 256 * 1024;
/// How many bytes of facts are imported at once, however few they are.
const BATCH_BYTES: usize = 8 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactLine<'a> {
    seq: u64,
    origin: String,
    id: String,
    at: String,
    agent: String,
    kind: String,
    /// The data as it is, where it is JSON on one line.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    /// The data as text, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_text: Option<String>,
}

/// A piece of a body that is kept in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyLine {
    body_of: MessageId,
    text: String,
}

/// One fact as a line of NDJSON, without its newline.
pub fn to_line(record: &Record) -> String {
    let raw: Option<&RawValue> = if record.data.contains(['\n', '\r']) {
        None
    } else {
        serde_json::from_str(&record.data).ok()
    };
    // A raw value is trimmed; only one that is still the same may stand for the text. A null would
    // be read back as nothing.
    let raw = raw.filter(|raw| raw.get() == record.data && raw.get() != "null");
    let line = FactLine {
        seq: record.seq,
        origin: record.origin.clone(),
        id: record.id.clone(),
        at: record.at.clone(),
        agent: record.agent.clone(),
        kind: record.kind.clone(),
        data: raw,
        data_text: raw.is_none().then(|| record.data.clone()),
    };
    serde_json::to_string(&line).expect("strings and numbers always have a JSON form")
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    pub facts: u64,
    /// Messages whose body is lost; their facts are exported all the same.
    pub lost_bodies: Vec<MessageId>,
}

/// Writes the whole journal; what is appended meanwhile is not part of it.
pub fn export(journal: &Journal, out: &mut dyn Write) -> Result<Exported> {
    let head = journal.head()?;
    let mut done = Exported::default();
    let mut last = 0;
    while last < head {
        let page = journal.facts_after(last)?;
        let Some(end) = page.last() else { break };
        last = end.seq;
        for record in page.iter().filter(|record| record.seq <= head) {
            if let Some(message) = record.read().ok().and_then(|fact| fact.message())
                && matches!(message.envelope.body, Body::Filed { .. })
            {
                match files::body(journal.home(), &message) {
                    Ok(body) => export_body(message.id, &body, out).map_err(Error::Output)?,
                    Err(Error::BodyLost { id, .. }) => done.lost_bodies.push(id),
                    Err(error) => return Err(error),
                }
            }
            writeln!(out, "{}", to_line(record)).map_err(Error::Output)?;
            done.facts += 1;
        }
    }
    out.flush().map_err(Error::Output)?;
    Ok(done)
}

fn export_body(id: MessageId, body: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut rest = body;
    while !rest.is_empty() {
        let chunk = text::head(rest, CHUNK);
        let line = BodyLine {
            body_of: id,
            text: chunk.to_owned(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
        rest = &rest[chunk.len()..];
    }
    Ok(())
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: u64,
    /// Facts that stood in the journal already, to the byte.
    pub known: u64,
    /// Ids that stand in the journal with other bytes; what came in was not taken.
    pub conflicts: Vec<String>,
}

/// Reads NDJSON into the journal, giving the lock up every thousand facts. In an empty home every
/// fact keeps its number; elsewhere numbers are given anew, in the order of arrival. What came
/// whole before a bad line is taken all the same.
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
                    &format!("{why} (the {kept} facts before it were taken)"),
                ));
            }
            Err(error) => return Err(error),
        }
    }
}

/// An import, as far as it is read.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
}

impl Lines<'_> {
    /// Reads facts, and puts the bodies that come ahead of them where they belong; false at the
    /// end of the input.
    fn read_batch(&mut self, journal: &Journal, batch: &mut Vec<Record>) -> Result<bool> {
        let mut pending: Option<(MessageId, String)> = None;
        let mut line = Vec::new();
        let mut bytes = 0;
        while pending.is_some() || (batch.len() < STRETCH as usize && bytes < BATCH_BYTES) {
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

fn read_line(number: u64, line: &str) -> Result<Record> {
    let fact: FactLine<'_> = serde_json::from_str(line).map_err(|error| {
        // Its own line is always the first.
        bad(
            number,
            &error.to_string().replace(" at line 1 column", ", column"),
        )
    })?;
    let data = match (fact.data, fact.data_text) {
        (Some(raw), None) => raw.get().to_owned(),
        (None, Some(text)) => text,
        (None, None) => return Err(bad(number, "a fact without data")),
        (Some(_), Some(_)) => return Err(bad(number, "a fact with two kinds of data")),
    };
    if fact.id.is_empty() {
        return Err(bad(number, "a fact without an id"));
    }
    Ok(Record {
        seq: fact.seq,
        origin: fact.origin,
        id: fact.id,
        at: fact.at,
        agent: fact.agent,
        kind: fact.kind,
        data,
    })
}

/// Stores the body that came ahead of its fact, if it is the one that the fact proves.
fn place_body(
    journal: &Journal,
    number: u64,
    record: &Record,
    body: Option<(MessageId, String)>,
) -> Result<()> {
    // A body that was lost before the export stays lost; reading it says so.
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
            "a body in lines of its own for a message that holds its body",
        ));
    };
    if text.len() as u64 != *bytes || blake3::hash(text.as_bytes()).to_hex().as_str() != blake3 {
        return Err(bad(
            number,
            &format!("the body of {id} is not the one that its fact proves"),
        ));
    }
    let there = fact_with(&journal.conn, &record.id).map_err(sqlite(&journal.home.journal()))?;
    let is_wanted = there.is_none_or(|there| is_same(&there, record));
    if is_wanted && files::body(journal.home(), &message).is_err() {
        files::put_filed(&files::names_of(journal.home(), &message), &text)?;
    }
    Ok(())
}

fn fact_with(conn: &Connection, id: &str) -> rusqlite::Result<Option<Record>> {
    conn.prepare_cached("SELECT seq, origin, id, at, agent, kind, data FROM facts WHERE id = ?1")?
        .query_row([id], crate::views::record_of)
        .optional()
}

/// Whether two records are the same fact. Numbers are each home's own.
fn is_same(there: &Record, record: &Record) -> bool {
    let renumbered = Record {
        seq: record.seq,
        ..there.clone()
    };
    renumbered == *record
}

fn add(journal: &mut Journal, batch: &[Record], done: &mut Imported) -> Result<()> {
    let mut step = Imported::default();
    let mut agents = Vec::new();
    journal.write(Durability::Synced, |conn, views, head| {
        for record in batch {
            match fact_with(conn, &record.id)? {
                Some(there) if is_same(&there, record) => step.known += 1,
                Some(_) => step.conflicts.push(record.id.clone()),
                None => {
                    *head += 1;
                    let record = Record {
                        seq: *head,
                        ..record.clone()
                    };
                    transaction::insert(conn, &record)?;
                    views.apply(conn, &record)?;
                    step.added += 1;
                    agents.extend(AgentName::parse(&record.agent).ok());
                }
            }
        }
        Ok(())
    })?;
    agents.sort_unstable();
    agents.dedup();
    bell::ring(journal.home(), &agents);
    done.added += step.added;
    done.known += step.known;
    done.conflicts.extend(step.conflicts);
    Ok(())
}

fn bodiless(line: u64, id: MessageId) -> Error {
    bad(line, &format!("the body of {id} has no message"))
}

fn bad(line: u64, why: &str) -> Error {
    Error::BadImport {
        line,
        why: text::one_line(why, 200),
    }
}
