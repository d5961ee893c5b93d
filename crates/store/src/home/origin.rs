//! Whether a project's home was made on this machine by this user.
//!
//! A repository or an archive can contain a whole `.posthaste`, and its owner and mode say nothing
//! about where it came from. So a home has a random id, and the person's own state directory records
//! the path of each id. A home that was found, rather than named by the person, is used only if its
//! record fits.

use super::guard::{self, OwnDir};
use super::{HOME_ID, Home, PROJECT_DIR, private, sync_dir};
use crate::error::{Error, Result, io};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Prefix of a home id that is still being written.
const TEMP_ID_PREFIX: &str = ".home-id.";

/// Content of a directory that is called `.posthaste`.
#[derive(Debug, PartialEq, Eq)]
pub enum Discovered {
    Nothing,
    /// Only settings, such as those of a clone: they are data, and no mail is kept there.
    Settings,
    Home(Home),
}

impl Home {
    /// Look for a home in a directory that the person works in. Refuse a home that was copied,
    /// cloned or unpacked.
    pub fn discover(dir: &Path, records: Option<&Path>) -> Result<Discovered> {
        let path = dir.join(PROJECT_DIR);
        if path.metadata().is_ok_and(|meta| !meta.is_dir()) {
            return Ok(Discovered::Nothing);
        }
        let Some(opened) = guard::open_own(&path)? else {
            return Ok(Discovered::Nothing);
        };
        let Some(id) = read_id(&path)? else {
            return match content(&path, &opened)? {
                Content::Empty => Self::open(&path, records).map(Discovered::Home),
                Content::Settings => Ok(Discovered::Settings),
                Content::HomeData => Err(untrusted(
                    &path,
                    "has mail or sessions, but no valid home-id",
                )),
            };
        };
        let Some(records) = records else {
            let why = "cannot be checked: there is no state directory (HOME is not set)";
            return Err(untrusted(&path, why));
        };
        let here = path.canonicalize().map_err(io("resolve", &path))?;
        match read_record(records, id)? {
            Some(recorded) if recorded == here => {}
            Some(recorded) if is_gone(&recorded, id) => write_record(records, id, &here)?,
            Some(recorded) => {
                let why = format!("is a copy of {}", recorded.display());
                return Err(untrusted(&path, &why));
            }
            None => {
                return Err(untrusted(
                    &path,
                    "was not made by this user on this machine",
                ));
            }
        }
        Self::open(&path, Some(records)).map(Discovered::Home)
    }

    /// Accept the home at this path, whatever it contains: make it private, give it a new id, and
    /// record it.
    pub fn trust(path: &Path, records: Option<&Path>) -> Result<Self> {
        let root = super::plain_path(path)?;
        if root.file_name().is_none_or(|name| name != PROJECT_DIR) {
            return Err(Error::Unsafe {
                path: root,
                why: format!("is not called {PROJECT_DIR}; only a project's home needs trust"),
                hint: format!("ph trust --home PROJECT/{PROJECT_DIR}"),
            });
        }
        let Some(records) = records else {
            let why = "cannot be recorded: there is no state directory (HOME is not set)";
            return Err(untrusted(&root, why));
        };
        guard::check_above(&root)?;
        guard::make_tree_private(&root)?;
        let home = Self::open(&root, Some(records))?;
        home.forget_record(records)?;
        let id = Uuid::new_v4();
        let fresh = home.write_unfinished(id)?;
        home.record(records, id)?;
        let path = root.join(HOME_ID);
        std::fs::rename(&fresh, &path).map_err(io("write", &path))?;
        sync_dir(&root)?;
        Ok(home)
    }

