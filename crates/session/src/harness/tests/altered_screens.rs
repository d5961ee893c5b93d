//! Tests that altered screens never show an empty input box. The screens are recorded ones with an
//! empty box, altered in every way in which a dialog or an unknown view could alter them.

use super::{FOLDERS, SIZES, dir, manifest, screen, states};
use posthaste_core::harness::{Below, BoxState, Glance, Manifest};
use posthaste_lab::agents::{Agent, BoxKind};
use std::cell::RefCell;
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthChar;

#[derive(Debug, Clone)]
struct Shown {
    rows: Vec<String>,
    cursor: (usize, usize),
    cursor_shown: bool,
    columns: usize,
    title: String,
}

impl Shown {
    fn is_empty_box(&self, harness: &Manifest) -> bool {
        let (row, column) = self.cursor;
        let text = self.rows.get(row).map_or("", String::as_str);
        let mut before = String::new();
        let mut width = 0;
        for c in text.chars().chain(std::iter::repeat(' ')) {
            if width >= column {
                break;
            }
            width += c.width().unwrap_or(0);
            before.push(c);
        }
        let blank = |row: &&String| row.trim_matches(' ').is_empty();
        let trailing = self.rows.iter().rev().take_while(blank).count();
        let end = (self.rows.len() - trailing)
            .max(row + 1)
            .min(self.rows.len());
        let seen = harness.recognise(&Glance {
            title: Some(&self.title),
            lines: &self.rows[..end],
            cursor: Some(row),
            before: &before,
            cursor_shown: self.cursor_shown,
            columns: self.columns,
            ..Glance::default()
        });
        seen.input_box == BoxState::Empty
    }

    fn deleted(&self, at: usize) -> Self {
        let mut other = self.clone();
        other.rows.remove(at);
        other.cursor.0 -= usize::from(at < self.cursor.0);
        other
    }

    /// Insert a row. The cursor stays in its row.
    fn inserted(&self, at: usize, row: &str) -> Self {
        let mut other = self.clone();
        other.rows.insert(at, row.to_owned());
        other.cursor.0 += usize::from(at <= self.cursor.0);
        other
    }

    fn altered(&self, at: usize, row: String) -> Self {
        let mut other = self.clone();
        other.rows[at] = row;
        other
    }
}

fn shown(harness: &Manifest, folder: &str, size: usize, state: &str) -> Shown {
    let screen = screen(harness, folder, SIZES[size], state);
    let (rows, cursor) = screen.foot(SIZES[size].1.rows.into());
    Shown {
        rows,
        cursor: (cursor.unwrap(), screen.cursor().1),
        cursor_shown: screen.cursor_visible(),
        columns: SIZES[size].1.cols.into(),
        title: screen.title().unwrap_or_default().to_owned(),
    }
}

/// Return the screens of a folder with an empty box, and those on which nothing may be typed.
fn screens(harness: &Manifest, folder: &str, size: usize) -> (Vec<(String, Shown)>, Vec<Shown>) {
    let name = SIZES[size].0;
    let (mut empty, mut hidden) = (Vec::new(), Vec::new());
    for state in states(folder, name) {
        let shown = shown(harness, folder, size, &state);
        match state.as_str() {
            "trust" | "dialog" => hidden.push(shown),
            "draft" | "pasted" => {}
            _ => empty.push((state, shown)),
        }
    }
    let is_its = |agent: &Agent| folder.split('-').next() == Some(agent.name());
    let agent = Agent::ALL.into_iter().find(is_its);
    let views = agent.map(Agent::views).unwrap_or_default();
    for view in views {
        let state = format!("views/{}", view.name);
        if !dir(folder, name).join(format!("{state}.txt")).exists() {
            continue;
        }
        let shown = shown(harness, folder, size, &state);
        match view.input_box {
            BoxKind::Empty => empty.push((state, shown)),
            BoxKind::Hidden => hidden.push(shown),
            BoxKind::Holds => {}
        }
    }
    (empty, hidden)
}

fn check(size: usize) {
    let mut checked = 0;
    let mistaken = RefCell::new(Vec::new());
    for (folder, agent) in FOLDERS {
        let harness = manifest(agent);
        let (empty, hidden) = screens(&harness, folder, size);
        for (state, shown) in &empty {
            let about = format!("{folder} {} {state}", SIZES[size].0);
            assert!(shown.is_empty_box(&harness), "{about}");
            let wrong = |what: &str, other: &Shown| {
                if other.is_empty_box(&harness) {
                    let rows = other.rows.join("\n");
                    mistaken
                        .borrow_mut()
                        .push(format!("{about}: {what}:\n{rows}\n"));
                }
            };
            rows_from_the_top_down(&harness, shown, wrong);
            foreign_rows(&harness, shown, (&empty, &hidden), wrong);
            cursors(shown, wrong);
            grafts(shown, &hidden, wrong);
            above(&harness, shown, &hidden, &about);
            checked += 1;
        }
    }
    let mistaken = mistaken.into_inner();
    let count = mistaken.len();
    assert!(
        mistaken.is_empty(),
        "{count} mistaken:\n{}",
        mistaken.join("\n")
    );
    assert!(checked > 20, "{checked}");
}

/// Return the rows that the manifest checks: from the top of the box to the end of the screen, or
/// to the bottom of the box if any row may follow.
fn checked_rows(harness: &Manifest, shown: &Shown) -> std::ops::Range<usize> {
    let top = shown.cursor.0 - 1;
    let input_box = harness.input_box.as_ref().unwrap();
    match input_box.below {
        Below::Any => top..top + 3,
        Below::Listed => top..shown.rows.len(),
    }
}

