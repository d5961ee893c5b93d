//! Nudges: lines that are typed and submitted, and are not messages. A nudge obeys the rules of a
//! normal message. It is not stored and not repeated: if it cannot be typed soon, it is refused.
//!
//! A nudge takes the keyboard, looks at the screen, is typed, looks again, and presses Enter. It is
//! never typed after its sender has given up.

use crate::delivery::DeliveryEvent;
use crate::driver::{Action, KeyboardUser, Observer, SessionDriver};
use crate::harness::Sighting;
use crate::moment::Moment;
use crate::text;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum length of a line, in characters. A terminal in canonical mode takes no line of 4,096
/// bytes, and a character has at most four bytes.
const MAX_LINE_CHARS: usize = 1_000;
/// Maximum number of nudges that wait for the one before them. Further nudges are refused.
const MAX_WAITING: usize = 64;
/// How long a nudge waits for the keyboard.
const KEYBOARD_LEASED_WITHIN: Duration = Duration::from_secs(5);
/// How long the program may take to read a line. After that, the sender is told that it does not
/// read its input.
const LINE_READ_WITHIN: Duration = Duration::from_secs(5);
/// How long a nudge waits for a screen that keeps changing.
const SCREEN_SETTLES_WITHIN: Duration = Duration::from_secs(1);
/// Interval between screen checks for a nudge.
const SCREEN_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Reason to refuse a request whose sender has given up.
pub const TOO_LATE: &str = "it was requested too long ago, and its sender has given up";
const BUSY: &str = "something else is still being typed, or has not been read";
const DRAFT: &str = "a person is typing";
const GONE: &str = "the terminal is gone";
const TOO_MANY: &str = "too many other lines wait to be typed";
const UNREAD: &str = "the program does not read its input";
const NOT_ENTERED: &str = "; the line was typed, and Enter was not pressed";

/// Names a request. It is chosen by the session, and comes back with the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestToken(pub u64);

/// A request to type a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NudgeRequest {
    pub token: RequestToken,
    pub text: String,
    /// When the sender gives up.
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NudgeOutcome {
    /// The line was typed, and Enter was pressed.
    Typed,
    Refused(String),
}

#[derive(Debug)]
struct Nudge {
    /// `None` once the sender has its outcome.
    token: Option<RequestToken>,
    line: String,
    expires_at: Option<Timestamp>,
}

/// A nudge that waits for the keyboard.
#[derive(Debug)]
struct Waiting {
    nudge: Nudge,
    give_up_at: Duration,
}

/// The step that follows a look at the screen.
#[derive(Debug, Clone, Copy)]
enum Before {
    Line,
    Enter,
}

/// Looks at the screen, repeated until the rules allow or finally forbid the step.
#[derive(Debug)]
struct Check {
    nudge: Nudge,
    before: Before,
    /// When a temporary reason becomes a refusal.
    give_up_at: Duration,
}

/// Wait for the next look.
#[derive(Debug)]
struct Pause {
    check: Check,
    look_at: Duration,
}

/// A line that is being written. It is finished even if its sender has given up.
#[derive(Debug)]
struct Typing {
    nudge: Nudge,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Leasing(Waiting),
    /// The nudge was refused before the keyboard was leased. The result of the lease is still to
    /// come.
    Abandoned,
    Looking(Check),
    Pausing(Pause),
    Typing(Typing),
    Entering(Typing),
}

#[derive(Debug, Default)]
pub(crate) struct Nudges {
    state: State,
    waiting: VecDeque<Waiting>,
    /// When the sender of the line that is being typed is told that the program does not read it.
    reply_by: Option<Duration>,
}

impl Nudge {
    fn has_expired(&self, now: Moment) -> bool {
        self.expires_at.is_some_and(|at| at < now.wall)
    }
}

impl Nudges {
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        let state = match &self.state {
            State::Leasing(waiting) => Some(waiting.give_up_at),
            State::Pausing(pause) => Some(pause.look_at),
            State::Idle
            | State::Abandoned
            | State::Looking(_)
            | State::Typing(_)
            | State::Entering(_) => None,
        };
        let waiting = self.waiting.iter().map(|waiting| waiting.give_up_at);
        waiting.chain(state).chain(self.reply_by).min()
    }

    /// Return the nudge of the present state.
    fn nudge_mut(&mut self) -> Option<&mut Nudge> {
        match &mut self.state {
            State::Leasing(waiting) => Some(&mut waiting.nudge),
            State::Looking(check) => Some(&mut check.nudge),
            State::Pausing(pause) => Some(&mut pause.check.nudge),
            State::Typing(typing) | State::Entering(typing) => Some(&mut typing.nudge),
            State::Idle | State::Abandoned => None,
        }
    }
}

