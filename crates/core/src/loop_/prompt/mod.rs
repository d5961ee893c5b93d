//! Builds the prompt of one iteration, from built-in parts or by a template.
//!
//! [`crate::prompt`] builds the blocks of mail, notes and tasks. A text from outside is never a
//! template, cannot forge a heading or an entry, and contains no control characters. The prompt
//! never contains the completion token in our own words, so that an echo of them does not count.

mod limits;
pub mod template;

pub use limits::Bounds;

use super::fact::{IterationFailure, Waiting};
use super::prd::{Prd, Story};
use crate::name::AgentName;
use crate::prompt::{Entry, inbox_block, notes_block, tasks_block};
use crate::tasks::{Note, Task};
use crate::text;
use jiff::tz::TimeZone;
use template::{PromptPart, PromptTemplate};

/// The contents of a prompt.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The loop's name, the `session_name` of tools.
    pub session: &'a AgentName,
    pub iteration: u32,
    /// Number of the last allowed iteration; 0 means no limit.
    pub last: u32,
    pub spec: Option<Spec<'a>>,
    pub prd: Option<PrdFile<'a>>,
    /// The path of progress.txt.
    pub progress: Option<&'a str>,
    /// The texts of [`super::LoopState::prompts`] that this iteration is given.
    pub injected: &'a [Waiting],
    /// All unread mail.
    pub inbox: &'a [Entry<'a>],
    pub zone: &'a TimeZone,
    /// Notes of any iteration; those of earlier ones are shown.
    pub notes: &'a [Note],
    /// Open tasks.
    pub tasks: &'a [Task],
    /// Number of completed tasks.
    pub completed: u64,
    /// The failure of this iteration's previous run, if any.
    pub failed: Option<&'a IterationFailure>,
    /// The person's prompt in place of the built-in instructions.
    pub prompt: Option<&'a str>,
    pub extra: Option<&'a str>,
    /// Size limits.
    pub bounds: Bounds,
}

#[derive(Debug, Clone, Copy)]
pub struct Spec<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct PrdFile<'a> {
    pub path: &'a str,
    /// `None` if the file is malformed at the moment.
    pub prd: Option<&'a Prd>,
}

/// The built-in prompt.
pub fn build(parts: &Parts<'_>) -> String {
    const ORDER: [PromptPart; 8] = [
        PromptPart::Injected,
        PromptPart::Inbox,
        PromptPart::Context,
        PromptPart::Notes,
        PromptPart::Tasks,
        PromptPart::Tools,
        PromptPart::Instructions,
        PromptPart::Extra,
    ];
    let blocks = ORDER.map(|part| value(parts, part));
    joined(blocks.iter().map(String::as_str))
}

/// Return the prompt by a person's template. Injected texts and mail come first if the template has
/// no placeholder for them.
pub fn fill(template: &PromptTemplate, parts: &Parts<'_>) -> String {
    let missing = [PromptPart::Injected, PromptPart::Inbox].map(|part| match template.has(part) {
        true => String::new(),
        false => value(parts, part),
    });
    let filled = template.fill(|part| value(parts, part).trim_end().to_owned());
    joined(missing.iter().map(String::as_str).chain([filled.as_str()]))
}

/// Join the blocks that are not empty, with a blank line between them.
fn joined<'a>(blocks: impl Iterator<Item = &'a str>) -> String {
    let blocks = blocks.map(str::trim_end).filter(|block| !block.is_empty());
    let mut prompt = blocks.collect::<Vec<_>>().join("\n\n");
    prompt.push('\n');
    prompt
}

