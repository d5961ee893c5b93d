//! Reduces a failing script to the lines that matter.

use crate::sim::script::Script;

/// Return the shortest script found for which `fails` is still true.
pub(crate) fn shrink(script: &Script, fails: impl Fn(&Script) -> bool) -> Script {
    let mut least = script.clone();
    let mut chunk = least.lines.len().div_ceil(2);
    while chunk > 0 {
        let before = least.lines.len();
        let mut at = 0;
        while at < least.lines.len() {
            let end = (at + chunk).min(least.lines.len());
            let mut less = least.clone();
            less.lines.drain(at..end);
            if fails(&less) {
                least = less;
            } else {
                at = end;
            }
        }
        // Repeat the pass over single lines as long as it removes some.
        if chunk > 1 || least.lines.len() == before {
            chunk /= 2;
        }
    }
    least
}
