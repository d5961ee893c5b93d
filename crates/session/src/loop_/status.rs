//! The stories of a loop, as a person is told them.

use super::files;
use posthaste_core::text;
use std::path::Path;

/// What a person is told of a prd as it stands on disk, a heading and a line each; or what is
/// wrong with it.
pub fn stories(path: &str) -> Result<Vec<(&'static str, String)>, String> {
    let prd = files::prd(Path::new(path)).map_err(|report| report.message().to_owned())?;
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
