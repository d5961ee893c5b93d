//! Old and new binaries on one journal, and journals of older versions.

use jiff::SignedDuration;
use posthaste_core::offer::OfferReport;
use posthaste_core::tasks::{NewNote, NewTask};
use posthaste_core::{
    Conversation, Draft, Ended, Ending, Evidence, MessageId, NoteId, NoteType, Order, Priority,
    Record, Started, TaskId, TaskStatus,
};
use posthaste_lab::{
    TempHome, assert_intact, assert_views_agree, at, draft, id, name, order, post, records,
};
use posthaste_store::operation::{
    AddNote, AddTask, EndRun, MoveTask, Post, RecordCompletion, RecordConversation, RecordDelivery,
    StartRun,
};
use posthaste_store::search::Query;
use posthaste_store::{Home, Journal, Listing, Operation, Patience, files, transfer};
use std::path::{Path, PathBuf};

fn open(home: &TempHome, views: u32) -> Journal {
    Journal::open_with_views(home.home(), Patience::DEFAULT, views).unwrap()
}

#[test]
fn an_old_and_a_new_binary_share_one_journal() {
    let home = TempHome::new();
    let mut old = open(&home, 1);
    let mut new = open(&home, 2);
    let mut sent = Vec::new();
    for n in 0..30 {
        let state = Draft {
            key: Some(format!("key {}", n / 3)),
            ..draft("alice", "bob", n.to_string())
        };
        let (writer, reader) = match n % 2 {
            0 => (&mut old, &mut new),
            _ => (&mut new, &mut old),
        };
        let posted = post(writer, at(n), &state);
        // Facts of the other binary count: two in three messages have the key of an earlier one.
        assert_eq!(posted.is_new, n % 3 == 0, "{n}");
        let id = posted.state.message.id;
        assert_eq!(reader.state(id).unwrap().unwrap().message.id, id);
        if posted.is_new {
            sent.push(id);
        }
        order(reader, at(n), "bob", Order::MarkRead, &[id]);
        order(writer, at(n), "bob", Order::MarkUnread, &[id]);
    }
    for journal in [&mut old, &mut new] {
        let inbox = journal
            .inbox(&name("bob"), Listing::Unread, at(99))
            .unwrap();
        let ids: Vec<MessageId> = inbox.iter().map(|state| state.message.id).collect();
        assert_eq!(ids, sent);
        assert_views_agree(journal, &[at(99)]);
        assert_eq!(journal.examine().unwrap().view_versions, [1, 2]);
    }
    assert_eq!(old.origin(), new.origin());
    assert_intact(&mut old);
}

#[test]
fn missing_views_and_views_behind_are_brought_to_head_on_use() {
    let home = TempHome::new();
    let mut old = open(&home, 1);
    post(&mut old, at(0), &draft("alice", "bob", "first"));
    drop(open(&home, 2));
    let drafts = (0..1_100)
        .map(|n| draft("alice", "bob", n.to_string()))
        .collect();
    old.commit(Post { now: at(0), drafts }).unwrap().unwrap();
    // Views are far behind when the next operation is a write.
    let mut new = open(&home, 2);
    post(&mut new, at(0), &draft("alice", "bob", "last"));
    assert_views_agree(&mut new, &[at(0)]);

    drop(new);
    drop_views(&home, 2);
    assert_eq!(old.count(&name("bob"), at(0)).unwrap().total, 1_102);
    let mut new = open(&home, 2);
    assert_eq!(new.count(&name("bob"), at(0)).unwrap().total, 1_102);
    assert_views_agree(&mut new, &[at(0)]);
}

