//! What delivery was told, and what it has begun since. It is kept independently of delivery, to
//! judge delivery by.

use crate::delivery::{DeliveryEvent, PausedBy};
use crate::harness::{BoxState, Report, Says, Sighting, Turn};
use crate::id::MessageId;
use crate::moment::Moment;
use crate::sim::script::{Nature, Sight};
use crate::sim::world::hook_calls::SIDE;
use std::time::Duration;

/// How far apart two equal looks must be before something is typed.
const STEADY_AFTER: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) nature: Option<Nature>,
    pub(crate) begun: Option<Moment>,
    /// Since when the keys tell of a draft.
    pub(crate) draft: Option<Moment>,
    /// The input box, as last shown, and since when.
    pub(crate) input_box: BoxState,
    pub(crate) box_since: Option<Moment>,
    /// The first look that showed the box so, with so much output before it.
    first_look: Option<(Moment, u64)>,
    /// The last look showed that the program works.
    pub(crate) shows_work: bool,
    pub(crate) question: Option<(String, Moment)>,
    /// How many questions there were: one in the same words is another.
    asked: u64,
    pub(crate) pauses: Vec<(PausedBy, Moment)>,
    /// A person wants a pause at the end of the turn.
    pub(crate) is_checkpoint_wanted: bool,
    pub(crate) unread: Option<Moment>,
    /// What a look at the screen shows that delivery hears of in this moment.
    pub(crate) looked: Option<Sighting>,
    /// A hook of the program's says that it works.
    pub(crate) is_said_to_work: bool,
    /// When delivery was told something last.
    now: Option<Moment>,
    /// How often the interrupt key was pressed for one message.
    pub(crate) keys: u8,
    /// A text waits for its Enter, with the keyboard released.
    pub(crate) is_waiting_for_enter: bool,
    /// The messages of that text.
    pub(crate) waiting: Vec<MessageId>,
    /// The keyboard is asked for again, for a text that waits for its Enter.
    resumes: bool,
    /// The keys have told of a draft's end since then.
    has_cleared: bool,
    /// The question that stood open when an answer was begun with, by its number.
    pub(crate) answers: Option<u64>,
    /// The beginning of the rest in which the agent was reminded last.
    pub(crate) reminded: Option<Duration>,
    pub(crate) reminders: u8,
}

impl Told {
    /// A session begins, with nothing known.
    pub(crate) fn new(nature: Nature, now: Moment) -> Self {
        Self {
            nature: Some(nature),
            begun: Some(now),
            ..Self::default()
        }
    }

    /// Delivery is about to be told this.
    pub(crate) fn tell(&mut self, now: Moment, event: &DeliveryEvent) {
        self.looked = None;
        self.now = Some(now);
        match event {
            DeliveryEvent::DraftTyped => self.draft = self.draft.or(Some(now)),
            DeliveryEvent::DraftEnded => {
                self.draft = None;
                self.has_cleared = true;
            }
            DeliveryEvent::DialogChanged(what) => self.ask(now, what.as_ref()),
            DeliveryEvent::ScreenChanged(sighting) => self.see(now, sighting),
            DeliveryEvent::Looked(sighting) => {
                self.see(now, sighting);
                self.looked = Some(sighting.clone());
            }
            DeliveryEvent::Paused(by) => {
                self.is_checkpoint_wanted &= *by != PausedBy::Checkpoint;
                if self.pauses.iter().all(|(other, _)| other != by) {
                    self.pauses.push((*by, now));
                }
            }
            DeliveryEvent::Unpaused(by) => {
                self.is_checkpoint_wanted &= *by != PausedBy::Checkpoint;
                self.pauses.retain(|(other, _)| other != by);
            }
            DeliveryEvent::UnreadInput(true) => self.unread = self.unread.or(Some(now)),
            DeliveryEvent::UnreadInput(false) => self.unread = None,
            // Somebody typed; the keys tell of it later.
            DeliveryEvent::KeyboardRefused => {
                if std::mem::take(&mut self.resumes) {
                    self.draft = self.draft.or((!self.has_cleared).then_some(now));
                    self.is_waiting_for_enter = true;
                }
            }
            DeliveryEvent::KeysDropped => self.keys = self.keys.saturating_sub(1),
            DeliveryEvent::Resumed => self.resumes = false,
            DeliveryEvent::HookCalled(report) => self.hear(report),
            DeliveryEvent::Tick
            | DeliveryEvent::Output
            | DeliveryEvent::Exited(_)
            | DeliveryEvent::PasteMode(_)
            | DeliveryEvent::Recorded(_)
            | DeliveryEvent::NotRecorded(_)
            | DeliveryEvent::Wrote(_)
            | DeliveryEvent::Entered
            | DeliveryEvent::DirectRecorded { .. }
            | DeliveryEvent::DirectRefused { .. }
            | DeliveryEvent::ContinueFailed { .. }
            | DeliveryEvent::DirectConfirmed(_)
            | DeliveryEvent::DirectUnconfirmed(_)
            | DeliveryEvent::TranscriptRead(_)
            | DeliveryEvent::WriteFailed(_)
            | DeliveryEvent::LoopChanged(_) => {}
        }
    }

