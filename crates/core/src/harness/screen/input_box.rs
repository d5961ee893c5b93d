//! The input box of a program: how a manifest describes it, and whether a screen shows it.
//!
//! Recognition is positive: the box counts as recognised only if the rows from its top down to the
//! end of the screen are rows that the manifest lists. Every other screen is left alone.

use crate::harness::{Glance, Keys, Pattern};
use crate::text;
use regex::Regex;
use serde::{Deserialize, Serialize};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The group of the prompt's pattern that captures the text in the box.
const TEXT: &str = "text";
/// A text of one line that is shorter is not folded into a paste marker by any known program.
const FOLDED_BYTES: usize = 200;
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
    pub exceptions: Vec<Exception>,
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
    pub follows: Follows,
}

/// Position of a footer row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follows {
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
pub struct Exception {
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
        let text = found.name(TEXT);
        Some(text.map_or((row.len(), ""), |text| (text.start(), text.as_str())))
    }

    pub(crate) fn has_text(&self) -> bool {
        self.regex
            .capture_names()
            .flatten()
            .any(|name| name == TEXT)
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

/// Position of the box on a screen.
struct Found {
    text: String,
    /// Byte offset of the text in the first row.
    text_at: usize,
    prompt: usize,
    rows: usize,
    is_scrolled: bool,
    has_footer: bool,
}

/// The row below the text.
#[derive(Clone, Copy)]
struct LowerEdge {
    row: usize,
    /// Whether the footer is visible. On a small terminal, a long text leaves no room for it.
    has_footer: bool,
}

impl Found {
    fn held(&self) -> Held {
        Held {
            text: self.text.trim_end().to_owned(),
            is_scrolled: self.is_scrolled,
        }
    }
}

impl InputBox {
    /// Recognise the box on a screen. `harness` is the manifest's name, for explanations.
    pub(super) fn recognise(&self, glance: &Glance<'_>, harness: &str) -> BoxState {
        match self.find(glance, harness) {
            Ok(found) => self.read(glance, &found),
            Err(mismatch) => BoxState::Unrecognised(mismatch),
        }
    }

    fn read(&self, glance: &Glance<'_>, found: &Found) -> BoxState {
        let held = found.text.trim();
        // A narrow terminal wraps a hint.
        let unbroken = held.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_whole = found.text.split('\n').all(|row| !row.trim().is_empty());
        let is_hint = is_whole && self.hints.iter().any(|hint| hint.matches(&unbroken));
        if !held.is_empty() && !is_hint {
            return BoxState::Holds(found.held());
        }
        if !found.has_footer {
            let expected = "the known status rows below the input box";
            return BoxState::Unrecognised(Mismatch::new(expected, ""));
        }
        let row = padded(glance, found.prompt);
        let is_at_start = glance.cursor == Some(found.prompt)
            && row.get(..found.text_at) == Some(glance.before)
            && (is_hint || found.rows == 1);
        match (is_at_start, held.is_empty()) {
            (true, _) => BoxState::Empty,
            (false, false) => BoxState::Holds(found.held()),
            (false, true) => BoxState::Unrecognised(Mismatch::new(
                "the cursor at the beginning of the input box",
                glance.before,
            )),
        }
    }

    fn find(&self, glance: &Glance<'_>, harness: &str) -> Result<Found, Mismatch> {
        let Some(cursor) = glance.cursor.filter(|at| *at < glance.lines.len()) else {
            return Err(Mismatch::new("the cursor in the input box", ""));
        };
        if self.visible_cursor && !glance.cursor_shown {
            return Err(Mismatch::new(
                "a visible cursor in the input box",
                &glance.lines[cursor],
            ));
        }
        let prompt = self.prompt_row(glance, cursor)?;
        let edge = self.lower_edge(glance, prompt, cursor, harness)?;
        self.check_exceptions(glance, prompt)?;
        Ok(self.text(glance, prompt, edge))
    }

    /// Find the row below the text. A blank row can be part of the text, so every candidate is
    /// tried.
    fn lower_edge(
        &self,
        glance: &Glance<'_>,
        prompt: usize,
        cursor: usize,
        harness: &str,
    ) -> Result<LowerEdge, Mismatch> {
        let mut mismatch = None;
        for row in prompt + 1..=glance.lines.len() {
            // The last row that is not blank ends the screen.
            let text = glance.lines.get(row).map_or("", String::as_str);
            if row > cursor && self.is_edge(&self.bottom, text, glance.columns) {
                let below = glance.lines.get(row + 1..).unwrap_or_default();
                match self.check_below(below, glance, harness) {
                    Ok(()) => {
                        let has_footer = true;
                        return Ok(LowerEdge { row, has_footer });
                    }
                    Err(_) if below.is_empty() && row > prompt + 1 && row == cursor + 1 => {
                        let has_footer = false;
                        return Ok(LowerEdge { row, has_footer });
                    }
                    Err(other) => mismatch = mismatch.or(Some(other)),
                }
            }
            let more = self.continuation.as_ref();
            let is_more = more.is_some_and(|more| more.matches(text));
            if !is_more || row == glance.lines.len() {
                let expected = "the lower edge of the input box";
                return Err(mismatch.unwrap_or_else(|| Mismatch::new(expected, text)));
            }
        }
        Err(Mismatch::new("the lower edge of the input box", ""))
    }

    /// Find the row with the prompt below the upper edge: the cursor's row, or one above it if the
    /// text has several rows.
    fn prompt_row(&self, glance: &Glance<'_>, cursor: usize) -> Result<usize, Mismatch> {
        let expected = "the prompt of the input box at the cursor";
        let mut mismatch = Mismatch::new(expected, &glance.lines[cursor]);
        for at in (0..=cursor).rev() {
            let row = padded(glance, at);
            if self.prompt.matches(&row) {
                let top = at
                    .checked_sub(1)
                    .map_or("", |above| glance.lines[above].as_str());
                let above = at
                    .checked_sub(2)
                    .map_or("", |above| glance.lines[above].as_str());
                let is_first = self.above.as_ref().is_none_or(|row| row.matches(above));
                if at > 0 && is_first && self.is_edge(&self.top, top, glance.columns) {
                    return Ok(at);
                }
                mismatch = Mismatch::new("the upper edge of the input box", top);
            }
            let more = self.continuation.as_ref();
            if !more.is_some_and(|more| more.matches(&row)) {
                break;
            }
            if at > 0 && self.is_scrolled_under(&glance.lines[at - 1], glance.columns) {
                return Ok(at);
            }
        }
        Err(mismatch)
    }

    /// Whether a row shows that the text above the next row is out of view.
    fn is_scrolled_under(&self, row: &str, columns: usize) -> bool {
        let is_wide = !self.full_width || row.width() == columns;
        let is_marked = |mark: &Pattern| mark.is_in(row) && !self.prompt.matches(row);
        is_wide && self.scrolled.as_ref().is_some_and(is_marked)
    }

    fn is_edge(&self, edges: &[RowPattern], row: &str, columns: usize) -> bool {
        let is_wide = !self.full_width || row.width() == columns;
        is_wide && edges.iter().any(|edge| edge.matches(row))
    }

    /// Check the rows below the box against the footer.
    fn check_below(
        &self,
        rows: &[String],
        glance: &Glance<'_>,
        harness: &str,
    ) -> Result<(), Mismatch> {
        // The next entry of the footer, and the row that matched the previous entry.
        let (mut next, mut matched) = (0, None);
        let mut unknown = 0;
        for (at, row) in rows.iter().enumerate() {
            if row.trim().is_empty() {
                continue;
            }
            let above = at.checked_sub(1).map_or("", |above| rows[above].as_str());
            let matches = |entry: usize| {
                let is_next = matched.is_some_and(|last| last + 1 == at) && entry == next;
                let FooterRow {
                    row: pattern,
                    follows,
                    ..
                } = &self.footer[entry];
                match follows {
                    Follows::Anywhere => pattern.matches(row),
                    Follows::Directly => is_next && pattern.matches(row),
                    Follows::Wrapped => is_next && pattern.matches(&format!("{above}\n{row}")),
                    Follows::Title => {
                        is_next && pattern.matches(row) && continues_title(&rows[..at], row, glance)
                    }
                }
            };
            let is_over = |entry: &usize| matches(*entry) || self.footer[*entry].required;
            let found = (next..self.footer.len()).find(is_over);
            if let Some(entry) = found.filter(|entry| matches(*entry)) {
                (next, matched) = (entry + 1, Some(at));
                continue;
            }
            unknown += 1;
            if self.below == Below::Listed && unknown > self.status_rows {
                let expected = format!(
                    "only listed rows below the input box (allow a status line with \
                     [harness.{harness}] status_rows in config.toml)"
                );
                return Err(Mismatch::new(expected, row));
            }
        }
        let mut missing = self.footer[next..].iter();
        match missing.find(|footer| footer.required) {
            Some(footer) => Err(Mismatch::new(
                format!("a row like '{}' below the input box", footer.row.written),
                rows.last().map_or("", String::as_str),
            )),
            None => Ok(()),
        }
    }

    fn check_exceptions(&self, glance: &Glance<'_>, prompt: usize) -> Result<(), Mismatch> {
        let below = glance.lines[prompt..].join("\n");
        let title = glance.title.unwrap_or_default();
        let is_in = |pattern: &Option<Pattern>, seen: &str| {
            pattern.as_ref().is_some_and(|pattern| pattern.is_in(seen))
        };
        let mut exceptions = self.exceptions.iter();
        match exceptions.find(|view| is_in(&view.screen, &below) || is_in(&view.title, title)) {
            Some(view) => Err(Mismatch::new("the usual input box", &view.name)),
            None => Ok(()),
        }
    }

    fn text(&self, glance: &Glance<'_>, prompt: usize, edge: LowerEdge) -> Found {
        let LowerEdge {
            row: bottom,
            has_footer,
        } = edge;
        let first = padded(glance, prompt);
        let is_first = self.prompt.matches(&first);
        let row = if is_first {
            Some(&self.prompt)
        } else {
            self.continuation.as_ref()
        };
        let (text_at, held) = row.and_then(|row| row.text(&first)).unwrap_or((0, ""));
        let mark = self.scrolled.as_ref().and_then(|mark| mark.position(held));
        let mut text = held[..mark.unwrap_or(held.len())].trim_end().to_owned();
        for row in &glance.lines[prompt + 1..bottom] {
            let more = self.continuation.as_ref().and_then(|more| more.text(row));
            text.push('\n');
            text.push_str(more.map_or("", |(_, more)| more.trim_end()));
        }
        Found {
            text,
            text_at,
            prompt,
            rows: bottom - prompt,
            is_scrolled: mark.is_some() || !is_first,
            has_footer,
        }
    }

    /// Guess the cursor's row and column on a captured screen: in the last row that matches the
    /// prompt, at the start of a hint or else at the end of the text. A capture omits blanks at the
    /// end of a row.
    pub fn likely_cursor(&self, rows: &[String]) -> Option<(usize, usize)> {
        let in_row = |row: &String| {
            let padded = format!("{row} ");
            let row = [row, &padded]
                .into_iter()
                .find(|row| self.prompt.matches(row))?;
            let (text_at, text) = self.prompt.text(row)?;
            let is_hint = self.hints.iter().any(|hint| hint.matches(text.trim()));
            Some(if is_hint {
                row[..text_at].width()
            } else {
                row.width()
            })
        };
        let mut rows = rows.iter().enumerate().rev();
        rows.find_map(|(at, row)| Some((at, in_row(row)?)))
    }

    /// Whether the box holds `ours` and nothing else. A small box shows the end of the text, and a
    /// long paste may be shown as a marker.
    pub fn is_text(&self, held: &Held, ours: &str) -> bool {
        let is_long = ours.lines().count() > 1 || ours.len() >= FOLDED_BYTES;
        let is_marker = |marker: &RowPattern| marker.matches(held.text.trim());
        let is_marker = is_long && self.pasted.iter().any(is_marker);
        let (shown, ours) = (squeezed(&held.text), squeezed(ours));
        let is_end = held.is_scrolled && !shown.is_empty() && ours.ends_with(&shown);
        is_marker || is_end || shown == ours
    }

    /// Whether the box shows a part of `ours`, or `ours` with other text.
    pub(crate) fn overlaps(&self, held: &Held, ours: &str) -> bool {
        let (shown, ours) = (squeezed(&held.text), squeezed(ours));
        !shown.is_empty() && (shown.contains(&ours) || ours.contains(&shown))
    }
}

/// Whether `row` continues the terminal's title, which did not fit into the rows `before`. The text
/// of `before` and `row` must end with a prefix of the title that contains all of `row`.
fn continues_title(before: &[String], row: &str, glance: &Glance<'_>) -> bool {
    let first = row.split_whitespace().next().unwrap_or_default();
    let above = before.last().map_or(0, |above| above.width());
    if above + 1 + first.width() <= glance.columns {
        return false;
    }
    // The title can begin with a status symbol that the row does not show.
    let is_mark = |c: char| !c.is_alphanumeric();
    let title = squeezed(glance.title.unwrap_or_default().trim_start_matches(is_mark));
    let row = squeezed(row);
    let shown = squeezed(&before.concat()) + &row;
    let ends = title.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.filter(|end| *end >= row.len())
        .any(|end| shown.ends_with(&title[..end]))
}

/// Return a row. The cursor's row is padded up to the cursor, because a screen omits trailing
/// spaces.
fn padded(glance: &Glance<'_>, at: usize) -> String {
    let row = &glance.lines[at];
    match glance.cursor == Some(at) && glance.before.starts_with(row.as_str()) {
        true => glance.before.to_owned(),
        false => row.clone(),
    }
}

/// Remove white space and zero-width characters, because line wrapping and combining marks must not
/// affect the comparison.
fn squeezed(text: &str) -> String {
    let is_seen = |c: &char| !c.is_whitespace() && c.width() != Some(0);
    text.chars().filter(is_seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(text: &str) -> RowPattern {
        text.to_owned().try_into().unwrap()
    }

    /// A box between two rules, as in Claude Code.
    fn between_rules() -> InputBox {
        InputBox {
            above: None,
            top: vec![row("─+"), row("─* .+ ─")],
            prompt: row("❯\u{a0}(?<text>.*)"),
            continuation: Some(row("(?:  (?<text>.*))?")),
            bottom: vec![row("─+")],
            full_width: true,
            footer: Vec::new(),
            below: Below::Any,
            status_rows: 0,
            hints: vec![row("Press up to edit queued messages")],
            pasted: vec![row(r"\[Pasted text #\d+(?: \+\d+ lines)?\]")],
            scrolled: Some("─ ↑ \\d+ ─".to_owned().try_into().unwrap()),
            visible_cursor: false,
            exceptions: vec![Exception {
                name: "subagent view".to_owned(),
                screen: Some("^◯ main".to_owned().try_into().unwrap()),
                title: Some("agents$".to_owned().try_into().unwrap()),
            }],
            clear: None,
        }
    }

    /// A box between blank rows with listed rows below it, as in Codex.
    fn between_blanks() -> InputBox {
        InputBox {
            top: vec![row("")],
            prompt: row("› (?<text>.*)"),
            continuation: Some(row("(?:  (?<text>.*))?")),
            bottom: vec![row("")],
            full_width: false,
            footer: vec![
                FooterRow {
                    row: row("  model .*"),
                    required: true,
                    follows: Follows::Anywhere,
                },
                FooterRow {
                    row: row(r"  \? for shortcuts"),
                    required: false,
                    follows: Follows::Anywhere,
                },
            ],
            below: Below::Listed,
            hints: vec![row("Ask anything")],
            scrolled: Some("↑$".to_owned().try_into().unwrap()),
            visible_cursor: true,
            ..between_rules()
        }
    }

    /// Describe the recognised box. `_` marks the cursor and takes no column.
    fn recognised(input_box: &InputBox, screen: &str, title: &str) -> String {
        let mut cursor = None;
        let mut before = String::new();
        let mut lines = Vec::new();
        for (at, line) in screen.lines().enumerate() {
            if let Some((head, tail)) = line.split_once('_') {
                (cursor, before) = (Some(at), head.to_owned());
                lines.push(format!("{head}{tail}").trim_end_matches(' ').to_owned());
            } else {
                lines.push(line.to_owned());
            }
        }
        let glance = Glance {
            title: Some(title),
            lines: &lines,
            cursor,
            before: &before,
            cursor_shown: true,
            columns: 10,
            ..Glance::default()
        };
        match input_box.recognise(&glance, "lab") {
            BoxState::Undescribed => "undescribed".to_owned(),
            BoxState::Unrecognised(Mismatch { expected, found }) => {
                format!("expected {expected}, found {found}")
            }
            BoxState::Empty => "empty".to_owned(),
            BoxState::Holds(held) => format!(
                "<{}>{}",
                held.text,
                ["", "…"][usize::from(held.is_scrolled)]
            ),
        }
    }

    const RULE: &str = "──────────";

    #[test]
    fn a_box_between_rules_is_recognised() {
        let claude = between_rules();
        let check = |screen: &str, want: &str| {
            let screen = screen.replace("RULE", RULE);
            assert_eq!(recognised(&claude, &screen, "x"), want, "{screen}");
        };
        check("said\nRULE\n❯\u{a0}_\nRULE\n  ? for shortcuts", "empty");
        check("─── mine ─\n❯\u{a0}_\nRULE", "empty");
        check("RULE\n❯\u{a0}_\nRULE\nmy own\nstatus\nRULE", "empty");
        check(
            "RULE\n❯\u{a0}_Press up to edit queued messages\nRULE",
            "empty",
        );
        check(
            "RULE\n❯\u{a0}Press up to edit queued messages_\nRULE",
            "<Press up to edit queued messages>",
        );
        check("RULE\n❯\u{a0}hi_\nRULE", "<hi>");
        check("RULE\n❯\u{a0}one\n\n  two_\nRULE", "<one\n\ntwo>");
        check("RULE\n❯\u{a0}one_\n  two\nRULE", "<one\ntwo>");
        check("── ↑ 3 ───\n  one\n  two_\nRULE", "<one\ntwo>…");
        let not = |expected: &str, found: &str| format!("expected {expected}, found {found}");
        let prompt = "the prompt of the input box at the cursor";
        check("RULE\n❯ _Ask\nRULE", &not(prompt, "\"❯ Ask\""));
        check("RULE\n❯\u{a0}\nRULE\n_", &not(prompt, "a blank row"));
        check("RULE\n❯\u{a0}\nRULE\n_x", &not(prompt, "\"x\""));
        check(
            "❯ 1. Yes\n❯\u{a0}_\nRULE",
            &not("the upper edge of the input box", "\"❯ 1. Yes\""),
        );
        check(
            "─────\n❯\u{a0}_\nRULE",
            &not("the upper edge of the input box", "\"─────\""),
        );
        check(
            "RULE\n❯\u{a0}_\n─────",
            &not("the lower edge of the input box", "\"─────\""),
        );
        check(
            "RULE\n❯\u{a0}_\nDo you?\nRULE",
            &not("the lower edge of the input box", "\"Do you?\""),
        );
        check(
            "RULE\n❯\u{a0} _\nRULE",
            &not("the cursor at the beginning of the input box", "\"❯\""),
        );
        check(
            "RULE\n❯\u{a0}_\nRULE\n◯ main",
            &not("the usual input box", "\"subagent view\""),
        );
        let idle = format!("{RULE}\n❯\u{a0}_\n{RULE}");
        assert!(recognised(&claude, &idle, "claude agents").contains("subagent view"));
    }

    #[test]
    fn rows_below_a_box_are_listed_or_allowed() {
        let mut codex = between_blanks();
        let check = |codex: &InputBox, screen: &str, want: &str| {
            let seen = recognised(codex, screen, "x");
            assert!(seen.starts_with(want), "{screen}\n{seen}");
        };
        check(
            &codex,
            "said\n\n› _Ask anything\n\n  model x\n  ? for shortcuts",
            "empty",
        );
        check(&codex, "said\n\n› _Ask anything\n\n  model x", "empty");
        check(
            &codex,
            "said\n\n› one\n\n  two_\n\n  model x",
            "<one\n\ntwo>",
        );
        check(
            &codex,
            "said\n\n› end  ↑\n  more_\n\n  model x",
            "<end\nmore>…",
        );
        check(
            &codex,
            "said\n\n› _\n\n",
            "expected a row like '  model .*' below the input box",
        );
        let other = "\n› _\n\n  model x\n  1. Yes";
        check(
            &codex,
            other,
            "expected only listed rows below the input box (allow a status line with \
             [harness.lab] status_rows in config.toml), found \"1. Yes\"",
        );
        codex.status_rows = 1;
        check(&codex, other, "empty");
        check(
            &codex,
            &format!("{other}\n  2. No"),
            "expected only listed rows",
        );
    }

    #[test]
    fn a_wrapped_row_is_matched_with_the_row_above_it() {
        let mut codex = between_blanks();
        codex.footer.insert(
            1,
            FooterRow {
                row: row(r"  model ctrl\+p\n  commands"),
                required: false,
                follows: Follows::Wrapped,
            },
        );
        let check = |screen: &str, want: &str| {
            let seen = recognised(&codex, screen, "x");
            assert!(seen.starts_with(want), "{screen}\n{seen}");
        };
        let unlisted = "expected only listed rows";
        check("\n› _\n\n  model ctrl+p\n  commands", "empty");
        check("\n› _\n\n  model xy\n  commands", unlisted);
        check("\n› _\n\n  model ctrl+p\n\n  commands", unlisted);
    }

    #[test]
    fn a_title_row_continues_the_title_of_the_terminal() {
        let mut codex = between_blanks();
        for at in [1, 2] {
            let follows = Follows::Title;
            let footer = FooterRow {
                row: row("  .*"),
                required: false,
                follows,
            };
            codex.footer.insert(at, footer);
        }
        let check = |screen: &str, title: &str, want: &str| {
            let seen = recognised(&codex, screen, title);
            assert!(seen.starts_with(want), "{screen}\n{title}\n{seen}");
        };
        let (empty, unlisted) = ("empty", "expected only listed rows");
        check(
            "\n› _\n\n  model xy\n  and more",
            "xy and more | work",
            empty,
        );
        check(
            "\n› _\n\n  model x·\n  and more",
            "⠋ and more | work",
            empty,
        );
        // The test terminal has ten columns, and these words fit into the first row.
        check("\n› _\n\n  model \n  a b", "a b", unlisted);
        check(
            "\n› _\n\n  model xy\n  and more\n  than so",
            "xy and more than so",
            empty,
        );
        check("\n› _\n\n  model xy\n  cancel", "xy and more", unlisted);
        check(
            "\n› _\n\n  model xy\n  cancel",
            "how to cancel it",
            unlisted,
        );
        check("\n› _\n\n  model xy\n  cancel", "", unlisted);
    }

    #[test]
    fn the_cursor_of_a_capture_is_guessed() {
        let check = |screen: &str, want: Option<(usize, usize)>| {
            let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
            assert_eq!(between_blanks().likely_cursor(&rows), want, "{screen}");
        };
        check("said\n\n› \n\n  model x", Some((2, 2)));
        check("said\n\n›\n\n  model x", Some((2, 2)));
        check("› old\n\n› 漢字", Some((2, 6)));
        check("\n› Ask anything\n", Some((1, 2)));
        check("said\n\n  model x", None);
        check("", None);
    }

    #[test]
    fn texts_are_compared_without_line_breaks() {
        let codex = between_blanks();
        let check = |text: &str, is_scrolled, ours: &str, want: bool| {
            let held = Held {
                text: text.to_owned(),
                is_scrolled,
            };
            assert_eq!(codex.is_text(&held, ours), want, "{text} {ours}");
        };
        check(
            "[ph message] a lo\nng word",
            false,
            "[ph message] a long word ",
            true,
        );
        check("e\u{301}té", false, "eté", true);
        check("hello", false, "hello!", false);
        check("hello!", false, "hello", false);
        check("lo!", true, "hello!", true);
        check("", true, "hello!", false);
        check("lo!", false, "hello!", false);
        check("[Pasted text #1 +5 lines]", false, "one\ntwo", true);
        check(
            "[Pasted text #1 +5 lines]",
            false,
            &"long ".repeat(40),
            true,
        );
        check("[Pasted text #1 +5 lines]", false, "hello", false);
        check("[Pasted text #1 +5 lines] x", false, "hello", false);
    }

    proptest! {
        #[test]
        fn recognition_never_panics_on_any_screen(
            lines in prop::collection::vec("\\PC{0,20}|❯\u{a0}.{0,9}|─{10}|› .{0,9}|", 0..12),
            cursor in prop::option::of(0..14_usize),
            before in "\\PC{0,6}|❯\u{a0}|› ",
        ) {
            for input_box in [between_rules(), between_blanks()] {
                let glance = Glance { lines: &lines, cursor, before: &before, columns: 10, ..Glance::default() };
                let state = input_box.recognise(&glance, "lab");
                if let BoxState::Unrecognised(Mismatch { found, .. }) = state {
                    prop_assert_eq!(&crate::text::visible(&found), &found);
                }
            }
        }
    }
}
