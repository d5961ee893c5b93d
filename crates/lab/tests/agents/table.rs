//! Table of agents and cases.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    Passed(Duration),
    /// The agent does not support the case, for this reason.
    Absent(&'static str),
    Failed,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Results of the cases that were run; the last may have failed.
    pub(crate) cells: Vec<Cell>,
}

impl Row {
    pub(crate) fn has_passed(&self) -> bool {
        let failed = |cell: &Cell| matches!(cell, Cell::Failed);
        !self.cells.is_empty() && !self.cells.iter().any(failed)
    }
}

const CELL_WIDTH: usize = 12;

pub(crate) fn drawn(cases: &[&str], rows: &[Row]) -> String {
    let first = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut table = format!("{:first$}", "");
    for case in cases {
        table.push_str(&format!("  {case:CELL_WIDTH$}"));
    }
    for row in rows {
        table.push_str(&format!("\n{:first$}", row.name));
        for at in 0..cases.len() {
            let cell = match row.cells.get(at) {
                Some(Cell::Passed(took)) => format!("ok {:.1} s", took.as_secs_f64()),
                Some(Cell::Absent(why)) => (*why).to_owned(),
                Some(Cell::Failed) => "FAILED".to_owned(),
                None => "not reached".to_owned(),
            };
            table.push_str(&format!("  {cell:CELL_WIDTH$}"));
        }
    }
    let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}
