//! Nudges in a simulated session, and checks of answers: the world's side, and the laws. A nudge's
//! line is written like a turn without messages.

use crate::activity::Activity;
use crate::delivery::Delivery;
use crate::driver::{Input, KeyboardUser, NudgeOutcome, NudgeRequest, RequestToken};
use crate::moment::Moment;
use crate::sim::oracle::Oracle;
use crate::sim::oracle::delivery_record;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::{Lease, Peek, Session, Stroke, World};
use crate::sim::world::hook_calls::Typed;
use crate::sim::world::terminal::{Piece, TurnNo};
use jiff::{SignedDuration, Timestamp};

/// How long a sender waits.
const GOOD_FOR: SignedDuration = SignedDuration::from_secs(3);

/// A nudge whose sender waits for the outcome.
#[derive(Debug)]
struct Open {
    token: RequestToken,
    expires_at: Timestamp,
}

/// The check of an answer that somebody wants to send.
#[derive(Debug)]
struct OpenCheck {
    token: RequestToken,
    /// The question that stood open when it was asked for, by its number.
    question: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Nudges {
    tokens: u64,
    /// In the order in which they came.
    open: Vec<Open>,
    checks: Vec<OpenCheck>,
    pub(crate) lease: Option<Lease>,
    pub(crate) stroke: Option<Stroke>,
    pub(crate) peek: Option<Peek>,
    /// The line that is being typed.
    line: TurnNo,
    /// Whether its first byte was typed, and its Enter was not.
    is_half_typed: bool,
    /// Whether Enter was pressed for the line that was typed last.
    is_entered: bool,
}

/// What a nudge that is under way can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NudgeGoing {
    Lease,
    Stroke,
    Peek,
}

impl Nudges {
    pub(crate) fn going(&self, has_room: bool) -> Vec<NudgeGoing> {
        let is_told = matches!(self.stroke, Some(Stroke::Said(_)));
        let all = [
            (
                matches!(self.lease, Some(Lease::Said(_))),
                NudgeGoing::Lease,
            ),
            (
                self.stroke.is_some() && (has_room || is_told),
                NudgeGoing::Stroke,
            ),
            (self.peek.is_some(), NudgeGoing::Peek),
        ];
        let all = all.into_iter().filter(|(is_so, _)| *is_so);
        all.map(|(_, going)| going).collect()
    }

    fn next_token(&mut self) -> RequestToken {
        self.tokens += 1;
        RequestToken(self.tokens)
    }

