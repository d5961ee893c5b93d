//! The sockets of a session: taken only where nobody else listens, made again where somebody has
//! removed them, and removed when it ends.

use crate::Shared;
use crate::host::log;
use crate::socket::connection;
use posthaste_store::home::guard::is_private_dir;
use posthaste_store::live::place::{MAX_SOCKET_PATH, Seal, private_dir};
use posthaste_store::live::reach;
use posthaste_store::report::{Report, Result};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UnixListener;
use tracing::{info, warn};

/// How many connections may wait to be accepted; the kernel may cap this number.
const BACKLOG: i32 = 4_096;
/// How often a session looks whether its sockets are still there.
const LOOK: Duration = Duration::from_secs(2);

/// A listening socket; its path is removed with it.
#[derive(Debug)]
pub(crate) struct Listening {
    path: PathBuf,
    right: Right,
    /// Which file it is.
    seal: Option<Seal>,
    /// Until somebody accepts.
    listener: Option<UnixListener>,
}

/// On what grounds a path is a session's.
#[derive(Debug)]
enum Right {
    /// It is its own for as long as it holds this lock.
    Lock(Seal),
    /// The user has chosen it, as far as nobody else is there.
    Chosen,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.seal.as_ref().is_some_and(Seal::is_whole) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens at a session's own path. Whoever holds the session's lock may take what is left there.
pub(crate) fn own(path: &Path, lock: &Seal) -> Result<Listening> {
    Listening::open(path, Right::Lock(lock.clone()))
}

/// Listens at a path that the user has chosen. What lives there, or is no socket, is left alone.
pub(crate) fn chosen(path: &Path) -> Result<Listening> {
    check_length(path)?;
    match path.symlink_metadata() {
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(
                Report::refused(format!("{} is there and is no socket", path.display()))
                    .hint("choose another path for --socket"),
            );
        }
        Ok(_) => match reach(path) {
            // What is left by somebody who is gone.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => remove(path)?,
            // It was there a moment ago.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(_) => return Err(taken(path, "somebody listens on it already")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(taken(path, "somebody has it, and does not answer"));
            }
            Err(error) => return Err(taken(path, &error.to_string())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(path, &error)),
    }
    Listening::open(path, Right::Chosen)
}

fn taken(path: &Path, why: &str) -> Report {
    Report::refused(format!("cannot listen on {}: {why}", path.display()))
        .hint("choose another path for --socket, or end who listens there")
}

/// Lets everybody in who comes, for as long as the session lives. Cleaners of temporary
/// directories remove sockets that are in use, and so does a logout: then it listens anew.
pub(crate) async fn keep(mut socket: Listening, shared: Rc<Shared>) {
    while let Some(listener) = socket.listener.take() {
        tokio::select! {
            () = connection::accept(shared.clone(), listener) => {}
            again = socket.lost() => socket = again,
        }
    }
}

impl Listening {
    fn open(path: &Path, right: Right) -> Result<Self> {
        if let Some(dir) = path.parent() {
            private_dir(dir)?;
        }
        if matches!(right, Right::Lock(_)) {
            match path.symlink_metadata() {
                Ok(meta) if meta.file_type().is_dir() => {
                    return Err(Report::storage(format!(
                        "{} is a directory",
                        path.display()
                    )));
                }
                Ok(_) => remove(path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(cannot(path, &error)),
            }
        }
        let listener = bind(path).map_err(|error| cannot(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            right,
            seal: Seal::of(path),
            listener: Some(listener),
        })
    }

    /// Waits until the path is no longer this socket's, and has it again.
    async fn lost(&self) -> Self {
        let mut is_said = false;
        loop {
            tokio::time::sleep(LOOK).await;
            if self.seal.as_ref().is_some_and(Seal::is_whole) {
                continue;
            }
            let opened = match &self.right {
                // With the lock the whole home is gone, or another's: nothing there is ours.
                Right::Lock(lock) if !lock.is_whole() => continue,
                Right::Lock(lock) => self.is_safe().and_then(|()| own(&self.path, lock)),
                // Binding takes nothing from anybody.
                Right::Chosen => Self::open(&self.path, Right::Chosen),
            };
            match opened {
                Ok(again) => {
                    info!(target: log::SESSION, "listens on {} anew", self.path.display());
                    return again;
                }
                Err(report) if !is_said => {
                    warn!(target: log::SESSION, "{}", report.message());
                    is_said = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Whether nobody else has made the directory meanwhile: it may be in one that all share.
    fn is_safe(&self) -> Result<()> {
        let Some(dir) = self.path.parent() else {
            return Ok(());
        };
        private_dir(dir)?;
        if is_private_dir(dir) {
            return Ok(());
        }
        Err(Report::refused(format!(
            "{} is not this user's alone",
            dir.display()
        )))
    }
}

/// Whether a socket can have this path at all.
pub fn check_length(path: &Path) -> Result<()> {
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH {
        return Err(Report::usage(format!(
            "the socket's path has {length} bytes; the system allows {MAX_SOCKET_PATH}"
        ))
        .hint("choose a shorter path for --socket"));
    }
    Ok(())
}

fn bind(path: &Path) -> std::io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    // Where the system heeds it nobody else gets in before the path has its mode. The umask would
    // be in the way of other threads' files.
    let _ = rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR);
    rustix::net::bind(&fd, &address)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    rustix::net::listen(&fd, BACKLOG)?;
    let listener = std::os::unix::net::UnixListener::from(fd);
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Report {
    Report::storage(format!("cannot listen on {}: {error}", path.display()))
}
