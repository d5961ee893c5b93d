//! The views equal a replay of the facts at any time.

mod apply;
mod operations;
mod versions;

use apply::apply;
use jiff::SignedDuration;
use operations::{TimedOperation, operations};
use posthaste_core::{Draft, Mail, MessageId, Order, Priority};
use posthaste_lab::{
    TempHome, assert_intact, assert_views_agree, at, draft, moments, name, order, post, records,
};
use posthaste_store::operation::Post;
use posthaste_store::{Journal, Listing, Patience};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::WithSource("regressions"),
        )),
        ..ProptestConfig::default()
    })]

    #[test]
    fn views_equal_a_replay(operations in operations()) {
        let home = TempHome::new();
        let mut journal = home.journal();
        let mut now = at(0);
        for TimedOperation { delay, operation } in &operations {
            now += SignedDuration::from_nanos(*delay);
            apply(&mut journal, now, operation);
        }
        let facts = records(&journal);
        let times = moments(&Mail::replay(&facts));
        assert_views_agree(&mut journal, &times);
        let kept = rows(&home);
        journal.rebuild_views().unwrap();
        prop_assert_eq!(rows(&home), kept);
        assert_views_agree(&mut journal, &times);
        assert_intact(&mut journal);
        prop_assert_eq!(records(&journal), facts);
    }
}

/// Return every row of every view, also those that no look-up returns.
fn rows(home: &TempHome) -> Vec<String> {
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    let look = |sql: &str| -> Vec<String> {
        let mut look = conn.prepare(sql).unwrap();
        let columns = look.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let values = (0..columns).map(|n| row.get_unwrap::<_, rusqlite::types::Value>(n));
            Ok(format!("{:?}", values.collect::<Vec<_>>()))
        };
        let rows = look.query_map([], row).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    };
    let tables = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'v[0-9]*'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<rusqlite::Result<Vec<String>>>()
        .unwrap();
    assert!(!tables.is_empty());
    let mut all = Vec::new();
    for table in tables {
        let rows = look(&format!("SELECT * FROM {table} ORDER BY 1, 2"));
        all.extend(rows.into_iter().map(|row| format!("{table} {row}")));
    }
    all.sort_unstable();
    all
}

#[test]
fn messages_are_ordered_by_seq_and_not_by_time() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let mut sent = Vec::new();
    for hour in [5, 4, 9, -3, 0, 0] {
        let state = draft("alice", "bob", "tick");
        post(&mut journal, at(hour * 3600), &state);
        sent.push(state.id);
    }
    let inbox = journal.inbox(&name("bob"), Listing::Unread, at(0)).unwrap();
    let listed: Vec<_> = inbox.iter().map(|state| state.message.id).collect();
    assert_eq!(listed, sent);
    assert_views_agree(&mut journal, &[at(-36_000), at(36_000)]);
}

#[test]
fn a_long_inbox_is_listed_whole() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let drafts: Vec<_> = (0..2_100)
        .map(|n| Draft {
            priority: Priority::ALL[n % 4],
            ..draft("alice", "bob", n.to_string())
        })
        .collect();
    let sent: Vec<_> = drafts.iter().map(|draft| draft.id).collect();
    let now = at(0);
    journal.commit(Post { now, drafts }).unwrap().unwrap();
    order(&mut journal, now, "bob", Order::MarkRead, &sent[500..1_600]);
    order(&mut journal, now, "bob", Order::Show, &sent[..50]);
    let mut check = |listing, want: &[MessageId]| {
        let listed = journal.inbox(&name("bob"), listing, now).unwrap();
        let ids: Vec<_> = listed.iter().map(|state| state.message.id).collect();
        assert_eq!(ids, want, "{listing:?}");
    };
    check(Listing::All, &sent);
    check(Listing::Unread, &[&sent[..500], &sent[1_600..]].concat());
}

#[test]
fn views_dropped_by_one_process_are_rebuilt_by_another() {
    let home = TempHome::new();
    let mut one = home.journal();
    let mut other = Journal::open(home.home(), Patience::DEFAULT).unwrap();
    let drafts: Vec<_> = (0..1_500)
        .map(|n| draft("alice", "bob", n.to_string()))
        .collect();
    one.commit(Post { now: at(0), drafts }).unwrap().unwrap();
    assert_eq!(other.count(&name("bob"), at(0)).unwrap().unread, 1_500);
    one.rebuild_views().unwrap();
    assert_eq!(other.count(&name("bob"), at(0)).unwrap().unread, 1_500);
    assert_views_agree(&mut other, &[at(0)]);
}

#[test]
fn an_inbox_that_changes_while_it_is_listed_has_no_duplicates() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let drafts: Vec<_> = (0..8)
        .map(|n| draft("alice", "bob", n.to_string()))
        .collect();
    let ids: Vec<_> = drafts.iter().map(|draft| draft.id).collect();
    journal
        .commit(Post { now: at(0), drafts })
        .unwrap()
        .unwrap();
    let mut reader = home.journal();
    std::thread::scope(|scope| {
        let marking = scope.spawn(|| {
            for _ in 0..30 {
                order(&mut journal, at(0), "bob", Order::MarkRead, &ids);
                order(&mut journal, at(0), "bob", Order::MarkUnread, &ids);
            }
        });
        while !marking.is_finished() {
            let listed = reader.inbox(&name("bob"), Listing::All, at(0)).unwrap();
            let mut seen: Vec<_> = listed.iter().map(|state| state.message.id).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), listed.len());
        }
    });
}
