//! `ph completions`: shell scripts that call `ph` for completions.

use crate::cli::prelude::*;
use crate::output::Output;
use clap_complete::env::Shells;

/// Print a shell completion script
///
/// The script calls ph for completions, so that agent names and message ids are completed too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(ph completions bash)
  ph completions fish > ~/.config/fish/completions/ph.fish")]
pub(crate) struct Args {
    /// Shell: bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL", value_parser = ["bash", "zsh", "fish", "elvish", "powershell"], hide_possible_values = true)]
    shell: String,
}

pub(crate) fn run(args: &Args, options: &GlobalOptions) -> Result<Code> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&args.shell)
        .ok_or_else(|| Report::usage(format!("{} has no completion script", args.shell)))?;
    let mut script = Vec::new();
    let failed = |error| Report::storage(format!("cannot write the script: {error}"));
    shell
        .write_registration(crate::cli::COMPLETE, "ph", "ph", "ph", &mut script)
        .map_err(failed)?;
    let mut out = Output::new(crate::cli::help::color(options));
    out.bytes(&script)?;
    out.flush()?;
    Ok(Code::Ok)
}
