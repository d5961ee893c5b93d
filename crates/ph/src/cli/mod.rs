//! The command line: one file per verb, named like the verb.
//!
//! Each verb has an `Args` struct, whose doc comments are its help text, and a function `run` from
//! a context and these arguments to an exit code. Delivery rules are in the core, storage is in the
//! store.

pub(crate) mod admin;
mod ask;
mod help;
pub(crate) mod loop_;
mod mail;
mod names;
mod prelude;
mod session;
pub(crate) mod times;

pub(crate) use mail::check::{Caller, reminder};

use crate::context::{Context, GlobalOptions};
use crate::output::{Sink, note};
use admin::journal::{export, import, log};
use admin::{config, demo, doctor, harness, hook, hooks, mcp, provider, trust};
use ask::{answer, asks};
use clap::{Args as _, Command, CommandFactory, Parser, Subcommand};
use help::{completions, groups, man, misread};
use loop_::{build, checkpoint, inject, interactive, note, task};
use mail::change;
use mail::compose::{message, reply, send};
use mail::{check, count, inbox, read, search, show, thread, why};
use posthaste_store::report::{Code, Result};
use session::{attach, ls, nudge, pause, peek, replay, restart, run, status, stop};
use std::process::ExitCode;

/// The variable that a completion script sets. It has a name of its own, because clap's default
/// could be set for another program and would turn every command into a completion.
pub(crate) const COMPLETE: &str = "PH_COMPLETE";

const ABOUT: &str = "The post office for coding agents";

/// The paragraph below the first line of the help text.
const DESCRIPTION: &str = "\
Run coding agents in terminals that outlive the window, and exchange messages with them.
A message is on disk before 'ph send' prints its id, and its receipt says only what is proven.";

const EXAMPLES: &str = "\
Examples:
  ph run claude
  ph send claude 'Please look at the auth module'
  ph inbox
  ph read 3fa8c1d2
  ph demo

'ph VERB --help' shows a verb's options and examples. 'ph help exit-codes' explains the exit codes.";

#[derive(Debug, clap::Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: GlobalOptions,
    #[command(subcommand)]
    verb: Option<Verb>,
}

impl Parser for Cli {}

