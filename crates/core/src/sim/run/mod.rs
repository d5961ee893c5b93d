//! One run: plays a script line by line and checks every law after every step.

pub(crate) mod fault_free_ending;
pub(crate) mod outcome;
pub(crate) mod trace;

use crate::activity::tests::ms;
use crate::driver::Input;
use crate::fact::{self, Fact};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::mail::tests::name;
use crate::message::Body;
use crate::moment::Moment;
use crate::name::AgentName;
use crate::post::Draft;
use crate::session::tests::started;
use crate::session::{Conversation, Ending};
use crate::sim::faults::Fault;
use crate::sim::oracle::Oracle;
use crate::sim::oracle::explanations;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::run::trace::Trace;
use crate::sim::script::{
    ApiBehaviour, Crash, Line, PersonAction, ProgramAction, ProgramProfile, Script, SendRoute,
};
use crate::sim::session::actions::clock;
use crate::sim::session::{Session, SessionStep, World};
use crate::sim::world::hook_calls::{PendingHookCall, WrittenText};
use crate::sim::world::journal::Journal;
use crate::sim::world::senders::Sender;
use crate::sim::world::terminal::{KeyboardRequest, Piece};
use crate::sim::world::transcript::Transcripts;
use jiff::SignedDuration;
use std::time::Duration;
use uuid::Uuid;

/// Time between two steps, so that no two steps happen at the same time.
const INSTANT: Duration = Duration::from_micros(1);

/// A possible step of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunStep {
    Session(SessionStep),
    /// The session records how its run ended.
    End,
    Sender(usize),
    Call(usize),
}

#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) now: Moment,
    pub(crate) profile: ProgramProfile,
    crash: Option<Crash>,
    fault: Option<Fault>,
    pub(crate) steps: u32,
    pub(crate) agent: AgentName,
    pub(crate) journal: Journal,
    pub(crate) oracle: Oracle,
    pub(crate) session: Option<Session>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) calls: Vec<PendingHookCall>,
    pub(crate) turns: Vec<WrittenText>,
    transcripts: Transcripts,
    pub(crate) api: ApiBehaviour,
    pub(crate) drafts: Vec<Draft>,
    /// Whether a message was stored without a notification of the session.
    pub(crate) has_missed_bell: bool,
    runs: u128,
    /// Number of hook calls of agents without a session that have asked for mail.
    pub(crate) injects: u32,
    /// Numbers of journal writes and of acknowledged messages at the last check.
    written: (usize, usize),
    pub(crate) trace: Trace,
}

/// Play a whole script. Return the first broken law, the trace and the number of steps.
pub(crate) fn run_script(script: &Script, trace: Trace) -> (Checked, Trace, u32) {
    run_script_with(None, script, trace)
}

/// Like [`run_script`], but with a fault.
pub(crate) fn run_script_with(
    fault: Option<Fault>,
    script: &Script,
    trace: Trace,
) -> (Checked, Trace, u32) {
    let mut simulation = Simulation::new(script, trace, fault);
    let played = script
        .lines
        .iter()
        .try_for_each(|line| simulation.line(*line))
        .and_then(|()| simulation.end_without_faults());
    (played, simulation.trace, simulation.steps)
}

impl Simulation {
    pub(crate) fn new(script: &Script, trace: Trace, fault: Option<Fault>) -> Self {
        let agent = name("coder");
        Self {
            now: ms(0),
            profile: script.profile,
            crash: script.crash,
            fault,
            steps: 0,
            journal: Journal::new(agent.clone(), fault),
            agent,
            oracle: Oracle::default(),
            session: None,
            senders: Vec::new(),
            calls: Vec::new(),
            turns: Vec::new(),
            transcripts: Transcripts::new(),
            api: ApiBehaviour::default(),
            drafts: Vec::new(),
            has_missed_bell: false,
            runs: 0,
            injects: 0,
            written: (0, 0),
            trace,
        }
    }

