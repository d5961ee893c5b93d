//! The delivery of one session: which messages its agent is given, by which route, and when.
//!
//! This module is the arbiter. It keeps the order of the routes: the agent's hook, its HTTP API, and
//! last the terminal. Each route (`routes/`) is a state machine that says whether it can carry a
//! message, carries it, and explains what became of it. All of them decide by the same
//! `Conditions`.
//!
//! Inputs go in, and actions come out. It has no clock and performs no action itself. The journal
//! decides whether an offer is recorded.

mod answers;
mod conditions;
mod config;
mod evidence;
mod explain;
mod interruption;
mod nudges;
mod outgoing;
mod queries;
mod reminders;
mod routes;
mod rules;
#[cfg(test)]
pub(crate) mod tests;

pub use answers::{AnswerEnd, Answerable, OpenQuestion};
pub use conditions::JOURNAL_RETRY_INTERVAL;
pub use conditions::proof::proven_by;
pub use conditions::question::ShownAsk;
pub use config::{DeliveryConfig, PausedBy, Reach};
pub use nudges::{NudgeOutcome, NudgeRequest, RequestToken, TOO_LATE};
pub use queries::TurnInFlight;
pub use routes::loop_prompt::LoopWait;

use crate::activity::Activity;
use crate::driver::{Action, Input};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::promotion;
use crate::turn::{self, InputMode};
use conditions::Conditions;
use conditions::question::OpenDialog;
use interruption::Interruption;
use nudges::Nudges;
use outgoing::{Answer, Lane, OutgoingTurn, TurnKind};
use routes::Route;
use routes::hook::HookRoute;
use routes::http::{self, HttpRoute};
use routes::terminal::TerminalRoute;
use rules::Rule;
use std::time::Duration;

/// The next thing that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Offer these messages as one turn. With `interrupt`, interrupt the agent first.
    Offer {
        ids: Vec<MessageId>,
        interrupt: bool,
    },
    /// Nothing is due before this time on the monotonic clock, unless something happens.
    Wait { until: Option<Duration> },
}

/// Decides which route carries which messages, and when.
#[derive(Debug, Clone)]
pub struct Delivery {
    at: Conditions,
    terminal: TerminalRoute,
    hook: HookRoute,
    http: HttpRoute,
    /// The interrupt before a turn, which a route carries afterwards.
    interruption: Option<Interruption>,
    nudges: Nudges,
}

impl Delivery {
    /// Create the delivery of a program that was started just now.
    pub fn new(config: DeliveryConfig, now: Moment) -> Self {
        Self {
            at: Conditions::new(config, now),
            terminal: TerminalRoute::default(),
            hook: HookRoute::default(),
            http: HttpRoute::default(),
            interruption: None,
            nudges: Nudges::default(),
        }
    }

    fn routes(&self) -> [&dyn Route; 3] {
        [&self.hook, &self.http, &self.terminal]
    }

    /// Return the route that carries messages of a lane now.
    fn route(&self, lane: Lane) -> &dyn Route {
        let is_by_hook = lane == Lane::Normal && !self.at.is_paused_for(lane);
        if is_by_hook && self.hook.is_awaited(&self.at) {
            &self.hook
        } else if self.http.is_route(&self.at, lane) {
            &self.http
        } else {
            &self.terminal
        }
    }

    /// Return the rule that holds messages of a lane on the route that carries them, if any.
    fn rule(&self, lane: Lane) -> Option<Rule> {
        match self.at.agent.is_handed_over() {
            true => Some(Rule::HandedOver),
            false => self.route(lane).rule(&self.at, lane),
        }
    }

    /// Whether nothing is on its way that a turn would have to wait for.
    fn is_free(&self) -> bool {
        let is_quiet = self.terminal.is_free() && self.http.turn().is_none();
        is_quiet && self.interruption.is_none() && self.at.backoff.is_none()
    }

