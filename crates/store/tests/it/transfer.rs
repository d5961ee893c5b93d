//! Export and import: facts are restored byte for byte, and every line is checked.

use posthaste_core::{Body, Draft, Event, MessageId, Order, Progress, Record, Step};
use posthaste_lab::{
    TempHome, assert_intact, assert_views_agree, at, draft, id, name, order, post, records,
};
use posthaste_store::operation::Post;
use posthaste_store::transfer::{Imported, export, import, to_line};
use posthaste_store::{Error, Journal, Listing, files};

fn exported(journal: &Journal) -> Vec<u8> {
    let mut out = Vec::new();
    let done = export(journal, &mut out).unwrap();
    assert_eq!(done.facts, journal.head().unwrap());
    out
}

fn imported(journal: &mut Journal, input: &[u8]) -> Imported {
    import(journal, &mut &input[..], |_| {}).unwrap()
}

/// Return a line with a kind of fact that this version does not know.
fn unknown_fact(n: u32, data: &str) -> Record {
    Record {
        seq: u64::from(n),
        origin: "elsewhere".to_owned(),
        id: id(n).to_string(),
        at: at(0).to_string(),
        agent: "bob".to_owned(),
        kind: "weather".to_owned(),
        data: data.to_owned(),
    }
}

fn lines(records: &[Record]) -> Vec<u8> {
    let lines: Vec<String> = records
        .iter()
        .map(|record| to_line(record) + "\n")
        .collect();
    lines.concat().into_bytes()
}

/// Create a journal with facts of every kind.
fn journal_with_all_facts(home: &TempHome) -> Journal {
    let mut journal = home.journal();
    let every_control: String = (0u32..0xa0).filter_map(char::from_u32).collect();
    let first = draft("alice", "bob", every_control);
    let reply = Draft {
        reply_to: Some(first.id),
        subject: Some("\u{2028}line\u{2029}\u{85}".to_owned()),
        key: Some("k\"\\".to_owned()),
        not_before: Some(at(50)),
        ..draft("bob", "alice", "漢字 👩‍💻")
    };
    let huge = draft("alice", "bob", "é\u{1b}\n\"".repeat(400_000));
    for message_state in [&first, &reply, &huge] {
        post(&mut journal, at(1), message_state);
    }
    order(&mut journal, at(2), "bob", Order::MarkRead, &[first.id]);
    order(&mut journal, at(3), "bob", Order::Delete, &[first.id]);
    let odd_data = [
        "{}",
        "null",
        "",
        " ",
        "{ \"a\" :\t1 }",
        " {}",
        "{} ",
        "{\n}",
        "{\r}",
        "not json",
        "\"\\ud800\"",
        "1e999",
        "{\"a\":1,\"a\":2}",
        "\u{0}",
        "\u{2028}",
        &format!("{}{}", "[".repeat(126), "]".repeat(126)),
        &format!("{}{}", "[".repeat(128), "]".repeat(128)),
        &format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)),
    ];
    let odd: Vec<Record> = (1..)
        .zip(odd_data)
        .map(|(n, data)| unknown_fact(n, data))
        .collect();
    assert_eq!(imported(&mut journal, &lines(&odd)).added, odd.len() as u64);
    journal
}

#[test]
fn an_exported_journal_is_imported_byte_for_byte() {
    let [here, there] = [TempHome::new(), TempHome::new()];
    let mut original = journal_with_all_facts(&here);
    let bytes = exported(&original);
    let mut copy = there.journal();
    let done = imported(&mut copy, &bytes);
    assert_eq!((done.known, done.conflicts), (0, vec![]));
    assert_eq!(records(&copy), records(&original));
    assert!(exported(&copy) == bytes, "the second export differs");
    assert_ne!(copy.origin(), original.origin());

    assert_intact(&mut copy);
    assert_views_agree(&mut copy, &[at(10), at(100)]);
    assert_eq!(copy.examine().unwrap().lost_bodies, []);
    for message_state in original.inbox(&name("bob"), Listing::All, at(10)).unwrap() {
        let [one, other] = [&original, &copy]
            .map(|journal| files::body(journal.home(), &message_state.message).unwrap());
        assert!(one == other, "{}", message_state.message.id);
    }
}

