//! The simulated session: performs the driver's actions one step at a time and reports the results.
//!
//! Makes no decisions. Between two steps of one action, anything else can happen.

pub(crate) mod actions;
pub(crate) mod keyboard_work;
pub(crate) mod nudges;
pub(crate) mod terminal_io;

use crate::delivery::{Delivery, DeliveryConfig, Reach};
use crate::driver::{
    CommitId, DecisionLines, DriverConfig, HoldLog, Input, JournalOperation, KeyboardUser,
    MailView, RunIdentity, SessionDriver,
};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::pending_replies;
use crate::session::Conversation;
use crate::sim::faults::{Fault, FaultyDriver};
use crate::sim::oracle::answer_targets::QuestionId;
use crate::sim::oracle::{MESSAGE_PATH, Oracle};
use crate::sim::run::trace::Trace;
use crate::sim::script::{ApiBehaviour, ProgramProfile};
use crate::sim::session::keyboard_work::{KeyboardWork, LookState};
use crate::sim::session::nudges::Nudges;
use crate::sim::world::api::ApiCalls;
use crate::sim::world::hook_calls::{WrittenText, first_conversation};
use crate::sim::world::hook_mail::HookWithMail;
use crate::sim::world::journal::Journal;
use crate::sim::world::manifest;
use crate::sim::world::program::Program;
use crate::sim::world::terminal::{Terminal, TurnNo};
use crate::sim::world::transcript::{Row, TranscriptRead, Transcripts};
use crate::turn::{self, InputMode};
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// The surroundings of a session: the clock, the journal, the oracle and the trace.
pub(crate) struct World<'a> {
    pub(crate) now: Moment,
    pub(crate) journal: &'a mut Journal,
    pub(crate) oracle: &'a mut Oracle,
    pub(crate) trace: &'a mut Trace,
    /// Every text that was written to the terminal.
    pub(crate) turns: &'a mut Vec<WrittenText>,
    pub(crate) transcripts: &'a mut Transcripts,
    /// How the program's API answers now.
    pub(crate) api: ApiBehaviour,
}

/// The screen at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScreenLook {
    pub(crate) sighting: Sighting,
    /// The question that the program had open at that moment.
    pub(crate) question: Option<QuestionId>,
}

/// A commit that is under way.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: CommitId,
    pub(crate) operation: JournalOperation,
    /// The result, not yet reported to the driver.
    pub(crate) result: Option<Input>,
}

/// A read of the journal that is under way.
#[derive(Debug)]
pub(crate) enum MailReadState {
    Requested,
    Found(MailView),
}

/// The content of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Messages,
    /// A reminder of the messages whose replies are owed.
    Reminder,
}

/// The current turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) kind: TurnKind,
    pub(crate) no: TurnNo,
    pub(crate) ids: Vec<MessageId>,
    pub(crate) messages: Vec<MessageState>,
    pub(crate) input: Option<InputMode>,
    /// Whether delivery has begun to write the text, and no effect has reported the end of the
    /// turn.
    pub(crate) is_open: bool,
    /// Whether all of the text is written.
    pub(crate) is_whole: bool,
    pub(crate) enters: u8,
    /// Number of times that the text was typed.
    pub(crate) attempts: u8,
}

impl Turn {
    pub(crate) fn new(kind: TurnKind, ids: Vec<MessageId>) -> Self {
        Self {
            kind,
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
        let text = match self.kind {
            TurnKind::Reminder => pending_replies::reminder(&self.messages).into_bytes(),
            TurnKind::Messages => {
                let entries: Vec<_> = self.messages.iter().map(turn_entry).collect();
                turn::render(&entries, self.input.unwrap_or(InputMode::Typed))
            }
        };
        turn::unclosed(&text)
    }
}

/// Return the entry of a message in a turn.
pub(crate) fn turn_entry(state: &MessageState) -> turn::Entry<'_> {
    turn::Entry {
        state,
        path: &MESSAGE_PATH,
        placement: turn::TextPlacement::Inline,
    }
}

