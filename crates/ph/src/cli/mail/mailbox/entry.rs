//! A message as the verbs print it, from the journal or from a script.

use crate::cli::prelude::*;
use crate::output::message_text::{self, Field, MessageRow};
use posthaste_core::{Message, MessageState, Timestamp, prompt};
use posthaste_store::Home;
use posthaste_wire::{self as wire, provider};

#[derive(Debug)]
pub(crate) enum MailboxEntry {
    Journal(Box<MessageState>),
    Script {
        message: Box<provider::Message>,
        /// Our copy, if a session or a hook has imported the message.
        copy: Option<Box<MessageState>>,
    },
}

/// A message in `--json`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum MailboxEntryJson {
    Journal(wire::Message),
    Script(wire::Message<String>),
}

impl MailboxEntry {
    pub(crate) fn all(messages: Vec<MessageState>) -> Vec<Self> {
        let messages = messages.into_iter().map(Box::new);
        messages.map(Self::Journal).collect()
    }

    /// Return the text, or the reason why it is lost.
    pub(crate) fn body(&self, home: &Home) -> Result<String> {
        match self {
            Self::Journal(state) => message_text::text_or_loss(home, state),
            Self::Script { message, .. } => Ok(message.body.clone()),
        }
    }

    pub(crate) fn recipient(&self) -> &str {
        match self {
            Self::Journal(state) => state.message.to.as_str(),
            Self::Script { message, .. } => &message.to,
        }
    }

    pub(crate) fn to_json(&self, body: String, now: Timestamp) -> MailboxEntryJson {
        match self {
            Self::Journal(state) => MailboxEntryJson::Journal(wire::Message::new(state, body, now)),
            Self::Script { message, copy } => {
                let mut shown = message.shown();
                if let Some(state) = copy {
                    // Whether it is read is for the script to say. An unread copy knows more.
                    if !message.read {
                        let status = state.status.at(&state.message, now);
                        shown.receipt = status.receipt().to_string();
                    }
                    shown.receipts = state.receipts.iter().map(wire::Receipt::new).collect();
                }
                MailboxEntryJson::Script(shown)
            }
        }
    }

    fn to_row(&self, now: Timestamp) -> MessageRow {
        match self {
            Self::Journal(state) => message_text::row(state, now),
            Self::Script { message, copy } => MessageRow {
                id: text::one_line(&message.id, usize::MAX),
                from: text::one_line(&message.from, 80),
                to: text::one_line(&message.to, 80),
                created_at: message.created_at,
                status: match copy {
                    _ if message.read => "read".to_owned(),
                    Some(state) => state.status.at(&state.message, now).receipt().to_string(),
                    None => "stored".to_owned(),
                },
                is_waiting: !message.read,
                subject: Some(message.subject.clone()).filter(|subject| !subject.is_empty()),
                body: message.body.clone(),
            },
        }
    }

    /// Return the message under our id, as it stands in a prompt. Needs the copy of a script's
    /// message.
    fn to_message(&self) -> Option<Message> {
        match self {
            Self::Journal(state) => Some(state.message.clone()),
            Self::Script { message, copy } => Some(Message {
                created_at: message.created_at,
                ..copy.as_ref()?.message.clone()
            }),
        }
    }

    /// Return the fields above the text.
    pub(crate) fn head(&self, context: &Context) -> Vec<Field> {
        let message = match self {
            Self::Journal(state) => return message_text::head(context, state),
            Self::Script { message, .. } => message,
        };
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        vec![
            ("message", Some(message.id.clone())),
            ("from", Some(message.from.clone())),
            ("to", Some(message.to.clone())),
            ("sent", Some(context.shown_time(message.created_at))),
            ("subject", some(&message.subject)),
            ("reply to", some(&message.reply_to)),
        ]
    }
}

fn all_to_json(context: &Context, entries: &[MailboxEntry]) -> Result<Vec<MailboxEntryJson>> {
    let entries = entries.iter();
    entries
        .map(|entry| Ok(entry.to_json(entry.body(&context.home)?, context.now)))
        .collect()
}

/// Print one line per message.
pub(crate) fn print_list(context: &mut Context, entries: &[MailboxEntry]) -> Result<()> {
    if context.json {
        let messages = all_to_json(context, entries)?;
        return context.out.json(&messages);
    }
    let rows = entries.iter().map(|entry| entry.to_row(context.now));
    let rows: Vec<_> = rows.collect();
    message_text::rows(context, &rows)
}

/// Print whole messages, one below the other.
pub(crate) fn print_thread(context: &mut Context, entries: &[MailboxEntry]) -> Result<()> {
    if context.json {
        let messages = all_to_json(context, entries)?;
        return context.out.json(&messages);
    }
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            context.out.line("")?;
        }
        let body = entry.body(&context.home)?;
        fields(context, entry.head(context))?;
        // Indented, so that no text can be mistaken for the header of another message.
        message_text::text(context, &body, "    ")?;
    }
    Ok(())
}

/// Print messages as a block for an agent's prompt.
pub(crate) fn print_prompt(context: &mut Context, entries: &[MailboxEntry]) -> Result<()> {
    let messages = entries.iter().filter_map(|entry| {
        let message = entry.to_message()?;
        Some(entry.body(&context.home).map(|body| (message, body)))
    });
    let messages = messages.collect::<Result<Vec<_>>>()?;
    let entries: Vec<_> = messages
        .iter()
        .map(|(message, text)| prompt::Entry { message, text })
        .collect();
    let block = prompt::inbox_block(&entries, posthaste_store::times::zone());
    context.out.bytes(block.as_bytes())
}
