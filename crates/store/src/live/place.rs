//! Files of an agent's sessions: lock, record, log, recording and socket.
//!
//! The lock is held while the session lives, and is the only proof that it does. The record has the
//! socket and the command of the session, and is trusted only while the lock is held.

use super::process;
use crate::data_file;
use crate::home::guard::{check_above, is_safe_dir, make_dirs};
pub use crate::home::private as private_file;
use crate::report::{Report, Result};
use crate::{Error, Home};
use posthaste_core::loop_::Settings;
use posthaste_core::{AgentName, Timestamp};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Longest path of a socket that every supported system accepts.
pub const MAX_SOCKET_PATH: usize = 103;

/// Size limits of a session's record, and of the note about a process.
const MAX_RECORD_BYTES: u64 = 8 << 20;
const MAX_NOTE_BYTES: u64 = 1 << 10;

/// Time for which processes that only check a name may delay the session that takes it.
const LOOKERS: Duration = Duration::from_secs(5);

/// The files of one agent's sessions.
#[derive(Debug, Clone)]
pub struct Place {
    home: PathBuf,
    name: AgentName,
}

/// Launch parameters of a session, kept so that it can be started again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    pub name: AgentName,
    pub command: Vec<String>,
    pub cwd: PathBuf,
    pub harness: String,
    /// Values of `--env`, in order.
    pub env: Vec<(String, String)>,
    /// Additional paths to listen on.
    pub sockets: Vec<PathBuf>,
    pub cols: u16,
    pub rows: u16,
    /// Settings of a loop, whose program is our own runner.
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
    /// Start time of the process, which tells a reused pid apart. Zero if it is unknown.
    #[serde(default)]
    pub pid_started: u64,
    pub child_pid: u32,
    /// Start time of the child.
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

    /// Path of the launch files that the session gives its program.
    pub fn layer(&self) -> PathBuf {
        self.dir().join("layer")
    }

    /// Open the log for appending.
    pub fn log(&self) -> Result<File> {
        self.open(private_file().append(true).create(true), &self.log_file())
    }

    /// Create and open a file in the directory, which a failed start may remove at the same time.
    fn open(&self, options: &OpenOptions, path: &Path) -> Result<File> {
        let deadline = Instant::now() + LOOKERS;
        loop {
            match options.open(path) {
                Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => return Ok(file),
                Ok(_) => {
                    let error = std::io::Error::other("it is not a regular file");
                    return Err(cannot("use", path, &error));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < deadline => {
                    self.prepare()?;
                }
                Err(error) => return Err(cannot("open", path, &error)),
            }
        }
    }

    /// Create the directory, private to this user.
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

    /// Take the name until the result is dropped. Return `None` if a live session has it.
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
                    // The previous holder has removed this file, so its lock excludes no process.
                    None if Instant::now() < deadline => continue,
                    None => return Err(cannot("lock", &path, &ErrorKind::TimedOut.into())),
                }
            }
            // A process that only checks the name holds a shared lock for a moment; a session
            // never does.
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

    /// Return whether a session holds the name now.
    pub fn is_held(&self) -> Result<bool> {
        let path = self.lock_file();
        let file = match data_file::open(&path, OFlags::NOFOLLOW) {
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

    /// Return the record of the latest session, which may have ended.
    pub fn record(&self) -> Option<Record> {
        let text = data_file::read_own(&self.record_file(), MAX_RECORD_BYTES).ok()?;
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

    /// Return the path of the session's socket. A path that is too long is replaced by a short one.
    pub fn socket(&self) -> Result<PathBuf> {
        let key = blake3_hex(self.home.as_os_str().as_bytes());
        let short = format!("{}.sock", self.name);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let (top, base) = match runtime.filter(|dir| dir.is_absolute() && is_safe_dir(dir)) {
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
        let made =
            check_above(&base).and_then(|()| make_dirs(base.parent().unwrap_or(&base), &base));
        made.map_err(|error| {
            Report::from(error).hint("set XDG_RUNTIME_DIR to a directory of your own")
        })?;
        let both = blake3_hex(format!("{key}/{}", self.name).as_bytes());
        Ok(base.join(format!("{both}.sock")))
    }
}

/// Identity of the file at a path, which another file may replace.
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

    /// Return whether the same file is still at the path.
    pub fn is_whole(&self) -> bool {
        Self::of(&self.path).as_ref() == Some(self)
    }
}

/// A name that is taken. The lock is held until this is dropped.
#[derive(Debug)]
pub struct Claim {
    place: Place,
    pub lock: Seal,
    _file: File,
}

impl Drop for Claim {
    /// Remove the directory of a name that never ran, after a failed start. A process that waits for
    /// the lock sees that the file is gone, and creates a new one.
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

/// Directory with one file for each process of a session: its name is the pid, its content the agent.
fn children(home: &Path) -> PathBuf {
    home.join("sessions").join(".children")
}

/// Return the agent in whose session this process runs, by its ancestors.
pub fn agent_here(home: &Home) -> Option<AgentName> {
    // Without this directory no session ever ran.
    children(home.path()).symlink_metadata().ok()?;
    agent_in(home, &process::ancestry(std::process::id()))
}

/// Return the agent in whose session a process runs, by its ancestors and their start times.
pub fn agent_in(home: &Home, line: &[(u32, u64)]) -> Option<AgentName> {
    line.iter()
        .find_map(|(pid, started)| agent_noted(home, *pid, *started))
}

/// Return the agent in whose session a process runs, by its process session. This is fast, but misses
/// descendants that have left the process session.
pub fn agent_of_session(home: &Home, leader: u32) -> Option<AgentName> {
    let note = children(home.path()).join(leader.to_string());
    note.symlink_metadata().ok()?;
    agent_noted(home, leader, process::started(leader)?)
}

fn read_note(path: &Path) -> Option<String> {
    data_file::read_own(path, MAX_NOTE_BYTES).ok()
}

fn agent_noted(home: &Home, pid: u32, started: u64) -> Option<AgentName> {
    let note = read_note(&children(home.path()).join(pid.to_string()))?;
    let (name, began) = note.split_once(' ')?;
    let is_it = began.parse::<u64>().ok()? == started;
    is_it.then(|| AgentName::parse(name).ok()).flatten()
}

/// Return the recorded processes of this agent, each with its start time.
pub fn noted(home: &Home, name: &AgentName) -> Vec<(u32, u64)> {
    let Ok(entries) = std::fs::read_dir(children(home.path())) else {
        return Vec::new();
    };
    let own = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let note = read_note(&entry.path())?;
        let (said, began) = note.split_once(' ')?;
        let began = began.parse().ok()?;
        (said == name.as_str()).then_some((pid, began))
    };
    entries.filter_map(own).collect()
}

/// Records which agent a process belongs to, until it is dropped.
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

/// Remove the record of a process whose session has ended.
pub fn forget(home: &Home, name: &AgentName, pid: u32, started: u64) {
    let path = children(home.path()).join(pid.to_string());
    if read_note(&path).is_some_and(|said| said == format!("{name} {started}")) {
        let _ = std::fs::remove_file(path);
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Return the agents that ever had a session here, sorted by name.
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

/// Return whether a path cannot exist, because a parent is missing or is not a directory.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Create the directory of a socket that the person has chosen, if it does not exist.
pub fn private_dir(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| cannot("create", dir, &error))
}

/// Convert the error of an I/O call on a file of the home.
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

/// Return the first sixteen hexadecimal digits of a hash, which are enough to tell homes apart.
fn blake3_hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
