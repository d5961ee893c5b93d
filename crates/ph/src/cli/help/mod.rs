//! `ph help`: the help text of a verb, or a topic.

/// The list of exit codes for `ph help exit-codes` and the man pages.
pub(super) const EXIT_CODES: &str = "\
0  success
1  the answer is no, or nothing was found ('check' without mail, 'doctor' with a problem, 'send --wait' if the state is not reached)
2  usage: the command line, a setting, or a file named on the command line is invalid
3  not found: no such message, task, session or harness, or a prefix that matches more than one
4  refused: the rules do not allow it
5  storage: the home, or the script that keeps the mail, could not be read or written

With 2, 3 and 4 nothing was changed, except that 'import' keeps the facts that it could import, and 'send' stores a message that is part of a storm as failed.
";

pub(crate) mod completions;
pub(crate) mod groups;
pub(crate) mod man;
pub(crate) mod misread;

use crate::cli::prelude::*;
use crate::output::Output;
use anstream::ColorChoice;
use clap::CommandFactory;
use clap::builder::StyledStr;

/// Explain a verb or a topic
///
/// Topics: exit-codes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph help send
  ph help exit-codes")]
pub(crate) struct Args {
    /// Verb or topic
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

pub(crate) fn run(args: &Args, options: &GlobalOptions) -> Result<Code> {
    if args.topic == ["exit-codes"] {
        let mut out = Output::new(color(options));
        out.text(EXIT_CODES)?;
        out.flush()?;
        return Ok(Code::Ok);
    }
    let mut command = crate::cli::Cli::command();
    let mut wanted = &command;
    for word in &args.topic {
        wanted = wanted.find_subcommand(word).ok_or_else(|| {
            Report::usage(format!(
                "there is no verb or topic '{}'",
                posthaste_core::text::one_line(word, 40)
            ))
            .hint("'ph' lists the verbs; the topics are: exit-codes")
        })?;
    }
    let words = ["ph"]
        .into_iter()
        .chain(args.topic.iter().map(String::as_str));
    // Handled like '--help', so that both print the same.
    match command.try_get_matches_from_mut(words.chain(["--help"])) {
        Err(help) => print(&help.render(), options),
        Ok(_) => print(&command.render_long_help(), options),
    }
}

pub(crate) fn print(help: &StyledStr, options: &GlobalOptions) -> Result<Code> {
    let mut out = Output::new(color(options));
    out.text(help.ansi())?;
    out.flush()?;
    Ok(Code::Ok)
}

/// Return the colour choice of the flag. Help texts do not read the settings.
pub(crate) fn color(options: &GlobalOptions) -> ColorChoice {
    match options.color.as_deref() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}
