//! Checks of delivery after every step: each wait has a true explanation, and the clock alone
//! changes nothing before the next wakeup.

use crate::activity::Activity;
use crate::delivery::{Decision, Delivery};
use crate::harness::BoxState;
use crate::inject;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::promotion;
use crate::receipt::{Proven, ReceiptState};
use crate::sim::faults::FaultyDriver;
use crate::sim::oracle::Oracle;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::Session;
use crate::why::{self, Hold, Why};
use jiff::Timestamp;
use std::time::Duration;

/// Time for which delivery is checked if it requests no wakeup.
const CHECKED_AHEAD: Duration = Duration::from_secs(3_600);
const INSTANT: Duration = Duration::from_millis(1);

/// Check that the explanation of a message's state can be true.
pub(crate) fn check(
    now: Moment,
    oracle: &Oracle,
    message_state: &MessageState,
    session: Option<&Session>,
) -> Checked {
    let why = match session {
        Some(session) => {
            let held = session.driver.hold(now, message_state);
            why::why_live(message_state, now.wall, held)
        }
        None => why::why(message_state, now.wall),
    };
    let id8 = || message_state.message.id.id8();
    let known = oracle.ledger.get(message_state.message.id);
    let is_settled = known.is_some_and(|known| known.is_settled(now.wall));
    match why {
        Why::Held(hold) => {
            let words = [hold.rule, &hold.reason, &hold.evidence, &hold.release];
            let is_told = words.iter().all(|word| !word.is_empty());
            let is_past = hold.since <= now.wall || oracle.was_set_back;
            Law::EveryWaitHasAReason.holds(is_past, || {
                format!("{} waits since a time in the future: {hold:?}", id8())
            })?;
            Law::EveryWaitHasAReason.holds(is_told, || {
                format!("{}: an empty explanation: {hold:?}", id8())
            })?;
            match session {
                Some(session) => check_hold(now, oracle, message_state, &hold, session),
                None => Ok(()),
            }
        }
        Why::Arrived {
            state: ReceiptState::Offering,
            ..
        } => {
            let is_busy =
                session.is_some_and(|session| session.is_busy_with(message_state.message.id));
            // A hook without a session holds the message, or was killed and left the offer open.
            let is_busy = is_busy || inject::is_under_way(message_state);
            Law::EveryWaitHasAReason.holds(is_busy, || {
                format!("{} is reported as being offered, and is not", id8())
            })
        }
        Why::Arrived { state, .. } => Law::EveryWaitHasAReason.holds(is_settled, || {
            format!(
                "{} is reported as arrived ({state}), and has not arrived",
                id8()
            )
        }),
    }
}

fn check_hold(
    now: Moment,
    oracle: &Oracle,
    message_state: &MessageState,
    hold: &Hold,
    session: &Session,
) -> Checked {
    let record = &oracle.record;
    let activity = session.delivery().activity().activity;
    let id = message_state.message.id;
    let is_asked = record.question.is_some();
    let waits_for_idle = match promotion::priority(&message_state.message, now.wall) {
        Priority::IdleFirst | Priority::Idle => true,
        Priority::Interrupt | Priority::Normal => false,
    };
    let (is_so, since) = match hold.rule {
        "draft" => {
            let since = record.draft_since();
            (since.is_some(), since)
        }
        "paused" => (
            !record.pauses.is_empty(),
            record.pauses.first().map(|(_, since)| *since),
        ),
        "blocked" => (is_asked, record.question.as_ref().map(|(_, since)| *since)),
        "not-reading" => (
            record.unread_since.is_some() || session.is_busy_with(id),
            None,
        ),
        "exited" => (activity == Activity::Exited, None),
        "starting" => (activity == Activity::Starting || is_asked, None),
        "working" => {
            let waits = waits_for_idle || record.holds_during_work();
            let works = activity == Activity::Working || record.screen_shows_work;
            (works && waits, None)
        }
        "unrecognised" => (!record.input_box.is_recognised(), record.box_since),
        "settling" => (record.input_box == BoxState::Empty, record.box_since),
        "not-before" => (!message_state.message.is_due(now.wall), None),
        "next" => (is_next(now, message_state, session), None),
        "in-flight" if hold.reason.contains("HTTP API") => (record.api.is_calling(), None),
        // The other rules can only be checked by delivery or the journal.
        _ => (true, None),
    };
    let is_terminal_rule =
        ["draft", "not-reading", "unrecognised", "settling"].contains(&hold.rule);
    let is_by_api = goes_by_api(now, oracle, message_state, session);
    Law::EveryWaitHasAReason.holds(!is_terminal_rule || !is_by_api, || {
        format!(
            "{} waits for the terminal, and the agent's API can be used: {hold:?}",
            id.id8()
        )
    })?;
    let since: Option<Timestamp> = since.map(|since| since.wall.max(why::due(message_state)));
    let is_since = since.is_none_or(|since| since == hold.since);
    Law::EveryWaitHasAReason.holds(is_so && is_since, || {
        format!("{} waits for another reason: {hold:?}", id.id8())
    })
}

/// Whether a message that is not on its way yet would go through the API.
fn goes_by_api(
    now: Moment,
    oracle: &Oracle,
    message_state: &MessageState,
    session: &Session,
) -> bool {
    let id = message_state.message.id;
    let is_waiting = match message_state.status.proven {
        Proven::Stored | Proven::Uncertain => {
            let turn = session.delivery().turn_in_flight();
            !session.is_busy_with(id) && !turn.is_some_and(|turn| turn.ids.contains(&id))
        }
        Proven::Offering | Proven::Offered | Proven::Unproven | Proven::Accepted => false,
    };
    // An event that is due may end the time in which the API is not used.
    let is_current = session.driver.next_wakeup().is_none_or(|at| at > now.mono);
    let is_raw = message_state.message.envelope.raw;
    is_waiting && is_current && !is_raw && oracle.goes_by_api(now, session.delivery())
}

/// Whether a message is about to be offered.
fn is_next(now: Moment, message_state: &MessageState, session: &Session) -> bool {
    let id = message_state.message.id;
    let is_due = match session.delivery().next(now, &session.driver.mail().pending) {
        Decision::Offer { ids, .. } => ids.contains(&id),
        Decision::Wait { .. } => false,
    };
    is_due || session.is_busy_with(id) || session.driver.is_about_to_read() || !session.has_seen(id)
}

/// Check that a tick before delivery's next wakeup changes nothing, and that the wakeup is in the
/// future.
pub(crate) fn check_wakeups(now: Moment, driver: &FaultyDriver) -> Checked {
    let (delivery, view) = (driver.delivery(), &driver.mail().pending);
    let next = driver.next_wakeup();
    Law::WakeupsAreTrue.holds(
        next.is_none_or(|at| at > now.mono),
        || "delivery requests a wakeup that is already due",
    )?;
    let before = next.map_or(now.mono + CHECKED_AHEAD, |at| at - INSTANT);
    if before <= now.mono {
        return Ok(());
    }
    let then = Moment {
        mono: before,
        ..now
    };
    let mut later = delivery.clone();
    let actions = later.tick(then);
    let due = |delivery: &Delivery, at: Moment| match delivery.next(at, view) {
        Decision::Offer { ids, interrupt } => Some((ids, interrupt)),
        Decision::Wait { .. } => None,
    };
    let (now_due, then_due) = (due(delivery, now), due(&later, then));
    Law::WakeupsAreTrue.holds(actions.is_empty() && now_due == then_due, || {
        format!(
            "the next wakeup is {next:?}; before it, the clock alone changes {now_due:?} to \
             {then_due:?}, with the actions {actions:?}"
        )
    })
}
