//! The submission of a typed text: the look before Enter, and Enter again if the box still holds the
//! text.
//!
//! If the harness describes the input box, Enter follows only if the box holds the text and nothing
//! else. The text of a message is never written twice.

use super::{Before, CUT_OFF, Preparation, State, Submission, TerminalRoute, WrittenTurn};
use crate::delivery::conditions::proof::FoundMessages;
use crate::delivery::{Conditions, OutgoingTurn, Rule, TurnKind};
use crate::driver::{Action, Input};
use crate::harness::{BoxState, Route};
use crate::id::MessageId;
use crate::text;
use crate::why::Hold;
use std::time::Duration;

const WRITTEN: &str = "written whole to the terminal of the running program";
const STILL_HELD: &str = "; the input box still holds it";
const LET_GO: &str = "; the input box let go of it";
pub(super) const SUBMITTED: &str = "; its hook shows that it was submitted";
/// Maximum number of characters that an explanation quotes from the input box.
const QUOTED_CHARS: usize = 60;

/// The state of a text on the screen after its Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFate {
    /// The box holds the text.
    Held,
    Gone,
    /// The screen does not show the box.
    Hidden,
}

impl OutgoingTurn {
    /// Add the agent's evidence that the text was submitted.
    pub(super) fn prove(&mut self, found: FoundMessages) {
        self.proof = Some(found.after(self.proof.take()));
    }

    /// Record that nothing of this turn was written. A reminder has no receipts.
    pub(super) fn withdrawn(&self, at: &mut Conditions, why: &str) -> Vec<Action> {
        let reason = format!("nothing was written: {why}");
        match self.has_receipts() {
            true => vec![at.withdrawn(self.ids(), reason)],
            false => Vec::new(),
        }
    }

    fn uncertain(&self, at: &mut Conditions, reason: &str) -> Vec<Action> {
        match self.has_receipts() {
            true => vec![at.uncertain(self.ids(), reason)],
            false => Vec::new(),
        }
    }

    fn has_receipts(&self) -> bool {
        match self.kind {
            TurnKind::Messages | TurnKind::Answer(_) => true,
            TurnKind::Reminder | TurnKind::Line(_) => false,
        }
    }
}

impl WrittenTurn {
    pub(super) fn new(turn: OutgoingTurn, text: String, shown_by: Duration) -> Self {
        Self {
            turn,
            text,
            shown_by,
            enters: 0,
            entered_at: None,
        }
    }

    /// Return the receipts of a completely written text. If a person has pressed Enter, only the
    /// messages in the proof are known to be submitted.
    pub(super) fn receipts(&self, at: &mut Conditions, evidence: String) -> Vec<Action> {
        let turn = &self.turn;
        if !turn.has_receipts() {
            return Vec::new();
        }
        // The screen, not a proof, shows whether an answer had its effect.
        let (route, is_provable) = (Route::Terminal, !turn.is_answer());
        let Some(proof) = &turn.proof else {
            return vec![at.offered(turn.ids(), route, evidence, is_provable)];
        };
        let is_submitted = |id: &MessageId| self.entered_at.is_some() || proof.ids.contains(id);
        let (submitted, cut_off): (Vec<_>, Vec<_>) = turn.ids().into_iter().partition(is_submitted);
        let mut actions = vec![at.offered(submitted, route, evidence, is_provable)];
        actions.extend(proof.accept(at));
        if !cut_off.is_empty() {
            actions.push(at.uncertain(cut_off, CUT_OFF));
        }
        actions
    }

    pub(super) fn evidence(&self, at: &Conditions, how: &str) -> String {
        let to_what = match self.turn.answer().map(|answer| &answer.question) {
            None => String::new(),
            Some(None) if at.agent.knows_dialogs() => ", with no question in sight".to_owned(),
            Some(None) => ", dialog unknown".to_owned(),
            Some(Some(question)) => format!(", in answer to: {}", question.what),
        };
        let enters = match self.enters {
            0 | 1 => String::new(),
            enters => format!(", Enter pressed {enters} times"),
        };
        format!("{WRITTEN}{to_what}{enters}{how}{}", self.turn.notes)
    }

    /// Whether the last retry of Enter is used up.
    fn has_retried(&self, at: &Conditions) -> bool {
        self.enters > at.config.harness.submit.retries
    }

    /// Return what the box shows of the text after its Enter.
    fn fate(&self, at: &Conditions) -> TextFate {
        match at.input_box.state() {
            BoxState::Holds(_) if at.input_box.holds_only(&self.text) => TextFate::Held,
            BoxState::Holds(_) if at.input_box.holds_a_part(&self.text) => TextFate::Hidden,
            BoxState::Holds(_) | BoxState::Empty => TextFate::Gone,
            BoxState::Unrecognised(_) | BoxState::Undescribed => TextFate::Hidden,
        }
    }

