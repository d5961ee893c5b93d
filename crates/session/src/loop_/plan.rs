//! Converts the arguments of `ph build` to a loop's settings. Checks the files and the agent before
//! anything is started.

use super::agent::{MAX_ARGUMENT_BYTES, PROMPT_PLACEHOLDER};
use super::files::{self, SpecFile};
use super::prompt;
use crate::harness::{Catalogue, StatusRows, install_hint};
use crate::host::start;
use jiff::SignedDuration;
use posthaste_core::harness::{Manifest, PromptWay};
use posthaste_core::loop_::{Policy, Settings};
use posthaste_core::text;
use posthaste_store::Home;
use posthaste_store::report::{Report, Result};
use std::path::{Path, PathBuf};

/// The harness of a loop without a harness and a command.
const DEFAULT_HARNESS: &str = "claude";
/// The file beside the prd to which failures and checkpoints are appended.
const PROGRESS_FILE: &str = "progress.txt";

/// The arguments of `ph build`, with absolute paths.
#[derive(Debug)]
pub struct BuildArguments<'a> {
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

/// Return the settings of a loop, or why it cannot run.
pub fn loop_settings(
    home: &Home,
    status_rows: &StatusRows,
    arguments: BuildArguments<'_>,
) -> Result<Settings> {
    if let Some(path) = &arguments.spec {
        SpecFile::read(path)?;
    }
    if let Some(path) = &arguments.prd {
        files::read_prd(path)?;
    }
    if let Some(path) = &arguments.template {
        files::read_template(path)?;
    }
    let catalogue = Catalogue::load(home, status_rows)?;
    let harness = match (&arguments.harness, arguments.command.first()) {
        (Some(harness), _) => harness.clone(),
        (None, Some(program)) => catalogue.default_for(program).to_owned(),
        (None, None) => DEFAULT_HARNESS.to_owned(),
    };
    let manifest = catalogue.take(&harness)?;
    let progress = arguments
        .prd
        .as_ref()
        .map(|prd| prd.with_file_name(PROGRESS_FILE));
    let settings = Settings {
        spec: path_text("spec", arguments.spec)?,
        prd: path_text("prd", arguments.prd)?,
        progress: path_text("prd", progress)?,
        harness,
        model: arguments.model,
        command: arguments.command,
        prompt: arguments.prompt,
        template: path_text("template", arguments.template)?,
        extra: arguments.extra,
        cwd: arguments.cwd.to_string_lossy().into_owned(),
        sockets: arguments
            .sockets
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect(),
        policy: Policy {
            iterations: arguments.iterations,
            failures: arguments.failures,
            idle_ms: u64::try_from(arguments.idle.as_millis()).unwrap_or(u64::MAX),
            ..Policy::default()
        },
    };
    check_agent(&settings, &manifest, arguments.cwd, arguments.env)?;
    prompt::check_size(&settings, max_prompt_bytes(&settings, &manifest))?;
    Ok(settings)
}

/// Return the maximum size of a prompt: prompts in arguments are limited.
pub(super) fn max_prompt_bytes(settings: &Settings, harness: &Manifest) -> usize {
    let mut arguments = settings.command.iter().skip(1);
    let headless = harness.headless.as_ref();
    let is_argument = arguments.any(|word| word == PROMPT_PLACEHOLDER)
        || headless.is_some_and(|headless| headless.prompt == PromptWay::Argument);
    match is_argument {
        true => MAX_ARGUMENT_BYTES,
        false => usize::MAX,
    }
}

/// Check that the agent's program exists and that its harness has what the settings need.
pub fn check_agent(
    settings: &Settings,
    harness: &Manifest,
    cwd: &Path,
    env: &[(String, String)],
) -> Result<()> {
    let program = program(settings, harness)?;
    if settings.model.is_some() && harness.headless.as_ref().is_none_or(|h| h.model.is_none()) {
        return Err(Report::usage(format!(
            "the harness {} has no option for the model",
            harness.name
        ))
        .hint("pass the model in a command, after '--'"));
    }
    start::check_program(program, cwd, env).map_err(|report| install_hint(report, harness, program))
}

/// Return the program of a loop's agent.
pub(crate) fn program<'a>(settings: &'a Settings, harness: &'a Manifest) -> Result<&'a str> {
    let default = || {
        let known = harness.headless.as_ref().and(harness.commands.first());
        known.ok_or_else(|| {
            Report::usage(format!(
                "the harness {} has no headless mode",
                text::one_line(&harness.name, 40)
            ))
            .hint("give a command after '--'; it reads the prompt from standard input")
        })
    };
    let program = settings.command.first().map_or_else(default, Ok)?;
    match program.is_empty() {
        true => Err(Report::usage("the command is empty")),
        false => Ok(program),
    }
}

/// Return a path as text: facts and prompts cannot contain other paths.
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
