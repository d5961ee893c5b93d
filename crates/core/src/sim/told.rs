//! What the desk was told, by those who saw it, and what it has begun since: kept beside the desk
//! and by other means, to judge it by.

use super::calls::SIDE;
use super::script::{Nature, Sight, Stash};
use crate::delivery::{Event, PausedBy};
use crate::harness::{Field, Report, Sighting, Turn};
use crate::id::MessageId;
use crate::moment::Moment;
use std::time::Duration;

/// How long a program may take to show a draft again.
const COMES_BACK: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) nature: Option<Nature>,
    pub(super) begun: Option<Moment>,
    /// What keys tell.
    pub(super) draft: Option<Moment>,
    /// What stands in the input box, and since when.
    pub(super) field: Field,
    pub(super) field_since: Option<Moment>,
    pub(super) question: Option<(String, Moment)>,
    /// How many questions there were: one in the same words is another.
    asked: u64,
    pub(super) pauses: Vec<(PausedBy, Moment)>,
    pub(super) unread: Option<Moment>,
    /// What a look at the screen shows that the desk hears of in this moment.
    pub(super) looked: Option<Sighting>,
    /// A hook of the program's says that it works.
    pub(super) is_said_to_work: bool,
    /// How often the interrupt key was pressed for one message.
    pub(super) keys: u8,
    /// The keys were pressed that put a draft aside.
    pub(super) is_aside: bool,
    /// They were ever.
    pub(super) has_stash: bool,
    /// Since when one that was put aside should come back, or could.
    back: Option<Moment>,
    /// When the desk was told something last.
    now: Option<Moment>,
    /// A text waits for its Enter, with the keyboard given back.
    pub(super) is_parked: bool,
    /// What stands in it.
    pub(super) parked: Vec<MessageId>,
    /// The keyboard is asked for again; with a text that waits for its Enter, or not.
    resumes: Option<bool>,
    /// Keys have told of a draft's end since.
    has_cleared: bool,
    /// The question that stood open when an answer was begun with, by its number.
    pub(super) answers: Option<u64>,
    /// The beginning of the rest in which the agent was reminded last.
    pub(super) reminded: Option<Duration>,
    pub(super) reminders: u8,
}

impl Told {
    /// A session begins, with nothing known.
    pub(super) fn new(nature: Nature, now: Moment) -> Self {
        Self {
            nature: Some(nature),
            begun: Some(now),
            ..Self::default()
        }
    }

    /// The desk is about to be told this.
    pub(super) fn tell(&mut self, now: Moment, event: &Event) {
        self.looked = None;
        self.now = Some(now);
        match event {
            Event::Draft => self.draft = self.draft.or(Some(now)),
            Event::DraftGone => {
                self.draft = None;
                self.has_cleared = true;
            }
            Event::Dialog(what) => self.ask(now, what.as_ref()),
            Event::Seen(sighting) => self.see(now, sighting),
            Event::Looked(sighting) => {
                self.see(now, sighting);
                self.looked = Some(sighting.clone());
            }
            Event::Paused(by) => {
                if self.pauses.iter().all(|(other, _)| other != by) {
                    self.pauses.push((*by, now));
                }
            }
            Event::Released(by) => self.pauses.retain(|(other, _)| other != by),
            Event::Unread(true) => self.unread = self.unread.or(Some(now)),
            Event::Unread(false) => {
                self.unread = None;
                self.back = self.back.map(|_| now);
            }
            // Somebody typed; the keys tell of it later.
            Event::Barred => {
                if let Some(is_parked) = self.resumes.take() {
                    self.draft = self.draft.or((!self.has_cleared).then_some(now));
                    self.is_parked = is_parked;
                }
            }
            Event::Resumed => self.resumes = None,
            // By a key, or by the program itself once something is submitted.
            Event::Entered | Event::Stroked if self.has_stash => self.comes_back(),
            Event::Entered | Event::Stroked => {}
            Event::Hook(report) => self.hear(report),
            Event::Tick
            | Event::Output
            | Event::Exited(_)
            | Event::Paste(_)
            | Event::Recorded(_)
            | Event::NotRecorded(_)
            | Event::Wrote
            | Event::Unpressed
            | Event::Handed { .. }
            | Event::NotHanded { .. }
            | Event::NotGoneOn { .. }
            | Event::Taken(_)
            | Event::Dropped(_)
            | Event::Transcribed(_)
            | Event::WriteFailed(_)
            | Event::Loop(_) => {}
        }
    }

