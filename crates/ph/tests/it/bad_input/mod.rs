//! Bad input: each gets the right result or a clear error with a hint, and nothing is half done.

mod arguments;
mod homes;
mod storage;
mod terminal;
mod texts;

use crate::common::Ph;

/// Every character that acts on a terminal, and some that only look odd.
fn every_control() -> String {
    let odd = "\u{61c}\u{200e}\u{202e}\u{2028}\u{2029}\u{2066}é漢👩‍💻";
    (1..0xa0)
        .filter_map(char::from_u32)
        .chain(odd.chars())
        .collect()
}

/// Runs each row in a home with one message, and holds it to its exit code, its words, and to
/// having changed nothing.
fn check_all(rows: &[(&[&str], i32, &str)]) {
    let ph = Ph::new();
    ph.send("bob 'the one message'");
    let before = (ph.facts(), ph.files());
    for (args, code, says) in rows {
        let done = ph.call(args).run();
        assert_eq!(done.code, *code, "{args:?}: {}{}", done.out(), done.err());
        assert!(
            done.err().contains(says),
            "{args:?}: {:?} should say {says:?}",
            done.err()
        );
        assert_eq!(done.out(), "", "{args:?}");
        assert!(
            (ph.facts(), ph.files()) == before,
            "{args:?} changed something"
        );
    }
}