/// A session, its program, and the driver's actions that are under way.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) run: Uuid,
    pub(crate) driver: FaultyDriver,
    pub(crate) program: Program,
    pub(crate) terminal: Terminal,
    pub(crate) mail_read: Option<MailReadState>,
    /// Whether the mail could not be read.
    pub(crate) mail_is_unreadable: bool,
    pub(crate) turn_work: KeyboardWork,
    pub(crate) nudge_work: KeyboardWork,
    pub(crate) commits: Vec<Commit>,
    /// The terminal's last look at the screen.
    pub(crate) last_look: ScreenLook,
    /// Whether the driver was not yet told of `last_look`.
    pub(crate) screen_changed: bool,
    pub(crate) turn: Turn,
    /// A turn whose Enter is still missing, while another turn goes first.
    pub(crate) waiting: Option<Turn>,
    pub(crate) nudges: Nudges,
    /// Formats the driver's decisions like a session's log.
    pub(crate) decisions: DecisionLines,
    pub(crate) holds: HoldLog,
    /// Requests to the program's API that are under way.
    pub(crate) api: ApiCalls,
    /// Hook calls that hold mail.
    pub(crate) hooks: Vec<HookWithMail>,
    /// Number of hook calls.
    pub(crate) hook_calls: u64,
    /// Messages whose receipts will never be recorded.
    pub(crate) given_up: Vec<MessageId>,
    /// Whether the end of an ask could not be recorded, which is left to the next session.
    pub(crate) has_lost_ask: bool,
    pub(crate) reported_question: Option<String>,
    /// Time at which the session noticed the program's exit.
    pub(crate) ended: Option<Duration>,
    /// Whether the processes left by the program are to be ended.
    pub(crate) is_ending_processes: bool,
    /// Whether a hook of the program has reported.
    pub(crate) has_hook_report: bool,
    /// Whether a hook has named the transcript.
    pub(crate) is_transcript_named: bool,
    /// The program's conversation.
    pub(crate) conversation: String,
    /// Rows that the program has not yet written to its transcript.
    pub(crate) unwritten_rows: VecDeque<Row>,
    /// Number of transcript rows that the session has read, if it follows the transcript.
    pub(crate) transcript_offset: Option<usize>,
    pub(crate) transcript_read: Option<TranscriptRead>,
}

/// A possible step of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionStep {
    /// Carry out a commit, or report its result.
    Commit(usize),
    /// Report the result of a keyboard request.
    ReportLease(KeyboardUser),
    /// Handle the first request in the keyboard queue.
    UseKeyboard,
    /// Type a part of the text, or report the result.
    Type(KeyboardUser),
    /// Let a hook pass its mail on or die.
    Hook(usize),
    /// Let the API handle a request or answer it, or report the result.
    Api(usize),
    /// Read the mail, or report it.
    ReadMail,
    /// Report whether a person has typed a draft.
    ReportKeys,
    /// Report that the program has written output.
    ReportOutput,
    /// Report a question to the driver by other evidence than the screen.
    ReportQuestion,
    /// Let the terminal look at the screen.
    LookAtScreen,
    /// Report the screen to the driver.
    ReportScreen,
    /// Take a look that the driver requested, or report it.
    Look(KeyboardUser),
    /// Let the program read a piece of its input.
    ReadInput,
    /// Notice that the program has ended.
    NoticeExit,
    /// End the processes left by the program.
    EndProcesses,
    /// Read the transcript.
    ReadTranscript,
    /// Let the program write a row of its transcript.
    WriteRow,
}