    /// Explain why the text waits for its Enter although no rule withholds it.
    pub(super) fn awaits_box(&self, at: &Conditions) -> Hold {
        let evidence = match at.input_box.state() {
            BoxState::Holds(held) => {
                let held = text::one_line(&held.text, QUOTED_CHARS);
                format!("the input box should hold the message alone, and holds \"{held}\"")
            }
            BoxState::Unrecognised(mismatch) => mismatch.to_string(),
            BoxState::Empty | BoxState::Undescribed => "the screen is about to be read".to_owned(),
        };
        Hold {
            rule: Rule::AwaitingEnter.name(),
            since: self.turn.since.wall,
            reason: "it is written and waits for its Enter".to_owned(),
            evidence,
            release: "the input box holds it and nothing else, or a person submits or clears it"
                .to_owned(),
        }
    }
}

impl TerminalRoute {
    /// Handle an input once the text of a turn is written.
    pub(super) fn on_submission(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        progress: Submission,
        input: &Input,
    ) -> Vec<Action> {
        use Submission::{Checking, Delaying, Entering, Resuming};
        let user = written.turn.user();
        match (progress, input) {
            (Resuming, Input::KeyboardLeased(by)) if user == *by => self.delay(at, written),
            (Resuming, Input::KeyboardRefused(by)) if user == *by => {
                self.awaiting_enter = Some(written);
                at.input_box.refuse_keyboard(at.now);
                Vec::new()
            }
            // After an exit, the turn is cut off.
            (Checking { before, has_read }, Input::Looked { by, .. })
                if user == *by && !at.agent.has_exited() =>
            {
                self.looked(at, written, before, has_read)
            }
            (Checking { before, .. }, Input::InputChecked { is_unread: false }) => {
                let has_read = true;
                self.keep(written, Checking { before, has_read })
            }
            // Enter comes forward if the box shows the text.
            (Delaying { enter_at }, Input::ScreenChanged(_))
                if at.input_box.holds_only(&written.text) =>
            {
                let enter_at = enter_at.min(at.now.mono + at.enter_after());
                self.keep(written, Delaying { enter_at })
            }
            (Entering, Input::EnterPressed(by)) if user == *by => self.entered(at, written),
            (progress, input) => self.on_other(at, State::Submitting(written, progress), input),
        }
    }

    /// Continue the submission of a text as far as possible now.
    pub(super) fn continue_submission(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        progress: Submission,
    ) -> Vec<Action> {
        let is_proven = written.turn.proof.is_some();
        match progress {
            // A text that is proven to be submitted gets no Enter, or no other, whatever the box shows.
            Submission::Delaying { .. }
            | Submission::Checking { .. }
            | Submission::Confirming { .. }
                if is_proven =>
            {
                self.finish(at, written, SUBMITTED)
            }
            Submission::Delaying { enter_at } => {
                let rule = at.enter_rule(written.turn.lane);
                match rule.filter(|_| !written.is_line()) {
                    // Release the keyboard so that a person can answer the question.
                    Some(Rule::Blocked | Rule::HandedOver | Rule::Working) => {
                        self.await_enter(written)
                    }
                    None if enter_at <= at.now.mono => self.enter(at, written),
                    Some(_) | None => self.keep(written, progress),
                }
            }
            Submission::Confirming { until } if written.turn.is_answer() => {
                self.await_verdict(at, written, until)
            }
            // If a dialog opens or the box is hidden, the box is checked again once it is visible.
            Submission::Confirming { until } => match written.fate(at) {
                TextFate::Gone => self.finish(at, written, LET_GO),
                TextFate::Held | TextFate::Hidden if at.agent.is_asking() => {
                    self.await_enter(written)
                }
                TextFate::Held | TextFate::Hidden if until <= at.now.mono => {
                    self.check(written, Before::Retry)
                }
                TextFate::Held | TextFate::Hidden => self.keep(written, progress),
            },
            Submission::Resuming | Submission::Checking { .. } | Submission::Entering => {
                self.keep(written, progress)
            }
        }
    }

    pub(super) fn keep(&mut self, written: WrittenTurn, progress: Submission) -> Vec<Action> {
        self.state = State::Submitting(written, progress);
        Vec::new()
    }

    pub(super) fn check(&mut self, written: WrittenTurn, before: Before) -> Vec<Action> {
        let look = Action::Look(written.turn.user());
        let has_read = false;
        let checking = Submission::Checking { before, has_read };
        self.state = State::Submitting(written, checking);
        vec![look]
    }

