//! The identity of a file: whether a path still leads to the file that a process has open.
//!
//! Must never open a journal: closing it would release the locks that SQLite has on it.

use crate::error::{Error, Result, io};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity of a file, unique while the file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Return the identity of the file at `path`.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        match path.metadata() {
            Ok(meta) => Ok(Self {
                device: meta.dev(),
                inode: meta.ino(),
            }),
            Err(error) if is_gone(error.kind()) => Err(Error::Displaced(path.to_owned())),
            Err(error) => Err(io("inspect", path)(error)),
        }
    }

    /// Fail if `path` leads to another file, or to none.
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
