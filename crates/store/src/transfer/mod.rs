//! Export and import: the journal as NDJSON, one fact a line, byte for byte.
//!
//! A body that is kept in a file precedes its fact, in lines of its own. An import is untrusted
//! data: every line is checked, and nothing in it names a file.

mod export;
mod import;

pub use export::{Exported, export};
pub use import::{Imported, import};

use crate::error::{Error, Result};
use posthaste_core::{MessageId, Record, text};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Longest reason in the error for a bad line.
const BAD_LINE_REASON_BYTES: usize = 200;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactLine<'a> {
    seq: u64,
    origin: String,
    id: String,
    at: String,
    agent: String,
    kind: String,
    /// The data as it is stored, if it is JSON on one line.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    /// The data as text otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_text: Option<String>,
}

/// A part of a body that is kept in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyLine {
    body_of: MessageId,
    text: String,
}

/// Return one fact as a line of NDJSON, without its newline.
pub fn to_line(record: &Record) -> String {
    let raw: Option<&RawValue> = if record.data.contains(['\n', '\r']) {
        None
    } else {
        serde_json::from_str(&record.data).ok()
    };
    // A raw value is trimmed, so it must be compared with the data. A null would be read back as no
    // data.
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

/// Parse line number `number` as a fact.
fn read_line(number: u64, line: &str) -> Result<Record> {
    let fact: FactLine<'_> = serde_json::from_str(line).map_err(|error| {
        // The position is within this one line.
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

fn bad(line: u64, why: &str) -> Error {
    Error::BadImport {
        line,
        why: text::one_line(why, BAD_LINE_REASON_BYTES),
    }
}
