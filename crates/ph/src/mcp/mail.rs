//! Tools for mail. Each runs a verb of the command line in this process, so that tools and verbs follow
//! the same rules and use the same mailbox.

use super::Reply;
use super::tool::{Given, USUAL_FINDS, USUAL_READ};
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
        let mut say = |name: &str, value: Value| head.insert(name.to_owned(), value);
        say("id", json!(self.name()));
        say("from", json!(text::one_line(&self.from, 80)));
        say("to", json!(text::one_line(&self.to, 80)));
        if let Some(subject) = self.subject.as_deref().filter(|s| !s.is_empty()) {
            say("subject", json!(text::one_line(subject, 200)));
        }
        say("timestamp", json!(self.created_at));
        say("status", json!(self.receipt));
        if self.priority != "normal" {
            say("priority", json!(self.priority));
        }
        if let Some(parent) = &self.reply_to {
            say("reply_to", json!(parent));
        }
        head
    }

    /// Return the message for a list, with at most `most` bytes of its text.
    fn to_json(&self, most: usize) -> Map<String, Value> {
        let mut told = self.head();
        let text = text::head(&self.body, most);
        told.insert("content".to_owned(), json!(plain(text)));
        if text.len() < self.body.len() {
            told.insert("bytes".to_owned(), json!(self.body.len()));
            let rest = "this is the beginning; read_message returns all of it";
            told.insert("note".to_owned(), json!(rest));
        }
        told
    }
}

/// Return a text without anything invisible, and in which nothing looks like a header of ours.
fn plain(text: &str) -> String {
    let lines: Vec<_> = text::lines(text).collect();
    lines.join("\n")
}

/// Run a verb.
fn verb(said: &GlobalOptions, words: &[&str]) -> Result<Captured> {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    capture(&words, said)
}

fn parse<T: for<'a> Deserialize<'a>>(captured: &Captured) -> Result<T> {
    serde_json::from_slice(&captured.out)
        .map_err(|error| Report::storage(format!("the output of the verb is invalid: {error}")))
}

/// Return the caller's unread mail.
pub(super) fn unread(said: &GlobalOptions) -> Result<Vec<ShownMessage>> {
    parse(&verb(said, &["inbox"])?)
}

pub(super) fn list(said: &GlobalOptions) -> Result<Reply> {
    Ok(listed(&unread(said)?))
}

/// Return a reply with unread mail.
pub(super) fn listed(messages: &[ShownMessage]) -> Reply {
    if messages.is_empty() {
        return "No unread messages".into();
    }
    let unread = messages.iter().take(MAX_LIST_MESSAGES).map(|message| {
        let mut told = message.to_json(MAX_LIST_TEXT_BYTES);
        told.insert("status".to_owned(), json!("unread"));
        Value::Object(told)
    });
    let mut blocks = vec![one_a_line(unread)];
    if messages.len() > MAX_LIST_MESSAGES {
        let more = messages.len() - MAX_LIST_MESSAGES;
        blocks.push(format!(
            "{more} more unread: mark these as read, then list again"
        ));
    }
    Reply(blocks)
}

/// Format a list with one value per line.
fn one_a_line(values: impl Iterator<Item = Value>) -> String {
    let lines: Vec<_> = values.map(|value| value.to_string()).collect();
    format!("[\n{}\n]", lines.join(",\n"))
}

pub(super) fn mark_read(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let id = given.must("id");
    verb(said, &["mark-read", "--", id])?;
    Ok(format!("Message {} marked as read", text::one_line(id, 80)).into())
}

pub(super) fn send(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let body = format!("--body={}", given.must("body"));
    let subject = given
        .text("subject")
        .map(|said| format!("--subject={said}"));
    let priority = given
        .text("priority")
        .map(|said| format!("--priority={said}"));
    let key = given.text("key").map(|said| format!("--key={said}"));
    let mut words = vec!["send", &body];
    words.extend(
        [&subject, &priority, &key]
            .into_iter()
            .flatten()
            .map(String::as_str),
    );
    words.extend(given.flag("expects_reply").then_some("--expects-reply"));
    words.extend(["--", given.must("to")]);
    sent(&verb(said, &words)?)
}

pub(super) fn reply(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let body = format!("--body={}", given.must("body"));
    let mut words = vec!["reply", &body];
    words.extend(given.flag("expects_reply").then_some("--expects-reply"));
    words.extend(["--", given.must("id")]);
    sent(&verb(said, &words)?)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Sent {
    One(Box<ShownMessage>),
    Several(Vec<ShownMessage>),
}

fn sent(captured: &Captured) -> Result<Reply> {
    let ids: Vec<_> = match parse(captured)? {
        Sent::One(message) => vec![message.name()],
        Sent::Several(messages) => messages.iter().map(ShownMessage::name).collect(),
    };
    Ok(match ids.as_slice() {
        [] => "No recipients".into(),
        ids => format!("Message sent: {}", ids.join(", ")).into(),
    })
}

pub(super) fn read(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let message: ShownMessage = parse(&verb(said, &["read", "--", given.must("id")])?)?;
    let all = message.body.len();
    let from = usize::try_from(given.number("offset").unwrap_or(0)).unwrap_or(usize::MAX);
    let most = given.number("max_bytes").unwrap_or(USUAL_READ);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
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
    Ok(Reply(blocks))
}

pub(super) fn search(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let from = given.text("from").map(|name| format!("--from={name}"));
    let to = given.text("to").map(|name| format!("--to={name}"));
    let limit = given.number("limit").unwrap_or(USUAL_FINDS);
    let limit = format!("--limit={limit}");
    let mut words = vec!["search", &limit];
    words.extend([&from, &to].into_iter().flatten().map(String::as_str));
    words.extend(["--", given.must("query")]);
    let captured = verb(said, &words)?;
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
struct Running {
    name: String,
    activity: String,
    blocked_on: Option<String>,
    unread: u64,
}

pub(super) fn agents(said: &GlobalOptions) -> Result<Reply> {
    let running: Vec<Running> = parse(&verb(said, &["ls"])?)?;
    let context = Context::new(said)?;
    let mut names = match context.reader()? {
        Some(mut journal) => journal.agents()?,
        None => Vec::new(),
    };
    let (me, _) = context.me()?;
    names.extend([AgentName::human(), me.clone()]);
    names.retain(|name| running.iter().all(|one| one.name != name.as_str()));
    names.sort_unstable();
    names.dedup();
    let live = running.iter().map(|one| {
        let mut told = json!({"name": one.name, "running": true, "activity": one.activity, "unread": one.unread});
        if let Some(on) = &one.blocked_on {
            told["blocked_on"] = json!(text::one_line(on, 200));
        }
        told
    });
    let others = names
        .iter()
        .map(|name| json!({"name": name.as_str(), "running": false}));
    let all = live.chain(others).map(|mut told| {
        if told["name"] == me.as_str() {
            told["you"] = json!(true);
        }
        told
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
