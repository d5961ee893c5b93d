//! The open question of the program, according to the screen and the hooks. A question has a number
//! beside its text, because an answer belongs to one question only.

use super::agent::AgentState;
use crate::ask::{self, AskKind, AskOption};
use crate::delivery::outgoing::Question;
use crate::harness::DialogView;
use crate::moment::Moment;
use std::sync::Arc;
use std::time::Duration;

/// A hook reports a question before its dialog is drawn. If the screen still shows the input box
/// after this time, the question has ended: agents call no hook after a denial.
const DIALOG_DRAWN_WITHIN: Duration = Duration::from_secs(3);
/// How long a question must be on the screen without a change of its text before it is answered.
/// Claude Code ignores keys for 200 ms after it has opened a dialog, and a dialog may be drawn in
/// parts.
const QUESTION_SETTLED_AFTER: Duration = Duration::from_millis(500);

const ON_SCREEN: &str = "its question is on the screen";

#[derive(Debug, Clone)]
pub(crate) struct OpenDialog {
    /// Counts the questions of the session: a repeated question with the same text has another
    /// number.
    pub(crate) number: u64,
    pub(crate) what: String,
    /// The full text, as far as it is known.
    text: String,
    /// The text followed by the echo of an answer, if the screen shows that.
    echoed: Option<String>,
    pub(crate) since: Moment,
    /// The interrupt key does not dismiss it.
    pub(crate) ignores_interrupt: bool,
    pub(crate) evidence: String,
    /// When a hook reported the question.
    pub(crate) hook_reported_at: Option<Moment>,
    /// The question and its options as the screen shows them.
    pub(crate) view: Option<Arc<DialogView>>,
}

impl OpenDialog {
    pub(crate) fn question(&self) -> Question {
        Question {
            number: self.number,
            what: self.what.clone(),
        }
    }

    /// Whether `text` is the text of this question, with or without the echo of an answer.
    fn has_text(&self, text: &str) -> bool {
        self.text == text || self.echoed.as_deref() == Some(text)
    }

    /// Whether `text` is this question followed by a part of an answer.
    fn is_echoed_by(&self, text: &str, answer: &str) -> bool {
        let echo = text.strip_prefix(self.text.as_str());
        // The end of a long text is left out.
        let echo = echo.map(|echo| echo.trim_end_matches('…').trim());
        echo.is_some_and(|echo| !echo.is_empty() && answer.trim().starts_with(echo))
    }
}

/// A question as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownQuestion {
    /// A summary in a few words.
    pub(crate) what: String,
    /// The full text.
    pub(crate) text: String,
    pub(crate) view: Option<Arc<DialogView>>,
}

