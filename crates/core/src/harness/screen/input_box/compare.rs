//! Compares the text in an input box with a text of ours.

use super::{Held, InputBox, RowPattern};
use unicode_width::UnicodeWidthChar;

/// Minimum size of a single-line text that a program may fold into a paste marker.
const FOLDED_BYTES: usize = 200;

impl InputBox {
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

/// Remove white space and zero-width characters, because line wrapping and combining marks must not
/// affect the comparison.
pub(super) fn squeezed(text: &str) -> String {
    let is_seen = |c: &char| !c.is_whitespace() && c.width() != Some(0);
    text.chars().filter(is_seen).collect()
}
