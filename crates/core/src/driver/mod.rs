//! The driver of one session: the order in which a session reads the journal, commits, takes the
//! keyboard, types, looks, answers hooks and reads transcripts.
//!
//! It has no clock, files or tasks. [`SessionDriver::handle`] takes what happened,
//! [`SessionDriver::poll_action`] gives what is to be done, and [`SessionDriver::next_timeout`] says
//! when the driver wants [`Input::Tick`]. The session performs the actions; the simulation performs
//! them against a simulated world.

mod commits;
mod freshness;
mod hooks;
mod terminal;
mod terms;
mod transcripts;

pub use terms::{
    Action, CommitId, HookCall, HookMail, Input, MailView, Operation, RunIdentity, ToldLetter, Turn,
};

use crate::delivery::{Decision, Desk, Effect, Event, Manner};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::offer::Said;
use crate::session::Conversation;
use commits::{Commits, For};
use freshness::Freshness;
use hooks::Handovers;
use std::collections::VecDeque;
use std::time::Duration;
use terminal::Keyboard;
use transcripts::TranscriptSchedule;

/// Interval between checks for unread input during [`INPUT_CHECKED_OFTEN_FOR`].
const INPUT_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Interval between later checks for unread input.
const SLOW_INPUT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long unread input is checked at the short interval.
const INPUT_CHECKED_OFTEN_FOR: Duration = Duration::from_secs(1);
/// How long a person's keys may take to show in the input box. Keys that show later left no draft.
const KEYS_SHOWN_WITHIN: Duration = Duration::from_secs(1);

/// Observes the events, choices and effects of a driver, in order. A session logs them; the
/// simulation checks them against its laws.
pub trait Observer {
    /// Delivery is about to handle this event.
    fn hears(&mut self, now: Moment, event: &Event);
    /// Delivery has handled the event, and the driver has carried out the effects.
    fn has_heard(&mut self);
    /// Delivery has chosen what is due from the pending mail.
    fn chooses(&mut self, now: Moment, delivery: &Desk, pending: &[Letter], chosen: &Decision);
    /// Delivery requests this effect.
    fn wants(&mut self, now: Moment, delivery: &Desk, effect: &Effect);
    /// The driver releases the keyboard, because no turn needs it any more.
    fn releases_keyboard(&mut self);
    /// The journal could not record a receipt. It is tried again.
    fn retries(&mut self, ids: &[MessageId], why: &str);
    /// A receipt could not be recorded in time. The next session will find the offer cut off.
    fn gives_up(&mut self, ids: &[MessageId], why: &str);
}

/// Parameters of a new driver.
#[derive(Debug, Clone)]
pub struct Start {
    pub manner: Manner,
    pub run: RunIdentity,
    /// The conversation that the program was told to resume.
    pub resumed: Option<Conversation>,
}

#[derive(Debug)]
pub struct SessionDriver {
    delivery: Desk,
    run: RunIdentity,
    resumed: Option<Conversation>,
    /// The conversation that the program is in, as recorded.
    conversation: Option<Conversation>,
    mail: MailView,
    freshness: Freshness,
    commits: Commits,
    keyboard: Keyboard,
    handovers: Handovers,
    transcripts: TranscriptSchedule,
    input_check: InputCheck,
    /// When the last key of an unsubmitted draft was typed.
    draft_typed_at: Option<Duration>,
    actions: VecDeque<Action>,
    /// Number of actions queued by `ask` whose result has not come.
    unanswered: usize,
    /// Whether something has happened since the driver last looked for work.
    has_news: bool,
    has_exited: bool,
}

/// The check for unread input that precedes a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputCheck {
    /// No check is under way, and no result waits to be used.
    Open,
    Asked,
    Done {
        is_unread: bool,
    },
}

impl SessionDriver {
    /// Create the driver of a program that was started just now.
    pub fn new(start: Start, now: Moment) -> Self {
        let mut driver = Self {
            delivery: Desk::new(start.manner, now),
            run: start.run,
            resumed: start.resumed,
            conversation: None,
            mail: MailView::default(),
            freshness: Freshness::new(now.mono),
            commits: Commits::default(),
            keyboard: Keyboard::default(),
            handovers: Handovers::default(),
            transcripts: TranscriptSchedule::default(),
            input_check: InputCheck::Open,
            draft_typed_at: None,
            actions: VecDeque::new(),
            unanswered: 0,
            has_news: true,
            has_exited: false,
        };
        driver.commit(Operation::Expire, For::Nothing);
        driver
    }

