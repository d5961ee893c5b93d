//! Prints messages: rows of a list, fields, receipts and texts.

use crate::context::Context;
use crate::output::{note, table};
use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use posthaste_core::{Body, MessageState, Priority, pending_replies, text};
use posthaste_store::report::Result;
use posthaste_store::{Error, Home, files};
use posthaste_wire as wire;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of the text in a list if the output is not a terminal.
const DEFAULT_TEXT_COLUMNS: usize = 100;

/// Return the text of a message, or the reason why it is lost: a lost body must not hide the other
/// messages of an inbox.
pub(crate) fn text_or_loss(home: &Home, message_state: &MessageState) -> Result<String> {
    match files::body(home, &message_state.message) {
        Err(error @ Error::BodyLost { .. }) => {
            note(&error);
            Ok(format!("({error})"))
        }
        body => Ok(body?),
    }
}

/// A row of a list of messages.
#[derive(Debug)]
pub(crate) struct MessageRow {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) created_at: Timestamp,
    pub(crate) status: String,
    pub(crate) is_waiting: bool,
    pub(crate) subject: Option<String>,
    pub(crate) body: String,
}

pub(crate) fn row(message_state: &MessageState, now: Timestamp) -> MessageRow {
    let message = &message_state.message;
    MessageRow {
        id: message.id.id8(),
        from: message.envelope.from.to_string(),
        to: message.to.to_string(),
        created_at: message.created_at,
        status: status_word(message_state, now),
        is_waiting: message_state.is_waiting(now),
        subject: message.envelope.subject.clone(),
        body: match &message.envelope.body {
            Body::Inline(body) => text::head(body, 4 * DEFAULT_TEXT_COLUMNS).to_owned(),
            Body::Filed { bytes, .. } => format!("({bytes} bytes)"),
        },
    }
}

pub(crate) fn rows(context: &mut Context, rows: &[MessageRow]) -> Result<()> {
    let cells: Vec<[String; 4]> = rows
        .iter()
        .map(|row| {
            [
                row.id.clone(),
                format!("{} → {}", row.from, row.to),
                context.shown_time(row.created_at),
                row.status.clone(),
            ]
        })
        .collect();
    for (row, cells) in rows.iter().zip(table::align(&cells)) {
        let style = match row.is_waiting {
            true => Style::new().bold(),
            false => Style::new(),
        };
        let room = screen_width().map_or(DEFAULT_TEXT_COLUMNS, |width| {
            width.saturating_sub(cells.width() + 2).max(16)
        });
        let summary = summary(row, room);
        context
            .out
            .line(format!("{style}{cells}{style:#}  {summary}"))?;
    }
    Ok(())
}

/// Return the receipt, the priority unless it is normal, and whether a reply is expected.
fn status_word(message_state: &MessageState, now: Timestamp) -> String {
    let receipt = message_state
        .status
        .at(&message_state.message, now)
        .receipt();
    let priority = match message_state.message.envelope.priority {
        Priority::Normal => None,
        other => Some(other.as_str()),
    };
    let reply = pending_replies::is_awaited(message_state, now).then_some("reply expected");
    match [priority, reply].into_iter().flatten().collect::<Vec<_>>() {
        none if none.is_empty() => receipt.to_string(),
        marks => format!("{receipt} ({})", marks.join(", ")),
    }
}

fn summary(row: &MessageRow, room: usize) -> String {
    let body = text::head(&row.body, 4 * DEFAULT_TEXT_COLUMNS);
    let line = match &row.subject {
        Some(subject) => text::one_line(&format!("[{subject}] {body}"), room.saturating_sub(1)),
        None => text::one_line(body, room.saturating_sub(1)),
    };
    narrow(&line, room)
}

/// Shorten a line to this many columns. Wide characters take two.
fn narrow(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < columns
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

/// Return the width of the terminal, or `None` if standard output is not a terminal.
fn screen_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Print a text, each line after `indent`.
pub(crate) fn text(context: &mut Context, body: &str, indent: &str) -> Result<()> {
    let shown = text::visible(body.strip_suffix('\n').unwrap_or(body));
    context.out.line("")?;
    for line in shown.split('\n') {
        let indent = if line.is_empty() { "" } else { indent };
        context.out.bytes(indent.as_bytes())?;
        context.out.bytes(line.as_bytes())?;
        context.out.bytes(b"\n")?;
    }
    Ok(())
}

/// Return the fields above a message's text.
pub(crate) fn head(context: &Context, message_state: &MessageState) -> Vec<Field> {
    let message = &message_state.message;
    let envelope = &message.envelope;
    let from = format!("{} ({})", envelope.from, envelope.from_evidence);
    let priority = Some(envelope.priority).filter(|priority| *priority != Priority::Normal);
    vec![
        ("message", Some(message.id.to_string())),
        ("from", Some(from)),
        ("to", Some(message.to.to_string())),
        ("sent", Some(context.shown_time(message.created_at))),
        ("subject", envelope.subject.clone()),
        ("priority", priority.map(|priority| priority.to_string())),
        ("reply to", envelope.reply_to.map(|id| id.to_string())),
        ("reply", pending_replies::told(message_state, context.now)),
    ]
}

/// Print one line per receipt.
pub(crate) fn receipts(context: &mut Context, receipts: Vec<wire::Receipt>) -> Result<()> {
    if !receipts.is_empty() {
        context.out.line("")?;
    }
    for receipt in receipts {
        let when = context.shown_time(receipt.at);
        let details = [
            receipt.route.map(|route| format!("by way of {route}")),
            receipt.evidence,
        ];
        let details = details.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let line = format!(
            "  {when}  {:<9}  {}",
            receipt.state,
            text::one_line(&details, 200)
        );
        context.out.line(line.trim_end())?;
    }
    Ok(())
}

/// The name and value of a line. A line without a value is not printed.
pub(crate) type Field = (&'static str, Option<String>);

pub(crate) fn fields(context: &mut Context, fields: impl IntoIterator<Item = Field>) -> Result<()> {
    let label = AnsiColor::Cyan.on_default();
    for (name, value) in fields {
        let Some(value) = value else { continue };
        let value = text::visible(&value).replace('\n', "\u{240a}");
        context
            .out
            .line(format!("{label}{name:<11}{label:#}{value}"))?;
    }
    Ok(())
}
