//! Command line of the lab.

use crate::list::{CASES, Case, LAST, RACES, SOAK};
use posthaste_lab::agents::{Agent, Wanted};
use std::sync::atomic::Ordering;
use std::time::Duration;

const USAGE: &str = "\
usage: [--agent NAME]... [--case NAME]... [--repeat N] [--messages N] [--limit SECONDS] [--jobs N] [--newest | --earlier] [--json]
  --agent   claude, codex, opencode or gemini; all, if none is named
  --case    a row of the table; all, if none is named
  --repeat  how often a race is tried with each agent [5]
  --messages how many messages the case 'kills' sends [30]
  --limit   how long a case may take [120]
  --jobs    how many agents run at a time [2]
  --newest  run npm's newest versions, report what differs in one line each, and exit 0
  --earlier run the versions that were pinned before
  --json    the table as JSON";

pub(crate) struct Args {
    pub(crate) agents: Vec<Agent>,
    pub(crate) wanted: Wanted,
    pub(crate) cases: Vec<Case>,
    pub(crate) repeat: u32,
    pub(crate) limit: Duration,
    pub(crate) jobs: u32,
    pub(crate) json: bool,
}

impl Args {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            agents: Vec::new(),
            wanted: Wanted::Pinned,
            cases: Vec::new(),
            repeat: 5,
            limit: crate::DEFAULT_LIMIT,
            jobs: 2,
            json: false,
        };
        while let Some(word) = words.next() {
            if word == "--earlier" {
                args.wanted = Wanted::Earlier;
                continue;
            }
            if word == "--newest" {
                args.wanted = Wanted::Newest;
                continue;
            }
            if word == "--json" {
                args.json = true;
                continue;
            }
            if ![
                "--agent",
                "--case",
                "--repeat",
                "--messages",
                "--limit",
                "--jobs",
            ]
            .contains(&word.as_str())
            {
                return Err(format!("{word:?} is not understood\n{USAGE}"));
            }
            let value = words.next().unwrap_or_default();
            args.take(&word, &value)
                .ok_or(format!("{word} {value:?} is not understood\n{USAGE}"))?;
        }
        if args.agents.is_empty() {
            args.agents.extend(Agent::ALL);
        }
        if args.cases.is_empty() {
            args.cases.extend(all());
        }
        Ok(args)
    }

    fn take(&mut self, word: &str, value: &str) -> Option<()> {
        let number = || value.parse().ok().filter(|number| *number > 0);
        match word {
            "--agent" => self.agents.push(Agent::named(value)?),
            "--case" => self.cases.push(all().find(|case| case.name == value)?),
            "--repeat" => self.repeat = number()?,
            "--messages" => crate::scenarios::soak::MESSAGES.store(number()?, Ordering::Relaxed),
            "--limit" => self.limit = Duration::from_secs(u64::from(number()?)),
            _ => self.jobs = number()?,
        }
        Some(())
    }
}

fn all() -> impl Iterator<Item = Case> {
    CASES.into_iter().chain(RACES).chain(LAST).chain(SOAK)
}
