//! Where a session's files are: its lock, its record, its log, its recording and its socket.
//!
//! The lock is held for as long as the session lives and is the only proof that it does; the
//! record says what to connect to and how to start it again, and is believed only beside a lock
//! that is held.

use super::process;
use crate::home::guard::{is_private_dir, make_dirs};
use crate::report::{Report, Result};
use crate::{Error, Home};
use posthaste_core::build::Settings;
use posthaste_core::{AgentName, Timestamp};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The longest path that a socket can have, on any system that we know.
pub const MAX_SOCKET_PATH: usize = 103;

/// How long those who look whether a name is taken may keep it from who takes it.
const LOOKERS: Duration = Duration::from_secs(5);

/// The files of one agent's sessions.
#[derive(Debug, Clone)]
pub struct Place {
    home: PathBuf,
    name: AgentName,
}

/// What a session is started with; kept so that it can be started again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    pub name: AgentName,
    pub command: Vec<String>,
    pub cwd: PathBuf,
    pub harness: String,
    /// What `--env` said, in order.
    pub env: Vec<(String, String)>,
    /// Further paths to listen on.
    pub sockets: Vec<PathBuf>,
    pub cols: u16,
    pub rows: u16,
    /// What a loop is told to do; then our own runner is the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Box<Settings>>,
}

impl Launch {
    pub fn is_loop(&self) -> bool {
        self.build.is_some()
    }
}

/// The record of an agent's latest session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub run: Uuid,
    pub pid: u32,
    /// When the kernel started it: tells a reused pid apart. Zero where it cannot be known.
    #[serde(default)]
    pub pid_started: u64,
    pub child_pid: u32,
    /// The same of the child.
    pub child_started: u64,
    pub socket: PathBuf,
    pub started_at: Timestamp,
    pub launch: Launch,
}

