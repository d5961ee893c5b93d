//! Outcomes of runs under a fixed schedule: the final receipts and the typed texts, with one hash
//! per range of seeds. A change that must not affect behaviour keeps every hash.
//!
//! After each line of a script, all steps that are possible within [`SETTLE_WITHIN`] happen in a
//! fixed order. So the outcome does not depend on the number of steps of one action.

use crate::fact::Event;
use crate::receipt::Step;
use crate::sim::oracle::law::Violation;
use crate::sim::run::trace::Trace;
use crate::sim::run::{Simulation, nth};
use crate::sim::script::{Line, Script};
use std::collections::BTreeMap;
use std::time::Duration;

/// Simulated time for which a run continues after each line of a script.
const SETTLE_WITHIN: Duration = Duration::from_millis(60);
/// Maximum number of steps after one line; more than any line needs to settle.
const SETTLE_STEPS: u32 = 5_000;
/// Seeds whose outcomes are hashed together.
const SEEDS_PER_HASH: u64 = 250;

impl Simulation {
    /// Continue the run for [`SETTLE_WITHIN`]. Return whether no step is possible then.
    fn settle(&mut self) -> Result<bool, Violation> {
        let until = self.now.mono + SETTLE_WITHIN;
        let most = self.steps + SETTLE_STEPS;
        while self.steps < most {
            // Take the possible steps in turn, so that none of them waits forever.
            if let Some(next) = nth(&self.possible_steps(), self.steps as u8).copied() {
                self.step(next)?;
                continue;
            }
            let Some(at) = self.wakeup().filter(|at| *at <= until) else {
                return Ok(true);
            };
            self.advance(at.saturating_sub(self.now.mono));
            self.wake()?;
        }
        Ok(false)
    }

    /// Return the last receipt of every message, how often the message became uncertain, and every
    /// text that was typed.
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

/// Play the script of one seed without a crash, and return the outcome.
fn outcome(seed: u64) -> String {
    let mut script = Script::without_nudges(seed);
    script.crash = None;
    run_script(&script).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"))
}

fn run_script(script: &Script) -> Result<String, Violation> {
    let mut simulation = Simulation::new(script, Trace::default(), None);
    for line in &script.lines {
        if !matches!(line, Line::Step(_) | Line::Steps(_)) {
            simulation.line(*line)?;
        }
        if !simulation.settle()? {
            return Ok("does not settle".to_owned());
        }
    }
    simulation.end_without_faults()?;
    Ok(simulation.outcome())
}

/// Return the FNV-1a hash of a text, which is equal on every machine.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the path of the outcome file comes from the environment"
)]
fn outcomes_under_a_fixed_schedule() {
    let seeds = 0..4 * SEEDS_PER_HASH;
    let outcomes: Vec<_> = seeds.map(outcome).collect();
    // The file allows a comparison with the outcomes of another build, seed by seed.
    if let Ok(path) = std::env::var("PH_SIM_OUTCOMES") {
        let lines = outcomes.join("\n") + "\n";
        std::fs::write(path, lines).expect("a writable file");
    }
    let hashes: Vec<_> = outcomes
        .chunks(SEEDS_PER_HASH as usize)
        .map(|chunk| hash(&chunk.concat()))
        .collect();
    assert_eq!(hashes, HASHES);
}

const HASHES: [u64; 4] = [
    3_698_023_129_126_058_694,
    5_909_394_940_254_152_399,
    11_583_798_842_416_696_263,
    16_417_150_527_533_212_899,
];
