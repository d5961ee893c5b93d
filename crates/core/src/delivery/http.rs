//! The route through the agent's own HTTP API.
//!
//! Nothing is typed, so neither the input box nor a draft matters here. There is one call at a
//! time. If the API does not answer, the terminal is the route for a while.
//!
//! ```text
//! Idle ─▶ Recording ─▶ Put ─▶ offered ─▶ Idle
//!              └────────┴───▶ refused or silent ─▶ Idle, and not used for 30 s
//! ```

use super::hook::{ANSWERED_WITHIN, DirectOffer, withdrawn};
use super::proof::Unproven;
use super::terminal::{OutgoingTurn, TurnKind};
use super::{Delivery, Effect, Lane, Rule, explain};
use crate::activity::Activity;
use crate::harness::{Report, Route};
use crate::id::MessageId;
use crate::moment::Moment;
use crate::text;
use crate::why::Hold;
use std::time::Duration;

/// How long an API that did not answer is not used.
const API_COOLDOWN: Duration = Duration::from_secs(30);
const TAKEN: &str = "its own HTTP API has taken it";
const NO_ANSWER: &str = "it did not answer";
const SILENT: &str = "its own HTTP API did not say whether it has it";
const LATE: &str = "its own HTTP API did not say in time that it has it";
pub(super) const ANSWERS: &str = "the API answers, or some seconds have passed without an answer";

/// The API did not answer, or its answer was invalid.
#[derive(Debug, Clone)]
struct Failure {
    /// Until when the API is not used.
    until: Duration,
    why: String,
}

/// The call that is under way.
#[derive(Debug, Clone, Default)]
enum Call {
    #[default]
    Idle,
    /// The API is being checked, and then the offer is recorded.
    Recording(DirectOffer),
    Put(Put),
}

/// The messages that were sent to the API.
#[derive(Debug, Clone)]
struct Put {
    offer: DirectOffer,
    until: Duration,
    /// Whether the agent was working at that time.
    is_mid_turn: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct HttpRoute {
    call: Call,
    failure: Option<Failure>,
    /// The conversation that hooks reported last.
    conversation: Option<String>,
    /// Messages that were sent and are not accepted yet.
    unproven: Unproven,
    /// Whether the API was sent messages in the middle of a turn that is not over yet.
    is_mid_turn: bool,
}

impl HttpRoute {
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        let late = match &self.call {
            Call::Idle | Call::Recording(_) => None,
            Call::Put(put) => Some(put.until),
        };
        let cooldown = self.failure.as_ref().map(|failure| failure.until);
        late.into_iter().chain(cooldown).min()
    }

    pub(super) fn tick(&mut self, now: Moment) -> Option<Effect> {
        self.failure.take_if(|failure| failure.until <= now.mono);
        match &self.call {
            Call::Put(put) if put.until <= now.mono => self.silent(now, put.offer.number, LATE),
            Call::Idle | Call::Recording(_) | Call::Put(_) => None,
        }
    }

    pub(super) fn offer(&self) -> Option<&DirectOffer> {
        match &self.call {
            Call::Idle => None,
            Call::Recording(offer) | Call::Put(Put { offer, .. }) => Some(offer),
        }
    }

    pub(super) fn unproven(&self) -> &Unproven {
        &self.unproven
    }

    pub(super) fn is_calling(&self) -> bool {
        self.offer().is_some()
    }

    pub(super) fn has(&self, id: MessageId) -> bool {
        self.offer().is_some_and(|offer| offer.ids.contains(&id))
    }

    fn take(&mut self, number: u64) -> Option<Call> {
        let offer = self.offer()?;
        (offer.number == number).then(|| std::mem::take(&mut self.call))
    }

    /// Send the messages of a recorded offer to the API, unless a rule holds them now.
    pub(super) fn recorded(
        &mut self,
        now: Moment,
        number: u64,
        ids: Vec<MessageId>,
        rule: Option<Rule>,
        is_mid_turn: bool,
    ) -> Option<Effect> {
        let Call::Recording(mut offer) = self.take(number)? else {
            return None;
        };
        if ids.is_empty() {
            return None;
        }
        if let Some(rule) = rule {
            return Some(withdrawn(ids, rule.name()));
        }
        offer.ids.clone_from(&ids);
        offer.headers().for_each(|header| self.unproven.add(header));
        self.call = Call::Put(Put {
            offer,
            until: now.mono + ANSWERED_WITHIN,
            is_mid_turn,
        });
        Some(Effect::SendDirect { number, ids })
    }

