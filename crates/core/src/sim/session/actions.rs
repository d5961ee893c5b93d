//! How a simulated session performs the driver's actions and reports their results.

use crate::driver::{self, Action, Input, JournalOperation, KeyboardUser};
use crate::receipt::recovery::{NEVER_PROVEN, OpenOffers};
use crate::session::Ending;
use crate::sim::faults::FaultyDriver;
use crate::sim::oracle::answer_targets::Part;
use crate::sim::oracle::explanations;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::observer::Watch;
use crate::sim::script::Disk;
use crate::sim::session::{Cargo, Commit, Going, Lease, Peek, Read, Session, Stroke, World};
use crate::sim::world::hook_calls::Typed;
use crate::sim::world::manifest;
use crate::sim::world::terminal::{Piece, Waiting};
use crate::sim::world::transcript::{Reading, given};
use crate::turn;
use std::time::Duration;

/// Maximum number of pieces that wait for the keyboard when keys are pressed.
const MAX_KEYS: usize = 2;

impl Session {
    /// Take the next step of one thing that is under way.
    pub(crate) fn step(&mut self, going: Going, world: &mut World<'_>) -> Checked {
        let now = world.now.mono;
        world.trace.note(|| format!("  {} {going:?}", clock(now)));
        match going {
            // The driver is not woken for each key.
            Going::Keyboard => return self.type_next(world),
            Going::Commit(n) => self.go_on_committing(n, world)?,
            Going::Lease => self.report_lease(world)?,
            Going::Stroke => self.go_on_typing(world)?,
            Going::Hook(n) => self.go_on_with_hook(n, world)?,
            Going::ReadMail => self.go_on_reading(world)?,
            Going::Draft => self.catch_up(world)?,
            Going::Pulse => {
                self.agent.has_written = false;
                self.tell(Input::OutputSeen, world)?;
            }
            Going::Question => {
                self.told_question.clone_from(&self.agent.question);
                let (words, asks) = (self.told_question.as_deref(), self.asks());
                world.oracle.aims.shows(words, asks);
                self.tell(Input::DialogChanged(self.told_question.clone()), world)?;
            }
            Going::Screen => self.glance(world),
            Going::Seen => {
                self.is_news = false;
                let glance = self.sighted.clone();
                self.tell_seen(glance, Input::ScreenChanged, world)?;
            }
            Going::Peek => self.go_on_peeking(world)?,
            Going::Nudge(going) => self.go_on_nudging(going, world)?,
            Going::Read => self.read(world)?,
            Going::Transcript => self.go_on_with_transcript(world)?,
            Going::Row => self.write_row(world),
            Going::Exit => self.notice_exit(world)?,
            Going::Processes => {
                self.is_ending_processes = false;
                self.unwritten.clear();
                self.tell(Input::ProcessesEnded, world)?;
            }
        }
        self.proceed(world)
    }

    /// Take every action that the driver wants by now.
    pub(crate) fn proceed(&mut self, world: &mut World<'_>) -> Checked {
        if self.ended.is_none() {
            self.catch_up(world)?;
            self.tell(Input::PasteMode(self.agent.takes_pastes), world)?;
        }
        let delivery = self.delivery();
        if delivery.is_writing() && self.stroke.is_none() && delivery.next_wakeup().is_none() {
            world.trace.note(|| "  Enter is withheld".to_owned());
        }
        loop {
            let now = world.now;
            let (driver, mut watch) = self.observed(world);
            let action = driver.poll_action(now, &mut watch);
            watch.checked?;
            let Some(action) = action else { break };
            self.take(action, world)?;
        }
        if world.trace.is_kept() {
            let mail = &self.driver.mail().pending;
            for line in self.holds.news(world.now, self.driver.delivery(), mail) {
                world.trace.note(|| format!("  log: {line}"));
            }
        }
        match self.ended {
            Some(_) => {
                let is_awaited = self.nudges.are_awaited();
                Law::EveryWaitHasAReason.holds(!is_awaited, || "a nudge has no outcome")
            }
            None => explanations::wakeups(world.now, &self.driver),
        }
    }

    /// Tell the driver of a person's keys before anything else. The program may not have read the
    /// keys yet.
    pub(crate) fn catch_up(&mut self, world: &mut World<'_>) -> Checked {
        if !std::mem::take(&mut self.terminal.is_draft_news) {
            return Ok(());
        }
        let is_draft = self.terminal.has_draft;
        self.tell_next(Input::KeysTyped { is_draft }, world)
    }

    pub(crate) fn tell(&mut self, input: Input, world: &mut World<'_>) -> Checked {
        self.catch_up(world)?;
        self.tell_next(input, world)
    }