    /// Return what is due now. `pending` is in delivery order.
    pub fn next(&self, now: Moment, pending: &[MessageState]) -> Decision {
        let until = self
            .next_wakeup()
            .into_iter()
            .chain(promotion::next_time(now, pending))
            .min();
        if !self.is_free() {
            return Decision::Wait { until };
        }
        let mut open = self.open(now, pending);
        let Some(first) = open.next() else {
            return Decision::Wait { until };
        };
        let lane = Lane::at(first, now.wall);
        let mut ids = vec![first.message.id];
        let is_by_api = self.http.is_route(&self.at, lane);
        let is_pasted = self.input() == InputMode::Pasted || is_by_api;
        if !lane.goes_alone() && is_pasted {
            let mut bytes = self.at.size(first, self.input());
            for mail in open {
                bytes += self.at.size(mail, self.input());
                if Lane::at(mail, now.wall).goes_alone() || bytes > turn::TURN {
                    break;
                }
                ids.push(mail.message.id);
            }
        }
        let is_busy = match self.at.agent.activity() {
            Activity::Working | Activity::Blocked(_) => true,
            Activity::Starting | Activity::Idle | Activity::Exited => false,
        };
        let is_busy = is_busy || self.at.input_box.unread.is_some();
        let interrupt = lane == Lane::Interrupt && is_busy;
        Decision::Offer { ids, interrupt }
    }

