//! Bodies in the journal and in files, and bodies that are lost.

use posthaste_core::message::INLINE_LIMIT;
use posthaste_core::{Body, Draft, MessageId, MessageState, Order};
use posthaste_lab::{TempHome, at, denied, draft, id, name, order, post, stored};
use posthaste_store::operation::Post;
use posthaste_store::{Committed, Error, Journal, Patience, Prewrite, Writer, files};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Return all message files of one agent, sorted by name.
fn files_of(journal: &Journal, agent: &str) -> Vec<PathBuf> {
    let dir = journal.home().messages(&name(agent));
    let mut files: Vec<PathBuf> = match std::fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    files.sort();
    files
}

fn read(journal: &mut Journal, id: MessageId) -> String {
    let state = journal.state(id).unwrap().unwrap();
    files::body(journal.home(), &state.message).unwrap()
}

fn large(fill: &str) -> String {
    fill.repeat((INLINE_LIMIT / fill.len()) + 1)
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_body_is_read_back_byte_for_byte() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let every_control: String = (0u32..0x20)
        .chain(0x7f..0xa0)
        .filter_map(char::from_u32)
        .collect();
    let mut check = |body: &str, is_filed: bool| {
        let mut state = draft("alice", "bob", body);
        // Without it, an empty body would be refused.
        state.subject = Some("a body".to_owned());
        let posted = post(&mut journal, at(0), &state);
        let kept = &posted.state.message.envelope.body;
        assert_eq!(matches!(kept, Body::Filed { .. }), is_filed);
        assert_eq!(kept.bytes(), body.len() as u64);
        assert!(read(&mut journal, state.id) == body, "the body differs");
        let file = files::ensure(journal.home(), &posted.state.message).unwrap();
        assert!(
            std::fs::read_to_string(file).unwrap() == body,
            "the file differs"
        );
    };
    check("", false);
    check("no newline", false);
    check("two\r\n\r\nnewlines \n\n", false);
    check(&every_control, false);
    check("漢字 👩‍💻 \u{feff}\u{202e}", false);
    check(&"é漢👩".repeat(1_000_000 / 9), false);
    check(&"x".repeat(INLINE_LIMIT), false);
    check(&"x".repeat(INLINE_LIMIT + 1), true);
    check(&"é".repeat(INLINE_LIMIT), true);
}

