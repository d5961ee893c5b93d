//! Arguments and output that the verbs for tasks and notes share.

use crate::cli::loop_::worklist;
use crate::cli::prelude::*;
use std::fmt::Display;

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

/// Print an entry that was stored.
pub(crate) fn print_stored(
    context: &mut Context,
    journal: Journal,
    json: &impl Serialize,
    line: impl Display,
) -> Result<Code> {
    context.print(json, line)?;
    context.out.flush()?;
    mail::leave(journal);
    Ok(Code::Ok)
}

/// Print entries, one per line, or a note that there are none.
pub(crate) fn print_list<T: Serialize>(
    context: &mut Context,
    entries: &[T],
    line: impl Fn(&T) -> String,
    if_empty: impl Display,
) -> Result<Code> {
    if context.json {
        context.out.json(&entries)?;
        return Ok(Code::Ok);
    }
    if entries.is_empty() {
        context.out.line(if_empty)?;
    }
    for entry in entries {
        context.out.line(line(entry))?;
    }
    Ok(Code::Ok)
}

/// Return the text for an empty list.
pub(crate) fn no_entries(kind: Option<impl Display>, what: &str, agent: &AgentName) -> String {
    let kind = kind.map_or_else(String::new, |kind| format!("{kind} "));
    format!("no {kind}{what} of {agent}")
}