impl SessionDriver {
    pub(crate) fn nudge_requested(
        &mut self,
        now: Moment,
        request: &NudgeRequest,
        observer: &mut impl Observer,
    ) {
        let nudge = Nudge {
            token: Some(request.token),
            line: text::one_line(&request.text, MAX_LINE_CHARS),
            expires_at: request.expires_at,
        };
        let refusal = self.delivery.nudge_refusal();
        let refusal = refusal.filter(|_| !self.delivery.is_settling());
        let reason = match refusal {
            _ if nudge.has_expired(now) => Some(TOO_LATE.to_owned()),
            _ if !self.phase.is_running() => Some(GONE.to_owned()),
            None if self.nudges.waiting.len() == MAX_WAITING => Some(TOO_MANY.to_owned()),
            refusal => refusal,
        };
        if let Some(reason) = reason {
            return self.refuse_nudge(nudge.token, reason, observer);
        }
        let give_up_at = now.mono + KEYBOARD_LEASED_WITHIN;
        let waiting = Waiting { nudge, give_up_at };
        self.nudges.waiting.push_back(waiting);
        self.begin_nudge();
    }

    /// Ask for the keyboard for the next nudge, unless another is under way.
    fn begin_nudge(&mut self) {
        if let State::Idle = self.nudges.state
            && let Some(next) = self.nudges.waiting.pop_front()
        {
            self.nudges.state = State::Leasing(next);
            self.actions
                .push_back(Action::LeaseKeyboard(KeyboardUser::Nudge));
        }
    }

    fn end_nudge(
        &mut self,
        token: Option<RequestToken>,
        outcome: NudgeOutcome,
        observer: &mut impl Observer,
    ) {
        let Some(token) = token else { return };
        observer.on_nudge_end(&outcome);
        self.actions.push_back(Action::EndNudge { token, outcome });
    }

    fn refuse_nudge(
        &mut self,
        token: Option<RequestToken>,
        reason: String,
        observer: &mut impl Observer,
    ) {
        self.end_nudge(token, NudgeOutcome::Refused(reason), observer);
    }

    pub(crate) fn nudge_leased(&mut self, now: Moment, observer: &mut impl Observer) {
        match std::mem::take(&mut self.nudges.state) {
            State::Leasing(Waiting { nudge, .. }) => {
                let give_up_at = now.mono + SCREEN_SETTLES_WITHIN;
                let before = Before::Line;
                self.check_nudge(
                    now,
                    Check {
                        nudge,
                        before,
                        give_up_at,
                    },
                    observer,
                );
            }
            State::Abandoned | State::Idle => self.release_nudge(),
            other => self.nudges.state = other,
        }
    }

    /// The keyboard was refused, because a person has a draft.
    pub(crate) fn nudge_refused(&mut self, observer: &mut impl Observer) {
        self.nudge_not_leased(DRAFT, observer);
    }

    pub(crate) fn nudge_terminal_gone(&mut self, observer: &mut impl Observer) {
        self.nudge_not_leased(GONE, observer);
    }

    fn nudge_not_leased(&mut self, reason: &str, observer: &mut impl Observer) {
        match std::mem::take(&mut self.nudges.state) {
            State::Leasing(Waiting { nudge, .. }) => {
                self.refuse_nudge(nudge.token, reason.to_owned(), observer);
                self.begin_nudge();
            }
            State::Abandoned | State::Idle => self.begin_nudge(),
            other => self.nudges.state = other,
        }
    }

    /// Look at the screen, if the harness can read it, and check the rules.
    fn check_nudge(&mut self, now: Moment, check: Check, observer: &mut impl Observer) {
        if self.delivery.reads_screen() {
            self.nudges.state = State::Looking(check);
            self.actions.push_back(Action::Look(KeyboardUser::Nudge));
        } else {
            self.judge_nudge(now, check, observer);
        }
    }

    pub(crate) fn nudge_looked(
        &mut self,
        now: Moment,
        sighting: Sighting,
        observer: &mut impl Observer,
    ) {
        self.notify_delivery(now, DeliveryEvent::ScreenChanged(sighting), observer);
        match std::mem::take(&mut self.nudges.state) {
            State::Looking(check) => self.judge_nudge(now, check, observer),
            other => self.nudges.state = other,
        }
    }

