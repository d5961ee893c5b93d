//! Minimum work of a chaos run. A run that did less proves nothing.

use std::time::Duration;

/// Seconds of a run in which at least one message must be acknowledged.
const SECONDS_PER_SEND: u64 = 5;
/// Seconds of a run in which at least one session or program must be killed.
const SECONDS_PER_KILL: u64 = 30;

/// Return which work was done too rarely in `time`: acknowledged sends, and kills of sessions and
/// programs.
pub(crate) fn shortfall(time: Duration, sends: usize, kills: usize) -> Vec<String> {
    let least =
        |seconds_each: u64| usize::try_from((time.as_secs() / seconds_each).max(1)).unwrap();
    [
        ("acknowledged sends", sends, least(SECONDS_PER_SEND)),
        (
            "killed sessions and programs",
            kills,
            least(SECONDS_PER_KILL),
        ),
    ]
    .into_iter()
    .filter(|(_, done, least)| done < least)
    .map(|(what, done, least)| {
        format!(
            "{done} {what} in {} s, at least {least} expected",
            time.as_secs()
        )
    })
    .collect()
}
