//! Homes: directories with a journal and all its files.
//!
//! Owns the layout, and creates it private to its user. Checks every home that is opened, see
//! `guard` and `origin`; never chooses which directory is the home.

pub mod data_file;
pub(crate) mod file_id;
pub mod find;
pub mod guard;
pub(crate) mod host;
mod mount;
mod origin;

pub use origin::Discovered;

use crate::error::{Result, io};
use posthaste_core::AgentName;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub const PROJECT_DIR: &str = ".posthaste";

/// Content of `.posthaste/.gitignore`: everything but the settings is ignored.
const PROJECT_GITIGNORE: &str = "*\n!.gitignore\n!config.toml\n";
/// Content of the `.gitignore` in the home itself, because a repository may have its own in
/// `.posthaste`.
const HOME_GITIGNORE: &str = "*\n";

/// Parts of a home that are checked when it is opened.
const HOME_PARTS: [&str; 17] = [
    ".gitignore",
    "bell",
    "config.toml",
    "harness",
    "host",
    "inject",
    "journal.db",
    "journal.db-shm",
    "journal.db-wal",
    "journal.lock",
    "messages",
    "search-1.db",
    "search-1.db-shm",
    "search-1.db-wal",
    "search-1.lock",
    "sessions",
    "sockets",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    /// The person's state directory, if there is one.
    state: Option<PathBuf>,
    /// Whether the directory existed, and was checked, when the home was opened.
    existed: bool,
}

impl Home {
    /// Open a home that the person has named, or the default one. The directory need not exist; if
    /// it does, it must be safe to use.
    pub fn open(path: impl Into<PathBuf>, state: Option<&Path>) -> Result<Self> {
        let path = plain_path(&path.into())?;
        if !origin::is_project_dir(&path) {
            return Self::at(path, state);
        }
        // The directory itself must not be a link; the rest is checked with its home.
        guard::open_own(&path)?;
        Self::at(Self::named_root(path, state)?, state)
    }

    /// Open the home with this root.
    fn at(root: PathBuf, state: Option<&Path>) -> Result<Self> {
        let mut home = Self {
            root,
            state: state.map(Path::to_owned),
            existed: false,
        };
        home.existed = home.check()?;
        Ok(home)
    }

    /// Check the home, and return whether it exists.
    fn check(&self) -> Result<bool> {
        guard::check_above(&self.root)?;
        let Some(opened) = guard::open_own(&self.root)? else {
            return Ok(false);
        };
        // Before it has a journal, others may read the directory. It becomes private when the home
        // is created in it.
        match self.has_journal()? {
            true => opened.check_private(&self.root)?,
            false => opened.check_unshared(&self.root)?,
        }
        guard::check_parts(&self.root, &opened, &HOME_PARTS)?;
        Ok(true)
    }

    /// Return whether the home's files may be read. A home that did not exist when it was opened is
    /// checked again, because another user may have created its directory since.
    pub fn is_readable(&self) -> Result<bool> {
        Ok(self.existed || self.check()?)
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

    /// Path of the settings. Those of a project are beside its home.
    pub fn config(&self) -> PathBuf {
        self.project_dir().unwrap_or(&self.root).join("config.toml")
    }

    pub fn messages(&self, agent: &AgentName) -> PathBuf {
        self.root.join("messages").join(agent.as_str())
    }

    /// Path of the bell that rings for every fact.
    pub fn bell(&self) -> PathBuf {
        self.root.join("bell").join("all")
    }

    /// Path of the bell that rings for one agent's facts.
    pub fn bell_of(&self, agent: &AgentName) -> PathBuf {
        self.root.join("bell").join("agents").join(agent.as_str())
    }

    /// Path of the lock of the hooks that print an agent's mail.
    pub fn inject_lock(&self, agent: &AgentName) -> PathBuf {
        self.root.join("inject").join(format!("{agent}.lock"))
    }

    /// Return whether the home has a journal.
    pub fn has_journal(&self) -> Result<bool> {
        let path = self.journal();
        path.try_exists().map_err(io("inspect", &path))
    }

    /// Create the home's directories, if they do not exist.
    pub fn prepare(&self) -> Result<()> {
        mount::reject_shared(&self.root)?;
        let bells = self.root.join("bell");
        let dirs = [bells.join("agents"), self.root.join("messages")];
        for dir in &dirs {
            if guard::open_own(dir)?.is_none() {
                return self.create(&dirs);
            }
        }
        Ok(())
    }

    fn create(&self, dirs: &[PathBuf]) -> Result<()> {
        let parent = self.root.ancestors().find(|path| path.exists());
        let parent = parent.unwrap_or(&self.root).to_owned();
        guard::make_above(&self.root)?;
        match rustix::fs::mkdir(&self.root, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io("create", &self.root)(error.into())),
        }
        // The person may have created the directory by hand.
        let opened = guard::open_own(&self.root)?;
        let opened = opened.ok_or_else(|| io("open", &self.root)(ErrorKind::NotFound.into()))?;
        opened.check_unshared(&self.root)?;
        opened.make_private(&self.root)?;
        self.record()?;
        for dir in dirs {
            guard::make_dirs(&self.root, dir)?;
        }
        if let Some(dir) = self.project_dir() {
            write_if_absent(&dir.join(".gitignore"), PROJECT_GITIGNORE)?;
            write_if_absent(&self.root.join(".gitignore"), HOME_GITIGNORE)?;
        }
        // The names of new directories must survive a power cut, like their content.
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

fn write_if_absent(path: &Path, text: &str) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map_err(io("write", path)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io("create", path)(error)),
    }
}

/// Return an absolute path without a slash at its end, because a slash would follow a link.
fn plain_path(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(io("resolve", path))?;
    Ok(path.components().collect())
}

pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(io("sync", path))
}

/// Return the options for every file of a home: private to this user, never through a link, and
/// without waiting for the other end of a pipe.
pub fn private() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

/// Write a file that is private to this user, creating it if it does not exist.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = private();
    let file = options.write(true).create(true).truncate(true).open(path);
    file?.write_all(bytes)
}

/// Open a file that is private to this user, creating it if it does not exist.
pub(crate) fn private_file(path: &Path) -> Result<File> {
    private()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(io("open", path))
}