fn value(parts: &Parts<'_>, part: PromptPart) -> String {
    let line = |said: &str| text::one_line(said, usize::MAX);
    match part {
        PromptPart::Session => parts.session.to_string(),
        PromptPart::Iteration => parts.iteration.to_string(),
        PromptPart::Spec => parts.spec.map_or_else(String::new, |spec| line(spec.path)),
        PromptPart::Prd => parts.prd.map_or_else(String::new, |prd| line(prd.path)),
        PromptPart::Story => current(parts).map_or_else(String::new, story_line),
        PromptPart::Injected => injected(parts.bounds.injected(parts.injected)),
        PromptPart::Inbox => inbox_block(parts.inbox, parts.zone),
        PromptPart::Context => context(parts),
        PromptPart::Notes => notes(parts),
        PromptPart::Tasks => tasks(parts),
        PromptPart::Tools => tools(parts.session),
        PromptPart::Instructions => instructions(parts),
        PromptPart::Extra => said_under("## Additional Instructions", parts.extra),
    }
}

fn injected(prompts: &[Waiting]) -> String {
    let mut block = String::new();
    for waiting in prompts {
        if block.is_empty() {
            block.push_str("## Injected Prompts (Follow these in this iteration!)\n");
        }
        let mut lines = text::lines(waiting.text.trim());
        let first = lines.next().unwrap_or_default();
        block.push_str(&format!("- {first}\n"));
        indented(&mut block, lines);
    }
    block
}

fn notes(parts: &Parts<'_>) -> String {
    let (notes, left) = parts.bounds.notes(parts.notes, parts.iteration);
    let mut block = notes_block(&notes, parts.iteration);
    if left > 0 {
        block.push_str(&format!(
            "({left} older notes are omitted: note_list, or 'ph note ls')\n"
        ));
    }
    block
}

fn tasks(parts: &Parts<'_>) -> String {
    let (tasks, left) = parts.bounds.tasks(parts.tasks);
    let mut block = tasks_block(&tasks, parts.completed);
    if left > 0 {
        block.push_str(&format!(
            "({left} more open tasks are omitted: task_list, or 'ph task ls')\n"
        ));
    }
    block
}

fn context(parts: &Parts<'_>) -> String {
    let line = |said: &str| text::one_line(said, usize::MAX);
    let mut block = format!("## Context\n- Session: {}\n", parts.session);
    match parts.last {
        0 => block.push_str(&format!("- Iteration: {}\n", parts.iteration)),
        last => block.push_str(&format!("- Iteration: {} of {last}\n", parts.iteration)),
    }
    if let Some(failure) = parts.failed {
        let how = line(&failure.to_string());
        block.push_str(&format!(
            "- An earlier run of this iteration failed ({how}); check the work that it left\n"
        ));
    }
    if let Some(spec) = parts.spec {
        let long = match spec_text(parts) {
            Some(_) => "",
            None => " (too long for this prompt: read the file)",
        };
        block.push_str(&format!("- Spec: {}{long}\n", line(spec.path)));
    }
    if let Some(file) = parts.prd {
        block.push_str(&format!("- PRD: {}", line(file.path)));
        match file.prd {
            Some(prd) => {
                let (done, total) = (prd.done(), prd.total());
                block.push_str(&format!(" ({done} of {total} stories pass)\n"));
            }
            None => block.push_str(" (the file is malformed: repair it first)\n"),
        }
    }
    if let Some(path) = parts.progress {
        // The file grows while the loop runs, so it is not part of the prompt.
        block.push_str(&format!(
            "- Progress log: {} (newest entries last)\n",
            line(path)
        ));
    }
    if let Some(story) = current(parts) {
        block.push_str(&story_block(story, &parts.bounds));
    }
    if let Some(said) = spec_text(parts) {
        block.push_str("- The spec says:\n");
        indented(&mut block, text::lines(said));
    }
    block
}

/// Return the spec, if it is short enough for the prompt.
fn spec_text<'a>(parts: &Parts<'a>) -> Option<&'a str> {
    let text = parts.spec.map(|spec| spec.text)?;
    (text.len() <= parts.bounds.spec).then_some(text)
}

