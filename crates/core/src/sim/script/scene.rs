//! Short scenes that random lines would seldom make: a draft, a question, a program that does not
//! read, or an owed reply, each with an interruption.

use crate::delivery::PausedBy;
use crate::priority::Priority;
use crate::sim::script::random::Chance;
use crate::sim::script::{Act, Deed, Line, Link, Post, Way, Writer};

/// Return a few lines that belong together. The shrinker can remove each of them.
pub(crate) fn scene(chance: &mut Chance) -> Vec<Line> {
    match chance.below(5) {
        0 => draft(chance),
        1 => question(chance),
        2 => deaf(chance),
        3 => debt(chance),
        _ => storm(chance),
    }
}

fn run(chance: &mut Chance) -> Line {
    Line::Run(1 + chance.byte() % 24)
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
        way: Way::Direct,
    }
}

fn mail(chance: &mut Chance) -> Line {
    Line::Post(post(chance.pick(&Priority::ALL)))
}

/// Return an interruption.
fn trouble(chance: &mut Chance) -> Line {
    chance.pick(&[
        Line::Agent(Act::Ask),
        Line::Agent(Act::Ask),
        Line::Agent(Act::Unask),
        Line::Agent(Act::StopReading),
        Line::Agent(Act::BreakWrite),
        Line::Agent(Act::Hide(true)),
        Line::Agent(Act::Exit),
        Line::Person(Deed::Type),
        Line::Person(Deed::Submit),
        Line::Person(Deed::Pause(PausedBy::Viewer)),
        Line::Wait(51),
        Line::Wait(2_000),
    ])
}

/// A person leaves a draft, and mail comes.
fn draft(chance: &mut Chance) -> Vec<Line> {
    vec![
        Line::Person(Deed::Type),
        Line::Run(16),
        Line::Wait(2_500),
        mail(chance),
        run(chance),
        trouble(chance),
        run(chance),
        Line::Wait(60),
        run(chance),
        trouble(chance),
        run(chance),
        Line::Wait(2_000),
    ]
}

/// A question, its answer, and perhaps another question before that is typed.
fn question(chance: &mut Chance) -> Vec<Line> {
    let answer = Post {
        raw: true,
        ..post(Priority::Normal)
    };
    vec![
        mail(chance),
        run(chance),
        Line::Agent(Act::Ask),
        Line::Run(12),
        Line::Post(answer),
        run(chance),
        trouble(chance),
        Line::Agent(Act::Ask),
        run(chance),
        Line::Wait(60),
        run(chance),
    ]
}

/// The program does not read its input.
fn deaf(chance: &mut Chance) -> Vec<Line> {
    vec![
        mail(chance),
        run(chance),
        Line::Wait(51),
        run(chance),
        Line::Agent(Act::StopReading),
        run(chance),
        Line::Wait(1_000),
        run(chance),
        trouble(chance),
        run(chance),
        Line::Agent(Act::Read),
    ]
}

/// A reply is expected, and the agent becomes idle a few times.
fn debt(chance: &mut Chance) -> Vec<Line> {
    let asked = Post {
        expects_reply: true,
        ..post(Priority::Normal)
    };
    let answer = Post {
        from: Writer::Agent,
        link: Some((Link::Answers, chance.byte())),
        ..post(Priority::Normal)
    };
    let mut lines = vec![Line::Post(asked)];
    for _ in 0..4 {
        lines.extend([Line::Run(24), Line::Wait(5_000), run(chance)]);
        lines.push(trouble(chance));
    }
    lines.push(Line::Post(answer));
    lines.extend([Line::Run(24), Line::Wait(5_000), Line::Run(24)]);
    lines
}

/// Two agents reply to each other, or one of them does not stop.
fn storm(chance: &mut Chance) -> Vec<Line> {
    let mut lines = Vec::new();
    for n in 0..7 {
        let from = chance.pick(&[Writer::Peer, Writer::Agent]);
        let link = Some((Link::Answers, n));
        let post = Post {
            from,
            link: link.filter(|_| chance.one_in(2)),
            ..post(Priority::Normal)
        };
        lines.extend([Line::Post(post), run(chance)]);
    }
    lines
}
