//! A home that is gone when its test is.

use posthaste_store::{Home, Journal, Patience};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Debug)]
pub struct TempHome {
    dir: TempDir,
}

impl TempHome {
    /// A home that does not exist yet, in a temporary directory that does.
    #[allow(
        clippy::new_without_default,
        reason = "making a directory is no default"
    )]
    pub fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("ph-lab-")
            .tempdir()
            .expect("the temporary directory can be written");
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Where a test can put files of its own.
    pub fn beside(&self) -> &Path {
        self.dir.path()
    }

    pub fn home(&self) -> Home {
        Home::at(self.path())
    }

    pub fn journal(&self) -> Journal {
        Journal::open(self.home(), Patience::DEFAULT).expect("a new home can be opened")
    }
}
