//! Full-text search, with an index that may be lost or damaged at any time.

use posthaste_core::{Draft, MessageId, Order};
use posthaste_lab::{TempHome, at, draft, name, order, post};
use posthaste_store::Journal;
use posthaste_store::operation::Post;
use posthaste_store::search::{Query, ResultOrder};
use std::ops::Range;
use std::os::unix::fs::FileExt;

fn query(words: &str) -> Query {
    Query {
        words: words.to_owned(),
        from: None,
        to: None,
        order: ResultOrder::NewestFirst,
        limit: 100,
    }
}

fn found(journal: &mut Journal, query: &Query) -> Vec<MessageId> {
    let messages = journal.search(query, |_| {}).unwrap();
    messages.iter().map(|state| state.message.id).collect()
}

/// Create a journal with one message for each body, and return their ids.
fn filled(home: &TempHome, bodies: &[&str]) -> (Journal, Vec<MessageId>) {
    let mut journal = home.journal();
    let drafts: Vec<_> = bodies
        .iter()
        .map(|body| draft("alice", "bob", *body))
        .collect();
    let ids = drafts.iter().map(|draft| draft.id).collect();
    journal
        .commit(Post { now: at(0), drafts })
        .unwrap()
        .unwrap();
    (journal, ids)
}

#[test]
fn words_phrases_and_prefixes_are_found_newest_first() {
    let home = TempHome::new();
    let bodies = [
        "The login page is broken",
        "Page the on-call person about the login",
        "Überraschung: naïve café, 漢字",
        "login\u{1b}[31mred\u{0}end",
    ];
    let (mut journal, ids) = filled(&home, &bodies);
    let mut check = |words: &str, want: &[usize]| {
        let got = found(&mut journal, &query(words));
        let want: Vec<_> = want.iter().map(|n| ids[*n]).collect();
        assert_eq!(got, want, "{words:?}");
    };
    check("login", &[3, 1, 0]);
    check("LOGIN", &[3, 1, 0]);
    check("login page", &[1, 0]);
    check("\"login page\"", &[0]);
    check("\"page login\"", &[]);
    check("log*", &[3, 1, 0]);
    check("log", &[]);
    check("on-call", &[1]);
    check("uberraschung CAFE", &[2]);
    check("漢字", &[2]);
    check("end", &[3]);
    check("page -login", &[1, 0]);
    check("", &[]);
    check("  ", &[]);
}

#[test]
fn a_search_can_be_limited_to_a_sender_and_a_recipient() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let mut send = |from: &str, to: &str, subject: &str| {
        let state = Draft {
            subject: Some(subject.to_owned()),
            ..draft(from, to, "status report")
        };
        post(&mut journal, at(0), &state);
        state.id
    };
    let one = send("alice", "bob", "urgent");
    let two = send("bob", "alice", "urgent");
    let three = send("alice", "carol", "later");
    let mut check = |words: &str, from: Option<&str>, to: Option<&str>, want: &[MessageId]| {
        let query = Query {
            from: from.map(name),
            to: to.map(name),
            ..query(words)
        };
        assert_eq!(found(&mut journal, &query), want, "{words} {from:?} {to:?}");
    };
    check("urgent", None, None, &[two, one]);
    check("report", Some("alice"), None, &[three, one]);
    check("report", None, Some("alice"), &[two]);
    check("urgent report", Some("alice"), Some("bob"), &[one]);
    check("report", Some("carol"), None, &[]);
}

#[test]
fn the_best_matches_come_first_on_request_and_up_to_the_limit() {
    let home = TempHome::new();
    let (mut journal, ids) = filled(
        &home,
        &["fish fish fish", "fish and a lot of chips", "bird"],
    );
    let best = Query {
        order: ResultOrder::BestFirst,
        ..query("fish")
    };
    assert_eq!(found(&mut journal, &best), [ids[0], ids[1]]);
    let one = Query {
        limit: 1,
        ..query("fish")
    };
    assert_eq!(found(&mut journal, &one), [ids[1]]);
}

