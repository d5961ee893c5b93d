//! Recovery from a crashed session, by the next session of the agent: ends its processes and
//! settles its offers. Identifies processes by pid and start time, never by name.

use crate::host::journal_handle::JournalHandle;
use crate::host::log;
use crate::routes::transcript;
use crate::state::actions::tasks::log_uncertain;
use posthaste_core::offer::OfferReport;
use posthaste_core::receipt::recovery::{self, CUT_OFF};
use posthaste_core::session::{Ended, Ending};
use posthaste_core::{AgentName, Conversation, MessageId, MessageState, delivery};
use posthaste_store::Home;
use posthaste_store::live::{self, process, process_notes};
use posthaste_store::operation::{EndRun, MarkUncertain, OpenOffers, RecordDelivery};
use posthaste_store::report::Result;
use rustix::process::Signal;
use tracing::info;

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
        for (pid, began) in process_notes::processes_of(home, name) {
            process_notes::remove(home, name, pid, began);
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
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: name.clone(),
        offers: OpenOffers::All,
        reason: CUT_OFF.to_owned(),
    };
    let done = journal.commit(mark).await?;
    log_uncertain(&done, CUT_OFF);
    done?;
    Ok(Recovery { has_crashed, note })
}

/// Settle the offers of earlier sessions whose proof is still awaited. A message that the
/// transcript of the resumed conversation shows is accepted; any other message is uncertain, and is
/// offered again, marked as a repeat.
pub(crate) async fn settle_unproven(
    journal: &JournalHandle,
    name: &AgentName,
    resumed: Option<&Conversation>,
) -> Result<()> {
    let agent = name.clone();
    // Only these messages: this run may offer others during the read.
    let unproven = journal.ask(move |journal| journal.unproven(&agent)).await?;
    let path = resumed.and_then(|resumed| resumed.transcript.as_deref());
    let proven = match path {
        Some(path) => proven_in(path, &unproven).await,
        None => Vec::new(),
    };
    for (id, report) in recovery::settle(&unproven, &proven) {
        let record = RecordDelivery {
            now: posthaste_store::times::now(),
            agent: name.clone(),
            ids: vec![id],
            report: report.clone(),
        };
        let done = journal.commit(record).await?;
        match report {
            OfferReport::Accepted { evidence, .. } => {
                info!(target: log::DELIVERY, messages = %log::Ids(&[id]), proof = evidence, "accepted");
            }
            OfferReport::Uncertain { reason } => log_uncertain(&done, &reason),
            OfferReport::Offering { .. }
            | OfferReport::Offered { .. }
            | OfferReport::Withdrawn { .. }
            | OfferReport::Reminded { .. }
            | OfferReport::Failed { .. } => {}
        }
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

/// End the noted processes of this agent and their descendants, except the process `except` and
/// this one. The agents of a loop lead process sessions of their own, so only their notes find
/// them.
pub(crate) fn end_noted_processes(home: &Home, name: &AgentName, except: u32) {
    for (pid, began) in process_notes::processes_of(home, name) {
        if pid == except || pid == std::process::id() {
            continue;
        }
        process::signal_all(pid, began, Signal::KILL);
        process_notes::remove(home, name, pid, began);
    }
}