// Not derived, because the grouped list of verbs is built from the finished command.
impl CommandFactory for Cli {
    fn command() -> Command {
        let ph = Command::new("ph")
            .version(env!("CARGO_PKG_VERSION"))
            .about(ABOUT)
            .after_help(EXAMPLES)
            .disable_help_subcommand(true);
        groups::group_verbs(Self::augment_args(ph))
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

// In the order of `ph --help`; `help/groups.rs` has the headings. (A doc comment would become the
// description of `ph`.)
#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Args),
    Attach(attach::Args),
    Ls(ls::Args),
    Status(status::Args),
    Peek(peek::Args),
    Replay(replay::Args),
    Asks(asks::Args),
    Answer(answer::Args),
    Nudge(nudge::Args),
    Pause(pause::PauseArgs),
    Unpause(pause::UnpauseArgs),
    Restart(restart::Args),
    Stop(stop::Args),

    Send(send::Args),
    #[command(hide = true)]
    Message(message::Args),
    Inbox(inbox::Args),
    Read(read::Args),
    Reply(reply::Args),
    Thread(thread::Args),
    Search(search::Args),
    Count(count::Args),
    Check(check::Args),
    Show(show::Args),
    Why(why::Args),
    Cancel(change::CancelArgs),
    MarkRead(change::ReadArgs),
    MarkUnread(change::UnreadArgs),
    Archive(change::ArchiveArgs),
    Delete(change::DeleteArgs),
    Log(log::Args),

    Build(build::Args),
    Checkpoint(checkpoint::Args),
    Resume(checkpoint::ResumeArgs),
    Inject(inject::Args),
    Interactive(interactive::Args),
    Task(task::Args),
    Note(note::Args),

    Demo(demo::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    Trust(trust::Args),
    Hooks(hooks::Args),
    #[command(hide = true)]
    Hook(hook::Args),
    Harness(harness::Args),
    #[command(hide = true)]
    Provider(provider::Args),
    Mcp(mcp::Args),
    Export(export::Args),
    Import(import::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
}

/// Parse the command line. Print an error for an invalid one, and return the exit code.
pub(crate) fn parse() -> std::result::Result<Cli, ExitCode> {
    let words: Vec<_> = std::env::args_os().collect();
    Cli::try_parse_from(&words).map_err(|error| misread::tell(&error, &words))
}

pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    let options = cli.options;
    match cli.verb {
        // Bare `ph` prints its help.
        None => help::print(&Cli::command().render_help(), &options).map(Into::into),
        // The exit codes of this verb belong to a protocol.
        Some(Verb::Provider(args)) => provider::run(args, &options),
        Some(verb) => run_verb(verb, &options).map(Into::into),
    }
}

fn run_verb(verb: Verb, options: &GlobalOptions) -> Result<Code> {
    // These verbs read neither the settings nor the home.
    match &verb {
        Verb::Hook(args) => {
            crate::hook::run(args);
            return Ok(Code::Ok);
        }
        Verb::Completions(args) => return completions::run(args, options),
        Verb::Man(args) => return man::run(args, options),
        Verb::Help(args) => return help::run(args, options),
        Verb::Demo(args) => return demo::run(args, options),
        Verb::Trust(args) => return trust::run(args, options),
        Verb::Check(args) if args.inject => return Ok(check::inject(args, options)),
        // Standard output belongs to the protocol.
        Verb::Mcp(args) if args.is_server() => return crate::mcp::serve(options),
        _ => {}
    }
    let mut context = match &verb {
        // The doctor reports invalid settings itself.
        Verb::Doctor(_) => match Context::with_any_settings(options) {
            Ok(context) => context,
            Err(report) => return doctor::report_unusable_home(options, &report),
        },
        _ => Context::new(options)?,
    };
    for notice in crate::config::misspelt_variables() {
        note(notice);
    }
    let code = carry_out(&mut context, verb)?;
    context.out.flush()?;
    Ok(code)
}

/// The output and exit code of a verb that ran in this process.
pub(crate) struct Captured {
    pub(crate) code: Code,
    pub(crate) out: Vec<u8>,
}

/// Run the command line `ph WORDS` in this process and return its output.
pub(crate) fn capture(words: &[impl AsRef<str>], options: &GlobalOptions) -> Result<Captured> {
    let words = std::iter::once("ph").chain(words.iter().map(AsRef::as_ref));
    let cli = Cli::try_parse_from(words).map_err(|error| misread::report(&error))?;
    let mut context = Context::new(&GlobalOptions {
        sink: Sink::Memory,
        ..options.clone()
    })?;
    let code = match cli.verb {
        Some(verb) => carry_out(&mut context, verb)?,
        None => Code::Ok,
    };
    let out = context.out.kept();
    Ok(Captured { code, out })
}

fn carry_out(context: &mut Context, verb: Verb) -> Result<Code> {
    match verb {
        Verb::Run(args) => run::run(context, args),
        Verb::Build(args) => build::run(context, args),
        Verb::Attach(args) => attach::run(context, &args),
        Verb::Ls(args) => ls::run(context, &args),
        Verb::Status(args) => status::run(context, &args),
        Verb::Peek(args) => peek::run(context, &args),
        Verb::Replay(args) => replay::run(context, &args),
        Verb::Stop(args) => stop::run(context, &args),
        Verb::Restart(args) => restart::run(context, &args),
        Verb::Pause(args) => pause::pause(context, &args),
        Verb::Unpause(args) => pause::unpause(context, &args),
        Verb::Checkpoint(args) => checkpoint::run(context, &args),
        Verb::Resume(args) => checkpoint::resume(context, &args),
        Verb::Inject(args) => inject::run(context, &args),
        Verb::Interactive(args) => interactive::run(context, &args),
        Verb::Asks(args) => asks::run(context, &args),
        Verb::Answer(args) => answer::run(context, &args),
        Verb::Nudge(args) => nudge::run(context, &args),
        Verb::Send(args) => send::run(context, args),
        Verb::Message(args) => message::run(context, args),
        Verb::Inbox(args) => inbox::run(context, &args),
        Verb::Read(args) => read::run(context, &args),
        Verb::Show(args) => show::run(context, &args),
        Verb::Reply(args) => reply::run(context, args),
        Verb::Thread(args) => thread::run(context, &args),
        Verb::Archive(args) => change::archive(context, &args),
        Verb::Delete(args) => change::delete(context, &args),
        Verb::MarkRead(args) => change::mark_read(context, &args),
        Verb::MarkUnread(args) => change::mark_unread(context, &args),
        Verb::Count(args) => count::run(context, &args),
        Verb::Search(args) => search::run(context, &args),
        Verb::Check(args) => check::run(context, &args),
        Verb::Cancel(args) => change::cancel(context, &args),
        Verb::Why(args) => why::run(context, &args),
        Verb::Task(args) => task::run(context, args),
        Verb::Note(args) => note::run(context, args),
        Verb::Log(args) => log::run(context, args),
        Verb::Export(args) => export::run(context, &args),
        Verb::Import(args) => import::run(context, &args),
        Verb::Harness(args) => harness::run(context, args),
        Verb::Hooks(args) => hooks::run(context, args),
        Verb::Config(args) => config::run(context, &args),
        Verb::Doctor(args) => doctor::run(context, &args),
        Verb::Mcp(args) => mcp::run(context, args),
        Verb::Demo(_)
        | Verb::Trust(_)
        | Verb::Completions(_)
        | Verb::Man(_)
        | Verb::Help(_)
        | Verb::Hook(_)
        | Verb::Provider(_) => Ok(Code::Ok),
    }
}