fn rows_from_the_top_down(harness: &Manifest, shown: &Shown, wrong: impl Fn(&str, &Shown)) {
    let rows = checked_rows(harness, shown);
    let input_box = harness.input_box.as_ref().unwrap();
    let top = rows.start;
    for at in rows {
        let row = &shown.rows[at];
        let is_same = |other: Option<usize>| other.is_some_and(|o| shown.rows.get(o) == Some(row));
        let is_known = |other: &Shown| lacks_optional_footer(harness, shown, other);
        // Deleting one of two equal rows does not change the screen.
        let deleted = shown.deleted(at);
        if !is_same(at.checked_sub(1)) && !is_same(Some(at + 1)) && !is_known(&deleted) {
            wrong("a row is deleted", &deleted);
        }
        // If any row may follow the box, a second rule below it is a status line.
        let is_free = input_box.below == Below::Any && at > shown.cursor.0;
        if at > top && !row.trim().is_empty() && !is_free {
            wrong("a row is doubled", &shown.inserted(at, row));
            if at == shown.cursor.0 {
                wrong("the prompt is doubled", &shown.inserted(at + 1, row));
            }
        }
        if row.trim().is_empty() && at > shown.cursor.0 + 1 {
            continue;
        }
        for altered in [
            format!("x{row}"),
            row.replace(['─', '▄', '▀', '❯', '›', '>', '┃', '╹'], "x"),
        ] {
            if altered != *row {
                wrong("a row is altered", &shown.altered(at, altered));
            }
        }
        if row.chars().count() > 10 && row.chars().all(|c| c == '─' || c == '▄' || c == '▀') {
            let shorter = row.chars().skip(1).collect();
            wrong("an edge is shorter", &shown.altered(at, shorter));
        }
    }
}

/// Whether `other` lacks only an optional row of the footer.
fn lacks_optional_footer(harness: &Manifest, shown: &Shown, other: &Shown) -> bool {
    let input_box = harness.input_box.as_ref().unwrap();
    let required = input_box.footer.iter().filter(|footer| footer.required);
    let below = |shown: &Shown| {
        let rows = shown.rows[shown.cursor.0 + 2..].iter();
        rows.filter(|row| !row.trim().is_empty()).count()
    };
    other.cursor.0 + 2 <= other.rows.len()
        && other.rows[..other.cursor.0 + 2] == shown.rows[..shown.cursor.0 + 2]
        && below(other) >= required.count()
}

/// Insert rows of dialogs and unknown views at every position from the top of the box down, except
/// rows that another screen of the agent shows there with an empty box.
fn foreign_rows(
    harness: &Manifest,
    shown: &Shown,
    (empty, hidden): (&[(String, Shown)], &[Shown]),
    wrong: impl Fn(&str, &Shown),
) {
    let own: BTreeSet<&String> = empty
        .iter()
        .flat_map(|(_, own)| &own.rows[checked_rows(harness, own)])
        .collect();
    let is_own = |row: &&String| row.trim().is_empty() || own.contains(row);
    let foreign: BTreeSet<&String> = hidden
        .iter()
        .flat_map(|other| &other.rows)
        .filter(|row| !is_own(row))
        .collect();
    let input_box = harness.input_box.as_ref().unwrap();
    let rows = checked_rows(harness, shown);
    let last = match input_box.below {
        Below::Any => rows.end - 1,
        Below::Listed => rows.end,
    };
    for at in rows.start + 1..=last {
        for row in &foreign {
            // A rule directly above the prompt is the top of a box; the old top is then above it.
            let is_top = at == shown.cursor.0 && row.starts_with('─');
            if !is_top {
                wrong("a foreign row is inserted", &shown.inserted(at, row));
            }
        }
    }
}

/// Move the cursor to every other position.
fn cursors(shown: &Shown, wrong: impl Fn(&str, &Shown)) {
    for row in shown.cursor.0.saturating_sub(2)..shown.rows.len() {
        for column in 0..12 {
            let cursor = (row, column);
            if cursor != shown.cursor {
                wrong(
                    "the cursor is moved",
                    &Shown {
                        cursor,
                        ..shown.clone()
                    },
                );
            }
        }
    }
}

/// Put a dialog or an unknown view below or in place of the box, with its own cursor.
fn grafts(shown: &Shown, hidden: &[Shown], wrong: impl Fn(&str, &Shown)) {
    for other in hidden {
        for keep in [shown.cursor.0 - 1, shown.rows.len()] {
            let mut rows = shown.rows[..keep].to_vec();
            rows.extend(other.rows.iter().cloned());
            let cursor = (keep + other.cursor.0, other.cursor.1);
            wrong(
                "another view is grafted",
                &Shown {
                    rows,
                    cursor,
                    ..other.clone()
                },
            );
        }
    }
}

/// Check that a dialog or an unknown view above the box changes nothing.
fn above(harness: &Manifest, shown: &Shown, hidden: &[Shown], about: &str) {
    let top = shown.cursor.0 - 1;
    for other in hidden {
        // The row above the box is checked if the top row looks like text.
        let between = [String::new()];
        let rows = [&other.rows[..], &between, &shown.rows[top..]].concat();
        let cursor = (other.rows.len() + 2, shown.cursor.1);
        let quoted = Shown {
            rows,
            cursor,
            ..shown.clone()
        };
        assert!(quoted.is_empty_box(harness), "{about}: {:#?}", quoted.rows);
    }
}

#[test]
fn no_altered_screen_of_40_columns_shows_an_empty_box() {
    check(0);
}

#[test]
fn no_altered_screen_of_80_columns_shows_an_empty_box() {
    check(1);
}

#[test]
fn no_altered_screen_of_120_columns_shows_an_empty_box() {
    check(2);
}

#[test]
fn no_altered_screen_of_200_columns_shows_an_empty_box() {
    check(3);
}
