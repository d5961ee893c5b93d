//! The route through the agent's own HTTP API.
//!
//! Nothing is typed, so neither the input box nor a draft matters here. There is one call at a
//! time. If the API does not answer, the terminal is the route for a while.
//!
//! ```text
//!       carry            confirmed             recorded, no rule        accepted
//! Idle ──────▶ Checking ──────────▶ Recording ──────────────────▶ Sent ─────────▶ offered, Idle
//!                 │ refused             └ a rule: withdrawn, Idle   ├─▶ withdrawn (refused)
//!                 └─▶ Idle, and not used for 30 s ◀─────────────────┴─▶ uncertain (silent for 5 s)
//! ```

use super::{ANSWERED_WITHIN, Route, slow, unsent};
use crate::activity::Activity;
use crate::delivery::{Conditions, Lane, OutgoingTurn, Reach, Rule};
use crate::driver::{Action, Input};
use crate::harness;
use crate::id::MessageId;
use crate::mail::MessageState;
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
pub(crate) const ANSWERS: &str = "the API answers, or some seconds have passed without an answer";

/// The API did not answer, or its answer was invalid.
#[derive(Debug, Clone)]
struct Failure {
    /// Until when the API is not used.
    until: Duration,
    why: String,
}

/// A turn for one conversation.
#[derive(Debug, Clone)]
struct Call {
    turn: OutgoingTurn,
    conversation: String,
}

/// A call that was sent to the API.
#[derive(Debug, Clone)]
struct Sent {
    turn: OutgoingTurn,
    until: Duration,
    /// Whether the agent was working at that time.
    is_mid_turn: bool,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Idle,
    /// The API is asked whether it is this agent's.
    Checking(Call),
    /// The journal records the offer.
    Recording(Call),
    Sent(Sent),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct HttpRoute {
    state: State,
    failure: Option<Failure>,
    /// The conversation that hooks reported last.
    conversation: Option<String>,
    /// Whether the API took messages during a turn, and the agent was not told to continue since.
    has_unanswered: bool,
}

/// Return a note for the evidence: why the terminal is the route although the agent has an API.
pub(crate) fn describe_failure(why: &str) -> String {
    format!("; not by its own HTTP API: {why}")
}

/// Whether the API is the route of this harness.
fn is_used(at: &Conditions) -> bool {
    at.config.reach == Reach::Terminal
        && at.config.harness.routes.first() == Some(&harness::Route::Http)
}

impl HttpRoute {
    /// Return the turn that is on its way.
    pub(crate) fn turn(&self) -> Option<&OutgoingTurn> {
        match &self.state {
            State::Idle => None,
            State::Checking(Call { turn, .. })
            | State::Recording(Call { turn, .. })
            | State::Sent(Sent { turn, .. }) => Some(turn),
        }
    }

    /// Return the conversation of the API, if the API may be used now.
    pub(crate) fn conversation<'a>(&self, at: &'a Conditions) -> Option<&'a str> {
        let is_open = is_used(at) && self.failure.is_none();
        at.agent.heard.session().filter(|_| is_open)
    }

    /// Whether the API is the route for a lane now. Answers, and keys that dismiss a question, go
    /// through the terminal.
    pub(crate) fn is_route(&self, at: &Conditions, lane: Lane) -> bool {
        let is_steady = match at.agent.activity() {
            Activity::Idle | Activity::Working => true,
            Activity::Starting | Activity::Blocked(_) | Activity::Exited => false,
        };
        lane != Lane::Raw && is_steady && self.conversation(at).is_some()
    }

    /// Return why the API is not used now, if it failed.
    pub(crate) fn failure(&self, at: &Conditions) -> Option<&str> {
        let failure = self.failure.as_ref().filter(|_| is_used(at));
        failure.map(|failure| failure.why.as_str())
    }

    /// Return why the API is not used now, and for how long, in words.
    pub(crate) fn failure_text(&self, now: Moment, at: &Conditions) -> Option<String> {
        let why = self.failure(at)?;
        let until = self.failure.as_ref()?.until;
        let seconds = until.saturating_sub(now.mono).as_secs() + 1;
        Some(format!("it is not used for {seconds} s more: {why}"))
    }

    /// Interrupt the agent by its API.
    pub(crate) fn interrupt(&self, at: &Conditions) -> Action {
        // Without a known conversation, the id is empty, and the API refuses it.
        let conversation = self.conversation(at).unwrap_or_default().to_owned();
        Action::ApiInterrupt { conversation }
    }

    /// Have the agent continue, if it is needed. After a turn that ends with a denial, messages from
    /// the middle of the turn are unanswered. No call may be under way.
    pub(crate) fn resume(&mut self, at: &Conditions) -> Option<Action> {
        let is_over = self.has_unanswered && at.agent.activity() == Activity::Idle;
        let conversation = self.conversation(at).filter(|_| is_over)?.to_owned();
        self.has_unanswered = false;
        Some(Action::ApiContinue { conversation })
    }

    /// Note the conversation that hooks report. An earlier failure does not apply to the API of
    /// another conversation.
    fn set_conversation(&mut self, conversation: Option<&str>) {
        if conversation.is_some() && conversation != self.conversation.as_deref() {
            self.conversation = conversation.map(str::to_owned);
            self.failure = None;
            self.has_unanswered = false;
        }
    }

    /// Note what an input says about the API that is not the result of a call.
    fn note(&mut self, at: &Conditions, input: &Input) {
        match input {
            Input::HookCalled { .. } => self.set_conversation(at.agent.heard.session()),
            // The agent was not interrupted.
            Input::ApiRefused { why, .. } => self.fail(at.now, why),
            // It is asked again after [`API_COOLDOWN`].
            Input::ApiNotContinued { why } => {
                self.fail(at.now, why);
                self.has_unanswered = true;
            }
            _ => {}
        }
    }

    fn fail(&mut self, now: Moment, why: &str) {
        self.failure = Some(Failure {
            until: now.mono + API_COOLDOWN,
            why: text::one_line(why, 200),
        });
    }

    /// Send the messages of a recorded offer to the API, unless a rule holds them now.
    fn send(&mut self, at: &mut Conditions, call: Call) -> Action {
        let Call { turn, conversation } = call;
        if let Some(rule) = self.rule(at, turn.lane) {
            return unsent(at, &turn, rule.name());
        }
        at.proof.http.add_all(&turn.messages);
        let offer = turn.number;
        let messages = at.turn_messages(&turn.messages);
        self.state = State::Sent(Sent {
            turn,
            until: at.now.mono + ANSWERED_WITHIN,
            is_mid_turn: at.agent.activity() == Activity::Working,
        });
        Action::PutMail {
            offer,
            messages,
            conversation,
        }
    }

    /// Record that the API has the messages. An idle agent begins a turn with the messages, which
    /// also covers all earlier ones.
    fn accepted(&mut self, at: &mut Conditions, sent: &Sent) -> Action {
        self.has_unanswered = sent.is_mid_turn;
        let since = Some(sent.turn.since.mono);
        at.agent.given(at.now, since);
        at.reminders.note_turn(at.now, &sent.turn.kind);
        let (route, evidence) = (harness::Route::Http, TAKEN.to_owned());
        at.offered(sent.turn.ids(), route, evidence, true)
    }
}

