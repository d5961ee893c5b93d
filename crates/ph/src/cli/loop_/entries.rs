//! What the verbs about an agent's tasks and notes share: in which iteration something is said, and how
//! an entry or a list is told.

use crate::cli::loop_::worklist;
use crate::context::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use posthaste_client::mailbox;
use posthaste_core::AgentName;
use posthaste_store::Journal;
use posthaste_store::report::{Code, Result};
use serde::Serialize;
use std::fmt::Display;
use std::str::FromStr;

/// In which iteration of a loop something is said.
#[derive(Debug, clap::Args)]
pub(crate) struct IterationArgs {
    /// The iteration of the loop that this belongs to [default: PH_ITERATION]
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
}

impl IterationArgs {
    pub(crate) fn meant(&self) -> Result<Option<u32>> {
        worklist::iteration(self.iteration)
    }
}

/// One of the words that there are for something.
pub(crate) fn word<T>(words: Vec<&'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|said| said.parse::<T>())
}

/// Those that were asked for: of one kind, or all.
pub(crate) fn which<'a, T>(said: Option<&'a T>, all: &'a [T]) -> &'a [T] {
    said.map_or(all, std::slice::from_ref)
}

/// Tells of an entry that stands in the journal, and leaves that.
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
    mailbox::leave(journal);
    Ok(Code::Ok)
}

/// Tells a list, a line an entry, or that there is none.
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

/// That there are none of these.
pub(crate) fn none(kind: Option<impl Display>, what: &str, agent: &AgentName) -> String {
    match kind {
        Some(kind) => format!("no {kind} {what} of {agent}"),
        None => format!("no {what} of {agent}"),
    }
}
