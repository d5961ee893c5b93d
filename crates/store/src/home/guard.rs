//! The rule for every directory of a home: it belongs to this user, is private, and is not a link.
//! The directories above a home belong to this user or to root, and no other user can replace what
//! is in them.
//!
//! Because of this rule, no other user can change a path of a home between a check and its use.
//! Paths are checked from the root of the file system downwards: once a directory is checked, no
//! other user can replace it or what this user has in it. A path that does not exist is not
//! checked, so it is checked when it is created, and nothing is read from it before.

use crate::error::{Error, Result, io};
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Links that the path to a home may contain.
const MAX_LINKS: usize = 40;
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY_BIT: u32 = 0o1000;
const OPEN_TO_OTHERS: u32 = 0o077;
const OWN_HOME_HINT: &str = "choose a home of your own with --home or PH_HOME";

/// A directory of this user, open.
pub(super) struct OwnDir {
    fd: OwnedFd,
    mode: u32,
    gid: u32,
}

impl OwnDir {
    pub(super) fn is_private(&self) -> bool {
        self.mode & OPEN_TO_OTHERS == 0
    }

    /// Check that no other user can write to the directory.
    pub(super) fn check_unshared(&self, path: &Path) -> Result<()> {
        match is_writable_by_others(path, self.mode, self.gid) {
            true => Err(shared_error(path)),
            false => Ok(()),
        }
    }

    /// Check that the directory is private.
    pub(super) fn check_private(&self, path: &Path) -> Result<()> {
        check_private(path, self.mode)
    }

    pub(super) fn make_private(&self, path: &Path) -> Result<()> {
        if self.is_private() {
            return Ok(());
        }
        rustix::fs::fchmod(&self.fd, Mode::RWXU)
            .map_err(|error| io("make private", path)(error.into()))
    }
}

/// Open a directory that must belong to this user and must not be a link. Return `None` if it does
/// not exist.
pub(super) fn open_own(path: &Path) -> Result<Option<OwnDir>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) if path.is_symlink() => return Err(link_error(path)),
        Err(error) => return Err(io("open", path)(error.into())),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|error| io("inspect", path)(error.into()))?;
    check_owner(path, stat.st_uid)?;
    let (mode, gid) = (mode_of(&stat), stat.st_gid);
    Ok(Some(OwnDir { fd, mode, gid }))
}

/// Return whether a directory exists, belongs to this user, is private and is not a link.
pub fn is_private_dir(path: &Path) -> bool {
    let opened = open_own(path).ok().flatten();
    opened.is_some_and(|opened| opened.is_private())
}

/// Return whether a directory is private, and no other user can replace it.
pub(crate) fn is_safe_dir(path: &Path) -> bool {
    check_above(path).is_ok() && is_private_dir(path)
}

/// Create a directory and its parents below `top`, private to this user, and check each of them.
/// `top` itself was checked by the caller.
pub fn make_dirs(top: &Path, dir: &Path) -> Result<()> {
    let below = dir.strip_prefix(top).unwrap_or(dir);
    let mut path = top.to_owned();
    for name in below.components() {
        path.push(name);
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io("create", &path)(error.into())),
        }
        let opened = open_own(&path)?;
        let opened = opened.ok_or_else(|| io("open", &path)(ErrorKind::NotFound.into()))?;
        opened.check_private(&path)?;
    }
    Ok(())
}

/// Make a directory and everything below it private. Refuse links, pipes, devices and files of
/// other users, before anything is changed.
pub(super) fn make_tree_private(dir: &Path) -> Result<()> {
    for_each_dir(dir, &mut |_, _| Ok(()))?;
    for_each_dir(dir, &mut |path, opened| opened.make_private(path))
}

fn for_each_dir(dir: &Path, act: &mut dyn FnMut(&Path, &OwnDir) -> Result<()>) -> Result<()> {
    let opened = open_own(dir)?;
    let opened = opened.ok_or_else(|| io("open", dir)(ErrorKind::NotFound.into()))?;
    act(dir, &opened)?;
    for entry in dir.read_dir().map_err(io("list", dir))? {
        let path = entry.map_err(io("list", dir))?.path();
        let meta = path.symlink_metadata().map_err(io("inspect", &path))?;
        if meta.is_symlink() {
            return Err(link_error(&path));
        }
        check_owner(&path, meta.uid())?;
        if meta.is_dir() {
            for_each_dir(&path, act)?;
        } else if !meta.is_file() && !meta.file_type().is_socket() {
            return Err(kind_error(&path));
        }
    }
    Ok(())
}

