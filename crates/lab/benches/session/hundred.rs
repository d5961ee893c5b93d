//! A hundred sessions in one home.

use super::setup::stage::{Player, Stage};
use posthaste_lab::bench::{Goal, Table, Unit, middle, time};

const SESSIONS: usize = 100;
/// Number of sessions that start concurrently.
const AT_ONCE: usize = 4;
const LISTS: usize = 20;
/// Seconds with which starting and listing the sessions are compared.
const TO_START: f64 = 10.0;
const TO_LIST: f64 = 0.05;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let mut players: Vec<Player> = Vec::new();
    let singly = time(|| {
        for number in 0..SESSIONS {
            players.push(stage.session(&format!("single-{number}")));
        }
    });
    let mut list = stage.ph(&["ls"]);
    let lists = (0..LISTS).map(|_| time(|| assert!(list.status().unwrap().success())));
    let lists = middle(lists.map(|took| took.as_secs_f64()).collect());
    let ended = time(|| stage.clear());
    players.clear();
    let at_once = time(|| {
        for group in 0..SESSIONS / AT_ONCE {
            let starting: Vec<_> = (0..AT_ONCE)
                .map(|number| stage.starting(&format!("group-{group}-{number}")))
                .collect();
            for (mut child, cue) in starting {
                assert!(child.wait().unwrap().success());
                players.push(cue.player());
            }
        }
    });
    let what = format!("{SESSIONS} sessions started, one after the other, against 10 s");
    let goal = Goal::AtMost(1.0);
    table.fixed(&what, Unit::Seconds, singly.as_secs_f64(), TO_START, &goal);
    let what = format!("  the same, {AT_ONCE} at once");
    table.fixed(
        &what,
        Unit::Seconds,
        at_once.as_secs_f64(),
        TO_START,
        &Goal::None,
    );
    let what = format!("ph ls with {SESSIONS} sessions, against 50 ms");
    table.fixed(&what, Unit::Seconds, lists, TO_LIST, &Goal::None);
    let what = format!("{SESSIONS} sessions ended at once, against the same 10 s");
    table.fixed(
        &what,
        Unit::Seconds,
        ended.as_secs_f64(),
        TO_START,
        &Goal::None,
    );
}
