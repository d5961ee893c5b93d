//! The submission of a typed text: the look before Enter, and Enter again if the box still holds the
//! text.
//!
//! If the harness describes the input box, Enter follows only if the box holds the text and nothing
//! else. The text of a message is never written twice.

use super::super::proof::FoundMessages;
use super::super::{Delivery, Effect, Rule, http};
use super::state::{Backoff, Before, Lane, Preparation, State, Submission, TypedTurn};
use crate::activity::Activity;
use crate::harness::{BoxState, Sighting};
use crate::moment::Moment;
use std::time::Duration;

const WRITTEN: &str = "written whole to the terminal of the running program";
const STILL_HELD: &str = "; the input box still holds it";
const LET_GO: &str = "; the input box let go of it";
const SUBMITTED: &str = "; its hook shows that it was submitted";
const EXITED: &str = "the program exited before it was complete";

/// The state of a text on the screen after its Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFate {
    /// The box holds the text.
    Held,
    Gone,
    /// The screen does not show the box.
    Hidden,
}

impl Delivery {
    /// Continue the turn in flight as far as possible now.
    pub(crate) fn proceed(&mut self, now: Moment) -> Vec<Effect> {
        self.agent.ignores_interrupts &= self.agent.activity() == Activity::Working;
        let is_over = self.agent.has_exited();
        match &self.terminal.state {
            State::Preparing(turn, Preparation::Interrupting { keys, until }) => {
                let (turn, keys, until) = (turn.clone(), *keys, *until);
                self.continue_interrupting(now, turn, keys, until)
            }
            State::Preparing(turn, Preparation::Settling) => {
                let turn = turn.clone();
                self.continue_settling(turn)
            }
            State::Free if is_over && self.terminal.is_awaiting_enter() => {
                self.resume();
                self.cut_off(now, "the program exited before Enter was pressed")
            }
            State::Free if self.can_resume() => self.resume(),
            _ if is_over => self.cut_off(now, EXITED),
            State::Submitting(typed, Submission::Delaying { enter_at }) => {
                match self.enter_rule(typed.turn.lane) {
                    // Release the keyboard so that a person can answer the question.
                    Some(Rule::Blocked | Rule::HandedOver | Rule::Working) => {
                        let typed = typed.clone();
                        self.await_enter(typed)
                    }
                    None if *enter_at <= now.mono => {
                        let typed = typed.clone();
                        self.enter(now, typed)
                    }
                    Some(_) | None => Vec::new(),
                }
            }
            State::Submitting(_, Submission::Confirming { .. }) => self.confirm(now),
            State::Backoff(Backoff { until, .. }) if *until <= now.mono => {
                self.terminal.state = State::Free;
                self.proceed(now)
            }
            State::Free | State::Preparing(..) | State::Submitting(..) | State::Backoff(_) => {
                Vec::new()
            }
        }
    }

    /// Return when the turn in flight continues without another event.
    pub(crate) fn terminal_wakeup(&self) -> Option<Duration> {
        match &self.terminal.state {
            State::Preparing(turn, Preparation::Interrupting { until, .. }) => {
                Some(self.interrupt_wakeup(turn, *until))
            }
            State::Submitting(_, Submission::Confirming { until })
            | State::Backoff(Backoff { until, .. }) => Some(*until),
            State::Submitting(typed, Submission::Delaying { enter_at }) => {
                let is_withheld = self.enter_rule(typed.turn.lane).is_some();
                (!is_withheld).then_some(*enter_at)
            }
            // Resume at once.
            State::Free if self.can_resume() => {
                let waiting = self.terminal.awaiting_enter.as_ref();
                waiting.map(|typed| typed.turn.since.mono)
            }
            State::Free | State::Preparing(..) | State::Submitting(..) => None,
        }
    }

    pub(super) fn check(&mut self, typed: TypedTurn, before: Before) -> Vec<Effect> {
        let has_read = false;
        let checking = Submission::Checking { before, has_read };
        self.terminal.state = State::Submitting(typed, checking);
        vec![Effect::Look]
    }

    /// Handle the look at the screen that the turn has requested.
    pub(crate) fn looked(&mut self, now: Moment, sighting: Sighting) -> Vec<Effect> {
        let at_cursor = sighting.before.clone();
        self.screen_changed(now, sighting);
        let is_over = self.agent.has_exited();
        match self.terminal.state.clone() {
            State::Preparing(
                _,
                Preparation::CheckingInterrupt { .. } | Preparation::CheckingBox,
            )
            | State::Submitting(_, Submission::Checking { .. })
                if is_over =>
            {
                self.cut_off(now, EXITED)
            }
            State::Preparing(turn, Preparation::CheckingInterrupt { keys }) => {
                self.interrupt_after_look(now, turn, keys)
            }
            State::Preparing(turn, Preparation::CheckingBox) => self.write_into_box(turn),
            State::Submitting(typed, Submission::Checking { before, has_read }) => match before {
                Before::Enter if typed.turn.is_answer() => {
                    self.answer_typed(now, typed, has_read, at_cursor.as_deref())
                }
                Before::Enter => self.submit(now, typed),
                Before::Retry => self.retry(now, typed, has_read),
                Before::Verdict => self.judge_answer(now, typed, has_read),
            },
            State::Free | State::Preparing(..) | State::Submitting(..) | State::Backoff(_) => {
                self.proceed(now)
            }
        }
    }

