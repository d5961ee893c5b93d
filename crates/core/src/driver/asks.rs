//! The ask of the program's open question: when it is opened, when it closes, and why.
//!
//! At most one ask of a session's program is open. An ask that cannot be recorded is recorded later,
//! and the journal closes the asks of a session that has ended.

use super::{JournalOperation, SessionDriver};
use crate::ask::{AskOpened, CloseReason};
use crate::delivery::{AnswerEnd, ShownAsk};
use crate::id::AskId;
use crate::moment::Moment;
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// How long after a person's key the end of a question counts as the person's answer.
const TERMINAL_ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Asks that may open in a minute. A program that asks without end is shown more slowly.
const ASKS_PER_MINUTE: usize = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// The ask that is open.
#[derive(Debug, Clone)]
struct OpenAsk {
    id: AskId,
    /// The number of its question.
    question: u64,
    fingerprint: String,
    /// How an answer was applied.
    applied: Option<String>,
    /// Whether an answer may have been applied, while the same question is still open.
    is_doubtful: bool,
}

#[derive(Debug, Default)]
pub(super) struct Asks {
    open: Option<OpenAsk>,
    /// Number of asks that were opened.
    count: u64,
    /// When the latest asks were opened.
    recent: VecDeque<Duration>,
    person_typed_at: Option<Duration>,
}

impl Asks {
    /// Note that a person has typed into the terminal.
    pub(super) fn note_keys(&mut self, now: Moment) {
        self.person_typed_at = Some(now.mono);
    }

    /// Note that the open ask's answer has taken effect.
    pub(super) fn note_applied(&mut self, evidence: &str) {
        if let Some(open) = &mut self.open {
            open.applied = Some(evidence.to_owned());
        }
    }

    /// Note that the open ask's answer may have taken effect. The question counts as another one from
    /// now on, so that a person can answer it.
    pub(super) fn note_doubt(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_doubtful = true;
        }
    }

    pub(super) fn is_open(&self, id: AskId) -> bool {
        self.open.as_ref().is_some_and(|open| open.id == id)
    }

    /// Return the time from which the next ask may open, if the program has asked a lot.
    fn opens_from(&self) -> Option<Duration> {
        let is_full = self.recent.len() >= ASKS_PER_MINUTE;
        self.recent
            .front()
            .filter(|_| is_full)
            .map(|at| *at + MINUTE)
    }
}

impl SessionDriver {
    /// Open and close the ask of the program's question. One change is recorded after the other,
    /// because a change that has to be retried would otherwise come after the next one.
    pub(super) fn update_asks(&mut self, now: Moment) {
        if self.commits.has_ask() {
            return;
        }
        match self.delivery.take_answer_end() {
            Some(AnswerEnd::Applied(evidence)) => self.asks.note_applied(&evidence),
            Some(AnswerEnd::Doubtful) => self.asks.note_doubt(),
            None => {}
        }
        let shown = self.delivery.shown_ask(now);
        let question = self.delivery.question_number();
        if let Some(open) = &self.asks.open {
            let has_new_text = shown
                .as_ref()
                .is_some_and(|shown| shown.fingerprint != open.fingerprint);
            let is_gone = question != Some(open.question);
            // The effect of an answer that is being typed is not judged yet.
            let may_close = !self.delivery.is_answering() || open.applied.is_some();
            if may_close && (is_gone || has_new_text || open.is_doubtful) {
                let reason = self.close_reason(now, open, question.is_some());
                let ask = open.id;
                self.asks.open = None;
                return self.record(now, JournalOperation::CloseAsk { ask, reason });
            }
        }
        if let (None, Some(shown)) = (&self.asks.open, shown)
            && self.asks.opens_from().is_none_or(|from| from <= now.mono)
        {
            self.open_ask(now, shown);
        }
    }

    fn close_reason(&self, now: Moment, open: &OpenAsk, asks_again: bool) -> CloseReason {
        let typed_at = self.asks.person_typed_at;
        let has_typed = typed_at.is_some_and(|at| now.mono < at + TERMINAL_ANSWER_WITHIN);
        match &open.applied {
            Some(evidence) => CloseReason::AnswerApplied {
                evidence: evidence.clone(),
            },
            None if open.is_doubtful => CloseReason::Withdrawn {
                evidence: "an answer may have been applied, and the agent asks the same again"
                    .to_owned(),
            },
            None if has_typed => CloseReason::AnsweredInTerminal,
            None if asks_again => CloseReason::Superseded,
            None => CloseReason::Withdrawn {
                evidence: "the agent has closed the question".to_owned(),
            },
        }
    }

    fn open_ask(&mut self, now: Moment, shown: ShownAsk) {
        self.asks.count += 1;
        let id = ask_id(self.run.run, self.asks.count);
        self.asks.recent.push_back(now.mono);
        if self.asks.recent.len() > ASKS_PER_MINUTE {
            self.asks.recent.pop_front();
        }
        self.asks.open = Some(OpenAsk {
            id,
            question: shown.number,
            fingerprint: shown.fingerprint.clone(),
            applied: None,
            is_doubtful: false,
        });
        let opened = AskOpened {
            run: self.run.run,
            kind: shown.kind,
            summary: shown.summary,
            text: shown.text,
            is_partial: shown.is_partial,
            options: shown.options,
            fingerprint: shown.fingerprint,
        };
        let opened = Box::new(opened);
        self.record(now, JournalOperation::OpenAsk { id, opened });
    }

    /// Return when the open question can become an ask.
    pub(super) fn next_ask(&self) -> Option<Duration> {
        let settles_at = self.delivery.ask_settles_at()?;
        let can_open = self.asks.open.is_none() && !self.commits.has_ask();
        let from = self.asks.opens_from().unwrap_or_default();
        can_open.then(|| settles_at.max(from))
    }
}

/// Return the id of a run's ask. It is derived from the run, because the core has no randomness.
fn ask_id(run: Uuid, count: u64) -> AskId {
    // The multiplier spreads the number over all digits, so that short prefixes differ.
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let mixed = (run.as_u128().rotate_left(64) ^ u128::from(count)).wrapping_mul(ODD);
    let mixed = (mixed ^ (mixed >> 64)).wrapping_mul(ODD);
    AskId(uuid::Builder::from_custom_bytes(mixed.to_be_bytes()).into_uuid())
}
