//! Prints rows in columns.

use super::Output;
use anstyle::Style;
use posthaste_store::report::Result;
use unicode_width::UnicodeWidthStr;

/// Pad the cells of each column to one width, and join the cells of each row.
pub(crate) fn align<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.max().unwrap_or(0)
    });
    let pad =
        |(cell, width): (&String, usize)| format!("{cell}{}", " ".repeat(width - cell.width()));
    let rows = rows.iter().map(|row| row.iter().zip(widths).map(pad));
    rows.map(|cells| cells.collect::<Vec<_>>().join("  "))
        .collect()
}

/// Print styled rows below a dimmed heading.
pub(crate) fn print<const N: usize>(
    out: &mut Output,
    heading: [&str; N],
    rows: impl Iterator<Item = (Style, [String; N])>,
) -> Result<()> {
    let heading = (Style::new().dimmed(), heading.map(str::to_owned));
    let (styles, rows): (Vec<_>, Vec<_>) = std::iter::once(heading).chain(rows).unzip();
    for (style, line) in styles.iter().zip(align(&rows)) {
        out.line(format!("{style}{}{style:#}", line.trim_end()))?;
    }
    Ok(())
}
