//! `ph status`: prints everything that is known about an agent's latest session.

use crate::cli::prelude::*;
use crate::cli::session::{find_session, ls};
use crate::output::message_text::Field;
use posthaste_core::harness::version;
use posthaste_wire::{LoopStatus, Session};

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
    let mail = session.mail_trouble.as_ref().map(|trouble| {
        let [since, next] = [trouble.since, trouble.next].map(|at| context.shown_time(at));
        format!("{} (since {since}; asked again {next})", trouble.what)
    });
    let moved = |job| format!("another process has the conversation, which ph cannot see ({job})");
    let version = session.version.as_ref();
    let processes = session.pid.zip(session.child_pid);
    let orphans = (!session.orphans.is_empty()).then(|| ls::orphan_notice(&session));
    let mut lines = vec![
        ("session", Some(session.name.clone())),
        ("activity", Some(activity(&session))),
        ("since", Some(context.shown_time(session.since))),
        ("evidence", Some(session.evidence)),
        ("orphans", orphans),
        ("moved", session.handed_over.map(moved)),
        ("paused", session.paused),
        ("mail", mail),
        ("door", session.door),
    ];
    if let Some(looped) = session.loop_status {
        lines.extend(loop_fields(context, looped));
    }
    lines.extend([
        ("unread", Some(session.unread.to_string())),
        ("queued", Some(session.queued.to_string())),
        ("command", Some(session.command.join(" "))),
        ("directory", Some(session.cwd)),
        ("harness", Some(session.harness)),
        (
            "version",
            version.map(|it| version::described(it, &session.tested_versions)),
        ),
        ("started", Some(context.shown_time(session.started_at))),
        (
            "processes",
            processes.map(|(pid, child)| format!("{pid}, its command {child}")),
        ),
        ("socket", session.socket),
    ]);
    fields(context, lines)?;
    Ok(Code::Ok)
}

fn activity(session: &Session) -> String {
    match (&session.exit, &session.blocked_on) {
        (Some(exit), _) => format!("exited: {exit}"),
        (None, Some(on)) => format!("blocked: {on}"),
        (None, None) => session.activity.to_string(),
    }
}

/// Return the status of a loop, with the prd as it is on disk.
fn loop_fields(context: &Context, looped: LoopStatus) -> Vec<Field> {
    let begun = looped.began_at.map(|began| {
        let ago = posthaste_wire::time::length(context.now.duration_since(began));
        format!("{} ({ago} ago)", context.shown_time(began))
    });
    let mut lines = vec![
        ("loop", Some(looped.describe(context.now))),
        ("begun", begun),
        ("last", looped.last),
        ("task", looped.current_task),
        ("spec", looped.spec),
        ("prd", looped.prd.clone()),
    ];
    if let Some(prd) = &looped.prd {
        let stories = posthaste_session::loop_::story_lines(prd);
        let stories = stories.unwrap_or_else(|why| vec![("stories", why)]);
        lines.extend(stories.into_iter().map(|(name, line)| (name, Some(line))));
    }
    lines
}
