//! The WAL stays short, because the next process to open the journal reads all of it.

use posthaste_lab::{TempHome, assert_intact, assert_views_agree, at, draft, post, stored};
use posthaste_store::operation::Post;
use posthaste_store::{Patience, Writer};

fn wal_bytes(home: &TempHome) -> u64 {
    let wal = home.path().join("journal.db-wal");
    wal.metadata().map_or(0, |meta| meta.len())
}

/// Count the pages that the next process to open the journal would read.
fn wal_frames(home: &TempHome) -> i64 {
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
        .unwrap()
}

#[test]
fn many_short_lived_senders_leave_a_short_wal() {
    let home = TempHome::new();
    for n in 0..300 {
        let mut journal = home.journal();
        post(
            &mut journal,
            at(n),
            &draft("alice", "bob", "x".repeat(2_000)),
        );
        journal.tidy().unwrap();
        drop(journal);
        assert!(wal_bytes(&home) < 1 << 20, "{} after {n}", wal_bytes(&home));
        if n % 20 == 0 {
            // Kept open, because the last connection to close in `wal_frames` would empty the WAL.
            let _open = home.journal();
            let frames = wal_frames(&home);
            assert!((1..60).contains(&frames), "{frames} after {n}");
        }
    }
    let mut journal = home.journal();
    assert_intact(&mut journal);
    assert_views_agree(&mut journal, &[at(300)]);
}

#[test]
fn a_wal_grown_by_a_slow_reader_is_truncated_when_the_reader_ends() {
    let home = TempHome::new();
    let mut journal = home.journal();
    post(&mut journal, at(0), &draft("alice", "bob", "first"));
    let slow = rusqlite::Connection::open(home.home().journal()).unwrap();
    slow.execute_batch("BEGIN").unwrap();
    let count = || -> u64 {
        slow.query_row("SELECT count(*) FROM facts", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(count(), 1);
    for n in 1..=18 {
        post(
            &mut journal,
            at(n),
            &draft("alice", "bob", "x".repeat(1 << 20)),
        );
        journal.tidy().unwrap();
    }
    assert!(wal_bytes(&home) > 16 << 20);
    // The reader keeps its snapshot, and blocks no writer.
    assert_eq!(count(), 1);
    slow.execute_batch("COMMIT").unwrap();
    post(&mut journal, at(20), &draft("alice", "bob", "last"));
    journal.tidy().unwrap();
    assert!(wal_bytes(&home) < 1 << 20, "{}", wal_bytes(&home));
    assert_eq!(count(), 20);
    assert_intact(&mut journal);
}

#[test]
fn a_busy_writer_extends_the_wal_in_advance() {
    let home = TempHome::new();
    let (writer, thread) = Writer::start(&home.home(), Patience::DEFAULT).unwrap();
    let mut lengths = vec![wal_bytes(&home)];
    for n in 0..300 {
        let drafts = vec![draft("alice", "bob", "on and on")];
        let job = Post { now: at(n), drafts };
        stored(&writer, job).unwrap().unwrap();
        lengths.push(wal_bytes(&home));
    }
    lengths.dedup();
    // Not by every commit: a commit that makes the file grow takes twice as long to sync.
    assert!(lengths.len() < 60, "{lengths:?}");
    let written = u64::try_from(wal_frames(&home)).unwrap() * 4_096;
    assert!(written > lengths[0] && written < wal_bytes(&home));
    // Another process can open the journal after this one was killed.
    let after = TempHome::new();
    after.create();
    // In another process, because closing the database here would release its locks.
    let copied = std::process::Command::new("cp")
        .args(["journal.db", "journal.db-wal"].map(|name| home.path().join(name)))
        .arg(after.path())
        .status();
    assert!(copied.unwrap().success());
    let mut journal = after.journal();
    assert_eq!(journal.head().unwrap(), 300);
    assert_intact(&mut journal);
    drop(writer);
    thread.join();
    assert!(wal_bytes(&home) < 1 << 20, "{}", wal_bytes(&home));
}

#[test]
fn a_writer_does_not_extend_a_wal_that_others_keep_short() {
    let home = TempHome::new();
    let (writer, thread) = Writer::start(&home.home(), Patience::DEFAULT).unwrap();
    let write_on = |n| {
        let drafts = vec![draft("alice", "bob", "on and on")];
        let job = Post { now: at(n), drafts };
        stored(&writer, job).unwrap().unwrap();
    };
    let come_and_go = |n| {
        let mut journal = home.journal();
        post(&mut journal, at(n), &draft("alice", "carol", "once"));
        journal.tidy().unwrap();
    };
    let ask = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        writer.ask(move |_| sender.send(()).unwrap()).unwrap();
        receiver.recv().unwrap();
    };
    let short = wal_bytes(&home);
    for n in 0..60 {
        write_on(n);
        // The WAL is extended after the commit is acknowledged, and before the next query.
        ask();
        come_and_go(n);
        assert_eq!(wal_bytes(&home), short, "after {n}");
    }
    // A query does not extend the WAL either.
    (60..200).for_each(write_on);
    ask();
    assert!(wal_bytes(&home) > 1 << 20);
    (60..80).for_each(come_and_go);
    let short = wal_bytes(&home);
    assert!(short < 1 << 20, "{short}");
    ask();
    // The work after one query is done before the next query is answered.
    ask();
    assert_eq!(wal_bytes(&home), short);
    drop(writer);
    thread.join();
}
