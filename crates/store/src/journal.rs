//! A journal, open: one connection, the writers' lock, and the transaction that every write goes
//! through.

use crate::ahead::Ahead;
use crate::error::{Error, Result, is_failed_sync, sqlite};
use crate::home::{Home, private_file};
use crate::host::HostHold;
use crate::inode::FileId;
use crate::job::{Answer, Done, Durability, Job};
use crate::lock::{Held, WritersLock};
use crate::schema::{self, Position, VIEWS};
use crate::views::Views;
use crate::work::Log;
use crate::{bell, files};
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// How long a writer waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(pub Duration);

impl Patience {
    pub const DEFAULT: Self = Self(Duration::from_secs(10));
    /// For what an agent waits for at every prompt.
    pub const HOOK: Self = Self(Duration::from_millis(200));
}

/// How many facts are folded in, or imported, before others get their turn.
pub(crate) const STRETCH: u32 = 1_000;

/// In KiB, a quarter of SQLite's own choice. Half of that again would have a group of 64 messages
/// in a large journal write its pages twice.
const SMALL_CACHE: u32 = 512;

#[derive(Debug)]
pub struct Journal {
    pub(crate) home: Home,
    pub(crate) conn: Connection,
    /// The file that the connection has open.
    file: FileId,
    pub(crate) views: Views,
    pub(crate) patience: Patience,
    pub(crate) lock: WritersLock,
    origin: String,
    /// What the connection is set to; none where nobody can say.
    durability: Option<Durability>,
    /// How many pages the WAL held after this process's last commit.
    pub(crate) wal_frames: Arc<AtomicU32>,
    /// The same when it was last seen to; and how many it has room for, as far as this process has
    /// looked.
    pub(crate) wal_seen: u32,
    pub(crate) wal_ready: u32,
    _host: HostHold,
}

impl Journal {
    /// Opens the journal of a home, creating both where they are not there.
    pub fn open(home: Home, patience: Patience) -> Result<Self> {
        Self::open_with_views(home, patience, VIEWS)
    }

