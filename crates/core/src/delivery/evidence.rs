//! What a desk makes of what is seen on the screen.

use super::question::Shown;
use super::{Before, Desk, Flight, Phase};
use crate::harness::{Field, Paste, Sighting};
use crate::mail::Letter;
use crate::moment::Moment;
use crate::turn::{self, Shape, Telling};

impl Desk {
    /// Whether the harness can tell that no question stands open.
    pub fn knows_dialogs(&self) -> bool {
        self.manner.harness.knows_dialogs()
    }

    /// Why a message that was written can never be seen to be accepted, if it cannot.
    pub fn lacks_proof(&self) -> Option<String> {
        let harness = &self.manner.harness;
        let lacks = !harness.is_proven_by_hook();
        lacks.then(|| format!("; harness {} has no proof of more", harness.name))
    }

    /// Whether the screen tells anything about this program.
    pub fn looks(&self) -> bool {
        self.manner.harness.looks()
    }

    /// Whether it cannot be written to yet.
    pub fn is_starting(&self) -> bool {
        self.judge.is_starting()
    }

    /// What showed that it can.
    pub fn ready_evidence(&self) -> String {
        self.judge.pace().evidence.clone()
    }

    /// Where the words of a message stand: on the screen, they must not pass for a question of
    /// the program's. That would hold them up for ever, and all that comes after them.
    pub fn telling(&self, letter: &Letter) -> Telling {
        let would_ask = |text: &str| self.manner.harness.would_ask(text);
        let path_bytes = self.manner.path_bytes;
        let asks = turn::words(letter).is_some_and(|words| {
            let shape = Shape::of(letter, Telling::Here, self.input, path_bytes);
            would_ask(&words) || would_ask(shape.beginning())
        });
        if asks { Telling::InFile } else { Telling::Here }
    }

    /// Why a line that is no message is not for this program: it would pass for a question.
    pub fn bars_words(&self, line: &str) -> Option<String> {
        let asks = self.manner.harness.would_ask(line);
        asks.then(|| "it reads like a question of the program's own".to_owned())
    }

    /// How a box would show a message that goes alone.
    pub(super) fn shape(&self, letter: &Letter) -> Shape {
        let path_bytes = self.manner.path_bytes;
        Shape::of(letter, self.telling(letter), self.input, path_bytes)
    }

    pub fn paste(&self) -> Paste {
        self.manner.harness.submit.paste
    }

    pub fn enter_key(&self) -> &[u8] {
        self.manner.harness.submit.enter.bytes()
    }

    /// How long after a text Enter is pressed.
    pub fn enter_after(&self) -> std::time::Duration {
        self.manner.harness.submit.delay.get()
    }

    /// Whether a draft stands in the way, and will be put aside.
    pub fn puts_aside(&self) -> bool {
        self.has_draft() && self.way().is_some()
    }

    /// Whether the screen shows that no key of a person's has reached the input box: it is empty,
    /// or holds what we have written and nothing else.
    pub fn is_field_ours(&self) -> bool {
        match (self.drafting.field(), &self.parked) {
            (Field::Empty, _) => self.drafting.shows_keys(),
            (Field::Holds(text), Some(parked)) => parked.is_alone_in(text),
            (Field::Holds(_), None) | (Field::Unseen, _) => false,
        }
    }

    pub(super) fn seen(&mut self, now: Moment, sighting: Sighting) {
        let Sighting {
            ready,
            claims,
            dialog,
            question,
            announced,
            field,
            before: _,
        } = sighting;
        self.judge.seen(now, &claims);
        if ready {
            self.judge.ready(now);
        }
        let shown = dialog.map(|what| Shown {
            text: question.unwrap_or_else(|| what.clone()),
            what,
        });
        if let (Some(shown), true, false) = (&shown, self.announced, announced) {
            self.drawn(shown);
        }
        self.announced = announced;
        self.see(now, shown);
        self.see_text(now, &field);
        self.drafting.see(now, field);
    }

    /// Remembers how the box shows a text of ours that waits for its Enter. Nobody else can type
    /// then; but before, where it was parked, and no key since tells whose it is.
    fn see_text(&mut self, now: Moment, field: &Field) {
        let Field::Holds(text) = field else {
            return;
        };
        let soon = now.mono + self.enter_after();
        let is_keyless = !self.drafting.is_typed();
        match (&mut self.phase, &mut self.parked) {
            (Phase::Written { flight, enter_at }, _) if !flight.was_parked => {
                flight.shown = Some(text.clone());
                *enter_at = soon.min(*enter_at);
            }
            (
                Phase::Looking {
                    flight,
                    before: Before::Enter,
                },
                _,
            ) if !flight.was_parked => flight.shown = Some(text.clone()),
            (_, Some(parked)) if is_keyless && !parked.is_joined_in(text) => parked.learn(text),
            (_, Some(parked)) if is_keyless => parked.grow(text),
            // Its keyboard is asked for, or had again.
            (
                Phase::Resuming(flight)
                | Phase::Written { flight, .. }
                | Phase::Looking {
                    flight,
                    before: Before::Enter,
                },
                None,
            ) if is_keyless => flight.grow(text),
            (_, _) => {}
        }
    }

    /// Whether a draft stands in the line, or is about to. While a turn of ours is under way, what
    /// the screen shows there is our own; nobody else can type.
    pub(super) fn has_draft(&self) -> bool {
        let is_ours = self.is_writing() || self.parked.is_some();
        let is_there = self.drafting.is_shown() || self.drafting.is_returning();
        self.drafting.is_typed() || (is_there && !is_ours)
    }

    /// Whether the box holds something beside a text that waited there for its Enter.
    pub(super) fn has_more_than(&self, flight: &Flight) -> bool {
        match self.drafting.field() {
            Field::Holds(text) => flight.was_parked && flight.is_joined_in(text),
            Field::Empty | Field::Unseen => false,
        }
    }

    pub(super) fn way(&self) -> Option<super::drafting::Way> {
        // One at a time: another would take the place of the first.
        let is_free = |way: &super::drafting::Way| !way.is_kept || self.aside.is_none();
        let way = self.drafting.way(&self.manner.harness.draft);
        way.filter(is_free)
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self.phase, Phase::Free)
    }
}
