//! Nudges and checks of answers in a simulated session, with their laws. The line of a nudge is
//! typed like a turn without messages.

use crate::activity::Activity;
use crate::delivery::Delivery;
use crate::driver::{AnswerRequest, Input, NudgeOutcome, NudgeRequest, RequestToken};
use crate::moment::Moment;
use crate::sim::oracle::Oracle;
use crate::sim::oracle::delivery_record;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::keyboard_work::TypingState;
use crate::sim::session::{Session, World};
use crate::sim::world::hook_calls::WrittenText;
use crate::sim::world::terminal::TurnNo;
use jiff::{SignedDuration, Timestamp};

/// Time for which a sender waits for the outcome of a nudge.
const SENDER_TIMEOUT: SignedDuration = SignedDuration::from_secs(3);

/// A nudge whose sender waits for the outcome.
#[derive(Debug)]
struct OpenNudge {
    token: RequestToken,
    expires_at: Timestamp,
}

/// A check of an answer whose sender waits for the outcome.
#[derive(Debug)]
struct OpenCheck {
    token: RequestToken,
    /// The number of the question that was open when the check was requested.
    question: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Nudges {
    tokens: u64,
    /// Nudges in the order of their requests.
    open: Vec<OpenNudge>,
    checks: Vec<OpenCheck>,
    /// The line that is being typed.
    pub(crate) line: TurnNo,
    /// Whether Enter was pressed for the last typed line.
    pub(crate) is_entered: bool,
}

impl Nudges {
    fn next_token(&mut self) -> RequestToken {
        self.tokens += 1;
        RequestToken(self.tokens)
    }

    /// Whether a sender waits for an outcome.
    pub(crate) fn are_awaited(&self) -> bool {
        !self.open.is_empty() || !self.checks.is_empty()
    }
}

fn text(n: u8) -> String {
    match n % 5 {
        0 => "y".to_owned(),
        1 => "Run command 1?".to_owned(),
        2 => "z".repeat(1_200),
        _ => format!("look at {n}\r\u{1b}[201~"),
    }
}

impl Session {
    pub(crate) fn request_nudge(&mut self, n: u8, world: &mut World<'_>) -> Checked {
        let token = self.nudges.next_token();
        let waits = if n % 8 == 7 {
            -SENDER_TIMEOUT
        } else {
            SENDER_TIMEOUT
        };
        let expires_at = world.now.wall + waits;
        self.nudges.open.push(OpenNudge { token, expires_at });
        let request = NudgeRequest {
            token,
            text: text(n),
            expires_at: Some(expires_at),
        };
        self.tell(Input::NudgeRequested(request), world)?;
        self.perform_actions(world)
    }

    pub(crate) fn request_answer(&mut self, world: &mut World<'_>) -> Checked {
        let token = self.nudges.next_token();
        self.report_keys(world)?;
        let question = world.oracle.record.question_number();
        self.nudges.checks.push(OpenCheck { token, question });
        let asked_at = world.now.wall;
        let request = AnswerRequest {
            token,
            asked_at,
            choice: None,
        };
        self.tell(Input::AnswerRequested(request), world)?;
        self.perform_actions(world)
    }

    /// Begin to type a line that the driver requested.
    pub(crate) fn begin_line(&mut self, line: String, world: &mut World<'_>) -> Checked {
        let now = world.now;
        let given_up = |open: &&OpenNudge| open.expires_at < now.wall;
        // Lines are typed in the order of their requests.
        let late = self.nudges.open.first().filter(given_up);
        Law::CannotAct.holds(
            late.is_none(),
            || "a nudge is typed after its sender gave up",
        )?;
        Law::CannotAct.holds(
            !self.nudges.open.is_empty(),
            || "a line is typed that was not requested",
        )?;
        world.oracle.check_nudge(now, self.delivery())?;
        let is_quiet = line.chars().all(|c| !c.is_control());
        Law::CannotAct.holds(is_quiet, || {
            format!("a line has a control character: {line:?}")
        })?;
        self.nudges.line = world.turns.len();
        self.nudges.is_entered = false;
        world.turns.push(WrittenText {
            text: line,
            ids: Vec::new(),
            is_written: false,
        });
        self.nudge_work.typing = Some(TypingState::FirstHalf);
        Ok(())
    }

    /// Check that Enter may follow the line.
    pub(crate) fn check_line_enter(&self, world: &World<'_>) -> Checked {
        let line = &world.turns[self.nudges.line].text;
        world.oracle.check_line_enter(line)
    }

    pub(crate) fn end_nudge(&mut self, token: RequestToken, outcome: &NudgeOutcome) -> Checked {
        let open = self.nudges.open.iter().position(|open| open.token == token);
        let Some(open) = open else {
            return Law::NoClaimBeyondProof.violated("a nudge ends twice");
        };
        self.nudges.open.remove(open);
        match outcome {
            NudgeOutcome::Typed => Law::NoClaimBeyondProof.holds(
                self.nudges.is_entered,
                || "a nudge is reported as typed, and was not",
            ),
            NudgeOutcome::Refused(reason) => Law::EveryWaitHasAReason
                .holds(!reason.is_empty(), || "a nudge is refused without a reason"),
        }
    }

    /// End a check: the driver says whether an answer can be recorded now.
    pub(crate) fn end_answer_check(
        &mut self,
        token: RequestToken,
        refusal: Option<&str>,
        world: &World<'_>,
    ) -> Checked {
        let is_it = |check: &OpenCheck| check.token == token;
        let Some(at) = self.nudges.checks.iter().position(is_it) else {
            return Law::NoClaimBeyondProof.violated("the check of an answer ends twice");
        };
        let check = self.nudges.checks.remove(at);
        let record = &world.oracle.record;
        let is_same = record.question_number() == check.question;
        let is_open = !record.shows_questions() || record.question_number().is_some();
        Law::CannotAct.holds(refusal.is_some() || (is_same && is_open), || {
            format!(
                "an answer to question {:?} is allowed, and question {:?} is open",
                check.question,
                record.question_number()
            )
        })
    }
}

impl Oracle {
    /// Check, against the delivery record, that a line may be typed.
    fn check_nudge(&self, now: Moment, delivery: &Delivery) -> Checked {
        let record = &self.record;
        let activity = delivery.activity().activity;
        let is_there = !matches!(activity, Activity::Starting | Activity::Exited);
        let is_free = is_there && !record.is_paused_for(false) && !record.is_waiting_for_enter;
        Law::TheRightMoment.holds(is_free, || format!("a nudge is typed while {activity}"))?;
        let is_clear = record.question.is_none()
            && record.typed_draft_since.is_none()
            && !record.box_holds_text();
        Law::CannotAct.holds(is_clear, || "a nudge goes into a question or a draft")?;
        let is_known = !record.shows_box() || record.is_steadily_empty(now);
        Law::OnlyRecognised.holds(is_known, || {
            format!("a nudge is typed, and the box is {:?}", record.input_box)
        })
    }

    /// Check, against the delivery record, that Enter may follow a line.
    fn check_line_enter(&self, line: &str) -> Checked {
        let record = &self.record;
        Law::CannotAct.holds(
            record.question.is_none(),
            || "the Enter of a nudge goes into a question",
        )?;
        let is_alone = !record.shows_box() || delivery_record::holds(&record.input_box, line);
        Law::OnlyRecognised.holds(is_alone, || {
            format!(
                "a nudge is submitted, and the box is {:?}",
                record.input_box
            )
        })
    }
}