    /// Return the messages that no rule holds.
    fn open<'a>(
        &'a self,
        now: Moment,
        pending: &'a [MessageState],
    ) -> impl Iterator<Item = &'a MessageState> {
        let is_open = move |mail: &&MessageState| {
            mail.is_pending(now.wall)
                && self.rule(Lane::at(mail, now.wall)).is_none()
                && self.lapse(now, mail).is_none()
                && !self.is_offered_directly(mail.message.id)
        };
        pending.iter().filter(is_open)
    }

    /// Begin what is due now. `pending` must have been read after the last offer was recorded.
    pub fn act(&mut self, now: Moment, pending: &[MessageState]) -> Vec<Action> {
        self.at.now = now;
        let Decision::Offer { ids, interrupt } = self.next(now, pending) else {
            return Vec::new();
        };
        let is_due = |mail: &&MessageState| ids.contains(&mail.message.id);
        let messages: Vec<_> = pending.iter().filter(is_due).cloned().collect();
        let Some(first) = messages.first() else {
            return Vec::new();
        };
        let lane = Lane::at(first, now.wall);
        let kind = match lane {
            Lane::Raw => TurnKind::Answer(self.answer(first)),
            Lane::Interrupt | Lane::Normal | Lane::Idle => TurnKind::Messages,
        };
        let turn = self.turn(messages, kind, lane);
        if interrupt {
            return self.interrupt(Interruption::new(turn));
        }
        if lane == Lane::Interrupt && self.at.input_box.must_clear() {
            return self.clear(Interruption::new(turn));
        }
        self.carry(turn)
    }

    fn answer(&self, mail: &MessageState) -> Answer {
        let open = self.at.agent.questions.open.as_ref();
        let keys = turn::raw(mail).unwrap_or_default();
        let is_relative = keys.starts_with('\u{1b}');
        let answers = mail.message.envelope.answers.as_ref();
        Answer {
            question: open.map(OpenDialog::question),
            keys: keys.to_owned(),
            arrows_to: answers
                .filter(|_| is_relative)
                .map(|answers| answers.key.clone()),
            attempts: 0,
            output: None,
            at_cursor: None,
        }
    }

    /// Return the action that has the agent continue, if it is needed. Call this when nothing else is
    /// due: a message would have the agent continue anyway. In a pause, no turn begins.
    pub(crate) fn continue_by_api(&mut self) -> Option<Action> {
        let may_begin = self.is_free() && !self.at.is_paused_for(Lane::Normal);
        may_begin.then(|| self.http.resume(&self.at)).flatten()
    }

    fn turn(&mut self, messages: Vec<MessageState>, kind: TurnKind, lane: Lane) -> OutgoingTurn {
        OutgoingTurn {
            number: self.at.next_number(),
            messages,
            kind,
            lane,
            since: self.at.now,
            notes: String::new(),
            proof: None,
        }
    }

    /// Carry a turn by the API or, if the API is not the route, by the terminal.
    fn carry(&mut self, mut turn: OutgoingTurn) -> Vec<Action> {
        if self.http.is_route(&self.at, turn.lane) {
            return self.http.carry(&mut self.at, turn);
        }
        let failure = self.http.failure(&self.at);
        let failure = failure.filter(|_| !turn.is_answer());
        turn.notes
            .extend(failure.map(http::describe_failure).as_deref());
        self.carry_by_terminal(turn)
    }

    fn carry_by_terminal(&mut self, turn: OutgoingTurn) -> Vec<Action> {
        self.at_terminal(|terminal, at| terminal.carry(at, turn))
    }

    /// Give due mail to the hook that was called just now, if it can pass mail on. Otherwise answer
    /// it without mail. `pending` must have been read after the last offer was recorded.
    pub fn answer_hook(&mut self, now: Moment, pending: &[MessageState]) -> Vec<Action> {
        self.at.now = now;
        let lane = Lane::Normal;
        let messages = match self.hook.rule(&self.at, lane) {
            None => self.due_by_hook(now, pending),
            Some(_) => Vec::new(),
        };
        if messages.is_empty() {
            return self.hook.decline().into_iter().collect();
        }
        let turn = self.turn(messages, TurnKind::Messages, lane);
        self.hook.carry(&mut self.at, turn)
    }

    fn due_by_hook(&self, now: Moment, pending: &[MessageState]) -> Vec<MessageState> {
        let is_due = |mail: &&MessageState| {
            let id = mail.message.id;
            mail.is_pending(now.wall)
                && Lane::at(mail, now.wall) == Lane::Normal
                && !self.is_in_terminal(id)
                && !self.is_offered_directly(id)
        };
        let mut bytes = 0;
        let fits = |(place, mail): &(usize, &MessageState)| {
            bytes += self.at.size(mail, InputMode::Pasted);
            *place == 0 || bytes <= turn::TURN
        };
        let due = pending.iter().filter(is_due).enumerate().take_while(fits);
        due.map(|(_, mail)| mail.clone()).collect()
    }

    /// Handle an input, and return the actions that follow. Each part handles the inputs that concern
    /// it.
    pub fn on(&mut self, now: Moment, input: &Input) -> Vec<Action> {
        let mut actions = self.tick_all(now);
        let is_writing = self.terminal.is_writing();
        self.at.note(input, is_writing, self.terminal.answer());
        actions.extend(match input {
            Input::HookCalled { report, .. } => self.hear(report),
            Input::TranscriptsRead { shown, .. } => self.transcript_read(shown),
            Input::NudgeRequested(request) => self.nudge_requested(request),
            Input::Exited(_) => self.nudges.refuse_all(),
            _ => self.on_interruption(input),
        });
        actions.extend(self.hook.on(&mut self.at, input));
        actions.extend(self.http.on(&mut self.at, input));
        actions.extend(self.at_terminal(|terminal, at| terminal.on(at, input)));
        actions.extend(self.proceed());
        actions
    }

    /// Do what is due at [`Self::next_wakeup`].
    pub fn tick(&mut self, now: Moment) -> Vec<Action> {
        let mut actions = self.tick_all(now);
        actions.extend(self.proceed());
        actions
    }

    fn tick_all(&mut self, now: Moment) -> Vec<Action> {
        self.at.tick(now);
        let mut actions = self.http.proceed(&mut self.at);
        actions.extend(self.hook.proceed(&mut self.at));
        actions.extend(self.nudges.tick(now));
        actions
    }

    /// Continue everything that is on its way as far as possible now.
    fn proceed(&mut self) -> Vec<Action> {
        let agent = &mut self.at.agent;
        agent.ignores_interrupts &= agent.activity() == Activity::Working;
        let mut actions = self.continue_interruption();
        if self.interruption.is_none() {
            loop {
                let more = self.at_terminal(TerminalRoute::proceed);
                if more.is_empty() {
                    break;
                }
                actions.extend(more);
            }
            actions.extend(self.begin_line());
        }
        actions.extend(self.at.give_up_transcript());
        actions
    }

    /// Take a step of the route through the terminal. Release the keyboard once it needs the keyboard
    /// no more.
    fn at_terminal(
        &mut self,
        step: impl FnOnce(&mut TerminalRoute, &mut Conditions) -> Vec<Action>,
    ) -> Vec<Action> {
        let before = self.terminal.keyboard();
        let mut actions = step(&mut self.terminal, &mut self.at);
        self.at.input_box.own = self.terminal.own_text();
        let released = before.filter(|_| self.terminal.keyboard().is_none());
        actions.extend(released.map(Action::ReleaseKeyboard));
        actions
    }

    /// Return the monotonic time of the next tick that has an effect.
    pub fn next_wakeup(&self) -> Option<Duration> {
        let terminal = match self.interruption {
            Some(_) => self.interruption_wakeup(),
            None => self.terminal.next_wakeup(&self.at),
        };
        [
            terminal,
            self.at.next_wakeup(),
            self.hook.next_wakeup(&self.at),
            self.http.next_wakeup(&self.at),
            self.nudges.next_wakeup(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
