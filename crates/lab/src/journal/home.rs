//! Temporary home directories.

use posthaste_store::{Home, Journal, Patience};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Path of the memory file system on Linux.
const MEMORY_FILE_SYSTEM: &str = "/dev/shm";
/// Minimum free space of the memory file system: in a container, tests that run side by side may
/// fill it.
const MIN_FREE_BYTES: u64 = 256 << 20;

#[derive(Debug)]
pub struct TempHome {
    dir: TempDir,
}

impl TempHome {
    /// Create the path of a home that does not exist yet. It is in memory if possible, because a
    /// synced commit takes milliseconds on a disk, and tests kill processes instead of cutting the
    /// power.
    #[allow(
        clippy::new_without_default,
        reason = "making a directory is no default"
    )]
    pub fn new() -> Self {
        let memory = Path::new(MEMORY_FILE_SYSTEM);
        let room = rustix::fs::statvfs(memory).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
        if room < MIN_FREE_BYTES {
            return Self::on_disk();
        }
        directory()
            .tempdir_in(memory)
            .map_or_else(|_| Self::on_disk(), |dir| Self { dir })
    }

    /// Like [`Self::new`], on a disk with real syncs.
    pub fn on_disk() -> Self {
        let dir = directory()
            .tempdir()
            .expect("the temporary directory can be written");
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Create the home's directory, empty and private, for tests that put files into it.
    pub fn create(&self) {
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(self.path()).expect("a new directory");
    }

    /// Return a directory for the test's own files.
    pub fn beside(&self) -> &Path {
        self.dir.path()
    }

    pub fn home(&self) -> Home {
        Home::open(self.path(), None).expect("a temporary directory is private")
    }

    pub fn journal(&self) -> Journal {
        Journal::open(self.home(), Patience::DEFAULT).expect("a new home can be opened")
    }
}

fn directory() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("ph-lab-");
    builder
}
