//! Looking a journal over, for `ph doctor`: nothing here changes anything.

use crate::error::{Result, sqlite};
use crate::files;
use crate::journal::Journal;
use crate::views::marks::Kind;
use crate::views::schema;
use posthaste_core::{Body, IdPrefix, MessageId};

#[derive(Debug, Clone, Default)]
pub struct Health {
    pub facts: u64,
    /// What SQLite found, where it found anything.
    pub damage: Vec<String>,
    /// Whether the numbers run from 1 to the last without a gap.
    pub is_gap_free: bool,
    /// Facts that mean nothing to this version, with why: the first few, and how many in all.
    pub odd: Vec<(u64, String)>,
    pub odd_count: u64,
    pub lost_bodies: Vec<MessageId>,
    /// How many message files belong to no message of the journal.
    pub stray_files: u64,
    pub view_versions: Vec<u32>,
    pub sqlite_version: String,
    pub wal_bytes: u64,
}

const NAMED: u32 = 5;

impl Journal {
    pub fn examine(&mut self) -> Result<Health> {
        self.catch_up()?;
        let path = self.home.journal();
        let look = |journal: &Self| -> rusqlite::Result<Health> {
            let conn = &journal.conn;
            let mut check = conn.prepare("PRAGMA integrity_check(20)")?;
            let damage = check
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let (facts, first, last): (u64, u64, u64) = conn.query_row(
                "SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM facts",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            let mut odd = journal.views.prepare(
                conn,
                &format!(
                    "SELECT seq, whose FROM v#_marks WHERE kind = ?1 ORDER BY seq LIMIT {NAMED}"
                ),
            )?;
            let odd = odd
                .query_map([Kind::Odd as u8], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let odd_count = journal
                .views
                .prepare(conn, "SELECT count(*) FROM v#_marks WHERE kind = ?1")?
                .query_row([Kind::Odd as u8], |row| row.get(0))?;
            Ok(Health {
                facts,
                damage: damage.into_iter().filter(|line| line != "ok").collect(),
                is_gap_free: first == 1 && last == facts,
                odd,
                odd_count,
                lost_bodies: Vec::new(),
                stray_files: 0,
                view_versions: schema::view_versions(conn)?,
                sqlite_version: rusqlite::version().to_owned(),
                wal_bytes: path
                    .with_extension("db-wal")
                    .metadata()
                    .map_or(0, |meta| meta.len()),
            })
        };
        let mut health = look(self).map_err(sqlite(&path))?;
        health.lost_bodies = self.lost_bodies()?;
        health.stray_files = self.stray_files().map_err(sqlite(&path))?;
        Ok(health)
    }

    /// A journal that was lost or replaced leaves the files of its messages behind.
    fn stray_files(&self) -> rusqlite::Result<u64> {
        let mut look = self
            .conn
            .prepare("SELECT 1 FROM facts WHERE id >= ?1 AND id < ?2")?;
        let mut strays = 0;
        let dirs = std::fs::read_dir(self.home.path().join("messages"));
        let files = dirs.into_iter().flatten().flatten();
        let files = files.filter_map(|dir| std::fs::read_dir(dir.path()).ok());
        for file in files.flatten().flatten() {
            // <day>-<time>-<id8 or id>.md
            let name = file.file_name().to_string_lossy().into_owned();
            let id = name
                .strip_suffix(".md")
                .and_then(|name| name.splitn(3, '-').nth(2));
            let prefix = id.and_then(|id| IdPrefix::parse(id).ok());
            let is_known = match prefix {
                Some(prefix) => look.exists([prefix.as_str(), &prefix.upper_bound()])?,
                None => false,
            };
            strays += u64::from(!is_known);
        }
        Ok(strays)
    }

    /// Messages whose body is kept in a file that is not what was stored.
    fn lost_bodies(&self) -> Result<Vec<MessageId>> {
        let mut lost = Vec::new();
        let mut last = 0;
        loop {
            let page = self.facts_after(last)?;
            let Some(end) = page.last() else {
                return Ok(lost);
            };
            last = end.seq;
            for record in page
                .iter()
                .filter(|record| record.data.contains("\"body_file\""))
            {
                let Some(message) = record.read().ok().and_then(|fact| fact.message()) else {
                    continue;
                };
                if matches!(message.envelope.body, Body::Filed { .. })
                    && files::body(self.home(), &message).is_err()
                {
                    lost.push(message.id);
                }
            }
        }
    }
}
