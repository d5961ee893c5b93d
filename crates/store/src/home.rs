//! A home: the directory that one journal and all its files live in.
//!
//! Knows the layout and creates it, private to its user. Which directory is the home is not
//! decided here.

use crate::error::{Result, io};
use crate::host::HostHold;
use crate::mount;
use posthaste_core::AgentName;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub const PROJECT_DIR: &str = ".posthaste";

/// What of a project's home belongs into nobody's repository: everything but its settings.
const GITIGNORE: &str = "*\n!.gitignore\n!config.toml\n";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    pub fn lock(&self) -> PathBuf {
        self.root.join("journal.lock")
    }

    pub fn host(&self) -> PathBuf {
        self.root.join("host")
    }

    pub fn search(&self) -> PathBuf {
        self.root.join("search-1.db")
    }

    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    pub fn messages(&self, agent: &AgentName) -> PathBuf {
        self.root.join("messages").join(agent.as_str())
    }

    /// What rings for every fact.
    pub fn bell(&self) -> PathBuf {
        self.root.join("bell").join("all")
    }

    /// What rings for one agent's facts.
    pub fn bell_of(&self, agent: &AgentName) -> PathBuf {
        self.root.join("bell").join("agents").join(agent.as_str())
    }

    /// Lock of the hooks that print an agent's mail.
    pub fn inject_lock(&self, agent: &AgentName) -> PathBuf {
        self.root.join("inject").join(format!("{agent}.lock"))
    }

    /// Whether anything was ever stored here.
    pub fn has_journal(&self) -> Result<bool> {
        let path = self.journal();
        path.try_exists().map_err(io("look at", &path))
    }

    /// Makes the home's directories, if they are not there, and claims it for this machine.
    pub(crate) fn prepare(&self) -> Result<HostHold> {
        mount::refuse_shared(&self.root)?;
        let bells = self.root.join("bell");
        let dirs = [bells.join("agents"), bells, self.root.join("messages")];
        let are_there = dirs
            .iter()
            .map(|dir| is_own_dir(dir))
            .collect::<Result<Vec<_>>>()?;
        if are_there.contains(&false) {
            self.create(&dirs)?;
        }
        HostHold::claim(self)
    }

    fn create(&self, dirs: &[PathBuf]) -> Result<()> {
        let parent = self.root.ancestors().find(|path| path.exists());
        let parent = parent.unwrap_or(&self.root).to_owned();
        for dir in dirs {
            private_dir(dir)?;
        }
        // Somebody may have made the directory by hand; what is to come is nobody else's to read.
        let private = Permissions::from_mode(0o700);
        std::fs::set_permissions(&self.root, private).map_err(io("make private", &self.root))?;
        if self
            .root
            .file_name()
            .is_some_and(|name| name == PROJECT_DIR)
        {
            let path = self.root.join(".gitignore");
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => file
                    .write_all(GITIGNORE.as_bytes())
                    .map_err(io("write", &path))?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io("create", &path)(error)),
            }
        }
        // The names of new directories must outlive a power cut, as their content does.
        for dir in self
            .root
            .ancestors()
            .take_while(|dir| dir.starts_with(&parent))
        {
            sync_dir(dir)?;
        }
        Ok(())
    }
}

/// Whether a directory is there. Something else under its name, or a link that leads elsewhere,
/// is refused: a home may have come with somebody's files.
pub(crate) fn is_own_dir(path: &Path) -> Result<bool> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(true),
        Ok(_) => Err(io("use", path)(ErrorKind::NotADirectory.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io("look at", path)(error)),
    }
}

pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(io("sync", path))
}

/// Creates a directory and its parents for this user alone; one that is there is left as it is.
pub(crate) fn private_dir(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(io("create", path))
}

/// How every file of a home is opened: for this user alone, and never through a link.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Opens a file that this user alone may read, creating it if it is not there.
pub(crate) fn private_file(path: &Path) -> Result<File> {
    private()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(io("open", path))
}
