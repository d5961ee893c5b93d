//! The sockets of a session: taken only where nobody else listens, and removed when it ends.

use super::place::{MAX_SOCKET_PATH, private_dir};
use crate::report::{Report, Result};
use rustix::fs::Mode;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// A listening socket; its path is removed with it.
#[derive(Debug)]
pub(crate) struct Listening {
    path: PathBuf,
    /// Which file it is: another may have taken the path since.
    inode: Option<(u64, u64)>,
    /// Until somebody accepts.
    pub(crate) listener: Option<UnixListener>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.inode.is_some() && inode(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens at a session's own path. Whoever holds the session's lock may take what is left there.
pub(crate) fn own(path: &Path) -> Result<Listening> {
    match path.symlink_metadata() {
        Ok(meta) if meta.file_type().is_dir() => {
            return Err(Report::storage(format!(
                "{} is a directory",
                path.display()
            )));
        }
        Ok(_) => std::fs::remove_file(path).map_err(|error| cannot(path, &error))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(path, &error)),
    }
    bind(path)
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
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => {
                return Err(Report::refused(format!(
                    "somebody listens on {} already",
                    path.display()
                ))
                .hint("choose another path for --socket, or end who listens there"));
            }
            Err(_) => std::fs::remove_file(path).map_err(|error| cannot(path, &error))?,
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(dir) = path.parent() {
                private_dir(dir)?;
            }
        }
        Err(error) => return Err(cannot(path, &error)),
    }
    bind(path)
}

/// Whether a socket can have this path at all.
pub(crate) fn check_length(path: &Path) -> Result<()> {
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH {
        return Err(Report::usage(format!(
            "the socket's path has {length} bytes; the system allows {MAX_SOCKET_PATH}"
        ))
        .hint("choose a shorter path for --socket"));
    }
    Ok(())
}

fn bind(path: &Path) -> Result<Listening> {
    // Nobody else may get in between its creation and the next line.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound.map_err(|error| cannot(path, &error))?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|error| cannot(path, &error))?;
    Ok(Listening {
        path: path.to_owned(),
        inode: inode(path),
        listener: Some(listener),
    })
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    let meta = path.symlink_metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}

fn cannot(path: &Path, error: &std::io::Error) -> Report {
    Report::storage(format!("cannot listen on {}: {error}", path.display()))
}
