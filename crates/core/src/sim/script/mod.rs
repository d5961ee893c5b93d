//! The script of one run, as data: a seed generates it, and a failing run is printed as its
//! shortest failing script.
//!
//! A line names a message by a number, which is resolved when the line is played. So any subset of
//! the lines is a valid script.

pub(crate) mod random;
pub(crate) mod scene;
pub(crate) mod shrink;

use crate::delivery::PausedBy;
use crate::priority::Priority;
use crate::receipt::Order;
use crate::sim::script::random::Random;
use crate::sim::script::scene::scene;

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
    Pause(PausedBy),
    Release(PausedBy),
    /// The person requests a pause at the end of the turn.
    Checkpoint,
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

impl Script {
    /// Return the script of a seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut script = Self::without_nudges(seed);
        let profile = &mut script.profile;
        profile.transcript_proves = profile.hooks_report && seed.is_multiple_of(3);
        profile.names_transcript_late = profile.transcript_proves && seed % 16 > 7;
        profile.transcript_is_missing = profile.transcript_proves && seed.is_multiple_of(11);
        profile.resumes_conversation =
            profile.transcript_proves && !seed.is_multiple_of(5) && !profile.transcript_is_missing;
        if script.profile.resumes_conversation {
            let mut random = Random::new(seed.rotate_left(8));
            script.lines = with_kills(&mut random, script.lines);
        }
        if seed % 9 == 4 {
            let mut random = Random::new(seed.rotate_left(24));
            script.lines = with_outages(&mut random, script.lines);
        }
        if seed % 5 < 2 {
            let mut random = Random::new(seed.rotate_left(16));
            script.lines = with_nudges(&mut random, script.lines);
        }
        if seed % 7 == 3 {
            let mut random = Random::new(seed.rotate_left(48));
            script.lines = with_checkpoints(&mut random, script.lines);
        }
        script
    }

    /// Return the script of a seed without nudges.
    pub(crate) fn without_nudges(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut profile = profile(&mut random);
        // In half of all runs, the program is ready before the first message.
        let mut lines = vec![Line::Start];
        if random.one_in(2) {
            lines.push(Line::Wait(profile.boot_millis + 2_500));
        }
        let count = 20 + random.below(50);
        for _ in 0..count {
            if random.one_in(50) {
                lines.extend(scene(&mut random));
            }
            lines.push(line(&mut random));
        }
        // Uses separate random numbers, so that the rest of the script stays unchanged.
        profile.hooks_take_mail = seed % 4 == 3;
        if profile.hooks_take_mail {
            lines = with_hooks(&mut Random::new(!seed), lines);
        }
        profile.hooks_report = matches!(seed % 8, 1 | 3 | 5);
        profile.queues_prompts = profile.hooks_report && seed % 16 < 8;
        if profile.hooks_report {
            lines = with_misleading_hooks(&mut Random::new(seed.rotate_left(32)), lines);
        }
        Self {
            profile,
            lines,
            crash: None,
        }
    }
}

/// Insert nudges.
fn with_nudges(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(8) {
            all.push(Line::Nudge(random.byte()));
            all.push(Line::Steps(random.byte() % 8));
            all.push(Line::Wait(random.pick(&[1, 30, 200, 1_500, 5_100])));
        }
        if random.one_in(16) {
            all.push(Line::CheckAnswer);
            all.push(Line::Wait(random.pick(&[1, 30, 600])));
        }
    }
    all
}

/// Insert messages whose session is killed before it has read the transcript.
fn with_kills(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(16) {
            let post = Post {
                raw: false,
                priority: Priority::Normal,
                from: Writer::Human,
                route: SendRoute::Direct,
                ..post(random)
            };
            all.extend([
                Line::Wait(5_000),
                Line::Post(post),
                Line::Steps(24),
                Line::Wait(60),
            ]);
            all.extend([
                Line::Steps(random.byte() % 24),
                Line::Wait(60),
                Line::Steps(random.byte() % 24),
            ]);
            all.extend([Line::Kill, Line::Start]);
        }
    }
    all
}

/// Insert outages of the journal.
fn with_outages(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(12) {
            all.push(Line::Disk(Disk::Broken));
            all.extend([Line::PeriodicCheck, Line::Steps(1 + random.byte() % 12)]);
            all.extend([Line::Disk(Disk::Works), Line::PeriodicCheck]);
        }
    }
    all
}

/// Insert requests for a pause at the end of the turn.
fn with_checkpoints(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(10) {
            all.push(Line::Person(PersonAction::Checkpoint));
            all.push(Line::Steps(random.byte() % 16));
            let release = PersonAction::Release(PausedBy::Checkpoint);
            all.extend(random.one_in(2).then_some(Line::Person(release)));
        }
    }
    all
}

/// Insert hook calls that take mail.
fn with_hooks(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(4) {
            all.push(Line::Steps(1 + random.byte() % 6));
            all.push(Line::Program(ProgramAction::CallHook));
            all.push(Line::Steps(random.byte() % 4));
        }
        if random.one_in(12) {
            all.push(Line::Program(ProgramAction::KillHooks));
        }
    }
    all
}

