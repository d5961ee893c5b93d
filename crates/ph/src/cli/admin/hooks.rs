//! `ph hooks`: installs or removes ph's hook in an agent's settings, after asking the person.

use crate::cli::prelude::*;
use crate::hook_install::{self, AgentSettings, HookState};
use anstyle::{AnsiColor, Style};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

/// Install, remove or check ph's hook in an agent's settings
///
/// For agents that you start without 'ph run': the hook shows such an agent its new mail at each
/// prompt. The agent's name is PH_AGENT, else the one given by --agent. 'ph run' neither needs this
/// hook nor conflicts with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph hooks install claude --agent coder-1
  ph hooks status
  ph hooks uninstall claude")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: HooksVerb,
}

#[derive(Debug, clap::Subcommand)]
enum HooksVerb {
    /// Add the hook and keep all other settings
    ///
    /// Shows the change and asks for confirmation. Keeps a copy of the previous settings beside
    /// them.
    #[command(after_help = "Example:\n  ph hooks install claude --agent coder-1 --yes")]
    Install {
        #[arg(value_name = "HARNESS", value_parser = harness())]
        harness: String,
        /// Agent whose mail is shown if PH_AGENT is not set
        #[arg(long, value_name = "NAME", value_parser = parse_name)]
        agent: Option<AgentName>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Remove the hook; settings that are otherwise unchanged are restored byte for byte
    #[command(after_help = "Example:\n  ph hooks uninstall claude --yes")]
    Uninstall {
        #[arg(value_name = "HARNESS", value_parser = harness())]
        harness: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Show whether the hook is installed: installed, not, partly, outdated
    #[command(after_help = "Example:\n  ph hooks status --json")]
    Status {
        /// Harness [default: all]
        #[arg(value_name = "HARNESS", value_parser = harness())]
        harness: Option<String>,
    },
}

fn harness() -> clap::builder::PossibleValuesParser {
    hook_install::names().collect::<Vec<_>>().into()
}

/// The state of one harness's hook.
#[derive(Debug, Serialize)]
struct HookStatus {
    harness: &'static str,
    state: HookState,
    path: PathBuf,
    /// Whether this call has changed the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<bool>,
    /// The copy of the previous settings.
    copy: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    match args.verb {
        HooksVerb::Install {
            harness,
            agent,
            yes,
        } => install(context, &harness, agent.as_ref(), yes),
        HooksVerb::Uninstall { harness, yes } => uninstall(context, &harness, yes),
        HooksVerb::Status { harness } => status(context, harness.as_deref()),
    }
}

fn install(
    context: &mut Context,
    harness: &str,
    agent: Option<&AgentName>,
    yes: bool,
) -> Result<Code> {
    let target = AgentSettings::of(harness)?;
    let file = target.file()?;
    let before = hook_install::read(&file)?;
    let command = target.command(agent)?;
    let was = target.state(before.as_deref(), Some(&command))?;
    let after = target.installed(before.as_deref(), &command)?;
    let is_new = before.as_deref() != Some(after.as_str());
    if is_new {
        confirm(context, &file, before.as_deref(), Some(&after), yes)?;
        hook_install::apply(
            &file,
            before.as_deref(),
            Some(&after),
            was == HookState::Not,
        )?;
    }
    print_outcome(context, &target, HookState::Installed, is_new)
}

fn uninstall(context: &mut Context, harness: &str, yes: bool) -> Result<Code> {
    let target = AgentSettings::of(harness)?;
    let file = target.file()?;
    let before = hook_install::read(&file)?;
    let was = target.state(before.as_deref(), None)?;
    let (Some(before), false) = (&before, was == HookState::Not) else {
        return print_outcome(context, &target, HookState::Not, false);
    };
    let copy = hook_install::read(&hook_install::backup_of(&file))?;
    let after = target.uninstalled(before, copy.as_deref())?;
    confirm(context, &file, Some(before), after.as_deref(), yes)?;
    hook_install::apply(&file, Some(before), after.as_deref(), false)?;
    if copy.is_some() && after == copy {
        // The copy would equal the settings file.
        let _ = std::fs::remove_file(hook_install::backup_of(&file));
    }
    print_outcome(context, &target, HookState::Not, true)
}

/// Show the change, and ask for confirmation unless `yes`.
fn confirm(
    context: &mut Context,
    file: &std::path::Path,
    before: Option<&str>,
    after: Option<&str>,
    yes: bool,
) -> Result<()> {
    if !context.json {
        let lines = hook_install::diff(before.unwrap_or_default(), after.unwrap_or_default());
        let path = text::visible(&file.display().to_string());
        context.out.line(match after {
            Some(_) => path,
            None => format!("{path} (will be removed)"),
        })?;
        for line in lines {
            let style = match line.chars().next() {
                Some('+') => AnsiColor::Green.on_default(),
                Some('-') => AnsiColor::Red.on_default(),
                _ => Style::new(),
            };
            let line = text::visible(&line);
            context.out.line(format!("{style}{line}{style:#}"))?;
        }
        context.out.flush()?;
    }
    if yes {
        return Ok(());
    }
    let is_person = std::io::stdin().is_terminal() && context.out.is_terminal();
    if !is_person || context.json {
        return Err(
            Report::refused("nothing was changed: the change was not confirmed")
                .hint("--yes confirms it; on a terminal you are asked"),
        );
    }
    context.out.text("Write this? [y/N] ")?;
    context.out.flush()?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let is_yes = read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes");
    if !is_yes {
        return Err(Report::refused("nothing was changed"));
    }
    Ok(())
}

fn hook_status(target: &AgentSettings, state: HookState, changed: Option<bool>) -> HookStatus {
    let copy = target
        .file()
        .ok()
        .map(|file| hook_install::backup_of(&file));
    HookStatus {
        harness: target.harness,
        state,
        path: target.path.clone(),
        changed,
        copy: copy.filter(|copy| copy.exists()),
    }
}

fn print_outcome(
    context: &mut Context,
    target: &AgentSettings,
    state: HookState,
    changed: bool,
) -> Result<Code> {
    let status = hook_status(target, state, Some(changed));
    if context.json {
        context.out.json(&status)?;
        return Ok(Code::Ok);
    }
    let word = if changed { "now" } else { "already" };
    let outcome = match state {
        HookState::Not if !changed => "was not installed".to_owned(),
        state => format!("is {word} {}", state.description()),
    };
    context
        .out
        .line(format!("the hook of {} {outcome}", target.harness))?;
    if let Some(copy) = status.copy.filter(|_| changed) {
        note(format!("the previous settings are in {}", copy.display()));
    }
    Ok(Code::Ok)
}

fn status(context: &mut Context, harness: Option<&str>) -> Result<Code> {
    let mut all = Vec::new();
    for name in hook_install::names().filter(|name| harness.is_none_or(|wanted| wanted == *name)) {
        let target = AgentSettings::of(name)?;
        let text = hook_install::read(&target.file()?)?;
        let command = target.command(None)?;
        let state = target.state_of(text.as_deref(), &command)?;
        all.push(hook_status(&target, state, None));
    }
    if context.json {
        context.out.json(&all)?;
        return Ok(Code::Ok);
    }
    for one in all {
        let path = text::visible(&one.path.display().to_string());
        let line = format!("{:<9} {} ({path})", one.harness, one.state.description());
        context.out.line(line)?;
    }
    Ok(Code::Ok)
}
