//! Performs the driver's actions in a simulated session, and reports their results.

use crate::driver::{self, Action, Input, JournalOperation, KeyboardUser};
use crate::receipt::recovery::{NEVER_PROVEN, OpenOffers};
use crate::session::Ending;
use crate::sim::faults::FaultyDriver;
use crate::sim::oracle::answer_targets::AnswerPart;
use crate::sim::oracle::explanations;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::observer::OracleObserver;
use crate::sim::script::Disk;
use crate::sim::session::keyboard_work::{KeyboardWork, LeaseState, LookState, TypingState};
use crate::sim::session::{Commit, MailReadState, Session, SessionStep, TurnKind, World};
use crate::sim::world::api::ApiRequest;
use crate::sim::world::hook_calls::WrittenText;
use crate::sim::world::terminal::{KeyboardRequest, Piece};
use crate::sim::world::transcript::{TranscriptRead, given};
use crate::turn;
use std::time::Duration;

/// Maximum number of pieces in the keyboard queue. Further keys are dropped.
const MAX_KEYS: usize = 2;

impl Session {
    /// Take one possible step.
    pub(crate) fn step(&mut self, step: SessionStep, world: &mut World<'_>) -> Checked {
        let now = world.now.mono;
        world.trace.note(|| format!("  {} {step:?}", clock(now)));
        match step {
            // The driver is not woken for each key.
            SessionStep::UseKeyboard => return self.type_next(world),
            SessionStep::Commit(n) => self.step_commit(n, world)?,
            SessionStep::ReportLease(user) => self.report_lease(user, world)?,
            SessionStep::Type(user) => self.step_typing(user, world)?,
            SessionStep::Hook(n) => self.step_hook(n, world)?,
            SessionStep::Api(n) => self.step_api(n, world)?,
            SessionStep::ReadMail => self.step_mail_read(world)?,
            SessionStep::ReportKeys => self.report_keys(world)?,
            SessionStep::ReportOutput => {
                self.program.has_output = false;
                self.tell(Input::OutputSeen, world)?;
            }
            SessionStep::ReportQuestion => {
                self.reported_question.clone_from(&self.program.question);
                let (words, question) = (self.reported_question.as_deref(), self.open_question());
                world.oracle.answer_targets.note_shown(words, question);
                self.tell(Input::DialogChanged(self.reported_question.clone()), world)?;
            }
            SessionStep::LookAtScreen => self.look_at_screen(world),
            SessionStep::ReportScreen => {
                self.screen_changed = false;
                let look = self.last_look.clone();
                self.report_screen(look, Input::ScreenChanged, world)?;
            }
            SessionStep::Look(user) => self.step_look(user, world)?,
            SessionStep::ReadInput => self.read_input(world)?,
            SessionStep::ReadTranscript => self.step_transcript_read(world)?,
            SessionStep::WriteRow => self.write_row(world),
            SessionStep::NoticeExit => self.notice_exit(world)?,
            SessionStep::EndProcesses => {
                self.is_ending_processes = false;
                self.unwritten_rows.clear();
                self.tell(Input::ProcessesEnded, world)?;
            }
        }
        self.perform_actions(world)
    }

    /// Perform every action that the driver requests.
    pub(crate) fn perform_actions(&mut self, world: &mut World<'_>) -> Checked {
        if self.ended.is_none() {
            self.report_keys(world)?;
            self.tell(Input::PasteMode(self.program.takes_pastes), world)?;
        }
        let delivery = self.delivery();
        if delivery.is_writing()
            && self.turn_work.typing.is_none()
            && delivery.next_wakeup().is_none()
        {
            world.trace.note(|| "  Enter is withheld".to_owned());
        }
        loop {
            let now = world.now;
            let (driver, mut observer) = self.driver_and_observer(world);
            let action = driver.poll_action(now, &mut observer);
            observer.checked?;
            let Some(action) = action else { break };
            self.perform(action, world)?;
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
            None => explanations::check_wakeups(world.now, &self.driver),
        }
    }

    /// Report a person's keys to the driver before any other input. The program may not have read
    /// the keys yet.
    pub(crate) fn report_keys(&mut self, world: &mut World<'_>) -> Checked {
        if !std::mem::take(&mut self.terminal.draft_changed) {
            return Ok(());
        }
        let is_draft = self.terminal.has_draft;
        self.tell_next(Input::KeysTyped { is_draft }, world)
    }