    /// Give a new project home its id, and record it. The id is the first file of a home, so that no
    /// other process takes a new home for a clone.
    pub(super) fn assign_id(&self) -> Result<()> {
        let is_project = self
            .root
            .file_name()
            .is_some_and(|name| name == PROJECT_DIR);
        let Some(records) = self.records.as_ref().filter(|_| is_project) else {
            return Ok(());
        };
        if read_id(&self.root)?.is_some() || self.has_journal()? {
            return Ok(());
        }
        let id = Uuid::new_v4();
        let fresh = self.write_unfinished(id)?;
        self.record(records, id)?;
        let linked = std::fs::hard_link(&fresh, self.root.join(HOME_ID));
        std::fs::remove_file(&fresh).map_err(io("remove", &fresh))?;
        match linked {
            Ok(()) => Ok(()),
            // Another process was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let record = record_path(records, id);
                std::fs::remove_file(&record).map_err(io("remove", &record))
            }
            Err(error) => Err(io("write", &self.root.join(HOME_ID))(error)),
        }
    }

    /// Remove the record of the home's present id, if it names this home: a copy must not inherit it.
    fn forget_record(&self, records: &Path) -> Result<()> {
        let Some(id) = read_id(&self.root)? else {
            return Ok(());
        };
        let here = self
            .root
            .canonicalize()
            .map_err(io("resolve", &self.root))?;
        if read_record(records, id)? == Some(here) {
            let record = record_path(records, id);
            std::fs::remove_file(&record).map_err(io("remove", &record))?;
        }
        Ok(())
    }

    fn record(&self, records: &Path, id: Uuid) -> Result<()> {
        let here = self
            .root
            .canonicalize()
            .map_err(io("resolve", &self.root))?;
        write_record(records, id, &here)
    }

    fn write_unfinished(&self, id: Uuid) -> Result<PathBuf> {
        let path = self.root.join(format!("{TEMP_ID_PREFIX}{}", id.simple()));
        let written = private().write(true).create_new(true).open(&path);
        let written = written.and_then(|mut file| {
            writeln!(file, "{}", id.simple())?;
            file.sync_all()
        });
        written.map_err(io("write", &path))?;
        Ok(path)
    }
}

enum Content {
    Empty,
    Settings,
    HomeData,
}

fn content(path: &Path, opened: &OwnDir) -> Result<Content> {
    let cannot = |error: rustix::io::Errno| io("list", path)(error.into());
    let mut found = Content::Empty;
    for entry in rustix::fs::Dir::read_from(&opened.fd).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let name = entry.file_name().to_string_lossy();
        match &*name {
            "." | ".." | ".gitignore" => {}
            "journal.db" | "sessions" => return Ok(Content::HomeData),
            name if name.starts_with(TEMP_ID_PREFIX) => {}
            _ => found = Content::Settings,
        }
    }
    Ok(found)
}

/// Return whether the home that a record names is certainly not there any more.
fn is_gone(recorded: &Path, id: Uuid) -> bool {
    match recorded.symlink_metadata() {
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        Ok(_) => matches!(read_id(recorded), Ok(Some(other)) if other != id),
    }
}

/// Return the id of a home, if it has one.
fn read_id(root: &Path) -> Result<Option<Uuid>> {
    let path = root.join(HOME_ID);
    match super::read_data(&path, 64) {
        Ok(text) => Ok(Uuid::try_parse(text.trim()).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(_) if path.is_symlink() => Err(guard::link_error(&path)),
        Err(error) => Err(io("read", &path)(error)),
    }
}

fn record_path(records: &Path, id: Uuid) -> PathBuf {
    records.join(id.simple().to_string())
}

fn read_record(records: &Path, id: Uuid) -> Result<Option<PathBuf>> {
    use std::os::unix::ffi::OsStringExt;
    let path = record_path(records, id);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", &path)(error)),
    }
}

fn write_record(records: &Path, id: Uuid, home: &Path) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    super::private_dir(records)?;
    let path = record_path(records, id);
    let fresh = path.with_extension(Uuid::new_v4().simple().to_string());
    let written = private().write(true).create_new(true).open(&fresh);
    let written = written.and_then(|mut file| {
        file.write_all(home.as_os_str().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &path)
    });
    written.map_err(io("write", &path))?;
    sync_dir(records)
}

fn untrusted(path: &Path, why: &str) -> Error {
    Error::Unsafe {
        path: path.to_owned(),
        why: why.to_owned(),
        hint: format!(
            "if you trust its mail, run 'ph trust --home {}'",
            path.display()
        ),
    }
}
