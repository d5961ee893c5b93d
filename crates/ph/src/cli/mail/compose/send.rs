//! `ph send`, and the sending of every message: through the recipient's session, into the journal,
//! or through a script.

use super::raw;
use crate::cli::mail::compose::body::{BodyArgs, one_line};
use crate::cli::mail::compose::recipients::{self, Agents, RecipientArgs};
use crate::cli::mail::compose::wait::{self, WaitArgs};
use crate::cli::mail::mailbox::{self, Mailbox};
use crate::cli::prelude::*;
use crate::cli::times::{parse_duration, parse_point};
use crate::output::message_text;
use jiff::SignedDuration;
use posthaste_client::session::client::{Client, FALLBACK_TIMEOUT};
use posthaste_core::message::INLINE_LIMIT;
use posthaste_core::{Evidence, IdPrefix, MessageId, Priority, ReceiptState, Timestamp};
use posthaste_store::operation::Post;
use posthaste_store::times;
use posthaste_wire as wire;
use posthaste_wire::method::{self, Resolved};

/// Send a message to one or more agents
///
/// Prints one message id per recipient, after the message is on disk. A recipient need not be
/// running, and need never have run: every name has an inbox. Nothing is sent if a recipient is
/// '@NAME' and no alias or group has that name, or if it is an unknown name that differs from an
/// alias or group by one character.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph send coder-1 'Please review the auth module'
  ph send coder-1,coder-2 --priority interrupt 'Stop: main is broken'
  ph send @reviewers --notify 'Please have a look at main'
  ph send --all 'main is green again'
  git diff | ph send reviewer --subject 'today' --file -
  ph send coder-1 --in 10m 'Time to commit'
  ph send coder-1 --key nightly-42 'The nightly build failed'
  ph send coder-1 --priority idle --deadline 1h 'Update the changelog'
  ph send coder-1 --expects-reply 'Is the release ready?'
  ph send coder-1 --wait offered --timeout 30s 'Are you there?'")]
