//! The file behind a path: whether what a process has open is still what lies there.
//!
//! Looks by name alone. It must never open a journal: to close it again would give up the locks
//! that SQLite has on it.

use crate::error::{Error, Result, io};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file it is, whatever its name. No other can be the same while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file that lies there now.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        match path.metadata() {
            Ok(meta) => Ok(Self {
                device: meta.dev(),
                inode: meta.ino(),
            }),
            Err(error) if is_gone(error.kind()) => Err(Error::Displaced(path.to_owned())),
            Err(error) => Err(io("look at", path)(error)),
        }
    }

    /// Refuses where another file lies there by now, or none.
    pub(crate) fn expect_at(self, path: &Path) -> Result<()> {
        if Self::at(path)? == self {
            Ok(())
        } else {
            Err(Error::Displaced(path.to_owned()))
        }
    }
}

fn is_gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
