//! Faults that need a file system of their own: a full disk, a read-only one.
//!
//! Each test runs itself again in a mount namespace with the fault, where it finds its directory in
//! an environment variable.

use posthaste_core::{Draft, MessageId};
use posthaste_lab::{
    TempHome, assert_intact, assert_views_agree, at, draft, name, post, records, skip_or_fail,
    stored, text_of,
};
use posthaste_store::operation::Post;
use posthaste_store::{Error, Home, Journal, Listing, Patience, files};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable with the directory.
const STAGE: &str = "PH_LAB_STAGE";

/// Command that can mount: root in a new namespace, another user as root of one.
const MOUNTING: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
/// Command without root's permissions.
const POWERLESS: [&[&str]; 1] = [&["--user"]];

/// Run `act` on `dir` in a namespace after `setup`, a line of shell. `test` is the name of the
/// calling test.
fn staged(test: &str, ways: &[&[&str]], setup: &str, dir: &Path, act: fn(&Path)) {
    if let Some(dir) = std::env::var_os(STAGE) {
        return act(Path::new(&dir));
    }
    let works = |way: &&&[&str]| {
        let mut trial = Command::new("unshare");
        trial.args(**way).args(["sh", "-c", setup, "sh"]).arg(dir);
        trial.output().is_ok_and(|done| done.status.success())
    };
    let Some(way) = ways.iter().find(works) else {
        return skip_or_fail(&format!("{test}: no namespace to be had with unshare"));
    };
    let script = format!("{setup} && exec \"$2\" --exact \"$3\" --nocapture");
    let done = Command::new("unshare")
        .args(*way)
        .args(["sh", "-c", &script, "sh"])
        .arg(dir)
        .arg(std::env::current_exe().unwrap())
        .arg(format!("faults::{test}"))
        .env(STAGE, dir)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && output.contains("1 passed"),
        "{output}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Return whether an error means that the disk is full, also if several callers share it.
fn is_full(error: &Error) -> bool {
    match error {
        Error::Full(_) => error.hint().is_some(),
        Error::Shared(inner) => is_full(inner),
        _ => false,
    }
}

/// A disk of 6 MiB, and a file that fills it.
struct SmallDisk {
    home: Home,
    ballast: PathBuf,
}

impl SmallDisk {
    fn at(dir: &Path) -> Self {
        Self {
            home: Home::open(dir.join("home"), None).unwrap(),
            ballast: dir.join("ballast"),
        }
    }

    /// Fill the disk except for `left` bytes.
    fn fill(&self, left: u64) {
        let mut file = std::fs::File::create(&self.ballast).unwrap();
        let block = [0; 4096];
        while file.write_all(&block).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(left)).unwrap();
    }

    fn free(&self) {
        std::fs::remove_file(&self.ballast).unwrap();
    }

    /// Send one message like `ph send`.
    fn send(&self, state: Draft) -> Result<(), Error> {
        let mut journal = Journal::open(self.home.clone(), Patience::DEFAULT)?;
        let (now, drafts) = (at(0), vec![state]);
        journal.commit(Post { now, drafts })?.unwrap();
        // The sender has its reply: the next sender gets this error.
        let tidied = journal.tidy();
        assert!(tidied.as_ref().is_ok_and(|()| true) || is_full(&tidied.unwrap_err()));
        Ok(())
    }

    /// Check that exactly the acknowledged messages are stored and complete, and no file has other
    /// data.
    fn assert_holds(&self, acknowledged: &[MessageId]) {
        let mut journal = Journal::open(self.home.clone(), Patience::DEFAULT).unwrap();
        assert_intact(&mut journal);
        let facts = records(&journal);
        let stored: Vec<&str> = facts.iter().map(|record| record.id.as_str()).collect();
        let expected: Vec<String> = acknowledged.iter().map(ToString::to_string).collect();
        assert_eq!(stored, expected);
        let bob = name("bob");
        let inbox = journal.inbox(&bob, Listing::Unread, at(1)).unwrap();
        for file in std::fs::read_dir(self.home.messages(&bob)).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(
                acknowledged.iter().any(|id| text == text_of(*id)),
                "a file that is not a message's: {} bytes",
                text.len()
            );
        }
        for state in inbox {
            let file = files::ensure(&self.home, &state.message).unwrap();
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text, text_of(state.message.id));
        }
    }
}

fn state() -> Draft {
    let blank = draft("alice", "bob", "");
    Draft::new(blank.id, blank.from, blank.to, text_of(blank.id))
}

