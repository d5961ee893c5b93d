//! The route through the agent's own hook.
//!
//! Nothing is typed, so neither the input box nor a draft matters here. An offer is recorded before
//! the hook is given anything. The mail is offered once the hook reports that it has passed the mail
//! on. Without that report, the mail becomes uncertain.
//!
//! ```text
//! Recording ─▶ Given ─▶ offered, or uncertain (gone, or silent for 5 s)
//!     └──────▶ withdrawn
//! ```

use super::proof::{MessageHeader, Unproven};
use super::{Delivery, Effect, Lane, Reach, Rule, explain};
use crate::activity::Activity;
use crate::harness::{Proof, Report, Route, Turn};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::turn::{self, InputMode};
use crate::why::Hold;
use std::time::Duration;

/// How long a hook may take to report that it has passed its mail on, and an API to answer.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
const PASSED_ON: &str = "its hook has passed it on to the program";
const SHOWN: &str = "its transcript shows the id in the text of its hook";
const GONE: &str = "its hook ended before it had passed it on";
const LATE: &str = "its hook did not report in time that it had passed it on";

/// Messages for one call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOffer {
    pub number: u64,
    pub ids: Vec<MessageId>,
}

/// An offer by the hook or the API, which bypasses the terminal.
#[derive(Debug, Clone)]
pub(super) struct DirectOffer {
    pub(super) number: u64,
    pub(super) ids: Vec<MessageId>,
    pub(super) headers: Vec<MessageHeader>,
    pub(super) lane: Lane,
    pub(super) since: Moment,
}

impl DirectOffer {
    /// Return the headers of the messages whose offer the journal has recorded.
    pub(super) fn headers(&self) -> impl Iterator<Item = &MessageHeader> {
        let headers = self.headers.iter();
        headers.filter(|header| self.ids.contains(&header.id))
    }

    pub(super) fn uncertain(self, why: &str) -> Effect {
        Effect::Uncertain {
            ids: self.ids,
            reason: why.to_owned(),
        }
    }
}

pub(super) fn withdrawn(ids: Vec<MessageId>, why: &str) -> Effect {
    let reason = format!("nothing was sent: {why}");
    Effect::Withdraw { ids, reason }
}

#[derive(Debug, Clone)]
enum State {
    Recording,
    /// The hook has the mail, and must report by this time.
    Given {
        until: Duration,
    },
}

#[derive(Debug, Clone, Default)]
pub(super) struct HookRoute {
    offers: Vec<(DirectOffer, State)>,
    /// Messages that were passed on and are not accepted yet.
    pub(super) unproven: Unproven,
    /// Whether the last hook that takes mail reported a question.
    has_asked: bool,
}

impl HookRoute {
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        let until = |(_, state): &(DirectOffer, State)| match state {
            State::Recording => None,
            State::Given { until } => Some(*until),
        };
        self.offers.iter().filter_map(until).min()
    }

    pub(super) fn is_offering(&self) -> bool {
        !self.offers.is_empty()
    }

    fn get(&self, id: MessageId) -> Option<&DirectOffer> {
        let mut offers = self.offers.iter().map(|(offer, _)| offer);
        offers.find(|offer| offer.ids.contains(&id))
    }

    pub(super) fn has(&self, id: MessageId) -> bool {
        self.get(id).is_some()
    }

    pub(super) fn offer(&self, number: u64) -> Option<&DirectOffer> {
        Some(&self.offers[self.position(number)?].0)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.offers
            .iter()
            .position(|(offer, _)| offer.number == number)
    }

    pub(super) fn take(&mut self, number: u64) -> Option<DirectOffer> {
        let at = self.position(number)?;
        Some(self.offers.remove(at).0)
    }

    /// Explain a message on its way to a hook, if that takes long.
    pub(super) fn explain(&self, now: Moment, id: MessageId) -> Option<Option<Hold>> {
        let reason = "it is on its way to the agent's hook, which has not taken it yet";
        let release = "the hook reports that it has passed it on, or ends";
        let since = self.get(id)?.since;
        Some(explain::slow(
            now,
            since,
            "in-flight",
            reason.to_owned(),
            release,
        ))
    }

    /// Send the messages of a recorded offer to the hook, unless a rule holds them now. Return
    /// nothing if there is no such offer.
    pub(super) fn recorded(
        &mut self,
        now: Moment,
        number: u64,
        ids: &[MessageId],
        rule: Option<Rule>,
    ) -> Option<Vec<Effect>> {
        let at = self.position(number)?;
        if ids.is_empty() || rule.is_some() {
            self.offers.remove(at);
            let rule = rule.filter(|_| !ids.is_empty());
            let withdrawal = rule.map(|rule| withdrawn(ids.to_vec(), rule.name()));
            return Some(withdrawal.into_iter().collect());
        }
        let (offer, state) = &mut self.offers[at];
        offer.ids = ids.to_vec();
        let until = now.mono + ANSWERED_WITHIN;
        *state = State::Given { until };
        let ids = ids.to_vec();
        Some(vec![Effect::SendDirect { number, ids }])
    }

    /// End an offer whose hook ended without a report.
    pub(super) fn gone(&mut self, number: u64) -> Option<Effect> {
        Some(self.take(number)?.uncertain(GONE))
    }

    /// Give up the offers whose hooks did not report in time.
    pub(super) fn tick(&mut self, now: Moment) -> Vec<Effect> {
        let is_late = |(_, state): &mut (DirectOffer, State)| match state {
            State::Recording => false,
            State::Given { until } => *until <= now.mono,
        };
        let late = self.offers.extract_if(.., is_late);
        late.map(|(offer, _)| offer.uncertain(LATE)).collect()
    }

    /// Return the effect of messages that a transcript shows as passed on by a hook.
    pub(super) fn prove(&mut self, given: &str) -> Option<Effect> {
        let ids = self.unproven.take_shown(given);
        let (evidence, route) = (SHOWN.to_owned(), Route::Hook);
        (!ids.is_empty()).then_some(Effect::Accepted {
            ids,
            evidence,
            route,
        })
    }
}

