//! The tables. `facts` and `home` never change shape; every set of views carries its version in
//! its table names, so that binaries of different versions work on one journal side by side.

use rusqlite::{Connection, OptionalExtension};

/// The version of the views that this binary keeps. A change to what [`crate::views`] derives,
/// or to the shape it derives it in, is a new version: the old tables are left to old binaries.
pub(crate) const VIEWS: u32 = 1;

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

/// `v#` stands for the version.
const VIEW_TABLES: &str = "
CREATE TABLE IF NOT EXISTS v#_state(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  applied_seq INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO v#_state VALUES (1, 0);

-- One row a message, under its fact's seq: where it stands.
CREATE TABLE IF NOT EXISTS v#_letters(
  seq INTEGER PRIMARY KEY,
  recipient TEXT NOT NULL,
  sender TEXT NOT NULL,
  thread TEXT NOT NULL,
  priority INTEGER NOT NULL,
  proven INTEGER NOT NULL,
  read INTEGER NOT NULL,
  shown INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  key TEXT,
  not_before INTEGER,
  expires_at INTEGER
) STRICT;
-- An inbox: unread first, of these what was not yet shown, most urgent first.
CREATE INDEX IF NOT EXISTS v#_mailbox ON v#_letters(recipient, read, shown, priority, seq) WHERE ended = 0;
CREATE INDEX IF NOT EXISTS v#_threads ON v#_letters(thread, seq);
CREATE INDEX IF NOT EXISTS v#_keys ON v#_letters(sender, recipient, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS v#_not_due ON v#_letters(recipient, not_before) WHERE not_before IS NOT NULL AND ended = 0;
CREATE INDEX IF NOT EXISTS v#_expiring ON v#_letters(recipient, expires_at) WHERE expires_at IS NOT NULL AND ended = 0 AND read = 0;

-- The steps of each message, in order.
CREATE TABLE IF NOT EXISTS v#_steps(letter INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(letter, seq)) STRICT, WITHOUT ROWID;
-- Steps whose message has not come yet.
CREATE TABLE IF NOT EXISTS v#_early(message TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(message, seq)) STRICT, WITHOUT ROWID;
-- How much lies in each inbox, whatever the time.
CREATE TABLE IF NOT EXISTS v#_agents(name TEXT PRIMARY KEY, total INTEGER NOT NULL, unread INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- Facts that mean nothing to this version.
CREATE TABLE IF NOT EXISTS v#_odd(seq INTEGER PRIMARY KEY, why TEXT NOT NULL) STRICT;
";

const VIEW_NAMES: [&str; 6] = [
    "v#_state",
    "v#_letters",
    "v#_steps",
    "v#_early",
    "v#_agents",
    "v#_odd",
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
    conn.execute_batch(&versioned(VIEW_TABLES, views))
}

pub(crate) fn drop_views(conn: &Connection, views: u32) -> rusqlite::Result<()> {
    for table in VIEW_NAMES {
        conn.execute_batch(&versioned(&format!("DROP TABLE IF EXISTS {table}"), views))?;
    }
    Ok(())
}

/// The home's own id; none where the facts or this version's views are not there.
pub(crate) fn origin(conn: &Connection, views: u32) -> rusqlite::Result<Option<String>> {
    // The views are made in one transaction, so one of their tables stands for all.
    let sql = "SELECT value FROM home WHERE name = 'origin' AND EXISTS (SELECT 1 FROM v#_state)";
    match conn.prepare(&versioned(sql, views)) {
        Ok(mut look) => look.query_row([], |row| row.get(0)).optional(),
        Err(error) if is_missing_table(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_missing_table(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) && error.to_string().contains("no such table")
}

/// The versions of all views in this journal.
pub(crate) fn view_versions(conn: &Connection) -> rusqlite::Result<Vec<u32>> {
    let mut look =
        conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'v%\\_state' ESCAPE '\\'")?;
    let names = look
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(names
        .iter()
        .filter_map(|n| n.strip_prefix('v')?.strip_suffix("_state")?.parse().ok())
        .collect())
}
