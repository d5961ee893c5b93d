//! What sessions leave behind: put away by the next of that name, and said. Ends processes by their
//! pid and their start, never by a name.

use super::books::Books;
use super::errands::NEVER_PROVEN;
use super::{place, process, transcript};
use crate::report::Result;
use posthaste_core::harness::Route;
use posthaste_core::offer::Said;
use posthaste_core::session::{Ended, Ending};
use posthaste_core::{AgentName, Conversation, delivery};
use posthaste_store::{Cut, Home, Job};
use rustix::process::Signal;

/// Put away what a session of this name has left behind. Return a note about it if that session has
/// crashed.
pub(super) async fn take_over(
    books: &Books,
    home: &Home,
    name: &AgentName,
) -> Result<Option<String>> {
    let agent = name.clone();
    let latest = books.ask(move |journal| journal.session(&agent)).await?;
    let mut note = None;
    if let Some(run) = latest.filter(|run| run.end.is_none()) {
        let (child, began) = (run.started.child_pid, run.started.child_started);
        let left = if run.started.boot == process::boot() {
            process::left_of(child, began)
        } else {
            Vec::new()
        };
        for pid in &left {
            process::signal(*pid, Signal::KILL);
        }
        place::forget(home, name, run.started.pid, run.started.pid_started);
        place::forget(home, name, child, began);
        let mut ended = left.len();
        if run.started.boot == process::boot() {
            ended += end_noted(home, name, child);
        }
        let ended = match ended {
            0 => String::new(),
            ended => format!("; ended what was left of it ({ended} processes)"),
        };
        note = Some(format!("the last session of {name} crashed{ended}"));
        let job = Job::Ended {
            now: crate::times::now(),
            agent: name.clone(),
            ended: Ended {
                run: run.started.run,
                how: Ending::Crashed,
            },
        };
        books.commit(job).await??;
    }
    let job = Job::Uncertain {
        now: crate::times::now(),
        agent: name.clone(),
        cut: Cut::All,
        reason: "the session ended while it was being offered".to_owned(),
    };
    books.commit(job).await??;
    Ok(note)
}

/// Settle the offers of earlier sessions whose proof is still awaited. A message that the transcript
/// of the resumed conversation shows is accepted; any other is uncertain, and comes again, marked.
pub(super) async fn settle_unproven(
    books: &Books,
    name: &AgentName,
    resumed: Option<&Conversation>,
) -> Result<()> {
    let agent = name.clone();
    let unproven = books.ask(move |journal| journal.unproven(&agent)).await?;
    if unproven.is_empty() {
        return Ok(());
    }
    let (now, agent) = (crate::times::now(), name.clone());
    if let Some(path) = resumed.and_then(|resumed| resumed.transcript.as_deref()) {
        let found = transcript::read_whole(path).await;
        let job = Job::Say {
            now,
            agent: agent.clone(),
            ids: delivery::proven_by(&found.text.given, &unproven),
            said: Said::Accepted {
                route: Route::Terminal.as_str().to_owned(),
                evidence: "the transcript of the resumed conversation shows the id".to_owned(),
            },
        };
        books.commit(job).await??;
    }
    let job = Job::Uncertain {
        now,
        agent,
        cut: Cut::Unproven,
        reason: NEVER_PROVEN.to_owned(),
    };
    books.commit(job).await??;
    Ok(())
}

/// Ends whatever runs as this agent by the notes of its sessions: agents of a loop, which lead
/// process sessions of their own. Gives back how many there were.
pub(super) fn end_noted(home: &Home, name: &AgentName, but: u32) -> usize {
    let mut ended = 0;
    for (pid, began) in place::noted(home, name) {
        if pid == but || pid == std::process::id() {
            continue;
        }
        let left = process::left_of(pid, began);
        left.iter()
            .for_each(|pid| process::signal(*pid, Signal::KILL));
        ended += left.len();
        place::forget(home, name, pid, began);
    }
    ended
}
