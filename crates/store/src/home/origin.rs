//! Checks that a project's home was created on this machine by this user.
//!
//! A repository or an archive can contain a whole `.posthaste`, and `git pull` can replace any file
//! whose path it knows. Owner and mode say nothing about where a file came from. So the home of a
//! project is a directory `.posthaste/home-ID`, whose id nobody else can know: it is derived from a
//! secret key in the person's state directory and from the project's path. The state directory also
//! records the path of each id, so that a project can be moved.

use super::file_id::is_absent;
use super::guard;
use super::{Home, PROJECT_DIR, data_file, private, sync_dir};
use crate::error::{Error, Result, io};
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use uuid::Uuid;

const HOME_PREFIX: &str = "home-";
const KEY_FILE: &str = "key";
const RECORDS_DIR: &str = "homes";

/// Content of a directory named `.posthaste`.
#[derive(Debug, PartialEq, Eq)]
pub enum Discovered {
    Nothing,
    /// Only settings, such as those of a clone. They are data, and there is no mail.
    Settings,
    Home(Home),
}

/// Entries of a `.posthaste` directory.
#[derive(Default)]
struct Entries {
    homes: Vec<Uuid>,
    has_others: bool,
}

impl Home {
    /// Look for a home in a directory that the person works in. Refuse a home that was copied,
    /// cloned or unpacked. `state` is the person's state directory.
    pub fn discover(dir: &Path, state: Option<&Path>) -> Result<Discovered> {
        let path = dir.join(PROJECT_DIR);
        if path.metadata().is_ok_and(|meta| !meta.is_dir()) || guard::open_own(&path)?.is_none() {
            return Ok(Discovered::Nothing);
        }
        let Entries { homes, has_others } = entries(&path)?;
        if homes.is_empty() && has_others {
            return Ok(Discovered::Settings);
        }
        let state = known(state, &path)?;
        let id = match homes.as_slice() {
            [] => own_id(state, &path)?,
            homes => trusted_id(state, &path, homes)?,
        };
        Self::at(path.join(name_of(id)), Some(state)).map(Discovered::Home)
    }

    /// Accept the home in this `.posthaste` directory, whatever it contains: make it private, and
    /// give it this project's id. Without a home, create one.
    pub fn trust(path: &Path, state: Option<&Path>) -> Result<Self> {
        let path = super::plain_path(path)?;
        if !is_project_dir(&path) {
            let why = format!("is not called {PROJECT_DIR}; only a project's home needs trust");
            let hint = format!("ph trust --home PROJECT/{PROJECT_DIR}");
            return Err(guard::refusal(&path, why, hint));
        }
        let state = known(state, &path)?;
        guard::check_above(&path.join(HOME_PREFIX))?;
        if guard::open_own(&path)?.is_none() {
            return Err(io("open", &path)(ErrorKind::NotFound.into()));
        }
        let own = own_id(state, &path)?;
        let root = path.join(name_of(own));
        match entries(&path)?.homes.as_slice() {
            [] => {}
            [id] if *id == own => guard::make_tree_private(&root)?,
            [id] => {
                let found = path.join(name_of(*id));
                guard::make_tree_private(&found)?;
                std::fs::rename(&found, &root).map_err(io("rename", &found))?;
                // A copy with this id must not pass for this home, moved.
                if read_record(state, *id)? == Some(real(&path)) {
                    let record = record_path(state, *id);
                    std::fs::remove_file(&record).map_err(io("remove", &record))?;
                }
            }
            homes => {
                let why = format!("contains {} homes", homes.len());
                return Err(guard::refusal(&path, why, "remove all but one"));
            }
        }
        let home = Self::at(root, Some(state))?;
        home.prepare()?;
        Ok(home)
    }

    /// Return the root of the home that a person means by naming a `.posthaste` directory.
    pub(super) fn named_root(path: PathBuf, state: Option<&Path>) -> Result<PathBuf> {
        match (entries(&path)?.homes.as_slice(), state) {
            ([], None) => Ok(path),
            ([], Some(state)) => Ok(path.join(name_of(own_id(state, &path)?))),
            ([id], _) => Ok(path.join(name_of(*id))),
            (homes, Some(state)) => Ok(path.join(name_of(trusted_id(state, &path, homes)?))),
            (_, None) => Err(untrusted(&path, "contains several homes")),
        }
    }

    /// Return whether this home belongs to a project.
    pub fn is_project(&self) -> bool {
        self.project_dir().is_some()
    }

    /// Return the `.posthaste` directory of a project's home.
    pub fn project_dir(&self) -> Option<&Path> {
        let parent = self.root.parent().filter(|parent| is_project_dir(parent))?;
        id_in(self.root.file_name()?).map(|_| parent)
    }

    /// Record the path of a project's home, so that the home is found again if the project is
    /// moved.
    pub(super) fn record(&self) -> Result<()> {
        let id = self.root.file_name().and_then(id_in);
        if let (Some(id), Some(dir), Some(state)) = (id, self.project_dir(), &self.state) {
            write_record(state, id, &real(dir))?;
        }
        Ok(())
    }
}

