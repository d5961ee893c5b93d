use super::names::{NameParser, TaskIdParser, complete_agents, complete_tasks};
use crate::context::Context;
use crate::letterbox;
use crate::report::{Code, Report, Result};
use crate::worklist;
use anstyle::{AnsiColor, Style};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use posthaste_core::{AgentName, IdPrefix, TaskStatus, text};
use posthaste_store::Error;
use posthaste_wire as wire;
use serde::Serialize;

/// Keep an agent's list of tasks
///
/// A loop puts the list into every prompt of its agent. Without --agent it is one's own: PH_AGENT's,
/// else the person's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph task add --agent coder-1 'Write the login page'
  ph task ls --agent coder-1
  ph task status 3fa8c1d2 in_progress")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: TaskVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TaskVerb {
    /// Put a task on the list; prints its id
    #[command(after_help = "\
Examples:
  ph task add 'Write the login page'
  ph task add --agent coder-1 --status blocked 'Deploy: needs the key'")]
    Add(AddArgs),
    /// List tasks: those in progress, blocked, remaining, completed
    #[command(after_help = "\
Examples:
  ph task ls
  ph task ls --agent coder-1 --status remaining --json | jq -r '.[].text'")]
    Ls(LsArgs),
    /// Say how it stands with a task
    ///
    /// Its agent may, who added it, and the person.
    #[command(after_help = "\
Examples:
  ph task status 3fa8c1d2 completed")]
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// What is to be done; one that begins with '-' goes after '--'
    #[arg(value_name = "TEXT")]
    text: String,
    /// Whose list [default: PH_AGENT's, else the person's]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    agent: Option<AgentName>,
    /// remaining or blocked
    #[arg(long, value_name = "S", default_value = "remaining", value_parser = status(&TaskStatus::FIRST), hide_possible_values = true)]
    status: TaskStatus,
    #[command(flatten)]
    when: IterationArgs,
}

#[derive(Debug, clap::Args)]
struct LsArgs {
    /// Whose list [default: PH_AGENT's, else the person's]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    agent: Option<AgentName>,
    /// Only those that are in_progress, blocked, remaining or completed
    #[arg(long, value_name = "S", value_parser = status(&TaskStatus::ALL), hide_possible_values = true)]
    status: Option<TaskStatus>,
}

#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// The task's id or its beginning
    #[arg(value_name = "ID", value_parser = TaskIdParser, add = complete_tasks())]
    id: IdPrefix,
    /// in_progress, blocked, remaining or completed
    #[arg(value_name = "STATUS", value_parser = status(&TaskStatus::ALL), hide_possible_values = true)]
    status: TaskStatus,
    /// On whose list it is; one that is on another's is left as it is [default: whoever's]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    agent: Option<AgentName>,
    #[command(flatten)]
    when: IterationArgs,
}

/// In which iteration of a loop something is said.
#[derive(Debug, clap::Args)]
pub(super) struct IterationArgs {
    /// The iteration of the loop that this belongs to [default: PH_ITERATION]
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
}

impl IterationArgs {
    pub(super) fn meant(&self) -> Result<Option<u32>> {
        worklist::iteration(self.iteration)
    }
}

fn status(which: &[TaskStatus]) -> impl TypedValueParser<Value = TaskStatus> {
    let words: Vec<_> = which.iter().map(|status| status.as_str()).collect();
    PossibleValuesParser::new(words).try_map(|said| said.parse::<TaskStatus>())
}

pub(super) fn run(context: &mut Context, args: Args) -> Result<Code> {
    match args.verb {
        TaskVerb::Add(args) => add(context, args),
        TaskVerb::Ls(args) => list(context, &args),
        TaskVerb::Status(args) => set_status(context, &args),
    }
}

fn add(context: &mut Context, args: AddArgs) -> Result<Code> {
    let agent = worklist::whose(context, args.agent.as_ref())?;
    let task = worklist::new_task(context, args.text, args.status, args.when.meant()?)?;
    let mut journal = context.journal()?;
    let task = worklist::add_task(context, &mut journal, agent, task)?;
    if context.json {
        context.out.json(&wire::Task::new(&task))?;
    } else {
        context.out.line(task.id)?;
    }
    context.out.flush()?;
    letterbox::leave(journal);
    Ok(Code::Ok)
}

fn list(context: &mut Context, args: &LsArgs) -> Result<Code> {
    let agent = worklist::whose(context, args.agent.as_ref())?;
    let which = match &args.status {
        Some(status) => std::slice::from_ref(status),
        None => &TaskStatus::ALL,
    };
    let tasks = worklist::tasks(context, &agent, which)?;
    if context.json {
        let tasks: Vec<_> = tasks.iter().map(wire::Task::new).collect();
        context.out.json(&tasks)?;
        return Ok(Code::Ok);
    }
    if tasks.is_empty() {
        let none = match args.status {
            Some(status) => format!("no {status} tasks of {agent}"),
            None => format!("no tasks of {agent}"),
        };
        context.out.line(none)?;
    }
    for task in &tasks {
        let style = colour(task.status);
        let said = text::one_line(&task.text, 100);
        context.out.line(format!(
            "{}  {style}{:<11}{style:#}  {said}",
            task.id.id8(),
            task.status
        ))?;
    }
    Ok(Code::Ok)
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
struct Changed {
    #[serde(flatten)]
    task: wire::Task,
    changed: bool,
}

fn set_status(context: &mut Context, args: &StatusArgs) -> Result<Code> {
    let Some(mut journal) = context.reader()? else {
        return Err(Error::NoTask(args.id.clone()).into());
    };
    let StatusArgs {
        id,
        status,
        agent,
        when,
    } = args;
    if let Some(agent) = agent {
        let owner = journal.task(id)?.agent;
        if owner != *agent {
            return Err(Report::not_found(format!("no task {id} of {agent}"))
                .hint(format!("that task is on the list of {owner}")));
        }
    }
    let (task, changed) = worklist::set_status(context, &mut journal, id, *status, when.meant()?)?;
    if context.json {
        let task = wire::Task::new(&task);
        context.out.json(&Changed { task, changed })?;
    } else {
        let already = if changed { "" } else { "already " };
        let line = format!("{} {already}{}", task.id.id8(), task.status);
        context.out.line(line)?;
    }
    context.out.flush()?;
    letterbox::leave(journal);
    Ok(Code::Ok)
}
