use super::body::{BodyArgs, one_line};
use super::names::{
    IdParser, NameParser, Recipients, RecipientsParser, complete_agents, complete_ids, priority,
};
use crate::context::Context;
use crate::letterbox;
use crate::output::note;
use crate::report::{Code, Report, Result};
use crate::times::{parse_duration, parse_point};
use jiff::SignedDuration;
use posthaste_core::{AgentName, Body, Draft, IdPrefix, MessageId, Priority};
use posthaste_store::{Job, Posted};

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
    let not_before = match (&args.at, args.after) {
        (Some(at), _) => Some(parse_point(at, context.now)?),
        (None, Some(after)) => Some(context.now.checked_add(after).map_err(|_| {
            Report::usage("the time that --in gives is past the end of the calendar")
        })?),
        (None, None) => None,
    };
    let body = args.body.read()?;
    let mut journal = context.journal()?;
    let reply_to = match &args.reply_to {
        Some(prefix) => Some(journal.find(prefix)?.message.id),
        None => None,
    };
    let Recipients(to) = args.to;
    let is_list = to.len() > 1;
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
    });
    let job = Job::Post {
        now: context.now,
        drafts: drafts.collect(),
    };
    let posted = letterbox::post(&mut journal, job)?;
    answer(context, &posted, is_list)?;
    letterbox::leave(journal);
    Ok(Code::Ok)
}

/// Says what was stored: the ids alone, or the messages.
pub(super) fn answer(context: &mut Context, posted: &[Posted], is_list: bool) -> Result<()> {
    for repeat in posted.iter().filter(|posted| !posted.is_new) {
        note(format!(
            "{} has this message already; nothing new was stored",
            repeat.letter.message.to
        ));
    }
    if context.json {
        let letters: Vec<_> = posted.iter().map(|posted| posted.letter.clone()).collect();
        let messages = letterbox::all_as_json(&context.home, &letters, context.now)?;
        match messages.as_slice() {
            [message] if !is_list => context.out.json(message)?,
            several => context.out.json(&several)?,
        }
    } else {
        for posted in posted {
            context.out.line(posted.letter.message.id)?;
        }
    }
    context.out.flush()
}

pub(super) fn new_id() -> MessageId {
    MessageId(uuid::Uuid::new_v4())
}
