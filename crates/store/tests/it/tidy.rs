//! The WAL stays small, because whoever opens the journal alone reads all of it.

use posthaste_lab::{TempHome, assert_intact, assert_views_agree, at, draft, post, stored};
use posthaste_store::operation::Post;
use posthaste_store::{Patience, Writer};

fn wal_bytes(home: &TempHome) -> u64 {
    let wal = home.path().join("journal.db-wal");
    wal.metadata().map_or(0, |meta| meta.len())
}

/// How many pages the next process to open the journal alone would read.
fn wal_frames(home: &TempHome) -> i64 {
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
        .unwrap()
}

#[test]
fn many_short_lived_senders_leave_a_small_wal() {
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
            // A stranger that closes last would empty it; this one does not.
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
fn a_wal_that_a_slow_reader_let_grow_is_cut_off_when_it_is_gone() {
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
    // It sees what it saw, and is in nobody's way.
    assert_eq!(count(), 1);
    slow.execute_batch("COMMIT").unwrap();
    post(&mut journal, at(20), &draft("alice", "bob", "last"));
    journal.tidy().unwrap();
    assert!(wal_bytes(&home) < 1 << 20, "{}", wal_bytes(&home));
    assert_eq!(count(), 20);
    assert_intact(&mut journal);
}

#[test]
fn who_writes_on_finds_the_wal_laid_out() {
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
    // Not with every commit: each that makes it grow is synced in twice the time.
    assert!(lengths.len() < 60, "{lengths:?}");
    let written = u64::try_from(wal_frames(&home)).unwrap() * 4_096;
    assert!(written > lengths[0] && written < wal_bytes(&home));
    // What another finds who opens it after this one was cut off.
    let after = TempHome::new();
    after.create();
    // By another process: to close the database here would give up its locks.
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
fn who_writes_on_leaves_a_wal_alone_that_others_keep_short() {
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
        let (tell, told) = std::sync::mpsc::channel();
        writer.ask(move |_| tell.send(()).unwrap()).unwrap();
        told.recv().unwrap();
    };
    let short = wal_bytes(&home);
    for n in 0..60 {
        write_on(n);
        // The WAL is laid out after the answer; a question is answered after that.
        ask();
        come_and_go(n);
        assert_eq!(wal_bytes(&home), short, "after {n}");
    }
    // Nor does one that only asks lay out again what it needed once.
    (60..200).for_each(write_on);
    ask();
    assert!(wal_bytes(&home) > 1 << 20);
    (60..80).for_each(come_and_go);
    let short = wal_bytes(&home);
    assert!(short < 1 << 20, "{short}");
    ask();
    // Whatever follows a question is done once another is answered.
    ask();
    assert_eq!(wal_bytes(&home), short);
    drop(writer);
    thread.join();
}