    /// Bring Enter forward if the box shows the text.
    pub(crate) fn hasten_enter(&mut self, now: Moment) {
        let soon = now.mono + self.enter_after();
        if let State::Submitting(typed, Submission::Delaying { enter_at }) =
            &mut self.terminal.state
            && self.input_box.holds_only(&typed.text)
        {
            *enter_at = soon.min(*enter_at);
        }
    }

    /// Press Enter, or look at the screen first.
    fn enter(&mut self, now: Moment, typed: TypedTurn) -> Vec<Effect> {
        if self.reads_screen() {
            return self.check(typed, Before::Enter);
        }
        if !typed.turn.is_answer() {
            return self.press_enter(now, typed);
        }
        let mut effects = self.answer_typed(now, typed, false, None);
        // A text that waited for the answer can continue.
        if self.terminal.is_free() {
            effects.extend(self.proceed(now));
        }
        effects
    }

    pub(super) fn press_enter(&mut self, now: Moment, mut typed: TypedTurn) -> Vec<Effect> {
        typed.entered_at = typed.entered_at.or(Some(now.mono));
        self.terminal.state = State::Submitting(typed, Submission::Entering);
        vec![Effect::Enter]
    }

    fn submit(&mut self, now: Moment, typed: TypedTurn) -> Vec<Effect> {
        if let Some(Rule::Blocked | Rule::HandedOver | Rule::Working) =
            self.enter_rule(typed.turn.lane)
        {
            return self.await_enter(typed);
        }
        let is_early = now.mono < typed.shown_by && !typed.has_waited;
        let is_alone = self.input_box.holds_only(&typed.text) && !self.input_box.is_typed();
        match self.input_box.state() {
            BoxState::Undescribed => self.press_enter(now, typed),
            BoxState::Holds(_) if is_alone => match self.has_retried(&typed) {
                true => self.finish_unsubmitted(now, &typed, STILL_HELD),
                false => self.press_enter(now, typed),
            },
            BoxState::Empty if typed.entered_at.is_some() => self.finish(now, &typed, LET_GO),
            // The program shows the text a moment after it has read it.
            _ if is_early => {
                let enter_at = typed.shown_by;
                self.terminal.state = State::Submitting(typed, Submission::Delaying { enter_at });
                Vec::new()
            }
            BoxState::Empty if self.input_box.unread.is_none() => {
                let lost = "the input box does not hold the text, and Enter was not pressed";
                self.end_uncertain(&typed, lost)
            }
            BoxState::Empty | BoxState::Holds(_) | BoxState::Unrecognised(_) => {
                self.await_enter(typed)
            }
        }
    }

    /// Whether the last retry of Enter is used up.
    fn has_retried(&self, typed: &TypedTurn) -> bool {
        typed.enters > self.config.harness.submit.retries
    }

    /// Release the keyboard: a person, or an answer, must be able to answer a question.
    pub(super) fn await_enter(&mut self, typed: TypedTurn) -> Vec<Effect> {
        self.terminal.awaiting_enter = Some(TypedTurn {
            has_waited: true,
            ..typed
        });
        self.terminal.state = State::Free;
        Vec::new()
    }

    /// Whether a text that waits for its Enter can be submitted, or is visibly gone.
    fn can_resume(&self) -> bool {
        let waiting = self.terminal.awaiting_enter.as_ref();
        let Some(waiting) = waiting.filter(|_| self.terminal.is_free()) else {
            return false;
        };
        let is_visible = match self.input_box.state() {
            BoxState::Undescribed => true,
            BoxState::Empty => self.input_box.unread.is_none(),
            BoxState::Holds(_) => {
                self.input_box.holds_only(&waiting.text) && !self.agent.is_at_work()
            }
            BoxState::Unrecognised(_) => false,
        };
        let is_held = self.agent.is_asking() || self.agent.handed_over.is_some();
        !is_held && !self.input_box.is_typed() && is_visible
    }

    fn resume(&mut self) -> Vec<Effect> {
        let Some(typed) = self.terminal.awaiting_enter.take() else {
            return Vec::new();
        };
        self.terminal.state = State::Submitting(typed, Submission::Resuming);
        self.input_box.is_draft_end_known = false;
        vec![Effect::Resume]
    }