impl ShownQuestion {
    pub(crate) fn of(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            text: what.to_owned(),
            view: None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Questions {
    /// The one question that counts.
    pub(crate) open: Option<OpenDialog>,
    /// The question on the screen.
    shown: Option<ShownQuestion>,
    /// When the question on the screen last changed, including its wording.
    changed_at: Option<Moment>,
    /// The screen only announces the question, in a title or a status note.
    is_announced: bool,
    count: u64,
}

impl Questions {
    fn is_open(&self, text: &str) -> bool {
        self.open.as_ref().is_some_and(|d| d.has_text(text))
    }

    /// Whether `what`, a text or the summary of a hook, is the open question.
    fn is_open_as(&self, what: &str) -> bool {
        let dialog = self.open.as_ref();
        dialog.is_some_and(|d| d.what == what || d.has_text(what))
    }

    /// Note the echo of the answer that is being typed, if the screen shows it as a part of the
    /// question.
    fn note_echo(&mut self, text: &str, answer: &str) {
        if let Some(dialog) = &mut self.open
            && dialog.is_echoed_by(text, answer)
        {
            dialog.echoed = Some(text.to_owned());
        }
    }

    /// Note that the screen now shows the question that it only announced before.
    fn note_drawn(&mut self, now: Moment, shown: &ShownQuestion) {
        self.changed_at = Some(now);
        if let (Some(dialog), Some(announced)) = (&mut self.open, &self.shown)
            && dialog.text == announced.text
        {
            dialog.what.clone_from(&shown.what);
            dialog.text.clone_from(&shown.text);
            dialog.evidence = ON_SCREEN.to_owned();
        }
        self.shown = Some(shown.clone());
    }

    /// Let the open question have the view of the screen, in which the marker may have moved.
    fn update_view(&mut self) {
        if let (Some(open), Some(shown)) = (&mut self.open, &self.shown) {
            open.view.clone_from(&shown.view);
        }
    }

    /// Whether the open question is another one than the answered one.
    pub(crate) fn differs_from(&self, answered: Option<&Question>) -> bool {
        let open = self.open.as_ref().map(|dialog| dialog.number);
        open != answered.map(|question| question.number)
    }
}

impl AgentState {
    /// Update the question from a look at the screen. `answer` is the answer that is being typed.
    pub(crate) fn note_look(
        &mut self,
        now: Moment,
        shown: Option<ShownQuestion>,
        is_announced: bool,
        answer: Option<&str>,
    ) {
        let was_announced = std::mem::replace(&mut self.questions.is_announced, is_announced);
        if let (Some(shown), true, false) = (&shown, was_announced, is_announced) {
            self.questions.note_drawn(now, shown);
        }
        self.note_question(now, shown, answer);
    }

    /// Note the question on the screen. A question that has left the screen is answered, even
    /// without a report of a hook.
    pub(crate) fn note_question(
        &mut self,
        now: Moment,
        shown: Option<ShownQuestion>,
        answer: Option<&str>,
    ) {
        let questions = &mut self.questions;
        let is_same = match (&questions.shown, &shown) {
            (Some(before), Some(now)) => before.text == now.text,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            questions.shown = shown;
            questions.update_view();
            return;
        }
        questions.changed_at = Some(now);
        if let (Some(shown), Some(answer)) = (&shown, answer) {
            questions.note_echo(&shown.text, answer);
        }
        match (&questions.shown, &shown) {
            (Some(_), Some(shown)) if questions.is_open(&shown.text) => {}
            // An answer to the first question has not answered this one.
            (Some(_), Some(_)) => questions.open = None,
            (Some(_), None) if self.heard.question().is_some() => self.end_hook_question(),
            (Some(_) | None, _) => {}
        }
        self.questions.shown = shown;
        self.settle_question(now);
        self.questions.update_view();
    }

    /// Return when a question ends that only a hook has reported, because the screen has shown the
    /// input box since `box_since`.
    pub(crate) fn question_ends_at(&self, box_since: Option<Moment>) -> Option<Duration> {
        let is_by_hook_only = self.questions.shown.is_none();
        let reported = self.heard.question().filter(|_| is_by_hook_only)?;
        Some(reported.at.mono.max(box_since?.mono) + DIALOG_DRAWN_WITHIN)
    }

    pub(crate) fn tick_question(&mut self, now: Moment, box_since: Option<Moment>) {
        let ends_at = self.question_ends_at(box_since);
        if ends_at.is_some_and(|at| at <= now.mono) {
            self.end_hook_question();
            self.settle_question(now);
        }
    }

    /// Decide which question is open. It stays open for as long as the screen or a hook reports it.
    pub(crate) fn settle_question(&mut self, now: Moment) {
        let questions = &mut self.questions;
        let reported = self.heard.question();
        let shown = questions.shown.as_ref();
        let is_shown = shown.is_some_and(|shown| questions.is_open(&shown.text));
        if is_shown || reported.is_some_and(|reported| questions.is_open_as(&reported.what)) {
            return;
        }
        let (shown, since, evidence, hook_reported_at) = match (shown, reported) {
            (Some(shown), _) => (shown.clone(), now, ON_SCREEN.to_owned(), None),
            (None, Some(reported)) => {
                let evidence = format!("hook {}", reported.event);
                (
                    ShownQuestion::of(&reported.what),
                    reported.at,
                    evidence,
                    Some(reported.at),
                )
            }
            (None, None) => {
                questions.open = None;
                return;
            }
        };
        questions.count += 1;
        questions.open = Some(OpenDialog {
            number: questions.count,
            what: shown.what,
            text: shown.text,
            echoed: None,
            since,
            ignores_interrupt: false,
            evidence,
            hook_reported_at,
            view: shown.view,
        });
    }

    /// Whether keys for the open question may still be ignored, because it has just appeared.
    pub(crate) fn is_question_fresh(&self, now: Moment) -> bool {
        let settled_at = self
            .questions
            .changed_at
            .map(|at| at.mono + QUESTION_SETTLED_AFTER);
        let is_settled = settled_at.is_some_and(|at| at <= now.mono);
        self.knows_dialogs() && (self.is_question_unshown() || !is_settled)
    }

    /// Whether the screen does not show the open question yet, or only announces it.
    pub(crate) fn is_question_unshown(&self) -> bool {
        self.knows_dialogs() && (self.questions.shown.is_none() || self.questions.is_announced)
    }

    /// Whether the answered question is closed or replaced by another.
    pub(crate) fn has_question_changed(&self, answered: Option<&Question>) -> bool {
        let may_tell = self.is_asking() || self.knows_dialogs();
        may_tell && self.questions.differs_from(answered)
    }
}

/// How long a question must be on the screen without a change before it becomes an ask.
const ASK_SETTLED_AFTER: Duration = Duration::from_millis(100);
/// How long a question that only a hook or a title reports waits for its dialog.
const DIALOG_AWAITED_FOR: Duration = Duration::from_millis(1_500);

/// The open question, as an ask shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownAsk {
    /// Counts the questions of a session.
    pub number: u64,
    pub kind: AskKind,
    pub summary: String,
    pub text: String,
    pub is_partial: bool,
    pub options: Vec<AskOption>,
    pub fingerprint: String,
}

impl AgentState {
    /// Return the number of the open question.
    pub(crate) fn question_number(&self) -> Option<u64> {
        self.questions.open.as_ref().map(|open| open.number)
    }

