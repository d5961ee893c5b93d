//! The input box of a program: how a manifest describes it, and whether a screen shows it.
//!
//! Recognition is positive: the box counts as recognised only if the rows from its top down to the
//! end of the screen are rows that the manifest lists. Every other screen is left alone.

mod compare;
mod recognise;
#[cfg(test)]
mod tests;

use crate::harness::{Keys, Pattern};
use crate::text;
use regex::Regex;
use serde::{Deserialize, Serialize};

/// The group of the prompt's pattern that captures the text in the box.
const TEXT_GROUP: &str = "text";
/// Maximum number of characters that an explanation quotes from a row.
const QUOTED_CHARS: usize = 60;

/// Description of the input box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputBox {
    /// The row above the top row, for a top row that resembles a row of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<RowPattern>,
    /// The row above the prompt matches one of these.
    pub top: Vec<RowPattern>,
    /// The first row of the text. Its group `text` captures the text.
    pub prompt: RowPattern,
    /// Every further row of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<RowPattern>,
    /// The row below the text matches one of these.
    pub bottom: Vec<RowPattern>,
    /// Whether the top and bottom rows span the whole width of the terminal.
    #[serde(default)]
    pub full_width: bool,
    /// The rows below the bottom row, in order. Blank rows between them are ignored.
    #[serde(default)]
    pub footer: Vec<FooterRow>,
    /// Other rows that may follow.
    #[serde(default)]
    pub below: Below,
    /// Number of unlisted rows allowed below the box, for a person's status line.
    #[serde(default)]
    pub status_rows: usize,
    /// Texts that the program shows in an empty box.
    #[serde(default)]
    pub hints: Vec<RowPattern>,
    /// Placeholders that the program shows for a long paste.
    #[serde(default)]
    pub pasted: Vec<RowPattern>,
    /// A mark at the end of the first row or in the row above it which shows that the beginning of
    /// the text is scrolled out of view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrolled: Option<Pattern>,
    /// Whether the program shows its cursor while its box has the focus.
    #[serde(default)]
    pub visible_cursor: bool,
    /// Other views that resemble the input box; nothing is typed there.
    #[serde(default, rename = "except")]
    pub exceptions: Vec<ExcludedView>,
    /// Keys that empty the box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear: Option<Keys>,
}

/// A row below the box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FooterRow {
    pub row: RowPattern,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub follows: RowPosition,
}

/// Position of a footer row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowPosition {
    /// Below the previous rows of the list, if they are present.
    #[default]
    Anywhere,
    /// Directly below the previous row of the list.
    Directly,
    /// Directly below the previous row of the list, as its wrapped end. The pattern matches both
    /// rows, joined by a line break.
    Wrapped,
    /// Directly below the previous row of the list, as the wrapped end of the terminal's title.
    Title,
}

/// Rows allowed below the box besides its footer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Below {
    /// No others; a person's settings may allow a number of status rows.
    #[default]
    Listed,
    /// Any: the program never asks below its box.
    Any,
}

/// A view in which nothing is typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExcludedView {
    pub name: String,
    /// A pattern over the rows from the box down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Pattern>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Pattern>,
}

/// A pattern over one whole row. Unlike a [`Pattern`] it may match an empty one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RowPattern {
    written: String,
    regex: Regex,
}

impl RowPattern {
    fn matches(&self, row: &str) -> bool {
        self.regex.is_match(row)
    }

    /// Return the text in the row, and its byte offset.
    fn text<'r>(&self, row: &'r str) -> Option<(usize, &'r str)> {
        let found = self.regex.captures(row)?;
        let text = found.name(TEXT_GROUP);
        Some(text.map_or((row.len(), ""), |text| (text.start(), text.as_str())))
    }

    pub(crate) fn has_text(&self) -> bool {
        self.regex
            .capture_names()
            .flatten()
            .any(|name| name == TEXT_GROUP)
    }
}

impl PartialEq for RowPattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl TryFrom<String> for RowPattern {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let regex = crate::harness::manifest::compile(&format!(r"\A(?:{written})\z"))?;
        Ok(Self { written, regex })
    }
}

impl From<RowPattern> for String {
    fn from(pattern: RowPattern) -> Self {
        pattern.written
    }
}

/// State of the input box on a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BoxState {
    /// The harness describes no input box.
    #[default]
    Undescribed,
    /// The screen does not show the box as the harness describes it.
    Unrecognised(Mismatch),
    Empty,
    Holds(Held),
}

/// The text in a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub text: String,
    /// Whether the beginning of the text is out of view.
    pub is_scrolled: bool,
}

impl BoxState {
    pub fn is_recognised(&self) -> bool {
        match self {
            Self::Empty | Self::Holds(_) => true,
            Self::Undescribed | Self::Unrecognised(_) => false,
        }
    }
}

/// Why a screen does not show the box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub expected: String,
    /// The actual row.
    pub found: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl Mismatch {
    pub(crate) fn new(expected: impl Into<String>, found: &str) -> Self {
        let found = text::one_line(found.trim(), QUOTED_CHARS);
        let found = match found.is_empty() {
            true => "a blank row".to_owned(),
            false => format!("\"{found}\""),
        };
        Self {
            expected: expected.into(),
            found,
        }
    }
}