    fn see(&mut self, now: Moment, sighting: &Sighting) {
        self.ask(now, sighting.dialog.as_ref());
        if self.field != sighting.field {
            self.field = sighting.field.clone();
            self.field_since = Some(now);
            self.back = self.back.filter(|_| !self.is_shown());
        }
    }

    /// A draft is brought back, or a turn for which one was put aside has ended.
    pub(super) fn comes_back(&mut self) {
        self.back = self.now;
    }

    /// Whether a draft may be about to come back.
    pub(super) fn is_coming_back(&self, now: Moment) -> bool {
        let is_soon = |since: Moment| now.mono < since.mono + COMES_BACK;
        self.back.is_some_and(is_soon) || (self.back.is_some() && self.unread.is_some())
    }

    /// Its own hook is believed, however late it comes.
    fn hear(&mut self, report: &Report) {
        if report.session.as_deref() != Some(SIDE) {
            self.is_said_to_work = match report.turn {
                Some(Turn::Submitted | Turn::Tool | Turn::Working | Turn::Blocked) => true,
                Some(Turn::Idle) => false,
                None => self.is_said_to_work,
            };
        }
    }

    fn ask(&mut self, now: Moment, what: Option<&String>) {
        let known = self.question.as_ref().map(|(what, _)| what);
        if known != what {
            self.question = what.cloned().map(|what| (what, now));
            self.asked += 1;
        }
    }

    /// The desk goes on with a text that waited for its Enter, or brings back a draft.
    pub(super) fn resume(&mut self) {
        self.resumes = Some(std::mem::take(&mut self.is_parked));
        self.has_cleared = false;
    }

    /// The number of the question that stands open.
    pub(super) fn asks(&self) -> Option<u64> {
        self.question.as_ref().map(|_| self.asked)
    }

    /// Whether anybody holds back what cannot wait: interrupts and answers pass a pause that was
    /// only asked for.
    pub(super) fn is_held(&self, is_urgent: bool) -> bool {
        self.pauses.iter().any(|(by, _)| match by {
            PausedBy::Viewer | PausedBy::Interactive => true,
            PausedBy::Request | PausedBy::Checkpoint => !is_urgent,
        })
    }

    pub(super) fn is_shown(&self) -> bool {
        matches!(self.field, Field::Holds(_))
    }

    /// Since when there is a draft.
    pub(super) fn draft_since(&self) -> Option<Moment> {
        let shown = self.field_since.filter(|_| self.is_shown());
        self.draft.or(shown)
    }

    /// Whether the screen shows its questions.
    pub(super) fn is_seen(&self) -> bool {
        self.sight() != Sight::Nothing
    }

    fn sight(&self) -> Sight {
        self.nature.map_or(Sight::Nothing, |nature| nature.sight)
    }

    /// Whether what stands in the box may be what an interrupt key put back there.
    pub(super) fn is_put_back(&self) -> bool {
        self.draft.is_none() && self.has_way() && self.nature.is_some_and(|n| n.puts_back)
    }

    /// Whether what stands in the box may be put out of the way, for as long as a turn takes.
    pub(super) fn has_way(&self) -> bool {
        let is_known = |nature: Nature| nature.stash != Stash::Unknown || nature.puts_back;
        self.sight() == Sight::Box && self.is_shown() && self.nature.is_some_and(is_known)
    }
}
