//! A home that is gone when its test is.

use posthaste_store::{Home, Journal, Patience};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Memory that looks like a disk, where the machine has it.
const MEMORY: &str = "/dev/shm";
/// In a container it may be too small for tests that run side by side.
const ENOUGH: u64 = 256 << 20;

#[derive(Debug)]
pub struct TempHome {
    dir: TempDir,
}

impl TempHome {
    /// A home that does not exist yet. It is in memory if it can be: tests kill processes and
    /// not the power, and a disk takes milliseconds for every synced commit.
    #[allow(
        clippy::new_without_default,
        reason = "making a directory is no default"
    )]
    pub fn new() -> Self {
        let memory = Path::new(MEMORY);
        let room = rustix::fs::statvfs(memory).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
        if room < ENOUGH {
            return Self::on_disk();
        }
        directory()
            .tempdir_in(memory)
            .map_or_else(|_| Self::on_disk(), |dir| Self { dir })
    }

    /// The same on a real file system, with real syncs.
    pub fn on_disk() -> Self {
        let dir = directory()
            .tempdir()
            .expect("the temporary directory can be written");
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Create the home's directory, empty and private, as a test needs that puts files into it.
    pub fn create(&self) {
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(self.path()).expect("a new directory");
    }

    /// Where a test can put files of its own.
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
