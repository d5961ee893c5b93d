//! The tools for tasks, notes and completion. Like the verbs, they use `cli::loop_::worklist`.

use super::ToolReply;
use super::tool::{NoteAdd, NoteList, SetTaskStatus, TaskAdd};
use crate::cli::loop_::worklist;
use crate::context::{Context, GlobalOptions};
use posthaste_client::mail;
use posthaste_core::{IdPrefix, NoteType, TaskStatus, prompt, text};
use posthaste_store::report::{Report, Result};

/// Number of characters of a note that its confirmation repeats.
const PREVIEW_CHARS: usize = 50;

pub(super) fn add_task(options: &GlobalOptions, arguments: &TaskAdd) -> Result<ToolReply> {
    let context = Context::new(options)?;
    let (me, _) = context.me()?;
    let status = arguments
        .status
        .map_or(TaskStatus::Remaining, |status| status.0);
    let content = arguments.content.clone();
    let iteration = worklist::iteration(None)?;
    let (journal, task) = worklist::add_task(&context, me, content, status, iteration)?;
    mail::leave(journal);
    Ok(format!("Task {} added as {}", task.id.id8(), task.status).into())
}

pub(super) fn set_status(options: &GlobalOptions, arguments: &SetTaskStatus) -> Result<ToolReply> {
    let context = Context::new(options)?;
    let (status, shown) = (arguments.status.0, text::one_line(&arguments.id, 80));
    let id = IdPrefix::parse(&arguments.id).map_err(|error| {
        Report::usage(format!("'{shown}' is not a task ID: {error}"))
            .hint("task_list shows the IDs")
    })?;
    let iteration = worklist::iteration(None)?;
    let (journal, _) = worklist::set_status(&context, None, &id, status, iteration)?;
    mail::leave(journal);
    Ok(format!("Task {shown} marked as {status}").into())
}

pub(super) fn tasks(options: &GlobalOptions) -> Result<ToolReply> {
    let context = Context::new(options)?;
    let (me, _) = context.me()?;
    let open = TaskStatus::ALL
        .into_iter()
        .filter(|status| status.is_open());
    let tasks = worklist::tasks(&context, &me, &open.collect::<Vec<_>>())?;
    let list = prompt::tasks_list(&tasks, worklist::counts(&context, &me)?.completed);
    Ok(match list.trim_end() {
        "" => "No tasks yet".into(),
        list => list.into(),
    })
}

pub(super) fn add_note(options: &GlobalOptions, arguments: &NoteAdd) -> Result<ToolReply> {
    let context = Context::new(options)?;
    let (me, _) = context.me()?;
    let (kind, content) = (arguments.r#type.0, arguments.content.clone());
    let iteration = worklist::iteration(None)?;
    let (journal, note) = worklist::add_note(&context, me, kind, content, iteration)?;
    mail::leave(journal);
    let preview = text::one_line(&note.text, PREVIEW_CHARS);
    Ok(format!("Note added: [{kind}] {preview}").into())
}

pub(super) fn notes(options: &GlobalOptions, arguments: &NoteList) -> Result<ToolReply> {
    let context = Context::new(options)?;
    let (me, _) = context.me()?;
    let kind = arguments.r#type.map(|kind| kind.0);
    let kinds = kind.map_or(NoteType::ALL.to_vec(), |kind| vec![kind]);
    let notes = worklist::notes(&context, &me, &kinds)?;
    if !notes.is_empty() {
        let notes: Vec<_> = notes.iter().collect();
        return Ok(prompt::notes_list(&notes).trim_end().into());
    }
    let others = worklist::notes(&context, &me, &NoteType::ALL)?.len();
    Ok(match (kind, others) {
        (None, _) | (Some(_), 0) => "No notes yet".into(),
        (Some(kind), 1) => format!("No notes of type {kind}; there is 1 of another type").into(),
        (Some(kind), n) => format!("No notes of type {kind}; there are {n} of other types").into(),
    })
}

pub(super) fn complete(options: &GlobalOptions) -> Result<ToolReply> {
    let context = Context::new(options)?;
    let (me, _) = context.me()?;
    let mut journal = worklist::complete(&context, &me, worklist::iteration(None)?)?;
    let open = journal.task_counts(&me)?.open();
    mail::leave(journal);
    let still = match open {
        0 => String::new(),
        1 => " (1 task is still open)".to_owned(),
        n => format!(" ({n} tasks are still open)"),
    };
    Ok(format!("Session \"{me}\" marked complete{still}").into())
}
