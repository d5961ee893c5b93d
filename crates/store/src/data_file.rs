//! Reads small files that may come from anybody: only regular files, never a pipe or a device, and not
//! more than a limit.

use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{Error, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Read a file of at most `max_bytes`. `flags` are added to those that it is opened with.
pub fn read(path: &Path, flags: OFlags, max_bytes: u64) -> Result<String> {
    // A pipe must not be waited for.
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Error::other("it is no file"));
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
