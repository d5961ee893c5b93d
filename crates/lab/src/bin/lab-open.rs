//! Opens the journal of a home and exits: the lower limit for a hook.

use posthaste_store::{Home, Journal, Patience};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args_os().nth(1).ok_or("usage: lab-open HOME")?;
    let journal = Journal::open_existing(Home::open(home, None)?, Patience::HOOK)?;
    journal.map(drop).ok_or_else(|| "no journal there".into())
}
