use crate::cli::mail::compose::body::{BodyArgs, one_line};
use crate::cli::mail::compose::recipients::{Agents, Whom};
use crate::cli::mail::compose::wait::{self, Wait, WaitArgs};
use crate::cli::mail::mailbox::{self, Mailbox};
use crate::cli::names::{IdParser, NameParser, complete_agents, complete_ids, priority};
use crate::cli::session::answer;
use crate::context::Context;
use crate::output::message_text;
use crate::output::note;
use jiff::SignedDuration;
use posthaste_client::mail;
use posthaste_client::session::client::{Client, PROMPT};
use posthaste_core::message::INLINE_LIMIT;
use posthaste_core::receipt::End;
use posthaste_core::{
    AgentName, Body, Draft, IdPrefix, MessageId, MessageState, Priority, ReceiptState, Timestamp,
    why,
};
use posthaste_store::operation::{Post, Posted};
use posthaste_store::report::{Code, Report, Result};
use posthaste_store::times::{self, parse_duration, parse_point};
use posthaste_store::{Journal, files};
use posthaste_wire::{self as wire, method};

/// Send a message to one or more agents
///
/// Prints one message id per recipient, after the message is on disk. A recipient need not be
/// running, and need never have run: every name has an inbox. Nothing is sent if a recipient is
/// '@NAME' without such an alias or group, or an unknown name that is one character away from an alias or
/// group.
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
    whom: Whom,
    #[command(flatten)]
    body: BodyArgs,
    /// Subject line
    #[arg(long, value_name = "TEXT", value_parser = one_line("subject"))]
    subject: Option<String>,
    /// Priority: interrupt, normal, idle-first or idle [default: the setting send.priority]
    #[arg(long, value_name = "P", value_parser = priority(), hide_possible_values = true)]
    priority: Option<Priority>,
    /// Sender [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    from: Option<AgentName>,
    /// Message that this one replies to
    #[arg(long, value_name = "ID", value_parser = IdParser, add = complete_ids())]
    reply_to: Option<IdPrefix>,
    /// Send only once with this key: a repeat stores nothing and prints the first message's id,
    /// unless that message was cancelled or has expired
    #[arg(long, value_name = "KEY", value_parser = one_line("key"))]
    key: Option<String>,
    /// Discard the message if nobody has seen it within this time
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    ttl: Option<SignedDuration>,
    /// Earliest time of delivery
    #[arg(long, value_name = "T", conflicts_with = "after")]
    at: Option<String>,
    /// Delay before delivery
    #[arg(long = "in", value_name = "D", id = "after", value_parser = parse_duration)]
    after: Option<SignedDuration>,
    /// Maximum wait for an idle agent; after that, the message is delivered as a normal one
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    deadline: Option<SignedDuration>,
    /// Remind the recipient, each time it becomes idle, until it has replied
    #[arg(long)]
    expects_reply: bool,
    /// Message that no longer expects a reply
    #[arg(long, value_name = "ID", value_parser = IdParser, add = complete_ids())]
    closes: Option<IdPrefix>,
    /// Type the text without a header, then press Enter, to answer the program's question (see 'ph
    /// answer')
    #[arg(long, conflicts_with_all = ["subject", "priority", "reply_to", "ttl", "at", "after", "deadline", "expects_reply", "closes"])]
    raw: bool,
    /// Allow a message to oneself
    #[arg(long)]
    allow_self: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.from.as_ref())?;
    args.whom.check()?;
    // An answer goes to the program's terminal, even if a script keeps the mail.
    let mailbox = match args.raw {
        true => Mailbox::Journal,
        false => Mailbox::open(context)?,
    };
    mailbox.refuse_options(&[
        ("--priority", args.priority.is_some()),
        ("--reply-to", args.reply_to.is_some()),
        ("--key", args.key.is_some()),
        ("--ttl", args.ttl.is_some()),
        ("--at", args.at.is_some()),
        ("--in", args.after.is_some()),
        ("--deadline", args.deadline.is_some()),
        ("--expects-reply", args.expects_reply),
        ("--closes", args.closes.is_some()),
        ("--wait", args.wait.begin().is_some()),
    ])?;
    let body = args.whom.body(args.body)?;
    // Reading the text may have taken a while.
    context.now = times::now();
    let not_before = not_before(args.at.as_deref(), args.after, context.now)?;
    let reply_to = meant(context, args.reply_to.as_ref())?;
    let closes = meant(context, args.closes.as_ref())?;
    let Agents { names: to, is_list } = args.whom.agents(context, &from, args.allow_self)?;
    if args.raw && to.len() > 1 {
        return Err(Report::usage("--raw takes only one recipient"));
    }
    if args.ttl.is_some_and(|ttl| args.deadline >= Some(ttl)) {
        return Err(
            Report::usage("the message would expire (--ttl) before its --deadline")
                .hint("make --deadline shorter than --ttl"),
        );
    }
    let answer = if is_list { Answer::Ids } else { Answer::Id };
    let drafts = to.iter().cloned().map(|to| Draft {
        id: new_id(),
        from: from.clone(),
        from_evidence,
        to,
        subject: args.subject.clone(),
        body: Body::Inline(body.clone()),
        priority: match args.priority {
            _ if args.raw => Priority::Interrupt,
            said => said.unwrap_or(context.config.priority),
        },
        reply_to,
        key: args.key.clone(),
        ttl: args.ttl,
        not_before,
        deadline: args.deadline,
        expects_reply: args.expects_reply,
        closes,
        allow_self: args.allow_self,
        raw: args.raw,
        limits: context.config.limits,
    });
    let drafts: Vec<_> = drafts.collect();
    let wait = args.wait.begin();
    let (sent_to, sent) = send(context, &mailbox, &drafts, answer, wait.is_some());
    args.whom.notify(context, &from, &sent_to);
    await_all(context, wait, &sent?, answer)
}