    pub(crate) fn resumed(&mut self, now: Moment) -> Vec<Effect> {
        if let State::Submitting(typed, Submission::Resuming) = &self.terminal.state {
            let typed = typed.clone();
            let enter_at = now.mono + self.enter_after();
            self.terminal.state = State::Submitting(typed, Submission::Delaying { enter_at });
        }
        self.proceed(now)
    }

    pub(crate) fn entered(&mut self, now: Moment) -> Vec<Effect> {
        let State::Submitting(typed, Submission::Entering) = &self.terminal.state else {
            return Vec::new();
        };
        let mut typed = typed.clone();
        typed.enters = typed.enters.saturating_add(1);
        if typed.turn.is_answer() {
            return self.await_effect(now, typed);
        }
        if !self.input_box.is_described() && typed.proof.is_none() {
            return self.finish(now, &typed, "");
        }
        let until = now.mono + self.config.harness.submit.retry_after.get();
        self.terminal.state = State::Submitting(typed, Submission::Confirming { until });
        let submitted = self.submitted(now);
        if submitted.is_empty() {
            return self.confirm(now);
        }
        submitted
    }

    /// Return what the box shows of a text after its Enter.
    fn fate(&self, typed: &TypedTurn) -> TextFate {
        match self.input_box.state() {
            BoxState::Holds(_) if self.input_box.holds_only(&typed.text) => TextFate::Held,
            BoxState::Holds(_) if self.input_box.holds_a_part(&typed.text) => TextFate::Hidden,
            BoxState::Holds(_) | BoxState::Empty => TextFate::Gone,
            BoxState::Unrecognised(_) | BoxState::Undescribed => TextFate::Hidden,
        }
    }

    /// Check whether the text has left the box. If a dialog opens or the box is hidden, check again
    /// once the box is visible.
    pub(super) fn confirm(&mut self, now: Moment) -> Vec<Effect> {
        let State::Submitting(typed, Submission::Confirming { until }) = &self.terminal.state
        else {
            return Vec::new();
        };
        let (typed, until) = (typed.clone(), *until);
        if typed.turn.is_answer() {
            return self.await_verdict(now, typed, until);
        }
        match self.fate(&typed) {
            TextFate::Gone => self.finish(now, &typed, LET_GO),
            TextFate::Held | TextFate::Hidden if self.agent.is_asking() => self.await_enter(typed),
            TextFate::Held | TextFate::Hidden if until <= now.mono => {
                self.check(typed, Before::Retry)
            }
            TextFate::Held | TextFate::Hidden => Vec::new(),
        }
    }

    fn retry(&mut self, now: Moment, typed: TypedTurn, has_read: bool) -> Vec<Effect> {
        match self.fate(&typed) {
            TextFate::Gone => return self.finish(now, &typed, LET_GO),
            TextFate::Held | TextFate::Hidden if self.agent.is_asking() => {
                return self.await_enter(typed);
            }
            TextFate::Hidden => return self.await_enter(typed),
            // Enter would interrupt the agent, or the first Enter is about to take effect.
            TextFate::Held if self.agent.is_at_work() => return self.await_enter(typed),
            // The earlier Enter may have taken effect by now.
            TextFate::Held if has_read => return self.check(typed, Before::Retry),
            TextFate::Held => {}
        }
        // The first Enter is still unread, and another could go to a later dialog.
        if self.input_box.unread.is_some() {
            return self.finish_unsubmitted(
                now,
                &typed,
                "; the program has not read its Enter yet",
            );
        }
        if self.has_retried(&typed) {
            return self.finish_unsubmitted(now, &typed, STILL_HELD);
        }
        self.press_enter(now, typed)
    }

    /// End a turn whose text stays in the box, where it holds later messages.
    fn finish_unsubmitted(&mut self, now: Moment, typed: &TypedTurn, how: &str) -> Vec<Effect> {
        self.input_box.mark_unsubmitted();
        self.finish(now, typed, how)
    }

    pub(super) fn finish(&mut self, now: Moment, typed: &TypedTurn, how: &str) -> Vec<Effect> {
        let evidence = self.evidence(typed, how);
        self.terminal.state = State::Free;
        self.agent.judge.given(now, typed.entered_at);
        self.reminders.note_turn(now, typed.turn.kind);
        typed.receipts(evidence)
    }

