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
use crate::sim::script::random::Chance;
use crate::sim::script::scene::scene;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) nature: Nature,
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
pub(crate) struct Nature {
    /// How long it boots; what it reads until then is lost.
    pub(crate) boots: u32,
    /// How long it works on what it is given.
    pub(crate) works: u32,
    /// Whether it writes while it works. One that does not looks idle.
    pub(crate) is_silent: bool,
    pub(crate) takes_pastes: bool,
    /// It swallows every so many-th Enter; none at 0.
    pub(crate) swallows: u8,
    /// It asks for permission at every so many-th prompt; never at 0.
    pub(crate) asks: u8,
    /// The interrupt key dismisses its questions.
    pub(crate) is_dismissed: bool,
    /// The interrupt key stops its work.
    pub(crate) is_stopped: bool,
    /// It calls each hook twice.
    pub(crate) repeats: bool,
    pub(crate) sight: Sight,
    /// Interrupted, it puts what it was given back into its box.
    pub(crate) puts_back: bool,
    /// Its title says whether it works.
    pub(crate) has_title: bool,
    /// The interrupt key ends it where it does nothing.
    pub(crate) quits: bool,
    /// The first key answers its questions, without Enter.
    pub(crate) is_hasty: bool,
    /// Nobody minds that it owes answers, not even in the end.
    pub(crate) never_answers: bool,
    /// Its hooks take mail.
    pub(crate) has_hooks: bool,
    /// Its hooks tell what was submitted, and when it rests.
    pub(crate) proves: bool,
    /// Queues prompts that are submitted while the agent works. The queue is lost when the agent
    /// dies. A hook reports when the model is given a prompt.
    pub(crate) queues: bool,
    /// Its transcript proves what its model was given, and its hooks only name the transcript.
    pub(crate) records: bool,
    /// Its hooks name the transcript only at a prompt.
    pub(crate) names_late: bool,
    /// The transcript that it names never exists.
    pub(crate) is_unrecorded: bool,
    /// It is started with its last conversation.
    pub(crate) resumes: bool,
}

/// What is known of the program's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Nothing. That it asks is told by others.
    Nothing,
    /// When it asks.
    Questions,
    /// When it asks, and what stands in its input box.
    Box,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// One of the things under way comes a step further.
    Step(u8),
    /// So many of them do, one after another.
    Run(u8),
    /// Time passes, in milliseconds; whoever wants to be woken is.
    Wait(u32),
    /// Time passes that nobody was given.
    Stall(u32),
    /// The slow tick: the safety net.
    Tick,
    /// The wall clock steps, in seconds.
    Clock(i32),
    Post(Post),
    /// The same message once more, by its own id.
    Again(u8),
    /// Its id, with another text.
    Forged(u8),
    Order(Order, u8),
    /// A hook puts what waits before the agent.
    Inject,
    /// Somebody wants a line typed that is no message.
    Nudge(u8),
    /// Somebody asks whether an answer would reach its question.
    CheckAnswer,
    /// A hook is called that proves nothing.
    Word(u8),
    Agent(Act),
    Person(Deed),
    Disk(Disk),
    /// `kill -9` of the session.
    Kill,
    /// The power fails: so many facts that were not synced survive.
    Blackout(u8),
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
    pub(crate) way: Way,
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
    Answers,
    Closes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through the session, if one runs.
    Socket,
    Direct,
    /// The sender is killed after its commit: no bell, no answer.
    Killed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Output,
    Ask,
    /// Its question goes away by itself.
    Unask,
    StopReading,
    Read,
    Paste(bool),
    /// Its input box goes out of sight, or comes back.
    Hide(bool),
    /// The next write to its terminal breaks off half-way.
    BreakWrite,
    /// It has used a tool, and calls its hook.
    Hook,
    /// Its hooks are killed, whatever they were given.
    KillHooks,
    Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
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
        let mut script = Self::of_mail(seed);
        let nature = &mut script.nature;
        nature.records = nature.proves && seed.is_multiple_of(3);
        nature.names_late = nature.records && seed % 16 > 7;
        nature.is_unrecorded = nature.records && seed.is_multiple_of(11);
        nature.resumes = nature.records && !seed.is_multiple_of(5) && !nature.is_unrecorded;
        if script.nature.resumes {
            let mut chance = Chance::new(seed.rotate_left(8));
            script.lines = with_crashes(&mut chance, script.lines);
        }
        if seed % 9 == 4 {
            let mut chance = Chance::new(seed.rotate_left(24));
            script.lines = with_outages(&mut chance, script.lines);
        }
        if seed % 5 < 2 {
            let mut chance = Chance::new(seed.rotate_left(16));
            script.lines = with_nudges(&mut chance, script.lines);
        }
        if seed % 7 == 3 {
            let mut chance = Chance::new(seed.rotate_left(48));
            script.lines = with_checkpoints(&mut chance, script.lines);
        }
        script
    }

    /// The script of a seed without nudges.
    pub(crate) fn of_mail(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut nature = nature(&mut chance);
        // Half of all runs begin with an agent that is ready.
        let mut lines = vec![Line::Start];
        if chance.one_in(2) {
            lines.push(Line::Wait(nature.boots + 2_500));
        }
        let many = 20 + chance.below(50);
        for _ in 0..many {
            if chance.one_in(50) {
                lines.extend(scene(&mut chance));
            }
            lines.push(line(&mut chance));
        }
        // By a chance of their own, so that all else stays as it was without them.
        nature.has_hooks = seed % 4 == 3;
        if nature.has_hooks {
            lines = with_hooks(&mut Chance::new(!seed), lines);
        }
        nature.proves = matches!(seed % 8, 1 | 3 | 5);
        nature.queues = nature.proves && seed % 16 < 8;
        if nature.proves {
            lines = with_words(&mut Chance::new(seed.rotate_left(32)), lines);
        }
        Self {
            nature,
            lines,
            crash: None,
        }
    }
}