/// Store messages and print them. Return the agents to nudge, even if some messages could not be
/// sent, and the messages to wait for.
fn send(
    context: &mut Context,
    mailbox: &Mailbox,
    drafts: &[Draft],
    answer: Answer,
    is_awaited: bool,
) -> (Vec<AgentName>, Result<Vec<(MessageId, AgentName)>>) {
    if let Mailbox::Script(script) = mailbox {
        let (names, sent) = mailbox::through_script(context, script, drafts, answer);
        return (names, sent.map(|()| Vec::new()));
    }
    match put(context, drafts, answer, is_awaited) {
        Ok(sent) => {
            // The recipients of a repeated message were nudged the first time.
            let new = sent.iter().filter(|sent| sent.repeated.is_none());
            let names = new.map(|sent| sent.to.clone()).collect();
            let sent = sent.into_iter().map(|sent| (sent.id, sent.to)).collect();
            (names, Ok(sent))
        }
        Err(report) => (Vec::new(), Err(report)),
    }
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

/// Find the message for an id on the command line.
fn meant(context: &Context, prefix: Option<&IdPrefix>) -> Result<Option<MessageId>> {
    let Some(prefix) = prefix else {
        return Ok(None);
    };
    let mut journal = context.reader()?;
    let state = context.find(journal.as_mut(), prefix)?;
    Ok(Some(state.message.id))
}

/// The form in which stored messages are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The id; in JSON the message.
    Id,
    /// One id per line; in JSON an array.
    Ids,
    /// A sentence for a person; in JSON the message.
    Sentence,
}

/// Store messages, print their ids, and wait if --wait is set.
pub(crate) fn post(
    context: &mut Context,
    mailbox: &Mailbox,
    drafts: &[Draft],
    answer: Answer,
    wait: &WaitArgs,
) -> Result<Code> {
    let wait = wait.begin();
    let (_, sent) = send(context, mailbox, drafts, answer, wait.is_some());
    await_all(context, wait, &sent?, answer)
}

/// Store messages, all or none, and print their ids. Deferred journal work follows the output.
fn put(
    context: &mut Context,
    drafts: &[Draft],
    answer: Answer,
    is_awaited: bool,
) -> Result<Vec<Done>> {
    let (sent, journal) = store(context, drafts)?;
    let has_failed = sent.iter().any(|sent| sent.failed.is_some());
    // With --wait, JSON is printed after the wait.
    if !is_awaited || !context.json || has_failed {
        tell(context, &sent, answer)?;
    }
    if let Some(journal) = journal {
        mail::leave(journal);
    }
    undelivered(&sent)?;
    Ok(sent)
}

fn await_all(
    context: &mut Context,
    wait: Option<Wait>,
    sent: &[(MessageId, AgentName)],
    answer: Answer,
) -> Result<Code> {
    let Some(wait) = wait else {
        return Ok(Code::Ok);
    };
    wait::until(context, wait, sent, answer == Answer::Ids)
}

fn store(context: &mut Context, drafts: &[Draft]) -> Result<(Vec<Done>, Option<Journal>)> {
    // A live recipient stores its own mail, which is faster.
    if let [draft] = drafts
        && let Some(sent) = over_the_socket(context, draft)?
    {
        return Ok((vec![sent], None));
    }
    let post = Post {
        now: context.now,
        drafts: drafts.to_vec(),
    };
    let mut journal = context.journal()?;
    let posted = mail::post(&mut journal, post)?;
    let sent = posted
        .iter()
        .zip(drafts)
        .map(|(posted, draft)| sent(context, posted, draft))
        .collect::<Result<Vec<_>>>()?;
    Ok((sent, Some(journal)))
}

/// Report messages that were stored but will never be delivered.
fn undelivered(sent: &[Done]) -> Result<()> {
    let failed = sent.iter().filter_map(|sent| {
        let why = sent.failed.as_ref()?;
        let id = sent.id;
        let said = format!("message {id} was stored but will not be delivered: {why}");
        Some((id, said))
    });
    let failed: Vec<_> = failed.collect();
    match failed.split_last() {
        None => Ok(()),
        Some((last, others)) => {
            others.iter().for_each(|(_, said)| note(said));
            let (id, said) = last;
            Err(Report::refused(said).hint(format!("'ph show {}' shows its receipts", id.id8())))
        }
    }
}

