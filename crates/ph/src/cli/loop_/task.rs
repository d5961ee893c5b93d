//! `ph task`: adds and lists an agent's tasks, and sets their status.

use crate::cli::loop_::entries::{self, IterationArgs};
use crate::cli::loop_::worklist;
use crate::cli::prelude::*;
use anstyle::{AnsiColor, Style};
use clap::builder::TypedValueParser;
use posthaste_core::{IdPrefix, Task, TaskStatus};
use posthaste_store::operation::TaskChange;
use std::slice;

/// Manage an agent's task list
///
/// A loop puts the list into every prompt of its agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph task add --agent coder-1 'Write the login page'
  ph task ls --agent coder-1
  ph task status 3fa8c1d2 in_progress")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: TaskVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TaskVerb {
    /// Add a task and print its id
    #[command(after_help = "\
Examples:
  ph task add 'Write the login page'
  ph task add --agent coder-1 --status blocked 'Deploy: needs the key'")]
    Add(AddArgs),
    /// List tasks by status: in progress, blocked, remaining, completed
    #[command(after_help = "\
Examples:
  ph task ls
  ph task ls --agent coder-1 --status remaining --json | jq -r '.[].text'")]
    Ls(LsArgs),
    /// Set the status of a task
    ///
    /// Allowed for the task's agent, the agent that added it, and the person.
    #[command(after_help = "\
Examples:
  ph task status 3fa8c1d2 completed")]
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Text of the task; text that begins with '-' goes after '--'
    #[arg(value_name = "TEXT")]
    text: String,
    /// Agent whose list it is [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
    /// Status: remaining or blocked
    #[arg(long, value_name = "S", default_value = "remaining", value_parser = status(&TaskStatus::FIRST), hide_possible_values = true)]
    status: TaskStatus,
    #[command(flatten)]
    when: IterationArgs,
}

#[derive(Debug, clap::Args)]
struct LsArgs {
    /// Agent whose list it is [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
    /// List only tasks with this status: in_progress, blocked, remaining or completed
    #[arg(long, value_name = "S", value_parser = status(&TaskStatus::ALL), hide_possible_values = true)]
    status: Option<TaskStatus>,
}

#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// Task id or id prefix
    #[arg(value_name = "ID", value_parser = parse_task_id, add = complete_tasks())]
    id: IdPrefix,
    /// New status: in_progress, blocked, remaining or completed
    #[arg(value_name = "STATUS", value_parser = status(&TaskStatus::ALL), hide_possible_values = true)]
    status: TaskStatus,
    /// Change the task only if it is on this agent's list [default: any]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
    #[command(flatten)]
    when: IterationArgs,
}

fn status(which: &[TaskStatus]) -> impl TypedValueParser<Value = TaskStatus> {
    let words = which.iter().map(|status| status.as_str());
    one_of(words.collect::<Vec<_>>())
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    match args.verb {
        TaskVerb::Add(args) => add(context, args),
        TaskVerb::Ls(args) => list(context, &args),
        TaskVerb::Status(args) => set_status(context, &args),
    }
}

fn add(context: &mut Context, args: AddArgs) -> Result<Code> {
    let agent = worklist::owner(context, args.agent.as_ref())?;
    let iteration = args.when.number()?;
    let (journal, task) = worklist::add_task(context, agent, args.text, args.status, iteration)?;
    entries::print_stored(context, journal, &task, task.id)
}

fn list(context: &mut Context, args: &LsArgs) -> Result<Code> {
    let agent = worklist::owner(context, args.agent.as_ref())?;
    let statuses = args
        .status
        .as_ref()
        .map_or(&TaskStatus::ALL[..], slice::from_ref);
    let tasks = worklist::tasks(context, &agent, statuses)?;
    let if_empty = entries::no_entries(args.status, "tasks", &agent);
    entries::print_list(context, &tasks, line, if_empty)
}

fn line(task: &Task) -> String {
    let style = colour(task.status);
    let text = text::one_line(&task.text, 100);
    format!(
        "{}  {style}{:<11}{style:#}  {text}",
        task.id.id8(),
        task.status
    )
}

fn colour(status: TaskStatus) -> Style {
    match status {
        TaskStatus::InProgress => AnsiColor::Yellow.on_default(),
        TaskStatus::Blocked => AnsiColor::Red.on_default(),
        TaskStatus::Remaining => Style::new(),
        TaskStatus::Completed => Style::new().dimmed(),
    }
}

#[derive(Serialize)]
struct ChangedTask {
    #[serde(flatten)]
    task: Task,
    changed: bool,
}

fn set_status(context: &mut Context, args: &StatusArgs) -> Result<Code> {
    let StatusArgs {
        id, status, agent, ..
    } = args;
    let iteration = args.when.number()?;
    let (journal, change) = worklist::set_status(context, agent.as_ref(), id, *status, iteration)?;
    let TaskChange { task, is_changed } = change;
    let already = if is_changed { "" } else { "already " };
    let line = format!("{} {already}{}", task.id.id8(), task.status);
    let changed = ChangedTask {
        task,
        changed: is_changed,
    };
    entries::print_stored(context, journal, &changed, line)
}
