//! The tables. `facts` and `home` never change shape; every set of views carries its version in
//! its table names, so that binaries of different versions work on one journal side by side.

use rusqlite::{Connection, OptionalExtension};

/// The version of the views that this binary keeps. A change to what [`crate::views`] derives,
/// or to the shape it derives it in, is a new version: the old tables are left to old binaries.
pub(crate) const VIEWS: u32 = 5;

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
-- One row a message, under its fact's seq: where it stands.
CREATE TABLE IF NOT EXISTS v#_letters(
  seq INTEGER PRIMARY KEY,
  recipient TEXT NOT NULL,
  sender TEXT NOT NULL,
  thread TEXT NOT NULL,
  priority INTEGER NOT NULL,
  place INTEGER NOT NULL,
  proven INTEGER NOT NULL,
  read INTEGER NOT NULL,
  shown INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  cut INTEGER NOT NULL,
  handed INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  key TEXT,
  not_before INTEGER,
  expires_at INTEGER,
  sent_at INTEGER NOT NULL,
  deadline INTEGER,
  expects INTEGER NOT NULL,
  answered INTEGER NOT NULL,
  reminded INTEGER NOT NULL
) STRICT;
-- An inbox: unread first, of these what no route has put before the agent yet, most urgent first.
CREATE INDEX IF NOT EXISTS v#_mailbox ON v#_letters(recipient, read, handed, priority, place) WHERE ended = 0;
-- Offers that are under way: few, whatever the size of the journal.
CREATE INDEX IF NOT EXISTS v#_offering ON v#_letters(recipient) WHERE proven = 1;
-- What failed to reach an inbox.
CREATE INDEX IF NOT EXISTS v#_failed ON v#_letters(recipient, seq) WHERE ended = 5;
CREATE INDEX IF NOT EXISTS v#_threads ON v#_letters(thread, seq);
CREATE INDEX IF NOT EXISTS v#_keys ON v#_letters(sender, recipient, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS v#_not_due ON v#_letters(recipient, not_before) WHERE ended = 0 AND not_before IS NOT NULL;
CREATE INDEX IF NOT EXISTS v#_expiring ON v#_letters(recipient, expires_at) WHERE ended = 0 AND seen = 0 AND expires_at IS NOT NULL;
-- What is promoted when its deadline comes.
CREATE INDEX IF NOT EXISTS v#_deadlines ON v#_letters(recipient, deadline) WHERE ended = 0 AND read = 0 AND handed = 0 AND deadline IS NOT NULL;
-- Answers that are expected, from both sides.
CREATE INDEX IF NOT EXISTS v#_owed ON v#_letters(recipient, seq) WHERE expects = 1 AND answered = 0 AND ended = 0;
CREATE INDEX IF NOT EXISTS v#_awaited ON v#_letters(sender, seq) WHERE expects = 1 AND answered = 0 AND ended = 0;
-- How much one writes to another; what failed does not count.
CREATE INDEX IF NOT EXISTS v#_pairs ON v#_letters(sender, recipient, sent_at) WHERE ended != 5;

-- The steps of each message, in order; they may come before the message itself.
CREATE TABLE IF NOT EXISTS v#_steps(message TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(message, seq)) STRICT, WITHOUT ROWID;
-- How much lies in each inbox, whatever the time.
CREATE TABLE IF NOT EXISTS v#_agents(name TEXT PRIMARY KEY, total INTEGER NOT NULL, unread INTEGER NOT NULL, pending INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- What each agent was given last: the message, and the step that says so.
CREATE TABLE IF NOT EXISTS v#_given(name TEXT PRIMARY KEY, letter INTEGER NOT NULL, step INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- The latest run of each agent: the facts of its begin and end.
CREATE TABLE IF NOT EXISTS v#_sessions(name TEXT PRIMARY KEY, started INTEGER NOT NULL, ended INTEGER) STRICT, WITHOUT ROWID;
-- One row a task, under its fact's seq: how it stands, and the fact that says so.
CREATE TABLE IF NOT EXISTS v#_tasks(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, agent TEXT NOT NULL, status INTEGER NOT NULL, moved INTEGER, iteration INTEGER) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS v#_task_ids ON v#_tasks(id);
CREATE INDEX IF NOT EXISTS v#_lists ON v#_tasks(agent, status, seq);
-- Changes that came before their task.
CREATE TABLE IF NOT EXISTS v#_early_tasks(task TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(task, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS v#_notes(seq INTEGER PRIMARY KEY, agent TEXT NOT NULL, kind INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS v#_notebooks ON v#_notes(agent, kind, seq);
-- The last time that each agent said that it is done.
CREATE TABLE IF NOT EXISTS v#_completions(name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- The latest loop of each agent, as the core writes it down.
CREATE TABLE IF NOT EXISTS v#_loops(agent TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- Facts that mean nothing to this version.
CREATE TABLE IF NOT EXISTS v#_odd(seq INTEGER PRIMARY KEY, why TEXT NOT NULL) STRICT;
";

const VIEW_NAMES: [&str; 11] = [
    "v#_letters",
    "v#_steps",
    "v#_agents",
    "v#_given",
    "v#_sessions",
    "v#_tasks",
    "v#_early_tasks",
    "v#_notes",
    "v#_completions",
    "v#_loops",
    "v#_odd",
];

/// Under which name `home` keeps how far the views have come.
const APPLIED: &str = "v#_applied_seq";

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
    conn.execute(
        "INSERT OR IGNORE INTO home VALUES (?1, '0')",
        [versioned(APPLIED, views)],
    )?;
    Ok(())
}

pub(crate) fn drop_views(conn: &Connection, views: u32) -> rusqlite::Result<()> {
    for table in VIEW_NAMES {
        conn.execute_batch(&versioned(&format!("DROP TABLE IF EXISTS {table}"), views))?;
    }
    conn.execute(
        "DELETE FROM home WHERE name = ?1",
        [versioned(APPLIED, views)],
    )?;
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
    let sql = format!(
        "SELECT h.value, (SELECT coalesce(max(seq), 0) FROM facts), CAST(v.value AS INTEGER)
         FROM home h, home v WHERE h.name = 'origin' AND v.name = '{APPLIED}'"
    );
    let mut look = match conn.prepare_cached(&versioned(&sql, views)) {
        Ok(look) => look,
        Err(error) if is_missing_table(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let position = look.query_row([], |row| {
        Ok(Position {
            origin: row.get(0)?,
            head: row.get(1)?,
            applied: row.get(2)?,
        })
    });
    position.optional()
}

/// Says that this version's views have seen everything up to `seq`.
pub(crate) fn set_applied(conn: &Connection, views: u32, seq: u64) -> rusqlite::Result<()> {
    conn.prepare_cached("UPDATE home SET value = CAST(?2 AS TEXT) WHERE name = ?1")?
        .execute(rusqlite::params![versioned(APPLIED, views), seq])?;
    Ok(())
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
