//! `ph trust`: accepts a project's home, for persons only.

use crate::cli::prelude::*;
use crate::output::Output;
use anstream::ColorChoice;
use posthaste_store::Home;
use posthaste_store::home::find as home;
use posthaste_store::live::process;
use posthaste_store::live::{self, Launch, SessionDir, process_notes};
use std::path::Path;

/// Accept a project's home that was copied, cloned or unpacked
///
/// ph refuses a .posthaste directory with mail that you did not create on this machine, because its
/// mail would be delivered to your agents. 'ph trust' makes such a home private and gives it this
/// project's id, so that ph uses it from then on. Its manifests, and settings that can run
/// programs, stay ignored. A .posthaste directory with only settings becomes a home.
///
/// The sessions that are recorded in the home are accepted too: 'ph restart NAME' runs the command
/// of NAME with its variables, in its directory. 'ph trust' prints these commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph trust --home .posthaste")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, options: &GlobalOptions) -> Result<Code> {
    let Some(path) = &options.home else {
        return Err(Report::usage("cannot trust a home: --home is missing")
            .hint("run 'ph trust --home PATH'"));
    };
    if let Some(evidence) = agent_evidence(path) {
        return Err(
            Report::refused(format!("agents cannot run 'ph trust' ({evidence})"))
                .hint("run 'ph trust --home PATH' in a terminal of your own"),
        );
    }
    let home = home::trust(path)?;
    let launches = recorded_launches(&home);
    let mut out = Output::new(ColorChoice::Auto);
    if options.json {
        let commands = launches.iter().map(|launch| {
            serde_json::json!({
                "name": launch.name,
                "command": launch.command,
                "env": launch.env,
                "cwd": launch.cwd.to_string_lossy(),
            })
        });
        out.json(&serde_json::json!({
            "trusted": home.path().to_string_lossy(),
            "commands": commands.collect::<Vec<_>>(),
        }))?;
    } else {
        let path = text::visible(&home.path().to_string_lossy());
        out.line(format!("trusted {path}"))?;
        if !launches.is_empty() {
            out.line("'ph restart NAME' now runs these commands, which are recorded there:")?;
        }
        for launch in &launches {
            out.line(format!("  {}: {}", launch.name, shown_command(launch)))?;
        }
    }
    out.flush()?;
    Ok(Code::Ok)
}

/// Return why the caller is taken for an agent, if it is. Besides the variable, this looks at the
/// processes above: an agent can unset the variable for `ph`, but not for the programs that started
/// it.
fn agent_evidence(path: &Path) -> Option<String> {
    if std::env::var_os("PH_AGENT").is_some_and(|agent| !agent.is_empty()) {
        return Some("PH_AGENT is set".to_owned());
    }
    let homes = [home::find(None).map(|found| found.home), home::open(path)];
    let mut homes = homes.into_iter().flatten();
    if let Some(agent) = homes.find_map(|home| process_notes::agent_here(&home)) {
        return Some(format!("this runs in the session of {agent}"));
    }
    process::inherited_variable("PH_AGENT")
        .map(|agent| format!("this runs below {}", text::one_line(&agent, 80)))
}

/// Return what `ph restart` would run.
fn recorded_launches(home: &Home) -> Vec<Launch> {
    let names = live::agents(home).into_iter();
    let records = names.filter_map(|name| SessionDir::of(home, &name).record());
    records.map(|record| record.launch).collect()
}

fn shown_command(launch: &Launch) -> String {
    let variables = launch
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let words = variables.chain(launch.command.iter().cloned());
    let line = words.collect::<Vec<_>>().join(" ");
    let line = text::one_line(&line, usize::MAX);
    format!(
        "{line}  (in {})",
        text::one_line(&launch.cwd.to_string_lossy(), 200)
    )
}
