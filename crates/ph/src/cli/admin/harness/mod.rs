mod recognition;

use crate::cli::names::complete_harnesses;
use crate::cli::session::run::terminal_size;
use crate::cli::times::parse_duration;
use crate::context::Context;
use anstyle::Style;
use posthaste_core::harness::Manifest;
use posthaste_core::{AgentName, text};
use posthaste_session::harness::catalogue::CatalogueEntry;
use posthaste_session::harness::trial::{self, Observation, Readiness};
use posthaste_session::harness::{Catalogue, GENERIC_HARNESS};
use posthaste_store::live::Launch;
use posthaste_store::live::process::is_program;
use posthaste_store::report::{Code, Report, Result};
use std::ffi::OsString;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// List, show and test harnesses
///
/// A harness describes one kind of agent: how it is started, how to recognise that it is ready,
/// idle, working or blocked, and how it gets messages. A file NAME.toml adds or replaces a
/// harness. It belongs in ~/.config/posthaste/harness/, or in the directory harness/ of a home
/// outside of projects.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph harness ls
  ph harness show generic
  ph harness test my-agent -- my-agent --model small
  tmux capture-pane -p | ph harness match my-agent -")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: HarnessVerb,
}

#[derive(Debug, clap::Subcommand)]
enum HarnessVerb {
    /// List harnesses with their commands, their sources, and whether the commands are installed
    #[command(after_help = "Example:\n  ph harness ls --json")]
    Ls,
    /// Print a harness's manifest
    #[command(after_help = "Example:\n  ph harness show generic > my-agent.toml")]
    Show {
        /// Harness name
        #[arg(value_name = "NAME", add = complete_harnesses())]
        name: String,
    },
    Match(recognition::MatchArgs),
    /// Run a program and print what the harness recognises, as it changes
    ///
    /// Runs until the program exits, Ctrl+C is pressed or the time given by --for has passed.
    /// Stores nothing. Exits with 0 if the program was recognised as ready, else with 1.
    #[command(
        after_help = "Examples:\n  ph harness test my-agent\n  ph harness test generic --for 10s -- bash"
    )]
    Test {
        /// Harness name
        #[arg(value_name = "NAME", add = complete_harnesses())]
        name: String,
        /// Stop the program after this time
        #[arg(long = "for", value_name = "DURATION")]
        limit: Option<String>,
        /// The command and its arguments [default: the harness's first command]
        #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
        command: Vec<OsString>,
    },
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let catalogue = Catalogue::load(&context.home, &context.config.harnesses.status_rows())?;
    match args.verb {
        HarnessVerb::Ls => list(context, &catalogue),
        HarnessVerb::Show { name } => {
            let entry = catalogue.take_entry(&name)?;
            show(context, entry)
        }
        HarnessVerb::Match(args) => {
            let manifest = catalogue.take(&args.name)?;
            recognition::run(context, &manifest, &args)
        }
        HarnessVerb::Test {
            name,
            limit,
            command,
        } => {
            let manifest = catalogue.take(&name)?;
            let limit = limit.as_deref().map(length).transpose()?;
            test(context, manifest, limit, command)
        }
    }
}

/// Return whether one of the harness's commands is on the PATH, or `None` if it has no commands.
fn installed(manifest: &Manifest) -> Option<bool> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<_> = std::env::split_paths(&path).collect();
    let is_there = |command: &String| dirs.iter().any(|dir| is_program(&dir.join(command)));
    (!manifest.commands.is_empty()).then(|| manifest.commands.iter().any(is_there))
}

