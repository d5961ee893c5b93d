//! Homes that are invalid or not accessible, and concurrent creation of a home.

use crate::common::{Done, Ph, path_text};

#[test]
fn an_invalid_home_is_refused_and_a_missing_one_is_empty() {
    let ph = Ph::new();
    let file = path_text(&ph.file("some-file", "content"));
    let below = format!("{file}/home");
    let check = |args: &[&str], code: i32, says: &str| {
        let done = ph.call(args).run();
        assert_eq!(done.code, code, "{args:?}: {}", done.err());
        assert!(done.err().contains(says), "{args:?}: {}", done.err());
    };
    check(
        &["send", "bob", "hi", "--home", &file],
        5,
        "hint: a home is a directory; choose another",
    );
    check(
        &["inbox", "--home", &file],
        5,
        "hint: a home is a directory",
    );
    check(
        &["send", "bob", "hi", "--home", &below],
        5,
        "hint: a home is a directory",
    );
    check(
        &["send", "bob", "hi", "--home", "/proc/nope"],
        5,
        "/proc/nope",
    );
    check(
        &["send", "bob", "hi", "--home", ""],
        2,
        "a value is required",
    );
    // Reading from a home that does not exist is not an error, and does not create it.
    let nowhere = path_text(&ph.dir().join("nowhere"));
    check(
        &["inbox", "--home", &nowhere],
        0,
        "note: nothing has been stored in",
    );
    check(
        &["check", "--home", &nowhere],
        1,
        "note: nothing has been stored in",
    );
    check(&["read", "abcd", "--home", &nowhere], 3, "no message abcd");
    check(
        &["archive", "abcd", "--home", &nowhere],
        3,
        "no message abcd",
    );
    check(&["log", "--home", &nowhere], 0, "note:");
    check(&["export", "--home", &nowhere], 0, "note:");
    check(&["search", "x", "--home", &nowhere], 1, "note:");
    assert!(!ph.dir().join("nowhere").exists());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn a_home_without_permission_is_reported_and_not_changed() {
    use std::os::unix::fs::PermissionsExt;
    let ph = Ph::new();
    ph.send("bob hi");
    let before = ph.facts();
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(ph.dir(), 0o711);
    set(&ph.home(), 0o000);
    // Permissions do not bind root, so root runs `ph` as another user.
    let is_root = std::fs::read_dir(ph.home()).is_ok();
    let run = |args: &[&str]| {
        let call = ph.call(args);
        if is_root {
            call.user(65_534).run()
        } else {
            call.run()
        }
    };
    let denied = [run(&["send", "bob", "hi"]), run(&["inbox", "bob"])];
    let hook = run(&["check", "--inject", "bob"]);
    let doctor = run(&["doctor"]);
    set(&ph.home(), 0o700);
    for done in denied {
        done.fails(5, "hint: check who owns the home, or choose another");
    }
    assert_eq!((hook.code, hook.out().as_str()), (0, ""));
    assert_eq!(doctor.code, 1);
    assert!(doctor.out().contains("WRONG  home"), "{}", doctor.out());
    assert_eq!(ph.facts(), before);
}

#[test]
fn concurrent_senders_create_one_home() {
    let ph = Ph::new();
    let all: Vec<_> = (0..12)
        .map(|n| ph.call(&["send", "bob", &format!("message {n}")]).spawn())
        .collect();
    let mut ids: Vec<_> = all.into_iter().map(|child| Done::of(child).ok()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 12);
    let facts = ph.facts();
    assert_eq!(facts.lines().count(), 12);
    assert!(ids.iter().all(|id| facts.contains(id.trim())));
    assert_eq!(ph.files().len(), 12);
    assert_eq!(ph.run("doctor").code, 0);
}
