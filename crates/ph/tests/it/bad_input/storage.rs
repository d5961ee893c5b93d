//! Commands that fail as a whole: several messages of which one is refused, an output or a disk
//! that is full, a locked journal.

use crate::common::{self, Ph};

#[test]
fn a_command_for_several_messages_changes_all_or_none() {
    let ph = Ph::new();
    ph.send("bob one");
    ph.send("bob two");
    let before = (ph.facts(), ph.files());
    let large = "x".repeat(2 << 20);
    let refused = ph
        .call(&["send", "alice,human", "--file", "-"])
        .stdin(large)
        .run();
    refused.fails(
        4,
        "human cannot send to itself\nhint: 'ph send --allow-self'",
    );
    ph.run("archive {1} ffffffff")
        .fails(3, "no message ffffffff");
    ph.run_as("bob", "cancel {1} {2}")
        .fails(4, "bob cannot cancel a message that human sent");
    assert!(
        (ph.facts(), ph.files()) == before,
        "something was half done"
    );
    assert_eq!(
        ph.run("archive {1} {1} {2}").ok().lines().count(),
        2,
        "each once"
    );
}

#[test]
fn a_failed_write_to_standard_output_is_reported() {
    let ph = Ph::new();
    ph.send("bob hi");
    let full = || std::fs::File::options().write(true).open("/dev/full");
    if full().is_err() {
        return posthaste_lab::skip_or_fail("there is no /dev/full");
    }
    let inbox = ph.call(&["inbox", "bob"]).stdout(full().unwrap()).run();
    inbox.fails(5, "cannot write the output: No space left");
    let export = ph.call(&["export"]).stdout(full().unwrap()).run();
    export.fails(5, "cannot write the output: No space left");
    // There is no hint about the home, which is not at fault.
    assert!(!export.err().contains("hint:"), "{}", export.err());
    let hook = ph.call(&["check", "--inject"]).agent("bob");
    assert_eq!(hook.stdout(full().unwrap()).run().code, 0);
    // A message whose output failed stays unread.
    let read = ph.call(&["read", &ph.send("bob again")]).agent("bob");
    let read = read.stdout(full().unwrap()).run();
    read.fails(5, "cannot write the output: No space left");
    assert_eq!(ph.run("count bob").ok(), "2 in total, 2 unread\n");
}

#[test]
fn a_locked_journal_blocks_writers_and_no_readers() {
    let ph = Ph::new();
    ph.send("bob hi");
    let before = ph.facts();
    let lock = std::fs::File::options()
        .write(true)
        .open(ph.home().join("journal.lock"))
        .unwrap();
    lock.lock().unwrap();
    let send = ph
        .call(&["send", "bob", "hi"])
        .env("PH_JOURNAL_LOCK_TIMEOUT", "50ms");
    send.run()
        .fails(5, "the journal is busy: waited 50 ms for process");
    let hook = ph.run_as("bob", "check --inject");
    assert_eq!((hook.code, hook.out().as_str()), (0, ""));
    assert!(hook.err().contains("waited 200 ms"), "{}", hook.err());
    assert_eq!(
        ph.run("count bob").ok(),
        "1 in total, 1 unread\n",
        "reading waits for nobody"
    );
    assert_eq!(ph.facts(), before);
    lock.unlock().unwrap();
    assert_eq!(ph.run("send bob hi").code, 0);
}

/// A file system of one megabyte in a mount namespace of its own, without free space.
#[test]
fn a_full_disk_stores_no_partial_message_and_is_reported() {
    const SCRIPT: &str = r#"
        mount -t tmpfs -o size=1m none "$DISK" || exit 9
        export PH_HOME="$DISK/home"
        "$PH" send bob first > acknowledged || exit 10
        cat /dev/zero > "$DISK/filler" 2> /dev/null
        count=0
        while "$PH" send bob "message $count" >> acknowledged 2> errors; do
            cat errors >> notes
            count=$((count + 1))
            test $count -lt 1000 || exit 11
        done
        "$PH" send bob again > /dev/null 2> errors
        echo "code $?"
        head -c 2000000 /dev/zero | tr '\0' x | "$PH" send bob --file - 2> errors-large
        echo "code $?"
        "$PH" run --detach --name bot -- true > /dev/null 2> errors-run
        echo "code $?"
        "$PH" doctor > doctor
        echo "code $?"
        rm "$DISK/filler"
        "$PH" send bob last >> acknowledged || exit 12
        "$PH" log --json | jq -r .id 2> /dev/null > stored || "$PH" log --json > stored
        "$PH" show "$(tail -n 2 acknowledged | head -n 1)" > shown || exit 13
        test -s "$(sed -n 's/^file *//p' shown)" || exit 14
    "#;
    let ph = Ph::new();
    let Some(output) = common::with_own_disk(&ph, SCRIPT) else {
        return;
    };
    let (output_text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{}: {output_text}{errors}",
        output.status
    );
    assert_eq!(output_text, "code 5\ncode 5\ncode 5\ncode 1\n", "{errors}");
    let read = |name: &str| std::fs::read_to_string(ph.dir().join(name)).unwrap();
    for errors in [read("errors"), read("errors-large")] {
        assert!(
            errors.contains("is full\nhint: nothing was stored; free some space"),
            "{errors}"
        );
    }
    let run = read("errors-run");
    assert!(run.contains("hint: "), "{run}");
    let doctor = read("doctor");
    assert!(
        doctor.contains("WRONG  disk ") && doctor.contains("KiB are free"),
        "{doctor}"
    );
    let notes = read("notes");
    let unfiled = "is stored, but its file is not written yet";
    assert!(notes.contains(unfiled), "{notes}");
    assert!(notes.lines().all(|line| line.contains(unfiled)), "{notes}");
    let (acknowledged, stored) = (read("acknowledged"), read("stored"));
    assert!(
        acknowledged.lines().all(|id| stored.contains(id)),
        "{acknowledged}\n{stored}"
    );
    assert_eq!(
        acknowledged.lines().count(),
        stored.lines().count(),
        "nothing was half stored"
    );
}
