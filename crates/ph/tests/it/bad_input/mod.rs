//! Invalid input gets the right result or a clear error with a hint, and changes nothing.

mod arguments;
mod homes;
mod storage;
mod terminal;
mod texts;

use crate::common::Ph;

/// Return all control characters, bidirectional marks and some unusual characters.
fn every_control() -> String {
    let odd = "\u{61c}\u{200e}\u{202e}\u{2028}\u{2029}\u{2066}é漢👩‍💻";
    (1..0xa0)
        .filter_map(char::from_u32)
        .chain(odd.chars())
        .collect()
}

/// Run each row in a home with one message. Check its exit code and its error text, and that it
/// changed nothing.
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