fn list(context: &mut Context, catalogue: &Catalogue) -> Result<Code> {
    if context.json {
        let all: Vec<_> = catalogue.entries().iter().map(listed).collect();
        context.out.json(&all)?;
        return Ok(Code::Ok);
    }
    let heads = ["NAME", "COMMANDS", "INSTALLED", "FROM"].map(str::to_owned);
    let rows: Vec<[String; 4]> = catalogue.entries().iter().map(row).collect();
    let widths: [usize; 4] = std::array::from_fn(|column| {
        let cells = rows.iter().chain([&heads]).map(|row| row[column].width());
        cells.max().unwrap_or(0)
    });
    let line = |cells: &[String; 4]| {
        let cells = cells.iter().zip(widths);
        let padded =
            cells.map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let dim = Style::new().dimmed();
    context.out.line(format!("{dim}{}{dim:#}", line(&heads)))?;
    for row in &rows {
        context.out.line(line(row))?;
    }
    for entry in catalogue.entries() {
        match &entry.manifest {
            Ok(manifest) => note_unused(manifest),
            Err(report) => crate::output::note(report.message()),
        }
    }
    note_unknown(context, catalogue);
    Ok(Code::Ok)
}

/// Name the harnesses in the settings that do not exist.
fn note_unknown(context: &Context, catalogue: &Catalogue) {
    let is_known = |name: &str| catalogue.entries().iter().any(|entry| entry.name == name);
    let names = context.config.harnesses.names();
    for name in names.filter(|name| !is_known(name)) {
        let name = text::one_line(name, 40);
        let what = format!("unknown harness '{name}' in the settings ([harness.{name}])");
        crate::output::note(what);
    }
}

/// Print a note for each part of a manifest that has no effect.
fn note_unused(manifest: &Manifest) {
    for unused in manifest.unused() {
        crate::output::note(format!("the harness {}: {unused}", manifest.name));
    }
}

fn row(entry: &CatalogueEntry) -> [String; 4] {
    let name = text::one_line(&entry.name, 40);
    let origin = entry.origin.to_string();
    match &entry.manifest {
        Ok(manifest) => {
            let commands = match manifest.commands.as_slice() {
                [] if manifest.name == GENERIC_HARNESS => "any".to_owned(),
                [] => "-".to_owned(),
                commands => text::one_line(&commands.join(" "), 40),
            };
            let installed = match installed(manifest) {
                Some(true) => "yes",
                Some(false) => "no",
                None => "-",
            };
            [name, commands, installed.to_owned(), origin]
        }
        Err(_) => [name, "-".to_owned(), "invalid".to_owned(), origin],
    }
}

fn listed(entry: &CatalogueEntry) -> serde_json::Value {
    let manifest = entry.manifest.as_ref();
    serde_json::json!({
        "name": entry.name,
        "description": manifest.map(|m| m.description.clone()).ok(),
        "commands": manifest.map(|m| m.commands.clone()).unwrap_or_default(),
        "installed": manifest.ok().and_then(installed),
        "install": manifest.ok().and_then(|m| m.install.clone()),
        "source": entry.origin.to_string(),
        "error": manifest.err().map(Report::message),
        "notes": manifest.map(Manifest::unused).unwrap_or_default(),
    })
}

fn show(context: &mut Context, entry: CatalogueEntry) -> Result<Code> {
    let CatalogueEntry {
        origin,
        text: own,
        manifest,
        ..
    } = entry;
    let manifest = manifest?;
    if context.json {
        let value = serde_json::json!({
            "source": origin.to_string(), "manifest": manifest, "notes": manifest.unused(),
        });
        context.out.json(&value)?;
        return Ok(Code::Ok);
    }
    // A built-in manifest has comments that explain its keys.
    let shown = match own {
        Some(own) => own.to_owned(),
        None => toml::to_string(&manifest)
            .map_err(|error| Report::storage(format!("cannot show the harness: {error}")))?,
    };
    context.out.line(format!("# {origin}"))?;
    context.out.text(text::visible(&shown))?;
    note_unused(&manifest);
    Ok(Code::Ok)
}

fn length(text: &str) -> Result<Duration> {
    let length = parse_duration(text).map_err(Report::usage)?;
    Duration::try_from(length).map_err(|_| Report::usage("--for takes a duration such as 10s"))
}

fn test(
    context: &mut Context,
    manifest: Manifest,
    limit: Option<Duration>,
    command: Vec<OsString>,
) -> Result<Code> {
    note_unused(&manifest);
    if manifest.hook.is_known() {
        crate::output::note("hooks work in sessions only, not in 'ph harness test'");
    }
    let command = command_of(&manifest, command)?;
    let cwd = std::env::current_dir().map_err(|error| {
        Report::usage(format!("cannot determine the current directory: {error}"))
    })?;
    let (cols, rows) = terminal_size();
    let launch = Launch {
        name: AgentName::parse("trial").map_err(Report::usage)?,
        command,
        cwd,
        harness: manifest.name.clone(),
        env: Vec::new(),
        sockets: Vec::new(),
        cols,
        rows,
        build: None,
    };
    let (out, is_json) = (&mut context.out, context.json);
    let mut print = |at: Duration, noted: &Observation| -> Result<()> {
        if is_json {
            let value = serde_json::json!({
                "at_ms": at.as_millis() as u64, "kind": noted.kind, "is": noted.is,
                "evidence": noted.evidence,
            });
            out.json_text(&value.to_string())?;
        } else {
            let line = format!(
                "{:>8.3} s  {:<8}  {:<10}  {}",
                at.as_secs_f64(),
                noted.kind,
                text::visible(&noted.is),
                text::visible(&noted.evidence)
            );
            out.line(line.trim_end())?;
        }
        out.flush()
    };
    match trial::run(manifest, &launch, limit, &mut print)? {
        Readiness::WasReady => Ok(Code::Ok),
        Readiness::NeverReady => Ok(Code::No),
    }
}

/// Return the command to test: the given one, else the harness's first command.
fn command_of(manifest: &Manifest, given: Vec<OsString>) -> Result<Vec<String>> {
    let words = given.into_iter().map(|word| word.into_string().ok());
    let words: Option<Vec<String>> = words.collect();
    let words = words.ok_or_else(|| Report::usage("the command is not UTF-8"))?;
    match (words.is_empty(), manifest.commands.first()) {
        (false, _) => Ok(words),
        (true, Some(first)) => Ok(vec![first.clone()]),
        (true, None) => Err(
            Report::usage("this harness has no command of its own").hint(format!(
                "name a command: ph harness test {} -- COMMAND",
                manifest.name
            )),
        ),
    }
}
