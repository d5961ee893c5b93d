//! The stage of a desk that goes by what the screen shows: sightings, and desks that have had one.
//! What is tested of it is in the modules below.

mod drafts;
mod enter;
mod questions;
mod whatever;
mod work;

use super::tests::{Doing, Line, id, idle_at, letter, play, raw, recorded, rule};
use super::*;
use crate::activity::tests::ms;
use crate::harness::{Claim, Field, Manifest, Says, Sighting, Source, Wait};
use crate::priority::Priority::{Idle, Interrupt, Normal};
use crate::session::Ending;
use std::sync::Arc;

/// A program whose input box, questions and work can be seen.
pub(super) fn manifest() -> Manifest {
    let pattern = |text: &str| text.to_owned().try_into().unwrap();
    let mut manifest = Manifest::generic();
    manifest.dialogs.push(crate::harness::Dialog {
        name: "permission".to_owned(),
        pattern: pattern("Do you want"),
        lines: 10,
    });
    manifest.draft.pattern = Some(pattern("^> (?<draft>.*)$"));
    manifest
}

pub(super) fn with(change: impl FnOnce(&mut Manifest)) -> Desk {
    let mut manifest = manifest();
    change(&mut manifest);
    resting(manifest)
}

/// Idle since 2 s, with an empty box.
pub(super) fn resting(manifest: Manifest) -> Desk {
    manifest.check().unwrap();
    let mut desk = idle_at(beginning(manifest));
    desk.on(ms(2_500), Event::Seen(shows(Field::Empty)));
    desk
}

/// One that has just begun.
pub(super) fn beginning(manifest: Manifest) -> Desk {
    let manner = Manner {
        harness: Arc::new(manifest),
        path_bytes: 80,
        reach: Reach::Terminal,
    };
    Desk::new(manner, ms(0))
}

/// A draft can be put aside, and comes back by a key.
pub(super) fn stashing(manifest: &mut Manifest) {
    manifest.draft.stash = Some(keys("ctrl+s"));
    manifest.draft.restore = Some(keys("ctrl+y"));
}

/// A draft gives way to a text: from what begins that at 5,000, and what is recorded, up to the look
/// before Enter.
pub(super) fn giving_way<'a>(
    (doing, begun): (Doing<'a>, &'a str),
    recorded: Doing<'a>,
    write: &'a str,
) -> [Line<'a>; 7] {
    [
        (5_000, doing, begun),
        (5_001, recorded, "strokes [19]"),
        hear(5_002, Event::Stroked, ""),
        seen(5_003, shows(Field::Empty), "look"),
        looked(5_004, shows(Field::Empty), write),
        hear(5_005, Event::Wrote, ""),
        hear(5_055, Event::Tick, "look"),
    ]
}

pub(super) fn keys(said: &str) -> crate::harness::Keys {
    said.to_owned().try_into().unwrap()
}

pub(super) fn shows(field: Field) -> Sighting {
    Sighting {
        field,
        ..Sighting::default()
    }
}

pub(super) fn holds(text: &str) -> Sighting {
    shows(Field::Holds(text.to_owned()))
}

pub(super) fn asks(what: &str) -> Sighting {
    Sighting {
        dialog: Some(what.to_owned()),
        ..Sighting::default()
    }
}

pub(super) fn claims(says: Says) -> Sighting {
    Sighting {
        claims: vec![Claim {
            source: Source::Title,
            says,
            evidence: "its title says so".to_owned(),
        }],
        field: Field::Empty,
        ..Sighting::default()
    }
}

pub(super) fn seen<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    (at, Doing::Hear(Event::Seen(sighting)), want)
}

pub(super) fn looked<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    (at, Doing::Hear(Event::Looked(sighting)), want)
}

pub(super) fn hear<'a>(at: u64, event: Event, want: &'a str) -> Line<'a> {
    (at, Doing::Hear(event), want)
}

/// Up to the look before Enter.
pub(super) fn written(desk: Desk, pending: &[Letter]) -> Desk {
    play(
        desk,
        &[
            (3_000, Doing::Act(pending), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            hear(3_002, Event::Wrote, ""),
            seen(3_010, holds("text"), ""),
            hear(3_052, Event::Tick, "look"),
        ],
    )
}

pub(super) fn evidence(effects: &[Effect]) -> &str {
    match effects {
        [Effect::Offered { evidence, .. }] => evidence,
        other => panic!("{other:?}"),
    }
}