    /// Return the session and its surroundings.
    pub(crate) fn session(&mut self) -> Option<(&mut Session, World<'_>)> {
        let world = World {
            now: self.now,
            journal: &mut self.journal,
            oracle: &mut self.oracle,
            trace: &mut self.trace,
            turns: &mut self.turns,
            transcripts: &mut self.transcripts,
            api: self.api,
        };
        Some((self.session.as_mut()?, world))
    }

    pub(crate) fn line(&mut self, line: Line) -> Checked {
        let now = self.now.mono;
        self.trace.note(|| format!("{} {line:?}", clock(now)));
        match line {
            Line::Step(n) => {
                if let Some(next) = nth(&self.possible_steps(), n).copied() {
                    self.step(next)?;
                }
            }
            Line::Steps(steps) => {
                for n in 0..steps {
                    let Some(next) = nth(&self.possible_steps(), n).copied() else {
                        break;
                    };
                    self.step(next)?;
                }
            }
            Line::Wait(millis) => self.wait(millis)?,
            Line::Stall(millis) => self.stall(millis)?,
            Line::PeriodicCheck => self.tell(Input::PeriodicCheck)?,
            Line::SetClock(seconds) => self.set_clock(seconds)?,
            Line::Post(post) => self.post(post),
            Line::Resend(n) => self.post_again(n, |_| {}),
            Line::ResendChanged(n) => self.post_again(n, |draft| {
                draft.body = Body::Inline("something else".to_owned());
            }),
            Line::Order(order, n) => self.order(order, n)?,
            Line::Inject => self.inject()?,
            Line::Nudge(n) => {
                if let Some((session, mut world)) = self.session() {
                    session.request_nudge(n, &mut world)?;
                }
            }
            Line::CheckAnswer => {
                if let Some((session, mut world)) = self.session() {
                    session.request_answer(&mut world)?;
                }
            }
            Line::Api(behaviour) => self.api = behaviour,
            Line::MisleadingHook(n) => self.call_misleading_hook(n),
            Line::Program(act) => {
                if let Some((session, mut world)) = self.session() {
                    session.program.perform(now, act);
                    session.terminal.next_write_fails |= act == ProgramAction::FailNextWrite;
                    match act {
                        ProgramAction::CallHook => session.call_hook(&mut world)?,
                        ProgramAction::KillHooks => session.kill_hooks(),
                        _ => {}
                    }
                }
            }
            Line::Person(action) => self.perform_person_action(action)?,
            Line::Disk(disk) => self.journal.disk = disk,
            Line::Kill => self.kill(),
            Line::PowerCut(luck) => self.lose_power(luck),
            Line::Start => self.start()?,
        }
        self.check()
    }

    /// List the possible steps.
    pub(crate) fn possible_steps(&self) -> Vec<RunStep> {
        let mut all = Vec::new();
        if let Some(session) = &self.session {
            all.extend(session.possible_steps().into_iter().map(RunStep::Session));
            all.extend(session.is_over().then_some(RunStep::End));
        }
        all.extend((0..self.senders.len()).map(RunStep::Sender));
        all.extend((0..self.calls.len()).map(RunStep::Call));
        all
    }

    pub(crate) fn step(&mut self, next: RunStep) -> Checked {
        self.steps += 1;
        self.advance(INSTANT);
        if let Some(crash) = self.crash.filter(|crash| crash.at == self.steps) {
            self.line(crash.line)?;
            return self.line(Line::Start);
        }
        match next {
            RunStep::Session(step) => {
                if let Some((session, mut world)) = self.session() {
                    session.step(step, &mut world)?;
                }
            }
            RunStep::End => {
                if let Some(run) = self.drop_session() {
                    // If the end cannot be recorded, the next session detects it.
                    let _ = self.journal.end(self.now, run, Ending::Exit(0));
                }
            }
            RunStep::Sender(n) => self.step_sender(n)?,
            RunStep::Call(n) => self.deliver_hook_call(n)?,
        }
        self.check()
    }