impl Session {
    pub(crate) fn new(
        profile: ProgramProfile,
        now: Moment,
        run: Uuid,
        resumed: Option<Conversation>,
        fault: Option<Fault>,
    ) -> Self {
        let own = || first_conversation(run);
        let conversation = resumed
            .as_ref()
            .map_or_else(own, |resumed| resumed.id.clone());
        let delivery = DeliveryConfig {
            harness: manifest::manifest(profile),
            path_bytes: MESSAGE_PATH.len(),
            reach: Reach::Terminal,
            has_hooks: profile.hooks_report,
        };
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
            program: Program::new(profile, now.mono),
            terminal: Terminal::default(),
            mail_read: None,
            mail_is_unreadable: false,
            turn_work: KeyboardWork::default(),
            nudge_work: KeyboardWork::default(),
            commits: Vec::new(),
            last_look: ScreenLook::default(),
            screen_changed: false,
            turn: Turn::new(TurnKind::Messages, Vec::new()),
            waiting: None,
            nudges: Nudges::default(),
            decisions: DecisionLines::default(),
            holds: HoldLog::default(),
            api: ApiCalls::default(),
            hooks: Vec::new(),
            hook_calls: 0,
            given_up: Vec::new(),
            has_lost_ask: false,
            reported_question: None,
            ended: None,
            is_ending_processes: false,
            has_hook_report: false,
            is_transcript_named: false,
            conversation,
            unwritten_rows: VecDeque::new(),
            transcript_offset: None,
            transcript_read: None,
        }
    }

    pub(crate) fn delivery(&self) -> &Delivery {
        self.driver.delivery()
    }

    /// Return the question that the program has open.
    pub(crate) fn open_question(&self) -> Option<QuestionId> {
        self.program
            .question_number()
            .map(|number| (self.run, number))
    }

    pub(crate) fn has_seen(&self, id: MessageId) -> bool {
        let mut pending = self.driver.mail().pending.iter();
        pending.any(|state| state.message.id == id)
    }

    /// Whether a message is being typed, handed to a hook or committed, or its open offer is left
    /// in the journal for the next session.
    pub(crate) fn is_busy_with(&self, id: MessageId) -> bool {
        let is_writing = self.driver.is_offering() || self.delivery().is_writing();
        let in_turn = (is_writing || self.turn_work.look.is_some()) && self.turn.ids.contains(&id);
        let in_hook = self.hooks.iter().any(|hook| hook.ids.contains(&id));
        let is_on = self.driver.is_committing(id) || self.driver.is_offered_directly(id);
        in_turn || is_on || in_hook || self.api.has(id) || self.given_up.contains(&id)
    }

    pub(crate) fn has_given_up(&self) -> bool {
        !self.given_up.is_empty() || self.has_lost_ask
    }

    /// Whether the program has ended and the session has finished its remaining work, or has run
    /// out of time for it.
    pub(crate) fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// Return the time of the next change that needs only the clock.
    pub(crate) fn wakeup(&self, now: Moment) -> Option<Duration> {
        let driver = self.driver.next_timeout(now);
        let other = self.program.next_change().filter(|_| self.ended.is_none());
        driver.into_iter().chain(other).min()
    }

    /// List the possible steps.
    pub(crate) fn possible_steps(&self) -> Vec<SessionStep> {
        let mut steps = Vec::new();
        let mut add = |is_so: bool, what| steps.extend(is_so.then_some(what));
        for n in 0..self.commits.len() {
            add(true, SessionStep::Commit(n));
        }
        for n in 0..self.hooks.len() {
            add(true, SessionStep::Hook(n));
        }
        for n in 0..self.api.len() {
            add(true, SessionStep::Api(n));
        }
        add(self.is_ending_processes, SessionStep::EndProcesses);
        add(self.transcript_read.is_some(), SessionStep::ReadTranscript);
        add(!self.unwritten_rows.is_empty(), SessionStep::WriteRow);
        if self.ended.is_some() {
            return steps;
        }
        let has_room = self.terminal.has_room();
        let (turn, nudge) = (KeyboardUser::Turn, KeyboardUser::Nudge);
        add(
            self.turn_work.is_lease_decided(),
            SessionStep::ReportLease(turn),
        );
        add(self.terminal.can_type(), SessionStep::UseKeyboard);
        add(self.turn_work.can_type(has_room), SessionStep::Type(turn));
        add(self.mail_read.is_some(), SessionStep::ReadMail);
        // The result of a requested look is reported before a change of the screen.
        let is_told = matches!(self.turn_work.look, Some(LookState::Done(_)));
        add(self.turn_work.look.is_some(), SessionStep::Look(turn));
        add(
            self.nudge_work.is_lease_decided(),
            SessionStep::ReportLease(nudge),
        );
        add(self.nudge_work.can_type(has_room), SessionStep::Type(nudge));
        add(self.nudge_work.look.is_some(), SessionStep::Look(nudge));
        if self.delivery().reads_screen() {
            add(self.program.has_drawn, SessionStep::LookAtScreen);
            add(self.screen_changed && !is_told, SessionStep::ReportScreen);
        } else {
            let is_new = self.program.question != self.reported_question;
            add(is_new, SessionStep::ReportQuestion);
        }
        add(self.terminal.draft_changed, SessionStep::ReportKeys);
        add(self.program.has_output, SessionStep::ReportOutput);
        let can_read = self.program.is_alive && self.program.is_reading;
        add(
            can_read && self.terminal.is_unread(),
            SessionStep::ReadInput,
        );
        add(!self.program.is_alive, SessionStep::NoticeExit);
        steps
    }
}
