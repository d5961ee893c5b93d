//! What can go wrong with storage, in words that a person can act on.

use posthaste_core::{IdPrefix, MessageId, TaskId};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// What was to be handed on could not be: nothing is wrong with the home.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    #[error("the disk that holds {} is full", .0.display())]
    Full(PathBuf),
    #[error("{} cannot be written: it is read-only, or on a file system that is", .0.display())]
    ReadOnly(PathBuf),
    #[error("the journal in {} is damaged: {why}", path.display())]
    Corrupt { path: PathBuf, why: String },
    /// A directory or file of a home that another user or a repository may have made.
    #[error("{} {why}", path.display())]
    Unsafe {
        path: PathBuf,
        why: String,
        hint: String,
    },
    #[error("{} is on a {kind} file system, where a journal is not safe", path.display())]
    SharedFileSystem { path: PathBuf, kind: String },
    #[error("{} is in use from another machine ({host})", path.display())]
    OtherMachine { path: PathBuf, host: String },
    /// The home was removed, moved or replaced while this process had its journal open.
    #[error("{} is not the journal any more that this process has open: it was removed or replaced", .0.display())]
    Displaced(PathBuf),
    #[error("the journal is busy: {}", wait(*.waited, .holder))]
    Busy {
        waited: Option<Duration>,
        holder: String,
    },
    /// The commit was begun, and nobody can say whether it holds.
    #[error("it may have been stored all the same: {0}")]
    Uncertain(Box<Error>),
    #[error("no message {0}")]
    NotFound(IdPrefix),
    #[error("{prefix} fits more than one message: {}", list(.fits))]
    Ambiguous {
        prefix: IdPrefix,
        fits: Vec<MessageId>,
    },
    #[error("no task {0}")]
    NoTask(IdPrefix),
    #[error("{prefix} fits more than one task: {}", list(.fits))]
    AmbiguousTask { prefix: IdPrefix, fits: Vec<TaskId> },
    #[error("the body of message {} is not what was stored: {why} ({})", id.id8(), path.display())]
    BodyLost {
        id: MessageId,
        path: PathBuf,
        why: String,
    },
    #[error("line {line}: {why}")]
    BadImport { line: u64, why: String },
    #[error("the writer of this journal has stopped")]
    WriterGone,
    #[error("too much waits to be written already")]
    Overloaded,
    #[error("SQLite: {0}")]
    Sqlite(rusqlite::Error),
    /// An error that hit several at once.
    #[error("{0}")]
    Shared(std::sync::Arc<Error>),
}

/// What to do about an error.
pub trait Hint {
    fn hint(&self) -> Option<String>;
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check who owns the home, or choose another with --home or PH_HOME".to_owned()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory => {
                "a home is a directory; choose another with --home or PH_HOME".to_owned()
            }
            Self::Full(_) => "nothing was stored; free some space and try again".to_owned(),
            Self::ReadOnly(_) => {
                "check the permissions of the home and the mount it is on".to_owned()
            }
            Self::Corrupt { .. } => {
                "'ph doctor' says what is damaged; 'ph import' brings an export into a new home"
                    .to_owned()
            }
            Self::Unsafe { hint, .. } => hint.clone(),
            Self::SharedFileSystem { .. } => {
                "choose a home on a local disk with --home or PH_HOME".to_owned()
            }
            Self::OtherMachine { .. } => {
                "stop what runs there, or give each machine a home of its own".to_owned()
            }
            Self::Displaced(_) => {
                "nothing was stored; stop what was started before that and start it again, or put the home back"
                    .to_owned()
            }
            Self::Busy { .. } => {
                "look at that process; the journal is free again when it ends".to_owned()
            }
            Self::Overloaded => "nothing was stored; send again in a moment".to_owned(),
            Self::NotFound(_) => "'ph inbox --all' lists ids; 'ph search' finds text".to_owned(),
            Self::NoTask(_) => "'ph task ls' lists ids".to_owned(),
            Self::Ambiguous { .. } | Self::AmbiguousTask { .. } => "give more digits".to_owned(),
            Self::Shared(inner) => return inner.hint(),
            Self::Uncertain(_) => {
                "look for it before you send it again ('ph log' has it if it was stored)".to_owned()
            }
            Self::Io { .. }
            | Self::Output(_)
            | Self::BodyLost { .. }
            | Self::BadImport { .. }
            | Self::WriterGone
            | Self::Sqlite(_) => return None,
        };
        Some(hint)
    }
}

fn wait(waited: Option<Duration>, holder: &str) -> String {
    match waited {
        None => format!("{holder} has it"),
        Some(time) if time < Duration::from_secs(1) => {
            format!("waited {} ms for {holder}", time.as_millis())
        }
        Some(time) => format!("waited {} s for {holder}", time.as_secs()),
    }
}

fn list(ids: &[impl ToString]) -> String {
    ids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Names what was being done, and to which file, when an I/O call failed.
pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full(path.to_owned()),
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly(path.to_owned()),
        _ => Error::Io {
            what,
            path: path.to_owned(),
            source,
        },
    }
}

impl Error {
    /// Whether the home was removed, moved or replaced.
    pub fn is_displaced(&self) -> bool {
        match self {
            Self::Displaced(_) => true,
            Self::Shared(inner) => inner.is_displaced(),
            _ => false,
        }
    }

    /// Whether what failed may hold all the same.
    pub(crate) fn is_uncertain(&self) -> bool {
        match self {
            Self::Uncertain(_) => true,
            Self::Shared(inner) => inner.is_uncertain(),
            _ => false,
        }
    }
}

/// Whether a commit failed only in its sync: what it wrote may be found again.
pub(crate) fn is_failed_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(rusqlite::ffi::SQLITE_IOERR_FSYNC)
}

/// Turns SQLite's codes into what they mean for the journal at `path`.
pub(crate) fn sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Error + '_ {
    move |error| {
        use rusqlite::ErrorCode;
        let Some(code) = error.sqlite_error_code() else {
            return Error::Sqlite(error);
        };
        match code {
            ErrorCode::DiskFull => Error::Full(path.to_owned()),
            // SQLite reports a full disk as an I/O failure where it grows its shared memory.
            ErrorCode::SystemIoFailure if is_full(path) => Error::Full(path.to_owned()),
            ErrorCode::ReadOnly => Error::ReadOnly(path.to_owned()),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Corrupt {
                path: path.to_owned(),
                why: error.to_string(),
            },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy {
                waited: None,
                holder: "a program that is not ph".to_owned(),
            },
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Error::Io {
                what: "open",
                path: path.to_owned(),
                source: io::Error::new(io::ErrorKind::PermissionDenied, error.to_string()),
            },
            _ => Error::Sqlite(error),
        }
    }
}

fn is_full(path: &Path) -> bool {
    const ROOM_FOR_A_COMMIT: u64 = 128 * 1024;
    rustix::fs::statvfs(path).is_ok_and(|fs| fs.f_bavail * fs.f_frsize < ROOM_FOR_A_COMMIT)
}
