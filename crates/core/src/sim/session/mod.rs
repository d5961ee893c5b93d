//! The simulated session. It performs the driver's actions one step at a time, so that anything can
//! happen between two steps, and tells the driver the results. It makes no decisions.

pub(crate) mod actions;
pub(crate) mod nudges;
pub(crate) mod terminal_io;

use crate::delivery::{Delivery, DeliveryConfig, Reach};
use crate::driver::{
    CommitId, DecisionLines, DriverConfig, HoldLog, Input, JournalOperation, MailView, RunIdentity,
    SessionDriver,
};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::pending_replies;
use crate::session::Conversation;
use crate::sim::faults::{Fault, FaultyDriver};
use crate::sim::oracle::answer_targets::Asked;
use crate::sim::oracle::{Oracle, PATH};
use crate::sim::run::trace::Trace;
use crate::sim::script::Nature;
use crate::sim::session::nudges::{NudgeGoing, Nudges};
use crate::sim::world::hook_calls::{Typed, own};
use crate::sim::world::hook_mail::Hooked;
use crate::sim::world::journal::Journal;
use crate::sim::world::manifest;
use crate::sim::world::program::Agent;
use crate::sim::world::terminal::{Terminal, TurnNo};
use crate::sim::world::transcript::{Reading, Row, Transcripts};
use crate::turn::{self, InputMode};
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// The surroundings of a session: the clock, the journal, the oracle and the record of the run.
pub(crate) struct World<'a> {
    pub(crate) now: Moment,
    pub(crate) journal: &'a mut Journal,
    pub(crate) oracle: &'a mut Oracle,
    pub(crate) trace: &'a mut Trace,
    /// Every turn that was ever written.
    pub(crate) turns: &'a mut Vec<Typed>,
    pub(crate) transcripts: &'a mut Transcripts,
}

/// A request for the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lease {
    Asked,
    /// The result, which the driver is still to be told.
    Said(Input),
}

/// A look at the screen that the driver wants.
#[derive(Debug)]
pub(crate) enum Peek {
    Asked,
    /// The result, which the driver is still to be told.
    Said(Glance),
}

/// A look at the screen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Glance {
    pub(crate) sighting: Sighting,
    /// The question that the program really asked at that moment.
    pub(crate) asks: Option<Asked>,
}

/// Something that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stroke {
    First,
    Rest,
    Enter,
    /// The result, which the driver is still to be told.
    Said(Input),
}

/// A commit that is under way.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: CommitId,
    pub(crate) operation: JournalOperation,
    /// The result, which the driver is still to be told.
    pub(crate) said: Option<Input>,
}

/// A read of the journal that is under way.
#[derive(Debug)]
pub(crate) enum Read {
    Asked,
    Found(MailView),
}

/// What a turn tells the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cargo {
    Messages,
    /// The messages whose replies are owed.
    Reminder,
}

/// The turn that is under way.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) cargo: Cargo,
    pub(crate) no: TurnNo,
    pub(crate) ids: Vec<MessageId>,
    pub(crate) messages: Vec<MessageState>,
    pub(crate) input: Option<InputMode>,
    /// Whether delivery has begun to write the text, and no effect has reported the end of the turn.
    pub(crate) is_open: bool,
    /// Whether all of the text is written.
    pub(crate) is_whole: bool,
    pub(crate) enters: u8,
    /// How often the text was typed.
    pub(crate) attempts: u8,
}

impl Turn {
    pub(crate) fn new(cargo: Cargo, ids: Vec<MessageId>) -> Self {
        Self {
            cargo,
            no: 0,
            ids,
            messages: Vec::new(),
            input: None,
            is_open: false,
            is_whole: false,
            enters: 0,
            attempts: 0,
        }
    }

    /// Return the text of the turn, as the program receives it.
    pub(crate) fn text(&self) -> String {
        let text = match self.cargo {
            Cargo::Reminder => pending_replies::reminder(&self.messages).into_bytes(),
            Cargo::Messages => {
                let entries: Vec<_> = self.messages.iter().map(turn_entry).collect();
                turn::render(&entries, self.input.unwrap_or(InputMode::Typed))
            }
        };
        turn::unclosed(&text)
    }
}

/// Return the entry of a state in a turn.
pub(crate) fn turn_entry(state: &MessageState) -> turn::Entry<'_> {
    turn::Entry {
        state,
        path: &PATH,
        placement: turn::TextPlacement::Inline,
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) run: Uuid,
    pub(crate) driver: FaultyDriver,
    pub(crate) agent: Agent,
    pub(crate) terminal: Terminal,
    pub(crate) read: Option<Read>,
    /// Whether the mail could not be read.
    pub(crate) is_blind: bool,
    pub(crate) lease: Option<Lease>,
    pub(crate) stroke: Option<Stroke>,
    pub(crate) peek: Option<Peek>,
    pub(crate) commits: Vec<Commit>,
    /// The last look of the terminal at the screen.
    pub(crate) sighted: Glance,
    /// Whether the driver is still to be told of `sighted`.
    pub(crate) is_news: bool,
    pub(crate) turn: Turn,
    /// A turn that waits for its Enter, while another turn goes before it.
    pub(crate) waiting: Option<Turn>,
    pub(crate) nudges: Nudges,
    /// Puts the driver's decisions into words, as a session's log does.
    pub(crate) decisions: DecisionLines,
    pub(crate) holds: HoldLog,
    /// Hook calls that were given mail.
    pub(crate) hooks: Vec<Hooked>,
    /// Number of hook calls.
    pub(crate) hook_calls: u64,
    /// Messages whose receipts will not be recorded any more.
    pub(crate) given_up: Vec<MessageId>,
    pub(crate) told_question: Option<String>,
    /// When the session noticed that the program has ended.
    pub(crate) ended: Option<Duration>,
    /// Whether the processes that the program has left are to be ended.
    pub(crate) is_ending_processes: bool,
    /// Whether a hook of the program was heard.
    pub(crate) is_heard: bool,
    /// Whether a hook of the program has named the transcript.
    pub(crate) is_named: bool,
    /// The conversation that the program is in.
    pub(crate) conversation: String,
    /// Rows that the program has not written to its transcript yet.
    pub(crate) unwritten: VecDeque<Row>,
    /// The rows of the transcript that the session has read, if it follows the transcript.
    pub(crate) followed: Option<usize>,
    pub(crate) reading: Option<Reading>,
}

