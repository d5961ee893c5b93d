//! The WAL of a journal: turned on, kept short, and ready to be written over.
//!
//! SQLite's own ways with it are made for processes that live; ours end after one message. What
//! is done here is done before the first commit or after the answer, never in between.

use crate::error::{Error, Result, sqlite};
use crate::home::{private, sync_dir};
use crate::journal::Journal;
use rusqlite::ErrorCode;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A process that opens the journal alone reads the whole WAL, so no more is left in it than is
/// read in a moment. In pages, of which a message takes six.
const WAL_FRAMES: u32 = 30;

/// A WAL that a slow reader has let grow beyond this is cut off when it can be.
const WAL_BYTES: u64 = 1 << 20;

/// While a process writes on, nobody has to read the WAL anew, so more may gather in it.
const WAL_FRAMES_ON_THE_WAY: u32 = 2_000;
/// How much of it is laid out before it is needed, and how much at once: a few messages, and a
/// dozen. Less than what a short WAL has beyond its usual end, so that one that others keep short
/// is left as it is.
const READY_FRAMES: u32 = 16;
const STEP_FRAMES: u32 = 64;
/// A page and its header.
const FRAME_BYTES: u64 = 4_120;

impl Journal {
    /// Turns the WAL on. SQLite wants a new database alone for that and does not wait, while
    /// another process may be taking its first look at it: so this tries again, for a while.
    pub(crate) fn use_wal(&self) -> Result<()> {
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

    /// Makes the name of a WAL to which nobody has written yet outlive a power cut. SQLite would do
    /// so in every process that writes, and is told not to.
    pub(crate) fn sync_new_wal(&self) -> Result<()> {
        let wal = wal_of(&self.home.journal());
        if wal.metadata().is_ok_and(|meta| meta.len() == 0) {
            sync_dir(self.home.path())?;
        }
        Ok(())
    }

    /// For the end of a process: tidies up, and leaves the rest to the kernel, which closes
    /// everything in a fraction of the time.
    pub fn leave(self) -> Result<()> {
        let tidied = self.tidy();
        std::mem::forget(self);
        tidied
    }

    /// Moves what has gathered in the WAL into the database and begins it anew, if it is much.
    /// For after the answer, in a process that is about to end.
    pub fn tidy(&self) -> Result<()> {
        if self.wal_frames.load(Ordering::Relaxed) < WAL_FRAMES {
            return Ok(());
        }
        // It takes its turn like any writer; whoever has the turn now will see to it.
        let Some(_held) = self.lock.try_acquire()? else {
            return Ok(());
        };
        self.expect_in_place()?;
        let path = self.home.journal();
        if wal_of(&path)
            .metadata()
            .is_ok_and(|meta| meta.len() > WAL_BYTES)
        {
            self.checkpoint("TRUNCATE")?;
            self.lay_out_short_wal();
            return Ok(());
        }
        if self.checkpoint("PASSIVE")? {
            self.begin_wal_anew().map_err(sqlite(&path))?;
        }
        Ok(())
    }

    /// The same in a process that goes on: the WAL is written over from its beginning, once
    /// everything in it is moved, and nobody is shut out.
    pub(crate) fn tidy_on_the_way(&self) -> Result<()> {
        if self.wal_frames.load(Ordering::Relaxed) < WAL_FRAMES_ON_THE_WAY {
            return Ok(());
        }
        self.checkpoint("PASSIVE").map(drop)
    }

    /// Lays more of the WAL out in good time, until it has grown so long. For after a commit: what
    /// it holds is known only then.
    pub(crate) fn make_room(&mut self) -> Result<()> {
        let frames = self.wal_frames.load(Ordering::Relaxed);
        if frames >= WAL_FRAMES_ON_THE_WAY {
            return Ok(());
        }
        let is_anew = frames < std::mem::replace(&mut self.wal_seen, frames);
        if is_anew {
            self.wal_ready = 0;
        }
        let needed = frames + READY_FRAMES;
        if self.wal_ready < needed {
            self.expect_in_place()?;
            let wal = wal_of(&self.home.journal());
            let length = wal.metadata().map_or(0, |meta| meta.len() / FRAME_BYTES);
            self.wal_ready = u32::try_from(length).unwrap_or(u32::MAX);
            if self.wal_ready < needed {
                // Needs no lock: what is added at the end is in nobody's way. And once, whatever
                // comes of it: a full disk is not tried again with every commit.
                self.wal_ready = frames + STEP_FRAMES;
                self.lay_out_wal(self.wal_ready);
            }
        }
        Ok(())
    }

    /// Writes a first page over the beginning of a WAL of which everything is in the database.
    /// Without it, the next process could not know that, and would read all of it again. What is
    /// written must differ from what is there, or SQLite writes nothing.
    fn begin_wal_anew(&self) -> rusqlite::Result<()> {
        self.conn.execute_batch(
            "INSERT INTO home VALUES ('tidied', '1')
             ON CONFLICT(name) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
        )
    }

    /// Gives an emptied WAL its usual length again.
    pub(crate) fn lay_out_short_wal(&self) {
        self.lay_out_wal(WAL_FRAMES + 32);
    }

    /// Makes a WAL so long, in zeros, which mean nothing to SQLite. A commit that writes over them is
    /// synced in half the time of one that makes the file grow; where it cannot be done, commits
    /// are slower and nothing else.
    fn lay_out_wal(&self, frames: u32) {
        let lay_out = || {
            // At the end, wherever that is by now: nothing that is there is written over.
            let mut wal = private().append(true).open(wal_of(&self.home.journal()))?;
            let length = u64::from(frames) * FRAME_BYTES;
            let missing = length.saturating_sub(wal.metadata()?.len());
            std::io::copy(&mut std::io::repeat(0).take(missing), &mut wal)?;
            wal.sync_all()
        };
        let _ = lay_out();
    }

    /// Moves what it can from the WAL into the database; true where that was everything. Nobody
    /// is waited for: what a reader still needs stays, and is moved another time.
    pub(crate) fn checkpoint(&self, mode: &str) -> Result<bool> {
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

fn wal_of(journal: &Path) -> PathBuf {
    journal.with_extension("db-wal")
}
