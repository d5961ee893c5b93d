//! Reads the text and the options of a dialog from the rows of a screen.

use crate::ask::{AskKind, AskOption, MAX_TEXT_BYTES};
use crate::harness::manifest::{ChoosesBy, Dialog, OptionPatterns};
use crate::text;

/// A dialog as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogView {
    pub kind: AskKind,
    /// The subject of the question, in one line.
    pub summary: String,
    /// The rows above the options, without borders.
    pub text: String,
    /// Whether the rows do not hold the whole question.
    pub is_partial: bool,
    /// How an option is chosen, if the harness knows it.
    pub chooses_by: Option<ChoosesBy>,
    pub options: Vec<ShownOption>,
}

/// An option as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownOption {
    pub option: AskOption,
    /// Whether Enter would choose this option.
    pub is_highlighted: bool,
}

/// Longest summary of a question.
const SUMMARY_CHARS: usize = 160;
/// Markers of the highlighted option.
const MARKERS: [char; 4] = ['❯', '›', '●', '>'];

impl DialogView {
    pub(super) fn read(
        rows: &str,
        what: Option<&str>,
        dialog: &Dialog,
        patterns: &OptionPatterns,
    ) -> Self {
        let rows: Vec<&str> = rows.lines().map(without_border).collect();
        let found = match dialog.options {
            Some(ChoosesBy::Digit) | None => numbered(&rows),
            Some(ChoosesBy::Arrows) => marked(&rows),
        };
        let (above, options) = match found {
            Some((first, options)) => (&rows[..first], options),
            None => (&rows[..], Vec::new()),
        };
        let text = text_of(above);
        let is_cut = patterns.cut.iter().any(|cut| cut.is_in(&text));
        let options = options.into_iter().map(|found| ShownOption {
            option: AskOption {
                meaning: patterns.meaning(&found.label),
                key: found.key,
                label: found.label,
            },
            is_highlighted: found.is_highlighted,
        });
        let first = text.lines().next().unwrap_or_default();
        Self {
            kind: dialog.kind(),
            summary: text::one_line(what.unwrap_or(first), SUMMARY_CHARS),
            is_partial: dialog.partial || is_cut || text.len() > MAX_TEXT_BYTES,
            text: text::head(&text, MAX_TEXT_BYTES).to_owned(),
            chooses_by: dialog.options,
            options: options.collect(),
        }
    }

    /// Return the text and the options, without the marker, which moves.
    pub(super) fn identity(&self) -> String {
        let options = self.options.iter().map(|shown| &shown.option);
        let options = options.map(|option| format!("\n{}. {}", option.key, option.label));
        self.text.clone() + &options.collect::<String>()
    }

    /// Return the options that the harness can choose.
    pub fn answers(&self) -> Vec<AskOption> {
        match self.chooses_by {
            Some(_) => self
                .options
                .iter()
                .map(|shown| shown.option.clone())
                .collect(),
            None => Vec::new(),
        }
    }

    /// Whether Enter would choose the option with this key.
    pub fn is_highlighted(&self, key: &str) -> bool {
        let is_it = |shown: &&ShownOption| shown.option.key == key;
        self.options
            .iter()
            .find(is_it)
            .is_some_and(|shown| shown.is_highlighted)
    }

    /// Return the keys that choose or highlight an option. With arrows, Enter must follow.
    pub fn keys_for(&self, key: &str) -> Option<String> {
        const UP: &str = "\x1b[A";
        const DOWN: &str = "\x1b[B";
        let target = self
            .options
            .iter()
            .position(|shown| shown.option.key == key)?;
        match self.chooses_by? {
            ChoosesBy::Digit => Some(key.to_owned()),
            ChoosesBy::Arrows => {
                let from = self.options.iter().position(|shown| shown.is_highlighted)?;
                let arrow = if target < from { UP } else { DOWN };
                Some(arrow.repeat(target.abs_diff(from)))
            }
        }
    }
}

struct FoundOption {
    key: String,
    label: String,
    is_highlighted: bool,
}

