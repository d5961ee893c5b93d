//! The recipients of a message: agents, aliases, groups, or all running agents. They are resolved
//! before anything is sent.

use crate::cli::mail::compose::body::BodyArgs;
use crate::cli::names::InvalidArgument;
use crate::cli::prelude::*;
use crate::cli::session::nudge;
use posthaste_client::session::sessions;
use posthaste_store::live::SessionDir;
use posthaste_wire::Activity;

#[derive(Debug, clap::Args)]
pub(crate) struct RecipientArgs {
    /// Recipients: agents, aliases and groups, separated by commas; '@NAME' must be an alias or a
    /// group
    #[arg(value_name = "TO", required_unless_present = "all", add = complete_agents())]
    to: Option<String>,
    /// Send to every running agent except the sender
    #[arg(long)]
    all: bool,
    /// Nudge each recipient once when the message is stored
    #[arg(long)]
    pub(crate) notify: bool,
}

/// The agents that get a copy, and whether the address can have several agents.
#[derive(Debug)]
pub(crate) struct Agents {
    pub(crate) names: Vec<AgentName>,
    pub(crate) is_list: bool,
}

impl RecipientArgs {
    /// Read the text. With --all, the first argument is the text.
    pub(crate) fn body(&self, body: BodyArgs) -> Result<String> {
        match (&self.to, self.all) {
            (Some(text), true) => body.with(text)?.read(),
            (_, _) => body.read(),
        }
    }

    /// Resolve the recipients, without duplicates.
    pub(crate) fn agents(
        &self,
        context: &Context,
        from: &AgentName,
        allow_self: bool,
    ) -> Result<Agents> {
        let Some(typed) = self.to.as_deref().filter(|_| !self.all) else {
            let names = running_agents(context, from)?;
            return Ok(Agents {
                names,
                is_list: true,
            });
        };
        resolve(context, &addresses(typed)?, from, allow_self)
    }

    /// Check the arguments before anything is read or opened.
    pub(crate) fn check(&self) -> Result<()> {
        match self.to.as_deref().filter(|_| !self.all) {
            Some(typed) => addresses(typed).map(drop),
            None => Ok(()),
        }
    }
}

/// Nudge agents that have got a message, and print whether each was nudged.
pub(crate) fn notify(context: &Context, from: &AgentName, names: &[AgentName]) {
    let usual = format!("You have mail from {from}");
    for name in names {
        let text = context.config.roster.nudge(name).unwrap_or(&usual);
        match nudge::nudge(context, name, text) {
            Ok(None) => note(format!("nudged {name}")),
            Ok(Some(reason)) => note(format!("{name} was not nudged: {reason}")),
            Err(report) => note(format!("{name} was not nudged: {}", report.message())),
        }
    }
}

fn addresses(typed: &str) -> Result<Vec<Address>> {
    typed.split(',').map(address).collect()
}

fn address(typed: &str) -> Result<Address> {
    parse_address(typed).map_err(|InvalidArgument { why, tip }| {
        let shown = text::one_line(typed, 80);
        Report::usage(format!("invalid value '{shown}' for '<TO>': {why}"))
            .hint(tip.unwrap_or_else(|| "for example 'coder-1'".to_owned()))
    })
}

/// Resolve addresses to agents. A sender that writes to its own group gets no copy.
pub(crate) fn resolve(
    context: &Context,
    addresses: &[Address],
    from: &AgentName,
    allow_self: bool,
) -> Result<Agents> {
    let roster = &context.config.roster;
    let mut names = roster.resolve(addresses)?;
    for address in addresses {
        refuse_typo(context, address)?;
    }
    let typed: Vec<_> = addresses.iter().map(|address| &address.name).collect();
    let is_list = names.len() != 1 || typed.iter().any(|name| roster.is_group(name));
    let is_in_group = |name: &AgentName| name == from && !typed.contains(&name);
    if !allow_self {
        names.retain(|name| !is_in_group(name));
    }
    if names.is_empty() {
        return Err(Report::refused("the sender is the only recipient")
            .hint("'ph send --allow-self' sends a message to yourself"));
    }
    Ok(Agents { names, is_list })
}

/// Refuse an unknown name that is one character away from an alias or a group: nobody would read
/// its inbox.
fn refuse_typo(context: &Context, address: &Address) -> Result<()> {
    let Address { name, is_listed } = address;
    let Some(meant) = context.config.roster.nearest(name).filter(|_| !is_listed) else {
        return Ok(());
    };
    if context.config.roster.has(name) || SessionDir::of(&context.home, name).record().is_some() {
        return Ok(());
    }
    let known = match context.existing_journal()? {
        Some(mut journal) => journal.agents()?,
        None => Vec::new(),
    };
    if name.is_human() || known.contains(name) {
        return Ok(());
    }
    Err(
        Report::usage(format!("no agent named '{name}' has ever existed")).hint(format!(
            "did you mean {meant}? if not, start the agent first: ph run --name {name} COMMAND"
        )),
    )
}

fn running_agents(context: &Context, from: &AgentName) -> Result<Vec<AgentName>> {
    let living = sessions::running(&context.home, context.config.patience, context.now)?;
    let names: Vec<_> = living
        .iter()
        .filter(|session| session.activity != Activity::Exited)
        .filter_map(|session| AgentName::parse(&session.name).ok())
        .filter(|name| name != from)
        .collect();
    if names.is_empty() {
        return Err(
            Report::refused(format!("no agent other than {from} is running"))
                .hint("'ph ls' lists running agents"),
        );
    }
    Ok(names)
}
