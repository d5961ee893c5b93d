//! The roll of sessions: who lives, and how those who do not have ended.
//!
//! A lock that is held is the only proof of life. What lives is asked itself; of what does not,
//! the journal knows.

use super::client::{AWAKE, Client};
use posthaste_core::session::Run;
use posthaste_core::{AgentName, Timestamp};
use posthaste_store::live;
use posthaste_store::live::place::{self, Place, Record};
use posthaste_store::report::Result;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::method;
use posthaste_wire::{Activity, LoopStatus, Session};
use std::time::{Duration, Instant};

/// How long a session may be about to begin or to end.
const BETWEEN: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What is wrong with a session that holds its lock and cannot be asked.
pub const SILENT: &str = "the session does not answer";

/// All sessions that live now, by name.
pub fn living(home: &Home, patience: Patience, now: Timestamp) -> Result<Vec<Session>> {
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
    let deadline = Instant::now() + AWAKE;
    let mut sessions = Vec::new();
    for (record, client) in asked {
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = client.and_then(|mut client| client.answer::<method::Session>(left).ok());
        match answer {
            Some(session) => sessions.push(session),
            None => sessions.extend(silent(home, patience, &record, now)?),
        }
    }
    Ok(sessions)
}

/// Whether a session lives that has not answered just now.
pub fn is_silent(
    home: &Home,
    patience: Patience,
    name: &AgentName,
    now: Timestamp,
) -> Result<bool> {
    let place = Place::of(home, name);
    match place.record() {
        Some(record) if place.is_held()? => {
            let session = silent(home, patience, &record, now)?;
            Ok(session.is_some())
        }
        Some(_) | None => Ok(false),
    }
}

/// One session that lives now.
fn live(
    home: &Home,
    patience: Patience,
    name: &AgentName,
    now: Timestamp,
) -> Result<Option<Session>> {
    let place = Place::of(home, name);
    if !place.is_held()? {
        return Ok(None);
    }
    let Some(record) = place.record() else {
        return Ok(None);
    };
    let answer = Client::connect(&record.socket)
        .and_then(|mut client| client.call(&method::Session {}, AWAKE).ok());
    match answer {
        Some(session) => Ok(Some(session)),
        None => silent(home, patience, &record, now),
    }
}

/// The latest session of a name, alive or not; nothing where it never ran.
pub fn latest(
    home: &Home,
    patience: Patience,
    name: &AgentName,
    now: Timestamp,
) -> Result<Option<Session>> {
    let deadline = Instant::now() + BETWEEN;
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
        // One begins or ends in this moment.
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether a run without an end is gone all the same. Its lock is the proof, unless it has ended
/// in order, or another has begun, while we looked.
pub fn has_crashed(home: &Home, journal: &mut Journal, run: &Run) -> Result<bool> {
    if run.end.is_some() || Place::of(home, &run.agent).is_held()? {
        return Ok(false);
    }
    let latest = journal.session(&run.agent)?;
    Ok(latest.is_some_and(|now| now.started.run == run.started.run && now.end.is_none()))
}

/// A session that is there and does not answer; nothing where it is on its way out, or the record
/// is of an earlier one. What its program does only it could say; its mail is stuck in any case.
fn silent(
    home: &Home,
    patience: Patience,
    record: &Record,
    now: Timestamp,
) -> Result<Option<Session>> {
    let name = &record.launch.name;
    let (mut unread, mut queued) = (0, 0);
    if let Some(mut journal) = Journal::open_existing(home.clone(), patience)? {
        let run = journal.session(name)?;
        let is_it = run.is_some_and(|run| run.started.run == record.run && run.end.is_none());
        if !is_it || !Place::of(home, name).is_held()? {
            return Ok(None);
        }
        unread = journal.count(name, now)?.unread;
        queued = journal.pending(name, now)?.queued;
    }
    Ok(Some(Session {
        activity: Activity::Blocked,
        blocked_on: Some(SILENT.to_owned()),
        since: now,
        evidence: "it holds its lock and did not respond just now; what its program does is not \
                   known"
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

/// What the journal has of a session that does not live.
pub fn ended(journal: &mut Journal, run: &Run, now: Timestamp) -> Result<Session> {
    let orphans = live::orphans(journal.home(), run);
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