    /// Opens the journal of a home if anything was ever stored there; creates nothing.
    pub fn open_existing(home: Home, patience: Patience) -> Result<Option<Self>> {
        if home.has_journal()? {
            Self::open(home, patience).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Opens it with another version's views, as another version of this program would.
    #[doc(hidden)]
    pub fn open_with_views(home: Home, patience: Patience, views: u32) -> Result<Self> {
        home.prepare()?;
        let host = HostHold::claim(&home)?;
        let lock = WritersLock::of(&home);
        let path = home.journal();
        // Made here and not by SQLite, so that it is never readable to others.
        if !home.has_journal()? {
            private_file(&path)?;
        }
        let file = FileId::at(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Connection::open_with_flags(&path, flags).map_err(sqlite(&path))?;
        let wal_frames = Arc::default();
        configure(&mut conn, patience, &wal_frames).map_err(sqlite(&path))?;
        let views = Views { version: views };
        let mut journal = Self {
            home,
            conn,
            file,
            views,
            patience,
            lock,
            origin: String::new(),
            durability: Some(Durability::Synced),
            wal_frames,
            wal_seen: 0,
            wal_ready: 0,
            _host: host,
        };
        let position = journal.position()?;
        // SQLite has opened the journal by its name, and its WAL with the first look.
        journal.expect_in_place()?;
        match position {
            Some(position) => {
                journal.origin = position.origin;
                journal.sync_new_wal()?;
            }
            None => journal.create()?,
        }
        Ok(journal)
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// This home's own id.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    fn position(&self) -> Result<Option<Position>> {
        schema::position(&self.conn, self.views.version).map_err(sqlite(&self.home.journal()))
    }

    /// Makes the tables, unless another process was faster.
    fn create(&mut self) -> Result<()> {
        let path = self.home.journal();
        let _held = self.turn()?;
        let fresh = Uuid::new_v4().to_string();
        let version = self.views.version;
        self.use_wal()?;
        // A look is enough for SQLite to make the WAL.
        self.position()?;
        self.expect_in_place()?;
        self.sync_new_wal()?;
        in_transaction(&mut self.conn, |tx| schema::create(tx, version, &fresh))
            .map_err(sqlite(&path))?;
        // A journal that has lost its WAL should at least be known for one.
        if self.checkpoint("TRUNCATE")? {
            self.lay_out_short_wal();
        }
        self.origin = self.position()?.map_or(fresh, |position| position.origin);
        Ok(())
    }

    /// Takes this process's turn to write.
    pub(crate) fn turn(&self) -> Result<Held> {
        let held = self.lock.acquire(self.patience.0);
        // Without its home there is no lock to be had either; this says why.
        self.expect_in_place()?;
        held
    }

    /// Refuses where the home was removed or replaced since this journal was opened. SQLite would
    /// go on writing to a file that nobody finds any more.
    pub fn expect_in_place(&self) -> Result<()> {
        self.file.expect_at(&self.home.journal())
    }

    /// Takes the turn to write and keeps it, as a writer that hangs would.
    #[doc(hidden)]
    pub fn hold(&self) -> Result<impl Sized + use<>> {
        self.turn()
    }

    /// Runs `write` in one transaction, alone among writers, on views at head. It is handed the
    /// last fact's number and moves it on with each that it appends.
    pub(crate) fn write<T>(
        &mut self,
        durability: Durability,
        write: impl FnOnce(&Connection, Views, &mut u64) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let path = self.home.journal();
        let views = self.views;
        let mut write = Some(write);
        self.set_durability(durability)?;
        loop {
            let held = self.turn()?;
            let value = in_transaction(&mut self.conn, |tx| {
                let Some(position) = schema::position(tx, views.version)? else {
                    return Ok(None);
                };
                // What is far behind is folded in with the lock given up in between.
                if position.lag() > u64::from(STRETCH) {
                    return Ok(None);
                }
                let mut applied = position.applied;
                while applied < position.head {
                    applied = views.catch_up(tx, applied, STRETCH)?;
                }
                let Some(write) = write.take() else {
                    return Ok(None);
                };
                let mut head = position.head;
                let value = write(tx, views, &mut head)?;
                views.have_seen(tx, head - position.head)?;
                Ok(Some(value))
            });
            drop(held);
            match value {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.catch_up()?,
                Err(error) if is_failed_sync(&error) => {
                    return Err(Error::Uncertain(Box::new(sqlite(&path)(error))));
                }
                Err(error) => return Err(sqlite(&path)(error)),
            }
        }
    }

    /// Brings this binary's views to head, giving the lock up every thousand facts.
    pub fn catch_up(&mut self) -> Result<()> {
        let path = self.home.journal();
        loop {
            match self.position()? {
                Some(position) if position.lag() == 0 => return Ok(()),
                Some(_) => {}
                // Somebody threw this version's views away.
                None => self.create()?,
            }
            let held = self.turn()?;
            let views = self.views;
            let caught = in_transaction(&mut self.conn, |tx| {
                let applied =
                    schema::position(tx, views.version)?.map_or(0, |position| position.applied);
                views.catch_up(tx, applied, STRETCH)
            });
            drop(held);
            caught.map_err(sqlite(&path))?;
            // A checkpoint that fails now is tried again by the next writer.
            let _ = self.tidy();
        }
    }

    /// Throws this binary's views away and derives them anew from the facts.
    pub fn rebuild_views(&mut self) -> Result<()> {
        let path = self.home.journal();
        let held = self.turn()?;
        let version = self.views.version;
        let emptied = in_transaction(&mut self.conn, |tx| {
            schema::drop_views(tx, version)?;
            schema::create_views(tx, version)
        });
        drop(held);
        emptied.map_err(sqlite(&path))?;
        self.catch_up()
    }

    /// Does one piece of work: decided, committed, synced, filed; then the bells ring.
    pub fn commit(&mut self, mut job: Job) -> Result<Answer> {
        let made = files::put_large_bodies(&self.home, &mut job)?;
        let answer = self.commit_all(std::slice::from_ref(&job));
        let mut answer = match answer {
            Ok((mut answers, _)) => answers.pop().ok_or(Error::WriterGone)?,
            Err(error) => {
                files::take_back_after(&error, &made);
                return Err(error);
            }
        };
        files::settle(&self.home, &job, &made, &Ahead::default(), &mut answer);
        bell::ring(&self.home, &touched(std::slice::from_ref(&answer)));
        Ok(answer)
    }

    /// Does several pieces of work in one transaction, synced if one of them needs it. Files and
    /// bells are the caller's. Gives back the number of the journal's last fact, too.
    pub(crate) fn commit_all(&mut self, jobs: &[Job]) -> Result<(Vec<Answer>, u64)> {
        let origin = self.origin.clone();
        let answers = self.write(Job::durability_of(jobs), |conn, views, head| {
            let mut log = Log {
                conn,
                views,
                origin: &origin,
                head,
            };
            let answers = jobs.iter().map(|job| log.carry_out(job));
            let answers = answers.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok((answers, *log.head))
        });
        // As a connection usually is. Where that fails, the next write insists on it.
        let _ = self.set_durability(Durability::Synced);
        answers
    }

    /// Bounds SQLite's memory, for a process that stays: room for the pages of a group of commits,
    /// and no more.
    pub(crate) fn keep_small(&self) -> Result<()> {
        self.conn
            .execute_batch(&format!("PRAGMA cache_size = -{SMALL_CACHE}"))
            .map_err(sqlite(&self.home.journal()))
    }

    /// Has the commits that follow synced, or not.
    fn set_durability(&mut self, wanted: Durability) -> Result<()> {
        if self.durability == Some(wanted) {
            return Ok(());
        }
        let level = match wanted {
            Durability::Synced => "FULL",
            Durability::Unsynced => "NORMAL",
        };
        self.durability = None;
        self.conn
            .execute_batch(&format!("PRAGMA synchronous = {level}"))
            .map_err(sqlite(&self.home.journal()))?;
        self.durability = Some(wanted);
        Ok(())
    }
}

/// The agents whose bells are to ring.
pub(crate) fn touched(answers: &[Answer]) -> Vec<posthaste_core::AgentName> {
    let mut agents: Vec<_> = answers.iter().flatten().flat_map(Done::agents).collect();
    agents.sort_unstable();
    agents.dedup();
    agents
}

/// Runs `work` in a transaction that has SQLite's write lock from its first moment.
fn in_transaction<T>(
    conn: &mut Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = work(&tx)?;
    tx.commit()?;
    Ok(value)
}

fn configure(
    conn: &mut Connection,
    patience: Patience,
    wal_frames: &Arc<AtomicU32>,
) -> rusqlite::Result<()> {
    conn.busy_timeout(patience.0)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Else a partial index makes SQLite compile a statement again for every value bound to it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    let wal_frames = wal_frames.clone();
    // In the place of SQLite's own hook, which would checkpoint before the answer.
    conn.wal_hook(Some(move |_: &mut Wal, frames: i32| {
        wal_frames.store(frames.unsigned_abs(), Ordering::Relaxed);
        Ok(())
    }))?;
    // SQLite syncs every commit unless told otherwise (a test holds it to that); to say so again
    // would cost every process a look at the schema. On macOS a plain sync stops at the drive.
    if cfg!(target_os = "macos") {
        conn.execute_batch("PRAGMA fullfsync = ON")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_is_synced_and_none_checkpoints_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let journal =
            Journal::open(Home::open(dir.path(), None).unwrap(), Patience::DEFAULT).unwrap();
        let ask = |pragma: &str| -> i64 {
            journal
                .conn
                .query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
                .unwrap()
        };
        const FULL: i64 = 2;
        assert_eq!(ask("synchronous"), FULL);
        assert_eq!(ask("wal_autocheckpoint"), 0);
        let mode: String = journal
            .conn
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn what_must_be_synced_is_synced_whatever_came_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal =
            Journal::open(Home::open(dir.path(), None).unwrap(), Patience::DEFAULT).unwrap();
        let level = |conn: &Connection| -> i64 {
            let ask = conn.query_row("PRAGMA synchronous", [], |row| row.get(0));
            ask.unwrap()
        };
        let [normal, full] = [1, 2];
        let mut write = |durability| journal.write(durability, |conn, _, _| Ok(level(conn)));
        assert_eq!(write(Durability::Unsynced).unwrap(), normal);
        assert_eq!(write(Durability::Synced).unwrap(), full);
        assert_eq!(write(Durability::Unsynced).unwrap(), normal);
        // SQLite changes nothing in the middle of a transaction: then nothing is written at all.
        journal.conn.execute_batch("BEGIN").unwrap();
        journal.set_durability(Durability::Synced).unwrap_err();
        let write = journal.write(Durability::Synced, |conn, _, _| Ok(level(conn)));
        write.unwrap_err();
        journal.conn.execute_batch("ROLLBACK").unwrap();
        let write = journal.write(Durability::Synced, |conn, _, _| Ok(level(conn)));
        assert_eq!(write.unwrap(), full);
        let job = Job::Inject {
            now: jiff::Timestamp::UNIX_EPOCH,
            agent: posthaste_core::AgentName::human(),
        };
        journal.commit(job).unwrap().unwrap();
        assert_eq!(level(&journal.conn), full);
    }
}
