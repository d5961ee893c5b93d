//! The roll of sessions: who lives, and how those who do not have ended.
//!
//! A lock that is held is the only proof of life. What lives is asked itself; of what does not,
//! the journal knows.

use super::client::{Client, PATIENT};
use super::place::{self, Place, Record};
use crate::report::Result;
use posthaste_core::session::Run;
use posthaste_core::{AgentName, Timestamp};
use posthaste_store::{Home, Journal};
use posthaste_wire::method;
use posthaste_wire::{Activity, Session};
use std::time::{Duration, Instant};

/// How long sessions may take to say how they are, all together.
const PATIENCE: Duration = Duration::from_millis(500);

/// All sessions that live now, by name.
pub(crate) fn living(home: &Home) -> Result<Vec<Session>> {
    let mut asked = Vec::new();
    for name in place::agents(home) {
        let place = Place::of(home, &name);
        if !place.is_held()? {
            continue;
        }
        let Some(record) = place.record() else {
            // It has only just begun.
            continue;
        };
        let mut client = Client::connect(&record.socket);
        if let Some(asking) = &mut client
            && asking.ask(&method::Session {}).is_err()
        {
            client = None;
        }
        asked.push((record, client));
    }
    let deadline = Instant::now() + PATIENCE;
    let answers = asked.into_iter().map(|(record, client)| {
        let left = deadline.saturating_duration_since(Instant::now());
        client
            .and_then(|mut client| client.answer::<method::Session>(left).ok())
            .unwrap_or_else(|| silent(&record))
    });
    Ok(answers.collect())
}

/// One session that lives now.
pub(crate) fn live(home: &Home, name: &AgentName) -> Result<Option<Session>> {
    let place = Place::of(home, name);
    if !place.is_held()? {
        return Ok(None);
    }
    let Some(record) = place.record() else {
        return Ok(None);
    };
    let answer = Client::connect(&record.socket)
        .and_then(|mut client| client.call(&method::Session {}, PATIENT).ok());
    Ok(Some(answer.unwrap_or_else(|| silent(&record))))
}

/// A session that is there and does not answer.
fn silent(record: &Record) -> Session {
    Session {
        name: record.launch.name.to_string(),
        activity: Activity::Working,
        blocked_on: None,
        since: record.started_at,
        evidence: "it holds its lock, and does not answer".to_owned(),
        pid: Some(record.pid),
        child_pid: Some(record.child_pid),
        socket: Some(record.socket.to_string_lossy().into_owned()),
        command: record.launch.command.clone(),
        cwd: record.launch.cwd.to_string_lossy().into_owned(),
        harness: record.launch.harness.clone(),
        started_at: record.started_at,
        unread: 0,
        queued: 0,
        ended_at: None,
        exit: None,
    }
}

/// What the journal has of a session that does not live.
pub(crate) fn ended(journal: &mut Journal, run: &Run, now: Timestamp) -> Result<Session> {
    let unread = journal.count(&run.agent, now)?.unread;
    let queued = journal.pending(&run.agent, now)?.queued;
    let (ended_at, exit, evidence) = match &run.end {
        Some((at, how)) => (Some(*at), how.to_string(), "the journal has its end"),
        None => (
            None,
            "crashed".to_owned(),
            "its lock is free, and the journal has no end of it",
        ),
    };
    Ok(Session {
        name: run.agent.to_string(),
        activity: Activity::Exited,
        blocked_on: None,
        since: ended_at.unwrap_or(run.started_at),
        evidence: evidence.to_owned(),
        pid: None,
        child_pid: None,
        socket: None,
        command: run.started.command.clone(),
        cwd: run.started.cwd.clone(),
        harness: run.started.harness.clone(),
        started_at: run.started_at,
        unread,
        queued,
        ended_at,
        exit: Some(exit),
    })
}
