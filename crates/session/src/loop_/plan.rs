//! What `ph build` was told, made into a loop's settings: files looked at, the agent found. What
//! is wrong is said before anything is started or changed.

use super::agent::{LONGEST_ARGUMENT, PROMPT};
use super::files::{self, Spec};
use super::prompt;
use crate::harness::{Catalogue, StatusRows, install_hint};
use crate::host::start;
use jiff::SignedDuration;
use posthaste_core::build::{Policy, Settings};
use posthaste_core::harness::{Manifest, PromptWay};
use posthaste_core::text;
use posthaste_store::Home;
use posthaste_store::report::{Report, Result};
use std::path::{Path, PathBuf};

/// The harness of a loop that is told neither one nor a command.
const USUAL: &str = "claude";
/// Beside the prd.
const PROGRESS: &str = "progress.txt";

/// What was said; paths are whole.
#[derive(Debug)]
pub struct Plan<'a> {
    pub spec: Option<PathBuf>,
    pub prd: Option<PathBuf>,
    pub template: Option<PathBuf>,
    pub harness: Option<String>,
    pub model: Option<String>,
    pub command: Vec<String>,
    pub prompt: Option<String>,
    pub extra: Option<String>,
    pub iterations: u32,
    pub failures: u32,
    pub idle: SignedDuration,
    pub cwd: &'a Path,
    pub env: &'a [(String, String)],
    pub sockets: &'a [PathBuf],
}

pub fn plan(home: &Home, status_rows: &StatusRows, said: Plan<'_>) -> Result<Settings> {
    if let Some(path) = &said.spec {
        Spec::read(path)?;
    }
    if let Some(path) = &said.prd {
        files::prd(path)?;
    }
    if let Some(path) = &said.template {
        files::template(path)?;
    }
    let catalogue = Catalogue::load(home, status_rows)?;
    let harness = match (&said.harness, said.command.first()) {
        (Some(harness), _) => harness.clone(),
        (None, Some(program)) => catalogue.default_for(program).to_owned(),
        (None, None) => USUAL.to_owned(),
    };
    let manifest = catalogue.take(&harness)?;
    let progress = said.prd.as_ref().map(|prd| prd.with_file_name(PROGRESS));
    let settings = Settings {
        spec: path_text("spec", said.spec)?,
        prd: path_text("prd", said.prd)?,
        progress: path_text("prd", progress)?,
        harness,
        model: said.model,
        command: said.command,
        prompt: said.prompt,
        template: path_text("template", said.template)?,
        extra: said.extra,
        cwd: said.cwd.to_string_lossy().into_owned(),
        sockets: said
            .sockets
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect(),
        policy: Policy {
            iterations: said.iterations,
            failures: said.failures,
            idle_ms: u64::try_from(said.idle.as_millis()).unwrap_or(u64::MAX),
            ..Policy::default()
        },
    };
    check(&settings, &manifest, said.cwd, said.env)?;
    prompt::check(&settings, room(&settings, &manifest))?;
    Ok(settings)
}

/// How long a prompt may be, by the way it goes.
pub(super) fn room(settings: &Settings, harness: &Manifest) -> usize {
    let is_told = settings.command.iter().skip(1).any(|word| word == PROMPT);
    let headless = harness.headless.as_ref();
    let is_usual = headless.is_some_and(|headless| headless.prompt == PromptWay::Argument);
    match is_told || is_usual {
        true => LONGEST_ARGUMENT,
        false => usize::MAX,
    }
}

/// Whether the agent can be run, as far as that can be told before it is.
pub fn check(
    settings: &Settings,
    harness: &Manifest,
    cwd: &Path,
    env: &[(String, String)],
) -> Result<()> {
    let program = program(settings, harness)?;
    if settings.model.is_some() && harness.headless.as_ref().is_none_or(|h| h.model.is_none()) {
        return Err(Report::usage(format!(
            "it is not known how {} is told its model",
            harness.name
        ))
        .hint("say it among the words of the command, after '--'"));
    }
    start::check_program(program, cwd, env).map_err(|report| install_hint(report, harness, program))
}

/// The program of a loop's agent.
pub(crate) fn program<'a>(settings: &'a Settings, harness: &'a Manifest) -> Result<&'a str> {
    let own = || {
        let known = harness.headless.as_ref().and(harness.commands.first());
        known.ok_or_else(|| {
            Report::usage(format!(
                "it is not known how {} is run without a terminal",
                text::one_line(&harness.name, 40)
            ))
            .hint("say the command, after '--': it gets the prompt on its standard input")
        })
    };
    let program = settings.command.first().map_or_else(own, Ok)?;
    match program.is_empty() {
        true => Err(Report::usage("the command is empty")),
        false => Ok(program),
    }
}

/// A loop is told its paths as text, and so is its agent.
fn path_text(what: &str, path: Option<PathBuf>) -> Result<Option<String>> {
    let text = |path: PathBuf| match path.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(path) => Err(Report::usage(format!(
            "the path of the {what} is not UTF-8: {}",
            text::visible(&path.to_string_lossy())
        ))),
    };
    path.map(text).transpose()
}
