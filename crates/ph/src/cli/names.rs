//! Parsers and shell completion for names and ids on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use posthaste_client::roster::Address;
use posthaste_core::{AgentName, IdPrefix, Priority, TaskStatus, text};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Journal, Listing, Patience};
use std::ffi::OsStr;

/// Parses an agent's name. The error suggests a valid name.
#[derive(Clone)]
pub(super) struct NameParser;

impl TypedValueParser for NameParser {
    type Value = AgentName;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<AgentName, clap::Error> {
        let said = value.to_string_lossy();
        AgentName::parse(&said).map_err(|error| {
            let hint = AgentName::suggestion(&said).map(|name| format!("'{name}' is a valid name"));
            invalid(command, arg, &said, &error.to_string(), hint)
        })
    }
}

/// Parses a recipient: an agent's name, or '@' and the name of an alias or group.
#[derive(Clone)]
pub(super) struct AddressParser;

impl TypedValueParser for AddressParser {
    type Value = Address;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<Address, clap::Error> {
        let said = value.to_string_lossy();
        let (name, is_listed) = match said.strip_prefix('@') {
            Some(name) => (OsStr::new(name), true),
            None => (value, false),
        };
        let name = NameParser.parse_ref(command, arg, name)?;
        Ok(Address { name, is_listed })
    }
}

/// Parses an id or an id prefix.
#[derive(Clone)]
pub(super) struct IdParser;

impl TypedValueParser for IdParser {
    type Value = IdPrefix;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<IdPrefix, clap::Error> {
        let said = value.to_string_lossy();
        IdPrefix::parse(&said).map_err(|error| {
            invalid(
                command,
                arg,
                &said,
                &error.to_string(),
                Some("'ph inbox' lists ids".to_owned()),
            )
        })
    }
}

/// Parses a task's id or an id prefix.
#[derive(Clone)]
pub(super) struct TaskIdParser;

impl TypedValueParser for TaskIdParser {
    type Value = IdPrefix;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<IdPrefix, clap::Error> {
        let said = value.to_string_lossy();
        IdPrefix::parse(&said).map_err(|error| {
            let hint = Some("'ph task ls' lists ids".to_owned());
            invalid(command, arg, &said, &error.to_string(), hint)
        })
    }
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
    fn from(said: String) -> Self {
        Self(said)
    }
}

fn invalid(
    command: &clap::Command,
    arg: Option<&clap::Arg>,
    said: &str,
    why: &str,
    hint: Option<String>,
) -> clap::Error {
    let place = arg.map_or_else(String::new, |arg| format!(" for '{arg}'"));
    let shown = text::one_line(said, 80);
    let tip = hint.map_or_else(String::new, |hint| format!("\n\n  tip: {hint}"));
    let kind = clap::error::ErrorKind::ValueValidation;
    clap::Error::raw(
        kind,
        format!("invalid value '{shown}'{place}: {why}{tip}\n"),
    )
    .with_cmd(command)
}

/// Parse a priority.
pub(super) fn priority() -> impl TypedValueParser<Value = Priority> {
    PossibleValuesParser::new(Priority::ALL.map(Priority::as_str))
        .try_map(|said| said.parse::<Priority>())
}

/// Complete the name of a harness.
pub(super) fn complete_harnesses() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        let context =
            crate::context::Context::with_any_settings(&crate::context::GlobalOptions::default());
        let catalogue = context.and_then(|context| {
            posthaste_session::harness::Catalogue::load(
                &context.home,
                &context.config.harnesses.status_rows(),
            )
        });
        let names = catalogue
            .iter()
            .flat_map(posthaste_session::harness::Catalogue::entries);
        names
            .filter(|entry| entry.name.starts_with(&current))
            .map(|entry| CompletionCandidate::new(&entry.name))
            .collect()
    })
}

/// Complete the names of agents that have ever had mail.
pub(super) fn complete_agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        // In a list, only the last name is being typed.
        let (before, last) = current
            .rsplit_once(',')
            .map_or(("", current.as_str()), |(b, l)| (b, l));
        let names = journal()
            .and_then(|mut journal| journal.agents().ok())
            .unwrap_or_default();
        let human = AgentName::human();
        let listed = roster_names();
        let names: Vec<_> = names.into_iter().chain(listed).collect();
        names
            .iter()
            .chain((!names.contains(&human)).then_some(&human))
            .filter(|name| name.as_str().starts_with(last))
            .map(|name| {
                let whole = if before.is_empty() {
                    name.to_string()
                } else {
                    format!("{before},{name}")
                };
                CompletionCandidate::new(whole)
            })
            .collect()
    })
}

/// Complete the ids in the caller's inbox.
pub(super) fn complete_ids() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        let me = std::env::var("PH_AGENT")
            .ok()
            .and_then(|name| AgentName::parse(&name).ok());
        let me = me.unwrap_or_else(AgentName::human);
        let messages = journal()
            .and_then(|mut journal| {
                journal
                    .inbox(&me, Listing::All, posthaste_store::times::now())
                    .ok()
            })
            .unwrap_or_default();
        messages
            .iter()
            .map(|state| (state.message.id.id8(), &state.message))
            .filter(|(id, _)| id.starts_with(&current))
            .map(|(id, message)| {
                CompletionCandidate::new(id)
                    .help(Some(format!("from {}", message.envelope.from).into()))
            })
            .collect()
    })
}

/// Complete the ids of the caller's tasks.
pub(super) fn complete_tasks() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        let me = std::env::var("PH_AGENT").ok();
        let me = me.and_then(|name| AgentName::parse(&name).ok());
        let me = me.unwrap_or_else(AgentName::human);
        let tasks = journal().and_then(|mut journal| journal.tasks(&me, &TaskStatus::ALL).ok());
        tasks
            .unwrap_or_default()
            .iter()
            .map(|task| (task.id.id8(), task))
            .filter(|(id, _)| id.starts_with(&current))
            .map(|(id, task)| {
                CompletionCandidate::new(id).help(Some(text::one_line(&task.text, 40).into()))
            })
            .collect()
    })
}

/// Return the aliases and groups in the settings.
fn roster_names() -> Vec<AgentName> {
    let context = crate::context::Context::new(&crate::context::GlobalOptions::default());
    let names = context.map(|context| context.config.roster.names());
    names.unwrap_or_default()
}

/// Open the journal of the default home. A completion never waits long for it.
fn journal() -> Option<Journal> {
    let context = crate::context::Context::new(&crate::context::GlobalOptions::default()).ok()?;
    Journal::open_existing(context.home, Patience::HOOK).ok()?
}
