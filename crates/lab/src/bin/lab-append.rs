//! Appends messages one by one, and prints the id of each after the journal has stored it. For
//! tests that kill it.
//!
//! `lab-append --hold HOME` prints `held` once it has the writers' lock, and keeps it until its
//! standard input ends or it is killed.

use jiff::Timestamp;
use posthaste_core::{AgentName, Draft, MessageId};
use posthaste_lab::text_of;
use posthaste_store::operation::Post;
use posthaste_store::{Home, Journal, Patience};
use std::error::Error;
use std::io::{Read, Write};
use uuid::Uuid;

const USAGE: &str = "usage: lab-append HOME AGENT COUNT | lab-append --hold HOME";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["--hold", home] => hold(home),
        [home, agent, count] => append(home, &AgentName::parse(agent)?, count.parse()?),
        _ => Err(USAGE.into()),
    }
}

fn append(home: &str, to: &AgentName, count: u32) -> Result<(), Box<dyn Error>> {
    let from = AgentName::parse("lab")?;
    let mut out = std::io::stdout().lock();
    let mut journal = Journal::open(Home::open(home, None)?, Patience::DEFAULT)?;
    for _ in 0..count {
        let id = MessageId(Uuid::new_v4());
        let draft = Draft::new(id, from.clone(), to.clone(), text_of(id));
        let now = Timestamp::now();
        journal.commit(Post {
            now,
            drafts: vec![draft],
        })??;
        writeln!(out, "{id}")?;
        out.flush()?;
        journal.tidy()?;
    }
    Ok(())
}

fn hold(home: &str) -> Result<(), Box<dyn Error>> {
    let journal = Journal::open(Home::open(home, None)?, Patience::DEFAULT)?;
    let _held = journal.hold()?;
    writeln!(std::io::stdout().lock(), "held")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
