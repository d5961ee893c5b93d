//! A script that fails, cut down to the lines that matter.

use super::law::Law;
use super::play::play;
use super::script::{Line, Script};
use super::trace::Trace;

/// The shortest script found that breaks the same law.
pub(super) fn shrink(script: &Script, law: Law) -> Script {
    let mut least = script.clone();
    let mut chunk = least.lines.len().div_ceil(2);
    while chunk > 0 {
        let before = least.lines.len();
        let mut at = 0;
        while at < least.lines.len() {
            let end = (at + chunk).min(least.lines.len());
            let rest = [&least.lines[..at], &least.lines[end..]].concat();
            match with(&least, rest, law) {
                Some(less) => least = less,
                None => at = end,
            }
        }
        if least.lines.len() == before || chunk > 1 {
            chunk /= 2;
        }
    }
    least
}

fn with(script: &Script, lines: Vec<Line>, law: Law) -> Option<Script> {
    let less = Script {
        nature: script.nature,
        lines,
    };
    let (played, _) = play(&less, Trace::default());
    played
        .is_err_and(|broken| broken.law == law)
        .then_some(less)
}