/// Check the parts of a home that exist: each belongs to this user and is not a link, and each
/// directory is private. If the home itself is not private yet, no other user can write to its
/// files.
pub(super) fn check_parts(root: &Path, opened: &OwnDir, names: &[&str]) -> Result<()> {
    for name in names {
        let path = root.join(name);
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(io("inspect", &path)(error)),
        };
        if meta.is_symlink() {
            return Err(link_error(&path));
        }
        check_owner(&path, meta.uid())?;
        if meta.is_dir() {
            check_private(&path, meta.mode())?;
        } else if !meta.is_file() {
            return Err(kind_error(&path));
        } else if !opened.is_private() && is_writable_by_others(&path, meta.mode(), meta.gid()) {
            return Err(shared_error(&path));
        }
    }
    Ok(())
}

/// Check the directories above `path`, as far as they exist. Links among them are followed, and
/// must belong to this user or to root.
pub(crate) fn check_above(path: &Path) -> Result<()> {
    walk_above(path, &mut |_| Ok(Walk::Stop))
}

/// Check the directories above `path`. Create those that do not exist, private to this user.
pub(super) fn make_above(path: &Path) -> Result<()> {
    walk_above(path, &mut |missing| {
        match rustix::fs::mkdir(missing, Mode::RWXU) {
            // Another process may have been faster, and may be of another user: it is checked next.
            Ok(()) | Err(Errno::EXIST) => Ok(Walk::Again),
            Err(error) => Err(io("create", missing)(error.into())),
        }
    })
}

/// How to continue at a directory that does not exist.
enum Walk {
    Stop,
    Again,
}

fn walk_above(path: &Path, at_missing: &mut dyn FnMut(&Path) -> Result<Walk>) -> Result<()> {
    let mut rest: Vec<OsString> = parts(path.parent().unwrap_or(path));
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = if name == "/" {
            PathBuf::from("/")
        } else {
            here.join(&name)
        };
        let meta = match next.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => match at_missing(&next)? {
                Walk::Stop => return Ok(()),
                Walk::Again => {
                    rest.push(name);
                    continue;
                }
            },
            Err(error) => return Err(io("inspect", &next)(error)),
        };
        if !meta.is_symlink() {
            check_ancestor(&next, &meta)?;
            here = next;
            continue;
        }
        check_ancestor_owner(&next, meta.uid())?;
        links += 1;
        if links > MAX_LINKS {
            return Err(io("inspect", &next)(Errno::LOOP.into()));
        }
        let target = next.read_link().map_err(io("read", &next))?;
        rest.extend(parts(&target));
    }
    Ok(())
}

