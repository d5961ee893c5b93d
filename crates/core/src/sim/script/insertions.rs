//! Lines that are inserted into the scripts of some seeds. They use random numbers of their own, so
//! the rest of a script stays unchanged.

use crate::delivery::PausedBy;
use crate::priority::Priority;
use crate::sim::script::generate::post;
use crate::sim::script::random::Random;
use crate::sim::script::scene::{denial, withdrawal};
use crate::sim::script::{
    ApiBehaviour, Disk, Line, PersonAction, Post, ProgramAction, SendRoute, Writer,
};

/// Insert nudges.
pub(super) fn with_nudges(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
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
pub(super) fn with_kills(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
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

/// Insert messages that a person takes back from the program's queue, and then submits, clears or
/// leaves in the input box.
pub(super) fn with_withdrawals(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(24) {
            let (before, after) = (random.byte() % 32, random.byte() % 24);
            all.extend(withdrawal(before, after));
            all.push(Line::Wait(random.pick(&[1, 600, 4_000])));
            let end = random.pick(&[
                Some(PersonAction::Clear),
                Some(PersonAction::Clear),
                Some(PersonAction::Submit),
                None,
            ]);
            all.extend(end.map(Line::Person));
            all.push(Line::Steps(random.byte() % 24));
        }
    }
    all
}

/// Insert mail for the program's API, and changes of how the API answers.
pub(super) fn with_api(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(8) {
            all.push(Line::Api(random.pick(&[
                ApiBehaviour::Answers,
                ApiBehaviour::Answers,
                ApiBehaviour::Answers,
                ApiBehaviour::IsDown,
                ApiBehaviour::ShowsAnother,
                ApiBehaviour::Refuses,
                ApiBehaviour::LosesAnswers,
                ApiBehaviour::LosesRequests,
            ])));
        }
        match random.below(48) {
            0..3 => all.extend(api_mail(random)),
            3 => all.extend(denial(random.pick(&[5_000, 31_000]), random.byte() % 32)),
            _ => {}
        }
    }
    all
}

/// A message for the API, and perhaps an interruption.
fn api_mail(random: &mut Random) -> Vec<Line> {
    let mail = Post {
        raw: false,
        route: SendRoute::Socket,
        ..post(random)
    };
    let mut lines = vec![
        Line::Wait(random.pick(&[1, 2_000, 31_000])),
        Line::Steps(12),
        Line::Post(mail),
        Line::Steps(random.byte() % 32),
        Line::Wait(random.pick(&[1, 900, 5_100])),
        Line::Steps(random.byte() % 16),
    ];
    let after = random.pick(&[
        None,
        Some(Line::Program(ProgramAction::Exit)),
        Some(Line::Kill),
        Some(Line::Program(ProgramAction::Ask)),
    ]);
    lines.extend(after.filter(|_| random.one_in(3)));
    lines
}

/// Insert outages of the journal.
pub(super) fn with_outages(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
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
pub(super) fn with_checkpoints(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
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
pub(super) fn with_hooks(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
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
pub(super) fn with_misleading_hooks(random: &mut Random, lines: Vec<Line>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if random.one_in(10) {
            all.push(Line::MisleadingHook(random.byte()));
        }
    }
    all
}