/// Insert hook calls that prove nothing.
fn with_misleading_hooks(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(10) {
            all.push(Line::MisleadingHook(random.byte()));
        }
    }
    all
}

fn profile(random: &mut Random) -> ProgramProfile {
    ProgramProfile {
        boot_millis: random.pick(&[0, 300, 1_500, 4_000, 12_000]),
        work_millis: random.pick(&[100, 1_000, 3_000, 20_000]),
        is_silent: random.one_in(4),
        takes_pastes: !random.one_in(3),
        swallows_enter_every: random.pick(&[0, 0, 0, 1, 2, 3]),
        asks_every: random.pick(&[0, 0, 1, 2, 3]),
        interrupt_closes_questions: random.one_in(2),
        interrupt_stops_work: !random.one_in(3),
        repeats_hook_calls: random.one_in(2),
        screen: random.pick(&[
            KnownScreen::Nothing,
            KnownScreen::Questions,
            KnownScreen::InputBox,
            KnownScreen::InputBox,
        ]),
        restores_input: random.one_in(2),
        title_shows_work: random.one_in(2),
        interrupt_ends_program: random.one_in(3),
        first_key_answers: random.one_in(3),
        never_replies: random.one_in(8),
        hooks_take_mail: false,
        hooks_report: false,
        queues_prompts: false,
        transcript_proves: false,
        names_transcript_late: false,
        transcript_is_missing: false,
        resumes_conversation: false,
    }
}

fn line(random: &mut Random) -> Line {
    match random.below(100) {
        0..34 => Line::Step(random.byte()),
        34..44 => Line::Steps(4 + random.byte() % 16),
        44..58 => Line::Wait(random.pick(&[1, 10, 49, 51, 400, 1_000, 2_000, 5_000])),
        58 => Line::Stall(random.pick(&[30, 700, 2_500, 200_000, 200_000])),
        59 => Line::PeriodicCheck,
        60 => Line::SetClock(random.pick(&[-40, -3, 3, 40])),
        61..74 => Line::Post(post(random)),
        74 => Line::Resend(random.byte()),
        75 => Line::ResendChanged(random.byte()),
        76..79 => Line::Order(order(random), random.byte()),
        79 => Line::Inject,
        80 => Line::MisleadingHook(random.byte()),
        81..87 => Line::Program(program_action(random)),
        87..94 => Line::Person(person_action(random)),
        94 => Line::Disk(random.pick(&[Disk::Works, Disk::Full, Disk::FailsToSync])),
        95 => Line::Kill,
        96 => Line::PowerCut(random.byte()),
        97 => Line::Disk(Disk::FailsToSync),
        _ => Line::Start,
    }
}

fn post(random: &mut Random) -> Post {
    let some = |random: &mut Random, many| random.one_in(many).then(|| random.byte());
    Post {
        priority: random.pick(&Priority::ALL),
        raw: random.one_in(8),
        body: random.byte(),
        key: some(random, 4).map(|key| key % 3),
        ttl: some(random, 5).map(|ttl| ttl % 60),
        delay: some(random, 6).map(|delay| delay % 60),
        deadline: some(random, 4).map(|deadline| deadline % 20),
        expects_reply: random.one_in(3),
        from: random.pick(&[Writer::Peer, Writer::Peer, Writer::Human, Writer::Agent]),
        link: some(random, 3).map(|n| (random.pick(&[Link::RepliesTo, Link::Closes]), n)),
        route: random.pick(&[
            SendRoute::Socket,
            SendRoute::Socket,
            SendRoute::Direct,
            SendRoute::Killed,
        ]),
    }
}

fn order(random: &mut Random) -> Order {
    random.pick(&[
        Order::Cancel,
        Order::Cancel,
        Order::Cancel,
        Order::MarkRead,
        Order::MarkUnread,
        Order::Archive,
        Order::Delete,
    ])
}

fn program_action(random: &mut Random) -> ProgramAction {
    random.pick(&[
        ProgramAction::Output,
        ProgramAction::Ask,
        ProgramAction::Ask,
        ProgramAction::CloseQuestion,
        ProgramAction::StopReading,
        ProgramAction::StartReading,
        ProgramAction::SetPasteMode(true),
        ProgramAction::SetPasteMode(false),
        ProgramAction::HideInputBox(true),
        ProgramAction::HideInputBox(false),
        ProgramAction::FailNextWrite,
        ProgramAction::Exit,
    ])
}

fn person_action(random: &mut Random) -> PersonAction {
    let by = random.pick(&PAUSES);
    random.pick(&[
        PersonAction::Type,
        PersonAction::Type,
        PersonAction::Submit,
        PersonAction::Clear,
        PersonAction::Pause(by),
        PersonAction::Release(by),
    ])
}

/// Return the releases of every kind of pause.
pub(crate) fn releases() -> impl Iterator<Item = PersonAction> {
    PAUSES.into_iter().map(PersonAction::Release)
}