impl Place {
    pub fn of(home: &Home, name: &AgentName) -> Self {
        Self {
            home: home.path().to_owned(),
            name: name.clone(),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.home.join("sessions").join(self.name.as_str())
    }

    pub fn lock_file(&self) -> PathBuf {
        self.dir().join("lock")
    }

    fn record_file(&self) -> PathBuf {
        self.dir().join("run.json")
    }

    pub fn log_file(&self) -> PathBuf {
        self.dir().join("log")
    }

    /// What the session gives its program.
    pub fn layer(&self) -> PathBuf {
        self.dir().join("layer")
    }

    /// Open the log for appending.
    pub fn log(&self) -> Result<File> {
        self.open(private_file().append(true).create(true), &self.log_file())
    }

    /// Makes and opens a file in the directory, which a start that failed may remove just then.
    fn open(&self, options: &OpenOptions, path: &Path) -> Result<File> {
        let deadline = Instant::now() + LOOKERS;
        loop {
            match options.open(path) {
                Ok(file) => return Ok(file),
                Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < deadline => {
                    self.prepare()?;
                }
                Err(error) => return Err(cannot("open", path, &error)),
            }
        }
    }

    /// Makes the directory, for this user alone.
    pub fn prepare(&self) -> Result<()> {
        let dir = self.dir();
        let deadline = Instant::now() + LOOKERS;
        loop {
            match make_dirs(&self.home, &dir) {
                // A failed start may have removed the directory in the meantime.
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && Instant::now() < deadline => {}
                made => return Ok(made?),
            }
        }
    }

    /// Takes the name for as long as the answer is kept; `None` where a live session has it.
    pub fn claim(&self) -> Result<Option<Claim>> {
        let path = self.lock_file();
        let deadline = Instant::now() + LOOKERS;
        loop {
            let mut options = private_file();
            let file = self.open(options.read(true).write(true).create(true), &path)?;
            let taken = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(error)) => return Err(cannot("lock", &path, &error)),
            };
            if taken {
                match Seal::of(&path).filter(|lock| lock.is(&file)) {
                    Some(lock) => {
                        return Ok(Some(Claim {
                            place: self.clone(),
                            lock,
                            _file: file,
                        }));
                    }
                    // Who held it has just removed it: it locks nobody out any more.
                    None if Instant::now() < deadline => continue,
                    None => return Err(cannot("lock", &path, &ErrorKind::TimedOut.into())),
                }
            }
            // Who only looks takes it too, for a moment; but shared, which no session does.
            match file.try_lock_shared() {
                Ok(()) if Instant::now() < deadline => {}
                Ok(()) => return Err(cannot("lock", &path, &ErrorKind::TimedOut.into())),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(cannot("lock", &path, &error)),
            }
            drop(file);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether a session holds the name now.
    pub fn is_held(&self) -> Result<bool> {
        let path = self.lock_file();
        let file = match private_file().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(cannot("open", &path, &error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(cannot("lock", &path, &error)),
        }
    }

    /// The record of the latest session, whether or not it lives.
    pub fn record(&self) -> Option<Record> {
        let mut text = String::new();
        let mut file = private_file().read(true).open(self.record_file()).ok()?;
        std::io::Read::read_to_string(&mut file, &mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub fn write_record(&self, record: &Record) -> Result<()> {
        let path = self.record_file();
        let fresh = self.dir().join("run.json.new");
        let text = serde_json::to_vec(record)
            .map_err(|error| Report::storage(format!("cannot write the record: {error}")))?;
        let write = || -> std::io::Result<()> {
            let mut options = private_file();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .open(&fresh)?;
            file.write_all(&text)?;
            std::fs::rename(&fresh, &path)
        };
        write().map_err(|error| cannot("write", &path, &error))
    }

    /// Where this session listens. A path too long for the OS gets a short stand-in.
    pub fn socket(&self) -> Result<PathBuf> {
        let key = blake3_hex(self.home.as_os_str().as_bytes());
        let short = format!("{}.sock", self.name);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let (top, base) = match runtime.filter(|dir| dir.is_absolute() && is_private_dir(dir)) {
            Some(runtime) => {
                let base = runtime.join("posthaste").join(&key);
                (runtime, base)
            }
            None => (self.home.clone(), self.home.join("sockets")),
        };
        let path = base.join(&short);
        if path.as_os_str().len() <= MAX_SOCKET_PATH {
            make_dirs(&top, &base)?;
            return Ok(path);
        }
        let uid = rustix::process::geteuid().as_raw();
        let base = std::env::temp_dir().join(format!("posthaste-{uid}"));
        let base = if base.as_os_str().len() > 40 {
            PathBuf::from(format!("/tmp/posthaste-{uid}"))
        } else {
            base
        };
        make_dirs(base.parent().unwrap_or(&base), &base).map_err(|error| {
            Report::from(error).hint("set XDG_RUNTIME_DIR to a directory of your own")
        })?;
        let both = blake3_hex(format!("{key}/{}", self.name).as_bytes());
        Ok(base.join(format!("{both}.sock")))
    }
}

/// Which file stands at a path. Another may have taken its place since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    path: PathBuf,
    inode: (u64, u64),
}

impl Seal {
    pub fn of(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        Some(Self {
            path: path.to_owned(),
            inode: (meta.dev(), meta.ino()),
        })
    }

    pub fn is(&self, file: &File) -> bool {
        file.metadata()
            .is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode)
    }

    /// Whether it is still there.
    pub fn is_whole(&self) -> bool {
        Self::of(&self.path).as_ref() == Some(self)
    }
}

/// A name that is taken: the lock is held for as long as this is kept.
#[derive(Debug)]
pub struct Claim {
    place: Place,
    pub lock: Seal,
    _file: File,
}

impl Drop for Claim {
    /// A start that failed leaves no trace of a name that never ran. Who waits for the lock
    /// meanwhile sees that it is gone, and makes a new one.
    fn drop(&mut self) {
        let dir = self.place.dir();
        let Ok(entries) = std::fs::read_dir(&dir) else {
            return;
        };
        let ours = ["lock", "log"];
        let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| ours.iter().any(|ours| entry.file_name() == *ours))
        };
        if self.lock.is_whole() && entries.into_iter().all(is_ours) {
            let _ = std::fs::remove_file(self.place.log_file());
            let _ = std::fs::remove_file(self.place.lock_file());
            let _ = std::fs::remove_dir(dir);
        }
    }
}

