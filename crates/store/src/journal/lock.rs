//! Locks between processes: kernel locks on files, whose waiters sleep until a timeout.
//!
//! Writers of all processes queue on the writers' lock, so that SQLite's own lock, which polls, is
//! never contended.

use crate::error::{Error, Result, io};
use crate::home::{Home, data_file, guard, private_file};
use posthaste_core::AgentName;
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// Length of the holder's record. It is fixed, so that a short record leaves nothing of a longer
/// one.
const HOLDER_RECORD_BYTES: usize = 64;
/// Longest name of a command in the holder's record.
const HOLDER_COMMAND_CHARS: usize = 32;

#[derive(Debug)]
pub(crate) struct WritersLock {
    path: PathBuf,
}

/// The writers' lock, held until this is dropped.
#[derive(Debug)]
pub(crate) struct LockGuard {
    // Closing the file releases the lock.
    _file: File,
}

impl LockGuard {
    /// Write the holder's record to the file.
    fn new(file: File) -> Self {
        // The record is for a waiter's error message only, so a failure is ignored.
        let _ = file.write_all_at(&holder_record(), 0);
        Self { _file: file }
    }
}

impl WritersLock {
    pub(crate) fn of(home: &Home) -> Self {
        Self { path: home.lock() }
    }

    pub(crate) fn acquire(&self, patience: Duration) -> Result<LockGuard> {
        let file = private_file(&self.path)?;
        match lock_within(file, patience).map_err(io("lock", &self.path))? {
            Some(file) => Ok(LockGuard::new(file)),
            None => Err(Error::Busy {
                waited: Some(patience),
                holder: self.holder(),
            }),
        }
    }

    /// Acquire the lock only if it is free.
    pub(crate) fn try_acquire(&self) -> Result<Option<LockGuard>> {
        let locked = lock_within(private_file(&self.path)?, Duration::ZERO);
        Ok(locked.map_err(io("lock", &self.path))?.map(LockGuard::new))
    }

    fn holder(&self) -> String {
        let read = || {
            let mut bytes = [0; HOLDER_RECORD_BYTES];
            let file = data_file::open(&self.path, OFlags::NOFOLLOW).ok()?;
            let count = file.read_at(&mut bytes, 0).ok()?;
            let text = String::from_utf8_lossy(&bytes[..count]);
            let line = posthaste_core::text::one_line(text.lines().next()?, HOLDER_RECORD_BYTES);
            (!line.is_empty()).then_some(line)
        };
        read().unwrap_or_else(|| "another process".to_owned())
    }
}

/// Lock for the hooks that print an agent's mail, held from the start of an offer until its outcome
/// is recorded. An offer that is still open when the lock is acquired was therefore cut off.
#[derive(Debug)]
pub struct InjectLock {
    // Closing the file releases the lock.
    _file: File,
}

impl InjectLock {
    /// Take the lock, or return `None` if another hook keeps it for longer than `patience`.
    pub fn acquire(home: &Home, agent: &AgentName, patience: Duration) -> Result<Option<Self>> {
        let path = home.inject_lock(agent);
        if let Some(dir) = path.parent() {
            guard::make_dirs(home.path(), dir)?;
        }
        let locked = lock_within(private_file(&path)?, patience).map_err(io("lock", &path))?;
        Ok(locked.map(|file| Self { _file: file }))
    }

    /// Take the lock only if no hook has it.
    pub fn try_acquire(home: &Home, agent: &AgentName) -> Result<Option<Self>> {
        Self::acquire(home, agent, Duration::ZERO)
    }
}

/// Lock a file exclusively, or return `None` after `patience`. A thread waits for the lock, because
/// the kernel's wait has no timeout. If the thread gets the lock late, it releases it at once.
pub(crate) fn lock_within(file: File, patience: Duration) -> std::io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => return Ok(Some(file)),
        Err(TryLockError::WouldBlock) if patience.is_zero() => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("lock".to_owned())
        .spawn(move || {
            let locked = file.lock().map(|()| file);
            // After the timeout this fails, and dropping the file releases the lock.
            let _ = sender.send(locked);
        })?;
    match receiver.recv_timeout(patience) {
        Ok(locked) => locked.map(Some),
        Err(_) => Ok(None),
    }
}

fn holder_record() -> [u8; HOLDER_RECORD_BYTES] {
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    let verb: String = verb
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_graphic)
        .take(HOLDER_COMMAND_CHARS)
        .collect();
    let mut bytes = [b'\n'; HOLDER_RECORD_BYTES];
    let text = format!("process {} (ph {verb})", std::process::id());
    let count = text.len().min(HOLDER_RECORD_BYTES - 1);
    bytes[..count].copy_from_slice(&text.as_bytes()[..count]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_gives_up_at_its_timeout_and_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WritersLock::of(&Home::open(dir.path(), None).unwrap());
        let held = lock.acquire(Duration::from_secs(10)).unwrap();
        let error = lock.acquire(Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        drop(held);
        // The thread whose waiter gave up may hold the lock for a moment.
        drop(lock.acquire(Duration::from_secs(10)).unwrap());
    }

    #[test]
    fn a_waiter_gets_the_lock_when_it_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path(), None).unwrap();
        let held = WritersLock::of(&home)
            .acquire(Duration::from_secs(10))
            .unwrap();
        let waiter = std::thread::spawn(move || {
            WritersLock::of(&home)
                .acquire(Duration::from_secs(10))
                .map(drop)
        });
        drop(held);
        waiter.join().unwrap().unwrap();
    }
}
