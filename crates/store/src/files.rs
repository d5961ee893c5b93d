//! Message files: each message's body as a file that its agent can read.
//!
//! Small bodies live in the journal and their files are copies, made after the commit and made
//! again when lost. A body over 1 MiB is the other way round: its file is written and synced
//! first, and the fact holds its length and hash. File names are derived from the fact, never
//! taken from it.

use crate::error::{Error, Result, io};
use crate::home::{Home, private_dir};
use crate::work::{Denied, Done, Job, Outcome};
use jiff::Timestamp;
use posthaste_core::message::INLINE_LIMIT;
use posthaste_core::{AgentName, Body, Draft, Message, MessageId};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The two names that a message's file can have: the usual one, and one for when that is taken.
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

fn create_new(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Creates the first of `names` that is free, with its directory if need be.
fn create_first(names: &[PathBuf; 2]) -> Result<Option<(File, &PathBuf)>> {
    let mut made_dir = false;
    let mut candidates = names.iter();
    let mut name = candidates.next();
    while let Some(path) = name {
        match create_new(path) {
            Ok(file) => return Ok(Some((file, path))),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => name = candidates.next(),
            Err(error) if error.kind() == ErrorKind::NotFound && !made_dir => {
                made_dir = true;
                private_dir(path.parent().unwrap_or(path))?;
            }
            Err(error) => return Err(io("create", path)(error)),
        }
    }
    Ok(None)
}

/// The file of a message, made again if it is lost.
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
    path.metadata()
        .is_ok_and(|meta| meta.len() == text.len() as u64)
        && std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

/// Writes a body that the journal has; not synced, because it can be made again.
fn write_copy(names: &[PathBuf; 2], text: &str) -> Result<PathBuf> {
    match create_first(names)? {
        Some((mut file, path)) => {
            let written = file.write_all(text.as_bytes());
            written.map_err(io("write", path))?;
            Ok(path.clone())
        }
        // Both names are taken: the second is this message's alone, and somebody changed it.
        None => {
            std::fs::write(&names[1], text).map_err(io("write", &names[1]))?;
            Ok(names[1].clone())
        }
    }
}

/// A message's text, wherever it is kept.
pub fn body(home: &Home, message: &Message) -> Result<String> {
    match &message.envelope.body {
        Body::Inline(text) => Ok(text.clone()),
        Body::Filed { .. } => find_filed(home, message).map(|(_, text)| text),
    }
}

/// The file that has the length and hash which the fact holds.
fn find_filed(home: &Home, message: &Message) -> Result<(PathBuf, String)> {
    let Body::Filed { bytes, blake3 } = &message.envelope.body else {
        return Ok((PathBuf::new(), String::new()));
    };
    let names = names_of(home, message);
    let mut why = "its file is missing".to_owned();
    for path in &names {
        match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(io("look at", path)(error)),
            Ok(meta) if meta.len() != *bytes => {
                why = format!("its file has {} bytes instead of {bytes}", meta.len());
                continue;
            }
            Ok(_) => {}
        }
        let content = std::fs::read(path).map_err(io("read", path))?;
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

/// Writes and syncs every body that is too long for a fact, leaving its hash in the draft.
pub(crate) fn put_large_bodies(home: &Home, job: &mut Job) -> Result<()> {
    let Job::Post { now, drafts } = job else {
        return Ok(());
    };
    for draft in drafts {
        if let Body::Inline(text) = &draft.body
            && text.len() > INLINE_LIMIT
        {
            draft.body = put_filed(home, &names(home, &draft.to, *now, draft.id), text)?;
        }
    }
    Ok(())
}

/// Stores a body as a file that a fact may point to.
pub(crate) fn put_filed(home: &Home, names: &[PathBuf; 2], text: &str) -> Result<Body> {
    let blake3 = blake3::hash(text.as_bytes()).to_hex().to_string();
    if names.iter().any(|path| holds(path, text)) {
        // Tried before, with the same id: it is there.
        return Ok(Body::Filed {
            bytes: text.len() as u64,
            blake3,
        });
    }
    let (mut file, path) = match create_first(names)? {
        Some((file, path)) => (file, path.clone()),
        None => {
            let path = names[1].clone();
            (File::create(&path).map_err(io("write", &path))?, path)
        }
    };
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        // Best effort: what could not be written is of no use to anybody.
        let _ = std::fs::remove_file(&path);
        return Err(io("write", &path)(error));
    }
    let dir = path.parent().unwrap_or(home.path());
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(io("sync", dir))?;
    Ok(Body::Filed {
        bytes: text.len() as u64,
        blake3,
    })
}

/// Takes back files whose message was not stored.
pub(crate) fn drop_large_bodies(home: &Home, job: &Job) {
    if let Job::Post { now, drafts } = job {
        drafts
            .iter()
            .for_each(|draft| drop_large_body(home, *now, draft, None));
    }
}

/// Removes the file made for a draft, unless it is also the file of the message that stands.
fn drop_large_body(home: &Home, now: Timestamp, draft: &Draft, standing: Option<&Message>) {
    if let Body::Filed { bytes, .. } = &draft.body {
        let kept = standing.map(|message| names_of(home, message));
        for path in names(home, &draft.to, now, draft.id) {
            let is_kept = kept.as_ref().is_some_and(|kept| kept.contains(&path));
            if !is_kept && path.metadata().is_ok_and(|meta| meta.len() == *bytes) {
                // Best effort: an orphan file is untidy, not wrong.
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

/// Brings the files in line with what was committed, before the caller is answered.
pub(crate) fn settle(
    home: &Home,
    job: &Job,
    answer: &std::result::Result<Done, Denied>,
) -> Result<()> {
    match (job, answer) {
        (Job::Post { now, drafts }, Ok(Done::Posted(posted))) => {
            for (draft, posted) in drafts.iter().zip(posted) {
                let message = &posted.letter.message;
                match (&message.envelope.body, posted.is_new) {
                    (Body::Inline(text), true) => {
                        write_copy(&names_of(home, message), text)?;
                    }
                    (Body::Filed { .. }, true) => {}
                    (_, false) => drop_large_body(home, *now, draft, Some(message)),
                }
            }
        }
        (
            Job::Order {
                order: posthaste_core::Order::Delete,
                ..
            },
            Ok(Done::Ordered(ordered)),
        ) => {
            ordered
                .iter()
                .filter(|o| o.outcome == Outcome::Changed)
                .for_each(|o| remove_copy(home, &o.message));
        }
        (Job::Post { .. }, Err(_)) => drop_large_bodies(home, job),
        (Job::Post { .. } | Job::Order { .. } | Job::Inject { .. }, _) => {}
    }
    Ok(())
}

/// Removes the copy of a deleted message. A large body stays: the log has nothing else of it.
fn remove_copy(home: &Home, message: &Message) {
    if let Body::Inline(text) = &message.envelope.body {
        for path in names_of(home, message)
            .iter()
            .filter(|path| holds(path, text))
        {
            // Best effort: the message is deleted whatever becomes of its copy.
            let _ = std::fs::remove_file(path);
        }
    }
}
