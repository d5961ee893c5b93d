//! Message files: each message's body as a file that its agent can read.
//!
//! Small bodies live in the journal and their files are copies, made after the commit and made
//! again when lost. A body over 1 MiB is the other way round: its file is written and synced
//! first, and the fact holds its length and hash. File names are derived from the fact, never
//! taken from it.

pub(crate) mod prewrite;

use crate::error::{Error, Result, io};
use crate::files::prewrite::Ahead;
use crate::home::{Home, guard, private, sync_dir};
use crate::journal::file_id::FileId;
use crate::operation::{Answer, Done, Job, Outcome};
use jiff::Timestamp;
use posthaste_core::message::INLINE_LIMIT;
use posthaste_core::{AgentName, Body, Message, MessageId};
use std::fs::File;
use std::io::{ErrorKind, Write};
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

/// The most bytes that the path of a message's file has in this inbox.
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

/// Creates the first of `names` that is free, with its directory if need be.
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
        Some((file, path)) => {
            fill(file, path, text)?;
            Ok(path.clone())
        }
        // Both names are taken: the second is this message's alone, and somebody changed it.
        None => {
            let path = &names[1];
            let file = private().write(true).truncate(true).open(path);
            fill(file.map_err(io("write", path))?, path, text)?;
            Ok(path.clone())
        }
    }
}

/// Writes a new file, or leaves none: half a body is of no use to anybody.
fn fill(mut file: File, path: &PathBuf, text: &str) -> Result<File> {
    if let Err(error) = file.write_all(text.as_bytes()) {
        take_back([path]);
        return Err(io("write", path)(error));
    }
    Ok(file)
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

/// The files made for a job's large bodies, draft by draft. Whatever comes of the job, no other
/// file is ever taken back: the same message may be on its way in by another door.
pub(crate) type Made = Vec<Option<PathBuf>>;

/// Writes and syncs every body that is too long for a fact, leaving its hash in the draft.
pub(crate) fn put_large_bodies(home: &Home, job: &mut Job) -> Result<Made> {
    let mut made = Made::new();
    let Job::Post { now, drafts } = job else {
        return Ok(made);
    };
    for draft in drafts {
        let file = match &draft.body {
            Body::Inline(text) if text.len() > INLINE_LIMIT => {
                // A home that was removed is not made again for a body alone.
                let there = FileId::at(&home.journal());
                let names = names(home, &draft.to, *now, draft.id);
                match there.and_then(|_| put_filed(&names, text)) {
                    Ok((body, file)) => {
                        draft.body = body;
                        file
                    }
                    Err(error) => {
                        take_back(made.iter().flatten());
                        return Err(error);
                    }
                }
            }
            Body::Inline(_) | Body::Filed { .. } => None,
        };
        made.push(file);
    }
    Ok(made)
}

/// Stores a body as a file that a fact may point to; says which, if it had to make one.
pub(crate) fn put_filed(names: &[PathBuf; 2], text: &str) -> Result<(Body, Option<PathBuf>)> {
    let body = Body::Filed {
        bytes: text.len() as u64,
        blake3: blake3::hash(text.as_bytes()).to_hex().to_string(),
    };
    let Some((file, path)) = create_first(names)? else {
        // Tried before, with the same id: then it is there. Nothing else may be overwritten.
        return if names.iter().any(|path| holds(path, text)) {
            Ok((body, None))
        } else {
            Err(io("create", &names[1])(ErrorKind::AlreadyExists.into()))
        };
    };
    // Its own name, and that of a directory made for it, must be as lasting as its content.
    let mut dirs = path.ancestors().skip(1).take(2);
    let synced = fill(file, path, text)?
        .sync_all()
        .map_err(io("sync", path))
        .and_then(|()| dirs.try_for_each(sync_dir));
    match synced {
        Ok(()) => Ok((body, Some(path.clone()))),
        Err(error) => {
            take_back([path]);
            Err(error)
        }
    }
}

/// Removes files whose message was not stored.
pub(crate) fn take_back<'a>(made: impl IntoIterator<Item = &'a PathBuf>) {
    for path in made {
        // Best effort: an orphan file is untidy, not wrong.
        let _ = std::fs::remove_file(path);
    }
}

/// The same after an error, unless the message may be there all the same and need its body.
pub(crate) fn take_back_after(error: &Error, made: &Made) {
    if !error.is_uncertain() {
        take_back(made.iter().flatten());
    }
}

/// Brings the files in line with what was committed, before the caller is answered. Nothing of it
/// can undo the commit, so nothing of it fails: a copy that cannot be made now is made when it is
/// asked for, and its sender is told.
pub(crate) fn settle(home: &Home, job: &Job, made: &Made, ahead: &Ahead, answer: &mut Answer) {
    match (job, answer) {
        (Job::Post { .. }, Ok(Done::Posted(posted))) => {
            for (draft, (posted, made)) in posted.iter_mut().zip(made).enumerate() {
                let message = &posted.letter.message;
                match (&message.envelope.body, posted.is_new) {
                    (Body::Inline(text), true) => {
                        let names = names_of(home, message);
                        if ahead.name(draft, text, &names).is_none() {
                            let copy = write_copy(&names, text);
                            posted.unfiled = copy.err().map(|error| error.to_string());
                        }
                    }
                    (Body::Filed { .. }, true) => {}
                    // It stood there already; only if its own file was lost is this one needed.
                    (_, false) => {
                        let is_its_own = |path: &&PathBuf| {
                            find_filed(home, message).is_ok_and(|(found, _)| found == **path)
                        };
                        take_back(made.iter().filter(|path| !is_its_own(path)));
                    }
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
        (Job::Post { .. }, Err(_)) => take_back(made.iter().flatten()),
        (
            Job::Post { .. }
            | Job::Order { .. }
            | Job::Inject { .. }
            | Job::Offer { .. }
            | Job::Say { .. }
            | Job::Uncertain { .. }
            | Job::Expire { .. }
            | Job::Started { .. }
            | Job::Conversation { .. }
            | Job::Ended { .. }
            | Job::AddTask { .. }
            | Job::MoveTask { .. }
            | Job::AddNote { .. }
            | Job::Complete { .. }
            | Job::Loop { .. },
            _,
        ) => {}
    }
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