#[test]
fn archived_messages_are_found_and_deleted_ones_are_not() {
    let home = TempHome::new();
    let (mut journal, ids) = filled(&home, &["needle one", "needle two"]);
    order(&mut journal, at(1), "bob", Order::Archive, &ids[..1]);
    assert_eq!(found(&mut journal, &query("needle")), [ids[1], ids[0]]);
    order(&mut journal, at(2), "bob", Order::Delete, &ids[1..]);
    assert_eq!(found(&mut journal, &query("needle")), [ids[0]]);
}

#[test]
fn only_the_first_16_kib_of_a_body_are_searched() {
    let home = TempHome::new();
    let padding = "x ".repeat(8 * 1024 - 10);
    let long = format!("{padding} before {} after", "é ".repeat(1_000));
    let huge = format!("giant {}", "y".repeat(2 << 20));
    let (mut journal, ids) = filled(&home, &[&long, &huge]);
    assert_eq!(found(&mut journal, &query("before")), [ids[0]]);
    assert_eq!(found(&mut journal, &query("after")), []);
    assert_eq!(found(&mut journal, &query("giant")), [ids[1]]);
}

#[test]
fn no_search_text_is_an_error() {
    let home = TempHome::new();
    let (mut journal, _) = filled(&home, &["plain text"]);
    let many = "word ".repeat(5_000);
    let long = "x".repeat(100_000);
    let hostile = [
        "\"",
        "\"\"\"",
        "'",
        "*",
        "**",
        "a**",
        "\"a\"*",
        "(",
        ")",
        "((((",
        "NOT",
        "AND OR NOT",
        "NEAR(a b",
        "text:",
        "-",
        "--",
        "^a",
        "a^",
        "+",
        "{a b}:c",
        "\0",
        "a\0b",
        "\u{1b}[2J",
        "%",
        "_",
        ";",
        "'; DROP TABLE messages; --",
        "\u{feff}",
        "\u{301}",
        "\u{1f469}\u{200d}",
        "\u{10ffff}",
        "\u{a7ca}",
        "a\"b\"c\"",
        "\\",
        "\\\"",
        "rank:x",
        "messages",
        &many,
        &long,
    ];
    for words in hostile {
        let answer = journal.search(&query(words), |_| {});
        assert!(answer.is_ok(), "{words:.60?}: {answer:?}");
    }
}

/// Damage to an index.
type Damage = fn(&TempHome, &Journal);

#[test]
fn a_lost_or_damaged_index_is_created_again() {
    let check = |what: &str, damage: Damage| {
        let home = TempHome::new();
        let bodies: Vec<String> = (0..300)
            .map(|n| format!("needle{n} in a haystack of words such as {n} {}", n * 7))
            .collect();
        let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
        let (mut journal, ids) = filled(&home, &bodies);
        assert_eq!(found(&mut journal, &query("needle7")), [ids[7]], "{what}");
        checkpoint_index(&home);
        damage(&home, &journal);
        assert_eq!(found(&mut journal, &query("needle7")), [ids[7]], "{what}");
        assert_eq!(found(&mut journal, &query("haystack")).len(), 100, "{what}");
        let late = draft("alice", "bob", "needle300 came late");
        post(&mut journal, at(1), &late);
        assert_eq!(
            found(&mut journal, &query("needle300")),
            [late.id],
            "{what}"
        );
    };
    check("deleted", |home, _| {
        std::fs::remove_file(home.home().search()).unwrap();
    });
    check("emptied", |home, _| {
        std::fs::write(home.home().search(), "").unwrap();
    });
    check("rubbish", |home, _| {
        std::fs::write(home.home().search(), "rubbish".repeat(1_000)).unwrap();
    });
    check("all but the first page is rubbish", |home, _| {
        let length = home.home().search().metadata().unwrap().len();
        overwrite(home, 4096..length);
    });
    check("the later half is rubbish", |home, _| {
        let length = home.home().search().metadata().unwrap().len();
        overwrite(home, length / 2..length);
    });
    check("cut short", |home, _| {
        let path = home.home().search();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_len(8192).unwrap();
    });
    check("another journal's", |home, journal| {
        let other = TempHome::new();
        let (mut foreign, _) = filled(&other, &["unrelated"; 400]);
        assert_ne!(foreign.origin(), journal.origin());
        assert_eq!(found(&mut foreign, &query("needle7")), []);
        checkpoint_index(&other);
        std::fs::copy(other.home().search(), home.home().search()).unwrap();
    });
}

