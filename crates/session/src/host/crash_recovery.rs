//! Recovery from a crashed session, by the next session of the agent: ends its processes and settles
//! its offers. Identifies processes by pid and start time, never by name.

use crate::host::journal_handle::JournalHandle;
use crate::host::log;
use crate::routes::transcript;
use crate::state::actions::tasks::{NEVER_PROVEN, log_uncertain};
use posthaste_core::offer::OfferReport;
use posthaste_core::session::{Ended, Ending};
use posthaste_core::{AgentName, Conversation, MessageId, MessageState, delivery};
use posthaste_store::Home;
use posthaste_store::live::{self, place, process};
use posthaste_store::operation::{EndRun, MarkUncertain, OpenOffers, RecordDelivery};
use posthaste_store::report::Result;
use rustix::process::Signal;
use tracing::info;

const CUT_OFF: &str = "the session ended while it was being offered";
const RESUMED_SHOWS: &str = "the transcript of the resumed conversation shows the message";

pub(crate) struct Recovery {
    /// Whether the last session or its program crashed.
    pub(crate) has_crashed: bool,
    /// Note for the user.
    pub(crate) note: Option<String>,
}

/// End the processes of a crashed session of this agent, and record its end.
pub(crate) async fn recover(
    journal: &JournalHandle,
    home: &Home,
    name: &AgentName,
) -> Result<Recovery> {
    let agent = name.clone();
    let latest = journal.ask(move |journal| journal.session(&agent)).await?;
    let mut note = None;
    let end = latest.as_ref().map(|run| run.end.as_ref());
    let has_crashed = match end {
        Some(Some((_, how))) => how.is_crash(),
        Some(None) => true,
        None => false,
    };
    if let Some(run) = latest.filter(|run| run.end.is_none()) {
        let orphans = live::orphans(home, &run);
        for pid in &orphans {
            process::signal(*pid, Signal::KILL);
        }
        for (pid, began) in place::noted(home, name) {
            place::forget(home, name, pid, began);
        }
        let ended = match orphans.len() {
            0 => String::new(),
            ended => format!("; ended its processes ({ended})"),
        };
        note = Some(format!("the last session of {name} crashed{ended}"));
        let end = EndRun {
            now: posthaste_store::times::now(),
            agent: name.clone(),
            ended: Ended {
                run: run.started.run,
                how: Ending::Crashed,
            },
        };
        journal.commit(end).await??;
    }
    Ok(Recovery { has_crashed, note })
}

/// Return the messages that were being offered when the last session ended.
pub(crate) async fn cut_offers(
    journal: &JournalHandle,
    name: &AgentName,
) -> Result<Vec<MessageId>> {
    let agent = name.clone();
    let cut = journal
        .ask(move |journal| journal.open_offers(&agent))
        .await?;
    Ok(cut.iter().map(|state| state.message.id).collect())
}

/// Settle the offers of earlier sessions: those that were cut off, and those whose proof is still
/// awaited. A message that the transcript of the resumed conversation shows is accepted; any other
/// message is uncertain, and is offered again, marked as a repeat.
pub(crate) async fn settle_offers(
    journal: &JournalHandle,
    name: &AgentName,
    cut: Vec<MessageId>,
    resumed: Option<&Conversation>,
) -> Result<()> {
    let (reader, offered) = (name.clone(), cut);
    let read = journal.ask(move |journal| {
        let mut cut = journal.open_offers(&reader)?;
        cut.retain(|state| offered.contains(&state.message.id));
        Ok((cut, journal.unproven(&reader)?))
    });
    let (cut, unproven) = read.await?;
    let (now, agent) = (posthaste_store::times::now(), name.clone());
    let mut proven = Vec::new();
    if let Some(path) = resumed.and_then(|resumed| resumed.transcript.as_deref()) {
        let unsettled = [cut.as_slice(), unproven.as_slice()].concat();
        proven = proven_in(path, &unsettled).await;
        for message_state in unsettled
            .iter()
            .filter(|state| proven.contains(&state.message.id))
        {
            let routes = message_state.receipts.iter().rev();
            let route = routes.filter_map(|receipt| receipt.route.clone()).next();
            let record = RecordDelivery {
                now,
                agent: agent.clone(),
                ids: vec![message_state.message.id],
                said: OfferReport::Accepted {
                    route: route.unwrap_or_default(),
                    evidence: RESUMED_SHOWS.to_owned(),
                },
            };
            journal.commit(record).await??;
            let messages = log::Ids(&[message_state.message.id]);
            info!(target: log::DELIVERY, %messages, proof = RESUMED_SHOWS, "accepted");
        }
    }
    for (offers, reason) in [(cut, CUT_OFF), (unproven, NEVER_PROVEN)] {
        let ids = offers.iter().map(|state| state.message.id);
        let unresolved: Vec<_> = ids.filter(|id| !proven.contains(id)).collect();
        if unresolved.is_empty() {
            continue;
        }
        let mark = MarkUncertain {
            now,
            agent: agent.clone(),
            // This run may have offered other messages during the read.
            offers: OpenOffers::These(unresolved),
            reason: reason.to_owned(),
        };
        let done = journal.commit(mark).await?;
        log_uncertain(&done, reason);
        done?;
    }
    Ok(())
}

/// Return those of `messages` that the transcript at `path` shows as given to the model.
async fn proven_in(path: &str, messages: &[MessageState]) -> Vec<MessageId> {
    let mut proven = Vec::new();
    let mut files = transcript::whole(path);
    while !messages.is_empty() {
        let found = transcript::read_now(files).await;
        proven.extend(delivery::proven_by(&found.text.given, messages));
        if found.is_complete {
            break;
        }
        files = found.files;
    }
    proven
}

/// End the noted processes of this agent and their descendants, except the process `except` and this
/// one. The agents of a loop lead process sessions of their own, so only their notes find them.
pub(crate) fn end_noted_processes(home: &Home, name: &AgentName, except: u32) {
    for (pid, began) in place::noted(home, name) {
        if pid == except || pid == std::process::id() {
            continue;
        }
        for pid in process::left_of(pid, began) {
            process::signal(pid, Signal::KILL);
        }
        place::forget(home, name, pid, began);
    }
}
