//! Export and import, and output that nobody reads to its end.

use crate::common::{self, Done, Ph};

#[test]
fn an_export_is_imported_byte_for_byte() {
    let ph = Ph::new();
    let other = Ph::new();
    let control: String = (1..0xa0).filter_map(char::from_u32).collect();
    ph.send("bob one --subject s --key k --ttl 1h");
    let large = "é\u{7f}\n".repeat(400_000);
    for body in [control.as_str(), large.as_str()] {
        ph.call(&["send", "bob", "--file", "-"])
            .stdin(body)
            .run()
            .ok();
    }
    ph.run("archive {1}").ok();
    let exported = ph.run("export");
    assert!(exported.code == 0, "{}", exported.err());
    let file = common::path_text(&other.file("backup.ndjson", &exported.stdout));
    let imported = other.run(&format!("import {file}")).ok();
    assert_eq!(imported, "4 facts added, 0 already present\n");
    assert_eq!(other.run("export").stdout, exported.stdout);
    assert_eq!(other.facts(), ph.facts());
    assert_eq!(
        other.run(&format!("import {file} --json")).ok(),
        "{\"added\":0,\"conflicts\":[],\"known\":4}\n"
    );
    let large8 = &ph.run("search é --json").json()[0]["id"];
    let read = other.run(&format!("read {} --body", large8.as_str().unwrap()));
    assert!(read.stdout == large.as_bytes(), "a body of its own file");
}

#[test]
fn an_export_to_a_file_is_private_and_overwrites_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let ph = Ph::new();
    ph.send("bob one");
    let path = ph.dir().join("backup.ndjson");
    let line = format!("export {}", common::path_text(&path));
    let first = ph.run(&line);
    assert_eq!(
        (first.code, first.out().as_str(), first.err().as_str()),
        (0, "", "note: 1 fact exported\n")
    );
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let content = std::fs::read(&path).unwrap();
    assert_eq!(content, ph.run("export").stdout);
    ph.send("bob two");
    ph.run(&line)
        .fails(4, "already exists\nhint: choose another file name");
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

#[test]
fn a_failed_import_names_the_line() {
    let ph = Ph::new();
    ph.send("bob one");
    let before = ph.facts();
    let check = |input: &[u8], says: &str| {
        let done = ph.call(&["import", "-"]).stdin(input).run();
        done.fails(2, says);
        assert_eq!(ph.facts(), before, "{says}");
    };
    check(b"nonsense\n", "line 1:");
    check(b"{\"seq\":1}\n", "line 1: missing field");
    check(b"\xff\n", "line 1: not UTF-8");
    let good = before.replace(
        &ph.run("inbox bob --json").json()[0]["id"].as_str().unwrap()[..8],
        "01234567",
    );
    ph.run("import /nonexistent")
        .fails(2, "cannot read /nonexistent");
    // An id with other content is a conflict.
    let other = before.replace("\"one\"", "\"two\"");
    let done = ph.call(&["import", "-"]).stdin(other).run();
    assert_eq!(done.code, 4);
    assert!(
        done.err()
            .contains("is in the journal with different content"),
        "{}",
        done.err()
    );
    assert_eq!(ph.facts(), before);
    // Lines before an invalid line are imported; the error names the line.
    let done = ph.call(&["import", "-"]).stdin(format!("{good}x\n")).run();
    done.fails(2, "line 2:");
    assert_eq!(ph.facts().lines().count(), 2);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let ph = Ph::new();
    let large = "x".repeat(3 << 20);
    ph.call(&["send", "bob", "--file", "-"])
        .stdin(large)
        .run()
        .ok();
    let id = ph.run("inbox bob --json").json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for args in [
        &["export"][..],
        &["inbox", "bob", "--json"],
        &["inbox", "bob", "--prompt"],
        &["read", &id, "--body"],
        &["thread", &id],
    ] {
        let mut child = ph.call(args).spawn();
        drop(child.stdout.take());
        let done = Done::of(child);
        assert_eq!((done.code, done.err().as_str()), (0, ""), "{args:?}");
    }
}