#[test]
fn a_repeated_import_adds_nothing() {
    let [here, there] = [TempHome::new(), TempHome::new()];
    let original = journal_with_all_facts(&here);
    let bytes = exported(&original);
    let mut copy = there.journal();
    let first = imported(&mut copy, &bytes);
    let files = |home: &TempHome| {
        let dir = home.home().messages(&name("bob"));
        std::fs::read_dir(dir).unwrap().count()
    };
    assert_eq!(files(&there), 1, "the body that is kept in a file");
    let again = imported(&mut copy, &bytes);
    let want = Imported {
        known: first.added,
        ..Imported::default()
    };
    assert_eq!(again, want);
    assert_eq!((records(&copy), files(&there)), (records(&original), 1));
}

#[test]
fn an_import_into_a_used_journal_assigns_new_seqs() {
    let [here, there] = [TempHome::new(), TempHome::new()];
    let original = journal_with_all_facts(&here);
    let mut busy = there.journal();
    let own = draft("carol", "bob", "I was here first");
    post(&mut busy, at(0), &own);
    imported(&mut busy, &exported(&original));
    let all = records(&busy);
    assert_eq!(all[0].id, own.id.to_string());
    for (taken, original) in all[1..].iter().zip(records(&original)) {
        let seq = original.seq + 1;
        assert_eq!(*taken, Record { seq, ..original });
    }
    assert_intact(&mut busy);
    assert_views_agree(&mut busy, &[at(10), at(100)]);
}

#[test]
fn an_unknown_fact_is_kept_and_reported_and_blocks_no_mail() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let message_state = draft("alice", "bob", "between the odd ones");
    let known = |n: u32, kind: &str| Record {
        kind: kind.to_owned(),
        ..unknown_fact(n, "{}")
    };
    let odd = [
        unknown_fact(1, "{\"rain\":true}"),
        known(2, "message"),
        known(3, "read"),
        Record {
            at: "yesterday".to_owned(),
            ..known(4, "message")
        },
        Record {
            agent: "../../etc".to_owned(),
            ..known(5, "message")
        },
        Record {
            id: "not an id".to_owned(),
            ..known(6, "message")
        },
        Record {
            kind: String::new(),
            ..unknown_fact(7, "")
        },
    ];
    imported(&mut journal, &lines(&odd[..3]));
    post(&mut journal, at(0), &message_state);
    imported(&mut journal, &lines(&odd[3..]));

    let inbox = journal.inbox(&name("bob"), Listing::All, at(1)).unwrap();
    assert_eq!(inbox.len(), 1);
    let health = journal.examine().unwrap();
    assert_eq!((health.odd_count, health.facts), (7, 8));
    let reasons: Vec<(u64, &str)> = health
        .odd
        .iter()
        .map(|(seq, why)| (*seq, why.split(':').next().unwrap()))
        .collect();
    let want = [
        (1, "unknown kind 'weather'"),
        (2, "malformed message"),
        (3, "malformed step"),
        (5, "malformed time"),
        (6, "malformed agent"),
    ];
    assert_eq!(reasons, want);
    assert_views_agree(&mut journal, &[at(1)]);
    journal.rebuild_views().unwrap();
    assert_eq!(journal.examine().unwrap().odd, health.odd);
}

/// Return a message of `journal`, and its steps.
fn message_with_steps(home: &TempHome) -> (MessageId, Vec<Record>) {
    let mut journal = home.journal();
    let message_state = draft("alice", "bob", "the story");
    post(&mut journal, at(0), &message_state);
    order(
        &mut journal,
        at(1),
        "bob",
        Order::MarkRead,
        &[message_state.id],
    );
    order(
        &mut journal,
        at(2),
        "bob",
        Order::Archive,
        &[message_state.id],
    );
    (message_state.id, records(&journal))
}