    pub fn delivery(&self) -> &Desk {
        &self.delivery
    }

    /// The mail as of the last read.
    pub fn mail(&self) -> &MailView {
        &self.mail
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
    pub fn is_handing(&self, id: MessageId) -> bool {
        self.handovers.has(id)
    }

    /// Whether a turn is being offered: the driver waits for the keyboard, or for the journal.
    pub fn is_offering(&self) -> bool {
        self.keyboard.is_offering()
    }

    /// Tell the driver what has happened at `now`.
    pub fn handle(&mut self, now: Moment, input: Input, observer: &mut impl Observer) {
        self.has_news = true;
        let is_result = self.note_result(&input);
        match input {
            Input::Tick => self.tick(now, observer),
            Input::PeriodicCheck => {
                self.freshness.set_stale();
                if self.commits.is_empty() && self.unanswered == 0 {
                    self.commit(Operation::CloseKilledHooks, For::Nothing);
                }
            }
            Input::JournalChanged { has_mail } => self.freshness.journal_changed(has_mail),
            Input::MailRead(view) => {
                self.mail = view;
                self.freshness.finish_read(true);
            }
            Input::MailUnreadable => self.freshness.finish_read(false),
            Input::Committed { commit, ids } => self.committed(now, commit, ids, observer),
            Input::NotCommitted {
                commit,
                why,
                is_final,
            } => self.not_committed(now, commit, &why, is_final, observer),
            Input::KeyboardLeased => self.keyboard_leased(now, observer),
            Input::KeyboardRefused => {
                self.keyboard.refuse();
                self.tell(now, Event::Barred, observer);
            }
            Input::KeyboardGone => {
                let event = self.keyboard_gone();
                self.tell(now, event, observer);
            }
            Input::Typed(text) => self.tell_typed(now, Event::Wrote(text), observer),
            Input::EnterPressed => self.tell_typed(now, Event::Entered, observer),
            Input::TerminalFailed(why) => self.tell_typed(now, Event::WriteFailed(why), observer),
            Input::KeysDropped => self.tell(now, Event::Unpressed, observer),
            Input::Looked(sighting) => self.tell(now, Event::Looked(sighting), observer),
            Input::InputChecked { is_unread } => {
                self.input_check = InputCheck::Done { is_unread };
            }
            Input::ScreenChanged(sighting) => self.tell(now, Event::Seen(sighting), observer),
            Input::DialogChanged(what) => self.tell(now, Event::Dialog(what), observer),
            Input::OutputSeen => self.tell(now, Event::Output, observer),
            Input::KeysTyped { is_draft } => {
                self.draft_typed_at = is_draft.then_some(now.mono);
                let event = match is_draft {
                    true => Event::Draft,
                    false => Event::DraftGone,
                };
                self.tell(now, event, observer);
            }
            Input::PasteMode(on) => self.tell(now, Event::Paste(on), observer),
            Input::HookCalled {
                call,
                report,
                takes_mail,
            } => self.hook_called(now, call, &report, takes_mail, observer),
            Input::HookPassedOn(offer) => {
                self.tell(now, Event::Taken(offer), observer);
                // This hook may be the last one.
                self.transcripts.read_soon(now.mono);
            }
            Input::HookGone(offer) => self.tell(now, Event::Dropped(offer), observer),
            Input::HookUnanswered { offer, ids, why } | Input::ApiRefused { offer, ids, why } => {
                self.handovers.end(offer);
                let event = Event::NotHanded {
                    number: offer,
                    ids,
                    why,
                };
                self.tell(now, event, observer);
            }
            Input::ApiConfirmed(offer) => self.api_confirmed(offer),
            Input::ApiAccepted(offer) => self.tell(now, Event::Taken(offer), observer),
            Input::ApiSilent(offer) => self.tell(now, Event::Dropped(offer), observer),
            Input::ApiDone => {}
            Input::ApiNotContinued { why } => self.tell(now, Event::NotGoneOn { why }, observer),
            Input::TranscriptsRead(shown) => {
                self.tell(now, Event::Transcribed(shown), observer);
                let is_awaited = self.delivery.asks_transcript();
                self.transcripts.finish_read(now.mono, is_awaited);
            }
            Input::Paused(by) => self.tell(now, Event::Paused(by), observer),
            Input::Released(by) => self.tell(now, Event::Released(by), observer),
            Input::LoopChanged(wait) => self.tell(now, Event::Loop(wait), observer),
            Input::Exited(how) => {
                self.has_exited = true;
                self.tell(now, Event::Exited(how), observer);
            }
        }
        if is_result {
            self.freshness.outdate();
            self.freshness.set_stale();
        }
    }

    /// Count the results of actions. Return whether the input is a result that makes the mail, as
    /// last read, outdated.
    fn note_result(&mut self, input: &Input) -> bool {
        let is_result = match input {
            Input::KeyboardRefused
            | Input::KeyboardGone
            | Input::Typed(_)
            | Input::EnterPressed
            | Input::TerminalFailed(_)
            | Input::Looked(_)
            | Input::ApiAccepted(_)
            | Input::ApiSilent(_)
            | Input::ApiRefused { .. }
            | Input::ApiDone
            | Input::ApiNotContinued { .. }
            | Input::TranscriptsRead(_) => true,
            Input::Committed { .. } | Input::NotCommitted { .. } => return true,
            Input::KeyboardLeased | Input::ApiConfirmed(_) => {
                self.unanswered = self.unanswered.saturating_sub(1);
                return false;
            }
            Input::Tick
            | Input::PeriodicCheck
            | Input::JournalChanged { .. }
            | Input::MailRead(_)
            | Input::MailUnreadable
            | Input::KeysDropped
            | Input::InputChecked { .. }
            | Input::ScreenChanged(_)
            | Input::DialogChanged(_)
            | Input::OutputSeen
            | Input::KeysTyped { .. }
            | Input::PasteMode(_)
            | Input::HookCalled { .. }
            | Input::HookPassedOn(_)
            | Input::HookGone(_)
            | Input::HookUnanswered { .. }
            | Input::Paused(_)
            | Input::Released(_)
            | Input::LoopChanged(_)
            | Input::Exited(_) => return false,
        };
        self.unanswered = self.unanswered.saturating_sub(1);
        is_result
    }

    /// The next action, if there is something to do at `now`. Call it until it returns `None`, after
    /// each input and when [`Self::next_timeout`] has come.
    pub fn poll_action(&mut self, now: Moment, observer: &mut impl Observer) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if !std::mem::take(&mut self.has_news) {
                return None;
            }
            self.look_for_work(now, observer);
        }
    }

    /// When the driver wants [`Input::Tick`], on the monotonic clock.
    pub fn next_timeout(&self, now: Moment) -> Option<Duration> {
        if self.has_exited {
            let last = [self.commits.next_retry(), self.handovers.next_timeout()];
            return last.into_iter().flatten().min();
        }
        let change = self.mail.next_change.map(|at| {
            let wait = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
            now.mono + wait
        });
        let soonest = now.mono + INPUT_CHECK_INTERVAL;
        let forget = self.forgets_keys_at().map(|at| at.max(soonest));
        [
            self.delivery.next_wakeup(),
            change,
            self.freshness.next_read(),
            self.next_input_check(now),
            forget,
            self.commits.next_retry(),
            self.handovers.next_timeout(),
            self.transcripts.next_read(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When unread input is checked again. The driver polls, because no event reports that the
    /// program has read its input.
    fn next_input_check(&self, now: Moment) -> Option<Duration> {
        let unread_for = self.delivery.unread_for(now)?;
        let interval = match unread_for < INPUT_CHECKED_OFTEN_FOR {
            true => INPUT_CHECK_INTERVAL,
            false => SLOW_INPUT_CHECK_INTERVAL,
        };
        let is_wanted = self.has_more_to_type() || self.delivery.awaits_reading();
        is_wanted.then_some(now.mono + interval)
    }

    /// Begin everything that is due at `now`.
    fn look_for_work(&mut self, now: Moment, observer: &mut impl Observer) {
        self.retry_commits(now);
        self.answer_late_hooks(now);
        if self.has_exited {
            return;
        }
        self.tick(now, observer);
        if self.mail.next_change.is_some_and(|at| at <= now.wall) {
            self.mail.next_change = None;
            self.freshness.set_stale();
            self.commit(Operation::Expire, For::Nothing);
        }
        if self.freshness.begin_due_read(now.mono) {
            self.actions.push_back(Action::ReadMail);
        }
        self.settle_earlier_offers();
        self.read_transcripts(now);
        if !self.check_input(now, observer) {
            // The result of the check brings the driver back here.
            return;
        }
        self.begin_due(now, observer);
    }

    /// Tell delivery that the time has come for which it waits.
    fn tick(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_due = self.delivery.next_wakeup().is_some_and(|at| at <= now.mono);
        if is_due && !self.has_exited {
            self.tell(now, Event::Tick, observer);
        }
    }

    /// Settle the offers of earlier sessions once the program has resumed its conversation. If the
    /// program ends before that, the end of the run makes them uncertain.
    fn settle_earlier_offers(&mut self) {
        if !self.delivery.is_starting()
            && let Some(resumed) = self.resumed.take()
        {
            self.commit(Operation::SettleEarlierOffers(resumed), For::Nothing);
        }
    }

    /// Whether mail waits, or a reminder may be due.
    pub fn has_more_to_type(&self) -> bool {
        !self.mail.pending.is_empty() || !self.mail.owed.is_empty()
    }

    fn input_matters(&self) -> bool {
        let has_more = self.has_more_to_type() && !self.delivery.is_writing();
        has_more || self.delivery.awaits_reading()
    }

    /// When the keys of a draft can be forgotten, because the input box has shown no trace of them
    /// for [`KEYS_SHOWN_WITHIN`].
    fn forgets_keys_at(&self) -> Option<Duration> {
        let is_void = self.delivery.is_field_ours();
        let typed_at = self.draft_typed_at.filter(|_| is_void);
        typed_at.map(|at| at + KEYS_SHOWN_WITHIN)
    }

    /// Check whether the program has unread input, if that matters now, and act on the result.
    /// Return whether the result is known or not needed.
    fn check_input(&mut self, now: Moment, observer: &mut impl Observer) -> bool {
        let forgets = self.forgets_keys_at().is_some_and(|at| at <= now.mono);
        let matters = self.input_matters();
        if !matters && !forgets {
            self.input_check = InputCheck::Open;
            return true;
        }
        match std::mem::replace(&mut self.input_check, InputCheck::Open) {
            InputCheck::Open => {
                self.input_check = InputCheck::Asked;
                self.actions.push_back(Action::CheckInput);
                false
            }
            InputCheck::Asked => {
                self.input_check = InputCheck::Asked;
                false
            }
            InputCheck::Done { is_unread } => {
                let is_told = self.delivery.unread_for(now).is_some();
                if matters && is_unread != is_told {
                    self.tell(now, Event::Unread(is_unread), observer);
                }
                if forgets && !is_unread {
                    self.actions.push_back(Action::ForgetKeys);
                }
                true
            }
        }
    }

    /// Begin what is due. If mail may have come since the last read, read the journal once more
    /// first, because new mail may go before what is due. After that read, begin even if more mail
    /// has come meanwhile.
    fn begin_due(&mut self, now: Moment, observer: &mut impl Observer) {
        let is_sure = self.freshness.take_sure();
        if self.freshness.is_fresh() {
            let mut lapsed = self.delivery.lapsed(now, &self.mail.pending);
            // Do not record a failure again while its commit is open.
            lapsed.retain(|effect| !self.is_being_recorded(effect));
            self.perform(now, lapsed, observer);
        }
        let is_fresh = self.freshness.is_fresh();
        let chosen = is_fresh.then(|| self.delivery.next(now, &self.mail.pending));
        let is_due = matches!(chosen, Some(Decision::Offer { .. }));
        let is_current = self.freshness.is_current(now.mono);
        self.freshness.is_wanted = is_due && !is_current && !is_sure;
        if self.freshness.is_wanted {
            if self.freshness.begin_read(now.mono) {
                self.actions.push_back(Action::ReadMail);
            }
        } else if let Some(chosen) = chosen.filter(|_| is_due) {
            observer.chooses(now, &self.delivery, &self.mail.pending, &chosen);
            let effects = self.delivery.act(now, &self.mail.pending);
            self.perform(now, effects, observer);
        } else if is_fresh && is_current {
            let effects = self.delivery.remind(now, &self.mail.owed);
            self.perform(now, effects, observer);
        } else {
            self.freshness.doubt();
        }
    }

    /// Tell delivery of an event, and carry out the effects.
    fn tell(&mut self, now: Moment, event: Event, observer: &mut impl Observer) {
        observer.hears(now, &event);
        let effects = self.delivery.on(now, event);
        self.perform(now, effects, observer);
        observer.has_heard();
        // A turn that has to wait releases the keyboard too, because the answer to a dialog needs it.
        if !self.delivery.is_writing() && self.keyboard.release() {
            self.actions.push_back(Action::ReleaseKeyboard);
            observer.releases_keyboard();
        }
    }

    fn perform(&mut self, now: Moment, effects: Vec<Effect>, observer: &mut impl Observer) {
        for effect in effects {
            observer.wants(now, &self.delivery, &effect);
            self.carry_out(now, effect, observer);
        }
    }

    fn carry_out(&mut self, now: Moment, effect: Effect, observer: &mut impl Observer) {
        match effect {
            Effect::Key(keys) => self.actions.push_back(Action::PressKeys(keys)),
            Effect::Offer { ids } => {
                self.skip_transcripts();
                let letters = pick(&self.mail.pending, &ids);
                self.take_keyboard_for(terminal::Purpose::Offer { ids }, letters);
            }
            Effect::Remind { ids } => {
                let letters = pick(&self.mail.owed, &ids);
                self.take_keyboard_for(terminal::Purpose::Remind { ids }, letters);
            }
            Effect::Resume => self.retake_keyboard(),
            Effect::Write { ids } => {
                let letters = self.keyboard.letters(&ids);
                let told = letters.map(|letters| Turn::Messages(self.told(letters)));
                self.type_turn(now, told, observer);
            }
            Effect::WriteReminder { ids } => {
                let turn = self.keyboard.letters(&ids).map(Turn::Reminder);
                self.type_turn(now, turn, observer);
            }
            Effect::Enter => {
                self.keyboard.begin_typing();
                let keys = self.delivery.enter_key().to_vec();
                self.ask(Action::PressEnter(keys));
            }
            Effect::Look => self.ask(Action::Look),
            Effect::Give { number, ids } => self.give(number, &ids),
            Effect::Call { number, ids } => self.call_api(number, &ids),
            Effect::Abort => {
                let conversation = self.api_conversation();
                self.ask(Action::ApiInterrupt { conversation });
            }
            Effect::GoOn => {
                let conversation = self.api_conversation();
                self.ask(Action::ApiContinue { conversation });
            }
            Effect::Offered {
                ids,
                evidence,
                route,
                proof_awaited,
            } => {
                self.transcripts.read_soon(now.mono);
                let said = Said::Offered {
                    route: route.as_str().to_owned(),
                    evidence,
                    proof_awaited,
                };
                self.record(now, ids, said);
            }
            Effect::Accepted {
                ids,
                evidence,
                route,
            } => {
                let route = route.as_str().to_owned();
                self.record(now, ids, Said::Accepted { route, evidence });
            }
            Effect::Withdraw { ids, reason } => self.record(now, ids, Said::Withdrawn { reason }),
            Effect::Uncertain { ids, reason } => self.record(now, ids, Said::Uncertain { reason }),
            Effect::Fail { ids, reason } => {
                self.freshness.outdate();
                self.record(now, ids, Said::Failed { reason });
            }
        }
    }

    fn is_being_recorded(&self, effect: &Effect) -> bool {
        let Effect::Fail { ids, .. } = effect else {
            return false;
        };
        ids.iter().any(|id| self.commits.has(*id))
    }

    /// Queue an action whose result is one input, and count it.
    fn ask(&mut self, action: Action) {
        self.unanswered += 1;
        self.actions.push_back(action);
    }

    fn record(&mut self, now: Moment, ids: Vec<MessageId>, said: Said) {
        self.commit_receipt(now, Operation::Say { ids, said });
    }

    fn told(&self, letters: Vec<Letter>) -> Vec<ToldLetter> {
        let told = letters.into_iter().map(|letter| {
            let telling = self.delivery.telling(&letter);
            (letter, telling)
        });
        told.collect()
    }

    /// Return the operation that records an offer of these letters by a route.
    fn offering(route: Route, ids: Vec<MessageId>, letters: &[Letter]) -> Operation {
        let said = Said::Offering {
            route: route.as_str().to_owned(),
            repeats: Letter::repeats(letters),
        };
        Operation::Say { ids, said }
    }
}

/// Return the letters with these ids, in the order of the ids.
fn pick(letters: &[Letter], ids: &[MessageId]) -> Vec<Letter> {
    ids.iter()
        .filter_map(|id| letters.iter().find(|letter| letter.message.id == *id))
        .cloned()
        .collect()
}
