//! The files of agents: read with care, written at once or not at all, through links, as private
//! as they were.

use super::Target;
use posthaste_store::report::{Report, Result};
use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// No settings are longer.
const LONGEST: u64 = 4 << 20;

fn failed(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Report {
    Report::storage(format!("cannot {what} {}: {error}", path.display()))
}

/// Where the copy of a file is kept: beside it.
pub(crate) fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-ph");
    path.with_file_name(name)
}

impl Target {
    /// The file itself, behind any link.
    pub(crate) fn file(&self) -> Result<PathBuf> {
        match self.path.canonicalize() {
            Ok(file) => Ok(file),
            Err(_) if self.path.is_symlink() => Err(Report::refused(format!(
                "{} is a link to nowhere",
                self.path.display()
            ))
            .hint("make what it points to, or remove it")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.path.clone()),
            Err(error) => Err(failed("look at", &self.path, &error)),
        }
    }
}

/// What a file holds; nothing where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path, &error)),
    };
    if !about.is_file() || about.len() > LONGEST {
        return Err(Report::refused(format!(
            "{} is no file, or far too long for settings",
            path.display()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| failed("read", path, &error))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Report::refused(format!("{} is not UTF-8", path.display())))?;
    Ok(Some(text))
}

/// Puts `after` in the place of `before`, which was read before; with a copy of it where that is
/// wanted.
pub(crate) fn apply(
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
    keeps_copy: bool,
) -> Result<()> {
    if read(path)?.as_deref() != before {
        return Err(Report::refused(format!(
            "{} has just been changed by somebody else",
            path.display()
        ))
        .hint("look at it, and try again"));
    }
    if let (Some(before), true) = (before, keeps_copy) {
        write(&backup_of(path), before, path)?;
    }
    match after {
        Some(after) => write(path, after, path),
        None => std::fs::remove_file(path).map_err(|error| failed("remove", path, &error)),
    }
}

/// Writes a file whole, as private as `like`.
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
