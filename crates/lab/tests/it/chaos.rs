//! The verdict of `just chaos` on a run that did too little.

#[path = "../chaos/floor.rs"]
mod floor;

use floor::shortfall;
use std::time::Duration;

#[test]
fn a_chaos_run_that_did_too_little_fails() {
    let check = |seconds: u64, sends: usize, kills: usize, want: &[&str]| {
        let found = shortfall(Duration::from_secs(seconds), sends, kills);
        assert_eq!(found, want, "{seconds} s, {sends} sends, {kills} kills");
    };
    let no_kill = "0 killed sessions and programs in 0 s, at least 1 expected";
    check(
        0,
        0,
        0,
        &["0 acknowledged sends in 0 s, at least 1 expected", no_kill],
    );
    check(0, 1, 0, &[no_kill]);
    check(0, 1, 1, &[]);
    check(
        60,
        11,
        1,
        &[
            "11 acknowledged sends in 60 s, at least 12 expected",
            "1 killed sessions and programs in 60 s, at least 2 expected",
        ],
    );
    check(60, 12, 2, &[]);
    check(
        1_800,
        359,
        60,
        &["359 acknowledged sends in 1800 s, at least 360 expected"],
    );
}
