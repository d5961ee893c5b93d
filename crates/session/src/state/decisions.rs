//! Logs decisions about messages to the session's log. Decides nothing.

use super::Clerk;
use crate::host::log::{DELIVERY, Ids};
use posthaste_core::delivery::{Decision, Desk, Effect, Event};
use posthaste_core::driver::Observer;
use posthaste_core::harness::Manifest;
use posthaste_core::moment::Moment;
use posthaste_core::why::Hold;
use posthaste_core::{Letter, MessageId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::{Level, debug, error, info, warn};

/// Remembers what was logged about the messages that wait.
#[derive(Debug, Default)]
pub(super) struct HoldLog {
    /// The rule and the reason that were last logged for each message.
    logged: BTreeMap<MessageId, (&'static str, String)>,
    /// Whether something that may hold or release messages has changed since the last log line.
    pub(super) is_stale: bool,
}

/// Messages that one rule has begun to hold for one reason.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    ids: Vec<MessageId>,
    hold: Hold,
}

impl HoldLog {
    /// Return the held messages whose rule or reason has changed, and remember what is held now.
    fn news(&mut self, waiting: Vec<(MessageId, Option<Hold>)>) -> Vec<Held> {
        let mut news: Vec<Held> = Vec::new();
        let mut logged = BTreeMap::new();
        for (id, hold) in waiting {
            let Some(hold) = hold else { continue };
            let said = (hold.rule, hold.reason.clone());
            let is_known = self.logged.get(&id) == Some(&said);
            logged.insert(id, said);
            if is_known {
                continue;
            }
            let is_same =
                |held: &&mut Held| (held.hold.rule, &held.hold.reason) == (hold.rule, &hold.reason);
            match news.iter_mut().find(is_same) {
                Some(held) => held.ids.push(id),
                None => news.push(Held {
                    ids: vec![id],
                    hold,
                }),
            }
        }
        self.logged = logged;
        news
    }
}

impl Clerk {
    /// Log which messages wait and why, if that has changed.
    pub(super) fn log_holds(&mut self) {
        let is_stale = std::mem::take(&mut self.holds.is_stale);
        if !is_stale || !tracing::enabled!(target: DELIVERY, Level::INFO) {
            return;
        }
        let (now, due) = (self.now(), &self.driver.mail().pending);
        let holds = due.iter().map(|letter| {
            let hold = self.delivery().hold(now, letter, due);
            (letter.message.id, hold)
        });
        let holds = holds.collect();
        for Held { ids, hold } in self.holds.news(holds) {
            let (rule, reason, evidence) = (hold.rule, hold.reason, hold.evidence);
            info!(target: DELIVERY, messages = %Ids(&ids), %rule, reason, evidence, "held");
        }
    }
}

/// Logs what a driver decides.
pub(super) struct DecisionLog {
    harness: Arc<Manifest>,
    /// The messages of the turn that was offered last.
    turn: Vec<MessageId>,
}

impl DecisionLog {
    pub(super) fn new(harness: Arc<Manifest>) -> Self {
        let turn = Vec::new();
        Self { harness, turn }
    }

    fn interrupts(&self, key: &[u8]) -> bool {
        let interrupt = &self.harness.interrupt;
        let keys = [Some(&interrupt.keys), interrupt.dismiss.as_ref()];
        keys.into_iter().flatten().any(|keys| keys.bytes() == key)
    }
}

impl Observer for DecisionLog {
    /// Log an event that prevented an offer or cut it off.
    fn hears(&mut self, _now: Moment, event: &Event) {
        let turn = Ids(&self.turn);
        match event {
            Event::NotRecorded(reason) => {
                warn!(target: DELIVERY, messages = %turn, reason, "offer not recorded");
            }
            Event::WriteFailed(reason) => {
                warn!(target: DELIVERY, messages = %turn, reason, "typing broke off");
            }
            Event::Barred => {
                info!(target: DELIVERY, messages = %turn, "not typed: a person is typing");
            }
            Event::NotHanded { ids, why, .. } => {
                info!(target: DELIVERY, messages = %Ids(ids), reason = why, "not handed over");
            }
            _ => {}
        }
    }

    fn has_heard(&mut self) {}

    fn chooses(&mut self, _: Moment, _: &Desk, _: &[Letter], _: &Decision) {}

    fn wants(&mut self, _now: Moment, delivery: &Desk, effect: &Effect) {
        let (turn, enters) = delivery.turn();
        self.turn = turn.to_vec();
        let turn = Ids(turn);
        match effect {
            Effect::Key(key) if self.interrupts(key) => {
                info!(target: DELIVERY, messages = %turn, "interrupt key pressed");
            }
            Effect::Key(_) => {
                info!(target: DELIVERY, messages = %turn, "input box cleared of the old prompt");
            }
            Effect::Abort => {
                info!(target: DELIVERY, messages = %turn, route = "http", "agent interrupted");
            }
            Effect::GoOn => debug!(target: DELIVERY, route = "http", "agent told to go on"),
            Effect::Call { ids, .. } => {
                debug!(target: DELIVERY, messages = %Ids(ids), route = "http", "offering");
            }
            Effect::Offer { ids } => {
                debug!(target: DELIVERY, messages = %Ids(ids), route = "terminal", "offering");
            }
            Effect::Write { ids } => debug!(target: DELIVERY, messages = %Ids(ids), "typing"),
            Effect::Enter if enters > 0 => {
                info!(target: DELIVERY, messages = %turn, pressed = enters, "Enter pressed again");
            }
            Effect::Enter => debug!(target: DELIVERY, messages = %turn, "Enter pressed"),
            Effect::Look => {}
            Effect::Resume => {
                debug!(target: DELIVERY, messages = %turn, "keyboard asked for again");
            }
            Effect::Give { ids, .. } => {
                debug!(target: DELIVERY, messages = %Ids(ids), "handed over");
            }
            Effect::Offered {
                ids,
                evidence,
                route,
                proof_awaited,
            } => {
                let (messages, route) = (Ids(ids), route.as_str());
                info!(target: DELIVERY, %messages, %route, evidence, proof_awaited, "offered");
            }
            Effect::Accepted {
                ids,
                evidence,
                route,
            } => {
                let (messages, route) = (Ids(ids), route.as_str());
                info!(target: DELIVERY, %messages, %route, proof = evidence, "accepted");
            }
            Effect::Withdraw { ids, reason } => {
                info!(target: DELIVERY, messages = %Ids(ids), reason, "offer withdrawn");
            }
            Effect::Uncertain { ids, reason } => {
                warn!(target: DELIVERY, messages = %Ids(ids), reason, "uncertain");
            }
            Effect::Remind { ids } => {
                info!(target: DELIVERY, messages = %Ids(ids), "reminding of replies that are owed");
            }
            Effect::WriteReminder { ids } => {
                debug!(target: DELIVERY, messages = %Ids(ids), "typing a reminder");
            }
            Effect::Fail { ids, reason } => {
                warn!(target: DELIVERY, messages = %Ids(ids), reason, "failed");
            }
        }
    }

    fn releases_keyboard(&mut self) {}

    fn retries(&mut self, ids: &[MessageId], why: &str) {
        warn!(target: DELIVERY, messages = %Ids(ids), "a receipt has to wait: {why}");
    }

    fn gives_up(&mut self, ids: &[MessageId], why: &str) {
        error!(target: DELIVERY, messages = %Ids(ids), "a receipt could not be recorded: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::Timestamp;
    use uuid::Uuid;

    fn hold(rule: &'static str, evidence: &str) -> Option<Hold> {
        Some(Hold {
            rule,
            since: Timestamp::UNIX_EPOCH,
            reason: format!("because of {rule}"),
            evidence: evidence.to_owned(),
            release: String::new(),
        })
    }

    #[test]
    fn a_hold_is_news_once_for_each_reason() {
        let [a, b] = [1, 2].map(|n| MessageId(Uuid::from_u128(n)));
        let mut log = HoldLog::default();
        let mut check = |waiting: &[(MessageId, Option<Hold>)], want: &[(&[MessageId], &str)]| {
            let news = log.news(waiting.to_vec());
            let news: Vec<_> = news.iter().map(|h| (&h.ids[..], h.hold.rule)).collect();
            assert_eq!(news, want);
        };
        check(&[(a, hold("working", "1 s ago"))], &[(&[a], "working")]);
        // A message whose evidence alone has changed is not logged again.
        check(&[(a, hold("working", "2 s ago"))], &[]);
        check(
            &[(a, hold("blocked", "")), (b, hold("blocked", ""))],
            &[(&[a, b], "blocked")],
        );
        check(&[(a, hold("blocked", "")), (b, None)], &[]);
        check(
            &[(a, hold("draft", "")), (b, hold("blocked", ""))],
            &[(&[a], "draft"), (&[b], "blocked")],
        );
        // A message that stopped waiting and waits again is logged again.
        check(&[(b, hold("blocked", ""))], &[]);
        check(&[(a, hold("draft", ""))], &[(&[a], "draft")]);
    }
}