    /// Continue after the look at the screen that the turn has requested.
    fn looked(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        before: Before,
        has_read: bool,
    ) -> Vec<Action> {
        match (before, &written.turn.kind) {
            (Before::Enter, TurnKind::Answer(_)) => self.answer_typed(at, written, has_read),
            (Before::Enter, TurnKind::Line(_)) => self.submit_line(at, written),
            (Before::Enter, TurnKind::Messages | TurnKind::Reminder) => self.submit(at, written),
            (Before::Retry, _) => self.retry(at, written, has_read),
            (Before::Verdict, _) => self.judge_answer(at, written, has_read),
        }
    }

    /// Press Enter, or look at the screen first.
    fn enter(&mut self, at: &mut Conditions, written: WrittenTurn) -> Vec<Action> {
        if at.reads_screen() {
            return self.check(written, Before::Enter);
        }
        match written.turn.kind {
            TurnKind::Answer(_) => self.answer_typed(at, written, false),
            TurnKind::Line(_) => self.submit_line(at, written),
            TurnKind::Messages | TurnKind::Reminder => self.press_enter(at, written),
        }
    }

    pub(super) fn press_enter(&mut self, at: &Conditions, mut written: WrittenTurn) -> Vec<Action> {
        written.entered_at = written.entered_at.or(Some(at.now.mono));
        let enter = Action::PressEnter {
            by: written.turn.user(),
            keys: at.config.harness.submit.enter.bytes().to_vec(),
        };
        self.state = State::Submitting(written, Submission::Entering);
        vec![enter]
    }

    fn submit(&mut self, at: &mut Conditions, written: WrittenTurn) -> Vec<Action> {
        if let Some(Rule::Blocked | Rule::HandedOver | Rule::Working) =
            at.enter_rule(written.turn.lane)
        {
            return self.await_enter(written);
        }
        let is_early = at.now.mono < written.shown_by;
        let is_alone = at.input_box.holds_only(&written.text) && !at.input_box.is_typed();
        match at.input_box.state() {
            BoxState::Undescribed => self.press_enter(at, written),
            BoxState::Holds(_) if is_alone => match written.has_retried(at) {
                true => self.finish_unsubmitted(at, written, STILL_HELD),
                false => self.press_enter(at, written),
            },
            BoxState::Empty if written.entered_at.is_some() => self.finish(at, written, LET_GO),
            // The program shows the text a moment after it has read it.
            _ if is_early => {
                let enter_at = written.shown_by;
                self.keep(written, Submission::Delaying { enter_at })
            }
            BoxState::Empty if at.input_box.unread.is_none() => {
                let lost = "the input box does not hold the text, and Enter was not pressed";
                self.end_uncertain(at, &written, lost)
            }
            BoxState::Empty | BoxState::Holds(_) | BoxState::Unrecognised(_) => {
                self.await_enter(written)
            }
        }
    }

    /// Release the keyboard: a person, or an answer, must be able to answer a question.
    fn await_enter(&mut self, written: WrittenTurn) -> Vec<Action> {
        self.awaiting_enter = Some(WrittenTurn {
            shown_by: Duration::ZERO,
            ..written
        });
        Vec::new()
    }

    /// Whether a text that waits for its Enter can be submitted, or is visibly gone.
    pub(super) fn can_resume(&self, at: &Conditions) -> bool {
        let Some(waiting) = &self.awaiting_enter else {
            return false;
        };
        let is_visible = match at.input_box.state() {
            BoxState::Undescribed => true,
            BoxState::Empty => at.input_box.unread.is_none(),
            BoxState::Holds(_) => at.input_box.holds_only(&waiting.text) && !at.agent.is_at_work(),
            BoxState::Unrecognised(_) => false,
        };
        let is_held = at.agent.is_asking() || at.agent.handed_over.is_some();
        !is_held && !at.input_box.is_typed() && is_visible
    }

    pub(super) fn resume(&mut self, at: &mut Conditions) -> Vec<Action> {
        let Some(written) = self.awaiting_enter.take() else {
            return Vec::new();
        };
        at.input_box.is_draft_end_known = false;
        let lease = Action::LeaseKeyboard(written.turn.user());
        self.state = State::Submitting(written, Submission::Resuming);
        vec![lease]
    }

    fn entered(&mut self, at: &mut Conditions, mut written: WrittenTurn) -> Vec<Action> {
        written.enters = written.enters.saturating_add(1);
        let must_confirm = at.input_box.is_described() || written.turn.proof.is_some();
        match written.turn.kind {
            TurnKind::Answer(_) => self.await_effect(at, written),
            TurnKind::Messages | TurnKind::Reminder if must_confirm => {
                let until = at.now.mono + at.config.harness.submit.retry_after.get();
                self.keep(written, Submission::Confirming { until })
            }
            TurnKind::Messages | TurnKind::Reminder | TurnKind::Line(_) => {
                self.finish(at, written, "")
            }
        }
    }

