//! The tools for tasks, notes and completion. Like the verbs, they use `cli::loop_::worklist`.

use super::Reply;
use super::tool::Given;
use crate::cli::loop_::worklist;
use crate::context::{Context, GlobalOptions};
use posthaste_client::mail;
use posthaste_core::{IdPrefix, NoteType, TaskStatus, prompt, text};
use posthaste_store::Error;
use posthaste_store::report::{Report, Result};

/// Number of characters of a note that its confirmation repeats.
const PREVIEW_CHARS: usize = 50;

pub(super) fn add_task(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let context = Context::new(said)?;
    let (me, _) = context.me()?;
    let status = given
        .text("status")
        .map_or(Ok(TaskStatus::Remaining), status)?;
    let task = worklist::new_task(
        &context,
        given.must("content").to_owned(),
        status,
        worklist::iteration(None)?,
    )?;
    let mut journal = context.journal()?;
    let task = worklist::add_task(&context, &mut journal, me, task)?;
    mail::leave(journal);
    Ok(format!("Task {} added as {}", task.id.id8(), task.status).into())
}

pub(super) fn set_status(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let context = Context::new(said)?;
    let said = given.must("id");
    let id = IdPrefix::parse(said).map_err(|error| {
        let shown = text::one_line(said, 80);
        Report::usage(format!("'{shown}' is not a task ID: {error}"))
            .hint("task_list shows the IDs")
    })?;
    let status = status(given.must("status"))?;
    let Some(mut journal) = context.reader()? else {
        return Err(Error::NoTask(id).into());
    };
    worklist::set_status(
        &context,
        &mut journal,
        &id,
        status,
        worklist::iteration(None)?,
    )?;
    mail::leave(journal);
    Ok(format!("Task {} marked as {status}", text::one_line(said, 80)).into())
}

fn status(word: &str) -> Result<TaskStatus> {
    let parsed: std::result::Result<_, String> = word.parse();
    parsed.map_err(Report::usage)
}

pub(super) fn tasks(said: &GlobalOptions) -> Result<Reply> {
    let context = Context::new(said)?;
    let (me, _) = context.me()?;
    let open: Vec<_> = TaskStatus::ALL
        .into_iter()
        .filter(|s| s.is_open())
        .collect();
    let tasks = worklist::tasks(&context, &me, &open)?;
    let list = prompt::tasks_list(&tasks, worklist::counts(&context, &me)?.completed);
    Ok(if list.is_empty() {
        "No tasks yet".into()
    } else {
        list.trim_end().into()
    })
}

pub(super) fn add_note(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let context = Context::new(said)?;
    let (me, _) = context.me()?;
    let kind = kind(given.must("type"))?;
    let note = worklist::new_note(
        &context,
        kind,
        given.must("content").to_owned(),
        worklist::iteration(None)?,
    )?;
    let mut journal = context.journal()?;
    let note = worklist::add_note(&context, &mut journal, me, note)?;
    mail::leave(journal);
    let preview = text::one_line(&note.text, PREVIEW_CHARS);
    Ok(format!("Note added: [{kind}] {preview}").into())
}

fn kind(word: &str) -> Result<NoteType> {
    let parsed: std::result::Result<_, String> = word.parse();
    parsed.map_err(Report::usage)
}

pub(super) fn notes(said: &GlobalOptions, given: &Given) -> Result<Reply> {
    let context = Context::new(said)?;
    let (me, _) = context.me()?;
    let asked = given.text("type").map(kind).transpose()?;
    let which = asked.map_or(NoteType::ALL.to_vec(), |kind| vec![kind]);
    let notes = worklist::notes(&context, &me, &which)?;
    if !notes.is_empty() {
        let notes: Vec<_> = notes.iter().collect();
        return Ok(prompt::notes_list(&notes).trim_end().into());
    }
    let others = worklist::notes(&context, &me, &NoteType::ALL)?.len();
    Ok(match (asked, others) {
        (None, _) | (Some(_), 0) => "No notes yet".into(),
        (Some(kind), 1) => format!("No notes of type {kind}; there is 1 of another type").into(),
        (Some(kind), n) => format!("No notes of type {kind}; there are {n} of other types").into(),
    })
}

pub(super) fn complete(said: &GlobalOptions) -> Result<Reply> {
    let context = Context::new(said)?;
    let (me, _) = context.me()?;
    let mut journal = context.journal()?;
    worklist::complete(&context, &mut journal, &me, worklist::iteration(None)?)?;
    let open = journal.task_counts(&me)?.open();
    mail::leave(journal);
    let still = match open {
        0 => String::new(),
        1 => " (1 task is still open)".to_owned(),
        n => format!(" ({n} tasks are still open)"),
    };
    Ok(format!("Session \"{me}\" marked complete{still}").into())
}
