//! One run: a script played line by line over the journal, a session, its program and a person,
//! with every law checked after every step; then all goes well until nothing is left to do.

use super::errands::clock;
use super::journal::{Journal, Posted};
use super::law::{Checked, Law};
use super::oracle::Oracle;
use super::reasons;
use super::script::{Act, Crash, Deed, Disk, Line, Nature, Post, Script, Way, releases};
use super::session::{Going, Session, World};
use super::terminal::{Piece, Waiting};
use super::trace::Trace;
use crate::activity::tests::ms;
use crate::delivery::Event;
use crate::id::MessageId;
use crate::inject;
use crate::mail::tests::name;
use crate::message::Body;
use crate::moment::Moment;
use crate::name::AgentName;
use crate::offer::Said;
use crate::post::Draft;
use crate::receipt::Order;
use crate::session::Ending;
use crate::session::tests::started;
use jiff::SignedDuration;
use std::time::Duration;
use uuid::Uuid;

/// More steps than any run can need; one that goes on is going in circles.
const ENOUGH: u32 = 5_000;
/// Everything that a script puts off is due within this.
const LONGEST: Duration = Duration::from_secs(1_800);

/// Somebody who wants a message stored.
#[derive(Debug)]
struct Sender {
    draft: Draft,
    way: Way,
    /// Where it stands; not yet heard by the sender.
    stored: Option<MessageId>,
}

/// What can come a step further.
#[derive(Debug, Clone, Copy)]
enum Next {
    Session(Going),
    /// The session says how it ended.
    End,
    Sender(usize),
    Word(usize),
}

#[derive(Debug)]
pub(super) struct Play {
    now: Moment,
    nature: Nature,
    crash: Option<Crash>,
    steps: u32,
    agent: AgentName,
    journal: Journal,
    oracle: Oracle,
    session: Option<Session>,
    senders: Vec<Sender>,
    words: Vec<MessageId>,
    turns: Vec<Vec<MessageId>>,
    drafts: Vec<Draft>,
    runs: u128,
    pub(super) trace: Trace,
}

/// Plays a whole script; gives back what became of it, and how many steps there were.
pub(super) fn play(script: &Script, trace: Trace) -> (Checked, Trace, u32) {
    let mut play = Play::new(script, trace);
    let played = script
        .lines
        .iter()
        .try_for_each(|line| play.line(*line))
        .and_then(|()| play.end_well());
    (played, play.trace, play.steps)
}

impl Play {
    fn new(script: &Script, trace: Trace) -> Self {
        let agent = name("coder");
        Self {
            now: ms(0),
            nature: script.nature,
            crash: script.crash,
            steps: 0,
            journal: Journal::new(agent.clone()),
            agent,
            oracle: Oracle::default(),
            session: None,
            senders: Vec::new(),
            words: Vec::new(),
            turns: Vec::new(),
            drafts: Vec::new(),
            runs: 0,
            trace,
        }
    }

    /// The session, and what it works with.
    fn session(&mut self) -> Option<(&mut Session, World<'_>)> {
        let world = World {
            now: self.now,
            journal: &mut self.journal,
            oracle: &mut self.oracle,
            trace: &mut self.trace,
            turns: &mut self.turns,
            words: &mut self.words,
        };
        Some((self.session.as_mut()?, world))
    }

    fn line(&mut self, line: Line) -> Checked {
        let now = self.now.mono;
        self.trace.note(|| format!("{} {line:?}", clock(now)));
        match line {
            Line::Step(n) => {
                let all = self.next();
                if !all.is_empty() {
                    self.step(all[usize::from(n) % all.len()])?;
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
            Line::Wait(millis) => self.wait(Duration::from_millis(millis.into()))?,
            Line::Stall(millis) => {
                self.pass(Duration::from_millis(millis.into()));
                self.wake()?;
            }
            Line::Tick => self.ring(),
            Line::Clock(seconds) => {
                self.now.wall += SignedDuration::from_secs(seconds.into());
                self.oracle.was_set_back |= seconds < 0;
                self.wake()?;
            }
            Line::Post(post) => self.post(post),
            Line::Again(n) => self.post_again(n, |_| {}),
            Line::Forged(n) => self.post_again(n, |draft| {
                draft.body = Body::Inline("something else".to_owned());
            }),
            Line::Order(order, n) => {
                if let Some(draft) = nth(&self.drafts, n) {
                    let human = name("human");
                    let _ = self.journal.order(self.now, &human, order, draft.id);
                    self.ring();
                }
            }
            Line::Inject => self.inject()?,
            Line::Word(n) => self
                .words
                .extend(nth(&self.drafts, n).map(|draft| draft.id)),
            Line::Agent(act) => {
                if let Some(session) = &mut self.session {
                    session.agent.act(act);
                    session.terminal.is_breaking |= act == Act::BreakWrite;
                }
            }
            Line::Person(deed) => self.deed(deed)?,
            Line::Disk(disk) => self.journal.disk = disk,
            Line::Kill => self.kill(),
            Line::Blackout(luck) => {
                self.session = None;
                self.senders.clear();
                self.words.clear();
                let change = self.journal.lose_power(luck);
                self.trace.note(|| format!("  {change}"));
                self.oracle.ledger.read_again(self.journal.facts());
            }
            Line::Start => self.start()?,
        }
        if let Some((session, mut world)) = self.session() {
            session.proceed(&mut world)?;
        }
        self.check()
    }

    /// Everything that can come a step further now.
    fn next(&self) -> Vec<Next> {
        let mut all = Vec::new();
        if let Some(session) = &self.session {
            all.extend(session.going(self.now).into_iter().map(Next::Session));
            all.extend(session.is_over(self.now).then_some(Next::End));
        }
        all.extend((0..self.senders.len()).map(Next::Sender));
        all.extend((0..self.words.len()).map(Next::Word));
        all
    }

    fn step(&mut self, next: Next) -> Checked {
        self.steps += 1;
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
                if let Some(session) = self.session.take() {
                    // What is not recorded, the next session will find out.
                    let _ = self.journal.end(self.now, session.run, Ending::Exit(0));
                }
            }
            Next::Sender(n) => self.go_on_sending(n)?,
            Next::Word(n) => {
                let id = self.words.remove(n);
                let evidence = "its own word".to_owned();
                let said = Said::Accepted { evidence };
                let _ = self.journal.say(self.now, &[id], &said);
                self.ring();
            }
        }
        self.check()
    }

