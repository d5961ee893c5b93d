//! The model of a session: it looks at the journal, tells its desk what happens, and does what
//! that wants done, one step at a time, so that anything can happen in between.
//!
//! It follows the binary's session (its clerk, errands and keyboard) and decides nothing itself.

use super::agent::Agent;
use super::aims::Asked;
use super::calls::Typed;
use super::harness;
use super::hooked::Hooked;
use super::journal::Journal;
use super::oracle::{Oracle, PATH};
use super::script::Nature;
use super::terminal::{Terminal, TurnNo, Waiting};
use super::trace::Trace;
use crate::delivery::{Desk, Event, Manner};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::offer::Said;
use crate::owed;
use crate::turn::{self, Input};
use jiff::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// How long the last receipts of a session may take.
const LAST_RECEIPTS: Duration = Duration::from_secs(2);
/// How often it is looked whether the program reads.
const POLL: Duration = Duration::from_millis(250);
/// How long keys may take to show in the input box.
const SOON: Duration = Duration::from_secs(1);

/// What a session works with.
pub(super) struct World<'a> {
    pub(super) now: Moment,
    pub(super) journal: &'a mut Journal,
    pub(super) oracle: &'a mut Oracle,
    pub(super) trace: &'a mut Trace,
    /// Every turn that was ever written.
    pub(super) turns: &'a mut Vec<Typed>,
}

/// What the keyboard is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Offer,
    Reminder,
    /// The Enter of a text that is there.
    Resume,
}

/// The keyboard is being taken, and what it is for recorded.
#[derive(Debug)]
pub(super) enum Offering {
    Asked(Begin),
    Granted(Begin),
    /// To be told to the desk.
    Said(Event),
}

/// A look at the screen that the desk wants.
#[derive(Debug)]
pub(super) enum Peek {
    Asked,
    /// To be told to the desk.
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
    /// To be told to the desk.
    Said(Event),
}

/// How an offer ended, on its way into the journal.
#[derive(Debug)]
pub(super) struct Receipt {
    pub(super) ids: Vec<MessageId>,
    pub(super) said: Said,
    pub(super) give_up: Duration,
    pub(super) again: Duration,
}

/// A look at the journal that is under way.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) is_fresh: bool,
    pub(super) found: Option<Found>,
}

/// What the journal says of the agent's mail.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) pending: Vec<Letter>,
    /// What it may be reminded of.
    pub(super) owed: Vec<Letter>,
    /// When the next comes due, is promoted or runs out of time.
    pub(super) next: Option<Timestamp>,
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
    pub(super) input: Option<Input>,
    /// Its text is written, and how it ended not said.
    pub(super) is_open: bool,
    /// All of its text is.
    pub(super) is_whole: bool,
    pub(super) enters: u8,
    /// How often its text was typed.
    pub(super) attempts: u8,
}