impl Route for HttpRoute {
    fn rule(&self, at: &Conditions, lane: Lane) -> Option<Rule> {
        let is_behind = at.input_box.own.is_awaiting_enter();
        at.direct_rule(lane).or_else(|| match at.agent.activity() {
            Activity::Working if lane == Lane::Idle => Some(Rule::Working),
            // A text that waits for its Enter was due before.
            _ => is_behind.then_some(Rule::AwaitingEnter),
        })
    }

    fn carry(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        let offer = turn.number;
        let conversation = self.conversation(at).unwrap_or_default().to_owned();
        self.state = State::Checking(Call {
            turn,
            conversation: conversation.clone(),
        });
        vec![Action::CheckApi {
            offer,
            conversation,
        }]
    }

    fn on(&mut self, at: &mut Conditions, input: &Input) -> Vec<Action> {
        let action = match (std::mem::take(&mut self.state), input) {
            (State::Checking(call), Input::ApiConfirmed(n)) if call.turn.number == *n => {
                let commit = call.turn.commit();
                let operation = call.turn.offering(harness::Route::Http);
                self.state = State::Recording(call);
                Some(Action::Commit { commit, operation })
            }
            (State::Recording(mut call), Input::Committed { commit, ids, .. })
                if call.turn.commit() == *commit =>
            {
                call.turn.retain(ids);
                (!ids.is_empty()).then(|| self.send(at, call))
            }
            (State::Recording(call), Input::NotCommitted { commit, why, .. })
                if call.turn.commit() == *commit =>
            {
                at.back_off(why);
                None
            }
            (State::Sent(sent), Input::ApiAccepted(n)) if sent.turn.number == *n => {
                Some(self.accepted(at, &sent))
            }
            (State::Sent(sent), Input::ApiSilent(n)) if sent.turn.number == *n => {
                self.fail(at.now, NO_ANSWER);
                at.proof.note_silent_api(&sent.turn.ids());
                Some(at.uncertain(sent.turn.ids(), SILENT))
            }
            (State::Checking(call), Input::ApiRefused { offer, why, .. })
                if call.turn.number == *offer =>
            {
                self.fail(at.now, why);
                None
            }
            (State::Sent(Sent { turn, .. }), Input::ApiRefused { offer, why, .. })
                if turn.number == *offer =>
            {
                self.fail(at.now, why);
                at.proof.http.remove(&turn.ids());
                Some(unsent(at, &turn, &format!("its own HTTP API: {why}")))
            }
            (state, input) => {
                self.state = state;
                self.note(at, input);
                None
            }
        };
        action.into_iter().collect()
    }

    /// Give up a call that is not answered in time.
    fn proceed(&mut self, at: &mut Conditions) -> Vec<Action> {
        self.failure.take_if(|failure| failure.until <= at.now.mono);
        match std::mem::take(&mut self.state) {
            State::Sent(sent) if sent.until <= at.now.mono => {
                self.fail(at.now, NO_ANSWER);
                at.proof.note_silent_api(&sent.turn.ids());
                vec![at.uncertain(sent.turn.ids(), LATE)]
            }
            state => {
                self.state = state;
                Vec::new()
            }
        }
    }

    fn next_wakeup(&self, _: &Conditions) -> Option<Duration> {
        let late = match &self.state {
            State::Idle | State::Checking(_) | State::Recording(_) => None,
            State::Sent(sent) => Some(sent.until),
        };
        let cooldown = self.failure.as_ref().map(|failure| failure.until);
        late.into_iter().chain(cooldown).min()
    }

    fn has(&self, id: MessageId) -> bool {
        self.turn().is_some_and(|turn| turn.has(id))
    }

    fn explain(&self, now: Moment, _: &Conditions, _: &MessageState) -> Option<Hold> {
        let reason = "it is on its way to the agent's own HTTP API, which has not answered yet";
        slow(now, self.turn()?, "in-flight", reason.to_owned(), ANSWERS)
    }
}
