//! Files of an agent's sessions: lock, record, log, recording and socket.
//!
//! The lock is held while the session lives, and is the only proof that it does. The record has the
//! socket and the command of the session, and is trusted only while the lock is held.

use crate::Home;
use crate::error::{Error, Result, io};
use crate::home::file_id::{KnownFile, is_absent};
use crate::home::guard::{check_above, is_safe_dir, make_dirs};
use crate::home::{data_file, private as private_file, write_private};
use crate::report::{self, Report};
use posthaste_core::loop_::Settings;
use posthaste_core::{AgentName, Timestamp};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Longest path of a socket that every supported system accepts.
pub const MAX_SOCKET_PATH: usize = 103;

const MAX_RECORD_BYTES: u64 = 8 << 20;
/// Time for which other processes, which only check a name or whose start has failed, may delay the
/// session that takes the name.
const CONTENTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The directory with the files of one agent's sessions.
#[derive(Debug, Clone)]
pub struct SessionDir {
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
pub struct SessionRecord {
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

impl SessionDir {
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
        let deadline = Instant::now() + CONTENTION_TIMEOUT;
        loop {
            match options.open(path) {
                Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => return Ok(file),
                Ok(_) => {
                    let error = std::io::Error::other("it is not a regular file");
                    return Err(io("use", path)(error));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < deadline => {
                    self.prepare()?;
                }
                Err(error) => return Err(io("open", path)(error)),
            }
        }
    }

    /// Create the directory, private to this user.
    pub fn prepare(&self) -> Result<()> {
        let dir = self.dir();
        let deadline = Instant::now() + CONTENTION_TIMEOUT;
        loop {
            match make_dirs(&self.home, &dir) {
                // A failed start may have removed the directory in the meantime.
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && Instant::now() < deadline => {}
                made => return made,
            }
        }
    }

    /// Take the name until the result is dropped. Return `None` if a live session has it.
    pub fn take_name(&self) -> Result<Option<NameLock>> {
        let path = self.lock_file();
        let deadline = Instant::now() + CONTENTION_TIMEOUT;
        loop {
            let mut options = private_file();
            let file = self.open(options.read(true).write(true).create(true), &path)?;
            let is_contended = match file.try_lock() {
                Ok(()) => match KnownFile::at(&path).filter(|known| known.is(&file)) {
                    Some(lock_file) => {
                        return Ok(Some(NameLock {
                            dir: self.clone(),
                            lock_file,
                            _file: file,
                        }));
                    }
                    // The previous holder has removed this file, so its lock excludes no process.
                    None => false,
                },
                Err(TryLockError::WouldBlock) => true,
                Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
            };
            // A process that only checks the name holds a shared lock for a moment; a session
            // never does.
            if is_contended && is_locked(&file, &path)? {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                return Err(io("lock", &path)(ErrorKind::TimedOut.into()));
            }
            drop(file);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Return whether a session holds the name now.
    pub fn is_held(&self) -> Result<bool> {
        let path = self.lock_file();
        match data_file::open(&path, OFlags::NOFOLLOW) {
            Ok(file) => is_locked(&file, &path),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(io("open", &path)(error)),
        }
    }

    /// Return the record of the latest session, which may have ended.
    pub fn record(&self) -> Option<SessionRecord> {
        let text = data_file::read_own(&self.record_file(), MAX_RECORD_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub fn write_record(&self, record: &SessionRecord) -> Result<()> {
        let path = self.record_file();
        let fresh = self.dir().join("run.json.new");
        let write = || -> std::io::Result<()> {
            write_private(&fresh, &serde_json::to_vec(record)?)?;
            std::fs::rename(&fresh, &path)
        };
        write().map_err(io("write", &path))
    }

    /// Return the path of the session's socket. A path that is too long is replaced by a short one.
    pub fn socket(&self) -> report::Result<PathBuf> {
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

/// Return whether a process holds an exclusive lock on a file.
fn is_locked(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
    }
}

/// The name of a session that is taken. The lock is held until this is dropped.
#[derive(Debug)]
pub struct NameLock {
    dir: SessionDir,
    pub lock_file: KnownFile,
    _file: File,
}

impl Drop for NameLock {
    /// Remove the directory of a name that never ran, after a failed start. A process that waits
    /// for the lock sees that the file is gone, and creates a new one.
    fn drop(&mut self) {
        let dir = self.dir.dir();
        let Ok(entries) = std::fs::read_dir(&dir) else {
            return;
        };
        let ours = ["lock", "log"];
        let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| ours.iter().any(|ours| entry.file_name() == *ours))
        };
        if self.lock_file.is_in_place() && entries.into_iter().all(is_ours) {
            let _ = std::fs::remove_file(self.dir.log_file());
            let _ = std::fs::remove_file(self.dir.lock_file());
            let _ = std::fs::remove_dir(dir);
        }
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

/// Create the directory of a socket that the person has chosen, if it does not exist.
pub fn private_dir(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(io("create", dir))
}

/// Return the first sixteen hexadecimal digits of a hash, which are enough to tell homes apart.
fn blake3_hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}
