//! An open journal: one connection, the writers' lock, and the transaction of every write.
//!
//! Facts are written by [`Journal::commit`], [`Writer`](group::Writer) and imports alone, always
//! under the writers' lock and together with the views.

pub mod bell;
pub mod follow;
pub mod group;
pub mod health;
pub(crate) mod lock;
pub(crate) mod transaction;
mod wal;

use crate::error::{Error, Result, is_failed_sync, sqlite};
use crate::files::{Prewrite, StoredBodies};
use crate::home::file_id::FileId;
use crate::home::host::HostClaim;
use crate::home::{Home, private_file};
use crate::operation::{Decided, Durability, Operation};
use crate::views::Views;
use crate::views::schema::{self, Position, VIEWS_VERSION};
use lock::{LockGuard, WritersLock};
use posthaste_core::AgentName;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use transaction::Transaction;
use uuid::Uuid;

/// Timeout of a writer that waits for the writers' lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(pub Duration);

impl Patience {
    pub const DEFAULT: Self = Self(Duration::from_secs(10));
    /// Timeout in a hook, which an agent waits for at every prompt.
    pub const HOOK: Self = Self(Duration::from_millis(200));
}

/// Facts that are applied or imported before the writers' lock is released to others.
pub(crate) const FACTS_PER_TURN: u32 = 1_000;

/// Page cache of a process that keeps the journal open: a quarter of SQLite's default. With half of
/// that, a group of 64 messages in a large journal would write its pages twice.
const SMALL_CACHE_KIB: u32 = 512;

const STATEMENT_CACHE_CAPACITY: usize = 64;

#[derive(Debug)]
pub struct Journal {
    pub(crate) home: Home,
    pub(crate) conn: Connection,
    /// The database file that the connection has open.
    file: FileId,
    views_version: u32,
    pub(crate) patience: Patience,
    lock: WritersLock,
    origin: String,
    /// Setting of the connection; `None` if a change of it has failed.
    durability: Option<Durability>,
    /// Pages in the WAL after the last commit of this process.
    wal_frames: Arc<AtomicU32>,
    /// `wal_frames` when the WAL was last extended.
    wal_frames_seen: u32,
    /// Pages for which the WAL has room, as far as this process knows.
    wal_frames_ready: u32,
    _host: HostClaim,
}

/// Result of an operation that was tried. Its message files are still to be written.
#[derive(Debug)]
struct Attempt<O: Operation> {
    operation: O,
    bodies: StoredBodies,
    result: Result<Decided<O::Output>>,
}

impl<O: Operation> Attempt<O> {
    fn settle(self, home: &Home, prewrite: &Prewrite) -> Result<Decided<O::Output>> {
        match self.result {
            Ok(mut decided) => {
                let bodies = &self.bodies;
                self.operation
                    .settle_files(home, bodies, prewrite, &mut decided);
                Ok(decided)
            }
            Err(error) => {
                // After an uncertain commit the message may be stored, and need its body.
                if !error.is_uncertain() {
                    self.bodies.remove();
                }
                Err(error)
            }
        }
    }
}

impl Journal {
    /// Open the journal of a home, creating both if they do not exist.
    pub fn open(home: Home, patience: Patience) -> Result<Self> {
        Self::open_with_views(home, patience, VIEWS_VERSION)
    }

