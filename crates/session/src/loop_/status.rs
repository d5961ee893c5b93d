//! Describes the stories of a loop for `ph status`.

use super::files;
use posthaste_core::text;
use std::path::Path;

/// Return headings and lines about the prd on disk, or why it cannot be read.
pub fn story_lines(path: &str) -> Result<Vec<(&'static str, String)>, String> {
    let prd = files::read_prd(Path::new(path)).map_err(|report| report.message().to_owned())?;
    let counts = format!("{} of {} pass", prd.done(), prd.total());
    let mut lines = vec![("stories", counts)];
    if let Some(story) = prd.current() {
        let title = text::one_line(&story.title, 200);
        lines.push((
            "story",
            format!("{}: {title}", text::one_line(&story.id, 80)),
        ));
        for criterion in &story.criteria {
            let mark = if criterion.passes { "[x]" } else { "[ ]" };
            let what = text::one_line(&criterion.description, 200);
            lines.push(("", format!("{mark} {what}")));
        }
    }
    Ok(lines)
}
