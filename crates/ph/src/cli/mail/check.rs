use crate::cli::loop_::worklist;
use crate::cli::mail::script_mailbox;
use crate::cli::names::{AddressParser, complete_agents};
use crate::context::{Context, Said};
use crate::output::{self, note};
use posthaste_client::mailbox;
use posthaste_client::roster::Address;
use posthaste_core::inject::{self, Entry, MAX_BYTES};
use posthaste_core::offer;
use posthaste_core::{AgentName, Body, Letter, MessageId, text};
use posthaste_store::report::{Code, Report, Result};
use posthaste_store::{Done, InjectLock, Injection, Job, Journal, Patience, files};
use posthaste_wire::Count;

/// Evidence recorded when a hook has printed a message.
const PRINTED: &str = "its hook has printed it whole";

/// Check for unread messages
///
/// Says how much and exits with 0; says nothing and exits with 1 where there is none. Changes
/// nothing.
///
/// With --inject, for an agent's hook: prints new mail as a reminder for the agent, most urgent
/// first, each message once, and always exits with 0. Each message is 'offering' before it is
/// printed and 'offered' afterwards. If the hook is killed in between, or cannot print, the message
/// is offered again, marked as a repeat. For a person, --inject shows the agent's mail and records
/// nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph check coder-1 && echo 'there is mail'
  ph check --inject")]
pub(crate) struct Args {
    /// Whose mail [default: PH_AGENT's, else the person's]
    #[arg(value_name = "NAME", add = complete_agents(), value_parser = AddressParser)]
    name: Option<Address>,
    /// Print new mail as a reminder for the agent that calls
    #[arg(long, conflicts_with = "json")]
    pub(crate) inject: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = whose(context, args)?;
    let (total, unread) = if let Some(script) = script_mailbox::script(context)? {
        let count = script_mailbox::check(context, &script, &name)?;
        (count.total, count.unread)
    } else {
        crate::cli::mail::count::in_journal(context, &name)?
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
pub(crate) fn inject(args: &Args, said: &Said) -> Code {
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
    let Some(reminder) = reminder(&mut context, &name, Caller::Anybody, note)? else {
        return Ok(());
    };
    let printed = output::all_to_stdout(reminder.text.as_bytes());
    let printed = printed.map_err(|error| error.to_string());
    reminder.settle(&context, printed.as_ref().map_err(String::as_str))?;
    printed.map_err(Report::storage)
}

/// On whose behalf mail is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// An agent's own hook, which its person has set up for it by name.
    Hook,
    /// Whoever this process says that it is.
    Anybody,
}

/// New mail of an agent, as it is put before it.
#[derive(Debug)]
pub(crate) struct Reminder {
    pub(crate) text: String,
    shown: Shown,
}

/// What counts as shown by it.
#[derive(Debug)]
enum Shown {
    /// Nothing: a person looks at an agent's mail.
    ToThePerson { agent: AgentName },
    /// These messages, once they are printed.
    ToItsAgent {
        journal: Box<Journal>,
        agent: AgentName,
        ids: Vec<MessageId>,
        /// Held until the outcome is recorded.
        lock: InjectLock,
    },
}

impl Reminder {
    /// Record whether the reminder was printed. If printing failed, its messages become uncertain,
    /// because the agent may have seen a part, and are offered again, marked as repeats.
    pub(crate) fn settle(
        self,
        context: &Context,
        printed: std::result::Result<&(), &str>,
    ) -> Result<()> {
        match (self.shown, printed) {
            (Shown::ToThePerson { agent }, Ok(())) => note(format!(
                "shown to you, not counted as shown to {agent}; its own hook says who it is \
                 (PH_AGENT={agent})"
            )),
            (Shown::ToThePerson { .. }, Err(_)) => {}
            (
                Shown::ToItsAgent {
                    mut journal,
                    agent,
                    ids,
                    lock,
                },
                printed,
            ) => {
                let said = match printed {
                    Ok(()) => offer::Said::Offered {
                        route: inject::ROUTE.to_owned(),
                        evidence: PRINTED.to_owned(),
                        proof_awaited: false,
                    },
                    Err(why) => offer::Said::Uncertain {
                        reason: format!("a hook could not print it: {why}"),
                    },
                };
                let job = Job::Say {
                    now: context.now,
                    agent,
                    ids,
                    said,
                };
                journal.commit(job)??;
                drop(lock);
                mailbox::leave(*journal);
            }
        }
        Ok(())
    }
}

/// Return an agent's new mail as a reminder, if there is any. Unless the caller is a person, the
/// messages are 'offering' until [`Reminder::settle`].
pub(crate) fn reminder(
    context: &mut Context,
    name: &AgentName,
    caller: Caller,
    complain: fn(String),
) -> Result<Option<Reminder>> {
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
    if let Err(report) = script_mailbox::take_in(context, name) {
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
    if me != *name && caller == Caller::Anybody {
        return look(context, journal, name).map(Some);
    }
    if output::goes_nowhere() {
        let nowhere = "standard output is closed, or goes nowhere";
        return Err(Report::storage(nowhere));
    }
    claim(context, journal, name)
}

/// What an agent would be shown, for a person.
fn look(context: &Context, mut journal: Journal, name: &AgentName) -> Result<Reminder> {
    let letters = inject::choose(journal.pending(name, context.now)?.due);
    let unread = journal.count(name, context.now)?.unread;
    let agent = name.clone();
    Ok(Reminder {
        text: told(context, &letters, unread),
        shown: Shown::ToThePerson { agent },
    })
}

/// Record the offer before it is printed, so that no other route offers these messages. Return
/// `None` if another hook holds the inject lock for too long.
fn claim(context: &Context, mut journal: Journal, name: &AgentName) -> Result<Option<Reminder>> {
    let Some(lock) = InjectLock::acquire(&context.home, name, Patience::HOOK.0)? else {
        return Ok(None);
    };
    let job = Job::Inject {
        now: context.now,
        agent: name.clone(),
    };
    let Ok(Done::Injected(Injection { letters, unread })) = journal.commit(job)? else {
        return Ok(None);
    };
    if letters.is_empty() {
        mailbox::leave(journal);
        return Ok(None);
    }
    Ok(Some(Reminder {
        text: told(context, &letters, unread),
        shown: Shown::ToItsAgent {
            journal: Box::new(journal),
            agent: name.clone(),
            ids: letters.iter().map(|letter| letter.message.id).collect(),
            lock,
        },
    }))
}

fn told(context: &Context, letters: &[Letter], unread: u64) -> String {
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
    inject::reminder(&entries, unread)
}

fn whose(context: &Context, args: &Args) -> Result<AgentName> {
    match &args.name {
        Some(name) => context.config.book.agent(name),
        None => Ok(context.me()?.0),
    }
}
