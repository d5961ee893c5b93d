//! Short scenes that random lines would seldom produce: a draft, a question, unread input or an
//! owed reply, each with an interruption.

use crate::delivery::PausedBy;
use crate::priority::Priority;
use crate::sim::script::random::Random;
use crate::sim::script::{
    ApiBehaviour, Line, Link, PersonAction, Post, ProgramAction, SendRoute, Writer,
};

/// Return a few lines that belong together. Shrinking can remove each of them.
pub(crate) fn scene(random: &mut Random) -> Vec<Line> {
    match random.below(5) {
        0 => draft(random),
        1 => question(random),
        2 => unread_input(random),
        3 => owed_reply(random),
        _ => storm(random),
    }
}

fn steps(random: &mut Random) -> Line {
    Line::Steps(1 + random.byte() % 24)
}

fn post(priority: Priority) -> Post {
    Post {
        priority,
        raw: false,
        body: 5,
        key: None,
        ttl: None,
        delay: None,
        deadline: None,
        expects_reply: false,
        from: Writer::Human,
        link: None,
        route: SendRoute::Direct,
    }
}

fn mail(random: &mut Random) -> Line {
    Line::Post(post(random.pick(&Priority::ALL)))
}

/// Return an interruption.
fn interruption(random: &mut Random) -> Line {
    random.pick(&[
        Line::Program(ProgramAction::Ask),
        Line::Program(ProgramAction::Ask),
        Line::Program(ProgramAction::CloseQuestion),
        Line::Program(ProgramAction::StopReading),
        Line::Program(ProgramAction::FailNextWrite),
        Line::Program(ProgramAction::HideInputBox(true)),
        Line::Program(ProgramAction::Exit),
        Line::Person(PersonAction::Type),
        Line::Person(PersonAction::Submit),
        Line::Person(PersonAction::Pause(PausedBy::Viewer)),
        Line::Wait(51),
        Line::Wait(2_000),
    ])
}

/// A person leaves a draft, and a message arrives.
fn draft(random: &mut Random) -> Vec<Line> {
    vec![
        Line::Person(PersonAction::Type),
        Line::Steps(16),
        Line::Wait(2_500),
        mail(random),
        steps(random),
        interruption(random),
        steps(random),
        Line::Wait(60),
        steps(random),
        interruption(random),
        steps(random),
        Line::Wait(2_000),
    ]
}

/// An answer to a question, and perhaps another question before the answer is typed.
fn question(random: &mut Random) -> Vec<Line> {
    let answer = Post {
        raw: true,
        ..post(Priority::Normal)
    };
    vec![
        mail(random),
        steps(random),
        Line::Program(ProgramAction::Ask),
        Line::Steps(12),
        Line::Post(answer),
        steps(random),
        interruption(random),
        Line::Program(ProgramAction::Ask),
        steps(random),
        Line::Wait(60),
        steps(random),
    ]
}

/// A person's prompt, after some time, a message in the middle of its turn, and a denial that ends
/// the turn after some steps.
pub(crate) fn denial(after_millis: u32, steps: u8) -> Vec<Line> {
    vec![
        Line::Api(ApiBehaviour::Answers),
        Line::Wait(after_millis),
        Line::Steps(24),
        Line::Person(PersonAction::Type),
        Line::Person(PersonAction::Submit),
        Line::Steps(16),
        Line::Post(post(Priority::Normal)),
        Line::Steps(24),
        Line::Steps(steps),
        Line::Program(ProgramAction::EndTurn),
        Line::Steps(steps),
    ]
}

/// A person's prompt, a message in the middle of its turn, and the person takes the message back from
/// the program's queue, with some steps before and after that.
pub(crate) fn withdrawal(before: u8, after: u8) -> Vec<Line> {
    vec![
        Line::Person(PersonAction::Type),
        Line::Person(PersonAction::Submit),
        Line::Steps(16),
        Line::Post(post(Priority::Normal)),
        Line::Steps(24),
        Line::Wait(110),
        Line::Steps(24),
        Line::Wait(60),
        Line::Steps(before),
        Line::Person(PersonAction::TakeBack),
        Line::Steps(after),
    ]
}

/// The program does not read its input.
fn unread_input(random: &mut Random) -> Vec<Line> {
    vec![
        mail(random),
        steps(random),
        Line::Wait(51),
        steps(random),
        Line::Program(ProgramAction::StopReading),
        steps(random),
        Line::Wait(1_000),
        steps(random),
        interruption(random),
        steps(random),
        Line::Program(ProgramAction::StartReading),
    ]
}

/// A reply is expected, and the agent becomes idle a few times.
fn owed_reply(random: &mut Random) -> Vec<Line> {
    let asked = Post {
        expects_reply: true,
        ..post(Priority::Normal)
    };
    let answer = Post {
        from: Writer::Agent,
        link: Some((Link::RepliesTo, random.byte())),
        ..post(Priority::Normal)
    };
    let mut lines = vec![Line::Post(asked)];
    for _ in 0..4 {
        lines.extend([Line::Steps(24), Line::Wait(5_000), steps(random)]);
        lines.push(interruption(random));
    }
    lines.push(Line::Post(answer));
    lines.extend([Line::Steps(24), Line::Wait(5_000), Line::Steps(24)]);
    lines
}

/// Two agents reply to each other, or one of them keeps sending.
fn storm(random: &mut Random) -> Vec<Line> {
    let mut lines = Vec::new();
    for n in 0..7 {
        let from = random.pick(&[Writer::Peer, Writer::Agent]);
        let link = Some((Link::RepliesTo, n));
        let post = Post {
            from,
            link: link.filter(|_| random.one_in(2)),
            ..post(Priority::Normal)
        };
        lines.extend([Line::Post(post), steps(random)]);
    }
    lines
}
