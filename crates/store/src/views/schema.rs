//! Tables. `facts` and `home` never change shape; every set of views has its version in its table
//! names, so that binaries of different versions share one journal.

use rusqlite::Connection;

/// Version of the views that this binary keeps. A change to their content or shape needs a new
/// version: the old tables are left to old binaries.
pub(crate) const VIEWS_VERSION: u32 = 8;

const FACT_TABLES: &str = "
CREATE TABLE IF NOT EXISTS facts(
  seq INTEGER PRIMARY KEY,
  origin TEXT NOT NULL,
  id TEXT NOT NULL,
  at TEXT NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS facts_id ON facts(id);
CREATE TABLE IF NOT EXISTS home(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// `v#` stands for the version. There are few tables and fewer indices, because every process reads
/// the schema when it opens the journal, and every table and index that a message changes costs
/// synced pages.
const VIEW_TABLES: &str = "
-- State of each message, under the seq of its fact.
CREATE TABLE IF NOT EXISTS v#_letters(
  seq INTEGER PRIMARY KEY,
  recipient TEXT NOT NULL,
  sender TEXT NOT NULL,
  priority INTEGER NOT NULL,
  place INTEGER NOT NULL,
  proven INTEGER NOT NULL,
  read INTEGER NOT NULL,
  shown INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  cut INTEGER NOT NULL,
  handed INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  not_before INTEGER,
  expires_at INTEGER,
  counts_at INTEGER,
  deadline INTEGER,
  expects INTEGER NOT NULL,
  answered INTEGER NOT NULL,
  reminded INTEGER NOT NULL
) STRICT;
-- An inbox: unread before read, not yet shown before shown, then by urgency.
CREATE INDEX IF NOT EXISTS v#_mailbox ON v#_letters(recipient, read, handed, priority, place) WHERE ended = 0;
-- Index entries of other kinds, see marks.rs.
CREATE TABLE IF NOT EXISTS v#_marks(kind INTEGER, whose TEXT, at INTEGER, seq INTEGER, PRIMARY KEY(kind, whose, at, seq)) STRICT, WITHOUT ROWID;
-- Messages of each inbox, regardless of the time. The empty name counts the facts that are applied:
-- every message changes this page anyway.
CREATE TABLE IF NOT EXISTS v#_counts(name TEXT PRIMARY KEY, total INTEGER NOT NULL, unread INTEGER NOT NULL, pending INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- Latest fact of each kind and agent, see `Latest`.
CREATE TABLE IF NOT EXISTS v#_last(kind INTEGER, name TEXT, seq INTEGER NOT NULL, beside INTEGER, PRIMARY KEY(kind, name)) STRICT, WITHOUT ROWID;
-- State of each task, under the seq of its fact, and the fact that changed it last.
CREATE TABLE IF NOT EXISTS v#_tasks(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, agent TEXT NOT NULL, status INTEGER NOT NULL, moved INTEGER, iteration INTEGER) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS v#_task_ids ON v#_tasks(id);
CREATE INDEX IF NOT EXISTS v#_lists ON v#_tasks(agent, status, seq);
-- Latest loop of each agent, as JSON.
CREATE TABLE IF NOT EXISTS v#_loops(agent TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- State of each ask, as JSON, under the seq of the fact that opened it.
CREATE TABLE IF NOT EXISTS v#_asks(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, open INTEGER NOT NULL, state TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS v#_open_asks ON v#_asks(agent) WHERE open = 1;
";

const VIEW_TABLE_NAMES: [&str; 7] = [
    "v#_letters",
    "v#_marks",
    "v#_counts",
    "v#_last",
    "v#_tasks",
    "v#_loops",
    "v#_asks",
];

/// Return a statement for one version of the views.
pub(crate) fn versioned(sql: &str, version: u32) -> String {
    sql.replace("v#", &format!("v{version}"))
}

pub(crate) fn create(conn: &Connection, views: u32, origin: &str) -> rusqlite::Result<()> {
    conn.execute_batch(FACT_TABLES)?;
    conn.execute("INSERT OR IGNORE INTO home VALUES ('origin', ?1)", [origin])?;
    create_views(conn, views)
}

pub(crate) fn create_views(conn: &Connection, views: u32) -> rusqlite::Result<()> {
    conn.execute_batch(&versioned(VIEW_TABLES, views))?;
    let nothing = "INSERT OR IGNORE INTO v#_counts VALUES ('', 0, 0, 0)";
    conn.execute_batch(&versioned(nothing, views))
}

pub(crate) fn drop_views(conn: &Connection, views: u32) -> rusqlite::Result<()> {
    for table in VIEW_TABLE_NAMES {
        conn.execute_batch(&versioned(&format!("DROP TABLE IF EXISTS {table}"), views))?;
    }
    Ok(())
}

/// How far a journal and this version's views have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// Id of the home.
    pub(crate) origin: String,
    /// Seq of the last fact.
    pub(crate) head: u64,
    /// Seq of the last fact that the views have applied.
    pub(crate) applied: u64,
}

impl Position {
    pub(crate) fn lag(&self) -> u64 {
        self.head.saturating_sub(self.applied)
    }
}

/// Return the position of a journal, or `None` if the facts or this version's views do not exist.
pub(crate) fn position(conn: &Connection, views: u32) -> rusqlite::Result<Option<Position>> {
    // Three subqueries without a join: every process plans this statement first.
    let sql = "SELECT (SELECT value FROM home WHERE name = 'origin'),
               (SELECT coalesce(max(seq), 0) FROM facts),
               (SELECT total FROM v#_counts WHERE name = '')";
    let mut statement = match conn.prepare_cached(&versioned(sql, views)) {
        Ok(statement) => statement,
        Err(error) if is_missing_table(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    statement.query_row([], |row| {
        let (origin, applied): (Option<_>, Option<_>) = (row.get(0)?, row.get(2)?);
        let head = row.get(1)?;
        let found = origin.zip(applied).map(|(origin, applied)| Position {
            origin,
            head,
            applied,
        });
        Ok(found)
    })
}

fn is_missing_table(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown)
        && error.to_string().contains("no such table")
}

/// Return the versions of all views in a journal.
pub(crate) fn view_versions(conn: &Connection) -> rusqlite::Result<Vec<u32>> {
    let mut statement =
        conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'v%\\_letters' ESCAPE '\\'")?;
    let names = statement
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let version = |name: &String| {
        let version = name.strip_prefix('v')?.strip_suffix("_letters")?;
        version.parse().ok()
    };
    Ok(names.iter().filter_map(version).collect())
}
