//! What happens in one run, as data: made from a seed, printed, and cut down when it fails.
//!
//! A line may name a message by any number; which one it means is settled when it is played, so
//! that every part of a script is a script.

pub(crate) mod random;
pub(crate) mod scene;
pub(crate) mod shrink;

use crate::delivery::PausedBy;
use crate::priority::Priority;
use crate::receipt::Order;
use crate::sim::script::random::Random;
use crate::sim::script::scene::scene;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) profile: ProgramProfile,
    pub(crate) lines: Vec<Line>,
    pub(crate) crash: Option<Crash>,
}

/// A crash in the place of one step of a run, whichever line it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crash {
    pub(crate) at: u32,
    pub(crate) line: Line,
}

/// What kind of program the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramProfile {
    /// How long it boots; what it reads until then is lost.
    pub(crate) boot_millis: u32,
    /// How long it works on what it is given.
    pub(crate) work_millis: u32,
    /// Whether it writes while it works. One that does not looks idle.
    pub(crate) is_silent: bool,
    pub(crate) takes_pastes: bool,
    /// It swallows every so many-th Enter; none at 0.
    pub(crate) swallows_enter_every: u8,
    /// It asks for permission at every so many-th prompt; never at 0.
    pub(crate) asks_every: u8,
    /// The interrupt key dismisses its questions.
    pub(crate) interrupt_closes_questions: bool,
    /// The interrupt key stops its work.
    pub(crate) interrupt_stops_work: bool,
    /// It calls each hook twice.
    pub(crate) repeats_hook_calls: bool,
    pub(crate) screen: KnownScreen,
    /// Interrupted, it puts what it was given back into its box.
    pub(crate) restores_input: bool,
    /// Its title says whether it works.
    pub(crate) title_shows_work: bool,
    /// The interrupt key ends it where it does nothing.
    pub(crate) interrupt_ends_program: bool,
    /// The first key answers its questions, without Enter.
    pub(crate) first_key_answers: bool,
    /// Nobody minds that it owes answers, not even in the end.
    pub(crate) never_replies: bool,
    /// Its hooks take mail.
    pub(crate) hooks_take_mail: bool,
    /// Its hooks tell what was submitted, and when it rests.
    pub(crate) hooks_report: bool,
    /// Queues prompts that are submitted while the agent works. The queue is lost when the agent
    /// dies. A hook reports when the model is given a prompt.
    pub(crate) queues_prompts: bool,
    /// Its transcript proves what its model was given, and its hooks only name the transcript.
    pub(crate) transcript_proves: bool,
    /// Its hooks name the transcript only at a prompt.
    pub(crate) names_transcript_late: bool,
    /// The transcript that it names never exists.
    pub(crate) transcript_is_missing: bool,
    /// It is started with its last conversation.
    pub(crate) resumes_conversation: bool,
}

/// What is known of the program's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownScreen {
    /// Nothing. That it asks is told by others.
    Nothing,
    /// When it asks.
    Questions,
    /// When it asks, and what stands in its input box.
    InputBox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// One of the things under route comes a step further.
    Step(u8),
    /// So many of them do, one after another.
    Steps(u8),
    /// Time passes, in milliseconds; whoever wants to be woken is.
    Wait(u32),
    /// Time passes that nobody was given.
    Stall(u32),
    /// The slow tick: the safety net.
    Tick,
    /// The wall clock steps, in seconds.
    SetClock(i32),
    Post(Post),
    /// The same message once more, by its own id.
    Resend(u8),
    /// Its id, with another text.
    ResendChanged(u8),
    Order(Order, u8),
    /// A hook puts what waits before the agent.
    Inject,
    /// Somebody wants a line typed that is no message.
    Nudge(u8),
    /// Somebody asks whether an answer would reach its question.
    CheckAnswer,
    /// A hook is called that proves nothing.
    MisleadingHook(u8),
    Program(ProgramAction),
    Person(PersonAction),
    Disk(Disk),
    /// `kill -9` of the session.
    Kill,
    /// The power fails: so many facts that were not synced survive.
    PowerCut(u8),
    /// A session is started, if none runs.
    Start,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) priority: Priority,
    pub(crate) raw: bool,
    pub(crate) body: u8,
    /// Few, so that they meet.
    pub(crate) key: Option<u8>,
    /// Seconds.
    pub(crate) ttl: Option<u8>,
    pub(crate) delay: Option<u8>,
    pub(crate) deadline: Option<u8>,
    pub(crate) expects_reply: bool,
    pub(crate) from: Writer,
    pub(crate) link: Option<(Link, u8)>,
    pub(crate) route: SendRoute,
}

/// Who writes; agents to each other, the person to the one that runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Peer,
    Human,
    /// The agent that runs here.
    Agent,
}

/// What a message has to do with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    RepliesTo,
    Closes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendRoute {
    /// Through the session, if one runs.
    Socket,
    Direct,
    /// The sender is killed after its commit: no bell, no answer.
    Killed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramAction {
    Output,
    Ask,
    /// Its question goes away by itself.
    CloseQuestion,
    StopReading,
    StartReading,
    SetPasteMode(bool),
    /// Its input box goes out of sight, or comes back.
    HideInputBox(bool),
    /// The next write to its terminal breaks off half-way.
    FailNextWrite,
    /// It has used a tool, and calls its hook.
    CallHook,
    /// Its hooks are killed, whatever they were given.
    KillHooks,
    Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PersonAction {
    Type,
    Submit,
    Clear,
    Pause(PausedBy),
    Release(PausedBy),
    /// Wants a pause at the end of the turn.
    Checkpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    Works,
    Full,
    /// What is written now is seen by nobody, and a crash may bring it back.
    FailsToSync,
    /// Nothing can be read or written, and no attempt is worth repeating.
    Broken,
}

const PAUSES: [PausedBy; 4] = [
    PausedBy::Viewer,
    PausedBy::Request,
    PausedBy::Checkpoint,
    PausedBy::Interactive,
];

impl Script {
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

    /// The script of a seed without nudges.
    pub(crate) fn without_nudges(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut profile = profile(&mut random);
        // Half of all runs begin with an agent that is ready.
        let mut lines = vec![Line::Start];
        if random.one_in(2) {
            lines.push(Line::Wait(profile.boot_millis + 2_500));
        }
        let many = 20 + random.below(50);
        for _ in 0..many {
            if random.one_in(50) {
                lines.extend(scene(&mut random));
            }
            lines.push(line(&mut random));
        }
        // By a chance of their own, so that all else stays as it was without them.
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

/// The same, with nudges in between.
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

/// The same, with mail in between whose session is killed before it has read the transcript.
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

/// The same, with a journal in between that cannot be used.
fn with_outages(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(12) {
            all.push(Line::Disk(Disk::Broken));
            all.extend([Line::Tick, Line::Steps(1 + random.byte() % 12)]);
            all.extend([Line::Disk(Disk::Works), Line::Tick]);
        }
    }
    all
}

/// The same, with requests for a pause at the end of the turn in between.
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

/// The same, with calls of hooks in between.
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

/// The same, with hooks in between that prove nothing.
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
        59 => Line::Tick,
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

/// Every reason for a pause, for whoever wants none of them.
pub(crate) fn releases() -> impl Iterator<Item = PersonAction> {
    PAUSES.into_iter().map(PersonAction::Release)
}
