//! The world of one session: it performs the driver's actions one step at a time, so that anything
//! can happen in between, and tells the driver what came of them. It decides nothing itself.

use super::agent::Agent;
use super::aims::Asked;
use super::calls::Typed;
use super::harness;
use super::hooked::Hooked;
use super::journal::Journal;
use super::oracle::{Oracle, PATH};
use super::script::Nature;
use super::terminal::{Terminal, TurnNo};
use super::trace::Trace;
use crate::delivery::{Desk, Manner, Reach};
use crate::driver::{CommitId, Input, MailView, Operation, RunIdentity, SessionDriver, Start};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::owed;
use crate::turn::{self, Input as InputMode};
use std::time::Duration;
use uuid::Uuid;

/// How long the last receipts of a session may take.
const LAST_RECEIPTS: Duration = Duration::from_secs(2);

/// What a session works with.
pub(super) struct World<'a> {
    pub(super) now: Moment,
    pub(super) journal: &'a mut Journal,
    pub(super) oracle: &'a mut Oracle,
    pub(super) trace: &'a mut Trace,
    /// Every turn that was ever written.
    pub(super) turns: &'a mut Vec<Typed>,
}

/// A request for the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lease {
    Asked,
    /// To be told to the driver.
    Said(Input),
}

/// A look at the screen that the driver wants.
#[derive(Debug)]
pub(super) enum Peek {
    Asked,
    /// To be told to the driver.
    Said(Glance),
}

/// A look at the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Glance {
    pub(super) sighting: Sighting,
    /// The question that really stood there.
    pub(super) asks: Option<Asked>,
}

/// Something that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stroke {
    First,
    Rest,
    Enter,
    /// To be told to the driver.
    Said(Input),
}

/// A commit that is under way.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: CommitId,
    pub(super) operation: Operation,
    /// To be told to the driver.
    pub(super) said: Option<Input>,
}

/// A read of the journal that is under way.
#[derive(Debug)]
pub(super) enum Read {
    Asked,
    Found(MailView),
}

/// What a turn tells the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cargo {
    Messages,
    /// That their answers are owed.
    Reminder,
}

/// The turn that is under way.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) cargo: Cargo,
    pub(super) no: TurnNo,
    pub(super) ids: Vec<MessageId>,
    pub(super) letters: Vec<Letter>,
    pub(super) input: Option<InputMode>,
    /// Its text is written, and how it ended not said.
    pub(super) is_open: bool,
    /// All of its text is.
    pub(super) is_whole: bool,
    pub(super) enters: u8,
    /// How often its text was typed.
    pub(super) attempts: u8,
}

impl Turn {
    pub(super) fn new(cargo: Cargo, ids: Vec<MessageId>) -> Self {
        Self {
            cargo,
            no: 0,
            ids,
            letters: Vec::new(),
            input: None,
            is_open: false,
            is_whole: false,
            enters: 0,
            attempts: 0,
        }
    }

    /// Its text, as the program takes it in.
    pub(super) fn text(&self) -> String {
        let text = match self.cargo {
            Cargo::Reminder => owed::reminder(&self.letters).into_bytes(),
            Cargo::Messages => {
                let entries: Vec<_> = self.letters.iter().map(turn_entry).collect();
                turn::render(&entries, self.input.unwrap_or(InputMode::Typed))
            }
        };
        turn::unclosed(&text)
    }
}

/// A letter, as it stands in a turn.
pub(super) fn turn_entry(letter: &Letter) -> turn::Entry<'_> {
    turn::Entry {
        letter,
        path: &PATH,
        telling: turn::Telling::Here,
    }
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) run: Uuid,
    pub(super) driver: SessionDriver,
    pub(super) agent: Agent,
    pub(super) terminal: Terminal,
    pub(super) read: Option<Read>,
    pub(super) lease: Option<Lease>,
    pub(super) stroke: Option<Stroke>,
    pub(super) peek: Option<Peek>,
    pub(super) commits: Vec<Commit>,
    /// What the terminal has seen last, and whether the driver was told.
    pub(super) sighted: Glance,
    pub(super) is_news: bool,
    pub(super) turn: Turn,
    /// One that waits for its Enter, while another goes before it.
    pub(super) parked: Option<Turn>,
    /// Calls of its hook that have mail.
    pub(super) hooks: Vec<Hooked>,
    /// How often its hook was called.
    pub(super) hook_calls: u64,
    /// Receipts that nobody will record any more.
    pub(super) given_up: Vec<MessageId>,
    pub(super) told_question: Option<String>,
    /// Since when the program is known to have ended.
    pub(super) ended: Option<Duration>,
    /// A hook of its program's was heard.
    pub(super) is_heard: bool,
}

