//! An offer from its record in the journal to its typed text: the last look at the box, and the
//! write. Enter follows in `submit`.

use super::super::{Delivery, Effect, JOURNAL_RETRY_INTERVAL, Rule};
use super::answer;
use super::state::{
    Backoff, Lane, OutgoingTurn, Preparation, State, Submission, TurnKind, TypedTurn,
};
use crate::activity::Activity;
use crate::harness::BoxState;
use crate::id::MessageId;
use crate::moment::Moment;
use crate::turn::InputMode;

impl Delivery {
    /// Whether the box has been empty for long enough, if the harness describes it.
    fn may_type_now(&self, turn: &OutgoingTurn) -> bool {
        let needs_box = self.input_box.is_described() && !turn.is_answer();
        !needs_box || self.input_box.is_empty_and_steady()
    }

    /// Continue an offer once the box is steady, or drop the offer if the box is no longer empty.
    pub(super) fn continue_settling(&mut self, turn: OutgoingTurn) -> Vec<Effect> {
        let is_empty = *self.input_box.state() == BoxState::Empty && !self.agent.is_asking();
        if !is_empty || self.interrupt_rule().is_some() {
            self.terminal.state = State::Free;
            return Vec::new();
        }
        match self.may_type_now(&turn) {
            true => self.record(turn),
            false => Vec::new(),
        }
    }

    /// Have the journal record the offer.
    pub(crate) fn record(&mut self, mut turn: OutgoingTurn) -> Vec<Effect> {
        if let Some(call) = self.begin_call(&turn) {
            return vec![call];
        }
        if !self.may_type_now(&turn) {
            self.terminal.state = State::Preparing(turn, Preparation::Settling);
            return Vec::new();
        }
        if !turn.is_answer() {
            turn.http_failure = self.http_failure().map(str::to_owned);
        }
        let effect = turn.offer();
        self.terminal.state = State::Preparing(turn, Preparation::Recording);
        vec![effect]
    }

    pub(crate) fn recorded(&mut self, mut ids: Vec<MessageId>) -> Vec<Effect> {
        let State::Preparing(turn, Preparation::Recording) = &self.terminal.state else {
            return Vec::new();
        };
        let turn = turn.clone();
        self.terminal.state = State::Free;
        if ids.is_empty() {
            return Vec::new();
        }
        // While the journal recorded the offer, a rule may have come to forbid typing, or the program
        // may have turned bracketed paste off.
        let rule = self.typing_rule(turn.lane);
        if turn.kind == TurnKind::Reminders {
            return match rule {
                Some(_) => Vec::new(),
                None => self.begin(OutgoingTurn { ids, ..turn }),
            };
        }
        let withdraw = |ids, why: &str| {
            let reason = format!("nothing was written: {why}");
            Effect::Withdraw { ids, reason }
        };
        if let Some(rule) = rule {
            return vec![withdraw(ids, rule.name())];
        }
        if turn.is_answer() && self.agent.has_question_changed(turn.question.as_ref()) {
            return vec![withdraw(ids, answer::GONE)];
        }
        let rest = match self.input_box.mode {
            InputMode::Typed => ids.split_off(1),
            InputMode::Pasted => Vec::new(),
        };
        let rest =
            (!rest.is_empty()).then(|| withdraw(rest, "the program turned bracketed paste off"));
        self.input_box.forget_restored();
        let begun = self.begin(OutgoingTurn { ids, ..turn });
        rest.into_iter().chain(begun).collect()
    }

    /// Drop an offer whose text is not written, because a person has typed first.
    pub(crate) fn refused(&mut self, now: Moment) {
        match std::mem::take(&mut self.terminal.state) {
            State::Preparing(_, Preparation::Recording) => {}
            State::Submitting(typed, Submission::Resuming) => {
                self.terminal.awaiting_enter = Some(typed);
                self.input_box.refuse_keyboard(now);
            }
            other => self.terminal.state = other,
        }
    }

    /// Wait before the next offer, because the journal could not be written.
    pub(crate) fn back_off(&mut self, now: Moment, why: String) {
        if let State::Preparing(_, Preparation::Recording) = self.terminal.state {
            self.terminal.state = State::Backoff(Backoff {
                since: now,
                until: now.mono + JOURNAL_RETRY_INTERVAL,
                why,
            });
        }
    }

    /// Begin to write a recorded turn. If the harness describes the input box, look at the box first.
    fn begin(&mut self, turn: OutgoingTurn) -> Vec<Effect> {
        if self.input_box.is_described() && !turn.is_answer() {
            self.terminal.state = State::Preparing(turn, Preparation::CheckingBox);
            return vec![Effect::Look];
        }
        vec![self.write(TypedTurn::new(turn))]
    }

    /// The second of two looks. The first was taken at least 100 ms ago, and the text is written only
    /// if both show an empty box with no output in between.
    pub(super) fn write_into_box(&mut self, turn: OutgoingTurn) -> Vec<Effect> {
        let is_ready = !self.agent.is_asking() && self.input_box.is_empty_and_steady();
        let working = self.agent.is_at_work().then_some(Rule::Working);
        match self.typing_rule(turn.lane).or(working) {
            None if is_ready => {
                self.input_box.note_steady();
                vec![self.write(TypedTurn::new(turn))]
            }
            rule => {
                if rule.is_none() {
                    self.input_box.note_change();
                }
                self.terminal.state = State::Free;
                let changed = "the screen changed before the text was typed";
                turn.withdrawn(rule.map_or(changed, Rule::name))
            }
        }
    }

    /// Have the text written.
    pub(super) fn write(&mut self, mut typed: TypedTurn) -> Effect {
        let turn = &mut typed.turn;
        if let Some(answer) = &mut turn.answer {
            answer.attempts = answer.attempts.saturating_add(1);
            answer.output = self.input_box.output();
            answer.at_cursor = self.input_box.at_cursor().map(str::to_owned);
        }
        if self.config.harness.has_proof() {
            let written = turn.headers.iter();
            for header in written.filter(|header| turn.ids.contains(&header.id)) {
                self.proof.unproven.add(header);
            }
        }
        let write = turn.write();
        self.terminal.state = State::Submitting(typed, Submission::Writing);
        write
    }

    pub(crate) fn wrote(&mut self, now: Moment, text: String) -> Vec<Effect> {
        if let State::Submitting(typed, Submission::Writing) = &self.terminal.state {
            let typed = TypedTurn {
                text,
                shown_by: now.mono + self.config.harness.submit.seen_within.get(),
                ..typed.clone()
            };
            let enter_at = now.mono + self.enter_after();
            self.terminal.state = State::Submitting(typed, Submission::Delaying { enter_at });
        }
        let submitted = self.submitted(now);
        if submitted.is_empty() {
            return self.proceed(now);
        }
        submitted
    }

    /// Return the rule that withholds Enter from a written text. A pause does not withhold it: a turn
    /// that has begun is finished.
    pub(crate) fn enter_rule(&self, lane: Lane) -> Option<Rule> {
        match (self.agent.activity(), lane) {
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                Some(Rule::Blocked)
            }
            (_, _) if self.agent.handed_over.is_some() => Some(Rule::HandedOver),
            // An empty box has nothing to submit.
            (_, Lane::Interrupt | Lane::Normal | Lane::Idle)
                if self.agent.is_at_work() && *self.input_box.state() != BoxState::Empty =>
            {
                Some(Rule::Working)
            }
            (_, _) => self.input_box.is_typed().then_some(Rule::Draft),
        }
    }
}
