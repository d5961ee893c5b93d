//! Full-text search, in a database of its own beside the journal.
//!
//! It is off the write path: a send never touches it. Whoever searches brings it up to date
//! first; a quiet writer does so ahead of time. It can be thrown away at any moment.

use crate::error::{Error, Result, io, sqlite};
use crate::files;
use crate::home::private_file;
use crate::journal::lock::lock_within;
use crate::journal::{Journal, STRETCH};
use posthaste_core::{AgentName, Letter, receipt::End, text};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

/// How much of a body is searched.
const INDEXED_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    NewestFirst,
    BestFirst,
}

/// What to look for. The words are data: nothing in them is query syntax but quotes around a
/// phrase and a star at the end of a word.
#[derive(Debug, Clone)]
pub struct Query {
    pub words: String,
    pub from: Option<AgentName>,
    pub to: Option<AgentName>,
    pub order: Order,
    pub limit: usize,
}

impl Journal {
    /// The messages that hold all of the words. `progress` hears how many facts are still to be
    /// indexed, where it takes a while.
    pub fn search(&mut self, query: &Query, mut progress: impl FnMut(u64)) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let Some(words) = as_match(&query.words) else {
            return Ok(Vec::new());
        };
        with_index(self, |index| {
            loop {
                let behind = fill(self, index)?;
                if behind == 0 {
                    break;
                }
                progress(behind);
            }
            self.look_up(index, &words, query)
        })
    }

    fn look_up(&self, index: &Connection, words: &str, query: &Query) -> Result<Vec<Letter>> {
        let path = self.home().search();
        let ranking = match query.order {
            Order::NewestFirst => "rowid DESC",
            Order::BestFirst => "rank",
        };
        let sql = format!("SELECT rowid FROM letters WHERE letters MATCH ?1 ORDER BY {ranking}");
        let mut look = index.prepare(&sql).map_err(sqlite(&path))?;
        let mut rows = look.query([words]).map_err(sqlite(&path))?;
        let mut found = Vec::new();
        while found.len() < query.limit {
            let Some(row) = rows.next().map_err(sqlite(&path))? else {
                break;
            };
            let seq: u64 = row.get(0).map_err(sqlite(&path))?;
            let letters = self.letters(&[seq])?;
            found.extend(letters.into_iter().filter(|letter| wanted(letter, query)));
        }
        Ok(found)
    }
}

fn wanted(letter: &Letter, query: &Query) -> bool {
    letter.standing.end != Some(End::Deleted)
        && query
            .from
            .as_ref()
            .is_none_or(|from| letter.message.envelope.from == *from)
        && query.to.as_ref().is_none_or(|to| letter.message.to == *to)
}

/// Indexes one stretch; true where there is more to do.
pub(crate) fn fill_some(journal: &Journal) -> Result<bool> {
    with_index(journal, |index| Ok(fill(journal, index)? > 0))
}

/// Works with the index. One that turns out to be of no use is made anew, once: nothing is in it
/// that the journal has not.
fn with_index<T>(journal: &Journal, mut work: impl FnMut(&Connection) -> Result<T>) -> Result<T> {
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
    // Another journal's index is none of ours.
    journal.expect_in_place()?;
    let path = journal.home().search();
    // To change a new database's mode SQLite wants it alone, and does not wait for that.
    let lock = path.with_extension("lock");
    let alone = lock_within(private_file(&lock)?, journal.patience.0).map_err(io("lock", &lock))?;
    let Some(_alone) = alone else {
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
        let there: u32 = index.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'state'",
            [],
            |row| row.get(0),
        )?;
        if there == 0 {
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
    // A journal that was put in the place of another, or went back to an older copy of itself.
    if origin != journal.origin() || applied > journal.head()? {
        return Err(Error::Corrupt {
            path,
            why: "it was made for another journal".to_owned(),
        });
    }
    Ok(index)
}

/// Folds one stretch of facts into the index; says how many are left.
fn fill(journal: &Journal, index: &Connection) -> Result<u64> {
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
    debug_assert!(records.len() <= STRETCH as usize);
    for record in &records {
        let Ok(fact) = record.read() else { continue };
        let Some(message) = fact.message() else {
            continue;
        };
        // A body that is lost is not found; that it is lost, reading it will say.
        let body = files::body(journal.home(), &message).unwrap_or_default();
        let subject = message.envelope.subject.as_deref().unwrap_or_default();
        let indexed = format!("{subject}\n{}", text::head(&body, INDEXED_BYTES));
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

/// The words as FTS5 terms, each quoted; nothing where there are none.
fn as_match(words: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (index, part) in words.split('"').enumerate() {
        // Every other part stands between quotes: a phrase.
        if index % 2 == 1 {
            terms.push((part.trim().to_owned(), false));
        } else {
            terms.extend(part.split_whitespace().map(|word| {
                let is_start = word.len() > 1 && word.ends_with('*');
                (word.trim_end_matches('*').to_owned(), is_start)
            }));
        }
    }
    let quoted: Vec<String> = terms
        .into_iter()
        .filter(|(term, _)| term.chars().any(char::is_alphanumeric))
        .map(|(term, is_start)| {
            format!(
                "\"{}\"{}",
                term.replace('\0', " "),
                if is_start { "*" } else { "" }
            )
        })
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_data() {
        let check = |words: &str, want: Option<&str>| {
            assert_eq!(as_match(words).as_deref(), want, "{words:?}");
        };
        check("login page", Some("\"login\" \"page\""));
        check("\"login page\" fix", Some("\"login page\" \"fix\""));
        check("log*", Some("\"log\"*"));
        check("a OR b", Some("\"a\" \"OR\" \"b\""));
        check("text:x NEAR(", Some("\"text:x\" \"NEAR(\""));
        check("\"open", Some("\"open\""));
        check("*", None);
        check("--", None);
        check("", None);
    }
}
