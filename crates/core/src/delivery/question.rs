//! Which question of the program stands open, of what the screen shows and what hooks have told. It
//! has an identity beside its words: whether one is still the same decides whether Enter belongs to
//! it.

use super::Desk;
use super::phase::Question;
use crate::harness::Source;
use crate::moment::Moment;

const ON_SCREEN: &str = "its question stands on the screen";

#[derive(Debug, Clone)]
pub(super) struct Dialog {
    /// Of all that were open in this session: one that comes again in the same words is another.
    pub(super) number: u64,
    pub(super) what: String,
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
    fn is_told_by(&self, what: &str) -> bool {
        self.what == what || self.echoed.as_deref() == Some(what)
    }

    /// Whether it is shown with a part of an answer behind it, and is the same still.
    fn is_echoed_by(&self, what: &str, answer: &str) -> bool {
        let echo = what.strip_prefix(self.what.as_str());
        // Where it is too long to be told, its end is left out.
        let echo = echo.map(|echo| echo.trim_end_matches('…').trim());
        echo.is_some_and(|echo| !echo.is_empty() && answer.trim().starts_with(echo))
    }
}

impl Desk {
    /// What the screen shows of a question. Once one is gone from there, it is answered, also
    /// where no hook says so.
    pub(super) fn see(&mut self, now: Moment, what: Option<String>) {
        if self.shown == what {
            return;
        }
        self.hear_echo(what.as_deref());
        match (&self.shown, &what) {
            (Some(_), Some(what)) if self.asks_still(what) => {}
            // Another: whoever has answered the first has not answered this one.
            (Some(_), Some(_)) => self.dialog = None,
            (Some(_), None) if self.heard.question().is_some() => {
                self.heard.answered();
                self.judge.forget(Source::Hook);
            }
            (Some(_) | None, _) => {}
        }
        self.shown = what;
        self.ask(now);
    }

    /// The question that was only told of is on the screen now: it is the same one.
    pub(super) fn drawn(&mut self, what: &str) {
        if let Some(dialog) = &mut self.dialog
            && self.shown.as_ref() == Some(&dialog.what)
        {
            dialog.what = what.to_owned();
            dialog.evidence = ON_SCREEN.to_owned();
        }
        self.shown = Some(what.to_owned());
    }

    fn asks_still(&self, what: &str) -> bool {
        self.dialog.as_ref().is_some_and(|d| d.is_told_by(what))
    }

    /// What is being typed in answer to a question may be shown as a part of it.
    fn hear_echo(&mut self, what: Option<&str>) {
        let answer = self.phase.answer();
        if let (Some(dialog), Some(what), Some(answer)) = (&mut self.dialog, what, answer)
            && dialog.is_echoed_by(what, answer)
        {
            dialog.echoed = Some(what.to_owned());
        }
    }

    /// The one question that counts. It stays the same for as long as either tells it.
    pub(super) fn ask(&mut self, now: Moment) {
        let told = self.heard.question();
        let shown = self.shown.as_deref();
        let mut words = shown.into_iter().chain(told.map(|told| told.what.as_str()));
        if words.any(|what| self.asks_still(what)) {
            return;
        }
        let (what, since, evidence, heard) = match (&self.shown, told) {
            (Some(what), _) => (what.clone(), now, ON_SCREEN.to_owned(), None),
            (None, Some(told)) => {
                let evidence = format!("hook {}", told.event);
                (told.what.clone(), told.at, evidence, Some(told.at))
            }
            (None, None) => {
                self.dialog = None;
                return;
            }
        };
        self.asked += 1;
        self.dialog = Some(Dialog {
            number: self.asked,
            what,
            echoed: None,
            since,
            stays: false,
            evidence,
            heard,
        });
    }
}
