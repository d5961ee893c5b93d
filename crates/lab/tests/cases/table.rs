//! Table of cases and agents: results and receipts.

use serde::Serialize;
use std::collections::BTreeSet;

/// Result of one case with one agent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub(crate) enum Cell {
    /// Each message reached the model exactly once, only the person approved commands, and no
    /// receipt exceeds its proof.
    Green {
        what: String,
        receipt: String,
    },
    /// Not supported, for this reason.
    Absent {
        why: String,
    },
    /// A wait timed out.
    Late {
        why: String,
    },
    Red {
        why: String,
    },
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Green { what, receipt } if receipt.is_empty() => format!("ok: {what}"),
            Self::Green { what, receipt } => format!("ok: {what}; {receipt}"),
            Self::Absent { why } => format!("-: {why}"),
            // Only the first line; the rest was printed with the screen when it happened.
            Self::Late { why } | Self::Red { why } => {
                format!("RED: {}", why.lines().next().unwrap_or_default())
            }
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) agent: &'static str,
    pub(crate) version: String,
    pub(crate) case: &'static str,
    pub(crate) seconds: f64,
    /// Return whether the case was late at first and was tried again.
    pub(crate) was_late: bool,
    #[serde(flatten)]
    pub(crate) cell: Cell,
}

impl Entry {
    pub(crate) fn is_red(&self) -> bool {
        matches!(self.cell, Cell::Late { .. } | Cell::Red { .. })
    }
}

const CELL_WIDTH: usize = 30;

/// One row per case, one column per agent.
pub(crate) fn drawn(cases: &[&'static str], entries: &[Entry]) -> String {
    let agents: BTreeSet<(&str, &str)> = entries
        .iter()
        .map(|e| (e.agent, e.version.as_str()))
        .collect();
    let first = cases.iter().map(|case| case.len()).max().unwrap_or(0);
    let head = agents
        .iter()
        .map(|(name, version)| vec![format!("{name} {version}")]);
    let mut table = row("", first, &head.collect::<Vec<_>>());
    for case in cases {
        let of = |name: &str| {
            let entry = entries.iter().find(|e| e.case == *case && e.agent == name);
            entry.map_or_else(Vec::new, |entry| {
                wrapped(&format!("{} ({:.0} s)", entry.cell.text(), entry.seconds))
            })
        };
        if !entries.iter().any(|entry| entry.case == *case) {
            continue;
        }
        let cells: Vec<Vec<String>> = agents.iter().map(|(name, _)| of(name)).collect();
        table.push_str(&row(case, first, &cells));
    }
    table
}

fn row(name: &str, first: usize, cells: &[Vec<String>]) -> String {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut row = String::new();
    for at in 0..height {
        let mut line = format!("{:first$}", if at == 0 { name } else { "" });
        for cell in cells {
            let text = cell.get(at).map_or("", String::as_str);
            line.push_str(&format!("  {text:CELL_WIDTH$}"));
        }
        row.push_str(line.trim_end());
        row.push('\n');
    }
    row.push('\n');
    row
}

/// Wrap a text between words; a word that is too long has a line of its own.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= CELL_WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