#[test]
fn a_step_may_be_imported_before_its_message() {
    let [here, there] = [TempHome::new(), TempHome::new()];
    let (id, facts) = message_with_steps(&here);
    let mut journal = there.journal();
    imported(&mut journal, &lines(&[facts[2].clone(), facts[1].clone()]));
    assert_eq!(journal.state(id).unwrap(), None);
    assert_eq!(journal.examine().unwrap().odd, []);
    imported(&mut journal, &lines(&facts[..1]));
    let message_state = journal.state(id).unwrap().unwrap();
    let states: Vec<&str> = message_state
        .receipts
        .iter()
        .map(|r| r.state.as_str())
        .collect();
    assert_eq!(states, ["stored", "archived", "read"]);
    assert_eq!(message_state.status.receipt().as_str(), "archived");
    assert_eq!(journal.count(&name("bob"), at(3)).unwrap().total, 0);
    assert_views_agree(&mut journal, &[at(3)]);
}

#[test]
fn an_id_with_different_bytes_is_a_conflict() {
    let home = TempHome::new();
    let (id, facts) = message_with_steps(&home);
    let mut journal = home.journal();
    let before = records(&journal);
    let mut check = |spoil: fn(&mut Record)| {
        let mut other = facts[0].clone();
        spoil(&mut other);
        let done = imported(
            &mut journal,
            &lines(&[other, unknown_fact(9, "{}"), facts[1].clone()]),
        );
        assert_eq!(done.conflicts, [id.to_string()]);
        assert_eq!(done.added + done.known, 2);
        assert_eq!(records(&journal)[..3], before);
    };
    check(|record| record.data.push(' '));
    check(|record| record.at = at(7).to_string());
    check(|record| record.agent = "carol".to_owned());
    check(|record| record.origin = "elsewhere".to_owned());
    check(|record| record.kind = "weather".to_owned());
    assert_views_agree(&mut journal, &[at(3)]);
}

#[test]
fn a_conflict_keeps_the_stored_body() {
    let [here, there] = [TempHome::new(), TempHome::new()];
    let mut journal = here.journal();
    let message_state = draft("alice", "bob", "x".repeat(2 << 20));
    post(&mut journal, at(0), &message_state);
    let mut other = there.journal();
    let claimed = Draft {
        body: Body::Inline("y".repeat(2 << 20)),
        ..message_state.clone()
    };
    post(&mut other, at(0), &claimed);
    let files = || {
        std::fs::read_dir(here.home().messages(&name("bob")))
            .unwrap()
            .count()
    };
    let done = imported(&mut journal, &exported(&other));
    assert_eq!(
        (done.conflicts, files()),
        (vec![message_state.id.to_string()], 1)
    );
    let message = journal.state(message_state.id).unwrap().unwrap().message;
    let body = files::body(journal.home(), &message).unwrap();
    assert!(body == "x".repeat(2 << 20));
}

#[test]
fn an_import_restores_a_lost_body() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let body = "x".repeat(2 << 20);
    let posted = post(&mut journal, at(0), &draft("alice", "bob", body.clone()));
    let backup = exported(&journal);
    let file = files::ensure(journal.home(), &posted.state.message).unwrap();
    std::fs::remove_file(file).unwrap();
    let mut lossy = Vec::new();
    let done = export(&journal, &mut lossy).unwrap();
    assert_eq!(done.lost_bodies, [posted.state.message.id]);
    // A fact that was exported without its body is imported without it.
    let elsewhere = TempHome::new();
    let mut copy = elsewhere.journal();
    assert_eq!(imported(&mut copy, &lossy).added, 1);
    assert_eq!(copy.examine().unwrap().lost_bodies.len(), 1);

    assert_eq!(imported(&mut journal, &backup).known, 1);
    assert!(files::body(journal.home(), &posted.state.message).unwrap() == body);
    assert_eq!(imported(&mut copy, &backup).known, 1);
    assert_eq!(copy.examine().unwrap().lost_bodies.len(), 0);
}

