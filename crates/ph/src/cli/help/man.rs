//! `ph man`: manual pages, made from the help texts.

use super::EXIT_CODES;
use crate::cli::prelude::*;
use crate::output::Output;
use clap::CommandFactory;
use std::path::PathBuf;

/// Print a manual page, or write all of them to a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph man | man -l -
  ph man send | man -l -
  ph man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Print the page of this verb
    #[arg(value_name = "VERB", conflicts_with = "dir")]
    verb: Option<String>,
    /// Write a page for ph and one for each verb into this directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, options: &GlobalOptions) -> Result<Code> {
    let mut command = crate::cli::Cli::command().long_about(crate::cli::DESCRIPTION);
    command.build();
    if let Some(dir) = &args.dir {
        let failed = |error: std::io::Error| {
            Report::storage(format!("cannot write to {}: {error}", dir.display()))
        };
        std::fs::create_dir_all(dir).map_err(failed)?;
        let mut count = 0;
        for (name, page) in pages(&command)? {
            std::fs::write(dir.join(format!("{name}.1")), page).map_err(failed)?;
            count += 1;
        }
        note(format!("{count} pages written to {}", dir.display()));
        return Ok(Code::Ok);
    }
    let wanted = match &args.verb {
        Some(verb) => format!("ph-{verb}"),
        None => "ph".to_owned(),
    };
    let page = pages(&command)?
        .into_iter()
        .find(|(name, _)| *name == wanted);
    let (_, page) = page.ok_or_else(|| {
        Report::usage(format!(
            "there is no verb {}",
            wanted.trim_start_matches("ph-")
        ))
        .hint("'ph' lists all verbs")
    })?;
    let mut out = Output::new(crate::cli::help::color(options));
    out.bytes(&page)?;
    out.flush()?;
    Ok(Code::Ok)
}

fn pages(command: &clap::Command) -> Result<Vec<(String, Vec<u8>)>> {
    let mut pages = vec![("ph".to_owned(), page(command.clone())?)];
    for verb in command.get_subcommands() {
        let name = format!("ph-{}", verb.get_name());
        let verb = verb.clone().display_name(name.clone());
        pages.push((name, page(verb)?));
    }
    Ok(pages)
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut roff = Vec::new();
    let exit_codes: String = EXIT_CODES
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(code, meaning)| format!(".TP\n{code}\n{meaning}\n"))
        .collect();
    clap_mangen::Man::new(command)
        .source(concat!("Posthaste ", env!("CARGO_PKG_VERSION")))
        .render(&mut roff)
        .map_err(|error| Report::storage(format!("cannot write the page: {error}")))?;
    // The text after the options of every verb is its examples.
    let page = String::from_utf8_lossy(&roff).replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n");
    Ok(format!("{page}.SH \"EXIT STATUS\"\n{exit_codes}").into_bytes())
}
