//! The tables. `facts` and `home` never change shape; every set of views carries its version in
//! its table names, so that binaries of different versions work on one journal side by side.

use rusqlite::Connection;

/// The version of the views that this binary keeps. A change to what [`crate::views`] derives,
/// or to the shape it derives it in, is a new version: the old tables are left to old binaries.
pub(crate) const VIEWS: u32 = 7;

const FACTS: &str = "
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

/// `v#` stands for the version. Every process reads all of this when it opens the journal, and
/// what a message changes is written and synced page by page: so there are few tables, and fewer
/// indices.
const VIEW_TABLES: &str = "
-- One row a message, under its fact's seq: where it stands.
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
-- An inbox: unread first, of these what no route has put before the agent yet, most urgent first.
CREATE INDEX IF NOT EXISTS v#_mailbox ON v#_letters(recipient, read, handed, priority, place) WHERE ended = 0;
-- What is found by something else than its inbox or list, see marks.rs.
CREATE TABLE IF NOT EXISTS v#_marks(kind INTEGER, whose TEXT, at INTEGER, seq INTEGER, PRIMARY KEY(kind, whose, at, seq)) STRICT, WITHOUT ROWID;
-- How much lies in each inbox, whatever the time. Under no name: how many facts these views have
-- seen, here because every message changes this page anyway.
CREATE TABLE IF NOT EXISTS v#_counts(name TEXT PRIMARY KEY, total INTEGER NOT NULL, unread INTEGER NOT NULL, pending INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- The last of its kind that each agent has, see views.rs.
CREATE TABLE IF NOT EXISTS v#_last(kind INTEGER, name TEXT, seq INTEGER NOT NULL, beside INTEGER, PRIMARY KEY(kind, name)) STRICT, WITHOUT ROWID;
-- One row a task, under its fact's seq: how it stands, and the fact that says so.
CREATE TABLE IF NOT EXISTS v#_tasks(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, agent TEXT NOT NULL, status INTEGER NOT NULL, moved INTEGER, iteration INTEGER) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS v#_task_ids ON v#_tasks(id);
CREATE INDEX IF NOT EXISTS v#_lists ON v#_tasks(agent, status, seq);
-- The latest loop of each agent, as the core writes it down.
CREATE TABLE IF NOT EXISTS v#_loops(agent TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

const VIEW_NAMES: [&str; 6] = [
    "v#_letters",
    "v#_marks",
    "v#_counts",
    "v#_last",
    "v#_tasks",
    "v#_loops",
];

/// The text of a statement for one version of the views.
pub(crate) fn versioned(sql: &str, version: u32) -> String {
    sql.replace("v#", &format!("v{version}"))
}

pub(crate) fn create(conn: &Connection, views: u32, origin: &str) -> rusqlite::Result<()> {
    conn.execute_batch(FACTS)?;
    conn.execute("INSERT OR IGNORE INTO home VALUES ('origin', ?1)", [origin])?;
    create_views(conn, views)
}

pub(crate) fn create_views(conn: &Connection, views: u32) -> rusqlite::Result<()> {
    conn.execute_batch(&versioned(VIEW_TABLES, views))?;
    let nothing = "INSERT OR IGNORE INTO v#_counts VALUES ('', 0, 0, 0)";
    conn.execute_batch(&versioned(nothing, views))
}

pub(crate) fn drop_views(conn: &Connection, views: u32) -> rusqlite::Result<()> {
    for table in VIEW_NAMES {
        conn.execute_batch(&versioned(&format!("DROP TABLE IF EXISTS {table}"), views))?;
    }
    Ok(())
}

/// Where a journal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// The home's own id.
    pub(crate) origin: String,
    /// The last fact.
    pub(crate) head: u64,
    /// The last fact that this version's views have seen.
    pub(crate) applied: u64,
}

impl Position {
    pub(crate) fn lag(&self) -> u64 {
        self.head.saturating_sub(self.applied)
    }
}

/// Where the journal stands; none where the facts or this version's views are not there yet.
pub(crate) fn position(conn: &Connection, views: u32) -> rusqlite::Result<Option<Position>> {
    // Three looks and no join: the first statement of every process, it is planned each time.
    let sql = "SELECT (SELECT value FROM home WHERE name = 'origin'),
               (SELECT coalesce(max(seq), 0) FROM facts),
               (SELECT total FROM v#_counts WHERE name = '')";
    let mut look = match conn.prepare_cached(&versioned(sql, views)) {
        Ok(look) => look,
        Err(error) if is_missing_table(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    look.query_row([], |row| {
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

/// The versions of all views in this journal.
pub(crate) fn view_versions(conn: &Connection) -> rusqlite::Result<Vec<u32>> {
    let mut look =
        conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'v%\\_letters' ESCAPE '\\'")?;
    let names = look
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(names
        .iter()
        .filter_map(|n| n.strip_prefix('v')?.strip_suffix("_letters")?.parse().ok())
        .collect())
}
