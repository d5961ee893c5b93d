//! The line that `ph` draws over the last row of an attached screen: help and notices.
//!
//! Drawing keeps the program's cursor, colours and character set. Only the session knows the text
//! below the line, so removing the line takes a redraw.

use super::Size;
use posthaste_core::text;
use unicode_width::UnicodeWidthChar;

/// Return the bytes that draw `line` over the last row.
pub(super) fn draw(line: &str, size: Size) -> Vec<u8> {
    let cols = usize::from(size.cols);
    let mut row = String::from(" ");
    let mut width = 1;
    for c in text::one_line(line, cols).chars() {
        let wide = c.width().unwrap_or(0);
        if width + wide > cols {
            break;
        }
        width += wide;
        row.push(c);
    }
    row.extend(std::iter::repeat_n(' ', cols.saturating_sub(width)));
    // Saving the cursor also saves origin mode and the character set.
    format!(
        "\x1b7\x1b[?6l\x1b[{};1H\x0f\x1b(B\x1b[0;7m{row}\x1b[0m\x1b8",
        size.rows
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fills_the_last_row_and_has_no_escape_sequences() {
        let check = |line: &str, want: &str| {
            let drawn = String::from_utf8(draw(line, Size { cols: 10, rows: 5 })).unwrap();
            let want = format!("\x1b7\x1b[?6l\x1b[5;1H\x0f\x1b(B\x1b[0;7m{want}\x1b[0m\x1b8");
            assert_eq!(drawn, want, "{line:?}");
        };
        check("hi", " hi       ");
        check("a\x1b[2Jb\nc", " a[2Jb c  ");
        check("twelve letters", " twelve le");
        check("漢漢漢漢漢漢", " 漢漢漢漢 ");
    }
}
