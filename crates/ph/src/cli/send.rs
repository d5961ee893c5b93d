use super::body::{BodyArgs, one_line};
use super::names::{
    IdParser, NameParser, Recipients, RecipientsParser, complete_agents, complete_ids, priority,
};
use crate::context::Context;
use crate::letterbox;
use crate::output::note;
use crate::report::{Code, Report, Result};
use crate::times::{self, parse_duration, parse_point};
use jiff::SignedDuration;
use posthaste_core::{AgentName, Body, Draft, IdPrefix, MessageId, Priority};
use posthaste_store::{Job, Journal, Posted, files};

/// Write to one or more agents
///
/// The message is on disk when this answers. It prints the message's id, one a recipient. An
/// agent need not run, or ever have run: its inbox exists.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph send coder-1 'Please review the auth module'
  ph send coder-1,coder-2 --priority interrupt 'Stop: main is broken'
  git diff | ph send reviewer --subject 'today' --file -
  ph send coder-1 --in 10m 'Time to commit'
  ph send coder-1 --key nightly-42 'The nightly build failed'")]
pub(super) struct Args {
    /// Who it is for; several names are separated by commas
    #[arg(value_name = "TO", value_parser = RecipientsParser, add = complete_agents())]
    to: Recipients,
    #[command(flatten)]
    body: BodyArgs,
    /// What it is about
    #[arg(long, value_name = "TEXT", value_parser = one_line("subject"))]
    subject: Option<String>,
    /// interrupt, normal, idle-first or idle [default: the setting send.priority]
    #[arg(long, value_name = "P", value_parser = priority(), hide_possible_values = true)]
    priority: Option<Priority>,
    /// Who it is from [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    from: Option<AgentName>,
    /// The message that this one answers
    #[arg(long, value_name = "ID", value_parser = IdParser, add = complete_ids())]
    reply_to: Option<IdPrefix>,
    /// Send only once under this key: a repeat stores nothing and prints the first one's id,
    /// unless that was cancelled or has expired
    #[arg(long, value_name = "KEY", value_parser = one_line("key"))]
    key: Option<String>,
    /// Let it expire if nobody has seen it for this long
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    ttl: Option<SignedDuration>,
    /// Deliver it no sooner than this time
    #[arg(long, value_name = "T", conflicts_with = "after")]
    at: Option<String>,
    /// Deliver it no sooner than after this long
    #[arg(long = "in", value_name = "D", id = "after", value_parser = parse_duration)]
    after: Option<SignedDuration>,
    /// Allow a message to oneself
    #[arg(long)]
    allow_self: bool,
}

pub(super) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.from.as_ref())?;
    let body = args.body.read()?;
    // Whoever typed or piped it may have taken a while.
    context.now = times::now();
    let not_before = match (&args.at, args.after) {
        (Some(at), _) => Some(parse_point(at, context.now)?),
        (None, Some(after)) => Some(context.now.checked_add(after).map_err(|_| {
            Report::usage("the time that --in gives is past the end of the calendar")
        })?),
        (None, None) => None,
    };
    let mut journal = context.journal()?;
    let reply_to = match &args.reply_to {
        Some(prefix) => Some(journal.find(prefix)?.message.id),
        None => None,
    };
    let Recipients(to) = args.to;
    let answer = if to.len() > 1 {
        Answer::Ids
    } else {
        Answer::Id
    };
    let drafts = to.into_iter().map(|to| Draft {
        id: new_id(),
        from: from.clone(),
        from_evidence,
        to,
        subject: args.subject.clone(),
        body: Body::Inline(body.clone()),
        priority: args.priority.unwrap_or(context.config.priority),
        reply_to,
        key: args.key.clone(),
        ttl: args.ttl,
        not_before,
        allow_self: args.allow_self,
        raw: false,
    });
    let drafts = drafts.collect();
    post(context, journal, drafts, answer)
}

/// How the answer names what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The id alone; in JSON the message.
    Id,
    /// An id a line; in JSON an array.
    Ids,
    /// A sentence for a person; in JSON the message.
    Sentence,
}

/// Stores messages, all or none, and says so: after the answer, what can wait is done.
pub(super) fn post(
    context: &mut Context,
    mut journal: Journal,
    drafts: Vec<Draft>,
    answer: Answer,
) -> Result<Code> {
    let texts: Vec<_> = drafts
        .iter()
        .map(|draft| draft.key.as_ref().map(|_| draft.body.clone()))
        .collect();
    let job = Job::Post {
        now: context.now,
        drafts,
    };
    let posted = letterbox::post(&mut journal, job)?;
    for (posted, text) in posted
        .iter()
        .zip(texts)
        .filter(|(posted, _)| !posted.is_new)
    {
        let message = &posted.letter.message;
        let there = files::body(&context.home, message).ok().map(Body::Inline);
        let other = if there == text {
            ""
        } else {
            ", with another text"
        };
        note(format!(
            "a message with this key was sent to {} already{other}; nothing new was stored",
            message.to
        ));
    }
    let ids: Vec<_> = posted
        .iter()
        .map(|posted| posted.letter.message.id.to_string())
        .collect();
    print(context, &posted, answer)
        .and_then(|()| context.out.flush())
        .map_err(|report| report.after(&format!("stored as {}, but", ids.join(", "))))?;
    letterbox::leave(journal);
    Ok(Code::Ok)
}

fn print(context: &mut Context, posted: &[Posted], answer: Answer) -> Result<()> {
    if context.json {
        let letters: Vec<_> = posted.iter().map(|posted| posted.letter.clone()).collect();
        let messages = letterbox::all_as_json(&context.home, &letters, context.now)?;
        return match (answer, messages.as_slice()) {
            (Answer::Id | Answer::Sentence, [message]) => context.out.json(message),
            (Answer::Id | Answer::Ids | Answer::Sentence, several) => context.out.json(&several),
        };
    }
    for posted in posted {
        let id = posted.letter.message.id;
        match answer {
            Answer::Id | Answer::Ids => context.out.line(id)?,
            Answer::Sentence => context.out.line(format!("Message sent: {id}"))?,
        }
    }
    Ok(())
}

pub(super) fn new_id() -> MessageId {
    MessageId(uuid::Uuid::new_v4())
}