/// Find the last list of rows that are numbered from 1, and return the row of its first option. A
/// command in the text above may contain such a list too.
fn numbered(rows: &[&str]) -> Option<(usize, Vec<FoundOption>)> {
    let last = rows.iter().rposition(|row| number_of(row).is_some())?;
    let mut wanted = number_of(rows[last])?.number;
    let mut starts = vec![last];
    for at in (0..last).rev() {
        if wanted == 1 {
            break;
        }
        if number_of(rows[at]).is_some_and(|found| found.number + 1 == wanted) {
            starts.push(at);
            wanted -= 1;
        }
    }
    if wanted != 1 {
        return None;
    }
    starts.reverse();
    let options = starts.iter().enumerate().filter_map(|(n, start)| {
        let end = starts.get(n + 1).copied().unwrap_or(rows.len());
        let found = number_of(rows[*start])?;
        Some(FoundOption {
            key: found.number.to_string(),
            label: label(found.label, &rows[start + 1..end]),
            is_highlighted: found.is_highlighted,
        })
    });
    Some((starts[0], options.collect()))
}

struct NumberedRow<'a> {
    number: usize,
    label: &'a str,
    is_highlighted: bool,
}

fn number_of(row: &str) -> Option<NumberedRow<'_>> {
    let bare = row.trim_start();
    let marked = bare.strip_prefix(MARKERS);
    let (digits, label) = marked.unwrap_or(bare).trim_start().split_once(". ")?;
    let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    Some(NumberedRow {
        number: digits.parse().ok().filter(|_| is_number)?,
        label: label.trim(),
        is_highlighted: marked.is_some(),
    })
}

/// Find the block of rows around the last marker. Its options are named by their position.
fn marked(rows: &[&str]) -> Option<(usize, Vec<FoundOption>)> {
    let at = rows
        .iter()
        .rposition(|row| row.trim_start().starts_with(MARKERS))?;
    let is_blank = |row: &&str| row.trim().is_empty();
    let first = rows[..at]
        .iter()
        .rposition(is_blank)
        .map_or(0, |blank| blank + 1);
    let end = rows[at..]
        .iter()
        .position(is_blank)
        .map_or(rows.len(), |n| at + n);
    let options = rows[first..end].iter().enumerate().map(|(n, row)| {
        let bare = row.trim_start();
        let marked = bare.strip_prefix(MARKERS);
        FoundOption {
            key: (n + 1).to_string(),
            label: marked.unwrap_or(bare).trim().to_owned(),
            is_highlighted: marked.is_some(),
        }
    });
    Some((first, options.collect()))
}

/// Join the rows of a label. A blank row ends it.
fn label(first: &str, more: &[&str]) -> String {
    let more = more.iter().map(|row| row.trim());
    let parts = std::iter::once(first).chain(more.take_while(|row| !row.is_empty()));
    parts.collect::<Vec<_>>().join(" ")
}

/// Return a row without the vertical lines of a frame. A row that only draws a line is empty.
fn without_border(row: &str) -> &str {
    const VERTICAL: [char; 3] = ['│', '┃', '║'];
    let is_line = |c: char| matches!(c, '\u{2500}'..='\u{259f}' | ' ');
    if row.chars().all(is_line) {
        return "";
    }
    let mut row = row.trim_end_matches(|c| c == ' ' || VERTICAL.contains(&c));
    // Frames may be nested.
    while let Some(inner) = row.trim_start().strip_prefix(VERTICAL) {
        row = inner;
    }
    row
}