    /// Whether somebody waits for an outcome.
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
        let waits = if n % 8 == 7 { -GOOD_FOR } else { GOOD_FOR };
        let expires_at = world.now.wall + waits;
        self.nudges.open.push(Open { token, expires_at });
        let request = NudgeRequest {
            token,
            text: text(n),
            expires_at: Some(expires_at),
        };
        self.tell(Input::NudgeRequested(request), world)?;
        self.proceed(world)
    }

    pub(crate) fn request_answer(&mut self, world: &mut World<'_>) -> Checked {
        let token = self.nudges.next_token();
        self.catch_up(world)?;
        let question = world.oracle.told.asks();
        self.nudges.checks.push(OpenCheck { token, question });
        let asked_at = world.now.wall;
        self.tell(Input::AnswerRequested { token, asked_at }, world)?;
        self.proceed(world)
    }

    /// The driver wants a line typed.
    pub(crate) fn begin_line(&mut self, line: String, world: &mut World<'_>) -> Checked {
        let now = world.now;
        let given_up = |open: &&Open| open.expires_at < now.wall;
        // The lines go in the order in which they were asked for.
        let late = self.nudges.open.first().filter(given_up);
        Law::CannotAct.holds(
            late.is_none(),
            || "a nudge is typed after its sender gave up",
        )?;
        Law::CannotAct.holds(
            !self.nudges.open.is_empty(),
            || "nobody asked for this line",
        )?;
        world.oracle.may_nudge(now, self.delivery())?;
        let is_quiet = line.chars().all(|c| !c.is_control());
        Law::CannotAct.holds(is_quiet, || format!("a line acts: {line:?}"))?;
        self.nudges.line = world.turns.len();
        self.nudges.is_entered = false;
        world.turns.push(Typed {
            text: line,
            ids: Vec::new(),
            is_written: false,
        });
        self.nudges.stroke = Some(Stroke::First);
        Ok(())
    }

    pub(crate) fn begin_line_enter(&mut self, world: &mut World<'_>) -> Checked {
        let line = &world.turns[self.nudges.line].text;
        world.oracle.may_enter_line(line)?;
        self.nudges.stroke = Some(Stroke::Enter);
        Ok(())
    }

    pub(crate) fn go_on_nudging(&mut self, going: NudgeGoing, world: &mut World<'_>) -> Checked {
        match going {
            NudgeGoing::Lease => match self.nudges.lease.take() {
                Some(Lease::Said(input)) => self.report(input, world),
                other @ (Some(Lease::Asked) | None) => {
                    self.nudges.lease = other;
                    Ok(())
                }
            },
            NudgeGoing::Stroke => self.go_on_with_line(world),
            NudgeGoing::Peek => match self.nudges.peek.take() {
                Some(Peek::Asked) => {
                    self.glance(world);
                    self.nudges.peek = Some(Peek::Said(self.sighted.clone()));
                    Ok(())
                }
                Some(Peek::Said(glance)) => {
                    let words = glance.sighting.dialog.as_deref();
                    world.oracle.aims.shows(words, glance.asks);
                    let by = KeyboardUser::Nudge;
                    let sighting = glance.sighting;
                    self.report(Input::Looked { by, sighting }, world)
                }
                None => Ok(()),
            },
        }
    }

    fn go_on_with_line(&mut self, world: &mut World<'_>) -> Checked {
        let by = KeyboardUser::Nudge;
        match self.nudges.stroke.take() {
            Some(Stroke::First) => {
                world.oracle.begins_line()?;
                self.nudges.is_half_typed = true;
                self.terminal.write(Piece::First(self.nudges.line));
                let is_broken = std::mem::take(&mut self.terminal.is_breaking);
                self.nudges.stroke = Some(if is_broken {
                    let why = "input/output error".to_owned();
                    Stroke::Said(Input::TerminalFailed { by, why })
                } else {
                    Stroke::Rest
                });
            }
            Some(Stroke::Rest) => {
                self.terminal.write(Piece::Rest(self.nudges.line));
                world.turns[self.nudges.line].is_written = true;
                self.nudges.stroke = Some(Stroke::Said(Input::LineTyped));
            }
            Some(Stroke::Enter) => {
                self.nudges.is_half_typed = false;
                self.nudges.is_entered = true;
                self.terminal.write(Piece::Enter(self.nudges.line));
                self.nudges.stroke = Some(Stroke::Said(Input::EnterPressed(by)));
            }
            Some(Stroke::Said(input)) => return self.report(input, world),
            None => {}
        }
        Ok(())
    }

    /// The keyboard is given back by a nudge.
    pub(crate) fn nudge_releases(&mut self) {
        self.terminal.is_leased = false;
        self.nudges.is_half_typed = false;
    }

    pub(crate) fn end_nudge(&mut self, token: RequestToken, outcome: &NudgeOutcome) -> Checked {
        let open = self.nudges.open.iter().position(|open| open.token == token);
        let Some(open) = open else {
            return Law::NoClaimBeyondProof.broken("a nudge ends twice");
        };
        self.nudges.open.remove(open);
        match outcome {
            NudgeOutcome::Typed => Law::NoClaimBeyondProof.holds(
                self.nudges.is_entered,
                || "a nudge is said to be typed, and was not",
            ),
            NudgeOutcome::Refused(reason) => Law::EveryWaitHasAReason
                .holds(!reason.is_empty(), || "a nudge is refused for no reason"),
        }
    }

    /// The driver says whether an answer can be recorded now.
    pub(crate) fn end_answer_check(
        &mut self,
        token: RequestToken,
        refusal: Option<&str>,
        world: &World<'_>,
    ) -> Checked {
        let is_it = |check: &OpenCheck| check.token == token;
        let Some(at) = self.nudges.checks.iter().position(is_it) else {
            return Law::NoClaimBeyondProof.broken("the check of an answer ends twice");
        };
        let check = self.nudges.checks.remove(at);
        let told = &world.oracle.told;
        let is_same = told.asks() == check.question;
        let is_open = !told.is_seen() || told.asks().is_some();
        Law::CannotAct.holds(refusal.is_some() || (is_same && is_open), || {
            format!(
                "an answer to question {:?} is let through, and {:?} is open",
                check.question,
                told.asks()
            )
        })
    }
}

impl Oracle {
    /// Whether a line may be typed, by what the driver was told.
    fn may_nudge(&self, now: Moment, delivery: &Delivery) -> Checked {
        let told = &self.told;
        let activity = delivery.activity().activity;
        let is_there = !matches!(activity, Activity::Starting | Activity::Exited);
        let is_free = is_there && !told.is_held(false) && !told.is_waiting_for_enter;
        Law::TheRightMoment.holds(is_free, || format!("a nudge is typed while {activity}"))?;
        let is_clear = told.question.is_none() && told.draft.is_none() && !told.is_shown();
        Law::CannotAct.holds(is_clear, || "a nudge goes into a question or a draft")?;
        let is_known = !told.shows_box() || told.is_steadily_empty(now);
        Law::OnlyRecognised.holds(is_known, || {
            format!("a nudge is typed, and the box is {:?}", told.input_box)
        })
    }

    /// Whether Enter may follow a line, by what the driver was told.
    fn may_enter_line(&self, line: &str) -> Checked {
        let told = &self.told;
        Law::CannotAct.holds(
            told.question.is_none(),
            || "the Enter of a nudge goes into a question",
        )?;
        let is_alone = !told.shows_box() || delivery_record::holds(&told.input_box, line);
        Law::OnlyRecognised.holds(is_alone, || {
            format!("a nudge is submitted, and the box is {:?}", told.input_box)
        })
    }
}
