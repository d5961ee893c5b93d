//! `ph note`: adds and lists an agent's notes.

use crate::cli::loop_::entries::{self, IterationArgs};
use crate::cli::loop_::worklist;
use crate::cli::prelude::*;
use anstyle::{AnsiColor, Style};
use clap::builder::TypedValueParser;
use posthaste_core::{Note, NoteType};
use std::slice;

/// Manage an agent's notes for its later iterations
///
/// A loop puts the notes of earlier iterations into every prompt of its agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph note add 'The tests need --no-cache'
  ph note add --agent coder-1 --type decision 'SQLite, not Postgres'
  ph note ls --type stuck")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: NoteVerb,
}

#[derive(Debug, clap::Subcommand)]
enum NoteVerb {
    /// Add a note and print its id
    #[command(after_help = "\
Examples:
  ph note add 'The tests need --no-cache'
  ph note add --type stuck 'No access to the staging host'")]
    Add(AddArgs),
    /// List notes, oldest first
    #[command(after_help = "\
Examples:
  ph note ls
  ph note ls --agent coder-1 --type decision --json | jq -r '.[].text'")]
    Ls(LsArgs),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Text of the note; text that begins with '-' goes after '--'
    #[arg(value_name = "TEXT")]
    text: String,
    /// Agent that the note belongs to [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
    /// Type of the note: learning, stuck, tip or decision
    #[arg(long = "type", value_name = "T", default_value = "learning", value_parser = kind(), hide_possible_values = true)]
    kind: NoteType,
    #[command(flatten)]
    when: IterationArgs,
}

#[derive(Debug, clap::Args)]
struct LsArgs {
    /// Agent that the notes belong to [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
    /// List only notes of this type: learning, stuck, tip or decision
    #[arg(long = "type", value_name = "T", value_parser = kind(), hide_possible_values = true)]
    kind: Option<NoteType>,
}

fn kind() -> impl TypedValueParser<Value = NoteType> {
    one_of(NoteType::ALL.map(NoteType::as_str))
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    match args.verb {
        NoteVerb::Add(args) => add(context, args),
        NoteVerb::Ls(args) => list(context, &args),
    }
}

fn add(context: &mut Context, args: AddArgs) -> Result<Code> {
    let agent = worklist::owner(context, args.agent.as_ref())?;
    let iteration = args.when.number()?;
    let (journal, note) = worklist::add_note(context, agent, args.kind, args.text, iteration)?;
    entries::print_stored(context, journal, &note, note.id)
}

fn list(context: &mut Context, args: &LsArgs) -> Result<Code> {
    let agent = worklist::owner(context, args.agent.as_ref())?;
    let kinds = args
        .kind
        .as_ref()
        .map_or(&NoteType::ALL[..], slice::from_ref);
    let notes = worklist::notes(context, &agent, kinds)?;
    let if_empty = entries::no_entries(args.kind, "notes", &agent);
    entries::print_list(context, &notes, line, if_empty)
}

fn line(note: &Note) -> String {
    let style = colour(note.kind);
    let number = note.iteration.map_or_else(String::new, |n| format!("#{n}"));
    let text = text::one_line(&note.text, 100);
    format!(
        "{}  {style}{:<8}{style:#}  {number:<3}  {text}",
        note.id.id8(),
        note.kind
    )
}

fn colour(kind: NoteType) -> Style {
    match kind {
        NoteType::Stuck => AnsiColor::Red.on_default(),
        NoteType::Learning => AnsiColor::Green.on_default(),
        NoteType::Tip => AnsiColor::Cyan.on_default(),
        NoteType::Decision => AnsiColor::Yellow.on_default(),
    }
}
