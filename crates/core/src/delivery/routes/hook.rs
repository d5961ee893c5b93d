//! The route through the agent's own hook.
//!
//! Nothing is typed, so neither the input box nor a draft matters here. An offer is recorded before
//! the hook is given anything. The agent waits for its hook, so a hook is answered without mail if
//! the journal is slow. The mail is offered once the hook reports that it has passed the mail on.
//! Without that report, the mail becomes uncertain.
//!
//! ```text
//!             recorded in time, no rule       passed on
//! Recording ──────────────────────────▶ Given ─────────▶ offered
//!   │    │ a rule: answered without mail  └──▶ uncertain (gone, or silent for 5 s)
//!   │    └─────────────────────────────────▶ withdrawn
//!   └─ 120 ms: answered without mail ─▶ Late ─ recorded ─▶ withdrawn
//! ```

use super::{ANSWERED_WITHIN, Route, slow, unsent};
use crate::activity::Activity;
use crate::delivery::{Conditions, Lane, OutgoingTurn, Reach, Rule};
use crate::driver::{Action, HookCall, HookMail, Input};
use crate::harness::{self, Proof, Report, Turn};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::why::Hold;
use std::time::Duration;

/// How long the journal may take to record an offer to a hook. The agent waits for its hook, and the
/// hook gives up after 200 ms.
const COMMITTED_WITHIN: Duration = Duration::from_millis(120);
const TOO_LATE: &str = "the journal took longer than a hook waits";
const PASSED_ON: &str = "its hook has passed it on to the program";
const GONE: &str = "its hook ended before it had passed it on";
const LATE: &str = "its hook did not report in time that it had passed it on";

#[derive(Debug, Clone)]
enum State {
    /// The journal records the offer, and the hook waits for its answer until this time.
    Recording { call: HookCall, answer_by: Duration },
    /// The journal records the offer, and the hook was answered without mail.
    Late,
    /// The hook has the mail, and must report by this time.
    Given { until: Duration },
}

#[derive(Debug, Clone)]
struct Offer {
    turn: OutgoingTurn,
    state: State,
}