/// Which sessions and children of theirs there are: a file a pid, with the agent's name in it.
fn children(home: &Path) -> PathBuf {
    home.join("sessions").join(".children")
}

/// The agent in whose session this process runs, by its ancestors.
pub fn agent_here(home: &Home) -> Option<AgentName> {
    // Where no session ever ran there is nothing to look for.
    children(home.path()).symlink_metadata().ok()?;
    agent_in(home, &process::ancestry(std::process::id()))
}

/// The agent in whose session a process runs, by its ancestors and their starts.
pub fn agent_in(home: &Home, line: &[(u32, u64)]) -> Option<AgentName> {
    line.iter()
        .find_map(|(pid, started)| agent_noted(home, *pid, *started))
}

/// The same by the process session that it is in: where descendants are, unless they left it.
/// Costs next to nothing.
pub fn agent_of_session(home: &Home, leader: u32) -> Option<AgentName> {
    let note = children(home.path()).join(leader.to_string());
    note.symlink_metadata().ok()?;
    agent_noted(home, leader, process::started(leader)?)
}

fn agent_noted(home: &Home, pid: u32, started: u64) -> Option<AgentName> {
    let note = std::fs::read_to_string(children(home.path()).join(pid.to_string())).ok()?;
    let (name, began) = note.split_once(' ')?;
    let is_it = began.parse::<u64>().ok()? == started;
    is_it.then(|| AgentName::parse(name).ok()).flatten()
}

/// The processes that are said to be this agent's, each with its start.
pub fn noted(home: &Home, name: &AgentName) -> Vec<(u32, u64)> {
    let Ok(entries) = std::fs::read_dir(children(home.path())) else {
        return Vec::new();
    };
    let own = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let note = std::fs::read_to_string(entry.path()).ok()?;
        let (said, began) = note.split_once(' ')?;
        let began = began.parse().ok()?;
        (said == name.as_str()).then_some((pid, began))
    };
    entries.filter_map(own).collect()
}

/// Says whose process this is, for as long as this is kept.
#[derive(Debug)]
pub struct Birth {
    path: PathBuf,
}

impl Birth {
    pub fn note(home: &Home, name: &AgentName, pid: u32, started: u64) -> Result<Self> {
        let dir = children(home.path());
        make_dirs(home.path(), &dir)?;
        let path = dir.join(pid.to_string());
        let write = || -> std::io::Result<()> {
            let mut options = private_file();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)?;
            write!(file, "{name} {started}")
        };
        write().map_err(|error| cannot("write", &path, &error))?;
        Ok(Self { path })
    }
}

/// Removes what a session that is gone has said of a process.
pub fn forget(home: &Home, name: &AgentName, pid: u32, started: u64) {
    let path = children(home.path()).join(pid.to_string());
    let said = std::fs::read_to_string(&path);
    if said.is_ok_and(|said| said == format!("{name} {started}")) {
        let _ = std::fs::remove_file(path);
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The agents that ever had a session here, by name.
pub fn agents(home: &Home) -> Vec<AgentName> {
    let Ok(entries) = std::fs::read_dir(home.path().join("sessions")) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| AgentName::parse(entry.ok()?.file_name().to_str()?).ok())
        .collect();
    names.sort_unstable();
    names
}

/// Whether nothing can be at a path, because what it goes through is not there or no directory.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Create the directory of a socket that the person has chosen, if it does not exist.
pub fn private_dir(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| cannot("create", dir, &error))
}

/// For this user alone, and never through a link.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// What could not be done to a file of the home, and what to do about it.
pub fn cannot(act: &str, path: &Path, error: &std::io::Error) -> Report {
    let report = Report::storage(format!("cannot {act} {}: {error}", path.display()));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            report.hint("the disk is full; free some space and try again")
        }
        ErrorKind::ReadOnlyFilesystem => report
            .hint("check the mount that the home is on, or choose another with --home or PH_HOME"),
        ErrorKind::PermissionDenied => {
            report.hint("check who owns the home, or choose another with --home or PH_HOME")
        }
        _ => report,
    }
}

/// The first sixteen hexadecimal digits of a hash: enough to keep homes apart.
fn blake3_hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