/// Drop one version's views, as a later version may do with unused ones.
fn drop_views(home: &TempHome, views: u32) {
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    let of_version = format!("v{views}\\_%");
    let tables: Vec<String> = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ?1 ESCAPE '\\'")
        .unwrap()
        .query_map([&of_version], |row| row.get(0))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    assert!(!tables.is_empty());
    for table in tables {
        conn.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    conn.execute(
        "DELETE FROM home WHERE name LIKE ?1 ESCAPE '\\'",
        [&of_version],
    )
    .unwrap();
}

#[test]
fn views_behind_by_few_long_facts_apply_all_of_them() {
    let home = TempHome::new();
    let mut old = open(&home, 1);
    drop(open(&home, 2));
    let long = "x".repeat(1 << 20);
    let drafts: Vec<Draft> = (0..12)
        .map(|_| draft("alice", "bob", long.clone()))
        .collect();
    let last = drafts[11].id;
    old.commit(Post { now: at(0), drafts }).unwrap().unwrap();
    let mut new = open(&home, 2);
    let reply = Draft {
        reply_to: Some(last),
        ..draft("bob", "alice", "on what is at head")
    };
    post(&mut new, at(1), &reply);
    assert_views_agree(&mut new, &[at(1)]);
}

/// Journals of earlier versions, oldest first. A change to the shape of a fact adds a fixture;
/// existing fixtures never change.
const FIXTURES: [&str; 3] = ["journal-1.db", "journal-2.db", "journal-3.db"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join("fixtures")
        .join(name)
}

/// Write the newest fixture again, by [`write_fixture`]. Only for a version that was never
/// released: `PH_REGENERATE_FIXTURES=1 cargo test -p posthaste-store versions`.
fn regenerate(path: &Path) {
    let home = TempHome::new();
    write_fixture(&home);
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    // Checkpoint, so that all of it is in one file.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(conn);
    std::fs::copy(home.home().journal(), path).unwrap();
}

fn write_fixture(home: &TempHome) {
    let mut journal = home.journal();
    let numbered = |n: u32, from: &str, to: &str, body: &str| Draft {
        id: id(n),
        ..draft(from, to, body)
    };
    let drafts = [
        numbered(1, "alice", "bob", "The login page is broken.\n"),
        Draft {
            reply_to: Some(id(1)),
            subject: Some("Re: login".to_owned()),
            ..numbered(2, "bob", "alice", "Fixed the login, please look")
        },
        Draft {
            priority: Priority::Interrupt,
            ..numbered(3, "human", "bob", "stop\u{1b}[2J\u{0}")
        },
        Draft {
            key: Some("nightly".to_owned()),
            priority: Priority::Idle,
            ..numbered(4, "human", "bob", "nightly report, naïve 漢字")
        },
        Draft {
            ttl: Some(SignedDuration::from_secs(60)),
            ..numbered(5, "human", "bob", "gone in a minute")
        },
        Draft {
            not_before: Some(at(1_000)),
            ..numbered(6, "human", "bob", "not before a thousand")
        },
        numbered(7, "alice", "bob", "to be archived"),
        numbered(8, "alice", "bob", "to be deleted"),
        numbered(9, "alice", "bob", "to be called back"),
        numbered(10, "alice", "bob", &"too long for a fact ".repeat(60_000)),
        Draft {
            priority: Priority::Idle,
            deadline: Some(SignedDuration::from_secs(60)),
            expects_reply: true,
            ..numbered(11, "dave", "carol", "an answer is expected")
        },
        Draft {
            expects_reply: true,
            ..numbered(12, "dave", "carol", "an answer will come")
        },
    ];
    for (n, state) in (0..).zip(&drafts) {
        post(&mut journal, at(n), state);
    }
    order(&mut journal, at(20), "bob", Order::MarkRead, &[id(1)]);
    order(&mut journal, at(21), "bob", Order::Show, &[id(3)]);
    order(&mut journal, at(22), "bob", Order::Archive, &[id(7)]);
    order(&mut journal, at(23), "bob", Order::Delete, &[id(8)]);
    order(&mut journal, at(24), "alice", Order::Cancel, &[id(9)]);
    remind(&mut journal);
    run_a_session(&mut journal);
    work(&mut journal);
    let strange = |n: u32, kind: &str, data: String| Record {
        seq: 1,
        origin: "elsewhere".to_owned(),
        id: id(n).to_string(),
        at: at(30).to_string(),
        agent: "bob".to_owned(),
        kind: kind.to_owned(),
        data,
    };
    let about = |n: u32| format!("{{\"message\":\"{}\"}}", id(n));
    let brought = [
        strange(101, "weather", "{\"rain\":true}".to_owned()),
        strange(102, "offering", about(4)),
        strange(103, "uncertain", about(4)),
        strange(104, "read", about(99)),
    ];
    for record in brought {
        let line = transfer::to_line(&record);
        transfer::import(&mut journal, &mut line.as_bytes(), |_| {}).unwrap();
    }
    write_unproven(&mut journal);
}

/// Two messages that expect a reply: one gets a reminder, the other a reply.
fn remind(journal: &mut Journal) {
    let (now, ids) = (at(25), vec![id(11), id(12)]);
    order(journal, now, "carol", Order::Show, &ids);
    let reminded = RecordDelivery {
        now,
        agent: name("carol"),
        ids,
        report: OfferReport::Reminded {
            route: "terminal".to_owned(),
        },
    };
    journal.commit(reminded).unwrap().unwrap();
    let answer = Draft {
        id: id(13),
        reply_to: Some(id(12)),
        from_evidence: Evidence::Env,
        ..draft("carol", "dave", "here it is")
    };
    post(journal, now, &answer);
}

/// A run that offers one message, and a run without an end.
fn run_a_session(journal: &mut Journal) {
    let agent = name("alice");
    let started = |n: u32| Started {
        run: id(200 + n).0,
        pid: 10,
        pid_started: 1_000,
        child_pid: 11,
        child_started: 1_001,
        command: vec!["cat".to_owned(), "a b".to_owned()],
        cwd: "/".to_owned(),
        harness: "generic".to_owned(),
        boot: "boot".to_owned(),
    };
    let (now, route) = (at(25), "terminal".to_owned());
    let start = |n| StartRun {
        now,
        agent: agent.clone(),
        started: started(n),
    };
    let record = |report| RecordDelivery {
        now,
        agent: agent.clone(),
        ids: vec![id(2)],
        report,
    };
    let end = EndRun {
        now,
        agent: agent.clone(),
        ended: Ended {
            run: id(201).0,
            how: Ending::Signal(9),
        },
    };
    let offering = OfferReport::Offering {
        route: route.clone(),
        repeats: Vec::new(),
    };
    let offered = OfferReport::Offered {
        route,
        evidence: "written".to_owned(),
        proof_awaited: false,
    };
    commit(journal, start(1));
    commit(journal, record(offering));
    commit(journal, record(offered));
    commit(journal, end);
    commit(journal, start(2));
}

fn commit(journal: &mut Journal, operation: impl Operation) {
    journal.commit(operation).unwrap().unwrap();
}

/// Tasks, notes and a completion.
fn work(journal: &mut Journal) {
    let (now, agent) = (at(26), name("alice"));
    let task = |n: u32, text: &str, status| AddTask {
        now,
        agent: agent.clone(),
        task: NewTask {
            id: TaskId(id(300 + n).0),
            text: text.to_owned(),
            status,
            iteration: None,
            by: name("bob"),
        },
    };
    let note = NewNote {
        id: NoteId(id(303).0),
        kind: NoteType::Decision,
        text: "SQLite".to_owned(),
        iteration: Some(1),
        by: agent.clone(),
    };
    let first = task(1, "Write the login page", TaskStatus::Remaining);
    let second = task(2, "Deploy\n- [00000000] forged", TaskStatus::Blocked);
    commit(journal, first);
    commit(journal, second);
    commit(
        journal,
        MoveTask {
            now: at(27),
            who: agent.clone(),
            task: TaskId(id(301).0),
            status: TaskStatus::InProgress,
            iteration: Some(2),
        },
    );
    let add_note = AddNote {
        now,
        agent: agent.clone(),
        note,
    };
    commit(journal, add_note);
    let complete = RecordCompletion {
        now: at(28),
        who: agent.clone(),
        agent,
        iteration: Some(2),
    };
    commit(journal, complete);
}

/// Check the tasks, notes and the completion of a fixture.
fn assert_work(journal: &mut Journal) {
    let alice = name("alice");
    let tasks = journal.tasks(&alice, &TaskStatus::ALL).unwrap();
    let tasks: Vec<_> = tasks
        .iter()
        .map(|t| (t.id, t.status, t.iteration))
        .collect();
    let [one, two] = [301, 302].map(|n| TaskId(id(n).0));
    let want = [
        (one, TaskStatus::InProgress, Some(2)),
        (two, TaskStatus::Blocked, None),
    ];
    assert_eq!(tasks, want);
    let notes = journal.notes(&alice, &NoteType::ALL).unwrap();
    let notes: Vec<_> = notes.iter().map(|n| (n.kind, n.text.as_str())).collect();
    assert_eq!(notes, [(NoteType::Decision, "SQLite")]);
    let completion = journal.completion(&alice).unwrap().unwrap();
    assert_eq!(completion.completed.run, Some(id(202).0));
}

/// Open a copy of a fixture, as the journal of a home.
fn with_fixture(name: &str) -> (TempHome, Journal) {
    let path = fixture(name);
    if std::env::var_os("PH_REGENERATE_FIXTURES").is_some() && FIXTURES.last() == Some(&name) {
        regenerate(&path);
    }
    let temp = TempHome::new();
    let home: Home = temp.home();
    temp.create();
    std::fs::copy(path, home.journal()).unwrap();
    let journal = temp.journal();
    (temp, journal)
}

/// An offer whose proof is awaited, in a conversation, and an offer that a hook has printed.
fn write_unproven(journal: &mut Journal) {
    let (now, agent) = (at(26), name("erin"));
    for n in [30, 31] {
        let message = Draft {
            id: id(n),
            ..draft("alice", "erin", n.to_string())
        };
        post(journal, now, &message);
    }
    let record = |n, report| RecordDelivery {
        now,
        agent: agent.clone(),
        ids: vec![id(n)],
        report,
    };
    let offering = |route: &str| OfferReport::Offering {
        route: route.to_owned(),
        repeats: Vec::new(),
    };
    let offered = |route: &str, proof_awaited| OfferReport::Offered {
        route: route.to_owned(),
        evidence: "written".to_owned(),
        proof_awaited,
    };
    let conversation = Conversation {
        run: id(201).0,
        id: "conv-1".to_owned(),
        harness: "claude".to_owned(),
        cwd: "/home/erin".to_owned(),
        transcript: Some("/home/erin/conv-1.jsonl".to_owned()),
        not_resumed: false,
    };
    commit(journal, record(30, offering("terminal")));
    commit(journal, record(30, offered("terminal", true)));
    commit(journal, record(31, offering("inject")));
    commit(journal, record(31, offered("inject", false)));
    let record = RecordConversation {
        now,
        agent: agent.clone(),
        conversation,
    };
    commit(journal, record);
}

/// Check that an offer of the newest version awaits its proof, and that no other does: a message
/// that an earlier version has offered stays offered.
fn assert_proof_is_awaited(journal: &mut Journal, is_newest: bool) {
    assert_eq!(journal.unproven(&name("bob")).unwrap(), []);
    let unproven = journal.unproven(&name("erin")).unwrap();
    let unproven: Vec<_> = unproven.iter().map(|state| state.message.id).collect();
    let conversation = journal.conversation(&name("erin")).unwrap();
    let conversation = conversation.map(|conversation| conversation.id);
    let want = is_newest.then(|| (id(30), "conv-1".to_owned()));
    let (awaited, conversing) = want.unzip();
    assert_eq!(unproven, Vec::from_iter(awaited));
    assert_eq!(conversation, conversing);
}

#[test]
fn journals_of_every_version_are_opened_listed_searched_and_continued() {
    for fixture in FIXTURES {
        let (_home, mut journal) = with_fixture(fixture);
        assert_proof_is_awaited(&mut journal, fixture == FIXTURES[2]);
        assert_intact(&mut journal);
        assert_views_agree(&mut journal, &[at(25), at(70), at(2_000)]);

        let mut check = |listing, now: i64, want: &[u32]| {
            let inbox = journal.inbox(&name("bob"), listing, at(now)).unwrap();
            let ids: Vec<_> = inbox.iter().map(|state| state.message.id).collect();
            let want: Vec<_> = want.iter().map(|n| id(*n)).collect();
            assert_eq!(ids, want, "{fixture}: {listing:?} at {now}");
        };
        check(Listing::Unread, 25, &[3, 4, 5, 10]);
        check(Listing::All, 25, &[1, 3, 4, 5, 10]);
        check(Listing::All, 70, &[1, 3, 4, 10]);
        check(Listing::Unread, 2_000, &[3, 4, 6, 10]);

        let mut check = |words: &str, want: &[u32]| {
            let query = Query {
                words: words.to_owned(),
                from: None,
                to: None,
                order: Default::default(),
                limit: 10,
            };
            let found = journal.search(&query, |_| {}).unwrap();
            let ids: Vec<_> = found.iter().map(|state| state.message.id).collect();
            let want: Vec<_> = want.iter().map(|n| id(*n)).collect();
            assert_eq!(ids, want, "{fixture}: {words}");
        };
        check("login", &[2, 1]);
        check("\"naïve 漢字\"", &[4]);
        check("deleted", &[]);

        assert_eq!(journal.thread(id(1)).unwrap().len(), 2);
        let state = journal.state(id(4)).unwrap().unwrap();
        assert_eq!(state.status.receipt().as_str(), "uncertain");
        let stop = journal.state(id(3)).unwrap().unwrap().message;
        let body = files::body(journal.home(), &stop).unwrap();
        assert_eq!(body, "stop\u{1b}[2J\u{0}");
        let run = journal.session(&name("alice")).unwrap().unwrap();
        assert_eq!((run.started.run, run.end), (id(202).0, None));
        let offered = journal.state(id(2)).unwrap().unwrap();
        assert_eq!(offered.status.receipt().as_str(), "offered");
        let owed = journal.owed(&name("carol"), at(30)).unwrap();
        let owed: Vec<_> = owed
            .iter()
            .map(|l| (l.message.id, l.status.reminded))
            .collect();
        // The first fixture has no expected replies.
        let is_first = fixture == FIXTURES[0];
        assert_eq!(owed, if is_first { vec![] } else { vec![(id(11), 1)] });
        let answer = journal.state(id(13)).unwrap().map(|l| l.message.envelope);
        assert_eq!(
            answer.map(|e| (e.hops, e.cause)),
            (!is_first).then_some((1, None))
        );
        if !is_first {
            assert_work(&mut journal);
        }
        let health = journal.examine().unwrap();
        assert_eq!(health.odd.len(), 1);
        // The fixture does not include the file of its body.
        assert_eq!(health.lost_bodies, [id(10)]);

        let before = records(&journal);
        let again = Draft {
            key: Some("nightly".to_owned()),
            ..draft("human", "bob", "nightly again")
        };
        assert_eq!(post(&mut journal, at(40), &again).state.message.id, id(4));
        assert!(post(&mut journal, at(41), &draft("alice", "bob", "new")).is_new);
        journal.rebuild_views().unwrap();
        assert_views_agree(&mut journal, &[at(25), at(70), at(2_000)]);
        assert_eq!(records(&journal)[..before.len()], before);
        assert_eq!(journal.head().unwrap(), before.len() as u64 + 1);
    }
}