    /// Check the laws that hold after every step.
    fn check(&mut self) -> Checked {
        self.collect_calls();
        let facts = self.journal.facts();
        for fact in &facts[self.oracle.ledger.facts_read()..] {
            self.trace
                .note(|| format!("  fact: {}", describe_fact(fact)));
        }
        self.oracle.ledger.read_facts(facts)?;
        self.check_acknowledged()?;
        let is_ours = |state: &&MessageState| state.message.to == self.agent;
        for state in self.journal.mail().all().filter(is_ours) {
            self.oracle.ledger.check_status(state)?;
            explanations::check(self.now, &self.oracle, state, self.session.as_ref())?;
        }
        Ok(())
    }

    /// Check that every acknowledged message exists and is synced. Skipped if nothing has changed.
    fn check_acknowledged(&mut self) -> Checked {
        let written = (self.journal.written(), self.oracle.acknowledged().count());
        if self.written == written {
            return Ok(());
        }
        self.written = written;
        for id in self.oracle.acknowledged() {
            let is_there = self.journal.mail().get(id).is_some();
            Law::NothingLost.holds(is_there, || format!("{} is missing", id.id8()))?;
            let is_synced = self.journal.is_synced(id);
            Law::OnDiskFirst.holds(is_synced, || {
                format!("{} was acknowledged, and is not synced", id.id8())
            })?;
        }
        Ok(())
    }

    pub(crate) fn advance(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall += SignedDuration::try_from(time).unwrap_or_default();
    }

    pub(crate) fn wake(&mut self) -> Checked {
        let now = self.now.mono;
        if let Some((session, mut world)) = self.session() {
            session.program.run(now);
            session.perform_actions(&mut world)?;
        }
        self.check()
    }

    /// Let time pass, and fire timers when they are due.
    fn wait(&mut self, millis: u32) -> Checked {
        let until = self.now.mono + Duration::from_millis(millis.into());
        while let Some(at) = self.wakeup().filter(|at| *at <= until) {
            self.advance(at.saturating_sub(self.now.mono));
            self.wake()?;
        }
        self.advance(until.saturating_sub(self.now.mono));
        Ok(())
    }

    /// Let time pass without firing timers, then fire those that are late.
    fn stall(&mut self, millis: u32) -> Checked {
        self.advance(Duration::from_millis(millis.into()));
        self.wake()
    }

    /// Set the wall clock. The session notices at the periodic check.
    fn set_clock(&mut self, seconds: i32) -> Checked {
        self.now.wall += SignedDuration::from_secs(seconds.into());
        if seconds < 0 {
            self.oracle.was_set_back = true;
            self.oracle.answer_targets.note_clock_set_back();
        }
        self.tell(Input::PeriodicCheck)
    }

    pub(crate) fn wakeup(&self) -> Option<Duration> {
        self.session.as_ref()?.wakeup(self.now)
    }

    /// Notify the session that the journal has changed.
    pub(crate) fn notify_journal_change(&mut self) -> Checked {
        let head = self.journal.head();
        self.tell(Input::JournalChanged { head })
    }

