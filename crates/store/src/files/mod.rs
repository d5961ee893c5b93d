//! Message files: each message's body in a file that its agent can read.
//!
//! A small body is in the journal, and its file is a copy that is written after the commit and
//! again when it is lost. A body over [`INLINE_LIMIT`] is written and synced first, and the fact
//! has its length and hash. File names are derived from the fact, never read from it.

mod prewrite;

pub use prewrite::Prewrite;

use crate::error::{Error, Result, io};
use crate::home::file_id::FileId;
use crate::home::{Home, data_file, guard, private, sync_dir};
use crate::operation::Posted;
use jiff::Timestamp;
use posthaste_core::message::INLINE_LIMIT;
use posthaste_core::{AgentName, Body, Draft, Message, MessageId};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Return the names that a message's file may have: the usual one, and one that is used if the
/// first is taken.
fn names(home: &Home, to: &AgentName, at: Timestamp, id: MessageId) -> [PathBuf; 2] {
    let dir = home.messages(to);
    let time = at.strftime("%Y%m%d-%H%M%S").to_string();
    [
        dir.join(format!("{time}-{}.md", id.id8())),
        dir.join(format!("{time}-{id}.md")),
    ]
}

pub(crate) fn names_of(home: &Home, message: &Message) -> [PathBuf; 2] {
    names(home, &message.to, message.created_at, message.id)
}

/// Return the greatest length in bytes of the path of a message file in this inbox.
pub fn longest_path(home: &Home, agent: &AgentName) -> usize {
    let names = names(
        home,
        agent,
        Timestamp::UNIX_EPOCH,
        MessageId(uuid::Uuid::nil()),
    );
    let lengths = names.iter().map(|path| path.as_os_str().len());
    lengths.max().unwrap_or_default()
}

/// Create the first of `names` that is free, and its directory if it does not exist.
fn create_first(names: &[PathBuf; 2]) -> Result<Option<(File, &PathBuf)>> {
    let dir = names[0].parent().unwrap_or(&names[0]);
    guard::make_dirs(dir.parent().unwrap_or(dir), dir)?;
    for path in names {
        match private().write(true).create_new(true).open(path) {
            Ok(file) => return Ok(Some((file, path))),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io("create", path)(error)),
        }
    }
    Ok(None)
}

/// Return the file of a message. A lost copy is written again.
pub fn ensure(home: &Home, message: &Message) -> Result<PathBuf> {
    match &message.envelope.body {
        Body::Inline(text) => {
            let names = names_of(home, message);
            if let Some(path) = names.iter().find(|path| holds(path, text)) {
                return Ok(path.clone());
            }
            write_copy(&names, text)
        }
        Body::Filed { .. } => find_filed(home, message).map(|(path, _)| path),
    }
}

fn holds(path: &Path, text: &str) -> bool {
    data_file::read_own(path, text.len() as u64).is_ok_and(|content| content == text)
}

/// Write a body that the journal has. The file is not synced, because it can be written again.
fn write_copy(names: &[PathBuf; 2], text: &str) -> Result<PathBuf> {
    match create_first(names)? {
        Some((file, path)) => {
            fill(file, path, text)?;
            Ok(path.clone())
        }
        // The second name belongs to this message alone, so its file was changed.
        None => {
            let path = &names[1];
            let file = private().write(true).truncate(true).open(path);
            fill(file.map_err(io("write", path))?, path, text)?;
            Ok(path.clone())
        }
    }
}

/// Write a new file, or remove it: half a body is useless.
fn fill(mut file: File, path: &PathBuf, text: &str) -> Result<File> {
    if let Err(error) = file.write_all(text.as_bytes()) {
        remove(path);
        return Err(io("write", path)(error));
    }
    Ok(file)
}

/// Return a message's body, from the journal or its file.
pub fn body(home: &Home, message: &Message) -> Result<String> {
    match &message.envelope.body {
        Body::Inline(text) => Ok(text.clone()),
        Body::Filed { .. } => find_filed(home, message).map(|(_, text)| text),
    }
}

/// Return a message's body, or the reason why it is lost: a lost body must not hide other messages.
pub fn body_or_loss(home: &Home, message: &Message) -> Result<String> {
    match body(home, message) {
        Err(error @ Error::BodyLost { .. }) => Ok(format!("({error})")),
        body => body,
    }
}