impl Delivery {
    fn has_hook_route(&self) -> bool {
        let harness = &self.config.harness;
        self.config.reach == Reach::Terminal
            && harness.routes.first() == Some(&Route::Hook)
            && !harness.hook.context.is_empty()
    }

    /// Whether mail for a working agent waits for its next hook, and leaves the screen alone.
    pub(super) fn awaits_hook(&self) -> bool {
        // No hook reports the answer to a question. If the agent works after a question, the question
        // was answered or is about to open, and in both cases the terminal must not be used.
        let is_at_work = match self.agent.heard.doing() {
            Some(Turn::Submitted | Turn::Tool | Turn::Working | Turn::Blocked) => true,
            Some(Turn::Idle) => false,
            None => self.hook.has_asked,
        };
        let is_working = self.agent.activity() == Activity::Working;
        self.has_hook_route() && is_at_work && is_working
    }

    /// Offer due mail to a hook that was called just now and can pass mail on. The caller records the
    /// offer and reports a [`super::DeliveryEvent::DirectRecorded`] or
    /// [`super::DeliveryEvent::DirectRefused`].
    pub fn offer_to_hook(
        &mut self,
        now: Moment,
        report: &Report,
        pending: &[MessageState],
    ) -> Option<HookOffer> {
        if !self.has_hook_route() || !self.agent.heard.is_own(report) {
            return None;
        }
        self.hook.has_asked = report.turn == Some(Turn::Blocked);
        if !report.takes || self.agent.heard.is_aside() {
            return None;
        }
        if self.rule_of(Route::Hook, Lane::Normal).is_some() {
            return None;
        }
        let messages = self.due_by_hook(now, pending);
        if messages.is_empty() {
            return None;
        }
        let ids: Vec<_> = messages.iter().map(|mail| mail.message.id).collect();
        let headers = messages.into_iter().map(MessageHeader::of).collect();
        let number = self.number_offer();
        let offer = DirectOffer {
            number,
            ids: ids.clone(),
            headers,
            lane: Lane::Normal,
            since: now,
        };
        self.hook.offers.push((offer, State::Recording));
        Some(HookOffer { number, ids })
    }

    fn due_by_hook<'a>(&self, now: Moment, pending: &'a [MessageState]) -> Vec<&'a MessageState> {
        let is_due = |mail: &&MessageState| {
            let id = mail.message.id;
            mail.is_pending(now.wall)
                && Lane::at(mail, now.wall) == Lane::Normal
                && !self.terminal.has(id)
                && !self.is_offered_directly(id)
        };
        let mut bytes = 0;
        let fits = |(at, mail): &(usize, &MessageState)| {
            let placement = self.placement(mail);
            bytes += turn::size(mail, placement, InputMode::Pasted, self.config.path_bytes);
            *at == 0 || bytes <= turn::TURN
        };
        let due = pending.iter().filter(is_due).enumerate().take_while(fits);
        due.map(|(_, mail)| mail).collect()
    }

    /// The hook has passed its mail on. Only the transcript can prove that the model was given it.
    pub(super) fn passed_on(&mut self, number: u64) -> Option<Effect> {
        let offer = self.hook.take(number)?;
        for header in offer.headers() {
            self.hook.unproven.add(header);
        }
        Some(Effect::Offered {
            ids: offer.ids,
            evidence: PASSED_ON.to_owned(),
            route: Route::Hook,
            proof_awaited: self.config.harness.proof.contains(&Proof::Transcript),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::tests::ms;
    use crate::mail::tests::message;

    fn offered(ids: &[MessageId]) -> HookRoute {
        let offer = DirectOffer {
            number: 1,
            ids: ids.to_vec(),
            headers: Vec::new(),
            lane: Lane::Normal,
            since: ms(0),
        };
        HookRoute {
            offers: vec![(offer, State::Recording)],
            ..HookRoute::default()
        }
    }

    #[test]
    fn a_recorded_offer_is_given_unless_a_rule_holds_it() {
        let id = message(1, "alice", "bob").id;
        let check = |number, ids: &[MessageId], rule, want: Option<Vec<Effect>>, is_kept| {
            let mut hook = offered(&[id]);
            assert_eq!(hook.recorded(ms(0), number, ids, rule), want);
            assert_eq!(hook.has(id), is_kept);
        };
        let give = Effect::SendDirect {
            number: 1,
            ids: vec![id],
        };
        check(1, &[id], None, Some(vec![give]), true);
        check(1, &[], None, Some(Vec::new()), false);
        let withdrawal = withdrawn(vec![id], "paused");
        check(1, &[id], Some(Rule::Paused), Some(vec![withdrawal]), false);
        check(2, &[id], None, None, true);
    }

    #[test]
    fn a_hook_that_does_not_report_in_time_leaves_its_mail_uncertain() {
        let id = message(1, "alice", "bob").id;
        let mut hook = offered(&[id]);
        assert_eq!(hook.next_wakeup(), None);
        hook.recorded(ms(1_000), 1, &[id], None);
        assert_eq!(hook.next_wakeup(), Some(ms(6_000).mono));
        assert_eq!(hook.tick(ms(5_999)), []);
        let ids = vec![id];
        let reason = LATE.to_owned();
        assert_eq!(hook.tick(ms(6_000)), [Effect::Uncertain { ids, reason }]);
        assert!(!hook.has(id));
    }
}
