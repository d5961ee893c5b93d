use crate::cli::loop_::worklist;
use crate::cli::mail::mailbox::{self, Mailbox};
use crate::cli::names::{AddressParser, complete_agents};
use crate::context::{Context, GlobalOptions};
use crate::output::{self, note};
use posthaste_client::mail;
use posthaste_client::roster::Address;
use posthaste_core::inject::{self, Entry, MAX_BYTES};
use posthaste_core::offer;
use posthaste_core::{AgentName, Body, MessageId, MessageState, text};
use posthaste_store::operation::{Inject, Injection, RecordDelivery};
use posthaste_store::report::{Code, Report, Result};
use posthaste_store::{InjectLock, Journal, Patience, files};

/// Evidence recorded when a hook has printed a message.
const PRINTED: &str = "its hook has printed it whole";

/// Check for unread messages
///
/// Prints the number of unread messages and exits with 0, or prints nothing and exits with 1 if
/// there are none. Changes nothing.
///
/// --inject is for an agent's hook. It prints new mail as a reminder for the agent, most urgent
/// first, each message once, and always exits with 0. Each message is 'offering' before it is
/// printed and 'offered' afterwards. If the hook is killed in between, or cannot print, the message
/// is offered again, marked as a repeat.
///
/// If the person runs it, --inject prints the agent's mail and records nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph check coder-1 && echo 'there is mail'
  ph check --inject")]
pub(crate) struct Args {
    /// Owner of the inbox [default: PH_AGENT, else human]
    #[arg(value_name = "NAME", add = complete_agents(), value_parser = AddressParser)]
    name: Option<Address>,
    /// Print new mail as a reminder for the calling agent
    #[arg(long, conflicts_with = "json")]
    pub(crate) inject: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = context.owner(args.name.as_ref())?;
    let count = Mailbox::open(context)?.check(context, &name)?;
    let unread = count.unread;
    if context.json {
        context.out.json(&count)?;
    } else if unread > 0 {
        context
            .out
            .line(format!("{unread} unread message(s) for {name}"))?;
    }
    Ok(if unread > 0 { Code::Ok } else { Code::No })
}

/// Run `ph check --inject` for a hook. Always succeeds: an agent must never fail because of its mail.
pub(crate) fn inject(args: &Args, said: &GlobalOptions) -> Code {
    if let Err(report) = try_inject(args, said)
        && report.is_failure()
    {
        note(format!("no mail was shown: {}", report.message()));
    }
    Code::Ok
}

fn try_inject(args: &Args, said: &GlobalOptions) -> Result<()> {
    let mut context = Context::new(said)?;
    let name = context.owner(args.name.as_ref())?;
    let Some(reminder) = reminder(&mut context, &name, Caller::Anybody, note)? else {
        return Ok(());
    };
    let printed = output::all_to_stdout(reminder.text.as_bytes());
    let printed = printed.map_err(|error| error.to_string());
    reminder.settle(&context, printed.as_ref().map_err(String::as_str))?;
    printed.map_err(Report::storage)
}

/// The process on whose behalf mail is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A hook that the person installed for an agent by name.
    Hook,
    /// The agent in PH_AGENT, or the person.
    Anybody,
}

/// An agent's new mail, as text for the agent.
#[derive(Debug)]
pub(crate) struct Reminder {
    pub(crate) text: String,
    shown: Shown,
}

/// The messages that a reminder offers.
#[derive(Debug)]
enum Shown {
    /// None, because a person views an agent's mail.
    ToThePerson { agent: AgentName },
    /// These messages, as soon as they are printed.
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
                "shown to you, not recorded as shown to {agent}; a hook of {agent} sets \
                PH_AGENT={agent}"
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
                    Ok(()) => offer::OfferReport::Offered {
                        route: inject::ROUTE.to_owned(),
                        evidence: PRINTED.to_owned(),
                        proof_awaited: false,
                    },
                    Err(why) => offer::OfferReport::Uncertain {
                        reason: format!("a hook could not print it: {why}"),
                    },
                };
                let record = RecordDelivery {
                    now: context.now,
                    agent,
                    ids,
                    report: said,
                };
                journal.commit(record)??;
                drop(lock);
                mail::leave(*journal);
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
    // A loop puts all mail into its prompts.
    if worklist::iteration(None)?.is_some() {
        return Ok(None);
    }
    let (me, _) = context.me()?;
    if me != *name && !me.is_human() {
        // The mail would be recorded as shown, and its recipient would never see it.
        return Err(Report::refused(format!(
            "{me} cannot view the mail of {name}"
        )));
    }
    if let Err(report) = mailbox::import_new(context, name) {
        complain(format!(
            "the script was not asked for new mail: {}",
            report.message()
        ));
    }
    let patience = Patience::HOOK.0.min(context.config.patience.0);
    // This runs at every prompt, so a missing journal is not reported.
    let home = context.home.clone();
    let Some(mut journal) = Journal::open_existing(home, Patience(patience))? else {
        return Ok(None);
    };
    if !journal.has_not_shown(name, context.now)? {
        return Ok(None);
    }
    if me != *name && caller == Caller::Anybody {
        return preview(context, journal, name).map(Some);
    }
    if output::goes_nowhere() {
        let nowhere = "standard output is closed or is /dev/null";
        return Err(Report::storage(nowhere));
    }
    claim(context, journal, name)
}

/// Return the reminder that an agent would get, for a person.
fn preview(context: &Context, mut journal: Journal, name: &AgentName) -> Result<Reminder> {
    let messages = inject::choose(journal.pending(name, context.now)?.due);
    let unread = journal.count(name, context.now)?.unread;
    let agent = name.clone();
    Ok(Reminder {
        text: render(context, &messages, unread),
        shown: Shown::ToThePerson { agent },
    })
}

/// Record the offer before it is printed, so that no other route offers these messages. Return
/// `None` if another hook holds the inject lock for too long.
fn claim(context: &Context, mut journal: Journal, name: &AgentName) -> Result<Option<Reminder>> {
    let Some(lock) = InjectLock::acquire(&context.home, name, Patience::HOOK.0)? else {
        return Ok(None);
    };
    let inject = Inject {
        now: context.now,
        agent: name.clone(),
    };
    let Ok(Injection { messages, unread }) = journal.commit(inject)? else {
        return Ok(None);
    };
    if messages.is_empty() {
        mail::leave(journal);
        return Ok(None);
    }
    Ok(Some(Reminder {
        text: render(context, &messages, unread),
        shown: Shown::ToItsAgent {
            journal: Box::new(journal),
            agent: name.clone(),
            ids: messages.iter().map(|state| state.message.id).collect(),
            lock,
        },
    }))
}

fn render(context: &Context, messages: &[MessageState], unread: u64) -> String {
    let bodies: Vec<String> = messages
        .iter()
        .map(|state| match &state.message.envelope.body {
            Body::Inline(body) => text::head(body, 16 * MAX_BYTES).to_owned(),
            Body::Filed { bytes, .. } => match files::ensure(&context.home, &state.message) {
                Ok(path) => format!("({bytes} bytes, in {})", path.display()),
                Err(_) => format!("({bytes} bytes)"),
            },
        })
        .collect();
    let entries: Vec<_> = messages
        .iter()
        .zip(&bodies)
        .map(|(state, text)| Entry { state, text })
        .collect();
    inject::reminder(&entries, unread)
}