    fn tell_next(&mut self, input: Input, world: &mut World<'_>) -> Checked {
        let now = world.now;
        let (driver, mut watch) = self.observed(world);
        driver.handle(now, input, &mut watch);
        watch.checked
    }

    /// Return the driver and its observer.
    fn observed<'a, 'w>(
        &'a mut self,
        world: &'a mut World<'w>,
    ) -> (&'a mut FaultyDriver, Watch<'a, 'w>) {
        let watch = Watch {
            world,
            turn: &mut self.turn,
            waiting: &mut self.waiting,
            hooks: &mut self.hooks,
            given_up: &mut self.given_up,
            decisions: &mut self.decisions,
            checked: Ok(()),
        };
        (&mut self.driver, watch)
    }

    /// Tell the driver the result of an action. If the program has ended, tell that first.
    pub(crate) fn report(&mut self, input: Input, world: &mut World<'_>) -> Checked {
        self.notice_exit_first(world)?;
        self.tell(input, world)
    }

    fn take(&mut self, action: Action, world: &mut World<'_>) -> Checked {
        match action {
            Action::ReadMail => self.read = Some(Read::Asked),
            Action::Commit { commit, operation } => self.commits.push(Commit {
                id: commit,
                operation,
                said: None,
            }),
            Action::LeaseKeyboard(user) => {
                *self.lease_of(user) = Some(Lease::Asked);
                self.terminal.queue.push_back(Waiting::Lease(user));
            }
            Action::ReleaseKeyboard(KeyboardUser::Turn) => self.terminal.is_leased = false,
            Action::ReleaseKeyboard(KeyboardUser::Nudge) => self.nudge_releases(),
            Action::Type { turn, mode } => self.begin_text(&turn, mode, world),
            Action::TypeLine(line) => return self.begin_line(line, world),
            Action::PressEnter {
                by: KeyboardUser::Nudge,
                ..
            } => return self.begin_line_enter(world),
            Action::PressEnter {
                by: KeyboardUser::Turn,
                ..
            } => {
                self.aim(Part::Enter, world);
                self.stroke = Some(Stroke::Enter);
            }
            Action::PressKeys(keys) => {
                let is_erase = keys == manifest::clear_keys().bytes();
                let piece = if is_erase { Piece::Erase } else { Piece::Break };
                if self.terminal.queue.len() >= MAX_KEYS {
                    return self.tell_next(Input::KeysDropped, world);
                }
                self.terminal.queue.push_back(Waiting::Piece(piece));
            }
            Action::Look(KeyboardUser::Turn) => self.peek = Some(Peek::Asked),
            Action::Look(KeyboardUser::Nudge) => self.nudges.peek = Some(Peek::Asked),
            Action::EndNudge { token, outcome } => return self.end_nudge(token, &outcome),
            Action::EndAnswerCheck { token, refusal } => {
                return self.end_answer_check(token, refusal.as_deref(), world);
            }
            Action::CheckInput => {
                let is_unread = self.terminal.is_unread();
                return self.tell_next(Input::InputChecked { is_unread }, world);
            }
            Action::ForgetKeys => {
                world.trace.note(|| "  the keys left no draft".to_owned());
                self.forget_keys();
            }
            Action::AnswerHook { call: _, mail } => {
                let Some(mail) = mail else { return Ok(()) };
                if world.journal.disk != Disk::Broken {
                    return self.give(&mail, world);
                }
                // The file of a message cannot be written.
                let ids = mail.messages.iter().map(|message| message.state.message.id);
                let unanswered = Input::HookUnanswered {
                    offer: mail.offer,
                    ids: ids.collect(),
                    why: "the disk fails".to_owned(),
                };
                return self.tell_next(unanswered, world);
            }
            Action::ReportCheckpoint => {}
            Action::EndProcesses => self.is_ending_processes = true,
            Action::ReadTranscripts => self.reading = Some(Reading::Asked),
            Action::FollowTranscript { from_start, .. } => {
                self.follow_transcript(from_start, world);
            }
            Action::SkipTranscripts => self.skip_transcript(world),
            Action::CheckApi { .. }
            | Action::PutMail { .. }
            | Action::ApiInterrupt { .. }
            | Action::ApiContinue { .. } => {
                return Law::CannotAct.holds(false, || "an API is called that is not there");
            }
        }
        Ok(())
    }

    /// The request of one user for the keyboard.
    pub(crate) fn lease_of(&mut self, user: KeyboardUser) -> &mut Option<Lease> {
        match user {
            KeyboardUser::Turn => &mut self.lease,
            KeyboardUser::Nudge => &mut self.nudges.lease,
        }
    }

