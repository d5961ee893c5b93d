//! The simulated session. It performs the driver's actions one step at a time, so that anything can
//! happen between two steps, and tells the driver the results. It makes no decisions.

use super::agent::Agent;
use super::aims::Asked;
use super::calls::{Typed, own};
use super::faults::{Fault, FaultyDriver};
use super::harness;
use super::hooked::Hooked;
use super::journal::Journal;
use super::nudges::{NudgeGoing, Nudges};
use super::oracle::{Oracle, PATH};
use super::script::Nature;
use super::terminal::{Terminal, TurnNo};
use super::trace::Trace;
use super::transcript::{Reading, Row, Transcripts};
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
use crate::turn::{self, InputMode};
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// The surroundings of a session: the clock, the journal, the oracle and the record of the run.
pub(super) struct World<'a> {
    pub(super) now: Moment,
    pub(super) journal: &'a mut Journal,
    pub(super) oracle: &'a mut Oracle,
    pub(super) trace: &'a mut Trace,
    /// Every turn that was ever written.
    pub(super) turns: &'a mut Vec<Typed>,
    pub(super) transcripts: &'a mut Transcripts,
}

/// A request for the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lease {
    Asked,
    /// The result, which the driver is still to be told.
    Said(Input),
}

/// A look at the screen that the driver wants.
#[derive(Debug)]
pub(super) enum Peek {
    Asked,
    /// The result, which the driver is still to be told.
    Said(Glance),
}

/// A look at the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Glance {
    pub(super) sighting: Sighting,
    /// The question that the program really asked at that moment.
    pub(super) asks: Option<Asked>,
}

/// Something that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stroke {
    First,
    Rest,
    Enter,
    /// The result, which the driver is still to be told.
    Said(Input),
}

/// A commit that is under way.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: CommitId,
    pub(super) operation: JournalOperation,
    /// The result, which the driver is still to be told.
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
    /// The messages whose replies are owed.
    Reminder,
}

/// The turn that is under way.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) cargo: Cargo,
    pub(super) no: TurnNo,
    pub(super) ids: Vec<MessageId>,
    pub(super) messages: Vec<MessageState>,
    pub(super) input: Option<InputMode>,
    /// Whether delivery has begun to write the text, and no effect has reported the end of the turn.
    pub(super) is_open: bool,
    /// Whether all of the text is written.
    pub(super) is_whole: bool,
    pub(super) enters: u8,
    /// How often the text was typed.
    pub(super) attempts: u8,
}

impl Turn {
    pub(super) fn new(cargo: Cargo, ids: Vec<MessageId>) -> Self {
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
    pub(super) fn text(&self) -> String {
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
pub(super) fn turn_entry(state: &MessageState) -> turn::Entry<'_> {
    turn::Entry {
        state,
        path: &PATH,
        placement: turn::TextPlacement::Inline,
    }
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) run: Uuid,
    pub(super) driver: FaultyDriver,
    pub(super) agent: Agent,
    pub(super) terminal: Terminal,
    pub(super) read: Option<Read>,
    /// Whether the mail could not be read.
    pub(super) is_blind: bool,
    pub(super) lease: Option<Lease>,
    pub(super) stroke: Option<Stroke>,
    pub(super) peek: Option<Peek>,
    pub(super) commits: Vec<Commit>,
    /// The last look of the terminal at the screen.
    pub(super) sighted: Glance,
    /// Whether the driver is still to be told of `sighted`.
    pub(super) is_news: bool,
    pub(super) turn: Turn,
    /// A turn that waits for its Enter, while another turn goes before it.
    pub(super) waiting: Option<Turn>,
    pub(super) nudges: Nudges,
    /// Puts the driver's decisions into words, as a session's log does.
    pub(super) decisions: DecisionLines,
    pub(super) holds: HoldLog,
    /// Hook calls that were given mail.
    pub(super) hooks: Vec<Hooked>,
    /// Number of hook calls.
    pub(super) hook_calls: u64,
    /// Messages whose receipts will not be recorded any more.
    pub(super) given_up: Vec<MessageId>,
    pub(super) told_question: Option<String>,
    /// When the session noticed that the program has ended.
    pub(super) ended: Option<Duration>,
    /// Whether the processes that the program has left are to be ended.
    pub(super) is_ending_processes: bool,
    /// Whether a hook of the program was heard.
    pub(super) is_heard: bool,
    /// Whether a hook of the program has named the transcript.
    pub(super) is_named: bool,
    /// The conversation that the program is in.
    pub(super) conversation: String,
    /// Rows that the program has not written to its transcript yet.
    pub(super) unwritten: VecDeque<Row>,
    /// The rows of the transcript that the session has read, if it follows the transcript.
    pub(super) followed: Option<usize>,
    pub(super) reading: Option<Reading>,
}

/// Something that can take its next step.
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
    pub(super) fn new(
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
            harness: harness::manifest(nature),
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

    pub(super) fn delivery(&self) -> &Delivery {
        self.driver.delivery()
    }

    /// Return the question that the program really asks now.
    pub(super) fn asks(&self) -> Option<Asked> {
        self.agent.asks().map(|number| (self.run, number))
    }

    pub(super) fn has_seen(&self, id: MessageId) -> bool {
        let mut pending = self.driver.mail().pending.iter();
        pending.any(|state| state.message.id == id)
    }

    /// Whether a message is being typed, handed over or committed, or its open offer was left in the
    /// journal for the next session.
    pub(super) fn is_busy_with(&self, id: MessageId) -> bool {
        let is_writing = self.driver.is_offering() || self.delivery().is_writing();
        let in_turn = (is_writing || self.peek.is_some()) && self.turn.ids.contains(&id);
        let in_hook = self.hooks.iter().any(|hook| hook.ids.contains(&id));
        let is_on = self.driver.is_committing(id) || self.driver.is_offered_directly(id);
        in_turn || is_on || in_hook || self.given_up.contains(&id)
    }

    pub(super) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Whether the program has ended and the session has done its remaining work, or has run out of
    /// time for it.
    pub(super) fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// When the next change is due that the clock alone causes.
    pub(super) fn wakeup(&self, now: Moment) -> Option<Duration> {
        let driver = self.driver.next_timeout(now);
        let other = self.agent.next().filter(|_| self.ended.is_none());
        driver.into_iter().chain(other).min()
    }

    /// List everything that can take its next step now.
    pub(super) fn going(&self) -> Vec<Going> {
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
