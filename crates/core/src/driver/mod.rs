//! The driver of one session. It decides the order in which a session reads the journal, commits,
//! leases the keyboard, types, looks at the screen, answers hooks and reads transcripts.
//!
//! It has no clock, files or tasks. [`SessionDriver::handle`] takes an input,
//! [`SessionDriver::poll_action`] returns the next action, and [`SessionDriver::next_timeout`]
//! returns the time at which it must be polled again. The session performs the actions; the simulation
//! performs them against a simulated world.

mod action;
mod answer;
mod asks;
mod commits;
mod decision_lines;
mod due;
mod end;
mod freshness;
mod input;
mod input_check;
mod observer;
#[cfg(test)]
mod tests;
mod transcripts;

pub use crate::delivery::{NudgeOutcome, NudgeRequest, RequestToken, TOO_LATE};
pub use action::{
    Action, CommitId, HookCall, HookMail, JournalOperation, KeyboardUser, MailView, RunIdentity,
    TurnContent, TurnMessage,
};
pub use answer::AnswerRequest;
pub use decision_lines::{DecisionLines, HoldLog, LogLevel, LogLine};
pub use input::Input;
pub use observer::Observer;

use crate::activity::Activity;
use crate::delivery::{Delivery, DeliveryConfig, PausedBy};
use crate::harness::{Report, Sighting};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::session::Conversation;
use crate::turn::InputMode;
use answer::AnswerChecks;
use asks::Asks;
use commits::Commits;
use end::{EarlierOffers, Phase};
use freshness::Freshness;
use input_check::InputCheck;
use std::collections::VecDeque;
use std::time::Duration;
use transcripts::TranscriptSchedule;

/// Parameters of a new driver.
#[derive(Debug, Clone)]
pub struct DriverConfig {
    pub delivery: DeliveryConfig,
    pub run: RunIdentity,
    /// The conversation that the program was started to resume.
    pub resumed: Option<Conversation>,
}

#[derive(Debug)]
pub struct SessionDriver {
    delivery: Delivery,
    run: RunIdentity,
    earlier_offers: EarlierOffers,
    /// The conversation that the program is in. It is recorded, or its commit is open.
    conversation: Option<Conversation>,
    mail: MailView,
    freshness: Freshness,
    commits: Commits,
    transcripts: TranscriptSchedule,
    input_check: InputCheck,
    /// The newest look at the screen.
    screen: Sighting,
    answer_checks: AnswerChecks,
    asks: Asks,
    /// Actions that the session is still to take.
    actions: VecDeque<Action>,
    /// Whether an input has come since the driver last looked for work.
    has_news: bool,
    /// When the driver last looked for work.
    looked_at: Option<Duration>,
    is_checkpoint_requested: bool,
    phase: Phase,
}

impl SessionDriver {
    /// Create the driver of a program that was started just now.
    pub fn new(config: DriverConfig, now: Moment) -> Self {
        let mut driver = Self {
            delivery: Delivery::new(config.delivery, now),
            run: config.run,
            earlier_offers: EarlierOffers::new(config.resumed),
            conversation: None,
            mail: MailView::default(),
            freshness: Freshness::new(),
            commits: Commits::default(),
            transcripts: TranscriptSchedule::default(),
            input_check: InputCheck::new(),
            screen: Sighting::default(),
            answer_checks: AnswerChecks::default(),
            asks: Asks::default(),
            actions: VecDeque::new(),
            has_news: true,
            looked_at: None,
            is_checkpoint_requested: false,
            phase: Phase::Running,
        };
        driver.record(now, JournalOperation::Expire);
        driver
    }

    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Return the mail as of the last read.
    pub fn mail(&self) -> &MailView {
        &self.mail
    }

    /// Return why an offered message cannot be proven to be accepted, if there is a reason.
    pub fn lacks_proof(&self, mail: &MessageState) -> Option<String> {
        let trouble = self.transcripts.trouble.as_deref();
        let trouble = trouble.map(|why| format!("; no transcript: {why}"));
        self.delivery.lacks_proof(mail).or(trouble)
    }

    /// Whether the journal is being read, or about to be, or may have changed since the last read.
    pub fn is_about_to_read(&self) -> bool {
        self.freshness.is_about_to_read()
    }

    /// Whether an offer or a receipt of this message is not recorded yet.
    pub fn is_committing(&self, id: MessageId) -> bool {
        self.commits.has(id)
    }

    /// Whether a message is on its way to a hook or the API.
    pub fn is_offered_directly(&self, id: MessageId) -> bool {
        self.delivery.is_offered_directly(id)
    }

    /// Whether a turn is being offered: the driver waits for the keyboard, or for the journal.
    pub fn is_offering(&self) -> bool {
        self.delivery.is_offering()
    }

