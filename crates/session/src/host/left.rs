//! What sessions leave behind: put away by the next of that name, and said. Ends processes by their
//! pid and their start, never by a name.

use crate::host::books::Books;
use crate::host::log;
use crate::routes::transcript;
use crate::state::actions::{NEVER_PROVEN, log_uncertain};
use posthaste_core::offer::OfferReport;
use posthaste_core::session::{Ended, Ending};
use posthaste_core::{AgentName, Conversation, delivery};
use posthaste_store::Home;
use posthaste_store::live::{self, place, process};
use posthaste_store::operation::{EndRun, MarkUncertain, OpenOffers, RecordDelivery};
use posthaste_store::report::Result;
use rustix::process::Signal;
use tracing::info;

const CUT_OFF: &str = "the session ended while it was being offered";
const RESUMED_SHOWS: &str = "the transcript of the resumed conversation shows the message";

/// The last session of a name, as the next one finds it.
pub(crate) struct Left {
    /// Whether the session or its program has crashed.
    pub(crate) has_crashed: bool,
    pub(crate) note: Option<String>,
}

/// End the processes that a crashed session of this name has left, and mark its open offers uncertain.
pub(crate) async fn take_over(books: &Books, home: &Home, name: &AgentName) -> Result<Left> {
    let agent = name.clone();
    let latest = books.ask(move |journal| journal.session(&agent)).await?;
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
            ended => format!("; ended what was left of it ({ended} processes)"),
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
        books.commit(end).await??;
    }
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: name.clone(),
        offers: OpenOffers::All,
        reason: CUT_OFF.to_owned(),
    };
    let done = books.commit(mark).await?;
    log_uncertain(&done, CUT_OFF);
    done?;
    Ok(Left { has_crashed, note })
}

/// Settle the offers of earlier sessions whose proof is still awaited. A message that the transcript
/// of the resumed conversation shows is accepted; any other message is uncertain, and is offered again,
/// marked as a repeat.
pub(crate) async fn settle_unproven(
    books: &Books,
    name: &AgentName,
    resumed: Option<&Conversation>,
) -> Result<()> {
    let agent = name.clone();
    let unproven = books.ask(move |journal| journal.unproven(&agent)).await?;
    if unproven.is_empty() {
        return Ok(());
    }
    let (now, agent) = (posthaste_store::times::now(), name.clone());
    let mut left: Vec<_> = unproven
        .iter()
        .map(|message_state| message_state.message.id)
        .collect();
    if let Some(path) = resumed.and_then(|resumed| resumed.transcript.as_deref()) {
        let found = transcript::read_whole(path).await;
        let proven = delivery::proven_by(&found.text.given, &unproven);
        left.retain(|id| !proven.contains(id));
        for message_state in unproven.iter().filter(|l| proven.contains(&l.message.id)) {
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
            books.commit(record).await??;
            let messages = log::Ids(&[message_state.message.id]);
            info!(target: log::DELIVERY, %messages, proof = RESUMED_SHOWS, "accepted");
        }
    }
    let mark = MarkUncertain {
        now,
        agent,
        // Not all that is unproven by now: this run may have offered more during the read.
        offers: OpenOffers::These(left),
        reason: NEVER_PROVEN.to_owned(),
    };
    let done = books.commit(mark).await?;
    log_uncertain(&done, NEVER_PROVEN);
    done?;
    Ok(())
}

/// Ends whatever runs as this agent by the notes of its sessions: agents of a loop, which lead
/// process sessions of their own. Gives back how many there were.
pub(crate) fn end_noted(home: &Home, name: &AgentName, but: u32) -> usize {
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
