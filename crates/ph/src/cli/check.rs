use super::elsewhere;
use super::names::{AddressParser, complete_agents};
use crate::book::Address;
use crate::context::{Context, Said};
use crate::letterbox;
use crate::output::note;
use crate::report::{Code, Report, Result};
use crate::worklist;
use posthaste_core::inject::{self, Entry, MAX_BYTES};
use posthaste_core::{AgentName, Body, text};
use posthaste_store::{Done, Injection, Job, Journal, Patience, files};
use posthaste_wire::Count;

/// Ask whether there is unread mail
///
/// Says how much and exits with 0; says nothing and exits with 1 where there is none. Changes
/// nothing.
///
/// With --inject it is what an agent's hook calls at a prompt: it prints new mail as a reminder
/// for the agent, most urgent first, each message once, and exits with 0 whatever happens. It
/// records that they were shown, and changes nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph check coder-1 && echo 'there is mail'
  ph check --inject")]
pub(super) struct Args {
    /// Whose mail [default: PH_AGENT's, else the person's]
    #[arg(value_name = "NAME", add = complete_agents(), value_parser = AddressParser)]
    name: Option<Address>,
    /// Print new mail as a reminder for the agent that calls
    #[arg(long)]
    pub(super) inject: bool,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = whose(context, args)?;
    let (total, unread) = if let Some(script) = elsewhere::script(context)? {
        let count = elsewhere::check(context, &script, &name)?;
        (count.total, count.unread)
    } else {
        super::count::in_journal(context, &name)?
    };
    if context.json {
        context.out.json(&Count { total, unread })?;
    } else if unread > 0 {
        context
            .out
            .line(format!("{unread} unread message(s) for {name}"))?;
    }
    Ok(if unread > 0 { Code::Ok } else { Code::No })
}

/// What a hook calls: an agent must never fail because of its mail.
#[inline(never)]
pub(super) fn inject(args: &Args, said: &Said) -> Code {
    if let Err(report) = try_inject(args, said)
        && report.is_failure()
    {
        note(format!("no mail was shown: {}", report.message()));
    }
    Code::Ok
}

fn try_inject(args: &Args, said: &Said) -> Result<()> {
    let mut context = Context::new(said)?;
    let name = whose(&context, args)?;
    if let Some(reminder) = reminder(&mut context, &name, note)? {
        context.out.bytes(reminder.as_bytes())?;
    }
    context.out.flush()
}

/// New mail of an agent as a reminder for it, if there is any. From then on it counts as shown.
pub(crate) fn reminder(
    context: &mut Context,
    name: &AgentName,
    complain: fn(String),
) -> Result<Option<String>> {
    // A loop's mail is in its prompt, all of it.
    if worklist::iteration(None)?.is_some() {
        return Ok(None);
    }
    let (me, _) = context.me()?;
    if me != *name && !me.is_human() {
        // It would count as shown, and its own agent would never hear of it.
        return Err(Report::refused(format!(
            "{me} cannot be shown the mail of {name}"
        )));
    }
    if let Err(report) = elsewhere::take_in(context, name) {
        complain(format!("no new mail was asked for: {}", report.message()));
    }
    let patience = Patience::HOOK.0.min(context.config.patience.0);
    // Silent where there is nothing yet: this runs at every prompt.
    let home = context.home.clone();
    let Some(mut journal) = Journal::open_existing(home, Patience(patience))? else {
        return Ok(None);
    };
    if !journal.has_not_shown(name, context.now)? {
        return Ok(None);
    }
    // Recorded before it is printed: shown twice would be worse than found in the inbox later.
    let Ok(Done::Injected(Injection { letters, unread })) = journal.commit(Job::Inject {
        now: context.now,
        agent: name.clone(),
    })?
    else {
        return Ok(None);
    };
    let bodies: Vec<String> = letters
        .iter()
        .map(|letter| match &letter.message.envelope.body {
            Body::Inline(body) => text::head(body, 16 * MAX_BYTES).to_owned(),
            Body::Filed { bytes, .. } => match files::ensure(&context.home, &letter.message) {
                Ok(path) => format!("({bytes} bytes, in {})", path.display()),
                Err(_) => format!("({bytes} bytes)"),
            },
        })
        .collect();
    let entries: Vec<_> = letters
        .iter()
        .zip(&bodies)
        .map(|(letter, text)| Entry { letter, text })
        .collect();
    let reminder = (!entries.is_empty()).then(|| inject::reminder(&entries, unread));
    letterbox::leave(journal);
    Ok(reminder)
}

fn whose(context: &Context, args: &Args) -> Result<AgentName> {
    match &args.name {
        Some(name) => context.config.book.agent(name),
        None => Ok(context.me()?.0),
    }
}