/// Return the file with the length and hash that the fact has, and its content.
fn find_filed(home: &Home, message: &Message) -> Result<(PathBuf, String)> {
    let Body::Filed { bytes, blake3 } = &message.envelope.body else {
        return Ok((PathBuf::new(), String::new()));
    };
    let names = names_of(home, message);
    let mut why = "its file is missing".to_owned();
    for path in &names {
        match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(io("inspect", path)(error)),
            Ok(meta) if meta.len() != *bytes => {
                why = format!("its file has {} bytes instead of {bytes}", meta.len());
                continue;
            }
            Ok(_) => {}
        }
        let mut content = Vec::new();
        data_file::open(path, OFlags::NOFOLLOW)
            .and_then(|mut file| file.read_to_end(&mut content))
            .map_err(io("read", path))?;
        if blake3::hash(&content).to_hex().as_str() != blake3 {
            why = "its file was changed".to_owned();
            continue;
        }
        match String::from_utf8(content) {
            Ok(text) => return Ok((path.clone(), text)),
            Err(_) => why = "its file is not UTF-8".to_owned(),
        }
    }
    let [path, _] = names;
    Err(Error::BodyLost {
        id: message.id,
        path,
        why,
    })
}

/// Files that were written for an operation's large bodies, one entry for each draft.
#[derive(Debug, Default)]
pub struct StoredBodies(Vec<Option<PathBuf>>);

impl StoredBodies {
    /// Remove the files, because no message was stored. Other files are left alone: another process
    /// may be storing the same message.
    pub(crate) fn remove(&self) {
        self.0.iter().flatten().for_each(remove);
    }
}

/// Write and sync every body that is too long for a fact, and replace it in the draft by its hash.
pub(crate) fn store_bodies(
    home: &Home,
    now: Timestamp,
    drafts: &mut [Draft],
) -> Result<StoredBodies> {
    let mut stored = StoredBodies::default();
    for draft in drafts {
        let file = match &draft.body {
            Body::Inline(text) if text.len() > INLINE_LIMIT => {
                // A home that was removed is not created again for a body.
                let exists = FileId::at(&home.journal());
                let names = names(home, &draft.to, now, draft.id);
                match exists.and_then(|_| store_body(&names, text)) {
                    Ok((body, file)) => {
                        draft.body = body;
                        file
                    }
                    Err(error) => {
                        stored.remove();
                        return Err(error);
                    }
                }
            }
            Body::Inline(_) | Body::Filed { .. } => None,
        };
        stored.0.push(file);
    }
    Ok(stored)
}

/// Write and sync a body that a fact will refer to. Return the path too if the file is new.
pub(crate) fn store_body(names: &[PathBuf; 2], text: &str) -> Result<(Body, Option<PathBuf>)> {
    let body = Body::Filed {
        bytes: text.len() as u64,
        blake3: blake3::hash(text.as_bytes()).to_hex().to_string(),
    };
    let Some((file, path)) = create_first(names)? else {
        // A retry with the same id finds its file. No other file may be overwritten.
        return if names.iter().any(|path| holds(path, text)) {
            Ok((body, None))
        } else {
            Err(io("create", &names[1])(ErrorKind::AlreadyExists.into()))
        };
    };
    // The file's name, and that of a new directory, must survive a power cut like its content.
    let mut dirs = path.ancestors().skip(1).take(2);
    let synced = fill(file, path, text)?
        .sync_all()
        .map_err(io("sync", path))
        .and_then(|()| dirs.try_for_each(sync_dir));
    match synced {
        Ok(()) => Ok((body, Some(path.clone()))),
        Err(error) => {
            remove(path);
            Err(error)
        }
    }
}

/// Bring the file of draft number `draft` in line with what was committed.
pub(crate) fn settle_posted(
    home: &Home,
    bodies: &StoredBodies,
    prewrite: &Prewrite,
    draft: usize,
    posted: &mut Posted,
) {
    let message = &posted.state.message;
    match (&message.envelope.body, posted.is_new) {
        (Body::Inline(text), true) => {
            let names = names_of(home, message);
            if prewrite.name(draft, text, &names).is_none() {
                let copy = write_copy(&names, text);
                posted.unfiled = copy.err().map(|error| error.to_string());
            }
        }
        (Body::Filed { .. }, true) => {}
        // The message was stored before. A file that replaces its lost file is kept.
        (_, false) => {
            let Some(new) = bodies.0.get(draft).and_then(Option::as_ref) else {
                return;
            };
            if !find_filed(home, message).is_ok_and(|(found, _)| found == *new) {
                remove(new);
            }
        }
    }
}

/// Remove the copy of a deleted message. A large body stays, because the journal does not have it.
pub(crate) fn remove_copy(home: &Home, message: &Message) {
    if let Body::Inline(text) = &message.envelope.body {
        let names = names_of(home, message);
        names
            .iter()
            .filter(|path| holds(path, text))
            .for_each(remove);
    }
}

fn remove(path: &PathBuf) {
    // Best effort: a file without a message does no harm.
    let _ = std::fs::remove_file(path);
}
