//! Generates the script of a seed: the program, and random lines with a few scenes.

use crate::priority::Priority;
use crate::receipt::Order;
use crate::sim::script::insertions::{
    with_api, with_checkpoints, with_hooks, with_kills, with_misleading_hooks, with_nudges,
    with_outages, with_withdrawals,
};
use crate::sim::script::random::Random;
use crate::sim::script::scene::scene;
use crate::sim::script::{
    Disk, KnownScreen, Line, Link, PAUSES, PersonAction, Post, ProgramAction, ProgramProfile,
    Script, SendRoute, Writer,
};

impl Script {
    /// Return the script of a seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut script = Self::without_nudges(seed);
        let profile = &mut script.profile;
        profile.transcript_proves = profile.hooks_report && seed.is_multiple_of(3);
        // Like OpenCode, which takes prompts in the middle of a turn and reports them by hooks.
        profile.has_api = profile.hooks_report
            && !profile.hooks_take_mail
            && !profile.transcript_proves
            && seed % 13 < 8;
        profile.queues_prompts |= profile.has_api;
        profile.types_while_working = profile.transcript_proves && profile.queues_prompts;
        profile.names_transcript_late = profile.transcript_proves && seed % 16 > 7;
        profile.transcript_is_missing = profile.transcript_proves && seed.is_multiple_of(11);
        profile.resumes_conversation =
            profile.transcript_proves && !seed.is_multiple_of(5) && !profile.transcript_is_missing;
        if script.profile.resumes_conversation {
            let mut random = Random::new(seed.rotate_left(8));
            script.lines = with_kills(&mut random, script.lines);
        }
        if script.profile.queues_prompts {
            let mut random = Random::new(seed.rotate_left(40));
            script.lines = with_withdrawals(&mut random, script.lines);
        }
        if script.profile.has_api {
            let mut random = Random::new(seed.rotate_left(56));
            script.lines = with_api(&mut random, script.lines);
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
        has_api: false,
        types_while_working: false,
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

pub(super) fn post(random: &mut Random) -> Post {
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
