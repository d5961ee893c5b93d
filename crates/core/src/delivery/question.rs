//! Which question of the program stands open. It has an identity beside its words: whether one is
//! still the same decides whether Enter belongs to it.

use super::Desk;
use super::phase::Question;
use crate::moment::Moment;

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
}

impl Dialog {
    pub(super) fn asks(&self) -> Question {
        Question {
            number: self.number,
            what: self.what.clone(),
        }
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
    pub(super) fn see(&mut self, now: Moment, what: Option<String>) {
        let Some(what) = what else {
            self.dialog = None;
            return;
        };
        let answer = self.phase.answer().map(str::to_owned);
        match &mut self.dialog {
            Some(known) if known.what == what || known.echoed.as_ref() == Some(&what) => {}
            Some(known) if answer.is_some_and(|answer| known.is_echoed_by(&what, &answer)) => {
                known.echoed = Some(what);
            }
            Some(_) | None => {
                self.asked += 1;
                self.dialog = Some(Dialog {
                    number: self.asked,
                    what,
                    echoed: None,
                    since: now,
                    stays: false,
                });
            }
        }
    }
}
