//! What stands in the program's line that is none of ours: as far as a person's keys tell, and as
//! far as the screen shows it. Either is reason enough to leave it alone.

use crate::harness::{Drafts, Field};
use crate::moment::Moment;
use std::time::Duration;

/// How long a program may take to show a draft again, once it has read the keys for it.
const COMES_BACK: Duration = Duration::from_secs(2);
/// How long it is waited for in all: one that reads nothing must be interrupted some time.
const AT_MOST: Duration = Duration::from_secs(10);

/// A draft that was put aside and is on its way back.
#[derive(Debug, Clone, Copy)]
struct Returning {
    since: Moment,
    /// Until when it is waited for, if the program has read the keys by then.
    until: Duration,
}

impl Returning {
    fn ends_at(self, is_read: bool) -> Duration {
        if is_read {
            self.until
        } else {
            self.since.mono + AT_MOST
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Typing {
    since: Moment,
    last: Moment,
    /// Every key came while a question stood open.
    to_question: bool,
}

/// Keys that empty the box, and those that fill it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) keys: Vec<u8>,
    pub(super) restore: Option<Vec<u8>>,
    /// Whether what stood there comes back.
    pub(super) is_kept: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Drafting {
    keys: Option<Typing>,
    field: Field,
    /// Whether the box was ever seen to hold something: then an empty one is empty.
    has_held: bool,
    changed: Option<Moment>,
    /// Left alone for long enough to be put aside.
    rests: bool,
    /// The keys that should have emptied the box did not.
    stuck: bool,
    /// When the box was last in sight it was empty, and nobody has typed since.
    was_empty: bool,
    /// An interrupt key was pressed on an empty box: what fills it is put back by the program.
    put_back: bool,
    /// What was put aside and is on its way back.
    returning: Option<Returning>,
    /// What we wrote and no Enter has submitted.
    pub(super) left: Option<String>,
}

impl Drafting {
    pub(super) fn typed(&mut self, now: Moment, is_asked: bool) {
        let before = self.keys;
        self.keys = Some(Typing {
            since: before.map_or(now, |typing| typing.since),
            last: now,
            to_question: is_asked && before.is_none_or(|typing| typing.to_question),
        });
        self.rests = false;
        self.stuck = false;
        self.was_empty = false;
        self.put_back = false;
    }

    pub(super) fn gone(&mut self) {
        self.keys = None;
    }

    pub(super) fn see(&mut self, now: Moment, field: Field) {
        if field == self.field {
            return;
        }
        if let Field::Holds(_) = field {
            self.returning = None;
        }
        if field == Field::Empty && matches!(self.field, Field::Holds(_)) {
            self.put_back = false;
        }
        let is_left = matches!((&field, &self.left), (Field::Holds(a), Some(b)) if a == b);
        if !is_left && field != Field::Unseen {
            self.left = None;
        }
        self.has_held |= matches!(field, Field::Holds(_));
        self.was_empty = match field {
            // Else it may have been seen before the program has read the keys.
            Field::Empty => self.keys.is_none() && self.returning.is_none(),
            Field::Holds(_) => false,
            Field::Unseen => self.was_empty,
        };
        self.field = field;
        self.changed = Some(now);
        self.rests = false;
        self.stuck = false;
    }

    pub(super) fn field(&self) -> &Field {
        &self.field
    }

    /// Whether an empty box shows that the keys are no draft. A program that never showed what is
    /// typed may hold it all the same.
    pub(super) fn shows_keys(&self) -> bool {
        self.has_held || self.keys.is_some_and(|typing| typing.to_question)
    }

    pub(super) fn is_typed(&self) -> bool {
        self.keys.is_some()
    }

    pub(super) fn is_shown(&self) -> bool {
        matches!(self.field, Field::Holds(_))
    }

    /// Since when there is a draft.
    pub(super) fn since(&self) -> Option<Moment> {
        let typed = self.keys.map(|typing| typing.since);
        let shown = self.changed.filter(|_| self.is_shown());
        let returning = self.returning.map(|returning| returning.since);
        typed.or(shown).or(returning)
    }

    pub(super) fn interrupted(&mut self) {
        self.put_back = self.keys.is_none() && self.was_empty;
    }

    /// A text of ours goes in: what fills the box after that is not put back.
    pub(super) fn begun(&mut self) {
        self.put_back = false;
    }

    /// What was put aside comes back into the box: it is a person's, whatever key was pressed
    /// before or is pressed until it shows.
    pub(super) fn returns(&mut self, now: Moment, text: Option<&String>) {
        self.was_empty = false;
        self.put_back = false;
        let is_back = matches!((&self.field, text), (Field::Holds(a), Some(b)) if a == b);
        self.returning = (!is_back).then_some(Returning {
            since: now,
            until: now.mono + COMES_BACK,
        });
    }

    /// Whether what was put aside may still come into the box.
    pub(super) fn is_returning(&self) -> bool {
        self.returning.is_some()
    }

    /// The program has read all that was typed: only now it can bring something back.
    pub(super) fn is_read(&mut self, now: Moment) {
        if let Some(returning) = &mut self.returning {
            let at_most = returning.since.mono + AT_MOST;
            returning.until = at_most.min(now.mono + COMES_BACK);
        }
    }

    pub(super) fn stays(&mut self) {
        self.stuck = true;
    }

    fn rests_at(&self, drafts: &Drafts) -> Option<Duration> {
        let typed = self.keys.map(|typing| typing.last);
        let last = typed.into_iter().chain(self.changed).map(|m| m.mono).max();
        let is_wanted = self.is_shown() && drafts.stash.is_some() && !self.rests;
        last.filter(|_| is_wanted)
            .map(|last| last + drafts.stash_after.get())
    }

    /// Time has passed; whether the program has read all that was typed by then.
    pub(super) fn tick(&mut self, now: Moment, drafts: &Drafts, is_read: bool) {
        let is_awaited = |returning: &Returning| now.mono < returning.ends_at(is_read);
        self.returning = self.returning.filter(is_awaited);
        if self.rests_at(drafts).is_some_and(|at| at <= now.mono) {
            self.rests = true;
        }
    }

    pub(super) fn next_wakeup(&self, drafts: &Drafts, is_read: bool) -> Option<Duration> {
        let returning = self.returning.map(|returning| returning.ends_at(is_read));
        returning.into_iter().chain(self.rests_at(drafts)).min()
    }

    /// How the box can be emptied now. Only where the screen shows what stands in it, so that it
    /// can be seen whether the keys worked.
    pub(super) fn way(&self, drafts: &Drafts) -> Option<Way> {
        if !self.is_shown() || self.stuck || self.left.is_some() {
            return None;
        }
        if let (Some(clear), true, None) = (&drafts.clear, self.put_back, self.keys) {
            return Some(Way {
                keys: clear.bytes().to_vec(),
                restore: None,
                is_kept: false,
            });
        }
        let stash = drafts.stash.as_ref().filter(|_| self.rests)?;
        Some(Way {
            keys: stash.bytes().to_vec(),
            restore: drafts.restore.as_ref().map(|keys| keys.bytes().to_vec()),
            is_kept: true,
        })
    }
}
