//! Which thread is meant by an id. What is in it, `query.rs` looks up.

use crate::error::{Error, Result, sqlite};
use crate::journal::Journal;
use crate::views::Views;
use crate::views::marks::Kind;
use crate::views::messages::NAMED;
use posthaste_core::{IdPrefix, MessageId};
use rusqlite::{Connection, params};

impl Journal {
    /// The thread that a prefix means: that of the message, or the one of this id, though the
    /// message that it is named after is deleted or was never here.
    pub fn find_thread(&mut self, prefix: &IdPrefix) -> Result<MessageId> {
        match self.find(prefix) {
            Ok(letter) => return Ok(letter.message.envelope.thread_id),
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let named = named(&self.conn, self.views, prefix);
        let mut fits = Vec::new();
        for thread in named.map_err(sqlite(&self.home.journal()))? {
            if !self.thread(thread)?.is_empty() {
                fits.push(thread);
            }
        }
        match fits.as_slice() {
            [] => Err(Error::NotFound(prefix.clone())),
            [thread] => Ok(*thread),
            _ => Err(Error::Ambiguous {
                prefix: prefix.clone(),
                fits,
            }),
        }
    }
}

/// The threads with these first digits that have more than the message they are named after.
fn named(conn: &Connection, views: Views, prefix: &IdPrefix) -> rusqlite::Result<Vec<MessageId>> {
    let mut look = views.prepare(
        conn,
        &format!(
            "SELECT DISTINCT whose FROM v#_marks
             WHERE kind = ?1 AND whose >= ?2 AND whose < ?3 ORDER BY whose LIMIT {NAMED}"
        ),
    )?;
    let bounds = params![Kind::Thread as u8, prefix.as_str(), prefix.upper_bound()];
    let ids = look.query_map(bounds, |row| row.get::<_, String>(0))?;
    ids.filter_map(|id| id.map(|id| id.parse().ok()).transpose())
        .collect()
}
