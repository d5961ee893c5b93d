//! The search index: a database that is filled from the facts, a page at a time.

use crate::error::{Error, Result, io, sqlite};
use crate::files;
use crate::home::private_file;
use crate::journal::Journal;
use crate::journal::lock::lock_within;
use crate::views::PAGE_ROWS;
use posthaste_core::text;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

/// Start of a body that is indexed.
const INDEXED_BODY_BYTES: usize = 16 * 1024;

/// Index one page of facts. Return whether there are more.
pub(crate) fn fill_page(journal: &Journal) -> Result<bool> {
    with_index(journal, |index| Ok(fill(journal, index)? > 0))
}

/// Call `work` with the index. An unusable index is created again, once.
pub(super) fn with_index<T>(
    journal: &Journal,
    mut work: impl FnMut(&Connection) -> Result<T>,
) -> Result<T> {
    let path = journal.home().search();
    match connect(journal).and_then(|index| work(&index)) {
        Err(Error::Corrupt { path: damaged, .. }) if damaged == path => {
            for end in ["", "-wal", "-shm"] {
                let mut file = path.clone().into_os_string();
                file.push(end);
                let _ = std::fs::remove_file(file);
            }
            connect(journal).and_then(|index| work(&index))
        }
        done => done,
    }
}

fn connect(journal: &Journal) -> Result<Connection> {
    // The index at this path could belong to another journal.
    journal.expect_in_place()?;
    let path = journal.home().search();
    // SQLite needs a new database to itself to change its mode, and does not wait for that.
    let lock = path.with_extension("lock");
    let guard = lock_within(private_file(&lock)?, journal.patience.0).map_err(io("lock", &lock))?;
    let Some(_guard) = guard else {
        let waited = Some(journal.patience.0);
        let holder = "another search".to_owned();
        return Err(Error::Busy { waited, holder });
    };
    private_file(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || {
        let index = Connection::open_with_flags(&path, flags)?;
        index.busy_timeout(journal.patience.0)?;
        index.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
        let tables: u32 = index.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'state'",
            [],
            |row| row.get(0),
        )?;
        if tables == 0 {
            let tx = Transaction::new_unchecked(&index, TransactionBehavior::Immediate)?;
            tx.execute_batch(
                "CREATE VIRTUAL TABLE IF NOT EXISTS letters USING fts5(
                   text, content = '', tokenize = 'unicode61 remove_diacritics 2');
                 CREATE TABLE IF NOT EXISTS state(one INTEGER PRIMARY KEY CHECK (one = 1), applied_seq INTEGER NOT NULL, origin TEXT NOT NULL);",
            )?;
            tx.execute(
                "INSERT OR IGNORE INTO state VALUES (1, 0, ?1)",
                [journal.origin()],
            )?;
            tx.commit()?;
        }
        let (applied, origin): (u64, String) =
            index.query_row("SELECT applied_seq, origin FROM state", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok((index, applied, origin))
    };
    let (index, applied, origin) = connect().map_err(sqlite(&path))?;
    // The journal was replaced by another one, or by an older copy of itself.
    if origin != journal.origin() || applied > journal.head()? {
        return Err(Error::Corrupt {
            path,
            why: "it belongs to another journal".to_owned(),
        });
    }
    Ok(index)
}

/// Index one page of facts. Return the number of facts that are left.
pub(super) fn fill(journal: &Journal, index: &Connection) -> Result<u64> {
    let path = journal.home().search();
    let applied = |index: &Connection| -> Result<u64> {
        index
            .query_row("SELECT applied_seq FROM state", [], |row| row.get(0))
            .map_err(sqlite(&path))
    };
    let head = journal.head()?;
    if applied(index)? >= head {
        return Ok(0);
    }
    let tx =
        Transaction::new_unchecked(index, TransactionBehavior::Immediate).map_err(sqlite(&path))?;
    let from = applied(&tx)?;
    let records = journal.facts_after(from)?;
    debug_assert!(records.len() <= PAGE_ROWS as usize);
    for record in &records {
        let Ok(fact) = record.read() else { continue };
        let Some(message) = fact.message() else {
            continue;
        };
        // A lost body is not found by a search. Reading the message reports the loss.
        let body = files::body(journal.home(), &message).unwrap_or_default();
        let subject = message.envelope.subject.as_deref().unwrap_or_default();
        let indexed = format!("{subject}\n{}", text::head(&body, INDEXED_BODY_BYTES));
        let indexed: String = indexed
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        tx.prepare_cached("INSERT INTO letters(rowid, text) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![record.seq, indexed]))
            .map_err(sqlite(&path))?;
    }
    let last = records.last().map_or(from, |record| record.seq);
    tx.execute("UPDATE state SET applied_seq = ?1", [last])
        .map_err(sqlite(&path))?;
    tx.commit().map_err(sqlite(&path))?;
    Ok(head.saturating_sub(last))
}