/// Return the components of a path, the last first, without `.`.
fn parts(path: &Path) -> Vec<OsString> {
    let all = path.components().rev();
    all.filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

fn check_ancestor(path: &Path, meta: &Metadata) -> Result<()> {
    if !meta.is_dir() {
        return Err(io("use", path)(ErrorKind::NotADirectory.into()));
    }
    check_ancestor_owner(path, meta.uid())?;
    let is_shared = is_writable_by_others(path, meta.mode(), meta.gid());
    if is_shared && meta.mode() & STICKY_BIT == 0 {
        let shown = path.display();
        return Err(refusal(
            path,
            "is writable by other users, who could replace the home below it",
            format!("run 'chmod go-w {shown}', or choose another home with --home or PH_HOME"),
        ));
    }
    Ok(())
}

fn check_ancestor_owner(path: &Path, uid: u32) -> Result<()> {
    match is_this_user_or_root(uid) {
        true => Ok(()),
        false => Err(refusal(
            path,
            format!("belongs to another user (uid {uid}), who could replace the home below it"),
            OWN_HOME_HINT,
        )),
    }
}

/// Return whether a file with this owner can only be changed by this user or by root.
pub(crate) fn is_this_user_or_root(uid: u32) -> bool {
    uid == this_user() || uid == 0 || Some(uid) == root_uid()
}

/// Return whether only this user can read and write a file.
pub(super) fn is_secret(meta: &Metadata) -> bool {
    meta.uid() == this_user() && meta.mode() & OPEN_TO_OTHERS == 0
}

/// Return whether a user other than this one and root can write to a file or directory that is not
/// a link. If it has an access control list, the mode's group bits are the list's mask: they say
/// that a user or group in the list may write, not which one.
fn is_writable_by_others(path: &Path, mode: u32, gid: u32) -> bool {
    mode & WRITABLE_BY_ALL != 0
        || (mode & WRITABLE_BY_GROUP != 0 && (has_access_list(path) || !is_group_of_one(gid)))
}

#[cfg(target_os = "linux")]
fn has_access_list(path: &Path) -> bool {
    let size = rustix::fs::lgetxattr(path, "system.posix_acl_access", &mut [0_u8; 0]);
    !matches!(size, Err(Errno::NODATA | Errno::NOTSUP))
}

/// Other systems have no POSIX access control lists, or do not show them in the mode.
#[cfg(not(target_os = "linux"))]
fn has_access_list(_: &Path) -> bool {
    false
}

fn check_owner(path: &Path, uid: u32) -> Result<()> {
    match uid == this_user() {
        true => Ok(()),
        false => {
            let why = format!("belongs to another user (uid {uid})");
            Err(refusal(path, why, OWN_HOME_HINT))
        }
    }
}

fn check_private(path: &Path, mode: u32) -> Result<()> {
    match mode & OPEN_TO_OTHERS {
        0 => Ok(()),
        _ => Err(refusal(
            path,
            format!("is open to other users (mode {:03o})", mode & 0o777),
            format!("make it private: run 'chmod 700 {}'", path.display()),
        )),
    }
}

fn shared_error(path: &Path) -> Error {
    let hint = format!("run 'chmod go-w {}'", path.display());
    refusal(path, "is writable by other users", hint)
}

fn kind_error(path: &Path) -> Error {
    refusal(
        path,
        "is neither a regular file nor a directory",
        "remove it, or choose another home with --home or PH_HOME",
    )
}

fn link_error(path: &Path) -> Error {
    refusal(
        path,
        "is a symbolic link, which a home must not be or contain",
        "replace the link with the directory or file that it points to, or choose another home with \
         --home or PH_HOME",
    )
}

/// Return the error for a path that is not safe.
pub(super) fn refusal(path: &Path, why: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Unsafe {
        path: path.to_owned(),
        why: why.into(),
        hint: hint.into(),
    }
}

fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[allow(
    clippy::useless_conversion,
    reason = "the type differs between systems"
)]
fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode.into()
}

/// Return the uid that root's files show in this process's user namespace. In an agent's sandbox
/// root may be unmapped; its files then show the overflow uid, as do the files of every other
/// unmapped user.
fn root_uid() -> Option<u32> {
    // The kernel gives this directory to root, in every namespace.
    let proc = Path::new("/proc").metadata();
    proc.ok().map(|meta| meta.uid())
}

/// Return whether this user is the only member of a group, by the user database in `/etc`. Some
/// systems give each user such a group, and make all their directories writable by it.
fn is_group_of_one(gid: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (groups, users) = (read("/etc/group"), read("/etc/passwd"));
    is_only_member(&groups, &users, gid, this_user())
}

fn is_only_member(groups: &str, users: &str, gid: u32, uid: u32) -> bool {
    let (gid, uid) = (gid.to_string(), uid.to_string());
    let fields = |row: &str| row.split(':').map(str::to_owned).collect::<Vec<_>>();
    let users: Vec<_> = users.lines().map(fields).filter(|f| f.len() > 3).collect();
    let groups: Vec<_> = groups.lines().map(fields).filter(|f| f.len() > 3).collect();
    let is_me = |name: &str| users.iter().any(|user| user[0] == name && user[2] == uid);
    let Some(group) = groups.iter().find(|group| group[2] == gid) else {
        return false;
    };
    let members = group[3].split(',').filter(|name| !name.is_empty());
    let primary = users.iter().filter(|user| user[3] == gid);
    let all: Vec<bool> = members
        .map(is_me)
        .chain(primary.map(|user| user[2] == uid))
        .collect();
    !all.is_empty() && all.iter().all(|is_mine| *is_mine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_has_no_other_member() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n\
                     bob:x:1001:1001::/home/bob:/bin/sh\ncat:x:1002:1001::/home/cat:/bin/sh\n";
        let groups =
            "root:x:0:\nann:x:1000:\nbob:x:1001:\nteam:x:50:ann,bob\nown:x:51:ann\nusers:x:100:\n";
        let check = |gid, uid, want| {
            assert_eq!(is_only_member(groups, users, gid, uid), want, "{gid} {uid}");
        };
        check(1000, 1000, true);
        check(1000, 1001, false);
        check(1001, 1001, false);
        check(50, 1000, false);
        check(51, 1000, true);
        check(99, 1000, false);
        check(100, 1000, false);
        check(0, 0, true);
    }
}
