//! The script of one run, as data: a seed generates it, and a failing run is printed as its
//! shortest failing script.
//!
//! A line names a message by a number, which is resolved when the line is played. So any subset of
//! the lines is a valid script.

pub(crate) mod generate;
mod insertions;
pub(crate) mod random;
pub(crate) mod scene;
pub(crate) mod shrink;

use crate::delivery::PausedBy;
use crate::priority::Priority;
use crate::receipt::Order;

/// The lines of one run, and the program that takes part in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) profile: ProgramProfile,
    pub(crate) lines: Vec<Line>,
    pub(crate) crash: Option<Crash>,
}

/// A crash that replaces one step of a run, independent of the script's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crash {
    pub(crate) at: u32,
    pub(crate) line: Line,
}

/// The behaviour of the simulated program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramProfile {
    /// Startup time in milliseconds. Input that is read during startup is lost.
    pub(crate) boot_millis: u32,
    /// Time in milliseconds for which the program works on one prompt.
    pub(crate) work_millis: u32,
    /// Whether the program writes nothing while it works, so that it looks idle.
    pub(crate) is_silent: bool,
    pub(crate) takes_pastes: bool,
    /// Ignores every n-th Enter. 0: never.
    pub(crate) swallows_enter_every: u8,
    /// Asks for permission at every n-th prompt. 0: never.
    pub(crate) asks_every: u8,
    /// Whether the interrupt key closes the program's questions.
    pub(crate) interrupt_closes_questions: bool,
    /// Whether the interrupt key stops the program's work.
    pub(crate) interrupt_stops_work: bool,
    /// Whether the program calls each hook twice.
    pub(crate) repeats_hook_calls: bool,
    pub(crate) screen: KnownScreen,
    /// Whether the program restores an interrupted prompt to its input box.
    pub(crate) restores_input: bool,
    /// Whether the terminal title shows that the program works.
    pub(crate) title_shows_work: bool,
    /// Whether the interrupt key ends the program while it is idle.
    pub(crate) interrupt_ends_program: bool,
    /// Whether the first key answers a question, without Enter.
    pub(crate) first_key_answers: bool,
    /// Whether owed replies stay open until the end of the run.
    pub(crate) never_replies: bool,
    /// Whether the program's hooks take mail.
    pub(crate) hooks_take_mail: bool,
    /// Whether the program's hooks report submitted prompts and idleness.
    pub(crate) hooks_report: bool,
    /// Whether the program queues prompts that are submitted while it works. The queue is lost when
    /// the program dies. A hook reports when the model receives a prompt.
    pub(crate) queues_prompts: bool,
    /// Whether the program has an HTTP API that takes mail. Its hooks name the conversation.
    pub(crate) has_api: bool,
    /// Whether mail is typed while the program works, although the screen shows the input box.
    pub(crate) types_while_working: bool,
    /// Whether the transcript proves which prompts the model received. The hooks then only name the
    /// transcript.
    pub(crate) transcript_proves: bool,
    /// Whether the hooks name the transcript only at a prompt.
    pub(crate) names_transcript_late: bool,
    /// Whether the named transcript never exists.
    pub(crate) transcript_is_missing: bool,
    /// Whether a new session resumes the last conversation.
    pub(crate) resumes_conversation: bool,
}

/// The parts of the program's screen that its manifest describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownScreen {
    /// No part. Questions are reported by other evidence.
    Nothing,
    /// Questions.
    Questions,
    /// Questions and the input box.
    InputBox,
}

