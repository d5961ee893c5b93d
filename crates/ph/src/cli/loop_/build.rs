//! `ph build`: starts a session that runs an agent in a loop.

use crate::cli::prelude::*;
use crate::cli::session::run::{
    Paths, SessionOptions, check_name, default_name_of, start_here, terminal_size, words,
};
use crate::cli::times::parse_duration;
use jiff::SignedDuration;
use posthaste_session::host::start::Resumption;
use posthaste_session::loop_::{BuildArguments, loop_settings};
use posthaste_store::live::Launch;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Run an agent in a loop until a spec is done
///
/// Each iteration builds a prompt from the unread mail, the spec, the notes and the tasks, and runs
/// the agent with it, non-interactively, in the session's terminal. The loop ends when the agent
/// reports completion, when every story of the prd passes, or after --iterations. An interrupted
/// loop continues at the same iteration after 'ph build' or 'ph restart'. Ctrl+\ d detaches and
/// leaves it running.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "loop",
    after_help = "\
Examples:
  ph build --spec specs/login.md
  ph build --prd tasks/login/prd.json --harness codex --iterations 20 --detach
  ph build --spec plan.md -- my-agent --prompt {prompt}

A custom command gets the prompt on its standard input, or in place of the argument {prompt}. \
'ph stop', 'ph checkpoint', 'ph resume', 'ph inject' and 'ph interactive' control a loop; mail to \
its name is part of its next prompt."
)]
pub(crate) struct Args {
    /// The agent's name [default: the spec's file name without extension, else the prd's directory]
    #[arg(long, short, value_name = "NAME", value_parser = parse_name)]
    name: Option<AgentName>,
    /// Specification of what to build
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    spec: Option<PathBuf>,
    /// Stories with acceptance criteria, as JSON; the agent keeps progress.txt beside it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    prd: Option<PathBuf>,
    /// Harness; 'ph harness ls' lists them [default: the one for the command, else claude]
    #[arg(long, value_name = "H", add = complete_harnesses())]
    harness: Option<String>,
    /// Model for the agent to use
    #[arg(long, short, value_name = "M")]
    model: Option<String>,
    /// Maximum number of iterations; 0: unlimited
    #[arg(long, short, value_name = "N", default_value_t = 50)]
    iterations: u32,
    /// Give up after this many failed iterations in a row; 0: never
    #[arg(long, value_name = "N", default_value_t = 5)]
    failures: u32,
    /// Treat an agent without output for this long as hanging
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_duration, allow_hyphen_values = true)]
    idle: SignedDuration,
    /// Instructions that replace the built-in ones
    #[arg(long, short, value_name = "TEXT")]
    prompt: Option<String>,
    /// Template file that arranges the parts of a prompt
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    template: Option<PathBuf>,
    /// Additional instructions
    #[arg(long, short, value_name = "TEXT")]
    extra: Option<String>,
    /// Run it in the background
    #[arg(long, short)]
    detach: bool,
    #[command(flatten)]
    options: SessionOptions,
    /// The agent's command and its arguments [default: the harness's command]
    #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let is_detached = args.detach;
    let launch = launch(context, args)?;
    start_here(context, launch, is_detached, Resumption::Never)
}

/// Convert the arguments to the launch of a session.
fn launch(context: &Context, args: Args) -> Result<Launch> {
    let Paths { here, cwd, sockets } = args.options.paths()?;
    let file = |path: Option<PathBuf>| path.map(|path| here.join(path));
    let (spec, prd) = (file(args.spec), file(args.prd));
    if spec.is_none() && prd.is_none() {
        return Err(Report::usage("a loop needs a spec or a prd")
            .hint("for example: ph build --spec specs/login.md"));
    }
    let default = default_name(spec.as_deref(), prd.as_deref());
    let settings = loop_settings(
        &context.home,
        &context.config.harnesses.status_rows(),
        BuildArguments {
            spec,
            prd,
            template: file(args.template),
            harness: args.harness,
            model: args.model,
            command: words(args.command)?,
            prompt: args.prompt,
            extra: args.extra,
            iterations: args.iterations,
            failures: args.failures,
            idle: args.idle,
            cwd: &cwd,
            env: &args.options.env,
            sockets: &sockets,
        },
    )?;
    let name = match args.name {
        Some(name) => name,
        None => default_name_of(&default)?,
    };
    check_name(context, &name)?;
    let (cols, rows) = terminal_size();
    Ok(Launch {
        name,
        command: displayed_command(&settings),
        cwd,
        harness: settings.harness.clone(),
        env: args.options.env,
        sockets,
        cols,
        rows,
        build: Some(Box::new(settings)),
    })
}

/// Return the words that lists show as the loop's command.
fn displayed_command(settings: &posthaste_core::loop_::Settings) -> Vec<String> {
    let mut words = vec!["ph".to_owned(), "build".to_owned()];
    for (flag, value) in [("--spec", &settings.spec), ("--prd", &settings.prd)] {
        words.extend(
            value
                .iter()
                .flat_map(|path| [flag.to_owned(), path.clone()]),
        );
    }
    match settings.command.as_slice() {
        [] => words.extend(["--harness".to_owned(), settings.harness.clone()]),
        command => {
            words.push("--".to_owned());
            words.extend_from_slice(command);
        }
    }
    words
}

/// Return the default name of a loop: the spec's file name without extension, or the name of the
/// prd's directory, as in ralph.
fn default_name(spec: Option<&Path>, prd: Option<&Path>) -> String {
    let by_spec = spec.and_then(Path::file_stem);
    let by_prd = prd.and_then(Path::parent).and_then(Path::file_name);
    let name = by_spec.or(by_prd).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_is_that_of_the_spec_or_of_the_prds_directory() {
        let check = |spec: Option<&str>, prd: Option<&str>, want: &str| {
            let name = default_name(spec.map(Path::new), prd.map(Path::new));
            assert_eq!(name, want, "{spec:?} {prd:?}");
        };
        check(Some("/specs/login.md"), None, "login");
        check(Some("/specs/login"), Some("/tasks/x/prd.json"), "login");
        check(None, Some("/tasks/sign-up/prd.json"), "sign-up");
        check(None, Some("/prd.json"), "");
    }
}
