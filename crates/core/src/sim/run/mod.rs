//! One run: a script is played line by line, and every law is checked after every step.

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
use crate::sim::script::{Act, Crash, Deed, Line, Nature, Script, Way};
use crate::sim::session::actions::clock;
use crate::sim::session::{Going, Session, World};
use crate::sim::world::hook_calls::{Called, Typed};
use crate::sim::world::journal::Journal;
use crate::sim::world::senders::Sender;
use crate::sim::world::terminal::{Piece, Waiting};
use crate::sim::world::transcript::Transcripts;
use jiff::SignedDuration;
use std::time::Duration;
use uuid::Uuid;

/// Time between two steps: no two steps have the same time.
const INSTANT: Duration = Duration::from_micros(1);

/// Something that can take its next step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    Session(Going),
    /// The session records how its run ended.
    End,
    Sender(usize),
    Call(usize),
}

#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) now: Moment,
    pub(crate) nature: Nature,
    crash: Option<Crash>,
    fault: Option<Fault>,
    pub(crate) steps: u32,
    pub(crate) agent: AgentName,
    pub(crate) journal: Journal,
    pub(crate) oracle: Oracle,
    pub(crate) session: Option<Session>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) calls: Vec<Called>,
    pub(crate) turns: Vec<Typed>,
    transcripts: Transcripts,
    pub(crate) drafts: Vec<Draft>,
    /// A message was stored, and the session was not told.
    pub(crate) has_missed_bell: bool,
    runs: u128,
    /// Number of hook calls of agents without a session that have asked for mail.
    pub(crate) injects: u32,
    /// Numbers of journal writes and of acknowledged messages at the last check.
    written: (usize, usize),
    pub(crate) trace: Trace,
}

/// Play a whole script. Return the first broken law, the trace and the number of steps.
pub(crate) fn play(script: &Script, trace: Trace) -> (Checked, Trace, u32) {
    play_with(None, script, trace)
}

/// Like [`play`], but with a fault.
pub(crate) fn play_with(
    fault: Option<Fault>,
    script: &Script,
    trace: Trace,
) -> (Checked, Trace, u32) {
    let mut play = Play::new(script, trace, fault);
    let played = script
        .lines
        .iter()
        .try_for_each(|line| play.line(*line))
        .and_then(|()| play.end_well());
    (played, play.trace, play.steps)
}

impl Play {
    pub(crate) fn new(script: &Script, trace: Trace, fault: Option<Fault>) -> Self {
        let agent = name("coder");
        Self {
            now: ms(0),
            nature: script.nature,
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
        };
        Some((self.session.as_mut()?, world))
    }