    /// End an offer of which the API was given nothing, and withdraw these messages. If the offer has
    /// ended before, its messages are uncertain, or are being offered again.
    pub(super) fn refused(
        &mut self,
        now: Moment,
        number: u64,
        ids: Vec<MessageId>,
        why: &str,
    ) -> Option<Effect> {
        let ended = self.take(number);
        self.fail(now, why);
        ended?;
        self.unproven.forget(&ids);
        let why = format!("its own HTTP API: {why}");
        (!ids.is_empty()).then(|| withdrawn(ids, &why))
    }

    /// End an offer whose messages the API has, and return the offer. An idle agent begins a turn
    /// with the messages, which also covers all earlier ones.
    fn accepted(&mut self, number: u64) -> Option<DirectOffer> {
        match self.take(number)? {
            Call::Put(put) => {
                self.is_mid_turn = put.is_mid_turn;
                Some(put.offer)
            }
            Call::Idle | Call::Recording(_) => None,
        }
    }

    /// End an offer of which it is unknown whether the API has the messages.
    pub(super) fn silent(&mut self, now: Moment, number: u64, why: &str) -> Option<Effect> {
        let offer = match self.take(number)? {
            Call::Idle => return None,
            Call::Recording(offer) | Call::Put(Put { offer, .. }) => offer,
        };
        self.fail(now, NO_ANSWER);
        Some(offer.uncertain(why))
    }

    pub(super) fn dropped(&mut self, now: Moment, number: u64) -> Option<Effect> {
        self.silent(now, number, SILENT)
    }

    fn fail(&mut self, now: Moment, why: &str) {
        self.failure = Some(Failure {
            until: now.mono + API_COOLDOWN,
            why: text::one_line(why, 200),
        });
    }

    /// Note that the API did not answer when the agent was to continue. It is asked again after
    /// [`API_COOLDOWN`].
    pub(super) fn not_continued(&mut self, now: Moment, why: &str) {
        self.fail(now, why);
        self.is_mid_turn = true;
    }

    /// Note the conversation that hooks report. An earlier failure does not apply to the API of
    /// another conversation.
    pub(super) fn set_conversation(&mut self, conversation: Option<&str>) {
        if conversation.is_some() && conversation != self.conversation.as_deref() {
            self.conversation = conversation.map(str::to_owned);
            self.failure = None;
            self.is_mid_turn = false;
        }
    }

    /// Return the messages that a hook event proves to be given to the model.
    pub(super) fn prove(&mut self, report: &Report) -> Vec<MessageId> {
        let given = report.given.as_deref();
        given.map_or_else(Vec::new, |text| self.unproven.take_shown(text))
    }

    /// Explain a message on its way to the API, if that takes long.
    pub(super) fn explain(&self, now: Moment, id: MessageId) -> Option<Option<Hold>> {
        let offer = self.offer().filter(|offer| offer.ids.contains(&id))?;
        let reason = "it is on its way to the agent's own HTTP API, which has not answered yet";
        Some(explain::slow(
            now,
            offer.since,
            "in-flight",
            reason.to_owned(),
            ANSWERS,
        ))
    }
}

/// Return a note for the evidence: why the terminal is the route although the agent has an API.
pub(super) fn describe_failure(why: &str) -> String {
    format!("; not by its own HTTP API: {why}")
}

impl Delivery {
    fn has_http_route(&self) -> bool {
        self.config.harness.routes.first() == Some(&Route::Http)
    }

    /// Return the conversation of the API, if the API may be used now.
    pub fn conversation(&self) -> Option<&str> {
        let is_open = self.has_http_route() && self.http.failure.is_none();
        self.agent.heard.session().filter(|_| is_open)
    }

    /// Return why the API is not used now, if it failed.
    pub(super) fn http_failure(&self) -> Option<&str> {
        let failure = self.http.failure.as_ref().filter(|_| self.has_http_route());
        failure.map(|failure| failure.why.as_str())
    }

