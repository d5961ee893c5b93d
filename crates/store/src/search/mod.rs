//! Full-text search of messages, by an index in a database of its own.
//!
//! A send never touches the index: a search updates it first, and an idle writer does so in
//! advance. The index can be deleted at any time.

mod index;

pub(crate) use index::fill_page;

use crate::error::{Result, sqlite};
use crate::journal::Journal;
use posthaste_core::receipt::End;
use posthaste_core::{AgentName, MessageState};
use rusqlite::Connection;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultOrder {
    #[default]
    NewestFirst,
    BestFirst,
}

/// A search. Quotes around a phrase and a star at the end of a word are the only syntax.
#[derive(Debug, Clone)]
pub struct Query {
    pub words: String,
    pub from: Option<AgentName>,
    pub to: Option<AgentName>,
    pub order: ResultOrder,
    pub limit: usize,
}

impl Journal {
    /// Return the messages that contain all of the words. If the index is far behind, `progress` is
    /// called with the number of facts still to be indexed.
    pub fn search(
        &mut self,
        query: &Query,
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<MessageState>> {
        self.catch_up()?;
        let Some(words) = as_match(&query.words) else {
            return Ok(Vec::new());
        };
        index::with_index(self, |index| {
            loop {
                let behind = index::fill(self, index)?;
                if behind == 0 {
                    break;
                }
                progress(behind);
            }
            self.look_up(index, &words, query)
        })
    }

    fn look_up(&self, index: &Connection, words: &str, query: &Query) -> Result<Vec<MessageState>> {
        let path = self.home().search();
        let ranking = match query.order {
            ResultOrder::NewestFirst => "rowid DESC",
            ResultOrder::BestFirst => "rank",
        };
        let sql = format!("SELECT rowid FROM letters WHERE letters MATCH ?1 ORDER BY {ranking}");
        let mut statement = index.prepare(&sql).map_err(sqlite(&path))?;
        let mut rows = statement.query([words]).map_err(sqlite(&path))?;
        let mut found = Vec::new();
        while found.len() < query.limit {
            let Some(row) = rows.next().map_err(sqlite(&path))? else {
                break;
            };
            let seq: u64 = row.get(0).map_err(sqlite(&path))?;
            let messages = self.messages(&[seq])?;
            found.extend(messages.into_iter().filter(|found| is_wanted(found, query)));
        }
        Ok(found)
    }
}

fn is_wanted(state: &MessageState, query: &Query) -> bool {
    state.status.end != Some(End::Deleted)
        && query
            .from
            .as_ref()
            .is_none_or(|from| state.message.envelope.from == *from)
        && query.to.as_ref().is_none_or(|to| state.message.to == *to)
}

/// Return the words as quoted FTS5 terms, or `None` if there are none.
fn as_match(words: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (index, part) in words.split('"').enumerate() {
        // Every other part is between quotes: a phrase.
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
    fn only_quotes_and_stars_are_query_syntax() {
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
