//! Faults are reported, damage no stored data, and leave the journal usable.

use posthaste_core::Draft;
use posthaste_lab::{TempHome, assert_views_agree, at, draft, name, post, records};
use posthaste_store::operation::{Inject, Post};
use posthaste_store::search::Query;
use posthaste_store::{Error, Home, Journal, Listing, Patience};
use std::os::unix::fs::FileExt;
use std::time::Duration;

const PAGE: u64 = 4096;

/// Create a journal with a few hundred messages, and checkpoint it.
fn checkpointed() -> TempHome {
    let home = TempHome::new();
    let mut journal = home.journal();
    let drafts: Vec<Draft> = (0..400)
        .map(|n| draft("alice", "bob", format!("message {n} ").repeat(20)))
        .collect();
    journal
        .commit(Post { now: at(0), drafts })
        .unwrap()
        .unwrap();
    drop(journal);
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    home
}

fn search(words: &str) -> Query {
    Query {
        words: words.to_owned(),
        from: None,
        to: None,
        order: Default::default(),
        limit: 10,
    }
}

fn is_corrupt(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. }) && error.hint().is_some()
}

#[test]
fn a_file_that_is_not_a_journal_is_named_and_not_changed() {
    let check = |bytes: &[u8]| {
        let home = TempHome::new();
        home.create();
        std::fs::write(home.home().journal(), bytes).unwrap();
        let error = Journal::open(home.home(), Patience::DEFAULT).unwrap_err();
        assert!(is_corrupt(&error), "{error}");
        assert!(error.to_string().contains("journal.db"), "{error}");
        assert!(std::fs::read(home.home().journal()).unwrap() == bytes);
    };
    check(b"this is a text file\n");
    check(&b"garbage".repeat(10_000));
    let mut damaged = std::fs::read(checkpointed().home().journal()).unwrap();
    damaged[..16].copy_from_slice(b"SQLite format 2\0");
    check(&damaged);
}

#[test]
fn a_damaged_page_is_reported_and_never_taken_for_mail() {
    let home = checkpointed();
    let whole = records(&home.journal());
    let file = home.home().journal();
    let bytes = std::fs::read(&file).unwrap();
    let pages = bytes.len() as u64 / PAGE;
    assert!(pages > 50, "{pages}");
    for page in (0..pages).step_by(7) {
        let damaged = TempHome::new();
        damaged.create();
        std::fs::write(damaged.home().journal(), &bytes).unwrap();
        let file = std::fs::File::options()
            .write(true)
            .open(damaged.home().journal())
            .unwrap();
        let rubbish: Vec<u8> = (0..PAGE).map(|n| (n % 249) as u8).collect();
        file.write_all_at(&rubbish, page * PAGE).unwrap();

        let opened = Journal::open(damaged.home(), Patience::DEFAULT);
        let health = opened.and_then(|mut journal| journal.examine());
        match health {
            Ok(health) => assert!(!health.damage.is_empty(), "page {page} of {pages}"),
            Err(error) => assert!(is_corrupt(&error), "page {page} of {pages}: {error:?}"),
        }
        let Ok(journal) = Journal::open(damaged.home(), Patience::DEFAULT) else {
            continue;
        };
        let mut last = 0;
        while let Ok(read) = journal.facts_after(last)
            && let Some(end) = read.last()
        {
            assert!(read.iter().all(|record| whole.contains(record)));
            last = end.seq;
        }
    }
}

#[test]
fn a_journal_that_was_cut_short_is_reported() {
    let home = checkpointed();
    let file = std::fs::File::options()
        .write(true)
        .open(home.home().journal())
        .unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length / 2 / PAGE * PAGE).unwrap();
    let opened = Journal::open(home.home(), Patience::DEFAULT);
    match opened.and_then(|mut journal| journal.examine()) {
        Ok(health) => assert!(!health.damage.is_empty()),
        Err(error) => assert!(is_corrupt(&error), "{error:?}"),
    }
}