    fn retry(&mut self, at: &mut Conditions, written: WrittenTurn, has_read: bool) -> Vec<Action> {
        match written.fate(at) {
            TextFate::Gone => return self.finish(at, written, LET_GO),
            TextFate::Held | TextFate::Hidden if at.agent.is_asking() => {
                return self.await_enter(written);
            }
            TextFate::Hidden => return self.await_enter(written),
            // Enter would interrupt the agent, or the first Enter is about to take effect.
            TextFate::Held if at.agent.is_at_work() => return self.await_enter(written),
            // The earlier Enter may have taken effect by now.
            TextFate::Held if has_read => return self.check(written, Before::Retry),
            TextFate::Held => {}
        }
        // The first Enter is still unread, and another could go to a later dialog.
        if at.input_box.unread.is_some() {
            let unread = "; the program has not read its Enter yet";
            return self.finish_unsubmitted(at, written, unread);
        }
        if written.has_retried(at) {
            return self.finish_unsubmitted(at, written, STILL_HELD);
        }
        self.press_enter(at, written)
    }

    /// End a turn whose text stays in the box, where it holds later messages.
    fn finish_unsubmitted(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        how: &str,
    ) -> Vec<Action> {
        at.input_box.mark_unsubmitted();
        self.finish(at, written, how)
    }

    pub(super) fn finish(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        how: &str,
    ) -> Vec<Action> {
        self.state = State::Free;
        at.reminders.note_turn(at.now, &written.turn.kind);
        if written.is_line() {
            return Self::finish_line(at, written).into_iter().collect();
        }
        let evidence = written.evidence(at, how);
        at.agent.given(at.now, written.entered_at);
        written.receipts(at, evidence)
    }

    /// End a text that waits for its Enter, because the program has exited.
    pub(super) fn end_waiting(&mut self, at: &mut Conditions) -> Vec<Action> {
        let waiting = self.awaiting_enter.take();
        waiting.map_or_else(Vec::new, |written| {
            let reason = "the program exited before Enter was pressed";
            self.end_uncertain(at, &written, reason)
        })
    }

    /// End a turn that cannot be completed.
    pub(super) fn cut_off(&mut self, at: &mut Conditions, reason: &str) -> Vec<Action> {
        if self.turn().is_some_and(|turn| turn.line().is_some()) {
            return self.cut_off_line();
        }
        match std::mem::take(&mut self.state) {
            State::Preparing(turn, Preparation::CheckingBox) => turn.withdrawn(at, reason),
            State::Writing(turn) => {
                at.proof.forget_cut_off(&turn.ids());
                let half = WrittenTurn::new(turn, String::new(), Duration::ZERO);
                self.end_uncertain(at, &half, reason)
            }
            State::Submitting(
                written,
                Submission::Confirming { .. }
                | Submission::Checking {
                    before: Before::Retry,
                    ..
                },
            ) if !written.turn.is_answer() => self.finish(at, written, ""),
            State::Submitting(written, _) => self.end_uncertain(at, &written, reason),
            // The result of the lease or the commit is still to come.
            state @ (State::Free | State::Preparing(..)) => {
                self.state = state;
                Vec::new()
            }
        }
    }

    /// End an offer that the agent may have seen in part.
    pub(super) fn end_uncertain(
        &mut self,
        at: &mut Conditions,
        written: &WrittenTurn,
        reason: &str,
    ) -> Vec<Action> {
        self.state = State::Free;
        match written.turn.proof {
            Some(_) => {
                let evidence = written.evidence(at, "");
                written.receipts(at, evidence)
            }
            None => written.turn.uncertain(at, reason),
        }
    }

    /// Return whether the next decision needs all input to be read: unread keys may still take
    /// effect.
    pub(crate) fn awaits_reading(&self, at: &Conditions) -> bool {
        let is_described = at.input_box.is_described();
        match &self.state {
            State::Free => self.is_awaiting_enter() && is_described,
            State::Submitting(written, progress) => match progress {
                Submission::Confirming { .. }
                | Submission::Checking {
                    before: Before::Retry | Before::Verdict,
                    ..
                } => true,
                Submission::Delaying { .. }
                | Submission::Checking {
                    before: Before::Enter,
                    ..
                } => {
                    let answer = written.turn.answer();
                    is_described || answer.is_some_and(|answer| answer.question.is_some())
                }
                Submission::Entering | Submission::Resuming => false,
            },
            State::Preparing(..) | State::Writing(_) => false,
        }
    }
}
