//! A person's draft, put aside for as long as a turn takes, and brought back after it: at once, or
//! as soon as nothing stands in the way. It is never submitted, and one never takes another's place.

use super::submit::Before;
use super::{Desk, Effect, Flight, Phase};
use crate::activity::Activity;
use crate::harness::Field;
use crate::moment::Moment;
use std::time::Duration;

/// How long a program may take to empty its box when the keys for it are pressed.
const EMPTIES: Duration = Duration::from_secs(2);

/// A draft that was put aside.
#[derive(Debug, Clone)]
pub(super) struct Aside {
    pub(super) text: Option<String>,
    restore: Option<Vec<u8>>,
}

impl Desk {
    /// Begins to write what is recorded; first a draft is put aside, where there is one.
    pub(super) fn begin(&mut self, mut flight: Flight) -> Effect {
        let way = self.way().filter(|_| self.has_draft());
        self.drafting.begun();
        let Some(way) = way else {
            return self.write(flight);
        };
        let text = match self.drafting.field() {
            Field::Holds(text) => Some(text.clone()),
            Field::Empty | Field::Unseen => None,
        };
        flight.clears_way = way.is_kept;
        if way.is_kept {
            self.aside = Some(Aside {
                text,
                restore: way.restore,
            });
        }
        self.phase = Phase::Preparing {
            flight,
            until: None,
        };
        Effect::Strokes(way.keys)
    }

    pub(super) fn stroked(&mut self, now: Moment) -> Vec<Effect> {
        if let Phase::Preparing { until, .. } = &mut self.phase {
            *until = Some(now.mono + EMPTIES);
            return self.empty(now);
        }
        if let Phase::Restoring { flight, evidence } = &self.phase {
            let (flight, evidence) = (flight.clone(), evidence.clone());
            self.comes_back(now);
            self.aside = None;
            return self.complete(now, &flight, evidence);
        }
        if let Phase::Returning(_) = self.phase {
            self.comes_back(now);
            self.aside = None;
            self.phase = Phase::Free;
        }
        Vec::new()
    }

    /// Goes on once the box is empty, or should be.
    pub(super) fn empty(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Preparing {
            flight,
            until: Some(until),
        } = &self.phase
        else {
            return Vec::new();
        };
        let is_empty = *self.drafting.field() == Field::Empty;
        if is_empty || self.dialog.is_some() || *until <= now.mono {
            let flight = flight.clone();
            return self.look(flight, Before::Text);
        }
        Vec::new()
    }

    /// Writes, where the box is empty by now.
    pub(super) fn prepared(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        let is_empty = *self.drafting.field() == Field::Empty;
        if is_empty && self.dialog.is_none() {
            return vec![self.write(flight)];
        }
        // What was seen may be from before the keys were read.
        if flight.has_read && self.dialog.is_none() {
            let until = Some(now.mono + EMPTIES);
            self.phase = Phase::Preparing { flight, until };
            return self.empty(now);
        }
        self.phase = Phase::Free;
        let why = if self.dialog.is_some() {
            "a question opened while a draft was put aside"
        } else {
            // Keys that were not read yet will put it aside all the same.
            if self.unread.is_none() {
                self.aside = None;
            }
            self.drafting.stays();
            "the draft could not be put aside"
        };
        flight.withdrawn(why)
    }

    /// What was put aside is on its way back: by keys, or by itself.
    pub(super) fn comes_back(&mut self, now: Moment) {
        let text = self.aside.as_ref().and_then(|aside| aside.text.as_ref());
        self.drafting.returns(now, text);
    }

    /// A text was submitted: where no key brings back what was put aside, the program does now.
    pub(super) fn comes_by_itself(&mut self, now: Moment) {
        if self.aside.is_some() && self.restores().is_none() {
            self.comes_back(now);
            self.aside = None;
        }
    }

    /// The keys that bring back what was put aside.
    pub(super) fn restores(&self) -> Option<Vec<u8>> {
        planted!(DraftKeptAside => return None);
        self.aside.as_ref()?.restore.clone()
    }

    /// Whether a draft can be brought back that stayed aside when its turn was over: where a
    /// question stood in the way, or the text did not leave the box.
    pub(super) fn can_fetch(&self) -> bool {
        let is_clear = self.dialog.is_none() && !self.drafting.is_typed() && self.unread.is_none();
        let is_empty = *self.drafting.field() == Field::Empty;
        let is_running = match self.activity().activity {
            Activity::Idle | Activity::Working => true,
            Activity::Starting | Activity::Blocked(_) | Activity::Exited => false,
        };
        let is_ours = self.is_free() && self.parked.is_none();
        is_ours && is_running && is_clear && is_empty && self.restores().is_some()
    }

    pub(super) fn fetch(&mut self, now: Moment) -> Vec<Effect> {
        self.phase = Phase::Fetching(now);
        self.has_cleared = false;
        vec![Effect::Resume]
    }

    /// Whether it matters that the program has read all that was typed: if not, keys that seem to
    /// have no effect may have it yet.
    pub fn awaits_reading(&self) -> bool {
        match &self.phase {
            Phase::Preparing { .. }
            | Phase::Confirming { .. }
            | Phase::Looking {
                before: Before::Text | Before::Retry,
                ..
            } => true,
            Phase::Written { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Enter,
            } => flight.answers.is_some(),
            // What was put aside comes back once it has.
            Phase::Free => {
                let has_aside = self.unread.is_some() && self.restores().is_some();
                has_aside || self.drafting.is_returning()
            }
            Phase::Breaking { .. }
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Looking {
                before: Before::Key(_),
                ..
            }
            | Phase::Resuming(_)
            | Phase::Entering(_)
            | Phase::Restoring { .. }
            | Phase::Fetching(_)
            | Phase::Returning(_)
            | Phase::Resting { .. } => false,
        }
    }
}
