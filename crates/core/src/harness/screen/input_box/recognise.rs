//! Finds the input box on a screen, positively: every row from the box down must be a listed one.

use super::compare::squeezed;
use super::{Below, BoxState, FooterRow, Held, InputBox, Mismatch, RowPattern, RowPosition};
use crate::harness::{Glance, Pattern};
use unicode_width::UnicodeWidthStr;

/// Position of the box on a screen.
struct BoxPosition {
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

impl BoxPosition {
    fn held(&self) -> Held {
        Held {
            text: self.text.trim_end().to_owned(),
            is_scrolled: self.is_scrolled,
        }
    }
}

impl InputBox {
    /// Recognise the box on a screen. `harness` is the manifest's name, for explanations.
    pub(in crate::harness::screen) fn recognise(
        &self,
        glance: &Glance<'_>,
        harness: &str,
    ) -> BoxState {
        match self.find(glance, harness) {
            Ok(found) => self.read(glance, &found),
            Err(mismatch) => BoxState::Unrecognised(mismatch),
        }
    }

    fn read(&self, glance: &Glance<'_>, found: &BoxPosition) -> BoxState {
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

    fn find(&self, glance: &Glance<'_>, harness: &str) -> Result<BoxPosition, Mismatch> {
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
                    RowPosition::Anywhere => pattern.matches(row),
                    RowPosition::Directly => is_next && pattern.matches(row),
                    RowPosition::Wrapped => is_next && pattern.matches(&format!("{above}\n{row}")),
                    RowPosition::Title => {
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

    fn text(&self, glance: &Glance<'_>, prompt: usize, edge: LowerEdge) -> BoxPosition {
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
        BoxPosition {
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