#[test]
fn a_bad_line_is_named_and_the_facts_before_it_are_imported() {
    let good = lines(&[unknown_fact(1, "{}"), unknown_fact(2, "{}")]);
    let whole = to_line(&unknown_fact(3, "{}"));
    let body_of = |id: &str| format!("{{\"body_of\":\"{id}\",\"text\":\"lost\"}}");
    let body = body_of(&id(3).to_string());
    let check = |bad: &[u8], line: u64, want: &str| {
        let home = TempHome::new();
        let mut journal = home.journal();
        let input = [&good, bad].concat();
        match import(&mut journal, &mut &input[..], |_| {}) {
            Err(Error::BadImport { line: at, why }) => {
                assert_eq!(at, line, "{why}");
                assert!(why.contains(want), "{why} should say {want}");
            }
            other => panic!("{other:?}"),
        }
        let ids: Vec<String> = records(&journal).into_iter().map(|r| r.id).collect();
        assert_eq!(ids[..2], [id(1).to_string(), id(2).to_string()]);
    };
    // The input may be cut off at any byte.
    for end in 1..whole.len() {
        check(&whole.as_bytes()[..end], 3, "");
    }
    check(b"rubbish\n", 3, "expected value");
    check(b"\n\n  \nrubbish", 6, "expected value");
    check(b"\xff\xfe\n", 3, "not UTF-8");
    check(b"[1,2]\n", 3, "");
    check(b"{}\n", 3, "missing field");
    check(b"{\"seq\":-1}\n", 3, "");
    let damaged = |from: &str, to: &str| whole.replace(from, to);
    check(
        damaged("\"data\":{}", "\"x\":1").as_bytes(),
        3,
        "unknown field",
    );
    check(damaged(",\"data\":{}", "").as_bytes(), 3, "without data");
    check(
        damaged("\"data\":{}", "\"data\":{},\"data_text\":\"\"").as_bytes(),
        3,
        "two kinds of data",
    );
    let no_id = to_line(&Record {
        id: String::new(),
        ..unknown_fact(3, "{}")
    });
    check(no_id.as_bytes(), 3, "without an id");
    check(format!("{body}\n{whole}\n").as_bytes(), 4, "has no message");
    check(format!("{body}\n").as_bytes(), 4, "has no message");
    let other = body_of(&id(4).to_string());
    check(format!("{body}\n{other}\n").as_bytes(), 4, "has no message");
    check(body_of("x").as_bytes(), 3, "");
}

#[test]
fn a_body_that_does_not_match_its_fact_is_rejected() {
    let home = TempHome::new();
    let mut journal = home.journal();
    post(
        &mut journal,
        at(0),
        &draft("alice", "bob", "x".repeat(2 << 20)),
    );
    post(&mut journal, at(0), &draft("alice", "bob", "inline"));
    let text = String::from_utf8(exported(&journal)).unwrap();
    let inline = records(&journal)[1].id.clone();
    let check = |input: String, want: &str| {
        let there = TempHome::new();
        let mut journal = there.journal();
        let error = import(&mut journal, &mut input.as_bytes(), |_| {}).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
        let dir = there.home().messages(&name("bob"));
        assert!(!dir.exists(), "nothing was written");
    };
    check(
        text.replacen("xxx", "xyx", 1),
        "does not match the hash in its fact",
    );
    check(
        text.replacen("xxx", "", 1),
        "does not match the hash in its fact",
    );
    let ahead = format!("{{\"body_of\":\"{inline}\",\"text\":\"inline\"}}\n");
    let second = text.lines().last().unwrap();
    check(ahead + second, "that contains its body");
}

#[test]
fn a_long_import_is_committed_in_batches_and_nothing_twice() {
    let [here, there] = [TempHome::new(), TempHome::new()];
    let mut journal = here.journal();
    let drafts = (0..2_500)
        .map(|n| draft("alice", "bob", n.to_string()))
        .collect();
    journal
        .commit(Post { now: at(0), drafts })
        .unwrap()
        .unwrap();
    let bytes = exported(&journal);
    let mut copy = there.journal();
    let mut progress = Vec::new();
    import(&mut copy, &mut &bytes[..], |done| progress.push(done)).unwrap();
    assert_eq!(progress, [1_000, 2_000, 2_500]);
    assert_eq!(records(&copy), records(&journal));
    // A message and a step that are both stored already, and one more step.
    let facts = records(&copy);
    let message: MessageId = facts[0].id.parse().unwrap();
    let step = Record {
        kind: Step::Read.as_str().to_owned(),
        data: Event::Progress(Progress::of(message, Step::Read)).data(),
        ..unknown_fact(1, "")
    };
    let input = lines(&[facts[0].clone(), step.clone(), step]);
    let done = imported(&mut copy, &input);
    assert_eq!((done.added, done.known), (1, 2));
    assert_eq!(copy.count(&name("bob"), at(0)).unwrap().unread, 2_499);
}