/// One event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// One of the possible steps happens, selected by the number.
    Step(u8),
    /// This many steps happen, one after another.
    Steps(u8),
    /// Time passes, in milliseconds, and timers fire when they are due.
    Wait(u32),
    /// Time passes, in milliseconds, and timers fire late, as on a stalled machine.
    Stall(u32),
    /// The periodic check.
    PeriodicCheck,
    /// The wall clock jumps by this many seconds.
    SetClock(i32),
    Post(Post),
    /// A message is sent again with its own id.
    Resend(u8),
    /// A message is sent again with its own id and another text.
    ResendChanged(u8),
    Order(Order, u8),
    /// A hook of an agent without a session shows the pending messages.
    Inject,
    /// A nudge is requested: a line to be typed that is not a message.
    Nudge(u8),
    /// A check is requested whether an answer would reach its question.
    CheckAnswer,
    /// From now on, the program's API answers like this.
    Api(ApiBehaviour),
    /// A hook call arrives that proves nothing.
    MisleadingHook(u8),
    Program(ProgramAction),
    Person(PersonAction),
    Disk(Disk),
    /// The session is killed with SIGKILL.
    Kill,
    /// The power fails. The number decides how many unsynced facts survive.
    PowerCut(u8),
    /// A session starts, unless one runs.
    Start,
}

/// A message that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) priority: Priority,
    pub(crate) raw: bool,
    pub(crate) body: u8,
    /// Only a few different keys, so that messages share them.
    pub(crate) key: Option<u8>,
    /// In seconds, like `delay` and `deadline`.
    pub(crate) ttl: Option<u8>,
    pub(crate) delay: Option<u8>,
    pub(crate) deadline: Option<u8>,
    pub(crate) expects_reply: bool,
    pub(crate) from: Writer,
    pub(crate) link: Option<(Link, u8)>,
    pub(crate) route: SendRoute,
}

/// The author of a message. The simulated agent writes to another agent; the others write to the
/// simulated agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Peer,
    Human,
    /// The simulated agent.
    Agent,
}

/// The relation of a message to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    RepliesTo,
    Closes,
}

/// The way in which a sender stores a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendRoute {
    /// Through the session, if one runs.
    Socket,
    /// Into the journal, past the session.
    Direct,
    /// The sender is killed after its commit, before it notifies the session.
    Killed,
}

/// An action of the simulated program or its hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramAction {
    Output,
    Ask,
    /// The question closes by itself.
    CloseQuestion,
    StopReading,
    StartReading,
    SetPasteMode(bool),
    /// The input box is hidden or shown again.
    HideInputBox(bool),
    /// A denial ends the turn. Prompts that were taken during the turn stay unanswered.
    EndTurn,
    /// The next write to the terminal fails half-way.
    FailNextWrite,
    /// The program calls the hook that takes mail.
    CallHook,
    /// The hooks that hold mail are killed.
    KillHooks,
    Exit,
}

/// An action of the person at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PersonAction {
    Type,
    Submit,
    Clear,
    /// The person takes the queued prompts back into the input box.
    TakeBack,
    Pause(PausedBy),
    Release(PausedBy),
    /// The person requests a pause at the end of the turn.
    Checkpoint,
}

/// How the program's API answers. Every answer can come late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ApiBehaviour {
    #[default]
    Answers,
    /// Nobody listens on the port.
    IsDown,
    /// The terminal shows another conversation than the one that the hooks named.
    ShowsAnother,
    /// A check succeeds; every other request is refused.
    Refuses,
    /// A check succeeds; every other request is carried out, and its answer is lost.
    LosesAnswers,
    /// A check succeeds; every other request is lost.
    LosesRequests,
}

/// The state of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    Works,
    Full,
    /// Commits that must be synced fail, but their facts may reappear after a crash.
    FailsToSync,
    /// Every read and write fails with an error that is not worth a retry.
    Broken,
}

const PAUSES: [PausedBy; 4] = [
    PausedBy::Viewer,
    PausedBy::Request,
    PausedBy::Checkpoint,
    PausedBy::Interactive,
];

/// Return the releases of every kind of pause.
pub(crate) fn releases() -> impl Iterator<Item = PersonAction> {
    PAUSES.into_iter().map(PersonAction::Release)
}
