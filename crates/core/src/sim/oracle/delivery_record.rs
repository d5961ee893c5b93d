//! The record of delivery's inputs and of the actions that it has begun. Kept independently of
//! delivery, so that the oracle can check delivery against it.

use crate::delivery::PausedBy;
use crate::driver::{Input, KeyboardUser};
use crate::harness::{BoxState, Report, Says, Sighting, Turn};
use crate::id::MessageId;
use crate::moment::Moment;
use crate::sim::oracle::api_record::ApiRecord;
use crate::sim::script::{KnownScreen, ProgramProfile};
use crate::sim::world::hook_calls::SIDE_SESSION;
use std::time::Duration;

/// Minimum time between two equal looks before text may be typed.
const STEADY_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct DeliveryRecord {
    pub(crate) profile: Option<ProgramProfile>,
    pub(crate) started_at: Option<Moment>,
    /// Start of the draft that a person's keys have shown.
    pub(crate) typed_draft_since: Option<Moment>,
    /// The last reported state of the input box, and the start of that state.
    pub(crate) input_box: BoxState,
    pub(crate) box_since: Option<Moment>,
    /// Time of the first look with this state and this amount of output.
    first_look: Option<(Moment, u64)>,
    /// Whether the last look showed that the program works.
    pub(crate) screen_shows_work: bool,
    pub(crate) question: Option<(String, Moment)>,
    /// Number of questions so far. A question may have the same words as the one before.
    questions: u64,
    pub(crate) pauses: Vec<(PausedBy, Moment)>,
    /// Whether a person has requested a pause at the end of the turn.
    pub(crate) is_checkpoint_wanted: bool,
    pub(crate) unread_since: Option<Moment>,
    /// The look at the screen that delivery is handling.
    pub(crate) current_look: Option<Sighting>,
    /// Whether the program's hooks last said that it works.
    pub(crate) hook_says_working: bool,
    pub(crate) api: ApiRecord,
    /// Time of the last reported event.
    now: Option<Moment>,
    /// Number of times that the interrupt key was pressed for one message.
    pub(crate) interrupt_keys: u8,
    /// Whether a text waits for its Enter while the keyboard is released.
    pub(crate) is_waiting_for_enter: bool,
    /// The messages of the text that waits for its Enter.
    pub(crate) waiting_messages: Vec<MessageId>,
    /// Whether the keyboard is requested again for a text that waits for its Enter.
    is_resuming: bool,
    /// Whether a draft has ended since a text was last resumed.
    has_cleared: bool,
    /// The number of the question that was open when an answer was begun.
    pub(crate) answered_question: Option<u64>,
    /// Start of the idle period in which the agent was last reminded.
    pub(crate) reminded_in_idle_since: Option<Duration>,
    pub(crate) reminders_typed: u8,
}

impl DeliveryRecord {
    /// Begin the record of a session.
    pub(crate) fn new(profile: ProgramProfile, now: Moment) -> Self {
        Self {
            profile: Some(profile),
            api: ApiRecord::new(profile.has_api),
            started_at: Some(now),
            ..Self::default()
        }
    }

    /// Record an input that delivery is about to handle.
    pub(crate) fn record(&mut self, now: Moment, input: &Input) {
        self.current_look = None;
        self.now = Some(now);
        self.api.record_input(now, input);
        match input {
            Input::KeysTyped { is_draft: true } => {
                self.typed_draft_since = self.typed_draft_since.or(Some(now));
            }
            Input::KeysTyped { is_draft: false } => {
                self.typed_draft_since = None;
                self.has_cleared = true;
            }
            Input::DialogChanged(words) => self.record_question(now, words.as_ref()),
            Input::ScreenChanged(sighting) => self.record_screen(now, sighting),
            Input::Looked { by, sighting } => {
                self.record_screen(now, sighting);
                self.current_look = (*by == KeyboardUser::Turn).then(|| sighting.clone());
            }
            Input::Paused(by) => {
                self.is_checkpoint_wanted &= *by != PausedBy::Checkpoint;
                if self.pauses.iter().all(|(other, _)| other != by) {
                    self.pauses.push((*by, now));
                }
            }
            Input::Unpaused(by) => {
                self.is_checkpoint_wanted &= *by != PausedBy::Checkpoint;
                self.pauses.retain(|(other, _)| other != by);
            }
            Input::InputChecked { is_unread: true } => {
                self.unread_since = self.unread_since.or(Some(now));
            }
            Input::InputChecked { is_unread: false } => self.unread_since = None,
            // A person has typed. The keys are reported later.
            Input::KeyboardRefused(KeyboardUser::Turn) if self.is_resuming => {
                self.is_resuming = false;
                self.typed_draft_since = self
                    .typed_draft_since
                    .or((!self.has_cleared).then_some(now));
                self.is_waiting_for_enter = true;
            }
            Input::KeysDropped => {
                self.interrupt_keys = self.interrupt_keys.saturating_sub(1);
            }
            Input::KeyboardLeased(KeyboardUser::Turn) => self.is_resuming = false,
            Input::HookCalled { report, .. } => self.record_hook(report),
            _ => {}
        }
    }

