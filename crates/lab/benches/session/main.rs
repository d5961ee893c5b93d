//! Speed of sessions: sockets, terminals and start, as ratios to limits and peers (tmux, dtach)
//! from the same run, because machines are noisy.
//!
//! `just bench` runs it; a name after `--` selects one part. The last column of a row is the range
//! of the middle half of the ratios. A peer that is not installed is skipped.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]

mod attach;
mod delivery;
mod fanout;
mod hook;
mod hundred;
mod memory;
mod output;
mod rpc;
mod send;
mod setup;

use posthaste_lab::bench::{Programs, Table};
use setup::limit;
use setup::stage::Stage;

fn main() {
    // This program is also its own limit server, in another process.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        [limit::ECHO, socket] => return limit::echo(socket),
        [limit::FAN, socket, file] => return limit::fan(socket, file),
        [limit::RELAY, socket, program @ ..] => return limit::relay(socket, program),
        _ => {}
    }
    // An argument selects one part; cargo adds a flag of its own.
    let wanted = words.iter().find(|word| !word.starts_with('-'));
    type Part = (&'static str, fn(&mut Table, &mut Stage));
    let parts: [Part; 9] = [
        ("send", send::measure),
        ("delivery", delivery::measure),
        ("output", output::measure),
        ("attach", attach::measure),
        ("rpc", rpc::measure),
        ("fanout", fanout::measure),
        ("memory", memory::measure),
        ("hundred", hundred::measure),
        ("hook", hook::measure),
    ];
    if let Some(wanted) = wanted
        && !parts.iter().any(|(name, _)| name == wanted)
    {
        panic!(
            "no part is called {wanted}; there are {:?}",
            parts.map(|(name, _)| name)
        );
    }
    let programs = Programs::build();
    let mut table = Table::new();
    let mut stage = Stage::new(table.dir.path(), &programs);
    for (name, part) in parts {
        if wanted.is_none_or(|wanted| *wanted == name) {
            part(&mut table, &mut stage);
            stage.clear();
        }
    }
    drop(stage);
    table.end();
}