pub(super) fn is_project_dir(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == PROJECT_DIR)
}

fn known<'a>(state: Option<&'a Path>, path: &Path) -> Result<&'a Path> {
    state.ok_or_else(|| untrusted(path, "cannot be checked: HOME is not set"))
}

/// Return the id of a home in `path` that was made here, or in a place that `path` was moved from.
fn trusted_id(state: &Path, path: &Path, homes: &[Uuid]) -> Result<Uuid> {
    let (own, here) = (own_id(state, path)?, real(path));
    if homes.contains(&own) {
        return Ok(own);
    }
    let mut copied_from = None;
    for id in homes {
        match read_record(state, *id)? {
            Some(recorded) if recorded == here => return Ok(*id),
            Some(recorded) if is_gone(&recorded, *id) => {
                write_record(state, *id, &here)?;
                return Ok(*id);
            }
            Some(recorded) => copied_from = Some(recorded),
            None => {}
        }
    }
    Err(match copied_from {
        Some(original) => untrusted(path, &format!("is a copy of {}", original.display())),
        None => untrusted(path, "was not made by this user on this machine"),
    })
}

/// Return whether the home in a record certainly does not exist any more.
fn is_gone(recorded: &Path, id: Uuid) -> bool {
    match recorded.join(name_of(id)).symlink_metadata() {
        Err(error) => is_absent(&error),
        Ok(_) => false,
    }
}

fn entries(path: &Path) -> Result<Entries> {
    let mut found = Entries::default();
    let listed = match path.read_dir() {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(io("list", path)(error)),
    };
    for entry in listed {
        let name = entry.map_err(io("list", path))?.file_name();
        match id_in(&name) {
            Some(id) => found.homes.push(id),
            None => found.has_others |= name != ".gitignore",
        }
    }
    Ok(found)
}

fn name_of(id: Uuid) -> String {
    format!("{HOME_PREFIX}{}", id.simple())
}

fn id_in(name: &OsStr) -> Option<Uuid> {
    Uuid::try_parse(name.to_str()?.strip_prefix(HOME_PREFIX)?).ok()
}

/// Return the id of the home that this user makes in a `.posthaste` directory.
fn own_id(state: &Path, path: &Path) -> Result<Uuid> {
    let hash = blake3::keyed_hash(&key(state)?, real(path).as_os_str().as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.as_bytes()[..16]);
    Ok(Uuid::from_bytes(id))
}

/// Return the person's secret key, created at its first use.
fn key(state: &Path) -> Result<[u8; 32]> {
    let path = state.join(KEY_FILE);
    guard::check_above(&path)?;
    match read_key(&path) {
        Ok((meta, _)) if !guard::is_secret(&meta) => Err(guard::refusal(
            &path,
            "is not secret: it belongs to another user or is open to other users",
            "remove it; a new key is created, and homes that are recorded stay trusted",
        )),
        Ok((_, bytes)) => bytes
            .try_into()
            .map_err(|_| io("read", &path)(std::io::Error::other("not 32 bytes"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let fresh = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
            let written = write_new(&path, &fresh)?;
            // Another process may have been faster.
            match std::fs::hard_link(&written, &path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(io("write", &path)(error));
                }
                _ => std::fs::remove_file(&written).map_err(io("remove", &written))?,
            }
            sync_dir(state)?;
            key(state)
        }
        Err(error) => Err(io("read", &path)(error)),
    }
}

fn read_key(path: &Path) -> std::io::Result<(Metadata, Vec<u8>)> {
    let file = data_file::open(path, OFlags::NOFOLLOW)?;
    let meta = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
    Ok((meta, bytes))
}

/// Return a `.posthaste` directory's path without links. The directory itself need not exist.
fn real(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(path);
    let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    parent.join(path.file_name().unwrap_or_default())
}

fn record_path(state: &Path, id: Uuid) -> PathBuf {
    state.join(RECORDS_DIR).join(id.simple().to_string())
}

fn read_record(state: &Path, id: Uuid) -> Result<Option<PathBuf>> {
    let path = record_path(state, id);
    guard::check_above(&path)?;
    let mut bytes = Vec::new();
    let read = data_file::open_own(&path).and_then(|mut file| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(PathBuf::from(OsString::from_vec(bytes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", &path)(error)),
    }
}

fn write_record(state: &Path, id: Uuid, home: &Path) -> Result<()> {
    let path = record_path(state, id);
    let written = write_new(&path, home.as_os_str().as_bytes())?;
    std::fs::rename(&written, &path).map_err(io("write", &path))?;
    sync_dir(&state.join(RECORDS_DIR))
}

/// Write a synced file beside `path`, under a name of its own, and return its path.
fn write_new(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    guard::make_above(path)?;
    let fresh = path.with_extension(Uuid::new_v4().simple().to_string());
    let written = private().write(true).create_new(true).open(&fresh);
    let written = written.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(io("write", &fresh))?;
    Ok(fresh)
}

fn untrusted(path: &Path, why: &str) -> Error {
    let shown = path.display();
    let hint = format!("if you trust its mail, run 'ph trust --home {shown}'");
    guard::refusal(path, why, hint)
}
