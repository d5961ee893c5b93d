//! Checks of answers before they are recorded. An answer that is recorded before its question has
//! settled on the screen could be matched to another question.

use super::{Action, Observer, SessionDriver};
use crate::delivery::{Answerable, OpenQuestion, RequestToken};
use crate::id::AskId;
use crate::moment::Moment;
use jiff::Timestamp;
use std::time::Duration;

/// How long an answer waits for its question to be on the screen.
const QUESTION_SHOWN_WITHIN: Duration = Duration::from_secs(2);
const QUESTION_POLL_INTERVAL: Duration = Duration::from_millis(20);
const CHANGED: &str = "its question changed just now; nothing was answered";
const NO_KEYS: &str = "ph knows no keys for this dialog";

/// A client's request to answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    pub token: RequestToken,
    pub asked_at: Timestamp,
    /// The ask, and the key of the chosen option. Without it, the client types a text of its own into
    /// the dialog that is open.
    pub choice: Option<(AskId, String)>,
}

/// An answer that waits for its question to settle.
#[derive(Debug, Clone)]
struct Check {
    request: AnswerRequest,
    /// The question as it was when the answer was first checked.
    first: Option<OpenQuestion>,
    give_up_at: Duration,
    check_at: Duration,
}

#[derive(Debug, Default)]
pub(super) struct AnswerChecks(Vec<Check>);

impl AnswerChecks {
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.0.iter().map(|check| check.check_at).min()
    }
}

impl SessionDriver {
    pub(super) fn answer_requested(
        &mut self,
        now: Moment,
        request: AnswerRequest,
        observer: &mut impl Observer,
    ) {
        let first = match self.delivery.answerable(now) {
            Answerable::Yes(open) => open,
            Answerable::NotYet(open) => Some(open),
            Answerable::No(_) => None,
        };
        let check = Check {
            request,
            first,
            give_up_at: now.mono + QUESTION_SHOWN_WITHIN,
            check_at: now.mono,
        };
        self.check_answer(now, check, observer);
    }

    /// Check each waiting answer again.
    pub(super) fn check_answers(&mut self, now: Moment, observer: &mut impl Observer) {
        for check in std::mem::take(&mut self.answer_checks.0) {
            self.check_answer(now, check, observer);
        }
    }

    fn check_answer(&mut self, now: Moment, check: Check, observer: &mut impl Observer) {
        let token = check.request.token;
        let (open, is_settled) = match self.delivery.answerable(now) {
            Answerable::Yes(open) => (open, true),
            Answerable::NotYet(open) => (Some(open), check.give_up_at <= now.mono),
            Answerable::No(why) => return self.end_answer_check(now, token, Err(why), observer),
        };
        let choice = check.request.choice.as_ref();
        let is_other = choice.is_some_and(|(ask, _)| !self.asks.is_open(*ask));
        let is_newer = open.is_some_and(|open| open.since > check.request.asked_at);
        if is_newer || is_other || open != check.first {
            return self.end_answer_check(now, token, Err(CHANGED), observer);
        }
        if !is_settled {
            let check_at = now.mono + QUESTION_POLL_INTERVAL;
            return self.answer_checks.0.push(Check { check_at, ..check });
        }
        let keys = match choice.map(|(_, key)| self.delivery.keys_for(key)) {
            Some(None) => Err(NO_KEYS),
            keys => Ok(keys.flatten()),
        };
        self.end_answer_check(now, token, keys, observer);
    }

    fn end_answer_check(
        &mut self,
        now: Moment,
        token: RequestToken,
        keys: Result<Option<String>, &str>,
        observer: &mut impl Observer,
    ) {
        let keys = keys.map_err(str::to_owned);
        let end = Action::EndAnswerCheck { token, keys };
        self.request(now, vec![end], observer);
    }
}
