//! The write-ahead log of a journal: turned on, kept short, and extended before it is needed.
//!
//! SQLite maintains its WAL for processes that live on; most of ours end after one message. All
//! work here is done before the first commit or after the acknowledgement, never in between.

use crate::error::{Error, Result, sqlite};
use crate::home::{private, sync_dir};
use crate::journal::Journal;
use rusqlite::ErrorCode;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Pages in the WAL after which a process that ends checkpoints it. The next process reads the
/// whole WAL, and a message takes six pages.
const SHORT_WAL_FRAMES: u32 = 30;
/// Pages in the WAL after which a process that goes on checkpoints it.
const LONG_WAL_FRAMES: u32 = 2_000;
/// Size beyond which a WAL, grown because of a slow reader, is truncated.
const TRUNCATED_WAL_BYTES: u64 = 1 << 20;

/// Pages for which a WAL that was emptied has room beyond [`SHORT_WAL_FRAMES`].
const SHORT_WAL_SPARE_FRAMES: u32 = 32;
/// Room, in pages, below which the WAL is extended: a few messages. It is less than
/// [`SHORT_WAL_SPARE_FRAMES`], so that a WAL that other processes keep short is not extended.
const MIN_ROOM_FRAMES: u32 = 16;
/// Pages by which the WAL is extended: a dozen messages.
const EXTENSION_FRAMES: u32 = 64;
/// A page and its header.
const FRAME_BYTES: u64 = 4_120;

impl Journal {
    /// Turn the WAL on. SQLite needs a new database to itself for that and does not wait, but
    /// another process may be opening it: retry until the timeout.
    pub(super) fn use_wal(&self) -> Result<()> {
        let path = self.home.journal();
        let deadline = Instant::now() + self.patience.0;
        loop {
            let mode = self
                .conn
                .pragma_update_and_check(None, "journal_mode", "wal", |row| {
                    row.get::<_, String>(0)
                });
            match mode {
                Ok(mode) if mode == "wal" => return Ok(()),
                Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                    return Err(sqlite(&path)(error));
                }
                Ok(_) | Err(_) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(_) | Err(_) => {
                    let holder = "another process".to_owned();
                    let waited = Some(self.patience.0);
                    return Err(Error::Busy { waited, holder });
                }
            }
        }
    }

    /// Sync the directory entry of a WAL that was never written to. SQLite would do so in every
    /// process that writes, and is configured not to.
    pub(super) fn sync_new_wal(&self) -> Result<()> {
        let wal = wal_path(&self.home.journal());
        if wal.metadata().is_ok_and(|meta| meta.len() == 0) {
            sync_dir(self.home.path())?;
        }
        Ok(())
    }

    /// Checkpoint at the end of a process, without closing the journal: the kernel does that much
    /// faster.
    pub fn leave(self) -> Result<()> {
        let tidied = self.tidy();
        std::mem::forget(self);
        tidied
    }

    /// Checkpoint and restart the WAL, if it has more than `SHORT_WAL_FRAMES` pages. Called after
    /// the acknowledgement, by a process that is about to end.
    pub fn tidy(&self) -> Result<()> {
        if self.wal_frames.load(Ordering::Relaxed) < SHORT_WAL_FRAMES {
            return Ok(());
        }
        // If another writer has the lock, that one will checkpoint.
        let Some(_guard) = self.lock.try_acquire()? else {
            return Ok(());
        };
        self.expect_in_place()?;
        let path = self.home.journal();
        if wal_path(&path)
            .metadata()
            .is_ok_and(|meta| meta.len() > TRUNCATED_WAL_BYTES)
        {
            self.checkpoint("TRUNCATE")?;
            self.extend_short_wal();
            return Ok(());
        }
        if self.checkpoint("PASSIVE")? {
            self.restart_wal().map_err(sqlite(&path))?;
        }
        Ok(())
    }

    /// Checkpoint the WAL in a process that goes on, if it has more than [`LONG_WAL_FRAMES`] pages.
    /// No other process is kept waiting.
    pub(super) fn checkpoint_long_wal(&self) -> Result<()> {
        if self.wal_frames.load(Ordering::Relaxed) < LONG_WAL_FRAMES {
            return Ok(());
        }
        self.checkpoint("PASSIVE").map(drop)
    }

    /// Extend the WAL before its room is used up. Called after a commit, when its length is known.
    pub(super) fn extend_wal(&mut self) -> Result<()> {
        let frames = self.wal_frames.load(Ordering::Relaxed);
        if frames >= LONG_WAL_FRAMES {
            return Ok(());
        }
        let is_restarted = frames < std::mem::replace(&mut self.wal_frames_seen, frames);
        if is_restarted {
            self.wal_frames_ready = 0;
        }
        let needed = frames + MIN_ROOM_FRAMES;
        if self.wal_frames_ready < needed {
            self.expect_in_place()?;
            let wal = wal_path(&self.home.journal());
            let length = wal.metadata().map_or(0, |meta| meta.len() / FRAME_BYTES);
            self.wal_frames_ready = u32::try_from(length).unwrap_or(u32::MAX);
            if self.wal_frames_ready < needed {
                // No lock is needed, because zeros at the end disturb no process. A failure counts
                // as done, so that a full disk is not tried again with every commit.
                self.wal_frames_ready = frames + EXTENSION_FRAMES;
                self.extend_wal_to(self.wal_frames_ready);
            }
        }
        Ok(())
    }

    /// Overwrite the start of a WAL that is checkpointed completely, by changing a row. Otherwise
    /// the next process could not tell, and would read all of it. The new value must differ from
    /// the old one, or SQLite writes nothing.
    fn restart_wal(&self) -> rusqlite::Result<()> {
        self.conn.execute_batch(
            "INSERT INTO home VALUES ('tidied', '1')
             ON CONFLICT(name) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
        )
    }

    /// Extend a WAL that was truncated to its usual length.
    pub(super) fn extend_short_wal(&self) {
        self.extend_wal_to(SHORT_WAL_FRAMES + SHORT_WAL_SPARE_FRAMES);
    }

    /// Extend the WAL to a length with zeros, which SQLite ignores. To sync a commit that
    /// overwrites them takes half the time of one that makes the file grow. If this fails, commits
    /// are slower.
    fn extend_wal_to(&self, frames: u32) {
        let extend = || {
            // Append, because another process may be writing to the WAL.
            let mut wal = private()
                .append(true)
                .open(wal_path(&self.home.journal()))?;
            let length = u64::from(frames) * FRAME_BYTES;
            let missing = length.saturating_sub(wal.metadata()?.len());
            std::io::copy(&mut std::io::repeat(0).take(missing), &mut wal)?;
            wal.sync_all()
        };
        let _ = extend();
    }

    /// Move pages from the WAL into the database, without waiting for readers that still need them.
    /// Return whether all pages were moved.
    pub(super) fn checkpoint(&self, mode: &str) -> Result<bool> {
        let checkpoint = || {
            self.conn.busy_timeout(Duration::ZERO)?;
            let moved = self
                .conn
                .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
                    let (busy, frames, moved): (bool, i64, i64) =
                        (row.get(0)?, row.get(1)?, row.get(2)?);
                    Ok(!busy && frames == moved)
                });
            self.conn.busy_timeout(self.patience.0)?;
            moved
        };
        checkpoint().map_err(sqlite(&self.home.journal()))
    }
}

fn wal_path(journal: &Path) -> PathBuf {
    journal.with_extension("db-wal")
}
