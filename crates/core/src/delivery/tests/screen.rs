//! Delivery to programs whose screen is recognised. This module has the fixtures; the tests are in
//! its submodules.

mod drafts;
mod enter;
mod properties;
mod questions;
mod recognition;
mod work;

use super::*;
use super::{Call, Line, id, idle_at, mail, play, raw, recorded, rule};
use crate::activity::tests::ms;
use crate::harness::{
    Below, BoxState, Claim, Held, InputBox, Manifest, Mismatch, Says, Sighting, Source, Wait,
};
use crate::priority::Priority::{Idle, Interrupt, Normal};
use crate::session::Ending;
use std::sync::Arc;

/// Return a manifest with an input box, a dialog and signs of work.
pub(super) fn manifest() -> Manifest {
    let pattern = |text: &str| text.to_owned().try_into().unwrap();
    let mut manifest = Manifest::generic();
    manifest.dialogs.push(crate::harness::Dialog {
        name: "permission".to_owned(),
        pattern: pattern("Do you want"),
        lines: 10,
        whole: false,
        options: None,
    });
    manifest.input_box = Some(input_box());
    manifest.submit.while_working = false;
    manifest
}

fn input_box() -> InputBox {
    let row = |text: &str| text.to_owned().try_into().unwrap();
    InputBox {
        above: None,
        top: vec![row("-+")],
        prompt: row("> (?<text>.*)"),
        continuation: None,
        bottom: vec![row("-+")],
        full_width: false,
        footer: Vec::new(),
        below: Below::Listed,
        status_rows: 0,
        hints: Vec::new(),
        pasted: vec![row(r"\[Pasted text #\d+\]")],
        scrolled: None,
        visible_cursor: false,
        exceptions: Vec::new(),
        clear: None,
    }
}

/// Give the input box a clear key.
pub(super) fn clearing(manifest: &mut Manifest) {
    let input_box = manifest.input_box.as_mut().unwrap();
    input_box.clear = Some(keys("ctrl+u"));
}

pub(super) fn with(change: impl FnOnce(&mut Manifest)) -> Stage {
    let mut manifest = manifest();
    change(&mut manifest);
    resting(manifest)
}

/// Return a delivery that is idle since 2 s, with a steady empty box.
pub(super) fn resting(manifest: Manifest) -> Stage {
    manifest.check().unwrap();
    let mut delivery = idle_at(beginning(manifest));
    delivery.on(ms(2_400), Input::ScreenChanged(empty()));
    delivery.tick(ms(2_500));
    delivery
}

/// Return a delivery whose program has just started.
pub(super) fn beginning(manifest: Manifest) -> Stage {
    let config = DeliveryConfig {
        has_hooks: manifest.start.hooks,
        harness: Arc::new(manifest),
        path_bytes: 80,
        reach: Reach::Terminal,
    };
    Stage::new(config, ms(0))
}

pub(super) fn keys(said: &str) -> crate::harness::Keys {
    said.to_owned().try_into().unwrap()
}

pub(super) fn shows(input_box: BoxState) -> Sighting {
    Sighting {
        ready: input_box.is_recognised(),
        input_box,
        ..Sighting::default()
    }
}

pub(super) fn empty() -> Sighting {
    shows(BoxState::Empty)
}

pub(super) fn hidden() -> Sighting {
    let mismatch = Mismatch::new("the input box", "Settings");
    shows(BoxState::Unrecognised(mismatch))
}

pub(super) fn holds(text: &str) -> Sighting {
    shows(BoxState::Holds(Held {
        text: text.to_owned(),
        is_scrolled: false,
    }))
}

/// Set the output count of a sighting.
pub(super) fn after_output(output: u64, sighting: Sighting) -> Sighting {
    Sighting { output, ..sighting }
}

pub(super) fn wrote() -> Input {
    Input::Typed("text".to_owned())
}

pub(super) fn asks(what: &str) -> Sighting {
    Sighting {
        dialog: Some(what.to_owned()),
        before: Some(String::new()),
        ..hidden()
    }
}

pub(super) fn claims(says: Says) -> Sighting {
    Sighting {
        claims: vec![Claim {
            source: Source::Title,
            says,
            evidence: "its title says so".to_owned(),
        }],
        ..empty()
    }
}

pub(super) fn seen<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    (at, Call::On(Input::ScreenChanged(sighting)), want)
}

pub(super) fn looked<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    (at, Call::On(looked_at(sighting)), want)
}

pub(super) fn on<'a>(at: u64, event: Input, want: &'a str) -> Line<'a> {
    (at, Call::On(event), want)
}

/// Play an offer up to the look before Enter.
pub(super) fn written(delivery: Stage, pending: &[MessageState]) -> Stage {
    play(
        delivery,
        &[
            (3_000, Call::Act(pending), "offer 1"),
            (3_001, recorded(&[1]), "look"),
            looked(3_001, empty(), "write 1"),
            on(3_002, wrote(), ""),
            seen(3_010, holds("text"), ""),
            tick(3_052, "look"),
        ],
    )
}

pub(super) fn evidence(actions: &[Action]) -> String {
    match receipts(actions)[..] {
        [(_, OfferReport::Offered { evidence, .. })] => evidence.clone(),
        _ => panic!("{actions:?}"),
    }
}