    /// Continue if the rules allow it, wait if the refusal is temporary, and refuse otherwise.
    fn judge_nudge(&mut self, now: Moment, check: Check, observer: &mut impl Observer) {
        let line = &check.nudge.line;
        let (refusal, is_temporary) = match check.before {
            Before::Line => {
                let refusal = self.delivery.nudge_refusal();
                let refusal = refusal.or_else(|| self.delivery.line_refusal(line));
                (refusal, self.delivery.is_settling())
            }
            Before::Enter => (self.delivery.enter_refusal(line), true),
        };
        match (refusal, check.before) {
            (Some(_), _) if is_temporary && now.mono < check.give_up_at => {
                let look_at = now.mono + SCREEN_POLL_INTERVAL;
                self.nudges.state = State::Pausing(Pause { check, look_at });
            }
            (Some(reason), Before::Line) => self.drop_nudge(&check.nudge, reason, observer),
            (Some(reason), Before::Enter) => {
                self.drop_nudge(&check.nudge, reason + NOT_ENTERED, observer);
            }
            (None, Before::Line) if check.nudge.has_expired(now) => {
                self.drop_nudge(&check.nudge, TOO_LATE.to_owned(), observer);
            }
            (None, Before::Line) => {
                let nudge = check.nudge;
                self.actions.push_back(Action::TypeLine(nudge.line.clone()));
                self.nudges.reply_by = Some(now.mono + LINE_READ_WITHIN);
                self.nudges.state = State::Typing(Typing { nudge });
            }
            (None, Before::Enter) => {
                let (by, keys) = (KeyboardUser::Nudge, self.delivery.enter_key().to_vec());
                self.actions.push_back(Action::PressEnter { by, keys });
                let nudge = check.nudge;
                self.nudges.state = State::Entering(Typing { nudge });
            }
        }
    }

    /// Refuse the nudge that has the keyboard.
    fn drop_nudge(&mut self, nudge: &Nudge, reason: String, observer: &mut impl Observer) {
        self.refuse_nudge(nudge.token, reason, observer);
        self.release_nudge();
    }

    fn release_nudge(&mut self) {
        self.nudges.state = State::Idle;
        self.nudges.reply_by = None;
        self.actions
            .push_back(Action::ReleaseKeyboard(KeyboardUser::Nudge));
        self.begin_nudge();
    }

    pub(crate) fn nudge_typed(&mut self, now: Moment) {
        match std::mem::take(&mut self.nudges.state) {
            State::Typing(Typing { nudge }) => {
                let look_at = now.mono + self.delivery.enter_after();
                let check = Check {
                    nudge,
                    before: Before::Enter,
                    give_up_at: look_at + self.delivery.text_seen_within(),
                };
                self.nudges.state = State::Pausing(Pause { check, look_at });
            }
            other => self.nudges.state = other,
        }
    }

    pub(crate) fn nudge_entered(&mut self, observer: &mut impl Observer) {
        match std::mem::take(&mut self.nudges.state) {
            State::Entering(Typing { nudge }) => {
                self.end_nudge(nudge.token, NudgeOutcome::Typed, observer);
                self.release_nudge();
            }
            other => self.nudges.state = other,
        }
    }

    /// The terminal is gone, or a write to it broke off.
    pub(crate) fn nudge_failed(&mut self, observer: &mut impl Observer) {
        match std::mem::take(&mut self.nudges.state) {
            State::Looking(Check { nudge, .. })
            | State::Typing(Typing { nudge })
            | State::Entering(Typing { nudge }) => {
                self.drop_nudge(&nudge, GONE.to_owned(), observer);
            }
            other => self.nudges.state = other,
        }
    }

    /// Handle the timeouts that are due.
    pub(crate) fn tick_nudges(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_late = |waiting: &Waiting| waiting.give_up_at <= now.mono;
        while self.nudges.waiting.front().is_some_and(is_late) {
            if let Some(late) = self.nudges.waiting.pop_front() {
                self.refuse_nudge(late.nudge.token, BUSY.to_owned(), observer);
            }
        }
        if self.nudges.reply_by.take_if(|at| *at <= now.mono).is_some() {
            let token = self.nudges.nudge_mut().and_then(|nudge| nudge.token.take());
            self.refuse_nudge(token, UNREAD.to_owned(), observer);
        }
        match std::mem::take(&mut self.nudges.state) {
            State::Leasing(late) if is_late(&late) => {
                self.nudges.state = State::Abandoned;
                self.refuse_nudge(late.nudge.token, BUSY.to_owned(), observer);
            }
            State::Pausing(pause) if pause.look_at <= now.mono => {
                self.check_nudge(now, pause.check, observer);
            }
            other => self.nudges.state = other,
        }
    }

    /// Refuse every nudge, because the program has ended.
    pub(crate) fn refuse_all_nudges(&mut self, observer: &mut impl Observer) {
        let waiting = std::mem::take(&mut self.nudges.waiting);
        let current = self.nudges.nudge_mut().and_then(|nudge| nudge.token.take());
        let waiting = waiting.into_iter().map(|waiting| waiting.nudge.token);
        for token in std::iter::once(current).chain(waiting) {
            self.refuse_nudge(token, GONE.to_owned(), observer);
        }
        self.nudges = Nudges::default();
    }
}
