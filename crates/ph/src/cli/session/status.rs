use crate::cli::prelude::*;
use crate::cli::session::{find_session, ls};
use posthaste_client::roster::Address;
use posthaste_core::harness::version;
use posthaste_wire::LoopStatus;

/// Show a session's status
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph status coder-1
  ph status coder-1 --json")]
pub(crate) struct Args {
    /// The agent's name or alias
    #[arg(value_name = "NAME", value_parser = parse_address, add = complete_agents())]
    name: Address,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = context.config.roster.agent(&args.name)?;
    print(context, &name)
}

pub(crate) fn print(context: &mut Context, name: &AgentName) -> Result<Code> {
    let session = find_session(context, name)?;
    if context.json {
        context.out.json(&session)?;
        return Ok(Code::Ok);
    }
    let since = context.config.time.show(session.since, context.now);
    let started = context.config.time.show(session.started_at, context.now);
    field(context, "session", &session.name)?;
    let activity = match (&session.exit, &session.blocked_on) {
        (Some(exit), _) => format!("exited: {exit}"),
        (None, Some(on)) => format!("blocked: {on}"),
        (None, None) => session.activity.to_string(),
    };
    field(context, "activity", &activity)?;
    field(context, "since", &since)?;
    field(context, "evidence", &session.evidence)?;
    if !session.orphans.is_empty() {
        field(context, "orphans", &ls::orphan_notice(&session))?;
    }
    if let Some(job) = &session.handed_over {
        let text = format!("another process has the conversation, which ph cannot see ({job})");
        field(context, "moved", &text)?;
    }
    if let Some(why) = &session.paused {
        field(context, "paused", why)?;
    }
    if let Some(trouble) = &session.mail_trouble {
        let [since, next] =
            [trouble.since, trouble.next].map(|at| context.config.time.show(at, context.now));
        let text = format!("{} (since {since}; asked again {next})", trouble.what);
        field(context, "mail", &text)?;
    }
    if let Some(why) = &session.door {
        field(context, "door", why)?;
    }
    if let Some(looped) = &session.build {
        print_loop(context, looped)?;
    }
    field(context, "unread", &session.unread.to_string())?;
    field(context, "queued", &session.queued.to_string())?;
    field(context, "command", &session.command.join(" "))?;
    field(context, "directory", &session.cwd)?;
    field(context, "harness", &session.harness)?;
    if let Some(version) = &session.version {
        let text = version::described(version, &session.tested_versions);
        field(context, "version", &text)?;
    }
    field(context, "started", &started)?;
    if let (Some(pid), Some(child)) = (session.pid, session.child_pid) {
        field(context, "processes", &format!("{pid}, its command {child}"))?;
    }
    if let Some(socket) = &session.socket {
        field(context, "socket", socket)?;
    }
    Ok(Code::Ok)
}

/// Print the status of a loop, with the prd as it is on disk.
fn print_loop(context: &mut Context, looped: &LoopStatus) -> Result<()> {
    field(context, "loop", &looped.describe(context.now))?;
    if let Some(began) = looped.began_at {
        let at = context.config.time.show(began, context.now);
        let ago = posthaste_wire::time::length(context.now.duration_since(began));
        field(context, "begun", &format!("{at} ({ago} ago)"))?;
    }
    if let Some(last) = &looped.last {
        field(context, "last", last)?;
    }
    if let Some(task) = &looped.current_task {
        field(context, "task", task)?;
    }
    if let Some(spec) = &looped.spec {
        field(context, "spec", spec)?;
    }
    let Some(prd) = &looped.prd else {
        return Ok(());
    };
    field(context, "prd", prd)?;
    match posthaste_session::loop_::story_lines(prd) {
        Ok(lines) => {
            for (name, line) in lines {
                field(context, name, &line)?;
            }
        }
        Err(why) => field(context, "stories", &why)?,
    }
    Ok(())
}
