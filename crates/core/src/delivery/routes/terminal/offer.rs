//! An offer until its text is typed: the keyboard, the record in the journal, the last look at the
//! box, and the write. Enter follows in `submit`.

use super::{Preparation, State, Submission, TERMINAL_GONE, TerminalRoute, WrittenTurn};
use crate::delivery::answers::QUESTION_GONE;
use crate::delivery::{Conditions, Lane, OutgoingTurn, Rule, TurnKind};
use crate::driver::{Action, Input, TurnContent};
use crate::harness::{BoxState, Route};
use crate::id::MessageId;
use crate::turn::InputMode;

const DRAFT: &str = "a person is typing";

/// Whether the box has been empty for long enough, if the harness describes it.
fn may_type_now(at: &Conditions, turn: &OutgoingTurn) -> bool {
    let needs_box = at.input_box.is_described() && !turn.is_answer();
    !needs_box || at.input_box.is_empty_and_steady()
}

impl TerminalRoute {
    /// Handle an input before the text of a turn is written.
    pub(super) fn on_offer(
        &mut self,
        at: &mut Conditions,
        turn: OutgoingTurn,
        progress: Preparation,
        input: &Input,
    ) -> Vec<Action> {
        use Preparation::{CheckingBox, Leasing, Recording};
        match (progress, input) {
            (Leasing, Input::KeyboardLeased(by)) if turn.user() == *by => self.leased(at, turn),
            // A person has typed first.
            (Leasing, Input::KeyboardRefused(by)) if turn.user() == *by => turn.refused(DRAFT),
            (Leasing, Input::KeyboardGone(by)) if turn.user() == *by => {
                at.back_off(TERMINAL_GONE);
                turn.refused(TERMINAL_GONE)
            }
            (Recording, Input::Committed { commit, ids, .. }) if turn.commit() == *commit => {
                self.recorded(at, turn, ids)
            }
            (Recording, Input::NotCommitted { commit, why, .. }) if turn.commit() == *commit => {
                at.back_off(why);
                Vec::new()
            }
            // After an exit, the turn is cut off.
            (CheckingBox, Input::Looked { by, .. })
                if turn.user() == *by && !at.agent.has_exited() =>
            {
                self.check_box(at, turn)
            }
            (progress, input) => self.on_other(at, State::Preparing(turn, progress), input),
        }
    }

    /// Take the keyboard once the box is steady.
    pub(super) fn lease_when_steady(&mut self, at: &Conditions, turn: OutgoingTurn) -> Vec<Action> {
        if !may_type_now(at, &turn) {
            self.state = State::Preparing(turn, Preparation::Settling);
            return Vec::new();
        }
        let lease = Action::LeaseKeyboard(turn.user());
        let skip = match turn.kind {
            TurnKind::Messages | TurnKind::Answer(_) => at.skip_transcripts(),
            TurnKind::Reminder | TurnKind::Line(_) => None,
        };
        self.state = State::Preparing(turn, Preparation::Leasing);
        skip.into_iter().chain([lease]).collect()
    }

    /// Continue an offer once the box is steady, or drop the offer if the box is no longer empty.
    pub(super) fn settle(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        if turn.line().is_some() {
            return self.settle_line(at, turn);
        }
        let is_empty = *at.input_box.state() == BoxState::Empty && !at.agent.is_asking();
        let rule = at.terminal_rule(Lane::Interrupt);
        if is_empty && rule.is_none_or(|rule| rule == Rule::Settling) {
            return self.lease_when_steady(at, turn);
        }
        match self.can_resume(at) {
            true => self.resume(at),
            false => Vec::new(),
        }
    }

    /// Record the offer, now that the keyboard is leased. Nothing of a line is recorded.
    fn leased(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        let by = turn.user();
        if turn.line().is_some() {
            let mut actions = self.begin(at, turn);
            let is_over = self.keyboard().is_none();
            actions.extend(is_over.then_some(Action::ReleaseKeyboard(by)));
            return actions;
        }
        let commit = turn.commit();
        let operation = turn.offering(Route::Terminal);
        self.state = State::Preparing(turn, Preparation::Recording);
        vec![Action::Commit { commit, operation }]
    }

