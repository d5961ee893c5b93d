//! Lists sessions and their state.
//!
//! A held lock is the only proof that a session is alive. A live session is asked; the journal
//! describes the others.

use super::client::{Client, LIVENESS_TIMEOUT, REQUEST_TIMEOUT};
use posthaste_core::session::Run;
use posthaste_core::{AgentName, Timestamp};
use posthaste_store::live::{self, SessionDir, SessionRecord};
use posthaste_store::report::Result;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::method;
use posthaste_wire::{Activity, LoopStatus, Session};
use std::time::{Duration, Instant};

/// Maximum time for which a session begins or ends.
const TRANSITION_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Reason for which a session is `blocked` if it holds its lock and does not respond.
pub const NO_RESPONSE: &str = "the session does not respond";

/// Return all live sessions, sorted by name.
pub fn running(home: &Home, patience: Patience, now: Timestamp) -> Result<Vec<Session>> {
    let mut asked = Vec::new();
    for name in live::agents(home) {
        let session_dir = SessionDir::of(home, &name);
        if !session_dir.is_held()? {
            continue;
        }
        let Some(record) = session_dir.record() else {
            // It is only just starting.
            continue;
        };
        let mut client = Client::connect(&record.socket);
        if let Some(connected) = &mut client
            && connected
                .send(&method::Session {}, REQUEST_TIMEOUT)
                .is_err()
        {
            client = None;
        }
        asked.push((record, client));
    }
    let deadline = Instant::now() + LIVENESS_TIMEOUT;
    let mut sessions = Vec::new();
    for (record, client) in asked {
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = client.and_then(|mut client| client.receive::<method::Session>(left).ok());
        match answer {
            Some(session) => sessions.push(session),
            None => sessions.extend(silent(home, patience, &record, now)?),
        }
    }
    Ok(sessions)
}

/// Return whether a session is alive, given that it has just not responded.
pub fn is_silent(
    home: &Home,
    patience: Patience,
    name: &AgentName,
    now: Timestamp,
) -> Result<bool> {
    let session_dir = SessionDir::of(home, name);
    match session_dir.record() {
        Some(record) if session_dir.is_held()? => {
            let session = silent(home, patience, &record, now)?;
            Ok(session.is_some())
        }
        Some(_) | None => Ok(false),
    }
}

/// Return the live session of an agent, if any.
fn live(
    home: &Home,
    patience: Patience,
    name: &AgentName,
    now: Timestamp,
) -> Result<Option<Session>> {
    let session_dir = SessionDir::of(home, name);
    if !session_dir.is_held()? {
        return Ok(None);
    }
    let Some(record) = session_dir.record() else {
        return Ok(None);
    };
    let answer = Client::connect(&record.socket)
        .and_then(|mut client| client.call(&method::Session {}, LIVENESS_TIMEOUT).ok());
    match answer {
        Some(session) => Ok(Some(session)),
        None => silent(home, patience, &record, now),
    }
}

/// Return the latest session of an agent, alive or not; `None` if it never ran.
pub fn latest(
    home: &Home,
    patience: Patience,
    name: &AgentName,
    now: Timestamp,
) -> Result<Option<Session>> {
    let deadline = Instant::now() + TRANSITION_TIMEOUT;
    loop {
        if let Some(session) = live(home, patience, name, now)? {
            return Ok(Some(session));
        }
        let Some(mut journal) = Journal::open_existing(home.clone(), patience)? else {
            return Ok(None);
        };
        let Some(run) = journal.session(name)? else {
            return Ok(None);
        };
        let is_over = run.end.is_some() || has_crashed(home, &mut journal, &run)?;
        if is_over || Instant::now() > deadline {
            return ended(&mut journal, &run, now).map(Some);
        }
        // A session is starting or ending.
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Return whether a run without a recorded end has crashed: its lock is free, and neither its end
/// nor a newer run was recorded meanwhile.
pub fn has_crashed(home: &Home, journal: &mut Journal, run: &Run) -> Result<bool> {
    if run.end.is_some() || SessionDir::of(home, &run.agent).is_held()? {
        return Ok(false);
    }
    let latest = journal.session(&run.agent)?;
    Ok(latest.is_some_and(|now| now.started.run == run.started.run && now.end.is_none()))
}

/// Describe a session that is alive and does not respond. `None` if it is ending, or if the record
/// belongs to an earlier one.
fn silent(
    home: &Home,
    patience: Patience,
    record: &SessionRecord,
    now: Timestamp,
) -> Result<Option<Session>> {
    let name = &record.launch.name;
    let (mut unread, mut queued) = (0, 0);
    if let Some(mut journal) = Journal::open_existing(home.clone(), patience)? {
        let run = journal.session(name)?;
        let is_it = run.is_some_and(|run| run.started.run == record.run && run.end.is_none());
        if !is_it || !SessionDir::of(home, name).is_held()? {
            return Ok(None);
        }
        unread = journal.count(name, now)?.unread;
        queued = journal.pending(name, now)?.queued;
    }
    Ok(Some(Session {
        activity: Activity::Blocked,
        blocked_on: Some(NO_RESPONSE.to_owned()),
        since: now,
        evidence: "its lock is held, but it did not respond; the program's activity is unknown"
            .to_owned(),
        unread,
        queued,
        pid: Some(record.pid),
        child_pid: Some(record.child_pid),
        socket: Some(record.socket.to_string_lossy().into_owned()),
        ..Session::starting(
            name.as_str(),
            record.started_at,
            &record.launch.command,
            &record.launch.cwd.to_string_lossy(),
            &record.launch.harness,
        )
    }))
}

/// Describe a session that is not alive from the journal.
pub fn ended(journal: &mut Journal, run: &Run, now: Timestamp) -> Result<Session> {
    let orphans = live::orphans(journal.home(), run);
    let unread = journal.count(&run.agent, now)?.unread;
    let queued = journal.pending(&run.agent, now)?.queued;
    let (ended_at, exit, evidence) = match &run.end {
        Some((at, how)) => (Some(*at), how.to_string(), "its end is in the journal"),
        None => (
            None,
            "crashed".to_owned(),
            "its lock is free, and the journal does not contain its end",
        ),
    };
    let state = journal.loop_state(&run.agent)?;
    let looped = match state.filter(|state| state.run == Some(run.started.run)) {
        Some(state) => Some(LoopStatus::new(&state, journal.task_counts(&run.agent)?)),
        None => None,
    };
    Ok(Session {
        activity: Activity::Exited,
        since: ended_at.unwrap_or(run.started_at),
        evidence: evidence.to_owned(),
        unread,
        queued,
        build: looped.map(LoopStatus::without_runner),
        ended_at,
        exit: Some(exit),
        orphans,
        ..Session::starting(
            run.agent.as_str(),
            run.started_at,
            &run.started.command,
            &run.started.cwd,
            &run.started.harness,
        )
    })
}
