//! `ph inject`: adds instructions to a loop's next prompt.

use crate::cli::prelude::*;
use crate::cli::session::call_session;
use posthaste_wire::param::PromptText;

/// Add instructions to a loop's next prompt
///
/// The instructions appear in the next prompt only, in the order in which they were added. A
/// session that is not a loop gets them as a message from the person.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph inject login 'Fix the type errors first'")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Instructions
    #[arg(value_name = "TEXT")]
    text: String,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    if text::one_line(&args.text, 1).is_empty() {
        return Err(Report::usage("the instructions are empty")
            .hint("for example: ph inject NAME 'Fix the type errors first'"));
    }
    let prompt = PromptText(args.text.trim().to_owned());
    let injected = call_session(context, name, &method::InjectPrompt { prompt })?;
    context.print(&injected, format!("added to the next prompt of {name}"))?;
    Ok(Code::Ok)
}