    fn record_screen(&mut self, now: Moment, sighting: &Sighting) {
        self.record_question(now, sighting.dialog.as_ref());
        self.screen_shows_work = shows_work(sighting);
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

    /// Record the program's own hook calls, even late ones.
    fn record_hook(&mut self, report: &Report) {
        if report.session.as_deref() != Some(SIDE_SESSION) {
            self.hook_says_working = match report.turn {
                Some(Turn::Submitted | Turn::Tool | Turn::Working | Turn::Blocked) => true,
                Some(Turn::Idle) => false,
                None => self.hook_says_working,
            };
        }
    }

    fn record_question(&mut self, now: Moment, words: Option<&String>) {
        let known = self.question.as_ref().map(|(words, _)| words);
        if known != words {
            self.question = words.cloned().map(|words| (words, now));
            self.questions += 1;
        }
    }

    /// Record that delivery resumes the text of these messages, which waited for its Enter.
    pub(crate) fn note_resumed(&mut self, messages: Vec<MessageId>) {
        self.waiting_messages = messages;
        self.is_resuming = true;
        self.is_waiting_for_enter = false;
        self.has_cleared = false;
    }

    /// Return the number of the open question.
    pub(crate) fn question_number(&self) -> Option<u64> {
        self.question.as_ref().map(|_| self.questions)
    }

    /// Whether a pause applies. Interrupts and answers pass a pause that was only requested.
    pub(crate) fn is_paused_for(&self, is_urgent: bool) -> bool {
        self.pauses.iter().any(|(by, _)| match by {
            PausedBy::Viewer | PausedBy::Interactive => true,
            PausedBy::Request | PausedBy::Checkpoint => !is_urgent,
        })
    }

    pub(crate) fn box_holds_text(&self) -> bool {
        matches!(self.input_box, BoxState::Holds(_))
    }

    /// Return the start of the draft, if there is one.
    pub(crate) fn draft_since(&self) -> Option<Moment> {
        let shown = self.box_since.filter(|_| self.box_holds_text());
        self.typed_draft_since.or(shown)
    }

    /// Whether the screen shows questions.
    pub(crate) fn shows_questions(&self) -> bool {
        self.known_screen() != KnownScreen::Nothing
    }

    fn known_screen(&self) -> KnownScreen {
        self.profile
            .map_or(KnownScreen::Nothing, |profile| profile.screen)
    }

    /// Whether the screen shows the input box.
    pub(crate) fn shows_box(&self) -> bool {
        self.known_screen() == KnownScreen::InputBox
    }

    /// Whether mail is typed only while the program does not work.
    pub(crate) fn holds_during_work(&self) -> bool {
        let types = self
            .profile
            .is_some_and(|profile| profile.types_while_working);
        self.shows_box() && !types
    }

    /// Whether the work that a look shows forbids typing.
    fn is_forbidden_by_work(&self, seen: &Sighting) -> bool {
        self.holds_during_work() && shows_work(seen)
    }

    /// Whether the box may hold a prompt that the program restored after an interrupt.
    pub(crate) fn may_be_restored_input(&self) -> bool {
        let puts_back = self.profile.is_some_and(|profile| profile.restores_input);
        self.typed_draft_since.is_none() && self.box_holds_text() && self.shows_box() && puts_back
    }

    /// Whether the current look shows an empty box, like an earlier look at least
    /// [`STEADY_INTERVAL`] ago, with no output in between.
    pub(crate) fn is_recognised_empty(&self) -> bool {
        let is_empty =
            |seen: &Sighting| seen.input_box == BoxState::Empty && !self.is_forbidden_by_work(seen);
        let is_looked_at = self.current_look.as_ref().is_some_and(is_empty);
        let since = self.first_look.map(|(at, _)| at.mono + STEADY_INTERVAL);
        let now = self.now.map(|now| now.mono);
        is_looked_at && since.is_some_and(|since| now.is_some_and(|now| since <= now))
    }

    /// Whether the box was empty at the last look and at an earlier one at least
    /// [`STEADY_INTERVAL`] ago, with no output in between.
    pub(crate) fn is_steadily_empty(&self, now: Moment) -> bool {
        let since = self.first_look.map(|(at, _)| at.mono + STEADY_INTERVAL);
        let is_steady = since.is_some_and(|since| since <= now.mono);
        let is_held = self.holds_during_work() && self.screen_shows_work;
        self.input_box == BoxState::Empty && !is_held && is_steady
    }

    /// Whether the current look shows this text in the box, and nothing else.
    pub(crate) fn is_recognised_with(&self, text: &str) -> bool {
        self.current_look
            .as_ref()
            .is_some_and(|seen| holds(&seen.input_box, text) && !self.is_forbidden_by_work(seen))
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