/// The same, with nudges in between.
fn with_nudges(chance: &mut Chance, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if chance.one_in(8) {
            all.push(Line::Nudge(chance.byte()));
            all.push(Line::Run(chance.byte() % 8));
            all.push(Line::Wait(chance.pick(&[1, 30, 200, 1_500, 5_100])));
        }
        if chance.one_in(16) {
            all.push(Line::CheckAnswer);
            all.push(Line::Wait(chance.pick(&[1, 30, 600])));
        }
    }
    all
}

/// The same, with mail in between whose session is killed before it has read the transcript.
fn with_crashes(chance: &mut Chance, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if chance.one_in(16) {
            let post = Post {
                raw: false,
                priority: Priority::Normal,
                from: Writer::Human,
                way: Way::Direct,
                ..post(chance)
            };
            all.extend([
                Line::Wait(5_000),
                Line::Post(post),
                Line::Run(24),
                Line::Wait(60),
            ]);
            all.extend([
                Line::Run(chance.byte() % 24),
                Line::Wait(60),
                Line::Run(chance.byte() % 24),
            ]);
            all.extend([Line::Kill, Line::Start]);
        }
    }
    all
}

/// The same, with a journal in between that cannot be used.
fn with_outages(chance: &mut Chance, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if chance.one_in(12) {
            all.push(Line::Disk(Disk::Broken));
            all.extend([Line::Tick, Line::Run(1 + chance.byte() % 12)]);
            all.extend([Line::Disk(Disk::Works), Line::Tick]);
        }
    }
    all
}

/// The same, with requests for a pause at the end of the turn in between.
fn with_checkpoints(chance: &mut Chance, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if chance.one_in(10) {
            all.push(Line::Person(Deed::Checkpoint));
            all.push(Line::Run(chance.byte() % 16));
            let release = Deed::Release(PausedBy::Checkpoint);
            all.extend(chance.one_in(2).then_some(Line::Person(release)));
        }
    }
    all
}

/// The same, with calls of hooks in between.
fn with_hooks(chance: &mut Chance, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if chance.one_in(4) {
            all.push(Line::Run(1 + chance.byte() % 6));
            all.push(Line::Agent(Act::Hook));
            all.push(Line::Run(chance.byte() % 4));
        }
        if chance.one_in(12) {
            all.push(Line::Agent(Act::KillHooks));
        }
    }
    all
}

/// The same, with hooks in between that prove nothing.
fn with_words(chance: &mut Chance, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if chance.one_in(10) {
            all.push(Line::Word(chance.byte()));
        }
    }
    all
}