#[test]
fn a_message_file_is_private() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for body in ["small".to_owned(), large("x")] {
        post(&mut journal, at(0), &draft("alice", "bob", body));
    }
    let files = files_of(&journal, "bob");
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for dir in ["", "messages", "messages/bob", "bell"] {
        assert_eq!(mode(&home.path().join(dir)), 0o700, "{dir}");
    }
    for file in [
        "journal.db",
        "journal.db-wal",
        "journal.lock",
        "host",
        "bell/all",
    ] {
        assert_eq!(mode(&home.path().join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_file_is_named_by_time_and_id_and_replaces_no_other() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let alike = |n: u128| MessageId(uuid::Uuid::from_u128((0x3fa8_c1d2 << 96) | n));
    let mut check = |n: u128, body: &str, want: &str| {
        let state = Draft {
            id: alike(n),
            ..draft("alice", "bob", body)
        };
        let posted = post(&mut journal, at(3_723), &state);
        let file = files::ensure(journal.home(), &posted.state.message).unwrap();
        assert_eq!(file.file_name().unwrap().to_str().unwrap(), want);
        assert!(std::fs::read_to_string(file).unwrap() == body);
    };
    check(1, "first", "20260101-010203-3fa8c1d2.md");
    let long = "20260101-010203-3fa8c1d2-0000-0000-0000-00000000000";
    check(2, "second", &format!("{long}2.md"));
    check(3, &large("three"), &format!("{long}3.md"));
    check(4, "first", "20260101-010203-3fa8c1d2.md");
    // A file whose first name is taken is found under its second name.
    for (n, body) in [
        (1, "first".to_owned()),
        (2, "second".to_owned()),
        (3, large("three")),
    ] {
        assert!(read(&mut journal, alike(n)) == body, "{n}");
    }
}

#[test]
fn a_lost_or_changed_copy_is_written_again() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let posted = post(&mut journal, at(0), &draft("alice", "bob", "precious"));
    let message = posted.state.message;
    let check = |spoil: fn(&Path)| {
        spoil(&files_of(&journal, "bob")[0]);
        let file = files::ensure(journal.home(), &message).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(mode(&file), 0o600);
    };
    check(|file| std::fs::remove_file(file).unwrap());
    check(|file| std::fs::remove_dir_all(file.parent().unwrap()).unwrap());
    check(|file| std::fs::write(file, "precioux").unwrap());
    check(|file| std::fs::write(file, "").unwrap());
    let [_, second] = &files_of(&journal, "bob")[..] else {
        panic!("the one that somebody changed, and the one that was made beside it");
    };
    std::fs::write(second, "changed too").unwrap();
    let file = files::ensure(journal.home(), &message).unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn a_changed_large_body_is_reported_and_never_shown() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let mut check = |spoil: fn(&Path), want: &str| {
        let posted = post(&mut journal, at(0), &draft("alice", "bob", large("x")));
        let message = posted.state.message;
        let file = files::ensure(journal.home(), &message).unwrap();
        spoil(&file);
        for answer in [
            files::body(journal.home(), &message).map(drop),
            files::ensure(journal.home(), &message).map(drop),
        ] {
            match answer {
                Err(Error::BodyLost { id, path, why }) => {
                    assert_eq!((id, path.as_path()), (message.id, file.as_path()));
                    assert!(why.contains(want), "{why} should say {want}");
                }
                other => panic!("{other:?}"),
            }
        }
        let lost = journal.examine().unwrap().lost_bodies;
        assert_eq!(lost.last(), Some(&message.id));
        // The message itself is not lost.
        assert!(journal.state(message.id).unwrap().is_some());
    };
    check(|file| std::fs::remove_file(file).unwrap(), "missing");
    check(|file| std::fs::write(file, "short").unwrap(), "5 bytes");
    check(
        |file| {
            let length = file.metadata().unwrap().len() as usize;
            std::fs::write(file, "y".repeat(length)).unwrap();
        },
        "changed",
    );
}

#[test]
fn a_denied_or_repeated_large_message_leaves_no_file() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let keyed = Draft {
        key: Some("once".to_owned()),
        ..draft("alice", "bob", large("x"))
    };
    post(&mut journal, at(0), &keyed);
    let status = files_of(&journal, "bob");
    assert_eq!(status.len(), 1);

    let again = Draft {
        id: id(1),
        ..keyed.clone()
    };
    for now in [at(0), at(1)] {
        assert!(!post(&mut journal, now, &again).is_new);
        assert!(!post(&mut journal, now, &keyed).is_new);
    }
    let to_self = Draft {
        to: name("alice"),
        ..again.clone()
    };
    let unheard_of = Draft {
        reply_to: Some(id(99)),
        key: None,
        ..again.clone()
    };
    let taken = Draft {
        id: keyed.id,
        body: Body::Inline(large("y")),
        ..keyed.clone()
    };
    let good = draft("alice", "bob", large("z"));
    let bad_company = [
        (&good, &to_self),
        (&good, &unheard_of),
        (&good, &taken),
        (&keyed, &to_self),
    ];
    for (good, bad) in bad_company {
        for now in [at(0), at(5)] {
            let drafts = vec![good.clone(), bad.clone()];
            denied(&mut journal, Post { now, drafts });
        }
    }
    assert_eq!(files_of(&journal, "bob"), status);
    assert_eq!(files_of(&journal, "alice"), Vec::<PathBuf>::new());
    assert!(read(&mut journal, keyed.id) == large("x"));
}

/// Two processes may store the same message at once: a failure of one must not remove the body that
/// the other has stored.
#[test]
fn a_failed_retry_keeps_the_body_of_the_stored_message() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let state = draft("alice", "bob", large("x"));
    post(&mut journal, at(0), &state);
    let status = files_of(&journal, "bob");
    let retry = || Post {
        now: at(0),
        drafts: vec![state.clone()],
    };

    let mut impatient = Journal::open(home.home(), Patience(std::time::Duration::ZERO)).unwrap();
    let held = journal.hold().unwrap();
    let busy = impatient.commit(retry()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    drop(held);
    assert!(read(&mut journal, state.id) == large("x"));
    assert_eq!(files_of(&journal, "bob"), status);

    // A retry restores a file that was lost in between.
    std::fs::remove_file(&status[0]).unwrap();
    assert!(matches!(journal.commit(retry()), Ok(Ok(_))));
    assert!(read(&mut journal, state.id) == large("x"));
}

#[test]
fn a_body_that_cannot_be_written_stores_no_message_of_its_operation() {
    let home = TempHome::new();
    let mut journal = home.journal();
    post(
        &mut journal,
        at(0),
        &draft("alice", "bob", "make the directories"),
    );
    let before = files_of(&journal, "bob");
    // Carol's directory cannot be created, because a file has its name.
    std::fs::write(journal.home().messages(&name("carol")), "in the way").unwrap();
    let drafts = vec![
        draft("alice", "bob", large("x")),
        draft("alice", "carol", large("x")),
    ];
    let failed = journal.commit(Post { now: at(0), drafts });
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert_eq!(
        (journal.head().unwrap(), files_of(&journal, "bob")),
        (1, before)
    );
}

#[test]
fn a_message_is_stored_although_its_copy_cannot_be_written() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let in_the_way = journal.home().messages(&name("carol"));
    std::fs::write(&in_the_way, "").unwrap();
    let state = draft("alice", "carol", "stored all the same");
    let posted = post(&mut journal, at(0), &state);
    assert!(posted.is_new);
    let why = posted
        .unfiled
        .as_deref()
        .expect("the sender gets the reason");
    assert!(why.contains("messages/carol"), "{why}");
    assert_eq!(read(&mut journal, state.id), "stored all the same");
    assert!(files::ensure(journal.home(), &posted.state.message).is_err());
    std::fs::remove_file(in_the_way).unwrap();
    let file = files::ensure(journal.home(), &posted.state.message).unwrap();
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "stored all the same"
    );
}