pub(crate) struct Args {
    #[command(flatten)]
    recipients: RecipientArgs,
    #[command(flatten)]
    body: BodyArgs,
    /// Subject line
    #[arg(long, value_name = "TEXT", value_parser = one_line("subject"))]
    subject: Option<String>,
    #[command(flatten)]
    message: MessageArgs,
    /// Message that this one replies to
    #[arg(long, value_name = "ID", value_parser = parse_id, add = complete_ids())]
    reply_to: Option<IdPrefix>,
    /// Send only once with this key: a repeat stores nothing and prints the first message's id,
    /// unless that message was cancelled or has expired
    #[arg(long, value_name = "KEY", value_parser = one_line("key"))]
    key: Option<String>,
    /// Discard the message if nobody has seen it within this time
    #[arg(long, value_name = "D", value_parser = parse_duration, allow_hyphen_values = true)]
    ttl: Option<SignedDuration>,
    /// Earliest time of delivery
    #[arg(long, value_name = "T", conflicts_with = "after")]
    at: Option<String>,
    /// Delay before delivery
    #[arg(long = "in", value_name = "D", id = "after", value_parser = parse_duration, allow_hyphen_values = true)]
    after: Option<SignedDuration>,
    /// Maximum wait for an idle agent; after that, the message is delivered as a normal one
    #[arg(long, value_name = "D", value_parser = parse_duration, allow_hyphen_values = true)]
    deadline: Option<SignedDuration>,
    /// Stop expecting a reply to this message
    #[arg(long, value_name = "ID", value_parser = parse_id, add = complete_ids())]
    closes: Option<IdPrefix>,
    /// Type the text as an answer to the program's question, without a header; 'ph answer' chooses an option instead
    #[arg(long, conflicts_with_all = ["subject", "priority", "reply_to", "ttl", "at", "after", "deadline", "expects_reply", "closes"])]
    raw: bool,
    /// Allow a message to oneself
    #[arg(long)]
    allow_self: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Options of the verbs that write a message with a header.
#[derive(Debug, clap::Args)]
pub(crate) struct MessageArgs {
    /// Priority: interrupt, normal, idle-first or idle [default: the setting send.priority]
    #[arg(long, value_name = "P", value_parser = priority(), hide_possible_values = true)]
    pub(crate) priority: Option<Priority>,
    /// Sender [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    pub(crate) from: Option<AgentName>,
    /// Remind the recipient, each time it becomes idle, until it has replied
    #[arg(long)]
    pub(crate) expects_reply: bool,
}

impl MessageArgs {
    /// Create a message with these options.
    pub(crate) fn message(&self, context: &Context, body: String) -> method::Send {
        method::Send {
            priority: self.priority.or(Some(context.config.priority)),
            expects_reply: self.expects_reply,
            ..method::Send::new(body)
        }
    }
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.message.from.as_ref())?;
    args.recipients.check()?;
    // An answer goes to the program's terminal, even if a script keeps the mail.
    let mailbox = match args.raw {
        true => Mailbox::Journal,
        false => Mailbox::open(context)?,
    };
    mailbox.refuse_options(&[
        ("--priority", args.message.priority.is_some()),
        ("--reply-to", args.reply_to.is_some()),
        ("--key", args.key.is_some()),
        ("--ttl", args.ttl.is_some()),
        ("--at", args.at.is_some()),
        ("--in", args.after.is_some()),
        ("--deadline", args.deadline.is_some()),
        ("--expects-reply", args.message.expects_reply),
        ("--closes", args.closes.is_some()),
        ("--wait", args.wait.begin().is_some()),
    ])?;
    let body = args.recipients.body(args.body)?;
    // Reading the text may have taken a while.
    context.now = times::now();
    let not_before = not_before(args.at.as_deref(), args.after, context.now)?;
    let Agents { names: to, is_list } = args.recipients.agents(context, &from, args.allow_self)?;
    if args.raw && to.len() > 1 {
        return Err(Report::usage("--raw takes only one recipient"));
    }
    if args.ttl.is_some_and(|ttl| args.deadline >= Some(ttl)) {
        return Err(
            Report::usage("the message would expire (--ttl) before its --deadline")
                .hint("make --deadline shorter than --ttl"),
        );
    }
    let format = match is_list {
        true => SentFormat::Ids,
        false => SentFormat::Id,
    };
    let millis = |d: SignedDuration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let outgoing = Outgoing {
        from,
        from_evidence,
        to,
        message: method::Send {
            subject: args.subject,
            reply_to: args.reply_to,
            key: args.key,
            ttl_ms: args.ttl.map(millis),
            not_before,
            deadline_ms: args.deadline.map(millis),
            closes: args.closes,
            allow_self: args.allow_self,
            raw: args.raw,
            ..args.message.message(context, body)
        },
        notifies: args.recipients.notify,
    };
    post(context, &mailbox, &outgoing, format, &args.wait)
}

/// Return the earliest time of delivery that --at or --in gives.
fn not_before(
    at: Option<&str>,
    after: Option<SignedDuration>,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    match (at, after) {
        (Some(at), _) => Ok(Some(parse_point(at, now)?)),
        (None, Some(after)) => match now.checked_add(after) {
            Ok(due) => Ok(Some(due)),
            Err(_) => {
                let past = "the time given by --in is out of range";
                Err(Report::usage(past))
            }
        },
        (None, None) => Ok(None),
    }
}

/// The form in which stored messages are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentFormat {
    /// The id; in JSON the message.
    Id,
    /// One id per line; in JSON an array.
    Ids,
    /// A sentence for a person; in JSON the message.
    Sentence,
}

/// A message to one or more agents. Id, sender and recipient are not set in `message`.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) from: AgentName,
    pub(crate) from_evidence: Evidence,
    pub(crate) to: Vec<AgentName>,
    pub(crate) message: method::Send,
    /// Whether to nudge each recipient once when the message is stored.
    pub(crate) notifies: bool,
}