fn nature(chance: &mut Chance) -> Nature {
    Nature {
        boots: chance.pick(&[0, 300, 1_500, 4_000, 12_000]),
        works: chance.pick(&[100, 1_000, 3_000, 20_000]),
        is_silent: chance.one_in(4),
        takes_pastes: !chance.one_in(3),
        swallows: chance.pick(&[0, 0, 0, 1, 2, 3]),
        asks: chance.pick(&[0, 0, 1, 2, 3]),
        is_dismissed: chance.one_in(2),
        is_stopped: !chance.one_in(3),
        repeats: chance.one_in(2),
        sight: chance.pick(&[Sight::Nothing, Sight::Questions, Sight::Box, Sight::Box]),
        puts_back: chance.one_in(2),
        has_title: chance.one_in(2),
        quits: chance.one_in(3),
        is_hasty: chance.one_in(3),
        never_answers: chance.one_in(8),
        has_hooks: false,
        proves: false,
        queues: false,
        records: false,
        names_late: false,
        is_unrecorded: false,
        resumes: false,
    }
}

fn line(chance: &mut Chance) -> Line {
    match chance.below(100) {
        0..34 => Line::Step(chance.byte()),
        34..44 => Line::Run(4 + chance.byte() % 16),
        44..58 => Line::Wait(chance.pick(&[1, 10, 49, 51, 400, 1_000, 2_000, 5_000])),
        58 => Line::Stall(chance.pick(&[30, 700, 2_500, 200_000, 200_000])),
        59 => Line::Tick,
        60 => Line::Clock(chance.pick(&[-40, -3, 3, 40])),
        61..74 => Line::Post(post(chance)),
        74 => Line::Again(chance.byte()),
        75 => Line::Forged(chance.byte()),
        76..79 => Line::Order(order(chance), chance.byte()),
        79 => Line::Inject,
        80 => Line::Word(chance.byte()),
        81..87 => Line::Agent(act(chance)),
        87..94 => Line::Person(deed(chance)),
        94 => Line::Disk(chance.pick(&[Disk::Works, Disk::Full, Disk::FailsToSync])),
        95 => Line::Kill,
        96 => Line::Blackout(chance.byte()),
        97 => Line::Disk(Disk::FailsToSync),
        _ => Line::Start,
    }
}

fn post(chance: &mut Chance) -> Post {
    let some = |chance: &mut Chance, many| chance.one_in(many).then(|| chance.byte());
    Post {
        priority: chance.pick(&Priority::ALL),
        raw: chance.one_in(8),
        body: chance.byte(),
        key: some(chance, 4).map(|key| key % 3),
        ttl: some(chance, 5).map(|ttl| ttl % 60),
        delay: some(chance, 6).map(|delay| delay % 60),
        deadline: some(chance, 4).map(|deadline| deadline % 20),
        expects_reply: chance.one_in(3),
        from: chance.pick(&[Writer::Peer, Writer::Peer, Writer::Human, Writer::Agent]),
        link: some(chance, 3).map(|n| (chance.pick(&[Link::Answers, Link::Closes]), n)),
        way: chance.pick(&[Way::Socket, Way::Socket, Way::Direct, Way::Killed]),
    }
}

fn order(chance: &mut Chance) -> Order {
    chance.pick(&[
        Order::Cancel,
        Order::Cancel,
        Order::Cancel,
        Order::MarkRead,
        Order::MarkUnread,
        Order::Archive,
        Order::Delete,
    ])
}

fn act(chance: &mut Chance) -> Act {
    chance.pick(&[
        Act::Output,
        Act::Ask,
        Act::Ask,
        Act::Unask,
        Act::StopReading,
        Act::Read,
        Act::Paste(true),
        Act::Paste(false),
        Act::Hide(true),
        Act::Hide(false),
        Act::BreakWrite,
        Act::Exit,
    ])
}

fn deed(chance: &mut Chance) -> Deed {
    let by = chance.pick(&PAUSES);
    chance.pick(&[
        Deed::Type,
        Deed::Type,
        Deed::Submit,
        Deed::Clear,
        Deed::Pause(by),
        Deed::Release(by),
    ])
}

/// Every reason for a pause, for whoever wants none of them.
pub(crate) fn releases() -> impl Iterator<Item = Deed> {
    PAUSES.into_iter().map(Deed::Release)
}