/// Something that can take its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going {
    Commit(usize),
    Lease,
    Keyboard,
    Stroke,
    Hook(usize),
    ReadMail,
    Draft,
    Pulse,
    /// The driver is told of a question by other evidence than the screen.
    Question,
    /// The terminal looks at the screen.
    Screen,
    /// The driver is told what the screen shows.
    Seen,
    Peek,
    Nudge(NudgeGoing),
    /// The program reads a piece of its input.
    Read,
    Exit,
    /// The processes that the program has left are ended.
    Processes,
    /// The session reads the transcript.
    Transcript,
    /// The program writes to its transcript.
    Row,
}

impl Session {
    pub(crate) fn new(
        nature: Nature,
        now: Moment,
        run: Uuid,
        resumed: Option<Conversation>,
        fault: Option<Fault>,
    ) -> Self {
        let own = || own(run);
        let conversation = resumed
            .as_ref()
            .map_or_else(own, |resumed| resumed.id.clone());
        let delivery = DeliveryConfig {
            harness: manifest::manifest(nature),
            path_bytes: PATH.len(),
            reach: Reach::Terminal,
            has_hooks: nature.proves,
        };
        let decisions = DecisionLines::new(delivery.harness.clone());
        let start = DriverConfig {
            delivery,
            run: RunIdentity {
                run,
                harness: "sim".to_owned(),
                cwd: "/".to_owned(),
            },
            resumed,
        };
        Self {
            run,
            driver: FaultyDriver::new(SessionDriver::new(start, now), fault),
            agent: Agent::new(nature, now.mono),
            terminal: Terminal::default(),
            read: None,
            is_blind: false,
            lease: None,
            stroke: None,
            peek: None,
            commits: Vec::new(),
            sighted: Glance::default(),
            is_news: false,
            turn: Turn::new(Cargo::Messages, Vec::new()),
            waiting: None,
            nudges: Nudges::default(),
            decisions,
            holds: HoldLog::default(),
            hooks: Vec::new(),
            hook_calls: 0,
            given_up: Vec::new(),
            told_question: None,
            ended: None,
            is_ending_processes: false,
            is_heard: false,
            is_named: false,
            conversation,
            unwritten: VecDeque::new(),
            followed: None,
            reading: None,
        }
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        self.driver.delivery()
    }

    /// Return the question that the program really asks now.
    pub(crate) fn asks(&self) -> Option<Asked> {
        self.agent.asks().map(|number| (self.run, number))
    }

    pub(crate) fn has_seen(&self, id: MessageId) -> bool {
        let mut pending = self.driver.mail().pending.iter();
        pending.any(|state| state.message.id == id)
    }

    /// Whether a message is being typed, handed over or committed, or its open offer was left in the
    /// journal for the next session.
    pub(crate) fn is_busy_with(&self, id: MessageId) -> bool {
        let is_writing = self.driver.is_offering() || self.delivery().is_writing();
        let in_turn = (is_writing || self.peek.is_some()) && self.turn.ids.contains(&id);
        let in_hook = self.hooks.iter().any(|hook| hook.ids.contains(&id));
        let is_on = self.driver.is_committing(id) || self.driver.is_offered_directly(id);
        in_turn || is_on || in_hook || self.given_up.contains(&id)
    }

    pub(crate) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Whether the program has ended and the session has done its remaining work, or has run out of
    /// time for it.
    pub(crate) fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// When the next change is due that the clock alone causes.
    pub(crate) fn wakeup(&self, now: Moment) -> Option<Duration> {
        let driver = self.driver.next_timeout(now);
        let other = self.agent.next().filter(|_| self.ended.is_none());
        driver.into_iter().chain(other).min()
    }

    /// List everything that can take its next step now.
    pub(crate) fn going(&self) -> Vec<Going> {
        let mut going = Vec::new();
        let mut add = |is_so: bool, what| going.extend(is_so.then_some(what));
        for n in 0..self.commits.len() {
            add(true, Going::Commit(n));
        }
        for n in 0..self.hooks.len() {
            add(true, Going::Hook(n));
        }
        add(self.is_ending_processes, Going::Processes);
        add(self.reading.is_some(), Going::Transcript);
        add(!self.unwritten.is_empty(), Going::Row);
        if self.ended.is_some() {
            return going;
        }
        add(matches!(self.lease, Some(Lease::Said(_))), Going::Lease);
        add(self.terminal.can_type(), Going::Keyboard);
        let is_said = matches!(self.stroke, Some(Stroke::Said(_)));
        let can_write = self.terminal.has_room() || is_said;
        add(self.stroke.is_some() && can_write, Going::Stroke);
        add(self.read.is_some(), Going::ReadMail);
        // The result of a look is told before a change of the screen.
        let is_told = matches!(self.peek, Some(Peek::Said(_)));
        add(self.peek.is_some(), Going::Peek);
        for nudge in self.nudges.going(self.terminal.has_room()) {
            add(true, Going::Nudge(nudge));
        }
        if self.delivery().reads_screen() {
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
