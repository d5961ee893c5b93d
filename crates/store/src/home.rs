//! A home: the directory that one journal and all its files live in.
//!
//! Knows the layout and creates it, private to its user. Which directory is the home is not decided
//! here, but every home is checked when it is opened; see `guard` and `origin`.

pub mod find;
pub mod guard;
mod origin;

pub use origin::Discovered;

use crate::error::{Result, io};
use crate::mount;
use posthaste_core::AgentName;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub const PROJECT_DIR: &str = ".posthaste";

/// What of a project's home belongs into nobody's repository: everything but its settings.
const GITIGNORE: &str = "*\n!.gitignore\n!config.toml\n";
/// A repository may bring a `.gitignore` of its own into `.posthaste`; this one is inside the home.
const HOME_GITIGNORE: &str = "*\n";

/// Parts of a home that are checked when it is opened.
const PARTS: [&str; 17] = [
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
}

impl Home {
    /// Open a home that the person has named, or the default one. The directory need not exist; if it
    /// does, it must be safe to use.
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
        let home = Self {
            root,
            state: state.map(Path::to_owned),
        };
        guard::check_above(&home.root)?;
        if let Some(opened) = guard::open_own(&home.root)? {
            home.check_permissions(opened.mode)?;
            guard::check_parts(&home.root, opened.mode, &PARTS)?;
        }
        Ok(home)
    }

    /// Refuse a directory that has a journal and is readable by other users, or that is not empty and is
    /// writable by them. Any other directory becomes private when the home is created in it.
    fn check_permissions(&self, mode: u32) -> Result<()> {
        let is_suspect = match mode {
            mode if mode & guard::WRITABLE_BY_OTHERS != 0 => {
                let mut entries = self.root.read_dir().map_err(io("list", &self.root))?;
                entries.next().is_some()
            }
            mode if mode & guard::OPEN_TO_OTHERS != 0 => self.has_journal()?,
            _ => false,
        };
        match is_suspect {
            true => guard::check_private(&self.root, mode),
            false => Ok(()),
        }
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

    /// The settings; those of a project are beside its home.
    pub fn config(&self) -> PathBuf {
        self.project_dir().unwrap_or(&self.root).join("config.toml")
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

    /// Create the home's directories, if they do not exist.
    pub fn prepare(&self) -> Result<()> {
        mount::refuse_shared(&self.root)?;
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
        private_dir(&self.root)?;
        // The person may have created the directory by hand.
        if let Some(opened) = guard::open_own(&self.root)? {
            opened.make_private(&self.root)?;
        }
        self.record()?;
        for dir in dirs {
            guard::make_dirs(&self.root, dir)?;
        }
        if let Some(dir) = self.project_dir() {
            write_if_absent(&dir.join(".gitignore"), GITIGNORE)?;
            write_if_absent(&self.root.join(".gitignore"), HOME_GITIGNORE)?;
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

fn write_if_absent(path: &Path, text: &str) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map_err(io("write", path)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io("create", path)(error)),
    }
}

/// Return an absolute path without a slash at its end: with one, a link would be followed.
fn plain_path(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(io("resolve", path))?;
    Ok(path.components().collect())
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