impl Offer {
    fn next_wakeup(&self) -> Option<Duration> {
        match &self.state {
            State::Recording { answer_by: at, .. } | State::Given { until: at } => Some(*at),
            State::Late => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct HookRoute {
    /// The hook call that waits for mail.
    caller: Option<HookCall>,
    offers: Vec<Offer>,
    /// Whether the last hook that takes mail reported a question.
    has_asked: bool,
}

fn answer(call: HookCall, mail: Option<HookMail>) -> Action {
    Action::AnswerHook { call, mail }
}

/// Whether the hook is the route of this harness.
fn is_used(at: &Conditions) -> bool {
    let harness = &at.config.harness;
    at.config.reach == Reach::Terminal
        && harness.routes.first() == Some(&harness::Route::Hook)
        && !harness.hook.context.is_empty()
}

impl HookRoute {
    pub(crate) fn is_offering(&self) -> bool {
        !self.offers.is_empty()
    }

    /// Whether mail for a working agent waits for its next hook, and leaves the screen alone.
    pub(crate) fn is_awaited(&self, at: &Conditions) -> bool {
        // No hook reports the answer to a question. If the agent works after a question, the question
        // was answered or is about to open, and in both cases the terminal must not be used.
        let is_at_work = match at.agent.heard.doing() {
            Some(Turn::Submitted | Turn::Tool | Turn::Working | Turn::Blocked) => true,
            Some(Turn::Idle) => false,
            None => self.has_asked,
        };
        is_used(at) && is_at_work && at.agent.activity() == Activity::Working
    }

    /// Note a call of a hook. Answer it at once unless it can be given mail.
    fn called(&mut self, at: &Conditions, call: HookCall, report: &Report) -> Option<Action> {
        let is_own = is_used(at) && at.agent.heard.is_own(report);
        if is_own {
            self.has_asked = report.turn == Some(Turn::Blocked);
        }
        if is_own && report.takes && !at.agent.heard.is_aside() {
            self.caller = Some(call);
            return None;
        }
        Some(answer(call, None))
    }

    /// Answer the hook that waits for mail, because there is none.
    pub(crate) fn decline(&mut self) -> Option<Action> {
        self.caller.take().map(|call| answer(call, None))
    }

    fn take(&mut self, number: u64) -> Option<Offer> {
        let at = self.offers.iter().position(|o| o.turn.number == number)?;
        Some(self.offers.remove(at))
    }

    /// Give the messages of a recorded offer to the hook, unless it was answered or a rule holds them.
    fn recorded(&mut self, at: &mut Conditions, number: u64, ids: &[MessageId]) -> Vec<Action> {
        let is_recording = |offer: &&mut Offer| !matches!(offer.state, State::Given { .. });
        let mut offers = self.offers.iter_mut().filter(is_recording);
        let Some(offer) = offers.find(|offer| offer.turn.number == number) else {
            return Vec::new();
        };
        offer.turn.retain(ids);
        let rule = at.direct_rule(offer.turn.lane).map(Rule::name);
        let (caller, held) = match offer.state {
            State::Recording { call, .. } => (Some(call), rule),
            State::Late | State::Given { .. } => (None, Some(TOO_LATE)),
        };
        if let (Some(call), None, false) = (caller, held, ids.is_empty()) {
            let until = at.now.mono + ANSWERED_WITHIN;
            offer.state = State::Given { until };
            let messages = at.turn_messages(&offer.turn.messages);
            let offer = number;
            return vec![answer(call, Some(HookMail { offer, messages }))];
        }
        let held = held.filter(|_| !ids.is_empty());
        let withdrawn = held.map(|why| unsent(at, &offer.turn, why));
        self.take(number);
        let answered = caller.map(|call| answer(call, None));
        withdrawn.into_iter().chain(answered).collect()
    }

    /// The hook has passed its mail on. Only the transcript can prove that the model was given it.
    fn passed_on(&mut self, at: &mut Conditions, number: u64) -> Option<Action> {
        let Offer { turn, .. } = self.take(number)?;
        at.proof.hook.add_all(&turn.messages);
        let is_provable = at.config.harness.proof.contains(&Proof::Transcript);
        let (route, evidence) = (harness::Route::Hook, PASSED_ON.to_owned());
        Some(at.offered(turn.ids(), route, evidence, is_provable))
    }
}

impl Route for HookRoute {
    fn rule(&self, at: &Conditions, lane: Lane) -> Option<Rule> {
        // The hook takes the messages when it is called.
        let is_called = self.caller.is_some();
        at.direct_rule(lane).or((!is_called).then_some(Rule::Hook))
    }

    fn carry(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        let Some(call) = self.caller.take() else {
            return Vec::new();
        };
        let skip = at.skip_transcripts();
        let commit = Action::Commit {
            commit: turn.commit(),
            operation: turn.offering(harness::Route::Hook),
        };
        let answer_by = turn.since.mono + COMMITTED_WITHIN;
        let state = State::Recording { call, answer_by };
        self.offers.push(Offer { turn, state });
        skip.into_iter().chain([commit]).collect()
    }

    fn on(&mut self, at: &mut Conditions, input: &Input) -> Vec<Action> {
        let action = match input {
            Input::HookCalled {
                call,
                report,
                takes_mail: true,
            } => self.called(at, *call, report),
            Input::HookCalled { call, .. } => Some(answer(*call, None)),
            Input::Committed { commit, ids, .. } => {
                return self.recorded(at, commit.0, ids);
            }
            // Nothing is recorded.
            Input::NotCommitted { commit, .. } => {
                return self.recorded(at, commit.0, &[]);
            }
            Input::HookPassedOn(number) => self.passed_on(at, *number),
            Input::HookGone(number) => {
                let offer = self.take(*number);
                offer.map(|offer| at.uncertain(offer.turn.ids(), GONE))
            }
            Input::HookUnanswered { offer, why, .. } => {
                let offer = self.take(*offer);
                offer.map(|offer| unsent(at, &offer.turn, why))
            }
            _ => None,
        };
        action.into_iter().collect()
    }

    /// Answer the hooks whose commits take too long without mail, and give up the hooks that did not
    /// report in time.
    fn proceed(&mut self, at: &mut Conditions) -> Vec<Action> {
        let now = at.now.mono;
        let is_late = |offer: &mut Offer| offer.next_wakeup().is_some_and(|at| at <= now);
        let late: Vec<_> = self.offers.extract_if(.., is_late).collect();
        let mut actions = Vec::new();
        for Offer { turn, state } in late {
            match state {
                State::Recording { call, .. } => {
                    actions.push(answer(call, None));
                    let state = State::Late;
                    self.offers.push(Offer { turn, state });
                }
                State::Late => {}
                State::Given { .. } => actions.push(at.uncertain(turn.ids(), LATE)),
            }
        }
        actions
    }

    fn next_wakeup(&self, _: &Conditions) -> Option<Duration> {
        self.offers.iter().filter_map(Offer::next_wakeup).min()
    }

    fn has(&self, id: MessageId) -> bool {
        self.offers.iter().any(|offer| offer.turn.has(id))
    }

    fn explain(&self, now: Moment, _: &Conditions, mail: &MessageState) -> Option<Hold> {
        let mut turns = self.offers.iter().map(|offer| &offer.turn);
        let turn = turns.find(|turn| turn.has(mail.message.id))?;
        let reason = "it is on its way to the agent's hook, which has not taken it yet";
        let release = "the hook reports that it has passed it on, or ends";
        slow(now, turn, "in-flight", reason.to_owned(), release)
    }
}
