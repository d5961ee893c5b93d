//! The command line: one file a verb, named as the user types it.
//!
//! Each verb is its arguments (whose comments are its help) and one function from the context and
//! those arguments to an exit code. Rules live in the core, storage in the store.

mod archive;
mod body;
mod cancel;
mod check;
mod completions;
mod config;
mod count;
mod delete;
mod demo;
mod doctor;
mod export;
mod help;
mod import;
mod inbox;
mod log;
mod man;
mod mark;
mod message;
mod misread;
mod names;
mod read;
mod reply;
mod search;
mod send;
mod show;
mod thread;
mod why;

use crate::context::{Context, Said};
use crate::report::{Code, Result};
use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

const ABOUT: &str = "The post office for coding agents";

const LONG_ABOUT: &str = "The post office for coding agents.

Write to an agent, whether it runs or not: every message is on disk before 'ph send' says ok, \
and its receipt says only what is proven.";

const EXAMPLES: &str = "\
Examples:
  ph send reviewer 'Please look at the auth module'
  ph inbox reviewer
  ph read 3fa8c1d2
  ph demo

'ph help exit-codes' says what the exit codes mean.";

#[derive(Debug, Parser)]
#[command(name = "ph", version, about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// What heads the options that every verb has.
const EVERYWHERE: &str = "Options of every verb";

#[derive(Debug, clap::Args)]
struct Global {
    /// Where the mail is kept [default: PH_HOME, else the nearest .posthaste/, else the XDG data
    /// directory]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    home: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    /// When to use colour: auto, always or never
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "WHEN", value_parser = ["auto", "always", "never"], hide_possible_values = true)]
    color: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Send(send::Args),
    Message(message::Args),
    Inbox(inbox::Args),
    Read(read::Args),
    Show(show::Args),
    Reply(reply::Args),
    Thread(thread::Args),
    Archive(archive::Args),
    Delete(delete::Args),
    MarkRead(mark::ReadArgs),
    MarkUnread(mark::UnreadArgs),
    Count(count::Args),
    Search(search::Args),
    Check(check::Args),
    Cancel(cancel::Args),
    Why(why::Args),
    Log(log::Args),
    Export(export::Args),
    Import(import::Args),
    Config(config::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
}

/// The verbs that agents and their hooks call all the time. Knowing only these, the command line
/// is read in a fraction of the time; whatever does not fit is left to the whole of it.
#[derive(Debug, Parser)]
#[command(
    name = "ph",
    disable_help_subcommand = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
struct HotCli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: HotVerb,
}

#[derive(Debug, Subcommand)]
enum HotVerb {
    Send(send::Args),
    Inbox(inbox::Args),
    Check(check::Args),
}

impl HotVerb {
    const NAMES: [&str; 3] = ["send", "inbox", "check"];
}

/// What was typed; where that cannot be read, it is told, and the process ends so.
pub(crate) fn parse() -> std::result::Result<Cli, ExitCode> {
    let verb = std::env::args_os().nth(1);
    if verb.is_some_and(|verb| HotVerb::NAMES.iter().any(|name| verb == *name))
        && let Ok(HotCli { global, verb }) = HotCli::try_parse()
    {
        let verb = match verb {
            HotVerb::Send(args) => Verb::Send(args),
            HotVerb::Inbox(args) => Verb::Inbox(args),
            HotVerb::Check(args) => Verb::Check(args),
        };
        return Ok(Cli {
            global,
            verb: Some(verb),
        });
    }
    let words: Vec<_> = std::env::args_os().collect();
    Cli::try_parse_from(&words).map_err(|error| misread::tell(&error, &words))
}

pub(crate) fn run(cli: Cli) -> Result<Code> {
    let said = Said {
        home: cli.global.home,
        json: cli.global.json,
        color: cli.global.color,
    };
    let Some(verb) = cli.verb else {
        // Bare `ph` only says what there is.
        return help::print(&Cli::command().render_long_help(), &said);
    };
    // These look at nothing of the user's.
    match &verb {
        Verb::Completions(args) => return completions::run(args, &said),
        Verb::Man(args) => return man::run(args, &said),
        Verb::Help(args) => return help::run(args, &said),
        Verb::Demo(args) => return demo::run(args, &said),
        Verb::Check(args) if args.inject => return Ok(check::inject(args, &said)),
        _ => {}
    }
    let mut context = match &verb {
        // It tells what is wrong with the settings itself.
        Verb::Doctor(_) => Context::with_any_settings(&said)?,
        _ => Context::new(&said)?,
    };
    let context = &mut context;
    let code = match verb {
        Verb::Send(args) => send::run(context, args),
        Verb::Message(args) => message::run(context, args),
        Verb::Inbox(args) => inbox::run(context, &args),
        Verb::Read(args) => read::run(context, &args),
        Verb::Show(args) => show::run(context, &args),
        Verb::Reply(args) => reply::run(context, args),
        Verb::Thread(args) => thread::run(context, &args),
        Verb::Archive(args) => archive::run(context, &args),
        Verb::Delete(args) => delete::run(context, &args),
        Verb::MarkRead(args) => mark::read(context, &args),
        Verb::MarkUnread(args) => mark::unread(context, &args),
        Verb::Count(args) => count::run(context, &args),
        Verb::Search(args) => search::run(context, &args),
        Verb::Check(args) => check::run(context, &args),
        Verb::Cancel(args) => cancel::run(context, &args),
        Verb::Why(args) => why::run(context, &args),
        Verb::Log(args) => log::run(context, args),
        Verb::Export(args) => export::run(context, &args),
        Verb::Import(args) => import::run(context, &args),
        Verb::Config(args) => config::run(context, &args),
        Verb::Doctor(args) => doctor::run(context, &args),
        Verb::Demo(_) | Verb::Completions(_) | Verb::Man(_) | Verb::Help(_) => Ok(Code::Ok),
    }?;
    context.out.flush()?;
    Ok(code)
}