    /// Return when the open question can become an ask.
    pub(crate) fn ask_settles_at(&self) -> Option<Duration> {
        let open = self.questions.open.as_ref()?;
        let changed_at = self
            .questions
            .changed_at
            .map_or(Duration::ZERO, |at| at.mono);
        let settled_at = changed_at.max(open.since.mono) + ASK_SETTLED_AFTER;
        let is_shown = open.view.is_some() && !self.is_question_unshown();
        Some(match is_shown {
            true => settled_at,
            false => settled_at.max(open.since.mono + DIALOG_AWAITED_FOR),
        })
    }

    /// Return the open question as an ask, once it has settled.
    pub(crate) fn shown_ask(&self, now: Moment) -> Option<ShownAsk> {
        let open = self.questions.open.as_ref()?;
        if self.ask_settles_at()? > now.mono {
            return None;
        }
        let is_shown = !self.is_question_unshown();
        let view = open.view.as_ref().filter(|_| is_shown);
        let detail = self
            .heard
            .only_question()
            .and_then(|question| question.detail.as_ref());
        let (kind, text, is_partial, options) = match (view, detail) {
            // The screen may not show the whole request, and the hook has all of it.
            (Some(view), Some(detail)) if view.is_partial && is_about(detail, &view.text) => {
                let text = format!("{}\n\n{detail}", view.text);
                (view.kind, text, false, view.answers())
            }
            (Some(view), _) => (
                view.kind,
                view.text.clone(),
                view.is_partial,
                view.answers(),
            ),
            (None, Some(detail)) => (AskKind::Permission, detail.clone(), false, Vec::new()),
            (None, None) => (AskKind::Question, open.what.clone(), true, Vec::new()),
        };
        Some(ShownAsk {
            number: open.number,
            kind,
            summary: view.map_or_else(|| open.what.clone(), |view| view.summary.clone()),
            fingerprint: ask::fingerprint(&text, &options),
            text,
            is_partial,
            options,
        })
    }
}

/// Whether the text on the screen shows a row of the request that a hook reports. White space does
/// not count, because the screen wraps the row.
fn is_about(detail: &str, shown: &str) -> bool {
    const MIN_CHARS: usize = 3;
    const COMPARED_CHARS: usize = 40;
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let shown = bare(shown);
    detail.lines().any(|row| {
        let value = row.split_once(": ").map_or(row, |(_, value)| value);
        let value: String = bare(value).chars().take(COMPARED_CHARS).collect();
        value.chars().count() >= MIN_CHARS && shown.contains(&value)
    })
}
