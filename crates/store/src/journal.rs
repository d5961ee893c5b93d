//! A journal, open: one connection, the writers' lock, and the transaction that every write goes
//! through.

use crate::error::{Error, Result, io, sqlite};
use crate::home::{Home, private_file};
use crate::host::HostHold;
use crate::lock::{Held, WritersLock};
use crate::schema::{self, VIEWS};
use crate::views::Views;
use crate::work::{self, Denied, Done, Job};
use crate::{bell, files};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::File;
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

/// A short-lived process reads the whole WAL when it opens the journal alone, so it is kept as
/// small as a checkpoint now and then is cheap.
const WAL_LIMIT: u64 = 400 * 1024;

#[derive(Debug)]
pub struct Journal {
    pub(crate) home: Home,
    pub(crate) conn: Connection,
    pub(crate) views: Views,
    pub(crate) patience: Patience,
    lock: WritersLock,
    origin: String,
    _host: HostHold,
}

/// Whether a commit must outlive a power cut before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    Synced,
    Unsynced,
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
        let host = home.prepare()?;
        let lock = WritersLock::of(&home);
        let path = home.journal();
        // Made here and not by SQLite, so that it is never readable to others.
        if !home.has_journal()? {
            private_file(&path)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&path, flags).map_err(sqlite(&path))?;
        configure(&conn, patience).map_err(sqlite(&path))?;
        let views = Views { version: views };
        let mut journal = Self {
            home,
            conn,
            views,
            patience,
            lock,
            origin: String::new(),
            _host: host,
        };
        if !schema::is_there(&journal.conn, views.version).map_err(sqlite(&path))? {
            journal.create()?;
        }
        journal.origin = journal
            .conn
            .query_row("SELECT value FROM home WHERE name = 'origin'", [], |row| {
                row.get(0)
            })
            .map_err(sqlite(&path))?;
        Ok(journal)
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// This home's own id.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    fn create(&mut self) -> Result<()> {
        let path = self.home.journal();
        let _held = self.lock.acquire(self.patience.0)?;
        let origin = Uuid::new_v4().to_string();
        let version = self.views.version;
        self.conn
            .pragma_update(None, "journal_mode", "wal")
            .map_err(sqlite(&path))?;
        in_transaction(&mut self.conn, |tx| schema::create(tx, version, &origin))
            .map_err(sqlite(&path))?;
        // The file's own name must outlive a power cut too.
        File::open(self.home.path())
            .and_then(|dir| dir.sync_all())
            .map_err(io("sync", self.home.path()))
    }

    /// Takes this process's turn to write.
    pub(crate) fn turn(&self) -> Result<Held> {
        self.lock.acquire(self.patience.0)
    }

    /// Takes the turn to write and keeps it, as a writer that hangs would.
    #[doc(hidden)]
    pub fn hold(&self) -> Result<impl Sized + use<>> {
        self.turn()
    }

    /// Runs `write` in one transaction, alone among writers, on views at head.
    pub(crate) fn write<T>(
        &mut self,
        write: impl FnOnce(&Connection, Views) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.catch_up()?;
        let held = self.turn()?;
        let path = self.home.journal();
        let views = self.views;
        let value = in_transaction(&mut self.conn, |tx| {
            // Others may have written since; here nobody can any more.
            while views.catch_up(tx, STRETCH)? > 0 {}
            write(tx, views)
        });
        drop(held);
        value.map_err(sqlite(&path))
    }

    /// Brings this binary's views to head, giving the lock up every [`STRETCH`] facts.
    pub fn catch_up(&mut self) -> Result<()> {
        let path = self.home.journal();
        while self.views.lag(&self.conn).map_err(sqlite(&path))? > 0 {
            let held = self.turn()?;
            let views = self.views;
            let caught = in_transaction(&mut self.conn, |tx| views.catch_up(tx, STRETCH));
            drop(held);
            caught.map_err(sqlite(&path))?;
            self.tidy()?;
        }
        Ok(())
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
    pub fn commit(&mut self, mut job: Job) -> Result<std::result::Result<Done, Denied>> {
        let durability = match job {
            // Shown once more after a power cut is better than a slow prompt every time.
            Job::Inject { .. } => Durability::Unsynced,
            Job::Post { .. } | Job::Order { .. } => Durability::Synced,
        };
        files::put_large_bodies(&self.home, &mut job)?;
        let answer = self.with_durability(durability, |journal| {
            journal.commit_all(std::slice::from_ref(&job))
        });
        let answer = match answer {
            Ok(mut answers) => answers.pop().ok_or(Error::WriterGone)?,
            Err(error) => {
                files::drop_large_bodies(&self.home, &job);
                return Err(error);
            }
        };
        files::settle(&self.home, &job, &answer)?;
        bell::ring(&self.home, &touched(std::slice::from_ref(&answer)));
        Ok(answer)
    }

    /// Does several pieces of work in one synced transaction. Files and bells are the caller's.
    pub(crate) fn commit_all(
        &mut self,
        jobs: &[Job],
    ) -> Result<Vec<std::result::Result<Done, Denied>>> {
        let origin = self.origin.clone();
        self.write(|conn, views| {
            jobs.iter()
                .map(|job| work::carry_out(conn, views, &origin, job))
                .collect()
        })
    }

    fn with_durability<T>(
        &mut self,
        durability: Durability,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if durability == Durability::Synced {
            return run(self);
        }
        let path = self.home.journal();
        self.conn
            .execute_batch("PRAGMA synchronous = NORMAL")
            .map_err(sqlite(&path))?;
        let value = run(self);
        self.conn
            .execute_batch("PRAGMA synchronous = FULL")
            .map_err(sqlite(&path))?;
        value
    }

    /// Moves what has gathered in the WAL into the database, if it is much. For after the answer.
    pub fn tidy(&self) -> Result<()> {
        self.tidy_beyond(WAL_LIMIT)
    }

    pub(crate) fn tidy_beyond(&self, limit: u64) -> Result<()> {
        let path = self.home.journal();
        let wal = path.with_extension("db-wal");
        if wal.metadata().map_or(0, |meta| meta.len()) < limit {
            return Ok(());
        }
        // Whoever is next to write will see to it.
        let Some(_held) = self.lock.try_acquire()? else {
            return Ok(());
        };
        let checkpoint = || {
            // Readers are not waited for: what they still need stays, and is moved another time.
            self.conn.busy_timeout(Duration::ZERO)?;
            self.conn
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            self.conn.busy_timeout(self.patience.0)
        };
        checkpoint().map_err(sqlite(&path))
    }
}

/// The agents whose bells are to ring.
pub(crate) fn touched(
    answers: &[std::result::Result<Done, Denied>],
) -> Vec<posthaste_core::AgentName> {
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

fn configure(conn: &Connection, patience: Patience) -> rusqlite::Result<()> {
    conn.busy_timeout(patience.0)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA fullfsync = ON;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA cache_size = -1024;
         PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY;",
    )
}
