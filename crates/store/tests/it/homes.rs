//! Homes that another user can change while they are opened or created.

use posthaste_lab::{name, skip_or_fail};
use posthaste_store::live::SessionDir;
use posthaste_store::{Home, Journal, Patience};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;
use tempfile::TempDir;

/// A user id that no account has.
const NEIGHBOUR: u32 = 54_321;

/// A directory that all users may write to, like `/tmp`.
fn shared() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o1777);
    dir
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Create a directory of another user. Return whether this process may.
fn make_neighbours(path: &Path) -> bool {
    std::fs::create_dir(path).unwrap();
    let is_given = chown(path, Some(NEIGHBOUR), None).is_ok();
    if !is_given {
        skip_or_fail("only root can give a directory to another user");
    }
    is_given
}

fn refusal<T>(result: Result<T, posthaste_store::Error>) -> String {
    result.err().map(|error| error.to_string()).unwrap()
}

#[test]
fn a_directory_above_that_appears_after_the_check_is_checked() {
    let shared = shared();
    let above = shared.path().join("above");
    let home = Home::open(above.join("home"), None).unwrap();
    if !make_neighbours(&above) {
        return;
    }
    let why = refusal(Journal::open(home, Patience::DEFAULT));
    assert!(why.contains("belongs to another user"), "{why}");
    assert_eq!(above.read_dir().unwrap().count(), 0);
}

#[test]
fn a_home_that_appears_after_the_check_is_not_read() {
    let shared = shared();
    let path = shared.path().join("home");
    let home = Home::open(&path, None).unwrap();
    assert!(!home.is_readable().unwrap());
    if !make_neighbours(&path) {
        return;
    }
    std::fs::write(home.config(), "mail.provider = 'exec:./trap'\n").unwrap();
    std::fs::write(home.journal(), "").unwrap();
    let why = refusal(home.is_readable());
    assert!(why.contains("belongs to another user"), "{why}");
    let why = refusal(Journal::open_existing(home, Patience::DEFAULT));
    assert!(why.contains("belongs to another user"), "{why}");
}

#[test]
fn missing_directories_above_a_home_are_created_private() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path().join("a/b/home"), None).unwrap();
    Journal::open(home, Patience::DEFAULT).unwrap();
    for part in ["a", "a/b", "a/b/home"] {
        let mode = dir.path().join(part).metadata().unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700, "{part}");
    }
}

/// Give a directory an access control list by which another user may write.
fn let_neighbour_write(path: &Path) -> Result<(), Errno> {
    const UNUSED_ID: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 7, UNUSED_ID),
        (0x02, 7, NEIGHBOUR),
        (0x04, 5, UNUSED_ID),
        (0x10, 7, UNUSED_ID),
        (0x20, 5, UNUSED_ID),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, access, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(access.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_access";
    rustix::fs::setxattr(path, name, &list, XattrFlags::empty())
}

#[test]
#[cfg(target_os = "linux")]
fn an_access_control_list_makes_a_directory_writable_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let above = dir.path().join("above");
    let home = above.join("home");
    for dir in [&above, &home] {
        DirBuilder::new().mode(0o755).create(dir).unwrap();
    }
    Home::open(&home, None).unwrap();
    for dir in [&home, &above] {
        match let_neighbour_write(dir) {
            Ok(()) => {}
            Err(Errno::NOTSUP) => {
                return skip_or_fail("this file system has no access control lists");
            }
            Err(error) => panic!("{error}"),
        }
        let why = refusal(Home::open(&home, None));
        assert!(why.contains("is writable by other users"), "{why}");
        assert!(why.contains(&*dir.to_string_lossy()), "{why}");
        rustix::fs::removexattr(dir, "system.posix_acl_access").unwrap();
        set_mode(dir, 0o755);
    }
    Home::open(&home, None).unwrap();
}

#[test]
fn files_of_other_users_in_a_home_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path(), None).unwrap();
    let dir = SessionDir::of(&home, &name("bob"));
    dir.prepare().unwrap();
    let note = serde_json::json!({
        "run": "00000000-0000-0000-0000-000000000001", "pid": 1, "child_pid": 1, "child_started": 1,
        "socket": "/x", "started_at": "2026-01-01T00:00:00Z",
        "launch": {
            "name": "bob", "command": ["true"], "cwd": "/", "harness": "generic", "env": [],
            "sockets": [], "cols": 80, "rows": 24,
        },
    });
    let path = dir.dir().join("run.json");
    std::fs::write(&path, note.to_string()).unwrap();
    assert!(dir.record().is_some());
    if chown(&path, Some(NEIGHBOUR), None).is_err() {
        return skip_or_fail("only root can give a file to another user");
    }
    assert!(dir.record().is_none());
}

#[test]
fn pipes_in_a_home_block_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path(), None).unwrap();
    let session_dir = SessionDir::of(&home, &name("bob"));
    session_dir.prepare().unwrap();
    for file in ["run.json", "lock", "log"] {
        let path = session_dir.dir().join(file);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
    }
    assert!(session_dir.record().is_none());
    assert!(session_dir.is_held().is_err());
    assert!(session_dir.take_name().is_err());
    assert!(session_dir.log().is_err());
}
