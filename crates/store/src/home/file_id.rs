//! The identity of a file: whether a path still leads to the file that a process has open or knows.
//!
//! Must never open a journal: closing it would release the locks that SQLite has on it.

use crate::error::{Error, Result, io};
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Identity of a file, unique while the file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
        }
    }

    /// Return the identity of the file at `path`.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        match path.metadata() {
            Ok(meta) => Ok(Self::of(&meta)),
            Err(error) if is_absent(&error) => Err(Error::Displaced(path.to_owned())),
            Err(error) => Err(io("inspect", path)(error)),
        }
    }

    /// Fail if `path` leads to another file, or to none.
    pub(crate) fn expect_at(self, path: &Path) -> Result<()> {
        match Self::at(path)? == self {
            true => Ok(()),
            false => Err(Error::Displaced(path.to_owned())),
        }
    }
}

/// A file at a path, where another file may replace it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    path: PathBuf,
    id: FileId,
}

impl KnownFile {
    /// Return the file at `path`, which may be a link itself.
    pub fn at(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        Some(Self {
            path: path.to_owned(),
            id: FileId::of(&meta),
        })
    }

    pub fn is(&self, file: &File) -> bool {
        file.metadata()
            .is_ok_and(|meta| FileId::of(&meta) == self.id)
    }

    /// Return whether the file is still at its path.
    pub fn is_in_place(&self) -> bool {
        Self::at(&self.path).as_ref() == Some(self)
    }
}

/// Return whether a path does not exist, maybe because a parent is missing or is not a directory.
pub(crate) fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