impl Turn {
    /// Its text, as the program takes it in.
    pub(super) fn text(&self) -> String {
        let text = match self.cargo {
            Cargo::Reminder => owed::reminder(&self.letters).into_bytes(),
            Cargo::Messages => {
                let entries: Vec<_> = self.letters.iter().map(turn_entry).collect();
                turn::render(&entries, self.input.unwrap_or(Input::Typed))
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
    pub(super) desk: Desk,
    pub(super) agent: Agent,
    pub(super) terminal: Terminal,
    pub(super) view: Vec<Letter>,
    pub(super) owed: Vec<Letter>,
    pub(super) next: Option<Timestamp>,
    pub(super) is_fresh: bool,
    pub(super) is_stale: bool,
    pub(super) look: Option<Look>,
    pub(super) offering: Option<Offering>,
    pub(super) stroke: Option<Stroke>,
    pub(super) peek: Option<Peek>,
    /// What the terminal has seen last, and whether the desk was told.
    pub(super) sighted: Glance,
    pub(super) is_news: bool,
    pub(super) turn: Turn,
    /// One that waits for its Enter, while another goes before it.
    pub(super) parked: Option<Turn>,
    pub(super) receipts: Vec<Receipt>,
    /// Calls of its hook that mail goes to.
    pub(super) hooks: Vec<Hooked>,
    /// Receipts that nobody will record any more.
    pub(super) given_up: Vec<MessageId>,
    pub(super) is_expiring: bool,
    /// When a person last pressed a key.
    pub(super) typed_at: Duration,
    pub(super) told_question: Option<String>,
    /// Since when the program is known to have ended.
    pub(super) ended: Option<Duration>,
    /// A hook of its program's was heard.
    pub(super) is_heard: bool,
}

/// What can come a step further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Going {
    Keyboard,
    Offer,
    Stroke,
    Receipt(usize),
    Hook(usize),
    Look,
    Draft,
    Pulse,
    /// A question is told of by others.
    Question,
    /// The screen is looked at.
    Screen,
    /// The desk is told what was seen there.
    Seen,
    Peek,
    Forget,
    /// The program reads.
    Read,
    Exit,
    Expire,
}

impl Session {
    pub(super) fn new(nature: Nature, now: Moment, run: Uuid) -> Self {
        let manner = Manner {
            harness: harness::manifest(nature),
            path_bytes: PATH.len(),
            reach: crate::delivery::Reach::Terminal,
            has_hooks: nature.proves,
        };
        Self {
            run,
            desk: Desk::new(manner, now),
            agent: Agent::new(nature, now.mono),
            terminal: Terminal::default(),
            view: Vec::new(),
            owed: Vec::new(),
            next: None,
            is_fresh: false,
            is_stale: true,
            look: None,
            offering: None,
            stroke: None,
            peek: None,
            sighted: Glance::default(),
            is_news: false,
            turn: Turn {
                cargo: Cargo::Messages,
                no: 0,
                ids: Vec::new(),
                letters: Vec::new(),
                input: None,
                is_open: false,
                is_whole: false,
                enters: 0,
                attempts: 0,
            },
            parked: None,
            receipts: Vec::new(),
            hooks: Vec::new(),
            given_up: Vec::new(),
            is_expiring: true,
            typed_at: Duration::ZERO,
            told_question: None,
            ended: None,
            is_heard: false,
        }
    }

    /// The question of the program that really stands open.
    pub(super) fn asks(&self) -> Option<Asked> {
        self.agent.asks().map(|number| (self.run, number))
    }

    /// The bell rang.
    pub(super) fn ring(&mut self) {
        self.is_stale = true;
    }

    pub(super) fn is_about_to_look(&self) -> bool {
        self.is_stale || self.look.is_some() || !self.is_fresh
    }

    pub(super) fn has_seen(&self, id: MessageId) -> bool {
        self.view.iter().any(|letter| letter.message.id == id)
    }

    /// Whether a message is in somebody's hands, or was left in the journal for the next session.
    pub(super) fn is_busy_with(&self, id: MessageId) -> bool {
        let is_on = self.offering.is_some() || self.desk.is_writing() || self.peek.is_some();
        let in_turn = is_on && self.turn.ids.contains(&id);
        let in_receipt = self.receipts.iter().any(|r| r.ids.contains(&id));
        let in_hook = self.hooks.iter().any(|hook| hook.ids.contains(&id));
        in_turn || in_receipt || in_hook || self.given_up.contains(&id)
    }

    pub(super) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Whether everything is done that a session does after its program.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        let is_late = |ended| now.mono >= ended + LAST_RECEIPTS;
        let is_done = self.receipts.is_empty() && self.offering.is_none() && self.hooks.is_empty();
        self.ended.is_some_and(|ended| is_done || is_late(ended))
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// When something changes by the clock alone.
    pub(super) fn wakeup(&self, now: Moment) -> Option<Duration> {
        if let Some(ended) = self.ended {
            return Some(ended + LAST_RECEIPTS).filter(|at| *at > now.mono);
        }
        let due = self.next.map(|at| {
            let wait = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
            now.mono + wait
        });
        let input = self.desk.unread_for(now).map(|_| now.mono + POLL);
        let is_asked = self.has_more_to_type() || self.desk.awaits_reading();
        let input = input.filter(|_| is_asked);
        let again = self.receipts.iter().map(|receipt| receipt.again);
        let again = again.filter(|at| *at > now.mono).min();
        let all = [
            self.desk.next_wakeup(),
            due,
            input,
            again,
            self.forgets_at().filter(|at| *at > now.mono),
            self.agent.next(),
        ];
        all.into_iter().flatten().min()
    }

    /// Whether mail waits, or the agent owes answers of which it may be reminded.
    pub(super) fn has_more_to_type(&self) -> bool {
        !self.view.is_empty() || !self.owed.is_empty()
    }

    /// When keys that left no trace in the input box are no draft any more.
    fn forgets_at(&self) -> Option<Duration> {
        let is_void = self.terminal.has_draft && self.desk.is_field_ours();
        is_void.then_some(self.typed_at + SOON)
    }

    /// What can come a step further now.
    pub(super) fn going(&self, now: Moment) -> Vec<Going> {
        let mut going = Vec::new();
        let mut add = |is_so: bool, what| going.extend(is_so.then_some(what));
        for (n, receipt) in self.receipts.iter().enumerate() {
            add(receipt.again <= now.mono, Going::Receipt(n));
        }
        let is_asked = matches!(self.offering, Some(Offering::Asked(_)));
        add(self.offering.is_some() && !is_asked, Going::Offer);
        for n in 0..self.hooks.len() {
            add(true, Going::Hook(n));
        }
        if self.ended.is_some() {
            return going;
        }
        let draft = self.terminal.is_draft_news;
        add(self.terminal.can_type(), Going::Keyboard);
        let is_said = matches!(self.stroke, Some(Stroke::Said(_)));
        let can_write = self.terminal.has_room() || is_said;
        add(self.stroke.is_some() && can_write, Going::Stroke);
        add(self.look.is_some(), Going::Look);
        // Reports come before what is seen.
        let is_told = matches!(self.peek, Some(Peek::Said(_)));
        add(self.peek.is_some(), Going::Peek);
        if self.desk.looks() {
            add(self.agent.has_drawn, Going::Screen);
            add(self.is_news && !is_told, Going::Seen);
        } else {
            let is_new = self.agent.question != self.told_question;
            add(is_new, Going::Question);
        }
        add(draft, Going::Draft);
        add(self.agent.has_written, Going::Pulse);
        let is_quiet = !self.terminal.is_unread() && !self.agent.has_drawn && !self.is_news;
        let is_void = self.forgets_at().is_some_and(|at| at <= now.mono);
        let is_asked = self
            .terminal
            .queue
            .iter()
            .any(|w| matches!(w, Waiting::Forget(_)));
        add(is_void && is_quiet && !is_asked, Going::Forget);
        let can_read = self.agent.is_alive && self.agent.is_reading;
        add(can_read && self.terminal.is_unread(), Going::Read);
        add(!self.agent.is_alive, Going::Exit);
        add(self.is_expiring, Going::Expire);
        going
    }
}