    pub(crate) fn tell(&mut self, input: Input, world: &mut World<'_>) -> Checked {
        self.report_keys(world)?;
        self.tell_next(input, world)
    }

    fn tell_next(&mut self, input: Input, world: &mut World<'_>) -> Checked {
        let now = world.now;
        let (driver, mut observer) = self.driver_and_observer(world);
        driver.handle(now, input, &mut observer);
        observer.checked
    }

    /// Return the driver and its observer.
    fn driver_and_observer<'a, 'w>(
        &'a mut self,
        world: &'a mut World<'w>,
    ) -> (&'a mut FaultyDriver, OracleObserver<'a, 'w>) {
        let observer = OracleObserver {
            world,
            turn: &mut self.turn,
            waiting: &mut self.waiting,
            hooks: &mut self.hooks,
            given_up: &mut self.given_up,
            has_lost_ask: &mut self.has_lost_ask,
            decisions: &mut self.decisions,
            checked: Ok(()),
        };
        (&mut self.driver, observer)
    }

    /// Report the result of an action to the driver. If the program has ended, report its exit
    /// first.
    pub(crate) fn report(&mut self, input: Input, world: &mut World<'_>) -> Checked {
        self.notice_exit_if_any(world)?;
        self.tell(input, world)
    }

    fn perform(&mut self, action: Action, world: &mut World<'_>) -> Checked {
        match action {
            Action::ReadMail => self.mail_read = Some(MailReadState::Requested),
            Action::Commit { commit, operation } => self.commits.push(Commit {
                id: commit,
                operation,
                result: None,
            }),
            Action::LeaseKeyboard(user) => {
                self.work_of(user).lease = Some(LeaseState::Requested);
                self.terminal.queue.push_back(KeyboardRequest::Lease(user));
            }
            Action::ReleaseKeyboard(_) => self.terminal.is_leased = false,
            Action::Type { turn, mode } => self.begin_text(&turn, mode, world),
            Action::TypeLine(line) => return self.begin_line(line, world),
            Action::PressEnter { by, .. } => {
                match by {
                    KeyboardUser::Turn => self.note_answer_keys(AnswerPart::Enter, world),
                    KeyboardUser::Nudge => self.check_line_enter(world)?,
                }
                self.work_of(by).typing = Some(TypingState::Enter);
            }
            Action::PressKeys(_) | Action::ClearBox(_) if self.terminal.queue.len() >= MAX_KEYS => {
                return self.tell_next(Input::KeysDropped, world);
            }
            Action::PressKeys(_) => {
                let press = KeyboardRequest::Piece(Piece::Interrupt);
                self.terminal.queue.push_back(press);
            }
            Action::ClearBox(_) => {
                let clear = KeyboardRequest::ClearBox(self.terminal.keys);
                self.terminal.queue.push_back(clear);
            }
            Action::Look(user) => self.work_of(user).look = Some(LookState::Requested),
            Action::EndNudge { token, outcome } => return self.end_nudge(token, &outcome),
            Action::EndAnswerCheck { token, keys } => {
                let refusal = keys.as_ref().err().map(String::as_str);
                return self.end_answer_check(token, refusal, world);
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
                    return self.give_mail(&mail, world);
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
            Action::ReadTranscripts => self.transcript_read = Some(TranscriptRead::Requested),
            Action::FollowTranscript { from_start, .. } => {
                self.follow_transcript(from_start, world);
            }
            Action::SkipTranscripts => self.skip_transcript(world),
            Action::CheckApi {
                offer,
                conversation,
            } => self.call_api(ApiRequest::Check {
                offer,
                conversation,
            }),
            Action::PutMail {
                offer,
                messages,
                conversation,
            } => return self.put_mail(offer, messages, conversation, world),
            Action::ApiInterrupt { conversation } => {
                self.call_api(ApiRequest::Interrupt { conversation });
            }
            Action::ApiContinue { conversation } => {
                self.call_api(ApiRequest::Continue { conversation });
            }
        }
        Ok(())
    }

    /// Return the actions at the terminal for one user of the keyboard.
    pub(crate) fn work_of(&mut self, user: KeyboardUser) -> &mut KeyboardWork {
        match user {
            KeyboardUser::Turn => &mut self.turn_work,
            KeyboardUser::Nudge => &mut self.nudge_work,
        }
    }

    /// Make the terminal forget a person's keys, if the driver was told of everything that the
    /// program has drawn.
    fn forget_keys(&mut self) {
        let is_quiet = !self.program.has_drawn && !self.screen_changed;
        let is_asked = |waiting: &KeyboardRequest| matches!(waiting, KeyboardRequest::Forget(_));
        if is_quiet && !self.terminal.queue.iter().any(is_asked) {
            let forget = KeyboardRequest::Forget(self.terminal.keys);
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
        world.turns.push(WrittenText {
            text: self.turn.text(),
            ids: self.turn.ids.clone(),
            is_written: false,
        });
        self.note_answer_keys(AnswerPart::Text, world);
        self.turn_work.typing = Some(TypingState::FirstHalf);
    }

    /// If the turn is an answer, tell the oracle which part of the answer is about to be typed.
    fn note_answer_keys(&self, part: AnswerPart, world: &mut World<'_>) {
        if let (TurnKind::Messages, [only]) = (self.turn.kind, &self.turn.messages[..])
            && only.message.envelope.raw
        {
            let id = only.message.id;
            let has_come = only.message.created_at <= world.now.wall;
            world
                .oracle
                .answer_targets
                .note_keys_wanted(id, has_come, self.turn.no, part);
        }
    }

    fn notice_exit_if_any(&mut self, world: &mut World<'_>) -> Checked {
        if !self.program.is_alive && self.ended.is_none() {
            return self.notice_exit(world);
        }
        Ok(())
    }

    fn step_commit(&mut self, n: usize, world: &mut World<'_>) -> Checked {
        let mut commit = self.commits.remove(n);
        if let Some(result) = commit.result.take() {
            return self.report(result, world);
        }
        let id = commit.id;
        let recorded = match &commit.operation {
            JournalOperation::RecordStep { ids, report } => {
                world.journal.record_step(world.now, ids, report)
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
                let recorded = world.journal.record_conversation(world.now, conversation);
                recorded.map(|()| Vec::new())
            }
            JournalOperation::OpenAsk { id, opened } => {
                let opened = world.journal.open_ask(world.now, *id, opened);
                opened.map(|()| Vec::new())
            }
            JournalOperation::CloseAsk { ask, reason } => {
                let closed = world.journal.close_ask(world.now, *ask, reason);
                closed.map(|()| Vec::new())
            }
            JournalOperation::SettleEarlierOffers(resumed) => {
                let rows = world.transcripts.get(&resumed.id);
                let rows = rows.filter(|_| resumed.transcript.is_some());
                let given = rows.map(|rows| given(rows));
                let settled = world.journal.settle(world.now, given.as_deref());
                settled.map(|()| Vec::new())
            }
        };
        commit.result = Some(match recorded {
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

    fn report_lease(&mut self, user: KeyboardUser, world: &mut World<'_>) -> Checked {
        match self.work_of(user).lease.take() {
            Some(LeaseState::Done(input)) => self.report(input, world),
            other @ (Some(LeaseState::Requested) | None) => {
                self.work_of(user).lease = other;
                Ok(())
            }
        }
    }

    fn step_mail_read(&mut self, world: &mut World<'_>) -> Checked {
        match self.mail_read.take() {
            Some(MailReadState::Requested) if world.journal.disk == Disk::Broken => {
                self.mail_is_unreadable = true;
                self.tell(Input::MailUnreadable, world)
            }
            Some(MailReadState::Requested) => {
                self.mail_read = Some(MailReadState::Found(
                    world.journal.read_mail(world.now.wall),
                ));
                Ok(())
            }
            Some(MailReadState::Found(view)) => self.tell(Input::MailRead(view), world),
            None => Ok(()),
        }
    }

    fn notice_exit(&mut self, world: &mut World<'_>) -> Checked {
        self.ended = Some(world.now.mono);
        self.turn_work.stop();
        self.nudge_work.stop();
        self.mail_read = None;
        world.oracle.note_text_cut_off();
        self.tell(Input::Exited(Ending::Exit(0)), world)
    }
}

/// Format a time of the run in seconds.
pub(crate) fn clock(mono: Duration) -> String {
    format!("{:8.3}", mono.as_secs_f64())
}
