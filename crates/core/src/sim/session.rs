//! The model of a session: it looks at the journal, tells its desk what happens, and does what
//! that wants done, one step at a time, so that anything can happen in between.
//!
//! It follows the binary's session (its clerk, errands and keyboard) and decides nothing itself.

use super::agent::Agent;
use super::journal::Journal;
use super::oracle::{Oracle, PATH};
use super::script::Nature;
use super::terminal::{Terminal, TurnNo};
use super::trace::Trace;
use crate::delivery::{Desk, Event, Manner};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::offer::Said;
use crate::turn::Input;
use jiff::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// How long the last receipts of a session may take.
const LAST_RECEIPTS: Duration = Duration::from_secs(2);
/// How often it is looked whether the program reads.
const POLL: Duration = Duration::from_millis(250);

/// What a session works with.
pub(super) struct World<'a> {
    pub(super) now: Moment,
    pub(super) journal: &'a mut Journal,
    pub(super) oracle: &'a mut Oracle,
    pub(super) trace: &'a mut Trace,
    /// The messages of every turn that was ever written.
    pub(super) turns: &'a mut Vec<Vec<MessageId>>,
    /// What agents have said that they accepted, on its way.
    pub(super) words: &'a mut Vec<MessageId>,
}

/// An offer that is being recorded.
#[derive(Debug)]
pub(super) enum Offering {
    /// The keyboard is asked for.
    Asked,
    Granted,
    /// To be told to the desk.
    Said(Event),
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
    pub(super) found: Option<(Vec<Letter>, Option<Timestamp>)>,
}

/// The turn that is under way.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) no: TurnNo,
    pub(super) ids: Vec<MessageId>,
    pub(super) letters: Vec<Letter>,
    pub(super) input: Option<Input>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) run: Uuid,
    pub(super) desk: Desk,
    pub(super) agent: Agent,
    pub(super) terminal: Terminal,
    pub(super) view: Vec<Letter>,
    pub(super) next: Option<Timestamp>,
    pub(super) is_fresh: bool,
    pub(super) is_stale: bool,
    pub(super) look: Option<Look>,
    pub(super) offering: Option<Offering>,
    pub(super) stroke: Option<Stroke>,
    pub(super) turn: Turn,
    pub(super) receipts: Vec<Receipt>,
    /// Receipts that nobody will record any more.
    pub(super) given_up: Vec<MessageId>,
    pub(super) is_expiring: bool,
    pub(super) told_draft: bool,
    pub(super) told_question: Option<String>,
    /// Since when the program is known to have ended.
    pub(super) ended: Option<Duration>,
}

/// What can come a step further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Going {
    Keyboard,
    Offer,
    Stroke,
    Receipt(usize),
    Look,
    Draft,
    Pulse,
    Screen,
    /// The program reads.
    Read,
    Exit,
    Expire,
}

impl Session {
    pub(super) fn new(nature: Nature, now: Moment, run: Uuid) -> Self {
        Self {
            run,
            desk: Desk::new(Manner::generic(PATH.len()), now),
            agent: Agent::new(nature, now.mono),
            terminal: Terminal::default(),
            view: Vec::new(),
            next: None,
            is_fresh: false,
            is_stale: true,
            look: None,
            offering: None,
            stroke: None,
            turn: Turn::default(),
            receipts: Vec::new(),
            given_up: Vec::new(),
            is_expiring: false,
            told_draft: false,
            told_question: None,
            ended: None,
        }
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
        let in_turn =
            (self.offering.is_some() || self.desk.is_writing()) && self.turn.ids.contains(&id);
        let in_receipt = self.receipts.iter().any(|r| r.ids.contains(&id));
        in_turn || in_receipt || self.given_up.contains(&id)
    }

    pub(super) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Whether everything is done that a session does after its program.
    pub(super) fn is_over(&self, now: Moment) -> bool {
        let is_late = |ended| now.mono >= ended + LAST_RECEIPTS;
        let is_done = self.receipts.is_empty() && self.offering.is_none();
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
        let input = input.filter(|_| !self.view.is_empty());
        let again = self.receipts.iter().map(|receipt| receipt.again);
        let again = again.filter(|at| *at > now.mono).min();
        let all = [
            self.desk.next_wakeup(),
            due,
            input,
            again,
            self.agent.next(),
        ];
        all.into_iter().flatten().min()
    }

    /// What can come a step further now.
    pub(super) fn going(&self, now: Moment) -> Vec<Going> {
        let mut going = Vec::new();
        let mut add = |is_so: bool, what| going.extend(is_so.then_some(what));
        for (n, receipt) in self.receipts.iter().enumerate() {
            add(receipt.again <= now.mono, Going::Receipt(n));
        }
        let is_asked = matches!(self.offering, Some(Offering::Asked));
        add(self.offering.is_some() && !is_asked, Going::Offer);
        if self.ended.is_some() {
            return going;
        }
        let draft = self.terminal.has_draft != self.told_draft;
        add(self.terminal.can_type(), Going::Keyboard);
        let is_said = matches!(self.stroke, Some(Stroke::Said(_)));
        let can_write = self.terminal.has_room() || is_said;
        add(self.stroke.is_some() && can_write, Going::Stroke);
        add(self.look.is_some(), Going::Look);
        add(draft, Going::Draft);
        add(self.agent.has_written, Going::Pulse);
        add(self.agent.question != self.told_question, Going::Screen);
        let can_read = self.agent.is_alive && self.agent.is_reading;
        add(can_read && self.terminal.is_unread(), Going::Read);
        add(!self.agent.is_alive, Going::Exit);
        add(self.is_expiring, Going::Expire);
        going
    }
}