    fn see(&mut self, now: Moment, sighting: &Sighting) {
        self.ask(now, sighting.dialog.as_ref());
        self.shows_work = shows_work(sighting);
        let is_same = self.input_box == sighting.input_box;
        if !is_same {
            self.input_box = sighting.input_box.clone();
            self.box_since = Some(now);
        }
        let is_quiet = self
            .first_look
            .is_some_and(|(_, output)| output == sighting.output);
        if !is_same || !is_quiet {
            self.first_look = Some((now, sighting.output));
        }
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

    /// Record that delivery resumes a text that waited for its Enter.
    pub(crate) fn resume(&mut self) {
        self.resumes = true;
        self.is_waiting_for_enter = false;
        self.has_cleared = false;
    }

    /// The number of the question that stands open.
    pub(crate) fn asks(&self) -> Option<u64> {
        self.question.as_ref().map(|_| self.asked)
    }

    /// Whether anybody holds back what cannot wait: interrupts and answers pass a pause that was
    /// only asked for.
    pub(crate) fn is_held(&self, is_urgent: bool) -> bool {
        self.pauses.iter().any(|(by, _)| match by {
            PausedBy::Viewer | PausedBy::Interactive => true,
            PausedBy::Request | PausedBy::Checkpoint => !is_urgent,
        })
    }

    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.input_box, BoxState::Holds(_))
    }

    /// Since when there is a draft.
    pub(crate) fn draft_since(&self) -> Option<Moment> {
        let shown = self.box_since.filter(|_| self.is_shown());
        self.draft.or(shown)
    }

    /// Whether the screen shows its questions.
    pub(crate) fn is_seen(&self) -> bool {
        self.sight() != Sight::Nothing
    }

    fn sight(&self) -> Sight {
        self.nature.map_or(Sight::Nothing, |nature| nature.sight)
    }

    /// Whether the screen shows the input box.
    pub(crate) fn shows_box(&self) -> bool {
        self.sight() == Sight::Box
    }

    /// Whether the box may hold what an interrupt key made the program put back.
    pub(crate) fn is_put_back(&self) -> bool {
        let puts_back = self.nature.is_some_and(|nature| nature.puts_back);
        self.draft.is_none() && self.is_shown() && self.shows_box() && puts_back
    }

    /// Whether the screen check that delivery now handles shows an empty box, like an earlier check
    /// at least `STEADY_AFTER` ago, with no output in between.
    pub(crate) fn is_recognised_empty(&self) -> bool {
        let is_empty = |seen: &Sighting| seen.input_box == BoxState::Empty && !shows_work(seen);
        let is_looked_at = self.looked.as_ref().is_some_and(is_empty);
        let since = self.first_look.map(|(at, _)| at.mono + STEADY_AFTER);
        let now = self.now.map(|now| now.mono);
        is_looked_at && since.is_some_and(|since| now.is_some_and(|now| since <= now))
    }

    /// Whether the box was empty at the last look, and at an earlier one at least `STEADY_AFTER` ago,
    /// with no output in between.
    pub(crate) fn is_steadily_empty(&self, now: Moment) -> bool {
        let since = self.first_look.map(|(at, _)| at.mono + STEADY_AFTER);
        let is_steady = since.is_some_and(|since| since <= now.mono);
        self.input_box == BoxState::Empty && !self.shows_work && is_steady
    }

    /// Whether the screen check that delivery now handles shows this text in the box, and nothing
    /// else.
    pub(crate) fn is_recognised_with(&self, text: &str) -> bool {
        self.looked
            .as_ref()
            .is_some_and(|seen| holds(&seen.input_box, text) && !shows_work(seen))
    }
}

/// Whether a look shows that the program works.
fn shows_work(seen: &Sighting) -> bool {
    seen.claims.iter().any(|claim| claim.says == Says::Working)
}

/// Whether a box holds a text and nothing else.
pub(crate) fn holds(input_box: &BoxState, text: &str) -> bool {
    let without_blanks = |text: &str| -> String { text.split_whitespace().collect() };
    match input_box {
        BoxState::Holds(held) => without_blanks(&held.text) == without_blanks(text),
        BoxState::Empty | BoxState::Unrecognised(_) | BoxState::Undescribed => false,
    }
}