/// What can come a step further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Going {
    Commit(usize),
    Lease,
    Keyboard,
    Stroke,
    Hook(usize),
    ReadMail,
    Draft,
    Pulse,
    /// A question is told of by others.
    Question,
    /// The screen is looked at.
    Screen,
    /// The driver is told what was seen there.
    Seen,
    Peek,
    /// The program reads.
    Read,
    Exit,
}

impl Session {
    pub(super) fn new(nature: Nature, now: Moment, run: Uuid) -> Self {
        let manner = Manner {
            harness: harness::manifest(nature),
            path_bytes: PATH.len(),
            reach: Reach::Terminal,
            has_hooks: nature.proves,
        };
        let start = Start {
            manner,
            run: RunIdentity {
                run,
                harness: "sim".to_owned(),
                cwd: "/".to_owned(),
            },
            resumed: None,
        };
        Self {
            run,
            driver: SessionDriver::new(start, now),
            agent: Agent::new(nature, now.mono),
            terminal: Terminal::default(),
            read: None,
            lease: None,
            stroke: None,
            peek: None,
            commits: Vec::new(),
            sighted: Glance::default(),
            is_news: false,
            turn: Turn::new(Cargo::Messages, Vec::new()),
            parked: None,
            hooks: Vec::new(),
            hook_calls: 0,
            given_up: Vec::new(),
            told_question: None,
            ended: None,
            is_heard: false,
        }
    }

    pub(super) fn delivery(&self) -> &Desk {
        self.driver.delivery()
    }

    /// The question of the program that really stands open.
    pub(super) fn asks(&self) -> Option<Asked> {
        self.agent.asks().map(|number| (self.run, number))
    }

    pub(super) fn has_seen(&self, id: MessageId) -> bool {
        let mut pending = self.driver.mail().pending.iter();
        pending.any(|letter| letter.message.id == id)
    }

    /// Whether a message is in somebody's hands, or was left in the journal for the next session.
    pub(super) fn is_busy_with(&self, id: MessageId) -> bool {
        let is_writing = self.driver.is_offering() || self.delivery().is_writing();
        let in_turn = (is_writing || self.peek.is_some()) && self.turn.ids.contains(&id);
        let in_hook = self.hooks.iter().any(|hook| hook.ids.contains(&id));
        let is_on = self.driver.is_committing(id) || self.driver.is_handing(id);
        in_turn || is_on || in_hook || self.given_up.contains(&id)
    }

    pub(super) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Whether everything is done that a session does after its program.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        let is_late = |ended| now.mono >= ended + LAST_RECEIPTS;
        let is_done = self.driver.has_committed_all() && self.hooks.is_empty();
        self.ended.is_some_and(|ended| is_done || is_late(ended))
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// When something changes by the clock alone.
    pub(super) fn wakeup(&self, now: Moment) -> Option<Duration> {
        let driver = self.driver.next_timeout(now);
        let other = match self.ended {
            Some(ended) => Some(ended + LAST_RECEIPTS).filter(|at| *at > now.mono),
            None => self.agent.next(),
        };
        driver.into_iter().chain(other).min()
    }

    /// What can come a step further now.
    pub(super) fn going(&self) -> Vec<Going> {
        let mut going = Vec::new();
        let mut add = |is_so: bool, what| going.extend(is_so.then_some(what));
        for n in 0..self.commits.len() {
            add(true, Going::Commit(n));
        }
        for n in 0..self.hooks.len() {
            add(true, Going::Hook(n));
        }
        if self.ended.is_some() {
            return going;
        }
        add(matches!(self.lease, Some(Lease::Said(_))), Going::Lease);
        add(self.terminal.can_type(), Going::Keyboard);
        let is_said = matches!(self.stroke, Some(Stroke::Said(_)));
        let can_write = self.terminal.has_room() || is_said;
        add(self.stroke.is_some() && can_write, Going::Stroke);
        add(self.read.is_some(), Going::ReadMail);
        // Results of actions come before what is seen.
        let is_told = matches!(self.peek, Some(Peek::Said(_)));
        add(self.peek.is_some(), Going::Peek);
        if self.delivery().looks() {
            add(self.agent.has_drawn, Going::Screen);
            add(self.is_news && !is_told, Going::Seen);
        } else {
            let is_new = self.agent.question != self.told_question;
            add(is_new, Going::Question);
        }
        add(self.terminal.is_draft_news, Going::Draft);
        add(self.agent.has_written, Going::Pulse);
        let can_read = self.agent.is_alive && self.agent.is_reading;
        add(can_read && self.terminal.is_unread(), Going::Read);
        add(!self.agent.is_alive, Going::Exit);
        going
    }
}