#[test]
fn an_unusable_home_is_named() {
    let home = TempHome::new();
    let file = home.beside().join("file");
    std::fs::write(&file, "").unwrap();
    let check = |path: &std::path::Path| {
        let error = Home::open(path, None).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
        assert!(
            error.to_string().contains(file.to_str().unwrap()),
            "{error}"
        );
    };
    check(&file);
    check(&file.join("below"));
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

#[test]
fn open_existing_creates_nothing() {
    let home = TempHome::new();
    let none = Journal::open_existing(home.home(), Patience::DEFAULT).unwrap();
    assert!(none.is_none());
    assert!(!home.path().exists());
    home.journal();
    let some = Journal::open_existing(home.home(), Patience::DEFAULT).unwrap();
    assert!(some.is_some());
}

#[test]
fn a_busy_journal_names_the_process_that_holds_it() {
    let home = TempHome::new();
    let holder = home.journal();
    let mut waiting = Journal::open(home.home(), Patience(Duration::from_millis(30))).unwrap();
    let state = draft("alice", "bob", "hello");
    let post_again = || Post {
        now: at(0),
        drafts: vec![state.clone()],
    };
    let held = holder.hold().unwrap();
    let error = waiting.commit(post_again()).unwrap_err();
    let Error::Busy { waited, holder } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*waited, Some(Duration::from_millis(30)));
    let process = format!("process {} ", std::process::id());
    assert!(holder.starts_with(&process), "{holder}");
    assert!(error.hint().is_some());
    // A reader does not wait for the lock.
    let inbox = waiting.inbox(&name("bob"), Listing::All, at(0)).unwrap();
    assert_eq!(inbox, []);

    drop(held);
    let mut patient = home.journal();
    assert!(post(&mut patient, at(0), &state).is_new);
    assert_views_agree(&mut waiting, &[at(0)]);
}

#[test]
fn a_hook_gives_up_at_its_timeout() {
    let home = TempHome::new();
    let holder = home.journal();
    let mut hook = Journal::open(home.home(), Patience::HOOK).unwrap();
    let _held = holder.hold().unwrap();
    let before = std::time::Instant::now();
    let inject = Inject {
        now: at(0),
        agent: name("bob"),
    };
    let error = hook.commit(inject).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error:?}");
    let waited = before.elapsed();
    assert!(waited >= Patience::HOOK.0, "{waited:?}");
    assert!(waited < Duration::from_secs(9), "{waited:?}");
}

#[test]
fn a_removed_or_replaced_journal_is_not_written_to() {
    let check = |displace: fn(&std::path::Path), is_back: bool| {
        let home = TempHome::new();
        let mut journal = home.journal();
        post(&mut journal, at(0), &draft("alice", "bob", "before"));
        let stored = records(&journal);
        displace(&home.path());
        let lost = draft("alice", "bob", "x".repeat(2 << 20));
        let post_again = || Post {
            now: at(1),
            drafts: vec![lost.clone()],
        };
        let error = journal.commit(post_again()).unwrap_err();
        assert!(matches!(error, Error::Displaced(_)), "{error:?}");
        assert!(error.hint().is_some());
        assert!(matches!(
            journal.expect_in_place(),
            Err(Error::Displaced(_))
        ));
        for error in [
            journal.rebuild_views().unwrap_err(),
            journal.search(&search("before"), |_| {}).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Displaced(_)), "{error:?}");
        }
        assert_eq!(records(&journal), stored);
        let files = std::fs::read_dir(home.path().join("messages").join("bob"));
        assert_eq!(files.map_or(0, Iterator::count), usize::from(is_back));
        // A process that opens the home now uses the new journal.
        let mut other = home.journal();
        assert_eq!(other.state(lost.id).unwrap(), None);
        assert!(post(&mut other, at(2), &lost).is_new);
        let count = other.count(&name("bob"), at(2)).unwrap().total;
        assert_eq!(count, if is_back { 2 } else { 1 });
        assert_views_agree(&mut other, &[at(2)]);
        assert!(matches!(
            journal.commit(post_again()),
            Err(Error::Displaced(_))
        ));
        assert_eq!(other.count(&name("bob"), at(2)).unwrap().total, count);
    };
    check(|home| std::fs::remove_dir_all(home).unwrap(), false);
    check(
        |home| std::fs::rename(home, home.with_extension("away")).unwrap(),
        false,
    );
    check(
        |home| {
            std::fs::remove_dir_all(home).unwrap();
            let other = Journal::open(Home::open(home, None).unwrap(), Patience::DEFAULT).unwrap();
            drop(other);
        },
        false,
    );
    // A copy under the same name is another file.
    check(
        |home| {
            let file = Home::open(home, None).unwrap().journal();
            let conn = rusqlite::Connection::open(&file).unwrap();
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .unwrap();
            drop(conn);
            let copy = home.with_extension("copy");
            std::fs::copy(&file, &copy).unwrap();
            std::fs::rename(&copy, &file).unwrap();
        },
        true,
    );
}

#[test]
fn a_home_that_was_moved_back_is_written_to_again() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let away = home.path().with_extension("away");
    std::fs::rename(home.path(), &away).unwrap();
    let post_again = || Post {
        now: at(0),
        drafts: vec![draft("alice", "bob", "hello")],
    };
    assert!(matches!(
        journal.commit(post_again()),
        Err(Error::Displaced(_))
    ));
    std::fs::rename(&away, home.path()).unwrap();
    journal.commit(post_again()).unwrap().unwrap();
    assert_views_agree(&mut journal, &[at(0)]);
}