    /// Report an external event to the driver.
    pub(crate) fn tell(&mut self, input: Input) -> Checked {
        match self.session() {
            Some((session, mut world)) if !session.is_ending() => {
                session.tell(input, &mut world)?;
                session.perform_actions(&mut world)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn perform_person_action(&mut self, action: PersonAction) -> Checked {
        let Some((session, mut world)) = self.session() else {
            return Ok(());
        };
        if session.is_ending() {
            return Ok(());
        }
        let mut keys = |piece| {
            session
                .terminal
                .queue
                .push_back(KeyboardRequest::Piece(piece));
        };
        match action {
            PersonAction::Type => keys(Piece::Key),
            PersonAction::Submit => keys(Piece::Submit),
            PersonAction::Clear => keys(Piece::Clear),
            PersonAction::TakeBack => keys(Piece::TakeBack),
            PersonAction::Checkpoint => {
                world.oracle.record.is_checkpoint_wanted = true;
                session.tell(Input::CheckpointRequested, &mut world)?;
            }
            PersonAction::Pause(by) => session.tell(Input::Paused(by), &mut world)?,
            PersonAction::Release(by) => session.tell(Input::Unpaused(by), &mut world)?,
        }
        session.perform_actions(&mut world)
    }

    /// Kill the session. Its senders retry with the same id, and write to the journal themselves.
    pub(crate) fn kill(&mut self) {
        self.drop_session();
        for sender in &mut self.senders {
            if sender.route == SendRoute::Socket {
                sender.route = SendRoute::Direct;
                sender.stored = None;
            }
        }
    }

    pub(crate) fn start(&mut self) -> Checked {
        if self.session.is_some() {
            return Ok(());
        }
        self.runs += 1;
        let begun = started(self.runs);
        let resumed = self.journal.conversation().cloned();
        let is_there =
            |c: &Conversation| c.transcript.is_none() || self.transcripts.contains_key(&c.id);
        let resumed = resumed.filter(|c| self.profile.resumes_conversation && is_there(c));
        let rows = resumed.as_ref().and_then(|c| {
            let rows = self.transcripts.get(&c.id);
            rows.filter(|_| c.transcript.is_some())
        });
        self.oracle
            .ledger
            .note_resumed(resumed.as_ref().map(|_| rows.map_or(&[][..], |rows| rows)));
        let recorded = self.journal.start(self.now, &begun, resumed.as_ref());
        // If the start could be recorded only in part, the session has crashed.
        if recorded.is_ok() {
            self.oracle.begin_session(self.profile, self.now);
            let session = Session::new(self.profile, self.now, begun.run, resumed, self.fault);
            self.session = Some(session);
            self.has_missed_bell = false;
        }
        self.notify_journal_change()
    }

    /// Remove the session and its program, and record the loss of the prompts that the program has
    /// queued.
    fn drop_session(&mut self) -> Option<Uuid> {
        let session = self.session.take()?;
        // The session awaits proof only after a hook call.
        let is_awaited = match self.profile.transcript_proves {
            true => session.is_transcript_named,
            false => session.has_hook_report,
        };
        if self.profile.hooks_report && is_awaited {
            for turns in session.program.queued() {
                let ids = Session::received(turns, &self.turns);
                self.oracle.ledger.note_lost_queue(&ids);
            }
        }
        Some(session.run)
    }

    fn lose_power(&mut self, luck: u8) {
        self.drop_session();
        self.senders.clear();
        self.calls.clear();
        let change = self.journal.lose_power(luck);
        self.trace.note(|| format!("  {change}"));
        self.oracle.ledger.reload(self.journal.facts());
    }
}

/// Describe a fact in a few words.
fn describe_fact(fact: &Fact) -> String {
    let kind = fact.event.kind();
    match &fact.event {
        fact::Event::Message(_) => format!("{kind} {}", MessageId(fact.id).id8()),
        fact::Event::Progress(progress) => {
            let time = progress.attempt.map(|attempt| format!("time {attempt}"));
            let details = [&progress.reason, &progress.evidence, &time];
            let details: Vec<&str> = details.into_iter().flatten().map(String::as_str).collect();
            format!("{kind} {} {}", progress.message.id8(), details.join(", "))
        }
        fact::Event::Started(_)
        | fact::Event::Ended(_)
        | fact::Event::Conversation(_)
        | fact::Event::Work(_)
        | fact::Event::Loop(_)
        | fact::Event::Ask(_) => kind.to_owned(),
    }
}

/// Return the element that a script names by number `n`.
pub(crate) fn nth<T>(all: &[T], n: u8) -> Option<&T> {
    all.get(usize::from(n) % all.len().max(1))
}