impl Outgoing {
    fn requests(&self) -> Vec<method::Send> {
        let requests = self.to.iter().map(|to| method::Send {
            id: Some(new_id()),
            from: Some(self.from.clone()),
            from_evidence: Some(self.from_evidence),
            to: Some(to.clone()),
            ..self.message.clone()
        });
        requests.collect()
    }
}

/// Send a message, print the ids, nudge the recipients and wait, as the options demand.
pub(crate) fn post(
    context: &mut Context,
    mailbox: &Mailbox,
    outgoing: &Outgoing,
    format: SentFormat,
    wait: &WaitArgs,
) -> Result<Code> {
    let wait = wait.begin();
    let (names, sent) = send(context, mailbox, outgoing, format, wait.is_some());
    if outgoing.notifies {
        recipients::notify(context, &outgoing.from, &names);
    }
    match (wait, sent?) {
        (Some(wait), sent) => wait::until(context, wait, &sent, format == SentFormat::Ids),
        (None, _) => Ok(Code::Ok),
    }
}

/// Send a message and print the ids. Return the agents to nudge, even if not all copies could be
/// sent, and the messages to wait for.
fn send(
    context: &mut Context,
    mailbox: &Mailbox,
    outgoing: &Outgoing,
    format: SentFormat,
    is_awaited: bool,
) -> (Vec<AgentName>, Result<Vec<(MessageId, AgentName)>>) {
    if let Mailbox::Script(script) = mailbox {
        let (names, sent) = mailbox::through_script(context, script, outgoing, format);
        return (names, sent.map(|()| Vec::new()));
    }
    match store(context, outgoing, format, is_awaited) {
        Ok(sent) => {
            let messages = outgoing.to.iter().zip(sent);
            // The recipients of a repeated message were nudged the first time.
            let new = messages.clone().filter(|(_, sent)| !sent.is_repeat);
            let names = new.map(|(to, _)| to.clone()).collect();
            let messages = messages.map(|(to, sent)| (sent.reply.message.id, to.clone()));
            (names, Ok(messages.collect()))
        }
        Err(report) => (Vec::new(), Err(report)),
    }
}

/// The stored copy of a message for one recipient.
#[derive(Clone)]
struct Stored {
    reply: method::Sent,
    /// Another message with this key was stored before.
    is_repeat: bool,
}

impl Stored {
    fn new(reply: method::Sent, request: &method::Send) -> Self {
        // A message with the same id is this one: a session has stored it and replied too late.
        let is_other = request.id != Some(reply.message.id);
        Self {
            is_repeat: !reply.is_new && request.key.is_some() && is_other,
            reply,
        }
    }

    /// Return the reason if the message will never be delivered.
    fn failure(&self) -> Option<&str> {
        let message = &self.reply.message;
        let is_failed = message.receipt == ReceiptState::Failed.as_str();
        is_failed.then(|| message.reason.as_deref().unwrap_or_default())
    }
}

/// Store all copies or none, and print their ids. Deferred journal work follows the output.
fn store(
    context: &mut Context,
    outgoing: &Outgoing,
    format: SentFormat,
    is_awaited: bool,
) -> Result<Vec<Stored>> {
    let requests = outgoing.requests();
    let (replies, journal) = match through_session(context, outgoing, &requests)? {
        Some(sent) => (vec![sent], None),
        None => {
            let mut journal = context.journal()?;
            let sent = store_in_journal(context, &mut journal, outgoing, &requests)?;
            (sent, Some(journal))
        }
    };
    let stored = replies.into_iter().zip(&requests);
    let stored: Vec<_> = stored.map(|(sent, of)| Stored::new(sent, of)).collect();
    let has_failed = stored.iter().any(|one| one.failure().is_some());
    // With --wait, JSON is printed after the wait.
    if !is_awaited || !context.json || has_failed {
        print(context, outgoing, &stored, format)?;
    }
    if let Some(journal) = journal {
        mail::leave(journal);
    }
    refuse_failed(&stored)?;
    Ok(stored)
}

