//! Health of a journal, for `ph doctor`. Changes nothing.

use crate::error::{Result, sqlite};
use crate::files;
use crate::journal::Journal;
use crate::views::marks::MarkKind;
use crate::views::schema;
use posthaste_core::{Body, IdPrefix, MessageId};

#[derive(Debug, Clone, Default)]
pub struct Health {
    pub facts: u64,
    /// Damage that SQLite found.
    pub damage: Vec<String>,
    /// Whether the seqs run from 1 without a gap.
    pub is_gap_free: bool,
    /// The first facts that this version cannot read, and why.
    pub odd: Vec<(u64, String)>,
    /// All facts that this version cannot read.
    pub odd_count: u64,
    pub lost_bodies: Vec<MessageId>,
    /// Message files that belong to no message of the journal.
    pub stray_files: u64,
    pub view_versions: Vec<u32>,
    pub sqlite_version: String,
    pub wal_bytes: u64,
}

const UNKNOWN_FACTS_LISTED: u32 = 5;

impl Journal {
    pub fn examine(&mut self) -> Result<Health> {
        let mut health = self.read(|views| {
            let conn = views.conn;
            let mut damage = conn
                .prepare("PRAGMA integrity_check(20)")?
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            damage.retain(|line| line != "ok");
            let (facts, first, last): (u64, u64, u64) = conn.query_row(
                "SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM facts",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            let unknown = views
                .prepare(&format!(
                    "SELECT seq, whose FROM v#_marks WHERE kind = ?1 ORDER BY seq LIMIT {UNKNOWN_FACTS_LISTED}"
                ))?
                .query_map([MarkKind::Unknown as u8], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let unknown_count = views
                .prepare("SELECT count(*) FROM v#_marks WHERE kind = ?1")?
                .query_row([MarkKind::Unknown as u8], |row| row.get(0))?;
            Ok(Health {
                facts,
                damage,
                is_gap_free: first == 1 && last == facts,
                odd: unknown,
                odd_count: unknown_count,
                view_versions: schema::view_versions(conn)?,
                sqlite_version: rusqlite::version().to_owned(),
                ..Health::default()
            })
        })?;
        let path = self.home.journal();
        let wal = path.with_extension("db-wal").metadata();
        health.wal_bytes = wal.map_or(0, |meta| meta.len());
        health.lost_bodies = self.lost_bodies()?;
        health.stray_files = self.stray_files().map_err(sqlite(&path))?;
        Ok(health)
    }

    /// Count the files that belong to no message. A journal that was lost or replaced leaves some.
    fn stray_files(&self) -> rusqlite::Result<u64> {
        let mut known = self
            .conn
            .prepare("SELECT 1 FROM facts WHERE id >= ?1 AND id < ?2")?;
        let mut strays = 0;
        let dirs = std::fs::read_dir(self.home.path().join("messages"));
        let files = dirs.into_iter().flatten().flatten();
        let files = files.filter_map(|dir| std::fs::read_dir(dir.path()).ok());
        for file in files.flatten().flatten() {
            // The name is <day>-<time>-<id8 or id>.md.
            let name = file.file_name().to_string_lossy().into_owned();
            let id = name
                .strip_suffix(".md")
                .and_then(|name| name.splitn(3, '-').nth(2));
            let prefix = id.and_then(|id| IdPrefix::parse(id).ok());
            let is_known = match prefix {
                Some(prefix) => known.exists([prefix.as_str(), &prefix.upper_bound()])?,
                None => false,
            };
            strays += u64::from(!is_known);
        }
        Ok(strays)
    }

    /// Return the messages whose body file is missing or was changed.
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