    /// Handle an input that came at `now`.
    pub fn handle(&mut self, now: Moment, input: Input, observer: &mut impl Observer) {
        self.has_news = true;
        let input = self.with_newest_screen(input);
        match input {
            Input::PeriodicCheck => self.check_periodically(now),
            Input::JournalChanged { head } => self.freshness.notice(head),
            Input::MailRead(view) => {
                self.freshness.finish_read(Some(view.head));
                self.mail = view;
            }
            Input::MailUnreadable => self.freshness.finish_read(None),
            Input::Committed {
                commit,
                head,
                has_more,
                ..
            } => {
                self.freshness.commit(head);
                if self.committed(now, commit, has_more) {
                    self.deliver(now, &input, observer);
                }
            }
            Input::NotCommitted {
                commit,
                ref why,
                is_final,
            } => {
                if self.not_committed(now, commit, why, is_final, observer) {
                    self.deliver(now, &input, observer);
                }
            }
            Input::InputChecked { is_unread } => self.input_check.finish(is_unread),
            Input::PasteMode(is_requested) => {
                let is_used = self.delivery.paste().applies(is_requested);
                if is_used != (self.delivery.input() == InputMode::Pasted) {
                    self.deliver(now, &input, observer);
                }
            }
            Input::HookCalled { ref report, .. } => {
                self.hook_called(now, &input, report, observer);
            }
            Input::TranscriptsRead { .. } => self.transcripts_read(now, &input, observer),
            Input::AnswerRequested(request) => self.answer_requested(now, request, observer),
            Input::CheckpointRequested => {
                self.is_checkpoint_requested = true;
                self.reach_checkpoint(now, observer);
            }
            Input::Exited(_) => self.exited(now, &input, observer),
            Input::ProcessesEnded => self.processes_ended(now),
            _ => self.deliver(now, &input, observer),
        }
    }

    /// Pass an input to delivery, and request the actions that follow.
    fn deliver(&mut self, now: Moment, input: &Input, observer: &mut impl Observer) {
        match input {
            Input::KeysTyped { is_draft } => {
                self.asks.note_keys(now);
                self.input_check.note_keys(now.mono, *is_draft);
            }
            // This hook may be the last one.
            Input::HookPassedOn(_) => self.transcripts.read_soon(now.mono),
            Input::Unpaused(PausedBy::Checkpoint) => self.is_checkpoint_requested = false,
            _ => {}
        }
        observer.on_input(now, input);
        let actions = self.delivery.on(now, input);
        self.request(now, actions, observer);
        observer.after_input();
        // Before anything is offered to the agent that has become idle.
        self.reach_checkpoint(now, observer);
    }

    /// Queue the actions that delivery requests.
    fn request(&mut self, now: Moment, actions: Vec<Action>, observer: &mut impl Observer) {
        for action in actions {
            observer.on_action(now, &self.delivery, &action);
            self.push(now, action);
        }
    }

    fn check_periodically(&mut self, now: Moment) {
        self.freshness.set_read_due();
        let check = JournalOperation::CloseKilledHooks;
        if !self.commits.has_operation(&check) {
            self.record(now, check);
        }
    }

    fn hook_called(
        &mut self,
        now: Moment,
        input: &Input,
        report: &Report,
        observer: &mut impl Observer,
    ) {
        self.deliver(now, input, observer);
        // Mail that was read before the last offer does not show which messages are repeats.
        let pending = match self.freshness.is_fresh() {
            true => &self.mail.pending[..],
            false => &[],
        };
        let actions = self.delivery.answer_hook(now, pending);
        self.request(now, actions, observer);
        self.follow_conversation(now, report);
    }

    /// Pause at a requested checkpoint, if the turn has ended.
    fn reach_checkpoint(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_idle = self.delivery.activity().activity == Activity::Idle;
        if self.is_checkpoint_requested && is_idle && !self.delivery.is_writing() {
            self.is_checkpoint_requested = false;
            self.deliver(now, &Input::Paused(PausedBy::Checkpoint), observer);
            self.actions.push_back(Action::ReportCheckpoint);
        }
    }

    /// Replace a look at the screen that has arrived after a newer one.
    fn with_newest_screen(&mut self, mut input: Input) -> Input {
        if let Input::ScreenChanged(sighting) | Input::Looked { sighting, .. } = &mut input {
            if sighting.output >= self.screen.output {
                self.screen = sighting.clone();
            }
            sighting.clone_from(&self.screen);
        }
        input
    }

    /// Return the next action at `now`, if any. Call this until it returns `None`, after each input
    /// and at [`Self::next_timeout`].
    pub fn poll_action(&mut self, now: Moment, observer: &mut impl Observer) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            let is_due = self.next_timeout(now).is_some_and(|at| at <= now.mono);
            let is_late = is_due && self.looked_at != Some(now.mono);
            if !std::mem::take(&mut self.has_news) && !is_late {
                return None;
            }
            self.looked_at = Some(now.mono);
            self.look_for_work(now, observer);
        }
    }

    /// Return the monotonic time at which [`Self::poll_action`] must be called again.
    pub fn next_timeout(&self, now: Moment) -> Option<Duration> {
        if !self.phase.is_running() {
            let last = [
                self.phase.next_timeout(),
                self.commits.next_retry(),
                self.delivery.next_wakeup(),
            ];
            return last.into_iter().flatten().min();
        }
        let change = self.mail.next_change.map(|at| {
            let wait = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
            now.mono + wait
        });
        [
            self.delivery.next_wakeup(),
            change,
            self.freshness.next_read(),
            self.next_input_check(now),
            self.next_keys_check(now),
            self.commits.next_retry(),
            self.transcripts.next_read(),
            self.answer_checks.next_timeout(),
            self.next_ask(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