/// Let the session of a single recipient store the message, which is faster. If that fails or times
/// out, return `None`: the caller then stores the message in the journal, where the same id is
/// never stored twice.
fn through_session(
    context: &Context,
    outgoing: &Outgoing,
    requests: &[method::Send],
) -> Result<Option<method::Sent>> {
    let ([to], [request]) = (outgoing.to.as_slice(), requests) else {
        return Ok(None);
    };
    if request.raw {
        let asked_at = Some(times::now());
        let request = method::Send {
            asked_at,
            ..request.clone()
        };
        return raw::hand_over(context, to, &request).map(Some);
    }
    if request.body.len() > INLINE_LIMIT {
        return Ok(None);
    }
    let client = Client::connect_to(&context.home, to);
    Ok(client.and_then(|mut client| client.call(request, FALLBACK_TIMEOUT).ok()))
}

fn store_in_journal(
    context: &Context,
    journal: &mut Journal,
    outgoing: &Outgoing,
    requests: &[method::Send],
) -> Result<Vec<method::Sent>> {
    let message = &outgoing.message;
    let mut find = |prefix: &Option<IdPrefix>| match prefix {
        Some(prefix) => Ok::<_, Report>(Some(journal.find(prefix)?.message.id)),
        None => Ok(None),
    };
    let (reply_to, closes) = (find(&message.reply_to)?, find(&message.closes)?);
    let drafts = requests.iter().zip(&outgoing.to).map(|(request, to)| {
        request.clone().into_draft(Resolved {
            id: request.id.unwrap_or_else(new_id),
            from: outgoing.from.clone(),
            from_evidence: outgoing.from_evidence,
            to: to.clone(),
            reply_to,
            closes,
            limits: context.config.limits,
        })
    });
    let post = Post {
        now: context.now,
        drafts: drafts.collect(),
    };
    let posted = mail::post(journal, post)?.into_iter();
    let sent = posted.map(|posted| {
        let body = match posted.is_new {
            true => message.body.clone(),
            false => message_text::text_or_loss(&context.home, &posted.state)?,
        };
        Ok(method::Sent {
            message: wire::Message::new(&posted.state, body, context.now),
            is_new: posted.is_new,
            unfiled: posted.unfiled,
        })
    });
    sent.collect()
}

/// Report messages that were stored but will never be delivered.
fn refuse_failed(stored: &[Stored]) -> Result<()> {
    let failed = stored.iter().filter_map(|one| {
        let (id, why) = (one.reply.message.id, one.failure()?);
        let report = format!("message {id} was stored but will not be delivered: {why}");
        Some((id, report))
    });
    let failed: Vec<_> = failed.collect();
    let Some(((id, last), others)) = failed.split_last() else {
        return Ok(());
    };
    others.iter().for_each(|(_, report)| note(report));
    Err(Report::refused(last).hint(format!("'ph show {}' shows its receipts", id.id8())))
}

fn print(
    context: &mut Context,
    outgoing: &Outgoing,
    stored: &[Stored],
    format: SentFormat,
) -> Result<()> {
    let repeats = stored.iter().zip(&outgoing.to);
    for (Stored { reply, .. }, to) in repeats.filter(|(one, _)| one.is_repeat) {
        let other = match reply.message.body == outgoing.message.body {
            true => "",
            false => ", with a different text",
        };
        note(format!(
            "a message with this key was sent to {to} already{other}; nothing new was stored"
        ));
    }
    for Stored { reply, .. } in stored {
        if let Some(why) = &reply.unfiled {
            let id = reply.message.id.id8();
            note(format!(
                "message {id} is stored, but its file is not written yet ('ph show {id}' writes it): {why}"
            ));
        }
    }
    let messages: Vec<_> = stored.iter().map(|one| &one.reply.message).collect();
    let ids: Vec<_> = messages.iter().map(|one| one.id.to_string()).collect();
    mailbox::print_sent(context, &ids, &messages, format)
        .map_err(|report| report.after(&format!("stored as {}, but", ids.join(", "))))
}

fn new_id() -> MessageId {
    MessageId(uuid::Uuid::new_v4())
}
