//! Writes a journal as NDJSON.

use super::{BodyLine, to_line};
use crate::error::{Error, Result};
use crate::files;
use crate::journal::Journal;
use posthaste_core::{Body, MessageId, text};
use std::io::Write;

/// Longest part of a body on one line.
const BODY_LINE_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    pub facts: u64,
    /// Messages whose body is lost. Their facts are exported.
    pub lost_bodies: Vec<MessageId>,
}

/// Write the whole journal to `out`, without the facts that are appended meanwhile.
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
        let chunk = text::head(rest, BODY_LINE_BYTES);
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
