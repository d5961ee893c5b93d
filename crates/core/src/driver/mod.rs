//! The driver of one session. It decides the order in which a session reads the journal, commits,
//! leases the keyboard, types, looks at the screen, answers hooks and reads transcripts.
//!
//! It has no clock, files or tasks. [`SessionDriver::handle`] takes an input,
//! [`SessionDriver::poll_action`] returns the next action, and [`SessionDriver::next_timeout`]
//! returns the time at which it must be polled again. The session performs the actions; the simulation
//! performs them against a simulated world.

mod action;
mod answer;
mod decision_lines;
mod direct;
mod due;
mod effects;
mod end;
mod input;
mod journal;
mod observer;
mod terminal;
#[cfg(test)]
mod tests;
mod transcripts;

pub use action::{
    Action, CommitId, HookCall, HookMail, JournalOperation, KeyboardUser, MailView, RunIdentity,
    TurnContent, TurnMessage,
};
pub use decision_lines::{DecisionLines, HoldLog, LogLevel, LogLine};
pub use input::Input;
pub use observer::Observer;
pub use terminal::nudge::{NudgeOutcome, NudgeRequest, RequestToken, TOO_LATE};

use crate::activity::Activity;
use crate::delivery::{Delivery, DeliveryConfig, DeliveryEvent, PausedBy};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::session::Conversation;
use crate::turn::InputMode;
use answer::AnswerChecks;
use direct::DirectDeliveries;
use effects::pick;
use end::{EarlierOffers, Phase};
use journal::commits::{CommitPurpose, Commits};
use journal::freshness::Freshness;
use std::collections::VecDeque;
use std::time::Duration;
use terminal::input_check::InputCheck;
use terminal::keyboard::Keyboard;
use terminal::nudge::Nudges;
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
    keyboard: Keyboard,
    direct_deliveries: DirectDeliveries,
    transcripts: TranscriptSchedule,
    input_check: InputCheck,
    /// The newest look at the screen.
    screen: Sighting,
    nudges: Nudges,
    answer_checks: AnswerChecks,
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
            keyboard: Keyboard::default(),
            direct_deliveries: DirectDeliveries::default(),
            transcripts: TranscriptSchedule::default(),
            input_check: InputCheck::new(),
            screen: Sighting::default(),
            nudges: Nudges::default(),
            answer_checks: AnswerChecks::default(),
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

    /// Whether every commit has ended.
    pub fn has_committed_all(&self) -> bool {
        self.commits.is_empty()
    }

    /// Whether an offer or a receipt of this message is not recorded yet.
    pub fn is_committing(&self, id: MessageId) -> bool {
        self.commits.has(id)
    }

    /// Whether a message is on its way to a hook or the API.
    pub fn is_offered_directly(&self, id: MessageId) -> bool {
        self.direct_deliveries.has(id)
    }

    /// Whether a turn is being offered: the driver waits for the keyboard, or for the journal.
    pub fn is_offering(&self) -> bool {
        self.keyboard.is_offering()
    }

    /// Handle an input that came at `now`.
    pub fn handle(&mut self, now: Moment, input: Input, observer: &mut impl Observer) {
        self.has_news = true;
        match input {
            Input::PeriodicCheck => {
                self.freshness.set_read_due();
                if !self
                    .commits
                    .has_operation(&JournalOperation::CloseKilledHooks)
                {
                    self.commit(JournalOperation::CloseKilledHooks, CommitPurpose::Check);
                }
            }
            Input::JournalChanged { head } => self.freshness.notice(head),
            Input::MailRead(view) => {
                self.freshness.finish_read(Some(view.head));
                self.mail = view;
            }
            Input::MailUnreadable => self.freshness.finish_read(None),
            Input::Committed {
                commit,
                ids,
                head,
                has_more,
            } => {
                self.freshness.commit(head);
                self.committed(now, commit, ids, has_more, observer);
            }
            Input::NotCommitted {
                commit,
                why,
                is_final,
            } => self.not_committed(now, commit, &why, is_final, observer),
            Input::KeyboardLeased(KeyboardUser::Turn) => self.keyboard_leased(now, observer),
            Input::KeyboardLeased(KeyboardUser::Nudge) => self.nudge_leased(now, observer),
            Input::KeyboardRefused(KeyboardUser::Turn) => {
                self.keyboard.refuse();
                self.notify_delivery(now, DeliveryEvent::KeyboardRefused, observer);
            }
            Input::KeyboardRefused(KeyboardUser::Nudge) => self.nudge_refused(observer),
            Input::KeyboardGone(KeyboardUser::Turn) => {
                let event = self.keyboard_gone();
                self.notify_delivery(now, event, observer);
            }
            Input::KeyboardGone(KeyboardUser::Nudge) => self.nudge_terminal_gone(observer),
            Input::Typed(text) => self.finish_typing(now, DeliveryEvent::Wrote(text), observer),
            Input::LineTyped => self.nudge_typed(now),
            Input::EnterPressed(KeyboardUser::Turn) => {
                self.finish_typing(now, DeliveryEvent::Entered, observer);
            }
            Input::EnterPressed(KeyboardUser::Nudge) => self.nudge_entered(observer),
            Input::TerminalFailed { by, why } => match by {
                KeyboardUser::Turn => {
                    self.finish_typing(now, DeliveryEvent::WriteFailed(why), observer);
                }
                KeyboardUser::Nudge => self.nudge_failed(observer),
            },
            Input::KeysDropped => self.notify_delivery(now, DeliveryEvent::KeysDropped, observer),
            Input::Looked { by, sighting } => {
                let sighting = self.newest_screen(sighting);
                match by {
                    KeyboardUser::Turn => {
                        self.notify_delivery(now, DeliveryEvent::Looked(sighting), observer);
                    }
                    KeyboardUser::Nudge => self.nudge_looked(now, sighting, observer),
                }
            }
            Input::InputChecked { is_unread } => self.input_check.finish(is_unread),
            Input::ScreenChanged(sighting) => {
                let sighting = self.newest_screen(sighting);
                self.notify_delivery(now, DeliveryEvent::ScreenChanged(sighting), observer);
            }
            Input::DialogChanged(what) => {
                self.notify_delivery(now, DeliveryEvent::DialogChanged(what), observer);
            }
            Input::OutputSeen => self.notify_delivery(now, DeliveryEvent::Output, observer),
            Input::KeysTyped { is_draft } => {
                self.input_check.note_keys(now.mono, is_draft);
                let event = match is_draft {
                    true => DeliveryEvent::DraftTyped,
                    false => DeliveryEvent::DraftEnded,
                };
                self.notify_delivery(now, event, observer);
            }
            Input::PasteMode(is_requested) => {
                let is_used = self.delivery.paste().applies(is_requested);
                if is_used != (self.delivery.input() == InputMode::Pasted) {
                    self.notify_delivery(now, DeliveryEvent::PasteMode(is_used), observer);
                }
            }
            Input::HookCalled {
                call,
                report,
                takes_mail,
            } => self.hook_called(now, call, &report, takes_mail, observer),
            Input::HookPassedOn(offer) => {
                self.notify_delivery(now, DeliveryEvent::DirectConfirmed(offer), observer);
                // This hook may be the last one.
                self.transcripts.read_soon(now.mono);
            }
            Input::HookGone(offer) => {
                self.notify_delivery(now, DeliveryEvent::DirectUnconfirmed(offer), observer);
            }
            Input::HookUnanswered { offer, ids, why } | Input::ApiRefused { offer, ids, why } => {
                self.direct_deliveries.end(offer);
                let event = DeliveryEvent::DirectRefused {
                    number: offer,
                    ids,
                    why,
                };
                self.notify_delivery(now, event, observer);
            }
            Input::ApiConfirmed(offer) => self.api_confirmed(offer),
            Input::ApiAccepted(offer) => {
                self.notify_delivery(now, DeliveryEvent::DirectConfirmed(offer), observer);
            }
            Input::ApiSilent(offer) => {
                self.notify_delivery(now, DeliveryEvent::DirectUnconfirmed(offer), observer);
            }
            Input::ApiDone => {}
            Input::ApiNotContinued { why } => {
                self.notify_delivery(now, DeliveryEvent::ContinueFailed { why }, observer);
            }
            Input::TranscriptsRead {
                shown,
                trouble,
                is_complete,
            } => {
                self.transcripts.trouble = trouble;
                self.notify_delivery(now, DeliveryEvent::TranscriptRead(shown), observer);
                let is_awaited = self.delivery.needs_transcript();
                if is_awaited && !is_complete {
                    self.actions.push_back(Action::ReadTranscripts);
                } else {
                    self.transcripts.finish_read(now.mono, is_awaited);
                }
            }
            Input::Paused(by) => self.notify_delivery(now, DeliveryEvent::Paused(by), observer),
            Input::Unpaused(by) => {
                self.is_checkpoint_requested &= by != PausedBy::Checkpoint;
                self.notify_delivery(now, DeliveryEvent::Unpaused(by), observer);
            }
            Input::LoopChanged(wait) => {
                self.notify_delivery(now, DeliveryEvent::LoopChanged(wait), observer);
            }
            Input::NudgeRequested(request) => self.nudge_requested(now, &request, observer),
            Input::AnswerRequested { token, asked_at } => {
                self.answer_requested(now, token, asked_at, observer);
            }
            Input::CheckpointRequested => {
                self.is_checkpoint_requested = true;
                self.reach_checkpoint(now, observer);
            }
            Input::Exited(how) => self.exited(now, how, observer),
            Input::ProcessesEnded => self.processes_ended(now),
        }
    }

    /// Pause at a requested checkpoint, if the turn has ended.
    fn reach_checkpoint(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_idle = self.delivery.activity().activity == Activity::Idle;
        if self.is_checkpoint_requested && is_idle && !self.delivery.is_writing() {
            self.is_checkpoint_requested = false;
            let paused = DeliveryEvent::Paused(PausedBy::Checkpoint);
            self.notify_delivery(now, paused, observer);
            self.actions.push_back(Action::ReportCheckpoint);
        }
    }

    /// Return this look at the screen, or a newer one if that has arrived before it.
    fn newest_screen(&mut self, sighting: Sighting) -> Sighting {
        if sighting.output >= self.screen.output {
            self.screen = sighting;
        }
        self.screen.clone()
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
                self.direct_deliveries.next_timeout(),
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
            self.direct_deliveries.next_timeout(),
            self.transcripts.next_read(),
            self.nudges.next_timeout(),
            self.answer_checks.next_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
