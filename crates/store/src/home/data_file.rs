//! Reads small untrusted files: regular files up to a limit, never a pipe or a device.

use crate::home::guard;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Open a regular file for reading, with additional `flags`.
pub fn open(path: &Path, flags: OFlags) -> Result<File> {
    // Opening a pipe must not block.
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::other("it is not a regular file")),
    }
}

/// Read a file of at most `max_bytes`, opened with additional `flags`.
pub fn read(path: &Path, flags: OFlags, max_bytes: u64) -> Result<String> {
    read_text(open(path, flags)?, max_bytes)
}

/// Open a regular file of a home for reading: not a link, and written by this user or by root.
pub(crate) fn open_own(path: &Path) -> Result<File> {
    let file = open(path, OFlags::NOFOLLOW)?;
    let uid = file.metadata()?.uid();
    match guard::is_this_user_or_root(uid) {
        true => Ok(file),
        false => Err(Error::new(
            ErrorKind::PermissionDenied,
            format!("it belongs to another user (uid {uid})"),
        )),
    }
}

/// Read a file of a home, of at most `max_bytes`.
pub fn read_own(path: &Path, max_bytes: u64) -> Result<String> {
    read_text(open_own(path)?, max_bytes)
}

fn read_text(file: File, max_bytes: u64) -> Result<String> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let max_kib = max_bytes >> 10;
        return Err(Error::other(format!("it has more than {max_kib} KiB")));
    }
    String::from_utf8(bytes).map_err(|_| Error::other("it is not UTF-8"))
}
