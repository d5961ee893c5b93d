use super::law::{Broken, Law};
use super::planted::{self, Bug};
use super::play::play;
use super::script::{Line, Script};
use super::shrink::shrink;
use super::trace::Trace;

/// How many seeds the ordinary tests play, in all.
const SEEDS: u64 = 10_000;
/// How many tests share them, so that they run side by side.
const PARTS: u64 = 4;

#[expect(
    clippy::disallowed_methods,
    reason = "a seed to replay comes from outside"
)]
fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

fn fails(script: &Script) -> Option<Broken> {
    play(script, Trace::default()).0.err()
}

/// All that is to be known of a failure: the law, the shortest script, what happens in it, and how
/// to play the seed again.
fn report(what: &str, script: &Script, broken: &Broken) -> String {
    let least = shrink(script, broken.law);
    let (played, trace) = play(&least, Trace::kept());
    let broken = played.err().unwrap_or_else(|| broken.clone());
    format!(
        "{what} breaks a law.\n{broken}\n\n{:?}\n{}\n{broken}\n\n{} of {} lines are left.",
        least.nature,
        trace.text(),
        least.lines.len(),
        script.lines.len(),
    )
}

fn expect_good(seed: u64) {
    let script = Script::from_seed(seed);
    if let Some(broken) = fails(&script) {
        panic!(
            "{}\nreplay: PH_SIM_SEED={seed} cargo test -p posthaste-core sim::",
            report(&format!("seed {seed}"), &script, &broken)
        );
    }
}

fn part(part: u64) {
    if let Some(seed) = asked("PH_SIM_SEED") {
        return expect_good(seed);
    }
    let seeds = asked("PH_SIM_SEEDS").unwrap_or(SEEDS);
    (part..seeds).step_by(PARTS as usize).for_each(expect_good);
}

#[test]
fn laws_hold_for_every_seed_0() {
    part(0);
}

#[test]
fn laws_hold_for_every_seed_1() {
    part(1);
}

#[test]
fn laws_hold_for_every_seed_2() {
    part(2);
}

#[test]
fn laws_hold_for_every_seed_3() {
    part(3);
}