/// The outcome of sending one message, through the session or the journal.
struct Done {
    id: MessageId,
    to: AgentName,
    /// Set if the key is already in use: whether the stored message has the same text.
    repeated: Option<bool>,
    /// The reason if the message will never be delivered.
    failed: Option<String>,
    /// The reason if the message's file could not be written.
    unfiled: Option<String>,
    /// The whole message, if JSON is requested.
    shape: Option<wire::Message>,
}

/// Send a message to the recipient's session. If that fails or times out, return `None`: the caller
/// then stores the message in the journal, where the same id is never stored twice.
fn over_the_socket(context: &Context, draft: &Draft) -> Result<Option<Done>> {
    let Body::Inline(body) = &draft.body else {
        return Ok(None);
    };
    let send = call(draft, body);
    let sent = if draft.raw {
        Some(answer::hand_over(context, draft, &send)?)
    } else if body.len() > INLINE_LIMIT {
        None
    } else {
        let client = Client::of(&context.home, &draft.to);
        client.and_then(|mut client| client.call(&send, PROMPT).ok())
    };
    Ok(sent.map(|sent| Done {
        id: sent.message.id,
        to: draft.to.clone(),
        repeated: is_repeat(sent.is_new, sent.message.id, draft)
            .then(|| sent.message.body == *body),
        failed: (sent.message.receipt == ReceiptState::Failed.as_str())
            .then(|| sent.message.reason.clone().unwrap_or_default()),
        unfiled: sent.unfiled,
        shape: Some(sent.message),
    }))
}

fn call(draft: &Draft, body: &str) -> method::Send {
    let millis = |d: SignedDuration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    method::Send {
        id: Some(draft.id),
        from: Some(draft.from.clone()),
        from_evidence: Some(draft.from_evidence),
        to: Some(draft.to.clone()),
        subject: draft.subject.clone(),
        priority: Some(draft.priority),
        reply_to: draft.reply_to.map(IdPrefix::from),
        key: draft.key.clone(),
        ttl_ms: draft.ttl.map(millis),
        not_before: draft.not_before,
        deadline_ms: draft.deadline.map(millis),
        expects_reply: draft.expects_reply,
        closes: draft.closes.map(IdPrefix::from),
        allow_self: draft.allow_self,
        raw: draft.raw,
        asked_at: draft.raw.then(posthaste_store::times::now),
        ..method::Send::new(body)
    }
}

/// Return whether another message has the same key. A message with the same id is this one: a
/// session has stored it, but its reply came too late.
fn is_repeat(is_new: bool, id: MessageId, draft: &Draft) -> bool {
    !is_new && draft.key.is_some() && id != draft.id
}

fn sent(context: &Context, posted: &Posted, draft: &Draft) -> Result<Done> {
    let message = &posted.state.message;
    let repeated = is_repeat(posted.is_new, message.id, draft).then(|| {
        let there = files::body(&context.home, message).ok().map(Body::Inline);
        there.as_ref() == Some(&draft.body)
    });
    let shape = if context.json {
        let body = message_text::text_or_loss(&context.home, &posted.state)?;
        Some(wire::Message::new(&posted.state, body, context.now))
    } else {
        None
    };
    Ok(Done {
        id: message.id,
        to: message.to.clone(),
        repeated,
        failed: failure(&posted.state, context.now),
        unfiled: posted.unfiled.clone(),
        shape,
    })
}

/// Return the reason if a message ended as soon as it was stored.
fn failure(state: &MessageState, now: Timestamp) -> Option<String> {
    match state.status.end {
        Some(End::Failed) => Some(why::reason(state, now).unwrap_or_default()),
        Some(End::Archived | End::Deleted | End::Cancelled | End::Expired) | None => None,
    }
}

fn tell(context: &mut Context, sent: &[Done], answer: Answer) -> Result<()> {
    for Done { to, repeated, .. } in sent {
        let other = match repeated {
            None => continue,
            Some(true) => "",
            Some(false) => ", with a different text",
        };
        note(format!(
            "a message with this key was sent to {to} already{other}; nothing new was stored"
        ));
    }
    for Done { id, unfiled, .. } in sent {
        if let Some(why) = unfiled {
            let id = id.id8();
            note(format!(
                "message {id} is stored, but its file is not written yet ('ph show {id}' writes it): {why}"
            ));
        }
    }
    let ids: Vec<_> = sent.iter().map(|sent| sent.id.to_string()).collect();
    let messages: Vec<_> = sent.iter().filter_map(|sent| sent.shape.as_ref()).collect();
    mailbox::print_sent(context, &ids, &messages, answer)
        .map_err(|report| report.after(&format!("stored as {}, but", ids.join(", "))))
}

pub(crate) fn new_id() -> MessageId {
    MessageId(uuid::Uuid::new_v4())
}
