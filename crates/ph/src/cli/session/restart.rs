//! `ph restart`: stops a session, and runs its command again.

use crate::cli::prelude::*;
use crate::cli::session::never_ran;
use crate::cli::session::run::{is_on_terminal, start_and_show, terminal_size};
use crate::cli::session::stop::{self, StopMode, StopOutcome};
use posthaste_session::host::start::{self, Resumption};
use posthaste_store::live::{Launch, SessionDir, SessionRecord};

/// Restart a session with the same command
///
/// Runs the command again in its directory, with the current environment and the variables that
/// --env set. Claude Code, Codex, OpenCode and Gemini CLI resume their last conversation; a prompt
/// on their command line is not sent again. A restarted loop ends its current iteration and
/// continues.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph restart coder-1
  ph restart coder-1 --detach
  ph restart coder-1 --fresh")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Run it in the background
    #[arg(long, short)]
    detach: bool,
    /// Kill the old program without asking it to exit first
    #[arg(long, short)]
    kill: bool,
    /// Start a new conversation instead of resuming the last one
    #[arg(long)]
    fresh: bool,
}

/// Return the record of the agent's latest session, if the journal knows that session: a record
/// that was copied into the home must not start a program.
fn latest_record(context: &Context, name: &AgentName) -> Result<Option<SessionRecord>> {
    let Some(latest) = context.query(|journal| journal.session(name))? else {
        return Ok(None);
    };
    let record = SessionDir::of(&context.home, name).record();
    Ok(record.filter(|record| record.run == latest.started.run))
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    let Some(record) = latest_record(context, name)? else {
        return Err(never_ran(name));
    };
    // A failed restart leaves the old session running.
    let check = || -> Result<()> {
        let harness = context.catalogue()?.take(&record.launch.harness)?;
        match &record.launch.build {
            Some(settings) => {
                let Launch { cwd, env, .. } = &record.launch;
                posthaste_session::loop_::check_agent(settings, &harness, cwd, env)
            }
            None => start::check(&record.launch),
        }
    };
    check().map_err(|report| {
        report
            .after(&format!("cannot restart {name}:"))
            .hint("nothing was changed; 'ph run' starts it with another command")
    })?;
    let how = if args.kill {
        StopMode::Kill
    } else {
        StopMode::Now
    };
    if let StopOutcome::HandedOver(job) = stop::end(context, name, how)? {
        note(stop::describe_handover(name, &job));
    }
    let mut launch = record.launch;
    let is_shown = !args.detach && !context.json && is_on_terminal();
    if is_shown {
        (launch.cols, launch.rows) = terminal_size();
    }
    let resumption = match args.fresh {
        true => Resumption::Never,
        false => Resumption::Always,
    };
    start_and_show(context, launch, is_shown, resumption)
}