    /// Return why the API is not used now, and for how long, in words.
    pub fn http_failure_text(&self, now: Moment) -> Option<String> {
        let why = self.http_failure()?;
        let until = self.http.failure.as_ref()?.until;
        let seconds = until.saturating_sub(now.mono).as_secs() + 1;
        Some(format!("it is not used for {seconds} s more: {why}"))
    }

    /// Whether the API is the route for a lane now. Answers, and keys that dismiss a question, go
    /// through the terminal.
    pub(super) fn goes_by_http(&self, lane: Lane) -> bool {
        let is_steady = match self.agent.activity() {
            Activity::Idle | Activity::Working => true,
            Activity::Starting | Activity::Blocked(_) | Activity::Exited => false,
        };
        lane != Lane::Raw && is_steady && self.conversation().is_some()
    }

    /// Return the effect that has the agent continue, if it is due. After a turn that ends with a
    /// denial, messages from the middle of the turn are unanswered. A message in flight makes the
    /// agent continue anyway. In a pause, no turn begins.
    pub(crate) fn continue_by_api(&mut self) -> Option<Effect> {
        let is_over = self.http.is_mid_turn && self.agent.activity() == Activity::Idle;
        let is_quiet = self.terminal.is_free() && !self.http.is_calling();
        let is_held = !is_quiet || self.is_paused_for(Lane::Normal);
        if !is_over || is_held || self.conversation().is_none() {
            return None;
        }
        self.http.is_mid_turn = false;
        Some(Effect::Continue)
    }

    /// Begin an offer by the API, if the API is the route of this turn.
    pub(super) fn begin_call(&mut self, turn: &OutgoingTurn) -> Option<Effect> {
        if turn.kind != TurnKind::Messages || !self.goes_by_http(turn.lane) {
            return None;
        }
        self.terminal.state = super::terminal::State::Free;
        let number = self.number_offer();
        let ids = turn.ids.clone();
        self.http.call = Call::Recording(DirectOffer {
            number,
            ids: ids.clone(),
            headers: turn.headers.clone(),
            lane: turn.lane,
            since: turn.since,
        });
        Some(Effect::OfferByApi { number, ids })
    }

    /// Record that the API has the messages.
    pub(super) fn api_accepted(&mut self, now: Moment, number: u64) -> Option<Effect> {
        let offer = self.http.accepted(number)?;
        self.agent.judge.given(now, Some(offer.since.mono));
        self.reminders.note_turn(now, TurnKind::Messages);
        Some(Effect::Offered {
            ids: offer.ids,
            evidence: TAKEN.to_owned(),
            route: Route::Http,
            proof_awaited: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::tests::ms;
    use crate::mail::tests::message;

    fn calling(id: MessageId) -> HttpRoute {
        let offer = DirectOffer {
            number: 1,
            ids: vec![id],
            headers: Vec::new(),
            lane: Lane::Normal,
            since: ms(0),
        };
        HttpRoute {
            call: Call::Recording(offer),
            ..HttpRoute::default()
        }
    }

    #[test]
    fn an_api_that_fails_is_not_used_for_30_s() {
        let id = message(1, "alice", "bob").id;
        let (ids, why) = (vec![id], "404");
        let refused = withdrawn(ids.clone(), "its own HTTP API: 404");
        let reason = LATE.to_owned();
        let silent = Effect::Uncertain { ids, reason };

        let mut http = calling(id);
        assert_eq!(http.refused(ms(0), 1, vec![id], why), Some(refused));
        assert_eq!(http.next_wakeup(), Some(API_COOLDOWN));

        let mut http = calling(id);
        http.recorded(ms(0), 1, vec![id], None, true);
        assert_eq!(http.tick(ms(4_999)), None);
        assert_eq!(http.tick(ms(5_000)), Some(silent));
        assert!(!http.is_calling() && http.failure.is_some());
        http.tick(ms(35_000));
        assert!(http.failure.is_none());
    }

    #[test]
    fn a_call_in_the_middle_of_a_turn_is_remembered_until_the_turn_ends() {
        let id = message(1, "alice", "bob").id;
        let mut http = calling(id);
        assert!(http.accepted(1).is_none(), "it was not put yet");
        let mut http_2 = calling(id);
        http_2.recorded(ms(0), 1, vec![id], None, true);
        assert!(http_2.accepted(1).is_some() && http_2.is_mid_turn);
        http_2.set_conversation(Some("another conversation"));
        assert!(!http_2.is_mid_turn);
    }
}
