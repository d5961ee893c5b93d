//! Reads small untrusted files: regular files up to a limit, never a pipe or a device.

use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{Error, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Read a file of at most `max_bytes`, opened with additional `flags`.
pub fn read(path: &Path, flags: OFlags, max_bytes: u64) -> Result<String> {
    // Opening a pipe must not block.
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(max_bytes + 1).read_to_string(&mut text)?;
    match text.len() as u64 > max_bytes {
        true => Err(Error::other(format!(
            "it has more than {} KiB",
            max_bytes >> 10
        ))),
        false => Ok(text),
    }
}
