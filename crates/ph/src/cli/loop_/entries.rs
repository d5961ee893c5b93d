//! Arguments and output that the verbs for tasks and notes share.

use crate::cli::loop_::worklist;
use crate::context::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use posthaste_client::mail;
use posthaste_core::AgentName;
use posthaste_store::Journal;
use posthaste_store::report::{Code, Result};
use serde::Serialize;
use std::fmt::Display;
use std::str::FromStr;

/// The iteration to which a task's status or a note belongs.
#[derive(Debug, clap::Args)]
pub(crate) struct IterationArgs {
    /// Iteration of the loop [default: PH_ITERATION]
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
}

impl IterationArgs {
    pub(crate) fn number(&self) -> Result<Option<u32>> {
        worklist::iteration(self.iteration)
    }
}

/// Parse one of `words`.
pub(crate) fn word<T>(words: Vec<&'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|said| said.parse::<T>())
}

/// Return the selected kind alone, or all kinds.
pub(crate) fn which<'a, T>(said: Option<&'a T>, all: &'a [T]) -> &'a [T] {
    said.map_or(all, std::slice::from_ref)
}

/// Print an entry that was stored.
pub(crate) fn tell(
    context: &mut Context,
    journal: Journal,
    shape: &impl Serialize,
    line: impl Display,
) -> Result<Code> {
    if context.json {
        context.out.json(shape)?;
    } else {
        context.out.line(line)?;
    }
    context.out.flush()?;
    mail::leave(journal);
    Ok(Code::Ok)
}

/// Print entries, one per line, or a note that there are none.
pub(crate) fn tell_list(
    context: &mut Context,
    shapes: &[impl Serialize],
    lines: impl Iterator<Item = String>,
    none: impl Display,
) -> Result<Code> {
    if context.json {
        context.out.json(&shapes)?;
        return Ok(Code::Ok);
    }
    if shapes.is_empty() {
        context.out.line(none)?;
    }
    for line in lines {
        context.out.line(line)?;
    }
    Ok(Code::Ok)
}

/// Return the text for an empty list.
pub(crate) fn none(kind: Option<impl Display>, what: &str, agent: &AgentName) -> String {
    match kind {
        Some(kind) => format!("no {kind} {what} of {agent}"),
        None => format!("no {what} of {agent}"),
    }
}