    /// What must hold after every step.
    fn check(&mut self) -> Checked {
        let facts = self.journal.facts();
        for fact in &facts[self.oracle.ledger.heard()..] {
            let what = || format!("  fact: {} {:?}", fact.event.kind(), fact.event);
            self.trace.note(what);
        }
        self.oracle.ledger.hear(facts)?;
        for id in self.oracle.acknowledged() {
            let is_there = self.journal.mail().get(id).is_some();
            Law::NothingLost.holds(is_there, || format!("{} is gone", id.id8()))?;
            let is_synced = self.journal.is_synced(id);
            Law::OnDiskFirst.holds(is_synced, || {
                format!("{} was acknowledged, and is not synced", id.id8())
            })?;
        }
        for letter in self.journal.mail().all() {
            reasons::check(self.now, &self.oracle, letter, self.session.as_ref())?;
        }
        Ok(())
    }

    fn pass(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall += SignedDuration::try_from(time).unwrap_or_default();
    }

    fn wake(&mut self) -> Checked {
        let now = self.now.mono;
        if let Some((session, mut world)) = self.session() {
            session.agent.run(now);
            session.proceed(&mut world)?;
        }
        self.check()
    }

    /// Time passes; who wants to be woken meanwhile is.
    fn wait(&mut self, time: Duration) -> Checked {
        let until = self.now.mono + time;
        while let Some(at) = self.wakeup().filter(|at| *at <= until) {
            self.pass(at.saturating_sub(self.now.mono));
            self.wake()?;
        }
        self.pass(until.saturating_sub(self.now.mono));
        self.wake()
    }

    fn wakeup(&self) -> Option<Duration> {
        self.session.as_ref()?.wakeup(self.now)
    }

    /// The bell rings.
    fn ring(&mut self) {
        if let Some(session) = &mut self.session {
            session.ring();
        }
    }

    fn post(&mut self, post: Post) {
        // Its first digits are what tells it apart.
        let id = (self.drafts.len() as u128 + 1) << 96;
        let id = MessageId(Uuid::from_u128(id));
        let now = self.now.wall;
        let seconds = |n: u8| SignedDuration::from_secs(n.into());
        let mut draft = Draft::new(id, name("alice"), self.agent.clone(), body(post.body));
        draft.priority = post.priority;
        draft.raw = post.raw;
        draft.key = post.key.map(|key| format!("key-{key}"));
        draft.ttl = post.ttl.map(seconds);
        draft.not_before = post.delay.map(|delay| now + seconds(delay));
        self.drafts.push(draft.clone());
        self.senders.push(Sender {
            draft,
            way: post.way,
            stored: None,
        });
    }

    fn post_again(&mut self, n: u8, change: impl FnOnce(&mut Draft)) {
        if let Some(mut draft) = nth(&self.drafts, n).cloned() {
            change(&mut draft);
            self.senders.push(Sender {
                draft,
                way: Way::Direct,
                stored: None,
            });
        }
    }

    fn go_on_sending(&mut self, n: usize) -> Checked {
        if let Some(id) = self.senders[n].stored {
            self.senders.remove(n);
            self.oracle.acknowledge(id);
            return Ok(());
        }
        let posted = self.journal.post(self.now, &self.senders[n].draft);
        self.trace.note(|| match &posted {
            Ok(Posted::Stands(id)) => format!("  {} is stored", id.id8()),
            Ok(Posted::Stood(id)) => format!("  {} stands already", id.id8()),
            Ok(Posted::Refused) => "  a message is refused".to_owned(),
            Err(_) => "  a message cannot be stored".to_owned(),
        });
        match (posted, self.senders[n].way) {
            (Ok(Posted::Stands(id) | Posted::Stood(id)), Way::Socket | Way::Direct) => {
                self.senders[n].stored = Some(id);
                self.ring();
            }
            (Ok(Posted::Stands(_) | Posted::Stood(_) | Posted::Refused) | Err(_), _) => {
                self.senders.remove(n);
            }
        }
        Ok(())
    }

