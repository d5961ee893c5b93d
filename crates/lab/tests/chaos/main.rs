//! Chaos test: many agents and senders on the real binary, all killed at random, then a verdict.
//!
//! `just chaos [--minutes N] [--seed S]` runs it; a plain `cargo test` skips it.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod floor;
mod samples;
mod verdict;
mod world;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use world::World;

/// Set by `just chaos`: the test takes minutes, and all cores.
const ENABLE_VAR: &str = "PH_CHAOS";
const USAGE: &str = "\
usage: [--minutes N | --seconds N] [--seed S] [--agents N]
  --minutes, --seconds  duration of the kill phase [1 minute]
  --seed     seed of the random choices [1]; timing still varies
  --agents   how many agents run [20]";

struct Args {
    time: Duration,
    seed: u64,
    agents: usize,
}

fn main() -> ExitCode {
    if std::env::var_os(ENABLE_VAR).is_none() {
        say("skipped: chaos takes minutes; 'just chaos' runs it");
        return ExitCode::SUCCESS;
    }
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            say(&format!("{wrong}\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    let mut world = World::new(args.seed, args.agents);
    world.start_all();
    let begun = Instant::now();
    let mut told_at = begun;
    let mut sampled_at = begun;
    while begun.elapsed() < args.time {
        world.act();
        if sampled_at.elapsed() > Duration::from_secs(2) {
            sampled_at = Instant::now();
            world.sample();
        }
        if told_at.elapsed() > Duration::from_secs(30) {
            told_at = Instant::now();
            say(&format!(
                "{} s: {}",
                begun.elapsed().as_secs(),
                world.progress()
            ));
        }
    }
    let shortfall = world.shortfall(begun.elapsed());
    let is_delivered = world.wait_until_delivered();
    let verdict = verdict::judge(&mut world, is_delivered, shortfall);
    say(&format!(
        "seed {}, {} s: {}",
        args.seed,
        begun.elapsed().as_secs(),
        world.progress()
    ));
    say(&verdict.summary());
    if verdict.is_good() {
        ExitCode::SUCCESS
    } else {
        say(&format!("kept: {}", world.keep().display()));
        ExitCode::FAILURE
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        time: Duration::from_secs(60),
        seed: 1,
        agents: 20,
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or(format!("{flag} needs a value"))?;
        let number: u64 = value
            .parse()
            .map_err(|_| format!("{flag} {value}: not a number"))?;
        match flag.as_str() {
            "--minutes" => args.time = Duration::from_secs(60 * number),
            "--seconds" => args.time = Duration::from_secs(number),
            "--seed" => args.seed = number.max(1),
            "--agents" => args.agents = usize::try_from(number.clamp(1, 100)).unwrap(),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    Ok(args)
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
