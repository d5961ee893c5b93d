//! Parsers and shell completion for names and ids on the command line.

use crate::context::{Context, GlobalOptions};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use posthaste_client::roster::Address;
use posthaste_core::{AgentName, IdPrefix, MessageState, Priority, TaskStatus, text};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Journal, Listing, Patience};
use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

/// Why an argument is invalid, and how to correct it. Displayed like an error of clap with a tip.
#[derive(Debug)]
pub(super) struct InvalidArgument {
    pub(super) why: String,
    pub(super) tip: Option<String>,
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        let mut tip = self.tip.iter();
        tip.try_for_each(|tip| write!(f, "\n\n  tip: {tip}"))
    }
}

impl std::error::Error for InvalidArgument {}

type Parsed<T> = std::result::Result<T, InvalidArgument>;

/// Parse an agent's name. The error suggests a valid name.
pub(super) fn parse_name(text: &str) -> Parsed<AgentName> {
    AgentName::parse(text).map_err(|error| InvalidArgument {
        why: error.to_string(),
        tip: AgentName::suggestion(text).map(|name| format!("'{name}' is a valid name")),
    })
}

/// Parse a recipient: an agent's name, or '@' and the name of an alias or group.
pub(super) fn parse_address(text: &str) -> Parsed<Address> {
    let listed = text.strip_prefix('@');
    Ok(Address {
        name: parse_name(listed.unwrap_or(text))?,
        is_listed: listed.is_some(),
    })
}

/// Parse a message's id or an id prefix.
pub(super) fn parse_id(text: &str) -> Parsed<IdPrefix> {
    parse_id_of(text, "'ph inbox' lists ids")
}

/// Parse a task's id or an id prefix.
pub(super) fn parse_task_id(text: &str) -> Parsed<IdPrefix> {
    parse_id_of(text, "'ph task ls' lists ids")
}

fn parse_id_of(text: &str, tip: &str) -> Parsed<IdPrefix> {
    IdPrefix::parse(text).map_err(|error| InvalidArgument {
        why: error.to_string(),
        tip: Some(tip.to_owned()),
    })
}

/// Minimum length of an id prefix beside ids of scripts, which may be short.
const MIN_PREFIX_DIGITS: usize = 8;

/// Parse an id of ours that cannot be mistaken for the id of a script.
pub(super) fn long_prefix(id: &str) -> Option<IdPrefix> {
    let prefix = IdPrefix::parse(id).ok()?;
    let digits = prefix.as_str().chars().filter(|c| *c != '-').count();
    (digits >= MIN_PREFIX_DIGITS).then_some(prefix)
}

/// An id as it was typed. If a script keeps the mail, an id may be any text.
#[derive(Debug, Clone)]
pub(super) struct TypedId(pub(super) String);

impl TypedId {
    /// Parse this as the id of a message in the journal, or a prefix of it.
    pub(super) fn prefix(&self) -> Result<IdPrefix> {
        IdPrefix::parse(&self.0).map_err(|error| {
            let shown = text::one_line(&self.0, 80);
            Report::usage(format!("invalid value '{shown}' for '<ID>': {error}"))
                .hint("'ph inbox' lists ids")
        })
    }

    /// Return this as an id for a script.
    pub(super) fn for_script(&self) -> Result<&str> {
        match self.0.as_str() {
            id if id.is_empty() || id.contains('\0') => Err(Report::usage("an id cannot be empty")),
            id => Ok(id),
        }
    }
}

impl From<String> for TypedId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Return a parser that accepts `words` only.
pub(super) fn one_of<T>(
    words: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}

/// Parse a priority.
pub(super) fn priority() -> impl TypedValueParser<Value = Priority> {
    one_of(Priority::ALL.map(Priority::as_str))
}

/// Complete the name of a harness.
pub(super) fn complete_harnesses() -> ArgValueCompleter {
    complete(|| {
        let context = Context::with_any_settings(&GlobalOptions::default()).ok()?;
        let catalogue = context.catalogue().ok()?;
        let names = catalogue.entries().iter().map(|entry| entry.name.clone());
        Some(names.map(CompletionCandidate::new).collect())
    })
}

/// Complete the names of agents that have ever had mail. In a list, only the last name is being
/// typed.
pub(super) fn complete_agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let (before, last) = current
            .rfind(',')
            .map_or(("", &*current), |comma| current.split_at(comma + 1));
        let names = journal().and_then(|mut journal| journal.agents().ok());
        let mut names = names.unwrap_or_default();
        let context = Context::new(&GlobalOptions::default());
        names.extend(context.map_or_else(|_| Vec::new(), |context| context.config.roster.names()));
        if !names.contains(&AgentName::human()) {
            names.push(AgentName::human());
        }
        let names = names.iter().filter(|name| name.as_str().starts_with(last));
        names
            .map(|name| CompletionCandidate::new(format!("{before}{name}")))
            .collect()
    })
}

/// Complete the ids in the caller's inbox.
pub(super) fn complete_ids() -> ArgValueCompleter {
    complete(|| {
        let now = posthaste_store::times::now();
        let messages = journal()?.inbox(&caller(), Listing::All, now).ok()?;
        let candidates = messages.iter().map(|MessageState { message, .. }| {
            let from = format!("from {}", message.envelope.from);
            CompletionCandidate::new(message.id.id8()).help(Some(from.into()))
        });
        Some(candidates.collect())
    })
}

/// Complete the ids of the caller's tasks.
pub(super) fn complete_tasks() -> ArgValueCompleter {
    complete(|| {
        let tasks = journal()?.tasks(&caller(), &TaskStatus::ALL).ok()?;
        let candidates = tasks.iter().map(|task| {
            let text = text::one_line(&task.text, 40);
            CompletionCandidate::new(task.id.id8()).help(Some(text.into()))
        });
        Some(candidates.collect())
    })
}

/// Complete with the candidates that begin with what was typed.
fn complete(candidates: fn() -> Option<Vec<CompletionCandidate>>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let mut candidates = candidates().unwrap_or_default();
        candidates.retain(|one| one.get_value().to_string_lossy().starts_with(&*current));
        candidates
    })
}

/// Return the agent that runs this process, or the person.
fn caller() -> AgentName {
    let name = std::env::var("PH_AGENT").ok();
    let name = name.and_then(|name| AgentName::parse(&name).ok());
    name.unwrap_or_else(AgentName::human)
}

/// Open the journal of the default home. A completion never waits long for it.
fn journal() -> Option<Journal> {
    let context = Context::new(&GlobalOptions::default()).ok()?;
    Journal::open_existing(context.home, Patience::HOOK).ok()?
}