    fn evidence(&self, typed: &TypedTurn, how: &str) -> String {
        let turn = &typed.turn;
        let to_what = match (turn.lane, &turn.question) {
            (Lane::Raw, None) if self.knows_dialogs() => ", with no question in sight".to_owned(),
            (Lane::Raw, None) => ", dialog unknown".to_owned(),
            (Lane::Raw, Some(question)) => format!(", in answer to: {}", question.what),
            (Lane::Interrupt | Lane::Normal | Lane::Idle, _) => String::new(),
        };
        let enters = match typed.enters {
            0 | 1 => String::new(),
            enters => format!(", Enter pressed {enters} times"),
        };
        let avoided_harm = turn
            .interruption
            .avoided_harm
            .map(|harm| format!("; no interrupt key: it might have {harm}"));
        let cancelled_dialog = turn
            .interruption
            .cancelled_dialog
            .as_ref()
            .map(|what| format!("; a dialog was cancelled for it: {what}"));
        let http_failure = turn.http_failure.as_deref().map(http::describe_failure);
        let rest: String = [avoided_harm, cancelled_dialog, http_failure]
            .into_iter()
            .flatten()
            .collect();
        format!("{WRITTEN}{to_what}{enters}{how}{rest}")
    }

    /// Handle the proof of a text. Return the receipts if the turn ends by that.
    pub(crate) fn prove_typed(&mut self, now: Moment, proof: FoundMessages) -> Vec<Effect> {
        let waiting = &mut self.terminal.awaiting_enter;
        if let Some(mut typed) = waiting.take_if(|typed| typed.has(&proof.ids)) {
            // A person has pressed Enter, or our Enter took effect behind a dialog.
            let how = self.evidence(&typed, SUBMITTED);
            typed.proof = Some(proof.after(typed.proof.take()));
            return typed.receipts(how);
        }
        let has_it = |typed: &&mut TypedTurn| !typed.turn.is_answer() && typed.has(&proof.ids);
        let Some(typed) = self.terminal.typed_mut().filter(has_it) else {
            return proof.effect().into_iter().collect();
        };
        typed.proof = Some(proof.after(typed.proof.take()));
        self.submitted(now)
    }

    /// End a turn that is proven to be submitted: Enter is not pressed, or not pressed again,
    /// whatever the box shows. A write that is under way is completed first.
    pub(super) fn submitted(&mut self, now: Moment) -> Vec<Effect> {
        let State::Submitting(typed, progress) = &self.terminal.state else {
            return Vec::new();
        };
        match progress {
            Submission::Delaying { .. }
            | Submission::Checking { .. }
            | Submission::Confirming { .. }
                if typed.proof.is_some() =>
            {
                let typed = typed.clone();
                self.finish(now, &typed, SUBMITTED)
            }
            Submission::Writing
            | Submission::Delaying { .. }
            | Submission::Checking { .. }
            | Submission::Entering
            | Submission::Confirming { .. }
            | Submission::Resuming => Vec::new(),
        }
    }

    /// End a turn that cannot be completed.
    pub(crate) fn cut_off(&mut self, now: Moment, reason: &str) -> Vec<Effect> {
        match self.terminal.state.clone() {
            State::Preparing(turn, Preparation::CheckingBox) => {
                self.terminal.state = State::Free;
                turn.withdrawn(reason)
            }
            State::Preparing(_, Preparation::CheckingInterrupt { .. }) => {
                self.terminal.state = State::Free;
                Vec::new()
            }
            State::Submitting(
                typed,
                Submission::Confirming { .. }
                | Submission::Checking {
                    before: Before::Retry,
                    ..
                },
            ) if !typed.turn.is_answer() => self.finish(now, &typed, ""),
            State::Submitting(typed, progress) => {
                if let Submission::Writing = progress {
                    self.proof.unproven.forget(&typed.turn.ids);
                }
                self.end_uncertain(&typed, reason)
            }
            State::Free | State::Preparing(..) | State::Backoff(_) => Vec::new(),
        }
    }

    /// End an offer that the agent may have seen in part.
    pub(super) fn end_uncertain(&mut self, typed: &TypedTurn, reason: &str) -> Vec<Effect> {
        self.terminal.state = State::Free;
        match typed.proof {
            Some(_) => typed.receipts(self.evidence(typed, "")),
            None => typed.turn.uncertain(reason),
        }
    }

    /// Return whether the next decision needs all input to be read: unread keys may still take
    /// effect.
    pub fn awaits_reading(&self) -> bool {
        let is_described = self.input_box.is_described();
        match &self.terminal.state {
            State::Free => self.terminal.is_awaiting_enter() && is_described,
            State::Submitting(typed, progress) => match progress {
                Submission::Confirming { .. }
                | Submission::Checking {
                    before: Before::Retry | Before::Verdict,
                    ..
                } => true,
                Submission::Delaying { .. }
                | Submission::Checking {
                    before: Before::Enter,
                    ..
                } => typed.turn.question.is_some() || is_described,
                Submission::Writing | Submission::Entering | Submission::Resuming => false,
            },
            State::Preparing(..) | State::Backoff(_) => false,
        }
    }
}