    pub(crate) fn line(&mut self, line: Line) -> Checked {
        let now = self.now.mono;
        self.trace.note(|| format!("{} {line:?}", clock(now)));
        match line {
            Line::Step(n) => {
                if let Some(next) = nth(&self.next(), n).copied() {
                    self.step(next)?;
                }
            }
            Line::Run(steps) => {
                for n in 0..steps {
                    let Some(next) = nth(&self.next(), n).copied() else {
                        break;
                    };
                    self.step(next)?;
                }
            }
            Line::Wait(millis) => self.wait(millis)?,
            Line::Stall(millis) => self.stall(millis)?,
            Line::Tick => self.tell(Input::PeriodicCheck)?,
            Line::Clock(seconds) => self.set_clock(seconds)?,
            Line::Post(post) => self.post(post),
            Line::Again(n) => self.post_again(n, |_| {}),
            Line::Forged(n) => self.post_again(n, |draft| {
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
            Line::Word(n) => self.call_falsely(n),
            Line::Agent(act) => {
                if let Some((session, mut world)) = self.session() {
                    session.agent.act(act);
                    session.terminal.is_breaking |= act == Act::BreakWrite;
                    match act {
                        Act::Hook => session.call_hook(&mut world)?,
                        Act::KillHooks => session.kill_hooks(),
                        _ => {}
                    }
                }
            }
            Line::Person(deed) => self.deed(deed)?,
            Line::Disk(disk) => self.journal.disk = disk,
            Line::Kill => self.kill(),
            Line::Blackout(luck) => self.lose_power(luck),
            Line::Start => self.start()?,
        }
        self.check()
    }

    /// List everything that can take its next step now.
    pub(crate) fn next(&self) -> Vec<Next> {
        let mut all = Vec::new();
        if let Some(session) = &self.session {
            all.extend(session.going().into_iter().map(Next::Session));
            all.extend(session.is_over().then_some(Next::End));
        }
        all.extend((0..self.senders.len()).map(Next::Sender));
        all.extend((0..self.calls.len()).map(Next::Call));
        all
    }

    pub(crate) fn step(&mut self, next: Next) -> Checked {
        self.steps += 1;
        self.pass(INSTANT);
        if let Some(crash) = self.crash.filter(|crash| crash.at == self.steps) {
            self.line(crash.line)?;
            return self.line(Line::Start);
        }
        match next {
            Next::Session(going) => {
                if let Some((session, mut world)) = self.session() {
                    session.step(going, &mut world)?;
                }
            }
            Next::End => {
                if let Some(run) = self.drop_session() {
                    // What is not recorded, the next session will find out.
                    let _ = self.journal.end(self.now, run, Ending::Exit(0));
                }
            }
            Next::Sender(n) => self.go_on_sending(n)?,
            Next::Call(n) => self.hear_call(n)?,
        }
        self.check()
    }

    /// Check the laws that hold after every step.
    fn check(&mut self) -> Checked {
        self.collect_calls();
        let facts = self.journal.facts();
        for fact in &facts[self.oracle.ledger.heard()..] {
            self.trace.note(|| format!("  fact: {}", told(fact)));
        }
        self.oracle.ledger.hear(facts)?;
        self.is_kept()?;
        let is_ours = |l: &&MessageState| l.message.to == self.agent;
        for state in self.journal.mail().all().filter(is_ours) {
            self.oracle.ledger.has_status(state)?;
            explanations::check(self.now, &self.oracle, state, self.session.as_ref())?;
        }
        Ok(())
    }

    /// Check that every acknowledged message exists and is synced, if anything was written since.
    fn is_kept(&mut self) -> Checked {
        let written = (self.journal.written(), self.oracle.acknowledged().count());
        if self.written == written {
            return Ok(());
        }
        self.written = written;
        for id in self.oracle.acknowledged() {
            let is_there = self.journal.mail().get(id).is_some();
            Law::NothingLost.holds(is_there, || format!("{} is gone", id.id8()))?;
            let is_synced = self.journal.is_synced(id);
            Law::OnDiskFirst.holds(is_synced, || {
                format!("{} was acknowledged, and is not synced", id.id8())
            })?;
        }
        Ok(())
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall += SignedDuration::try_from(time).unwrap_or_default();
    }

    pub(crate) fn wake(&mut self) -> Checked {
        let now = self.now.mono;
        if let Some((session, mut world)) = self.session() {
            session.agent.run(now);
            session.proceed(&mut world)?;
        }
        self.check()
    }

    /// Let time pass, and wake what wants to be woken meanwhile.
    fn wait(&mut self, millis: u32) -> Checked {
        let until = self.now.mono + Duration::from_millis(millis.into());
        while let Some(at) = self.wakeup().filter(|at| *at <= until) {
            self.pass(at.saturating_sub(self.now.mono));
            self.wake()?;
        }
        self.pass(until.saturating_sub(self.now.mono));
        Ok(())
    }

    /// Let time pass without waking anything; then wake what is late.
    fn stall(&mut self, millis: u32) -> Checked {
        self.pass(Duration::from_millis(millis.into()));
        self.wake()
    }

    /// Set the wall clock. Only the periodic check finds out.
    fn set_clock(&mut self, seconds: i32) -> Checked {
        self.now.wall += SignedDuration::from_secs(seconds.into());
        if seconds < 0 {
            self.oracle.was_set_back = true;
            self.oracle.aims.sets_back();
        }
        self.tell(Input::PeriodicCheck)
    }

    pub(crate) fn wakeup(&self) -> Option<Duration> {
        self.session.as_ref()?.wakeup(self.now)
    }

    /// Tell the session that the journal has changed.
    pub(crate) fn ring(&mut self) -> Checked {
        let head = self.journal.head();
        self.tell(Input::JournalChanged { head })
    }

    /// Tell the driver of something that happened outside.
    pub(crate) fn tell(&mut self, input: Input) -> Checked {
        match self.session() {
            Some((session, mut world)) if !session.is_ending() => {
                session.tell(input, &mut world)?;
                session.proceed(&mut world)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn deed(&mut self, deed: Deed) -> Checked {
        let Some((session, mut world)) = self.session() else {
            return Ok(());
        };
        if session.is_ending() {
            return Ok(());
        }
        let mut keys = |piece| session.terminal.queue.push_back(Waiting::Piece(piece));
        match deed {
            Deed::Type => keys(Piece::Key),
            Deed::Submit => keys(Piece::Submit),
            Deed::Clear => keys(Piece::Clear),
            Deed::Checkpoint => {
                world.oracle.told.is_checkpoint_wanted = true;
                session.tell(Input::CheckpointRequested, &mut world)?;
            }
            Deed::Pause(by) => session.tell(Input::Paused(by), &mut world)?,
            Deed::Release(by) => session.tell(Input::Unpaused(by), &mut world)?,
        }
        session.proceed(&mut world)
    }

    /// Kill the session. Its senders send again under the same id, past the session.
    pub(crate) fn kill(&mut self) {
        self.drop_session();
        for sender in &mut self.senders {
            if sender.way == Way::Socket {
                sender.way = Way::Direct;
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
        let resumed = resumed.filter(|c| self.nature.resumes && is_there(c));
        let rows = resumed.as_ref().and_then(|c| {
            let rows = self.transcripts.get(&c.id);
            rows.filter(|_| c.transcript.is_some())
        });
        self.oracle
            .ledger
            .resumes(resumed.as_ref().map(|_| rows.map_or(&[][..], |rows| rows)));
        let recorded = self.journal.start(self.now, &begun, resumed.as_ref());
        // The session may have recorded only its start: then it has crashed.
        if recorded.is_ok() {
            self.oracle.begin(self.nature, self.now);
            let session = Session::new(self.nature, self.now, begun.run, resumed, self.fault);
            self.session = Some(session);
            self.has_missed_bell = false;
        }
        self.ring()
    }

    /// The session and its program are gone, and with them the prompts that the program has queued.
    fn drop_session(&mut self) -> Option<Uuid> {
        let session = self.session.take()?;
        // Without a hook, no proof is awaited.
        let is_awaited = match self.nature.records {
            true => session.is_named,
            false => session.is_heard,
        };
        if self.nature.proves && is_awaited {
            for turns in session.agent.queued() {
                let ids = Session::gets(turns, &self.turns);
                self.oracle.ledger.record_lost_queue(&ids);
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
        self.oracle.ledger.read_again(self.journal.facts());
    }
}

/// Return a fact in a few words.
fn told(fact: &Fact) -> String {
    let kind = fact.event.kind();
    match &fact.event {
        fact::Event::Message(_) => format!("{kind} {}", MessageId(fact.id).id8()),
        fact::Event::Progress(progress) => {
            let time = progress.attempt.map(|attempt| format!("time {attempt}"));
            let said = [&progress.reason, &progress.evidence, &time];
            let said: Vec<&str> = said.into_iter().flatten().map(String::as_str).collect();
            format!("{kind} {} {}", progress.message.id8(), said.join(", "))
        }
        fact::Event::Started(_)
        | fact::Event::Ended(_)
        | fact::Event::Conversation(_)
        | fact::Event::Work(_)
        | fact::Event::Loop(_) => kind.to_owned(),
    }
}

/// Return the element that a script names by a number.
pub(crate) fn nth<T>(all: &[T], n: u8) -> Option<&T> {
    all.get(usize::from(n) % all.len().max(1))
}