#[test]
fn a_deleted_message_loses_its_copy() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let [kept, gone] = ["keep", "drop"].map(|body| draft("alice", "bob", body));
    for state in [&kept, &gone] {
        post(&mut journal, at(0), state);
    }
    order(&mut journal, at(1), "bob", Order::Delete, &[gone.id]);
    let texts: Vec<String> = files_of(&journal, "bob")
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    assert_eq!(texts, ["keep"]);
}

#[test]
fn large_bodies_of_a_group_commit_are_filed() {
    let home = TempHome::new();
    let (writer, thread) = Writer::start(&home.home(), Patience::DEFAULT).unwrap();
    let messages: Vec<MessageState> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|n| {
                let writer = &writer;
                scope.spawn(move || {
                    let drafts = vec![draft("alice", "bob", large(&n.to_string()))];
                    match stored(writer, Post { now: at(0), drafts }) {
                        Ok(Ok(mut posted)) => posted.remove(0).state,
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        senders.into_iter().map(|s| s.join().unwrap()).collect()
    });
    for (n, state) in messages.iter().enumerate() {
        let body = files::body(&home.home(), &state.message).unwrap();
        assert!(body == large(&n.to_string()));
    }
    let (now, drafts) = (at(0), vec![draft("bob", "bob", large("x"))]);
    let denied = stored(&writer, Post { now, drafts });
    assert!(matches!(denied, Ok(Err(_))), "{denied:?}");
    drop(writer);
    thread.join();
    assert_eq!(files_of(&home.journal(), "bob").len(), 4);
}

#[test]
fn a_prewritten_file_appears_only_after_the_commit() {
    let home = TempHome::new();
    let (writer, thread) = Writer::start(&home.home(), Patience::DEFAULT).unwrap();
    let journal = home.journal();
    // The first message creates the directory.
    stored(&writer, posting(numbered(1, "first")))
        .unwrap()
        .unwrap();
    let submit = |draft| commit_prewritten(&writer, draft);
    let count = || files_of(&journal, "bob").len();

    let (done, prewrite) = submit(numbered(2, "second"));
    assert_eq!(count(), 1, "it has a name before its turn");
    done.settle(&prewrite).unwrap().unwrap();
    let files = files_of(&journal, "bob");
    assert_eq!(files.len(), 2);
    for file in &files {
        assert_eq!(mode(file), 0o600);
    }
    assert_eq!(std::fs::read_to_string(&files[1]).unwrap(), "second");

    // The name is taken by another file, which is not changed.
    let taken = files[1].with_file_name(format!("20260101-000000-{}.md", id(3).id8()));
    std::fs::write(&taken, "mine").unwrap();
    let (done, prewrite) = submit(numbered(3, "third"));
    done.settle(&prewrite).unwrap().unwrap();
    let whole = taken.with_file_name(format!("20260101-000000-{}.md", id(3)));
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(whole).unwrap(), "third");

    // A repeated, denied or abandoned message leaves no file.
    let before = count();
    let (done, prewrite) = submit(numbered(3, "third"));
    let again = done.settle(&prewrite).unwrap().unwrap();
    assert!(!again[0].is_new);
    let (done, prewrite) = submit(draft("bob", "bob", "to itself"));
    done.settle(&prewrite).unwrap().unwrap_err();
    drop(submit(numbered(4, "never settled")));
    assert_eq!(count(), before);
    drop(writer);
    thread.join();
}

#[test]
fn a_prewritten_file_is_not_used_for_another_text() {
    let home = TempHome::new();
    let (writer, thread) = Writer::start(&home.home(), Patience::DEFAULT).unwrap();
    stored(&writer, posting(numbered(1, "first")))
        .unwrap()
        .unwrap();
    let (second, of_the_second) = commit_prewritten(&writer, numbered(2, "second"));
    let (third, of_the_third) = commit_prewritten(&writer, numbered(3, "third"));
    second.settle(&of_the_third).unwrap().unwrap();
    third.settle(&of_the_second).unwrap().unwrap();
    drop(writer);
    thread.join();
    let texts: Vec<_> = files_of(&home.journal(), "bob")
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

/// Submit a message, prewrite its file, and wait for the commit.
fn commit_prewritten(writer: &Writer, draft: Draft) -> (Committed<Post>, Prewrite) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let then = move |done| drop(sender.send(done));
    let mut prewrite = writer.submit(posting(draft), then).unwrap();
    prewrite.begin();
    (receiver.recv().unwrap(), prewrite)
}

fn numbered(n: u32, body: &str) -> Draft {
    Draft {
        id: id(n),
        ..draft("lab", "bob", body)
    }
}

fn posting(draft: Draft) -> Post {
    Post {
        now: at(0),
        drafts: vec![draft],
    }
}
