//! Blocks that a loop appends to progress.txt, in the format of the original. The file belongs to
//! the agent. A text from outside cannot leave its line.

use super::fact::IterationFailure;
use crate::text;
use jiff::Timestamp;
use jiff::tz::TimeZone;

const TIME_FORMAT: &str = "%Y-%m-%d %H:%M";
/// Maximum number of characters of a text from outside.
const MAX_TEXT_CHARS: usize = 500;

/// The facts that every block names.
#[derive(Debug, Clone)]
pub struct ProgressEntry<'a> {
    pub at: Timestamp,
    pub zone: &'a TimeZone,
    pub iteration: u32,
    /// Number of the last allowed iteration; 0 means no limit.
    pub last: u32,
    /// The name of the agent's harness.
    pub agent: &'a str,
}

/// Return the block for a failed iteration, with the number of consecutive failures.
pub fn failure(
    entry: &ProgressEntry<'_>,
    story: Option<&str>,
    failures: u32,
    failure: &IterationFailure,
) -> String {
    format!(
        "\n## {} - FAILURE (Iteration {})\n\
         - **Agent:** {}\n\
         - **Story:** {}\n\
         - **Consecutive failures:** {failures}\n\
         - **Error:** {}\n\
         ---\n",
        time(entry),
        entry.iteration,
        line(entry.agent),
        story.map_or_else(|| "-".to_owned(), line),
        line(&failure.to_string()),
    )
}

/// Return the block for a checkpoint, with the numbers of done and all stories if there is a prd.
pub fn checkpoint(
    entry: &ProgressEntry<'_>,
    stories: Option<(usize, usize)>,
    reason: &str,
) -> String {
    let iteration = match entry.last {
        0 => entry.iteration.to_string(),
        last => format!("{}/{last}", entry.iteration),
    };
    let stories = stories.map(|(done, total)| format!(" | Stories: {done}/{total}"));
    format!(
        "\n---\n\
         CHECKPOINT at {}\n\
         Iteration: {iteration}{} | Agent: {}\n\
         Reason: {}\n\
         ---\n",
        time(entry),
        stories.unwrap_or_default(),
        line(entry.agent),
        line(reason),
    )
}

fn time(entry: &ProgressEntry<'_>) -> String {
    let local = entry.at.to_zoned(entry.zone.clone());
    local.strftime(TIME_FORMAT).to_string()
}

fn line(said: &str) -> String {
    text::one_line(said, MAX_TEXT_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::Offset;

    fn blocks(agent: &str, story: Option<&str>, why: &str, last: u32) -> [String; 2] {
        let zone = TimeZone::fixed(Offset::constant(-8));
        let entry = ProgressEntry {
            at: Timestamp::from_second(1_769_160_600).unwrap(),
            zone: &zone,
            iteration: 3,
            last,
            agent,
        };
        [
            failure(
                &entry,
                story,
                2,
                &IterationFailure::NotStarted(why.to_owned()),
            ),
            checkpoint(&entry, story.map(|_| (2, 5)), why),
        ]
    }

    #[test]
    fn blocks_have_the_original_s_format() {
        let [failure, checkpoint] = blocks("claude", Some("US-003"), "no such command", 50);
        assert_eq!(
            failure,
            "\n## 2026-01-23 01:30 - FAILURE (Iteration 3)\n\
             - **Agent:** claude\n\
             - **Story:** US-003\n\
             - **Consecutive failures:** 2\n\
             - **Error:** not started: no such command\n\
             ---\n"
        );
        assert_eq!(
            checkpoint,
            "\n---\n\
             CHECKPOINT at 2026-01-23 01:30\n\
             Iteration: 3/50 | Stories: 2/5 | Agent: claude\n\
             Reason: no such command\n\
             ---\n"
        );
    }

    #[test]
    fn missing_values_have_no_line() {
        let [failure, checkpoint] = blocks("codex", None, "x", 0);
        assert!(failure.contains("\n- **Story:** -\n"), "{failure}");
        assert!(
            checkpoint.contains("\nIteration: 3 | Agent: codex\n"),
            "{checkpoint}"
        );
    }

    #[test]
    fn no_text_forges_a_block() {
        for line_break in ["\n", "\r", "\u{2028}", "\u{85}", "\u{b}"] {
            let said = ["x", "---", "## 2026 - FAILURE (Iteration 9)", "\u{1b}[2J"];
            let said = said.join(line_break);
            let [failure, checkpoint] = blocks(&said, Some(&said), &said, 50);
            assert_eq!(failure.lines().count(), 7, "{failure}");
            assert_eq!(checkpoint.lines().count(), 6, "{checkpoint}");
            for block in [failure, checkpoint] {
                assert!(!block.contains(['\u{1b}', '\u{2028}', '\u{85}', '\r', '\u{b}']));
            }
        }
        let [failure, _] = blocks("a", None, &"x".repeat(9_999), 0);
        assert!(failure.len() < 2_000);
    }
}