#[test]
fn a_full_disk_stores_no_partial_message_and_recovers() {
    let test = "a_full_disk_stores_no_partial_message_and_recovers";
    let temp = TempHome::on_disk();
    let mount = "mount -t tmpfs -o size=6m none \"$1\"";
    staged(test, &MOUNTING, mount, temp.beside(), |dir| {
        let disk = SmallDisk::at(dir);
        let mut acknowledged = Vec::new();
        let send = |acknowledged: &mut Vec<MessageId>| {
            let state = state();
            let id = state.id;
            disk.send(state).map(|()| acknowledged.push(id))
        };
        for _ in 0..20 {
            send(&mut acknowledged).unwrap();
        }
        // Each size leaves room for something else: a page, a message's file, the WAL, a
        // checkpoint.
        for left in [0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 200, 300].map(|kib| kib << 10) {
            disk.fill(left);
            let error = std::iter::repeat_with(|| send(&mut acknowledged))
                .take(1_000)
                .find_map(Result::err)
                .expect("a full disk is noticed");
            assert!(is_full(&error), "{left} bytes left: {error:?}");
            let large = draft("alice", "bob", "x".repeat(2 << 20));
            let error = disk.send(large).unwrap_err();
            assert!(is_full(&error), "{left} bytes left: {error:?}");
            disk.free();
            disk.assert_holds(&acknowledged);
            send(&mut acknowledged).unwrap();
        }
        disk.assert_holds(&acknowledged);
        let mut journal = Journal::open(disk.home.clone(), Patience::DEFAULT).unwrap();
        assert_views_agree(&mut journal, &[at(0)]);
    });
}

#[test]
fn a_session_outlives_a_full_disk() {
    let temp = TempHome::on_disk();
    let mount = "mount -t tmpfs -o size=6m none \"$1\"";
    staged(
        "a_session_outlives_a_full_disk",
        &MOUNTING,
        mount,
        temp.beside(),
        |dir| {
            let disk = SmallDisk::at(dir);
            let patience = Patience::DEFAULT;
            let (writer, thread) = posthaste_store::Writer::start(&disk.home, patience).unwrap();
            let mut acknowledged = Vec::new();
            let send = |acknowledged: &mut Vec<MessageId>| {
                let state = state();
                let id = state.id;
                let (now, drafts) = (at(0), vec![state]);
                stored(&writer, Post { now, drafts }).map(|done| {
                    done.unwrap();
                    acknowledged.push(id);
                })
            };
            for left in [0, 4, 20, 50, 100, 300].map(|kib| kib << 10) {
                send(&mut acknowledged).unwrap();
                disk.fill(left);
                let error = std::iter::repeat_with(|| send(&mut acknowledged))
                    .take(1_000)
                    .find_map(Result::err)
                    .expect("a full disk is noticed");
                assert!(is_full(&error), "{left} bytes left: {error:?}");
                disk.free();
                // The session stores a message on this connection as soon as there is room.
                send(&mut acknowledged).unwrap();
                disk.assert_holds(&acknowledged);
            }
            drop(writer);
            thread.join();
        },
    );
}

#[test]
fn a_home_is_created_once_a_full_disk_has_room() {
    let temp = TempHome::on_disk();
    let mount = "mount -t tmpfs -o size=1m none \"$1\"";
    staged(
        "a_home_is_created_once_a_full_disk_has_room",
        &MOUNTING,
        mount,
        temp.beside(),
        |dir| {
            let disk = SmallDisk::at(dir);
            for left in [0, 4, 8, 16, 32, 64].map(|kib| kib << 10) {
                disk.fill(left);
                if let Err(error) = disk.send(state()) {
                    assert!(is_full(&error), "{left} bytes left: {error:?}");
                }
                disk.free();
            }
            disk.send(state()).unwrap();
            let mut journal = Journal::open(disk.home.clone(), Patience::DEFAULT).unwrap();
            assert_intact(&mut journal);
            assert_views_agree(&mut journal, &[at(0)]);
        },
    );
}

/// Check a home that is not writable.
fn assert_refused(dir: &Path, is_right: fn(&Error) -> bool) {
    let home = Home::open(dir.join("home"), None).unwrap();
    let opened = Journal::open(home.clone(), Patience::DEFAULT);
    let existing = Journal::open_existing(home, Patience::DEFAULT);
    for error in [opened.unwrap_err(), existing.unwrap_err()] {
        assert!(is_right(&error), "{error:?}");
        assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    let new = Journal::open(
        Home::open(dir.join("home/new"), None).unwrap(),
        Patience::DEFAULT,
    );
    let error = new.unwrap_err();
    assert!(is_right(&error), "{error:?}");
}

#[test]
fn the_error_names_a_read_only_file_system() {
    let temp = TempHome::on_disk();
    post(&mut temp.journal(), at(0), &draft("alice", "bob", "before"));
    let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
    staged(
        "the_error_names_a_read_only_file_system",
        &MOUNTING,
        mount,
        temp.beside(),
        |dir| assert_refused(dir, |error| matches!(error, Error::ReadOnly(_))),
    );
    let mut journal = temp.journal();
    assert_intact(&mut journal);
    post(&mut journal, at(1), &draft("alice", "bob", "after"));
}

#[test]
fn the_error_names_a_home_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let temp = TempHome::on_disk();
    let allow = |mode| {
        for file in ["", "host", "journal.db", "journal.lock"] {
            let path = temp.path().join(file);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    if std::env::var_os(STAGE).is_none() {
        post(&mut temp.journal(), at(0), &draft("alice", "bob", "before"));
        allow(0o500);
    }
    staged(
        "the_error_names_a_home_without_permission",
        &POWERLESS,
        "true \"$1\"",
        temp.beside(),
        |dir| {
            assert_refused(dir, |error| match error {
                Error::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
                _ => false,
            });
        },
    );
    if std::env::var_os(STAGE).is_none() {
        allow(0o700);
        let mut journal = temp.journal();
        assert_intact(&mut journal);
        post(&mut journal, at(1), &draft("alice", "bob", "after"));
    }
}
