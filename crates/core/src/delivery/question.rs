//! Which question of the program stands open, of what the screen shows and what hooks have told. It
//! has an identity beside its words: whether one is still the same decides whether Enter belongs to
//! it.

use super::Desk;
use super::phase::Question;
use crate::harness::Source;
use crate::moment::Moment;
use std::time::Duration;

/// A hook tells of a question before its dialog is drawn. If the screen still shows the input box
/// after this time, the question is over: agents call no hook after a denial.
const DIALOG_DRAWN_WITHIN: Duration = Duration::from_secs(3);

const ON_SCREEN: &str = "its question stands on the screen";

#[derive(Debug, Clone)]
pub(super) struct Dialog {
    /// Of all that were open in this session: one that comes again in the same words is another.
    pub(super) number: u64,
    pub(super) what: String,
    /// All of its words, as far as they are known.
    text: String,
    /// The same with what we typed behind it, where the screen shows that.
    echoed: Option<String>,
    pub(super) since: Moment,
    /// The interrupt key does not dismiss it.
    pub(super) stays: bool,
    pub(super) evidence: String,
    /// When a hook told it.
    pub(super) heard: Option<Moment>,
}

impl Dialog {
    pub(super) fn asks(&self) -> Question {
        Question {
            number: self.number,
            what: self.what.clone(),
        }
    }

    /// Whether words are its own, with the echo of an answer behind them or without.
    fn is_told_by(&self, text: &str) -> bool {
        self.text == text || self.echoed.as_deref() == Some(text)
    }

    /// Whether it is shown with a part of an answer behind it, and is the same still.
    fn is_echoed_by(&self, text: &str, answer: &str) -> bool {
        let echo = text.strip_prefix(self.text.as_str());
        // Where it is too long to be told, its end is left out.
        let echo = echo.map(|echo| echo.trim_end_matches('…').trim());
        echo.is_some_and(|echo| !echo.is_empty() && answer.trim().starts_with(echo))
    }
}

/// A question as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// In a few words.
    pub(super) what: String,
    /// In all of them.
    pub(super) text: String,
}

impl Shown {
    pub(super) fn of(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            text: what.to_owned(),
        }
    }
}

impl Desk {
    /// What the screen shows of a question. Once one is gone from there, it is answered, also
    /// where no hook says so.
    pub(super) fn see(&mut self, now: Moment, shown: Option<Shown>) {
        if self.shown == shown {
            return;
        }
        self.shown_at = Some(now);
        self.hear_echo(shown.as_ref().map(|shown| shown.text.as_str()));
        match (&self.shown, &shown) {
            (Some(_), Some(shown)) if self.asks_still(&shown.text) => {}
            // Another: whoever has answered the first has not answered this one.
            (Some(_), Some(_)) => self.dialog = None,
            (Some(_), None) if self.heard.question().is_some() => {
                self.heard.answered();
                self.judge.forget(Source::Hook);
            }
            (Some(_) | None, _) => {}
        }
        self.shown = shown;
        self.ask(now);
    }

    /// When a question ends that only a hook has told of, because the screen shows the input box.
    pub(super) fn question_ends_at(&self) -> Option<Duration> {
        let told = self.heard.question().filter(|_| self.shown.is_none())?;
        let shown = self.drafting.recognised_since()?;
        Some(told.at.mono.max(shown.mono) + DIALOG_DRAWN_WITHIN)
    }

    pub(super) fn tick_question(&mut self, now: Moment) {
        if self.question_ends_at().is_some_and(|at| at <= now.mono) {
            self.heard.answered();
            self.judge.forget(Source::Hook);
            self.ask(now);
        }
    }

    /// The question that stands open.
    pub fn asks(&self) -> Option<&str> {
        self.dialog.as_ref().map(|dialog| dialog.what.as_str())
    }

    /// The question that was only told of is on the screen now: it is the same one.
    pub(super) fn drawn(&mut self, now: Moment, shown: &Shown) {
        self.shown_at = Some(now);
        if let (Some(dialog), Some(told)) = (&mut self.dialog, &self.shown)
            && dialog.text == told.text
        {
            dialog.what.clone_from(&shown.what);
            dialog.text.clone_from(&shown.text);
            dialog.evidence = ON_SCREEN.to_owned();
        }
        self.shown = Some(shown.clone());
    }

    fn asks_still(&self, text: &str) -> bool {
        self.dialog.as_ref().is_some_and(|d| d.is_told_by(text))
    }

    /// A hook has words of its own for it.
    fn asks_as_told(&self, what: &str) -> bool {
        let dialog = self.dialog.as_ref();
        dialog.is_some_and(|d| d.what == what || d.is_told_by(what))
    }

    /// What is being typed in answer to a question may be shown as a part of it.
    fn hear_echo(&mut self, text: Option<&str>) {
        let answer = self.phase.answer();
        if let (Some(dialog), Some(text), Some(answer)) = (&mut self.dialog, text, answer)
            && dialog.is_echoed_by(text, answer)
        {
            dialog.echoed = Some(text.to_owned());
        }
    }

    /// The one question that counts. It stays the same for as long as either tells it.
    pub(super) fn ask(&mut self, now: Moment) {
        let told = self.heard.question();
        let is_shown = self
            .shown
            .as_ref()
            .is_some_and(|s| self.asks_still(&s.text));
        if is_shown || told.is_some_and(|told| self.asks_as_told(&told.what)) {
            return;
        }
        let (shown, since, evidence, heard) = match (&self.shown, told) {
            (Some(shown), _) => (shown.clone(), now, ON_SCREEN.to_owned(), None),
            (None, Some(told)) => {
                let evidence = format!("hook {}", told.event);
                (Shown::of(&told.what), told.at, evidence, Some(told.at))
            }
            (None, None) => {
                self.dialog = None;
                return;
            }
        };
        self.asked += 1;
        self.dialog = Some(Dialog {
            number: self.asked,
            what: shown.what,
            text: shown.text,
            echoed: None,
            since,
            stays: false,
            evidence,
            heard,
        });
    }
}