    /// Begin to type the messages that the journal has recorded. Meanwhile, a rule may have come to
    /// forbid typing, or the program may have turned bracketed paste off.
    fn recorded(
        &mut self,
        at: &mut Conditions,
        mut turn: OutgoingTurn,
        ids: &[MessageId],
    ) -> Vec<Action> {
        turn.retain(ids);
        if turn.messages.is_empty() {
            return Vec::new();
        }
        if let Some(rule) = at.typing_rule(turn.lane) {
            return turn.withdrawn(at, rule.name());
        }
        if turn.is_outdated(at) {
            return turn.withdrawn(at, QUESTION_GONE);
        }
        let mut actions = Vec::new();
        if let (TurnKind::Messages, InputMode::Typed) = (&turn.kind, at.input_box.mode) {
            let rest = OutgoingTurn {
                messages: turn.messages.split_off(1),
                ..turn.clone()
            };
            if !rest.messages.is_empty() {
                actions = rest.withdrawn(at, "the program turned bracketed paste off");
            }
        }
        at.input_box.forget_restored();
        actions.extend(self.begin(at, turn));
        actions
    }

    /// Begin to write a turn. If the harness describes the input box, look at the box first. A line is
    /// not recorded, so its rules are checked again even if the screen shows only questions.
    fn begin(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        let must_look = match turn.kind {
            TurnKind::Messages | TurnKind::Reminder => at.input_box.is_described(),
            TurnKind::Line(_) => at.reads_screen(),
            TurnKind::Answer(_) => false,
        };
        if must_look {
            let look = Action::Look(turn.user());
            self.state = State::Preparing(turn, Preparation::CheckingBox);
            return vec![look];
        }
        self.check_box(at, turn)
    }

    /// Write a turn, if the conditions allow it.
    fn check_box(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        match turn.kind {
            TurnKind::Line(_) => self.write_line(at, turn),
            TurnKind::Messages | TurnKind::Reminder if at.input_box.is_described() => {
                self.write_into_box(at, turn)
            }
            TurnKind::Messages | TurnKind::Reminder | TurnKind::Answer(_) => {
                vec![self.write(at, turn)]
            }
        }
    }

    /// The second of two looks. The first was taken at least 100 ms ago, and the text is written only
    /// if both show an empty box with no output in between.
    fn write_into_box(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        let is_ready = !at.agent.is_asking() && at.input_box.is_empty_and_steady();
        let working = at.agent.is_at_work().then_some(Rule::Working);
        match at.typing_rule(turn.lane).or(working) {
            None if is_ready => {
                at.input_box.note_steady();
                vec![self.write(at, turn)]
            }
            None => {
                at.input_box.note_change();
                turn.withdrawn(at, "the screen changed before the text was typed")
            }
            Some(rule) => turn.withdrawn(at, rule.name()),
        }
    }

    /// Have the text of messages written.
    pub(super) fn write(&mut self, at: &mut Conditions, mut turn: OutgoingTurn) -> Action {
        if let TurnKind::Answer(answer) = &mut turn.kind {
            answer.attempts = answer.attempts.saturating_add(1);
            answer.output = at.input_box.output();
            answer.at_cursor = at.input_box.at_cursor().map(str::to_owned);
        }
        let content = match turn.kind {
            TurnKind::Reminder => TurnContent::Reminder(turn.messages.clone()),
            TurnKind::Messages | TurnKind::Answer(_) | TurnKind::Line(_) => {
                if at.config.harness.has_proof() {
                    at.proof.typed.add_all(&turn.messages);
                }
                TurnContent::Messages(at.turn_messages(&turn.messages))
            }
        };
        self.state = State::Writing(turn);
        Action::Type {
            turn: content,
            mode: at.input_box.mode,
        }
    }

    /// The terminal has all of the text. Enter follows after a delay.
    pub(super) fn typed(
        &mut self,
        at: &Conditions,
        turn: OutgoingTurn,
        text: String,
    ) -> Vec<Action> {
        let shown_by = at.now.mono + at.config.harness.submit.seen_within.get();
        self.delay(at, WrittenTurn::new(turn, text, shown_by))
    }

    pub(super) fn delay(&mut self, at: &Conditions, written: WrittenTurn) -> Vec<Action> {
        let enter_at = at.now.mono + at.enter_after();
        self.keep(written, Submission::Delaying { enter_at })
    }
}