/// Checkpoint the index, so that all of it is in one file.
fn checkpoint_index(home: &TempHome) {
    let index = rusqlite::Connection::open(home.home().search()).unwrap();
    index
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(index);
}

fn overwrite(home: &TempHome, bytes: Range<u64>) {
    let file = std::fs::File::options()
        .write(true)
        .open(home.home().search())
        .unwrap();
    let rubbish: Vec<u8> = bytes.clone().map(|n| (n % 251) as u8).collect();
    file.write_all_at(&rubbish, bytes.start).unwrap();
}

#[test]
fn a_damaged_page_of_the_index_is_not_an_error() {
    let home = TempHome::new();
    let straw = |n: usize| (0..60).map(move |k| format!(" straw{}", n * 977 + k * 131));
    let bodies: Vec<String> = (0..200)
        .map(|n| format!("needle{n}{}", straw(n).collect::<String>()))
        .collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let (mut journal, ids) = filled(&home, &bodies);
    found(&mut journal, &query("needle7"));
    checkpoint_index(&home);
    let whole = std::fs::read(home.home().search()).unwrap();
    let pages = whole.len() as u64 / 4096;
    assert!(pages > 20, "{pages}");
    for page in (0..pages).step_by(3) {
        for name in ["search-1.db-wal", "search-1.db-shm"] {
            let _ = std::fs::remove_file(home.path().join(name));
        }
        std::fs::write(home.home().search(), &whole).unwrap();
        overwrite(&home, page * 4096..(page + 1) * 4096);
        // Together these searches read the whole index.
        let everything = found(&mut journal, &query("straw*"));
        assert_eq!(everything.len(), 100, "page {page}");
        assert_eq!(
            found(&mut journal, &query("needle7")),
            [ids[7]],
            "page {page}"
        );
    }
}

#[test]
fn an_index_of_another_copy_of_the_journal_is_not_used() {
    let home = TempHome::new();
    let (journal, _) = filled(&home, &["first one"]);
    drop(journal);
    let backup = std::fs::read(home.home().journal()).unwrap();
    let wal = home.path().join("journal.db-wal");
    let backup_wal = std::fs::read(&wal).unwrap();
    let mut journal = home.journal();
    post(
        &mut journal,
        at(1),
        &draft("alice", "bob", "lost in the crash"),
    );
    post(&mut journal, at(1), &draft("alice", "bob", "also lost"));
    assert_eq!(found(&mut journal, &query("lost")).len(), 2);
    drop(journal);
    std::fs::write(home.home().journal(), backup).unwrap();
    std::fs::write(&wal, backup_wal).unwrap();
    let _ = std::fs::remove_file(home.path().join("journal.db-shm"));

    let mut journal = home.journal();
    assert_eq!(journal.head().unwrap(), 1);
    assert_eq!(found(&mut journal, &query("lost")), []);
    let after = draft("alice", "bob", "after the restore");
    post(&mut journal, at(2), &after);
    assert_eq!(found(&mut journal, &query("restore")), [after.id]);
}

#[test]
fn many_first_searches_at_once_all_succeed() {
    for _ in 0..5 {
        let home = TempHome::new();
        let (_, ids) = filled(&home, &["needle"; 50]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut journal = home.journal();
                    assert_eq!(found(&mut journal, &query("needle")).len(), ids.len());
                });
            }
        });
    }
}

#[test]
fn progress_is_reported_while_the_index_is_far_behind() {
    let home = TempHome::new();
    let (mut journal, _) = filled(&home, &["hay"; 2_500]);
    let mut left = Vec::new();
    journal
        .search(&query("hay"), |behind| left.push(behind))
        .unwrap();
    assert_eq!(left, [1_500, 500]);
}