/// Return rows as a text: without blank rows at both ends, with at most one between two others, and
/// without the indentation that all rows share.
fn text_of(rows: &[&str]) -> String {
    let is_text = |row: &&str| !row.trim().is_empty();
    let indent = |row: &str| row.chars().take_while(|c| *c == ' ').count();
    let shared = rows
        .iter()
        .filter(|row| is_text(row))
        .map(|row| indent(row))
        .min();
    let shared = shared.unwrap_or(0);
    let mut text = String::new();
    let mut is_blank = false;
    for row in rows {
        if !is_text(row) {
            is_blank = !text.is_empty();
            continue;
        }
        if !text.is_empty() {
            text.push_str(if is_blank { "\n\n" } else { "\n" });
        }
        text.push_str(row.get(shared..).unwrap_or(row).trim_end());
        is_blank = false;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Pattern;

    fn patterns() -> OptionPatterns {
        let list = |all: &[&str]| -> Vec<Pattern> {
            let pattern = |text: &&str| (*text).to_owned().try_into().unwrap();
            all.iter().map(pattern).collect()
        };
        OptionPatterns {
            allow: list(&["^Yes$"]),
            always: list(&["^Yes, and always"]),
            deny: list(&["^No"]),
            cut: list(&[r"… \+\d+ lines"]),
        }
    }

    fn view(rows: &str, options: Option<ChoosesBy>) -> DialogView {
        let dialog = Dialog {
            name: "permission".to_owned(),
            pattern: "x".to_owned().try_into().unwrap(),
            lines: 40,
            partial: false,
            options,
        };
        DialogView::read(rows, None, &dialog, &patterns())
    }

    fn said(view: &DialogView) -> Vec<String> {
        let options = view.options.iter().map(|shown| {
            let AskOption {
                key,
                label,
                meaning,
            } = &shown.option;
            let mark = if shown.is_highlighted { ">" } else { "" };
            format!("{mark}{key} {label} ({})", meaning.word())
        });
        options.collect()
    }

    #[test]
    fn a_numbered_dialog_has_a_text_and_options() {
        let rows = "\
────────────────────────
 Bash command
   cat <<E
   1. Yes
   2. No
   E
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to /work from this
      project
   3. No

 Esc to cancel";
        let view = view(rows, Some(ChoosesBy::Digit));
        let text = "Bash command\n  cat <<E\n  1. Yes\n  2. No\n  E\n\nDo you want to proceed?";
        assert_eq!(view.text, text);
        let options = [
            ">1 Yes (allow)",
            "2 Yes, and always allow access to /work from this project (always)",
            "3 No (deny)",
        ];
        assert_eq!(said(&view), options);
        assert_eq!(view.keys_for("3").as_deref(), Some("3"));
        assert_eq!(view.keys_for("4"), None);
        assert!(!view.is_partial);
    }

    #[test]
    fn a_frame_is_not_part_of_the_text() {
        let rows = "\
│ ? Shell  touch x             │
│ ╭──────────────────────────╮ │
│ │ touch x                  │ │
│ ╰──────────────────────────╯ │
│                              │
│ ● 1. Yes                     │
│   2. No, suggest changes     │
╰──────────────────────────────╯";
        let view = view(rows, Some(ChoosesBy::Digit));
        assert_eq!(view.text, "? Shell  touch x\n\ntouch x");
        assert_eq!(
            said(&view),
            [">1 Yes (allow)", "2 No, suggest changes (deny)"]
        );
    }

    #[test]
    fn arrows_move_from_the_highlighted_option() {
        let rows = "\nDo you trust this folder?\n\n ❯ No, exit\n   Yes\n\n Enter to confirm";
        let view = view(rows, Some(ChoosesBy::Arrows));
        assert_eq!(view.text, "Do you trust this folder?");
        assert_eq!(said(&view), [">1 No, exit (deny)", "2 Yes (allow)"]);
        assert_eq!(view.keys_for("2").as_deref(), Some("\x1b[B"));
        assert_eq!(view.keys_for("1").as_deref(), Some(""));
        assert!(view.is_highlighted("1") && !view.is_highlighted("2"));
    }

    #[test]
    fn an_unknown_dialog_has_no_answers_and_a_cut_one_is_partial() {
        let rows = " Bash\n  cat x\n  … +34 lines\n ❯ 1. Yes\n   2. Perhaps";
        let digits = view(rows, Some(ChoosesBy::Digit));
        assert!(digits.is_partial);
        assert_eq!(said(&digits), [">1 Yes (allow)", "2 Perhaps ()"]);
        assert_eq!(view(rows, None).answers(), []);
        let no_list = view("2. Yes\n3. No", Some(ChoosesBy::Digit));
        assert_eq!(said(&no_list), [""; 0]);
    }
}
