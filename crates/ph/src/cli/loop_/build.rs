use crate::cli::names::{NameParser, complete_harnesses};
use crate::cli::session::run::{
    Around, Paths, begin_here, check_name, size_here, usual_name, words,
};
use crate::context::Context;
use jiff::SignedDuration;
use posthaste_core::AgentName;
use posthaste_session::host::start::Resumption;
use posthaste_session::loop_::{Plan, plan};
use posthaste_store::live::place::Launch;
use posthaste_store::report::{Code, Report, Result};
use posthaste_store::times::parse_duration;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Run an agent in a loop until a spec is done
///
/// Each iteration builds a prompt with the unread mail, the spec, notes and tasks, and runs the
/// agent with it, headless, in a session's terminal. The loop ends when the agent says that all is
/// done, when every story of the prd passes, or after so many iterations. A loop that was cut off
/// goes on where it was when it is built or restarted again. Ctrl+\ d leaves it running.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "loop",
    after_help = "\
Examples:
  ph build --spec specs/login.md
  ph build --prd tasks/login/prd.json --harness codex --iterations 20 --detach
  ph build --spec plan.md -- my-agent --prompt {prompt}

A command of your own gets the prompt on its standard input, or where an argument is {prompt}. \
'ph stop', 'ph checkpoint', 'ph resume', 'ph inject' and 'ph interactive' steer a loop; mail to its \
name stands in its next prompt."
)]
pub(crate) struct Args {
    /// The agent's name [default: the spec's, without its ending, else that of the prd's directory]
    #[arg(long, short, value_name = "NAME", value_parser = NameParser)]
    name: Option<AgentName>,
    /// What is to be built
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    spec: Option<PathBuf>,
    /// Stories with what must pass, as JSON; progress.txt stands beside it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    prd: Option<PathBuf>,
    /// What kind of agent it is; 'ph harness ls' lists them [default: the one for the command, else
    /// claude]
    #[arg(long, value_name = "H", add = complete_harnesses())]
    harness: Option<String>,
    /// The model that the agent is told to use
    #[arg(long, short, value_name = "M")]
    model: Option<String>,
    /// How many iterations at most; 0: no end
    #[arg(long, short, value_name = "N", default_value_t = 50)]
    iterations: u32,
    /// After how many failures in a row to give up; 0: never
    #[arg(long, value_name = "N", default_value_t = 5)]
    failures: u32,
    /// How long an agent may write nothing before it counts as hanging
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_duration)]
    idle: SignedDuration,
    /// Instead of the built-in instructions
    #[arg(long, short, value_name = "TEXT")]
    prompt: Option<String>,
    /// A file that says how the parts of a prompt stand together
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    template: Option<PathBuf>,
    /// Beside the instructions
    #[arg(long, short, value_name = "TEXT")]
    extra: Option<String>,
    /// Leave it in the background
    #[arg(long, short)]
    detach: bool,
    #[command(flatten)]
    around: Around,
    /// The agent's command and its arguments [default: the harness's own]
    #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let is_detached = args.detach;
    let launch = launch(context, args)?;
    begin_here(context, launch, is_detached, Resumption::Never)
}

/// What was said, made into what is meant.
fn launch(context: &Context, args: Args) -> Result<Launch> {
    let Paths { here, cwd, sockets } = args.around.paths()?;
    let file = |path: Option<PathBuf>| path.map(|path| here.join(path));
    let (spec, prd) = (file(args.spec), file(args.prd));
    if spec.is_none() && prd.is_none() {
        return Err(Report::usage("a loop needs a spec or a prd")
            .hint("for example: ph build --spec specs/login.md"));
    }
    let usual = called_after(spec.as_deref(), prd.as_deref());
    let settings = plan(
        &context.home,
        &context.config.harnesses.status_rows(),
        Plan {
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
            env: &args.around.env,
            sockets: &sockets,
        },
    )?;
    let name = match args.name {
        Some(name) => name,
        None => usual_name(&usual)?,
    };
    check_name(context, &name)?;
    let (cols, rows) = size_here();
    Ok(Launch {
        name,
        command: shown(&settings),
        cwd,
        harness: settings.harness.clone(),
        env: args.around.env,
        sockets,
        cols,
        rows,
        build: Some(Box::new(settings)),
    })
}

/// How a loop is called in lists.
fn shown(settings: &posthaste_core::build::Settings) -> Vec<String> {
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

/// What a loop is called that nobody names: by its spec, or by the directory that its prd is in, as
/// the original has it.
fn called_after(spec: Option<&Path>, prd: Option<&Path>) -> String {
    let by_spec = spec.and_then(Path::file_stem);
    let by_prd = prd.and_then(Path::parent).and_then(Path::file_name);
    let name = by_spec.or(by_prd).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_called_by_its_spec_or_by_where_its_prd_is() {
        let check = |spec: Option<&str>, prd: Option<&str>, want: &str| {
            let name = called_after(spec.map(Path::new), prd.map(Path::new));
            assert_eq!(name, want, "{spec:?} {prd:?}");
        };
        check(Some("/specs/login.md"), None, "login");
        check(Some("/specs/login"), Some("/tasks/x/prd.json"), "login");
        check(None, Some("/tasks/sign-up/prd.json"), "sign-up");
        check(None, Some("/prd.json"), "");
    }
}