    /// Let the terminal forget a person's keys, provided that the driver was told of everything that
    /// the program has drawn.
    fn forget_keys(&mut self) {
        let is_quiet = !self.agent.has_drawn && !self.is_news;
        let is_asked = |waiting: &Waiting| matches!(waiting, Waiting::Forget(_));
        if is_quiet && !self.terminal.queue.iter().any(is_asked) {
            let forget = Waiting::Forget(self.terminal.keys);
            self.terminal.queue.push_back(forget);
        }
    }

    fn begin_text(
        &mut self,
        turn: &driver::TurnContent,
        mode: turn::InputMode,
        world: &mut World<'_>,
    ) {
        self.turn.messages = turn.messages();
        if self.turn.attempts > 1 {
            world.trace.note(|| "  typed a second time".to_owned());
        }
        self.turn.no = world.turns.len();
        self.turn.input = Some(mode);
        world.turns.push(Typed {
            text: self.turn.text(),
            ids: self.turn.ids.clone(),
            is_written: false,
        });
        self.aim(Part::Text, world);
        self.stroke = Some(Stroke::First);
    }

    /// If the turn is an answer, tell the oracle that this part of the answer is about to be typed.
    fn aim(&self, part: Part, world: &mut World<'_>) {
        if let (Cargo::Messages, [only]) = (self.turn.cargo, &self.turn.messages[..])
            && only.message.envelope.raw
        {
            let id = only.message.id;
            let has_come = only.message.created_at <= world.now.wall;
            world.oracle.aims.wants(id, has_come, self.turn.no, part);
        }
    }

    fn notice_exit_first(&mut self, world: &mut World<'_>) -> Checked {
        if !self.agent.is_alive && self.ended.is_none() {
            return self.notice_exit(world);
        }
        Ok(())
    }

    fn go_on_committing(&mut self, n: usize, world: &mut World<'_>) -> Checked {
        let mut commit = self.commits.remove(n);
        if let Some(said) = commit.said.take() {
            return self.report(said, world);
        }
        let id = commit.id;
        let recorded = match &commit.operation {
            JournalOperation::RecordStep { ids, report } => {
                world.journal.say(world.now, ids, report)
            }
            JournalOperation::Expire => world.journal.expire(world.now).map(|()| Vec::new()),
            JournalOperation::CloseKilledHooks => {
                let cut_off = world.journal.cut_off_injected(world.now);
                cut_off.map(|_| Vec::new())
            }
            JournalOperation::CloseUnproven => {
                let offers = OpenOffers::Unproven;
                let marked = world
                    .journal
                    .mark_uncertain(world.now, &offers, NEVER_PROVEN);
                marked.map(|()| Vec::new())
            }
            JournalOperation::RecordConversation(conversation) => {
                let recorded = world.journal.converse(world.now, conversation);
                recorded.map(|()| Vec::new())
            }
            JournalOperation::SettleEarlierOffers(resumed) => {
                let rows = world.transcripts.get(&resumed.id);
                let rows = rows.filter(|_| resumed.transcript.is_some());
                let given = rows.map(|rows| given(rows));
                let settled = world.journal.settle(world.now, given.as_deref());
                settled.map(|()| Vec::new())
            }
        };
        commit.said = Some(match recorded {
            Ok(ids) => Input::Committed {
                commit: id,
                ids,
                head: world.journal.head(),
                has_more: false,
            },
            Err(_) => Input::NotCommitted {
                commit: id,
                why: "the disk fails".to_owned(),
                is_final: world.journal.disk == Disk::Broken,
            },
        });
        self.commits.push(commit);
        Ok(())
    }

    fn report_lease(&mut self, world: &mut World<'_>) -> Checked {
        match self.lease.take() {
            Some(Lease::Said(input)) => self.report(input, world),
            other @ (Some(Lease::Asked) | None) => {
                self.lease = other;
                Ok(())
            }
        }
    }

    fn go_on_reading(&mut self, world: &mut World<'_>) -> Checked {
        match self.read.take() {
            Some(Read::Asked) if world.journal.disk == Disk::Broken => {
                self.is_blind = true;
                self.tell(Input::MailUnreadable, world)
            }
            Some(Read::Asked) => {
                self.read = Some(Read::Found(world.journal.look(world.now.wall)));
                Ok(())
            }
            Some(Read::Found(view)) => self.tell(Input::MailRead(view), world),
            None => Ok(()),
        }
    }

    fn notice_exit(&mut self, world: &mut World<'_>) -> Checked {
        self.ended = Some(world.now.mono);
        (self.stroke, self.peek, self.read) = (None, None, None);
        (self.nudges.stroke, self.nudges.peek) = (None, None);
        world.oracle.is_cut_off();
        self.tell(Input::Exited(Ending::Exit(0)), world)
    }
}

/// Format a time of the run in seconds.
pub(crate) fn clock(mono: Duration) -> String {
    format!("{:8.3}", mono.as_secs_f64())
}