fn current<'a>(parts: &Parts<'a>) -> Option<&'a Story> {
    parts.prd.and_then(|file| file.prd).and_then(Prd::current)
}

fn story_line(story: &Story) -> String {
    let id = text::one_line(&story.id, 80);
    match text::one_line(&story.title, 400) {
        title if title.is_empty() => id,
        title => format!("{id}: {title}"),
    }
}

fn story_block(story: &Story, bounds: &Bounds) -> String {
    let mut block = format!("- Current story: {}\n", story_line(story));
    let said = story.criteria.iter().map(|c| c.description.as_str());
    let (lines, left) = bounds.lines(said);
    for (criterion, what) in story.criteria.iter().zip(lines) {
        let mark = if criterion.passes { "x" } else { " " };
        block.push_str(&format!("    - [{mark}] {what}\n"));
    }
    if left > 0 {
        block.push_str(&format!("    ({left} more criteria are in the PRD)\n"));
    }
    block
}

fn tools(session: &AgentName) -> String {
    format!(
        "## Tools\n\
         Every tool takes session_name: \"{session}\".\n\
         - inbox_list, inbox_mark_read(id): list your mail, and mark a message as handled\n\
         - task_list, task_add(content, status), task_status(id, status): your list; a task is remaining, in_progress, blocked or completed\n\
         - note_list, note_add(content, type): what later iterations should know; a note is learning, stuck, tip or decision\n\
         - send_message, reply: mail to people and other agents\n\
         - session_complete: all of the work is done\n\
         Without these tools, use the command line: ph inbox, ph mark-read, ph task, ph note, ph send.\n"
    )
}

fn instructions(parts: &Parts<'_>) -> String {
    const HEADING: &str = "## Instructions";
    if parts.prompt.is_some() {
        return said_under(HEADING, parts.prompt);
    }
    let source = match (parts.spec, parts.prd) {
        (Some(_), None) => "the spec",
        (None, Some(_)) => "the PRD",
        (Some(_), Some(_)) | (None, None) => "the spec and the PRD",
    };
    let stories = match parts.prd {
        Some(_) => {
            " In the PRD, set \"passes\" to true for each criterion and story that you have checked, and change nothing else there."
        }
        None => "",
    };
    let of_story = match parts.prd {
        Some(_) => " that belongs to the current story",
        None => "",
    };
    format!(
        "{HEADING}\n\
         1. Check the inbox first: deal with every unread message before anything else. A message may change what comes next.\n\
         2. Mark each message that you have handled as read, with inbox_mark_read. An unmarked message comes again.\n\
         3. If there are no tasks yet, read {source} and add them, each small enough for one iteration.\n\
         4. Pick ONE task from REMAINING or IN PROGRESS{of_story}, and set it to in_progress.\n\
         5. Complete the task: the change, its tests, and a test run.\n\
         6. Set it to completed, or to blocked with a note of what is missing.{stories}\n\
         7. Note down what later iterations should know. They remember nothing else.\n\
         8. Then end your turn. The next iteration picks the next task.\n\
         9. Only when nothing is left to do, and you have checked it against {source}: call session_complete. If you do not have that tool, end your answer with a line that has nothing but the word COMPLETE between <promise> and </promise>, without spaces. Write that for no other reason.\n"
    )
}

/// Return a person's own text under a heading, without control characters; empty if there is none.
fn said_under(heading: &str, said: Option<&str>) -> String {
    let said = said.map(str::trim).filter(|said| !said.is_empty());
    let Some(said) = said else {
        return String::new();
    };
    let lines: Vec<String> = text::lines(said).collect();
    format!("{heading}\n{}\n", lines.join("\n"))
}

/// Append lines that are indented deeper than any heading or entry.
fn indented(block: &mut String, lines: impl Iterator<Item = String>) {
    for line in lines {
        block.push_str("    ");
        block.push_str(&line);
        block.push('\n');
    }
}

#[cfg(test)]
mod tests;
