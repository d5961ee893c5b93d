//! The listening sockets of a session. A path is used only if no other process listens there; a
//! socket that is removed is created again; all are removed when the session ends.

use crate::Shared;
use crate::host::log;
use crate::socket::connection;
use posthaste_store::home::guard::is_private_dir;
use posthaste_store::live::{KnownFile, MAX_SOCKET_PATH, private_dir, reach};
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
const MAX_WAITING_CONNECTIONS: i32 = 4_096;
/// How often a session checks that its sockets still exist.
const SOCKET_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A listening socket. Its path is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionSocket {
    path: PathBuf,
    claim: PathClaim,
    /// Identifies the socket's file.
    file: Option<KnownFile>,
    /// `None` once connections are accepted.
    listener: Option<UnixListener>,
}

/// Why a session may use a path.
#[derive(Debug)]
enum PathClaim {
    /// The path belongs to the session for as long as the session holds this lock.
    Lock(KnownFile),
    /// The user has chosen the path.
    Chosen,
}

impl Drop for SessionSocket {
    fn drop(&mut self) {
        if self.file.as_ref().is_some_and(KnownFile::is_in_place) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listen at a session's own path. The holder of the session's lock may replace a file there.
pub(crate) fn listen_with_lock(path: &Path, lock: &KnownFile) -> Result<SessionSocket> {
    SessionSocket::open(path, PathClaim::Lock(lock.clone()))
}

/// Listen at a path that the user has chosen. Replaces only a socket on which nothing listens.
pub(crate) fn listen_at_chosen_path(path: &Path) -> Result<SessionSocket> {
    check_length(path)?;
    match path.symlink_metadata() {
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(
                Report::refused(format!("{} exists and is not a socket", path.display()))
                    .hint("choose another path for --socket"),
            );
        }
        Ok(_) => match reach(path) {
            // The socket of a process that has exited.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => remove(path)?,
            // Removed since it was checked.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(_) => return Err(taken(path, "another process listens on it")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(taken(
                    path,
                    "another process listens on it and does not respond",
                ));
            }
            Err(error) => return Err(taken(path, &error.to_string())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(path, &error)),
    }
    SessionSocket::open(path, PathClaim::Chosen)
}

fn taken(path: &Path, why: &str) -> Report {
    Report::refused(format!("cannot listen on {}: {why}", path.display()))
        .hint("choose another path for --socket, or end the process that listens there")
}

/// Accept connections for as long as the session lives. If the socket is removed, listen again:
/// cleaners of temporary directories and logouts remove sockets that are in use.
pub(crate) async fn accept_connections(mut socket: SessionSocket, shared: Rc<Shared>) {
    while let Some(listener) = socket.listener.take() {
        tokio::select! {
            () = connection::accept(shared.clone(), listener) => {}
            replacement = socket.replace_when_lost() => socket = replacement,
        }
    }
}

impl SessionSocket {
    fn open(path: &Path, claim: PathClaim) -> Result<Self> {
        if let Some(dir) = path.parent() {
            private_dir(dir)?;
        }
        if matches!(claim, PathClaim::Lock(_)) {
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
            claim,
            file: KnownFile::at(path),
            listener: Some(listener),
        })
    }

    /// Wait until the path is no longer this socket, and listen there again.
    async fn replace_when_lost(&self) -> Self {
        let mut is_logged = false;
        loop {
            tokio::time::sleep(SOCKET_CHECK_INTERVAL).await;
            if self.file.as_ref().is_some_and(KnownFile::is_in_place) {
                continue;
            }
            let opened = match &self.claim {
                // Without the lock, the home is removed or replaced and the path is not ours.
                PathClaim::Lock(lock) if !lock.is_in_place() => continue,
                PathClaim::Lock(lock) => self
                    .check_dir()
                    .and_then(|()| listen_with_lock(&self.path, lock)),
                // Binding fails if another process has the path.
                PathClaim::Chosen => Self::open(&self.path, PathClaim::Chosen),
            };
            match opened {
                Ok(socket) => {
                    info!(target: log::SESSION, "listens on {} again", self.path.display());
                    return socket;
                }
                Err(report) if !is_logged => {
                    warn!(target: log::SESSION, "{}", report.message());
                    is_logged = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Check that the directory belongs to this user alone: its parent may be shared by all users.
    fn check_dir(&self) -> Result<()> {
        let Some(dir) = self.path.parent() else {
            return Ok(());
        };
        private_dir(dir)?;
        if is_private_dir(dir) {
            return Ok(());
        }
        Err(Report::refused(format!(
            "{} is not private to this user",
            dir.display()
        )))
    }
}

/// Check that a path is short enough for a socket.
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
    // On some systems the mode of the descriptor applies to the path, so that no other user can
    // connect before `set_permissions`. Setting the umask would affect files of other threads.
    let _ = rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR);
    rustix::net::bind(&fd, &address)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    rustix::net::listen(&fd, MAX_WAITING_CONNECTIONS)?;
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
