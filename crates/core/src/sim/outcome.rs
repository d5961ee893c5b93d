//! Outcomes of runs under a fixed schedule: the final receipts and the bytes typed, as one hash for
//! a range of seeds. A change of the engine that must not change behaviour keeps every hash.
//!
//! After each line of a script, everything that can happen within [`SETTLE_WITHIN`] happens, in a
//! fixed order. So the outcome does not depend on how many steps one action takes.

use super::law::Broken;
use super::play::{Play, nth};
use super::script::{Line, Script};
use super::trace::Trace;
use crate::fact::Event;
use crate::receipt::Step;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which a run goes on after each line.
const SETTLE_WITHIN: Duration = Duration::from_millis(60);
/// More steps than settling can need.
const SETTLE_STEPS: u32 = 5_000;
/// Seeds whose outcomes are hashed together.
const SEEDS_PER_HASH: u64 = 250;

impl Play {
    /// Return whether nothing is left to do.
    fn settle(&mut self) -> Result<bool, Broken> {
        let until = self.now.mono + SETTLE_WITHIN;
        let most = self.steps + SETTLE_STEPS;
        while self.steps < most {
            // In turn, so that nobody waits for good.
            if let Some(next) = nth(&self.next(), self.steps as u8).copied() {
                self.step(next)?;
                continue;
            }
            let Some(at) = self.wakeup().filter(|at| *at <= until) else {
                return Ok(true);
            };
            self.pass(at.saturating_sub(self.now.mono));
            self.wake()?;
        }
        Ok(false)
    }

    /// The last proof of every message, how often it was offered, and every text that was typed.
    fn outcome(&self) -> String {
        let mut receipts: BTreeMap<_, (usize, &str)> = BTreeMap::new();
        for fact in self.journal.facts() {
            let Event::Progress(progress) = &fact.event else {
                continue;
            };
            let (texts, last) = receipts.entry(progress.message).or_default();
            *texts += usize::from(progress.step == Step::Uncertain);
            match (progress.step, *last) {
                // Both receipts of one offer are written at once, in any order.
                (Step::Offered, "accepted") => {}
                (Step::Offering | Step::Withdrawn, _) => {}
                (step, _) => *last = step.as_str(),
            }
        }
        let mut typed: Vec<_> = self.turns.iter().map(|turn| &turn.text).collect();
        typed.sort();
        format!("{receipts:?} {typed:?}")
    }
}

/// What became of the messages of one seed.
fn outcome(seed: u64) -> String {
    let mut script = Script::from_seed(seed);
    script.crash = None;
    play(&script).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"))
}

fn play(script: &Script) -> Result<String, Broken> {
    let mut play = Play::new(script, Trace::default());
    for line in &script.lines {
        if !matches!(line, Line::Step(_) | Line::Run(_)) {
            play.line(*line)?;
        }
        if !play.settle()? {
            return Ok("does not settle".to_owned());
        }
    }
    play.end_well()?;
    Ok(play.outcome())
}

/// FNV-1a: short, and the same on every machine.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a file to compare with comes from outside"
)]
fn outcomes_under_a_fixed_schedule() {
    let seeds = 0..4 * SEEDS_PER_HASH;
    let outcomes: Vec<_> = seeds.map(outcome).collect();
    // To see which seeds differ from another build's.
    if let Ok(path) = std::env::var("PH_SIM_OUTCOMES") {
        let lines = outcomes.join("\n") + "\n";
        std::fs::write(path, lines).expect("a file that can be written");
    }
    let hashes: Vec<_> = outcomes
        .chunks(SEEDS_PER_HASH as usize)
        .map(|chunk| hash(&chunk.concat()))
        .collect();
    assert_eq!(hashes, HASHES);
}

const HASHES: [u64; 4] = [
    16_598_605_790_000_431_555,
    2_305_384_467_586_787_486,
    14_394_984_623_693_169_518,
    2_475_531_390_736_601_755,
];
