//! Names, ids and texts on the command line.

use super::check_all;
use crate::common::Ph;

#[test]
fn names() {
    let long = "a".repeat(65);
    let empty = "an agent's name cannot be empty";
    check_all(&[
        (&["send", "", "hi"], 2, empty),
        (&["send", "bob,", "hi"], 2, empty),
        (&["send", ",bob", "hi"], 2, empty),
        (
            &["send", &long, "hi"],
            2,
            "at most 64 characters; this one has 65",
        ),
        (&["send", "Bob", "hi"], 2, "'bob' is a valid name"),
        (&["send", "my bot", "hi"], 2, "'my-bot' is a valid name"),
        (&["send", "bob,No", "hi"], 2, "starts with a-z or 0-9"),
        (
            &["send", "../../etc/passwd", "hi"],
            2,
            "'etc-passwd' is a valid name",
        ),
        (
            &["send", "/etc/passwd", "hi"],
            2,
            "starts with a-z or 0-9, not with '/'",
        ),
        (
            &["send", "a/../b", "hi"],
            2,
            "may contain only a-z, 0-9, '.', '_' and '-', not '/'",
        ),
        (&["send", "..", "hi"], 2, "not with '.'"),
        (
            &["send", "bött", "hi"],
            2,
            "may contain only a-z, 0-9, '.', '_' and '-', not 'ö'",
        ),
        (&["send", "-bob", "hi"], 2, "unexpected argument '-bob'"),
        (
            &["send", "bob", "hi", "--from", "A"],
            2,
            "\nhint: 'a' is a valid name",
        ),
        (&["inbox", "../x"], 2, "starts with a-z or 0-9"),
        (&["count", "X"], 2, "starts with a-z or 0-9"),
        (&["check", "X"], 2, "starts with a-z or 0-9"),
        (&["log", "--agent", "X"], 2, "starts with a-z or 0-9"),
        (&["search", "x", "--to", "X"], 2, "starts with a-z or 0-9"),
        (
            &["message", "-n", "../x", "hi"],
            2,
            "hint: 'x' is a valid name",
        ),
    ]);
}

#[test]
fn ids() {
    let verbs = [
        "read",
        "show",
        "thread",
        "archive",
        "delete",
        "mark-read",
        "mark-unread",
        "cancel",
        "why",
    ];
    for verb in verbs {
        check_all(&[
            (
                &[verb, "ffffffff-ffff-4fff-8fff-ffffffffffff"],
                3,
                "hint: 'ph inbox --all' lists ids",
            ),
            (&[verb, ""], 2, "an id cannot be empty"),
            (&[verb, "xyz"], 2, "an id is made of 0-9, a-f and '-'"),
            (&[verb, "../../etc"], 2, "an id is made of"),
            (&[verb, &"a".repeat(33)], 2, "an id has 32 digits"),
            (&[verb], 2, "required arguments were not provided"),
        ]);
    }
    check_all(&[
        (&["reply", "ffffffff-ffff", "hi"], 3, "no message"),
        (
            &["send", "bob", "hi", "--reply-to", "ffffffff-ffff"],
            3,
            "no message",
        ),
        (
            &["send", "bob", "hi", "--reply-to", "zz"],
            2,
            "an id is made of",
        ),
    ]);
}

#[test]
fn a_prefix_that_fits_two_names_both_and_marks_none() {
    let ph = Ph::new();
    ph.send("bob hi");
    let line = ph.facts();
    let id = ph.run("inbox bob --json").json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let twins = [
        "abcd0000-0000-4000-8000-000000000001",
        "abcd0000-0000-4000-8000-000000000002",
    ];
    let lines: String = twins.iter().map(|twin| line.replace(&id, twin)).collect();
    ph.call(&["import", "-"]).stdin(lines).run().ok();
    let before = ph.facts();
    for verb in [
        "mark-read",
        "archive",
        "delete",
        "cancel",
        "read",
        "show",
        "thread",
        "why",
    ] {
        let done = ph.call(&[verb, "abcd"]).run();
        done.fails(3, "hint: give more digits");
        assert!(
            twins.iter().all(|twin| done.err().contains(twin)),
            "{}",
            done.err()
        );
        ph.call(&[verb, "abcd0000"])
            .run()
            .fails(3, "matches more than one message");
        assert_eq!(ph.facts(), before, "{verb}");
    }
    // One that is clear does not carry one that is not.
    ph.call(&["archive", &id, "abcd"]).run().fails(3, twins[0]);
    ph.call(&["reply", "abcd", "hi"]).run().fails(3, twins[1]);
    assert_eq!(ph.facts(), before);
    let marked = ph
        .call(&["mark-read", "ABCD0000000040008000000000000002"])
        .run();
    assert_eq!(
        marked.ok(),
        "abcd0000 marked as read\n",
        "spelt otherwise, it is the same id"
    );
}

#[test]
fn bodies() {
    let empty = "the text of a message cannot be empty";
    let both = "cannot be used with";
    check_all(&[
        (
            &["send", "bob"],
            2,
            "hint: give it as BODY, with -m BODY, or with --file FILE",
        ),
        (&["send", "bob", ""], 2, empty),
        (&["send", "bob", " \n\t"], 2, empty),
        (&["send", "bob", "-m", ""], 2, empty),
        (&["send", "bob", "--file", "/dev/null"], 2, empty),
        (&["send", "bob", "--file", "-"], 2, empty),
        (
            &["send", "bob", "-x"],
            2,
            "hint: text that begins with '-' goes after '--', or in -m",
        ),
        (
            &["send", "bob", "- a list"],
            2,
            "error: unexpected argument '- a list'",
        ),
        (&["send", "bob", "--- a/file"], 2, "unexpected argument"),
        (&["reply", "0", "-1"], 2, "hint: text that begins with '-'"),
        (
            &["message", "-n", "bob", "- x"],
            2,
            "hint: text that begins with '-' goes after '--'",
        ),
        (
            &["send", "bob", "one", "two"],
            2,
            "hint: put text of several words in quotes",
        ),
        (&["send", "bob", "one", "-m", "two"], 2, both),
        (&["send", "bob", "one", "--file", "two"], 2, both),
        (&["send", "bob", "-m", "one", "--file", "two"], 2, both),
        (
            &["send", "bob", "--file", "/nonexistent"],
            2,
            "cannot read /nonexistent: No such file",
        ),
        (&["send", "bob", "--file", "/"], 2, "Is a directory"),
        (
            &["send", "bob", "hi", "--subject", "a\nb"],
            2,
            "a subject is one line",
        ),
        (
            &["send", "bob", "hi", "--subject", ""],
            2,
            "a subject cannot be empty",
        ),
        (
            &["send", "bob", "hi", "--subject", &"x".repeat(1_001)],
            2,
            "at most 1000 bytes",
        ),
        (
            &["send", "bob", "hi", "--key", "a\u{1b}"],
            2,
            "a key is one line without control",
        ),
        (
            &["send", "bob", "hi", "--priority", "urgent"],
            2,
            "interrupt, normal, idle-first, idle",
        ),
        (&["search", "*"], 2, "the query has no words"),
        (&["search", "x", "--limit", "-1"], 2, "unexpected argument"),
        (&["log", "--after", "x"], 2, "invalid"),
    ]);
}
