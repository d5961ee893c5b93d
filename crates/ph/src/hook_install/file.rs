//! Reads and replaces agents' settings files. Writes are atomic, follow symbolic links and keep the
//! file's permissions.

use super::AgentSettings;
use posthaste_store::report::{Report, Result};
use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum size of a settings file.
const MAX_SETTINGS_BYTES: u64 = 4 << 20;

fn failed(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Report {
    Report::storage(format!("cannot {what} {}: {error}", path.display()))
}

/// Return the path of the copy of a file, which is beside it.
pub(crate) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-ph");
    path.with_file_name(name)
}

impl AgentSettings {
    /// Return the file, with symbolic links resolved.
    pub(crate) fn file(&self) -> Result<PathBuf> {
        match self.path.canonicalize() {
            Ok(file) => Ok(file),
            Err(_) if self.path.is_symlink() => Err(Report::refused(format!(
                "{} is a broken symbolic link",
                self.path.display()
            ))
            .hint("create the file that it points to, or remove the link")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.path.clone()),
            Err(error) => Err(failed("resolve", &self.path, &error)),
        }
    }
}

/// Read a file. Return `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path, &error)),
    };
    if !about.is_file() || about.len() > MAX_SETTINGS_BYTES {
        return Err(Report::refused(format!(
            "{} is not a regular file, or is too large for a settings file",
            path.display()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| failed("read", path, &error))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Report::refused(format!("{} is not UTF-8", path.display())))?;
    Ok(Some(text))
}

/// Replace the content `before`, which was read earlier, by `after`. Keeps a copy of `before` on
/// request.
pub(crate) fn apply(
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
    keeps_copy: bool,
) -> Result<()> {
    if read(path)?.as_deref() != before {
        return Err(Report::refused(format!(
            "{} was changed by another program meanwhile",
            path.display()
        ))
        .hint("check the file and try again"));
    }
    if let (Some(before), true) = (before, keeps_copy) {
        write(&backup_of(path), before, path)?;
    }
    match after {
        Some(after) => write(path, after, path),
        None => std::fs::remove_file(path).map_err(|error| failed("remove", path, &error)),
    }
}

/// Write a file atomically, with the permissions of `like`.
fn write(path: &Path, text: &str, like: &Path) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let fail = |error: std::io::Error| failed("write", path, &error);
    std::fs::create_dir_all(dir).map_err(fail)?;
    let mode = std::fs::metadata(like).map_or(0o600, |about| about.permissions().mode());
    let mut fresh = tempfile::NamedTempFile::new_in(dir).map_err(fail)?;
    fresh.write_all(text.as_bytes()).map_err(fail)?;
    let permissions = Permissions::from_mode(mode & 0o7777);
    fresh.as_file().set_permissions(permissions).map_err(fail)?;
    fresh.as_file().sync_all().map_err(fail)?;
    fresh.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
