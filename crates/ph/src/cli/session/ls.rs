//! `ph ls`: lists sessions.

use crate::cli::prelude::*;
use crate::output::table;
use anstyle::{AnsiColor, Style};
use posthaste_client::session::sessions;
use posthaste_core::Timestamp;
use posthaste_core::harness::version;
use posthaste_wire::{Activity, Session};

/// List running sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph ls
  ph ls --all --json")]
pub(crate) struct Args {
    /// Include sessions that have ended
    #[arg(long, short)]
    all: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let mut sessions = sessions::running(&context.home, context.config.patience, context.now)?;
    let crashed = add_ended(context, &mut sessions, args.all)?;
    if context.json {
        context.out.json(&sessions)?;
        return Ok(Code::Ok);
    }
    if sessions.is_empty() {
        context.out.line("no sessions are running")?;
    } else {
        let heading = ["NAME", "ACTIVITY", "FOR", "UNREAD", "QUEUED", "COMMAND"];
        let rows = sessions
            .iter()
            .map(|session| (colour(session.activity), row(session, context.now)));
        table::print(&mut context.out, heading, rows)?;
    }
    for session in &sessions {
        if let (Some(version), [_, ..]) = (&session.version, &session.tested_versions[..]) {
            let text = version::described(version, &session.tested_versions);
            note(format!("{} runs {} {text}", session.name, session.harness));
        }
    }
    for session in &sessions {
        if let Some(job) = &session.handed_over {
            let name = &session.name;
            note(format!(
                "another process has the conversation of {name} ({job})"
            ));
        }
    }
    for session in sessions.iter().filter(|s| !s.orphans.is_empty()) {
        note(orphan_notice(session));
    }
    for name in crashed {
        note(format!(
            "the session of {name} has crashed; 'ph restart {name}' starts it again"
        ));
    }
    Ok(Code::Ok)
}

/// Return the notice that a crashed session has left processes.
pub(crate) fn orphan_notice(session: &Session) -> String {
    let (name, pids) = (&session.name, describe_pids(&session.orphans));
    format!(
        "the program of {name} still runs without its session ({pids}); 'ph stop {name}' ends it"
    )
}

/// Return a text such as 'processes 12, 13'.
pub(crate) fn describe_pids(pids: &[u32]) -> String {
    let words: Vec<String> = pids.iter().map(u32::to_string).collect();
    let thing = if pids.len() == 1 {
        "process"
    } else {
        "processes"
    };
    format!("{thing} {}", words.join(", "))
}

/// Add sessions that are not running. Return the names of those that crashed.
fn add_ended(context: &Context, sessions: &mut Vec<Session>, all: bool) -> Result<Vec<String>> {
    let mut crashed = Vec::new();
    let Some(mut journal) = context.existing_journal()? else {
        return Ok(crashed);
    };
    for run in journal.sessions()? {
        let name = run.agent.as_str();
        if sessions.iter().any(|session| session.name == name) {
            continue;
        }
        let is_over = run.end.is_some();
        let has_crashed = sessions::has_crashed(&context.home, &mut journal, &run)?;
        if has_crashed && !all {
            crashed.push(name.to_owned());
        }
        if has_crashed || (all && is_over) {
            let session = sessions::ended(&mut journal, &run, context.now)?;
            sessions.extend((all || !session.orphans.is_empty()).then_some(session));
        }
    }
    sessions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crashed)
}

fn row(session: &Session, now: Timestamp) -> [String; 6] {
    let activity = match (&session.exit, &session.blocked_on) {
        (Some(exit), _) if !session.orphans.is_empty() => format!("{exit}, orphaned"),
        (Some(exit), _) => format!("exited: {exit}"),
        (None, Some(on)) => format!("blocked: {}", text::one_line(on, 30)),
        (None, None) if session.paused.is_some() => format!("{}, paused", session.activity),
        (None, None) => session.activity.to_string(),
    };
    [
        session.name.clone(),
        activity,
        posthaste_wire::time::length(now.duration_since(session.since)),
        session.unread.to_string(),
        session.queued.to_string(),
        text::one_line(&command_or_progress(session, now), 120),
    ]
}

/// Return the command, or the progress of a loop.
fn command_or_progress(session: &Session, now: Timestamp) -> String {
    let command = session.command.join(" ");
    let Some(looped) = &session.loop_status else {
        return command;
    };
    let subject = looped
        .current_story
        .as_ref()
        .or(looped.current_task.as_ref());
    let subject = subject.map_or(String::new(), |subject| {
        format!("; now {}", text::one_line(subject, 30))
    });
    format!("loop: {}{subject}", looped.describe(now))
}

fn colour(activity: Activity) -> Style {
    match activity {
        Activity::Idle => AnsiColor::Green.on_default(),
        Activity::Working => AnsiColor::Yellow.on_default(),
        Activity::Blocked => AnsiColor::Red.on_default(),
        Activity::Starting => Style::new(),
        Activity::Exited => Style::new().dimmed(),
    }
}
