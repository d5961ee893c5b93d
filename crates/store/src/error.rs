//! Errors of storage, with hints for the person.

use posthaste_core::{AskId, IdPrefix, MessageId, TaskId};
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
    /// The output failed. The home is not affected.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    #[error("the disk that holds {} is full", .0.display())]
    Full(PathBuf),
    #[error("cannot write to {}: it is read-only, or on a read-only file system", .0.display())]
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
    #[error("{} is on a {kind} file system, which other machines may share; a journal is not safe there", path.display())]
    SharedFileSystem { path: PathBuf, kind: String },
    #[error("{} is in use from another machine ({host})", path.display())]
    OtherMachine { path: PathBuf, host: String },
    /// The home was removed, moved or replaced while this process had its journal open.
    #[error("{} was removed or replaced while this process had it open", .0.display())]
    Displaced(PathBuf),
    #[error("the journal is busy: {}", describe_wait(*.waited, .holder))]
    Busy {
        waited: Option<Duration>,
        holder: String,
    },
    /// The commit failed while it was synced, and may still take effect.
    #[error("the write failed while it was synced, and may have been stored: {0}")]
    Uncertain(Box<Error>),
    #[error("no message {0}")]
    NotFound(IdPrefix),
    #[error("{prefix} matches more than one message: {}", list(.fits))]
    Ambiguous {
        prefix: IdPrefix,
        fits: Vec<MessageId>,
    },
    #[error("no task {0}")]
    NoTask(IdPrefix),
    #[error("{prefix} matches more than one task: {}", list(.fits))]
    AmbiguousTask { prefix: IdPrefix, fits: Vec<TaskId> },
    #[error("no ask {0}")]
    NoAsk(IdPrefix),
    #[error("{prefix} matches more than one ask: {}", list(.fits))]
    AmbiguousAsk { prefix: IdPrefix, fits: Vec<AskId> },
    #[error("the body of message {} is not what was stored: {why} ({})", id.id8(), path.display())]
    BodyLost {
        id: MessageId,
        path: PathBuf,
        why: String,
    },
    #[error("line {line}: {why}")]
    BadImport { line: u64, why: String },
    #[error("the journal's writer thread has stopped")]
    WriterGone,
    #[error("too many requests wait for the journal")]
    Overloaded,
    #[error("SQLite: {0}")]
    Sqlite(rusqlite::Error),
    /// An error of a group commit, reported to every sender in the group.
    #[error("{0}")]
    Shared(std::sync::Arc<Error>),
}

impl Error {
    /// Return whether the home was removed, moved or replaced.
    pub fn is_displaced(&self) -> bool {
        match self {
            Self::Displaced(_) => true,
            Self::Shared(inner) => inner.is_displaced(),
            _ => false,
        }
    }

    /// Return whether the failed operation may still take effect.
    pub(crate) fn is_uncertain(&self) -> bool {
        match self {
            Self::Uncertain(_) => true,
            Self::Shared(inner) => inner.is_uncertain(),
            _ => false,
        }
    }

    /// Suggest what to do.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check who owns the home, or choose another with --home or PH_HOME".to_owned()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory => {
                "a home is a directory; choose another with --home or PH_HOME".to_owned()
            }
            Self::Full(_) => "nothing was stored; free some space and try again".to_owned(),
            Self::ReadOnly(_) => {
                "check the permissions of the home, and the mount options of its file system"
                    .to_owned()
            }
            Self::Corrupt { .. } => {
                "run 'ph doctor' to see the damage; 'ph import' restores an export into a new home"
                    .to_owned()
            }
            Self::Unsafe { hint, .. } => hint.clone(),
            Self::SharedFileSystem { .. } => {
                "choose a home on a local disk with --home or PH_HOME".to_owned()
            }
            Self::OtherMachine { .. } => {
                "stop the ph processes on that machine, or give each machine a home of its own"
                    .to_owned()
            }
            Self::Displaced(_) => {
                "nothing was stored; restore the home, or restart this process to use the new one"
                    .to_owned()
            }
            Self::Busy { .. } => {
                "check that process; the journal is free again when it ends".to_owned()
            }
            Self::Overloaded => "nothing was stored; try again in a moment".to_owned(),
            Self::NotFound(_) => "'ph inbox --all' lists ids; 'ph search' finds text".to_owned(),
            Self::NoTask(_) => "'ph task ls' lists ids".to_owned(),
            Self::NoAsk(_) => "'ph asks --all' lists ids".to_owned(),
            Self::Ambiguous { .. } | Self::AmbiguousTask { .. } | Self::AmbiguousAsk { .. } => {
                "give more digits of the id".to_owned()
            }
            Self::Shared(inner) => return inner.hint(),
            Self::Uncertain(_) => {
                "check 'ph log' before you try again: it shows what was stored".to_owned()
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

fn describe_wait(waited: Option<Duration>, holder: &str) -> String {
    match waited {
        None => format!("{holder} is using it"),
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

/// Convert the error of an I/O call on `path`; `what` is the verb of the message.
pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
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

/// Return whether only the sync of a commit failed. SQLite may find what was written.
pub(crate) fn is_failed_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(rusqlite::ffi::SQLITE_IOERR_FSYNC)
}

/// Convert an error of SQLite about the database at `path`.
pub(crate) fn sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Error + '_ {
    move |error| {
        use rusqlite::ErrorCode;
        let Some(code) = error.sqlite_error_code() else {
            return Error::Sqlite(error);
        };
        match code {
            ErrorCode::DiskFull => Error::Full(path.to_owned()),
            // SQLite reports a full disk as an I/O failure when it extends its shared memory.
            ErrorCode::SystemIoFailure if is_full(path) => Error::Full(path.to_owned()),
            ErrorCode::ReadOnly => Error::ReadOnly(path.to_owned()),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Corrupt {
                path: path.to_owned(),
                why: error.to_string(),
            },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy {
                waited: None,
                holder: "another program than ph".to_owned(),
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
    const MIN_FREE_BYTES: u64 = 128 * 1024;
    rustix::fs::statvfs(path).is_ok_and(|fs| fs.f_bavail * fs.f_frsize < MIN_FREE_BYTES)
}