    /// Open the journal of a home if it exists. Create nothing.
    pub fn open_existing(home: Home, patience: Patience) -> Result<Option<Self>> {
        if home.is_readable()? && home.has_journal()? {
            Self::open(home, patience).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Open a journal with another version's views, as another version of this program would.
    #[doc(hidden)]
    pub fn open_with_views(home: Home, patience: Patience, views_version: u32) -> Result<Self> {
        home.prepare()?;
        let host = HostClaim::acquire(&home)?;
        let lock = WritersLock::of(&home);
        let path = home.journal();
        // If SQLite created the file, other users could read it for a moment.
        if !home.has_journal()? {
            private_file(&path)?;
        }
        let file = FileId::at(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Connection::open_with_flags(&path, flags).map_err(sqlite(&path))?;
        let wal_frames = Arc::default();
        configure(&mut conn, patience, &wal_frames).map_err(sqlite(&path))?;
        let mut journal = Self {
            home,
            conn,
            file,
            views_version,
            patience,
            lock,
            origin: String::new(),
            durability: Some(Durability::Synced),
            wal_frames,
            wal_frames_seen: 0,
            wal_frames_ready: 0,
            _host: host,
        };
        let position = journal.position()?;
        // SQLite has opened the journal by its name, and the WAL with the first query.
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

    /// Return the id of this home.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn views(&self) -> Views<'_> {
        Views {
            conn: &self.conn,
            version: self.views_version,
        }
    }

    fn position(&self) -> Result<Option<Position>> {
        schema::position(&self.conn, self.views_version).map_err(sqlite(&self.home.journal()))
    }

    /// Create the tables, unless another process was faster.
    fn create(&mut self) -> Result<()> {
        let path = self.home.journal();
        let _guard = self.lock()?;
        let fresh = Uuid::new_v4().to_string();
        let version = self.views_version;
        self.use_wal()?;
        // A query makes SQLite create the WAL.
        self.position()?;
        self.expect_in_place()?;
        self.sync_new_wal()?;
        in_transaction(&mut self.conn, |tx| schema::create(tx, version, &fresh))
            .map_err(sqlite(&path))?;
        // A journal whose WAL is lost should still be recognised as a journal.
        if self.checkpoint("TRUNCATE")? {
            self.extend_short_wal();
        }
        self.origin = self.position()?.map_or(fresh, |position| position.origin);
        Ok(())
    }

    /// Acquire the writers' lock.
    fn lock(&self) -> Result<LockGuard> {
        let guard = self.lock.acquire(self.patience.0);
        // If the home is gone the lock fails too, with a less useful error.
        self.expect_in_place()?;
        guard
    }

    /// Fail if the home was removed or replaced since this journal was opened. SQLite would go on
    /// writing to a file that no other process can find.
    pub fn expect_in_place(&self) -> Result<()> {
        self.file.expect_at(&self.home.journal())
    }

    /// Acquire the writers' lock and keep it, as a writer that hangs would.
    #[doc(hidden)]
    pub fn hold(&self) -> Result<impl Sized + use<>> {
        self.lock()
    }

    /// Run `operation`, commit and sync it, write its message files, and ring the bells.
    pub fn commit<O: Operation>(&mut self, mut operation: O) -> Result<Decided<O::Output>> {
        let bodies = operation.store_bodies(&self.home)?;
        let written = self.write(operation.durability(), |tx| operation.run(tx));
        let (result, agents) = match written {
            Ok((decided, agents)) => (Ok(decided), agents),
            Err(error) => (Err(error), Vec::new()),
        };
        let attempt = Attempt {
            operation,
            bodies,
            result,
        };
        let decided = attempt.settle(&self.home, &Prewrite::default());
        bell::ring(&self.home, &agents);
        decided
    }

    /// Run `write` in one transaction, under the writers' lock and on views at head. Message files,
    /// and the bells of the agents that are returned, are left to the caller.
    pub(crate) fn write<T>(
        &mut self,
        durability: Durability,
        write: impl FnOnce(&mut Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<(T, Vec<AgentName>)> {
        self.set_durability(durability)?;
        let written = self.write_at_head(write);
        // Synced is the usual setting. If this fails, the next write insists on its own.
        let _ = self.set_durability(Durability::Synced);
        written
    }

    fn write_at_head<T>(
        &mut self,
        write: impl FnOnce(&mut Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<(T, Vec<AgentName>)> {
        let path = self.home.journal();
        let version = self.views_version;
        let mut write = Some(write);
        loop {
            let guard = self.lock()?;
            let origin = self.origin.as_str();
            let written = in_transaction(&mut self.conn, |conn| {
                let Some(position) = schema::position(conn, version)? else {
                    return Ok(None);
                };
                // Views that are far behind are brought to head in several transactions.
                if position.lag() > u64::from(FACTS_PER_TURN) {
                    return Ok(None);
                }
                let views = Views { conn, version };
                let mut applied = position.applied;
                while applied < position.head {
                    applied = views.catch_up(applied, FACTS_PER_TURN)?;
                }
                let Some(write) = write.take() else {
                    return Ok(None);
                };
                let mut tx = Transaction::new(views, origin, position.head);
                let value = write(&mut tx)?;
                Ok(Some((value, tx.finish()?)))
            });
            drop(guard);
            match written {
                Ok(Some(written)) => return Ok(written),
                Ok(None) => self.catch_up()?,
                Err(error) if is_failed_sync(&error) => {
                    return Err(Error::Uncertain(Box::new(sqlite(&path)(error))));
                }
                Err(error) => return Err(sqlite(&path)(error)),
            }
        }
    }

    /// Bring the views to head, releasing the writers' lock every `FACTS_PER_TURN` facts.
    pub fn catch_up(&mut self) -> Result<()> {
        let path = self.home.journal();
        let version = self.views_version;
        loop {
            match self.position()? {
                Some(position) if position.lag() == 0 => return Ok(()),
                Some(_) => {}
                // Another process has thrown this version's views away.
                None => self.create()?,
            }
            let guard = self.lock()?;
            let caught_up = in_transaction(&mut self.conn, |conn| {
                let position = schema::position(conn, version)?;
                let applied = position.map_or(0, |position| position.applied);
                Views { conn, version }.catch_up(applied, FACTS_PER_TURN)
            });
            drop(guard);
            caught_up.map_err(sqlite(&path))?;
            // A checkpoint that fails is tried again by the next writer.
            let _ = self.tidy();
        }
    }

    /// Throw the views away and derive them again from the facts.
    pub fn rebuild_views(&mut self) -> Result<()> {
        let path = self.home.journal();
        let guard = self.lock()?;
        let version = self.views_version;
        let emptied = in_transaction(&mut self.conn, |tx| {
            schema::drop_views(tx, version)?;
            schema::create_views(tx, version)
        });
        drop(guard);
        emptied.map_err(sqlite(&path))?;
        self.catch_up()
    }

    /// Limit SQLite's memory, in a process that keeps the journal open.
    fn limit_cache(&self) -> Result<()> {
        self.conn
            .execute_batch(&format!("PRAGMA cache_size = -{SMALL_CACHE_KIB}"))
            .map_err(sqlite(&self.home.journal()))
    }

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

/// Run `work` in a transaction that has SQLite's write lock from its start.
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
    // Without this, a partial index makes SQLite compile a statement again for every bound value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    let wal_frames = wal_frames.clone();
    // Replaces SQLite's own hook, which would checkpoint before the commit is acknowledged.
    conn.wal_hook(Some(move |_: &mut Wal, frames: i32| {
        wal_frames.store(frames.unsigned_abs(), Ordering::Relaxed);
        Ok(())
    }))?;
    // SQLite syncs every commit by default, as a test checks. To set it explicitly would cost every
    // process a read of the schema. On macOS a plain sync stops at the drive's cache.
    if cfg!(target_os = "macos") {
        conn.execute_batch("PRAGMA fullfsync = ON")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Inject;

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
    fn a_synced_write_is_synced_after_an_unsynced_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal =
            Journal::open(Home::open(dir.path(), None).unwrap(), Patience::DEFAULT).unwrap();
        let level = |conn: &Connection| -> i64 {
            let ask = conn.query_row("PRAGMA synchronous", [], |row| row.get(0));
            ask.unwrap()
        };
        let [normal, full] = [1, 2];
        let write = |journal: &mut Journal, durability| {
            let written = journal.write(durability, |tx| Ok(level(tx.views.conn)));
            written.map(|(level, _)| level)
        };
        assert_eq!(write(&mut journal, Durability::Unsynced).unwrap(), normal);
        assert_eq!(level(&journal.conn), full);
        assert_eq!(write(&mut journal, Durability::Synced).unwrap(), full);
        // SQLite rejects the change inside a transaction, and then nothing is written.
        journal.set_durability(Durability::Unsynced).unwrap();
        journal.conn.execute_batch("BEGIN").unwrap();
        journal.set_durability(Durability::Synced).unwrap_err();
        write(&mut journal, Durability::Synced).unwrap_err();
        journal.conn.execute_batch("ROLLBACK").unwrap();
        assert_eq!(write(&mut journal, Durability::Synced).unwrap(), full);
        let inject = Inject {
            now: jiff::Timestamp::UNIX_EPOCH,
            agent: AgentName::human(),
        };
        journal.commit(inject).unwrap().unwrap();
        assert_eq!(level(&journal.conn), full);
    }
}
