//! Tools for mail. Each runs a verb of the command line in this process, so that tools and verbs
//! follow the same rules and use the same mailbox.

use super::ToolReply;
use super::tool::{InboxMarkRead, ReadMessage, ReplyTo, SearchMessages, SendMessage};
use crate::cli::{Captured, capture};
use crate::context::{Context, GlobalOptions};
use posthaste_core::{AgentName, Evidence, MessageId, text};
use posthaste_store::report::{Code, Report, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Maximum number of messages in one list.
const MAX_LIST_MESSAGES: usize = 50;
/// Maximum text of one message in a list and in search results.
const MAX_LIST_TEXT_BYTES: usize = 4_000;
const MAX_FOUND_TEXT_BYTES: usize = 400;
/// Maximum size of a text in one reply by default.
const DEFAULT_READ_BYTES: u64 = 32 << 10;
const DEFAULT_FOUND_MESSAGES: u64 = 20;

/// A message as verbs print it.
#[derive(Debug, Deserialize)]
pub(super) struct ShownMessage {
    id: String,
    pub(super) from: String,
    from_evidence: String,
    to: String,
    subject: Option<String>,
    body: String,
    created_at: String,
    priority: String,
    pub(super) reply_to: Option<String>,
    receipt: String,
}

impl ShownMessage {
    /// Return the id for agents: short, or the whole id if a script keeps the mail.
    fn name(&self) -> String {
        let is_ours = self.from_evidence != Evidence::Provider.to_string();
        let ours = self.id.parse::<MessageId>().ok().filter(|_| is_ours);
        ours.map_or_else(|| self.id.clone(), MessageId::id8)
    }

    /// Return all fields but the text.
    fn head(&self) -> Map<String, Value> {
        let mut head = Map::new();
        let mut add = |name: &str, value: Value| head.insert(name.to_owned(), value);
        add("id", json!(self.name()));
        add("from", json!(text::one_line(&self.from, 80)));
        add("to", json!(text::one_line(&self.to, 80)));
        if let Some(subject) = self.subject.as_deref().filter(|s| !s.is_empty()) {
            add("subject", json!(text::one_line(subject, 200)));
        }
        add("timestamp", json!(self.created_at));
        add("status", json!(self.receipt));
        if self.priority != "normal" {
            add("priority", json!(self.priority));
        }
        if let Some(parent) = &self.reply_to {
            add("reply_to", json!(parent));
        }
        head
    }

    /// Return the message for a list, with at most `most` bytes of its text.
    fn to_json(&self, most: usize) -> Map<String, Value> {
        let mut message = self.head();
        let text = text::head(&self.body, most);
        message.insert("content".to_owned(), json!(plain(text)));
        if text.len() < self.body.len() {
            message.insert("bytes".to_owned(), json!(self.body.len()));
            let rest = "this is the beginning; read_message returns all of it";
            message.insert("note".to_owned(), json!(rest));
        }
        message
    }
}

/// Return a text without anything invisible, and in which nothing looks like a header of ours.
fn plain(text: &str) -> String {
    let lines: Vec<_> = text::lines(text).collect();
    lines.join("\n")
}

fn parse<T: for<'a> Deserialize<'a>>(captured: &Captured) -> Result<T> {
    serde_json::from_slice(&captured.out)
        .map_err(|error| Report::storage(format!("the output of the verb is invalid: {error}")))
}

/// Return the caller's unread mail.
pub(super) fn unread(options: &GlobalOptions) -> Result<Vec<ShownMessage>> {
    parse(&capture(&["inbox"], options)?)
}

pub(super) fn list(options: &GlobalOptions) -> Result<ToolReply> {
    Ok(listed(&unread(options)?))
}

/// Return a reply with unread mail.
pub(super) fn listed(messages: &[ShownMessage]) -> ToolReply {
    if messages.is_empty() {
        return "No unread messages".into();
    }
    let unread = messages.iter().take(MAX_LIST_MESSAGES).map(|message| {
        let mut message = message.to_json(MAX_LIST_TEXT_BYTES);
        message.insert("status".to_owned(), json!("unread"));
        Value::Object(message)
    });
    let mut blocks = vec![one_a_line(unread)];
    if messages.len() > MAX_LIST_MESSAGES {
        let more = messages.len() - MAX_LIST_MESSAGES;
        blocks.push(format!(
            "{more} more unread: mark these as read, then list again"
        ));
    }
    ToolReply(blocks)
}

/// Format a list with one value per line.
fn one_a_line(values: impl Iterator<Item = Value>) -> String {
    let lines: Vec<_> = values.map(|value| value.to_string()).collect();
    format!("[\n{}\n]", lines.join(",\n"))
}

pub(super) fn mark_read(options: &GlobalOptions, arguments: &InboxMarkRead) -> Result<ToolReply> {
    let id = &arguments.id;
    capture(&["mark-read", "--", id], options)?;
    Ok(format!("Message {} marked as read", text::one_line(id, 80)).into())
}

pub(super) fn send(options: &GlobalOptions, arguments: &SendMessage) -> Result<ToolReply> {
    let SendMessage {
        to,
        body,
        subject,
        priority,
        expects_reply,
        key,
    } = arguments;
    let mut words = vec!["send".to_owned(), format!("--body={body}")];
    words.extend(subject.iter().map(|subject| format!("--subject={subject}")));
    words.extend(priority.map(|priority| format!("--priority={}", priority.0)));
    words.extend(key.iter().map(|key| format!("--key={key}")));
    words.extend(expects_reply.then(|| "--expects-reply".to_owned()));
    words.extend(["--".to_owned(), to.clone()]);
    sent(&capture(&words, options)?)
}

pub(super) fn reply(options: &GlobalOptions, arguments: &ReplyTo) -> Result<ToolReply> {
    let body = format!("--body={}", arguments.body);
    let mut words = vec!["reply", &body];
    words.extend(arguments.expects_reply.then_some("--expects-reply"));
    words.extend(["--", &arguments.id]);
    sent(&capture(&words, options)?)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SentMessages {
    One(Box<ShownMessage>),
    Several(Vec<ShownMessage>),
}

fn sent(captured: &Captured) -> Result<ToolReply> {
    let ids: Vec<_> = match parse(captured)? {
        SentMessages::One(message) => vec![message.name()],
        SentMessages::Several(messages) => messages.iter().map(ShownMessage::name).collect(),
    };
    Ok(match ids.as_slice() {
        [] => "No recipients".into(),
        ids => format!("Message sent: {}", ids.join(", ")).into(),
    })
}

pub(super) fn read(options: &GlobalOptions, arguments: &ReadMessage) -> Result<ToolReply> {
    let message: ShownMessage = parse(&capture(&["read", "--", &arguments.id], options)?)?;
    let all = message.body.len();
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let from = bytes(arguments.offset.map_or(0, |offset| offset.0));
    let most = bytes(
        arguments
            .max_bytes
            .map_or(DEFAULT_READ_BYTES, |most| most.0),
    );
    if from > all {
        let why = format!("offset {from} is past the end: the text has {all} bytes");
        return Err(Report::usage(why));
    }
    let Some(rest) = message.body.get(from..) else {
        let why = format!("offset {from} is inside a character");
        return Err(Report::usage(why).hint("use the offset in the previous reply"));
    };
    // At least one character, even if it is longer.
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let part = text::head(rest, most.max(first));
    let head = Value::Object(message.head()).to_string();
    let mut blocks = vec![head, plain(part)];
    let end = from + part.len();
    if end < all || from > 0 {
        let more = if end < all {
            format!("; the rest: read_message with offset {end}")
        } else {
            "; this is the end".to_owned()
        };
        blocks.push(format!("(bytes {from} to {end} of {all}{more})"));
    }
    Ok(ToolReply(blocks))
}

pub(super) fn search(options: &GlobalOptions, arguments: &SearchMessages) -> Result<ToolReply> {
    let SearchMessages {
        query,
        from,
        to,
        limit,
    } = arguments;
    let limit = limit.map_or(DEFAULT_FOUND_MESSAGES, |limit| limit.0);
    let mut words = vec!["search".to_owned(), format!("--limit={limit}")];
    words.extend(from.iter().map(|name| format!("--from={name}")));
    words.extend(to.iter().map(|name| format!("--to={name}")));
    words.extend(["--".to_owned(), query.clone()]);
    let captured = capture(&words, options)?;
    if captured.code == Code::No {
        return Ok("No messages found".into());
    }
    let found: Vec<ShownMessage> = parse(&captured)?;
    let found = found
        .iter()
        .map(|message| message.to_json(MAX_FOUND_TEXT_BYTES).into());
    Ok(one_a_line(found).into())
}

#[derive(Deserialize)]
struct RunningAgent {
    name: String,
    activity: String,
    blocked_on: Option<String>,
    unread: u64,
}

pub(super) fn agents(options: &GlobalOptions) -> Result<ToolReply> {
    let running: Vec<RunningAgent> = parse(&capture(&["ls"], options)?)?;
    let context = Context::new(options)?;
    let mut names = context.query(posthaste_store::Journal::agents)?;
    let (me, _) = context.me()?;
    names.extend([AgentName::human(), me.clone()]);
    names.retain(|name| running.iter().all(|one| one.name != name.as_str()));
    names.sort_unstable();
    names.dedup();
    let live = running.iter().map(|one| {
        let RunningAgent {
            name,
            activity,
            unread,
            ..
        } = one;
        let mut agent =
            json!({"name": name, "running": true, "activity": activity, "unread": unread});
        if let Some(on) = &one.blocked_on {
            agent["blocked_on"] = json!(text::one_line(on, 200));
        }
        agent
    });
    let others = names
        .iter()
        .map(|name| json!({"name": name.as_str(), "running": false}));
    let all = live.chain(others).map(|mut agent| {
        if agent["name"] == me.as_str() {
            agent["you"] = json!(true);
        }
        agent
    });
    Ok(one_a_line(all).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_the_journal_is_shortened() {
        let id = "3fa8c1d2-0b1c-4d2e-8f3a-4b5c6d7e8f90";
        let check = |id: &str, evidence: &str, want: &str| {
            let message = json!({
                "id": id, "from": "a", "from_evidence": evidence, "to": "b", "subject": null,
                "body": "x", "created_at": "", "priority": "normal", "reply_to": null,
                "receipt": "stored",
            });
            let message: ShownMessage = serde_json::from_value(message).unwrap();
            assert_eq!(message.name(), want);
        };
        check(id, "env", "3fa8c1d2");
        check(id, "provider", id);
        check("msg-7", "provider", "msg-7");
    }
}
