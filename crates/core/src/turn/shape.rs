//! How a message looks in an input box, whole or in part.

use super::header::head;
use super::{Content, Input, Telling, content, raw};
use crate::mail::Letter;

/// How a message stands in an input box that shows all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    head: String,
    begins: String,
    /// How long it is in all; unknown where it takes more than a line.
    bytes: Option<usize>,
}

impl Shape {
    pub fn of(letter: &Letter, telling: Telling, input: Input, path_bytes: usize) -> Self {
        if let Some(raw) = raw(letter) {
            return Self {
                head: raw.to_owned(),
                begins: raw.to_owned(),
                bytes: Some(raw.len()),
            };
        }
        let head = head(letter, telling);
        let (told, bytes) = match content(letter, telling, input) {
            Content::Lines(lines) => {
                let is_one = lines.len() <= 1;
                let line = lines.into_iter().next().unwrap_or_default();
                (line, is_one.then_some(0))
            }
            Content::File => ("Read ".to_owned(), Some(path_bytes)),
        };
        let begins = format!("{head} {told}");
        // What ends in the path of a file keeps the blank before it.
        let begins = match bytes {
            Some(0) | None => begins.trim_end().to_owned(),
            Some(_) => begins,
        };
        Self {
            bytes: bytes.map(|more| begins.len() + more),
            head,
            begins,
        }
    }

    /// Whether a box holds the message whole, and nothing else.
    pub fn is_all_of(&self, held: &str) -> bool {
        self.bytes == Some(held.len()) && held.starts_with(&self.begins)
    }

    /// Whether a row of a box shows the message's beginning; then there may be more of it, and of
    /// what somebody else has typed, in the next.
    pub fn is_begun_by(&self, held: &str) -> bool {
        held.starts_with(&self.head) || self.head.starts_with(held)
    }

    /// Whether a row of a box shows nothing but the message, or a part of it.
    pub fn has_all_of(&self, held: &str) -> bool {
        let is_short = self.bytes.is_some_and(|bytes| held.len() <= bytes);
        self.begins.starts_with(held) || (is_short && held.starts_with(&self.begins))
    }

    /// What begins it; all of an answer.
    pub fn beginning(&self) -> &str {
        &self.begins
    }
}