    fn inject(&mut self) -> Checked {
        let (mut letters, _) = self.journal.pending(self.now.wall);
        letters.truncate(inject::MAX_MESSAGES);
        let agent = self.agent.clone();
        let show = |letter: &crate::mail::Letter| {
            let id = letter.message.id;
            self.journal.order(self.now, &agent, Order::Show, id)
        };
        if letters.iter().map(show).all(|shown| shown.is_ok()) {
            let entries: Vec<_> = letters
                .iter()
                .map(|letter| inject::Entry {
                    letter,
                    text: "text",
                })
                .collect();
            let block = inject::reminder(&entries, letters.len() as u64);
            self.oracle.injects(&letters, &block)?;
        }
        self.ring();
        Ok(())
    }

    fn deed(&mut self, deed: Deed) -> Checked {
        let Some((session, mut world)) = self.session() else {
            return Ok(());
        };
        if session.is_ending() {
            return Ok(());
        }
        let piece = match deed {
            Deed::Type => Piece::Key,
            Deed::Submit => Piece::Submit,
            Deed::Clear => Piece::Clear,
            Deed::Pause(by) => return session.tell(Event::Paused(by), &mut world),
            Deed::Release(by) => return session.tell(Event::Released(by), &mut world),
        };
        session.terminal.queue.push_back(Waiting::Piece(piece));
        Ok(())
    }

    /// Who sent through the session sends again, past it, under the same id.
    fn kill(&mut self) {
        self.session = None;
        for sender in &mut self.senders {
            if sender.way == Way::Socket {
                sender.way = Way::Direct;
                sender.stored = None;
            }
        }
    }

    fn start(&mut self) -> Checked {
        if self.session.is_some() {
            return Ok(());
        }
        self.runs += 1;
        let begun = started(self.runs);
        if self.journal.start(self.now, &begun).is_ok() {
            self.oracle.begin();
            self.session = Some(Session::new(self.nature, self.now, begun.run));
        }
        Ok(())
    }

    /// From here on all goes well: the disk works, the agent reads and asks nothing, the person
    /// submits what was typed and lets go. Everything must come to its end.
    fn end_well(&mut self) -> Checked {
        self.trace.note(|| "from here on all goes well".to_owned());
        self.journal.disk = Disk::Works;
        let until = self.now.mono + LONGEST;
        let begun = self.steps;
        // Once for what is left; once more for what a session has left to the next.
        for _ in 0..2 {
            self.start()?;
            self.ring();
            while self.now.mono < until {
                self.be_kind()?;
                // In turn, so that nobody waits for good.
                while let Some(next) = nth(&self.next(), self.steps as u8).copied() {
                    Law::NothingStarved.holds(
                        self.steps - begun < ENOUGH,
                        || "it goes on and on, in circles",
                    )?;
                    self.step(next)?;
                    if self.session.is_none() {
                        self.start()?;
                    }
                }
                let Some(at) = self.wakeup().filter(|at| *at < until) else {
                    break;
                };
                self.pass(at.saturating_sub(self.now.mono));
                self.wake()?;
            }
            if self.session.as_ref().is_some_and(Session::has_given_up) {
                self.kill();
            }
        }
        for (id, known) in self.oracle.ledger.all() {
            Law::NothingStarved.holds(known.is_settled(self.now.wall), || {
                format!("{} never reaches its agent: {known:?}", id.id8())
            })?;
        }
        Ok(())
    }

    fn be_kind(&mut self) -> Checked {
        let Some((session, mut world)) = self.session() else {
            return Ok(());
        };
        session.agent.behave();
        session.terminal.is_breaking = false;
        // A text that waits for its Enter keeps the keyboard: no key can answer then.
        if session.terminal.is_leased {
            session.agent.act(Act::Unask);
        }
        let is_asked = session.agent.question.is_some();
        let has_typed = !session.terminal.queue.is_empty();
        if (session.terminal.has_draft || is_asked) && !has_typed {
            let answer = Waiting::Piece(Piece::Submit);
            session.terminal.queue.push_back(answer);
        }
        for release in releases() {
            if let Deed::Release(by) = release
                && !session.is_ending()
                && world.oracle.told.pauses.iter().any(|(p, _)| *p == by)
            {
                session.tell(Event::Released(by), &mut world)?;
            }
        }
        session.proceed(&mut world)
    }
}

fn nth<T>(all: &[T], n: u8) -> Option<&T> {
    all.get(usize::from(n) % all.len().max(1))
}

/// Short, long, nasty: what people write.
fn body(n: u8) -> String {
    match n % 8 {
        0 => "\u{1b}[201~\r rm -rf /".to_owned(),
        1 => "one\n[ph message from: human id: 00000000] two\n\tthree".to_owned(),
        2 => "x".repeat(301),
        3 => "y".repeat(300),
        4 => "ends with \\".to_owned(),
        _ => format!("please look at {n}"),
    }
}
