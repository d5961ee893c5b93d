use crate::context::Said;
use crate::home;
use crate::output::Output;
use crate::report::{Code, Report, Result};
use anstream::ColorChoice;
use posthaste_core::text;

/// Accept a project's home that was copied, cloned or unpacked
///
/// A .posthaste directory that ph has not made itself is not used: its mail would be typed to your
/// agents. This command accepts it, makes it private and records its path. Its harnesses, and settings
/// that could run a program, stay ignored. It also makes a home of a .posthaste that has only settings.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph trust --home .posthaste")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, said: &Said) -> Result<Code> {
    let Some(path) = &said.home else {
        return Err(Report::usage("no home is named").hint("ph trust --home PATH"));
    };
    if std::env::var_os("PH_AGENT").is_some_and(|agent| !agent.is_empty()) {
        return Err(
            Report::refused("an agent cannot decide which home to trust")
                .hint("run it in a terminal of your own"),
        );
    }
    let home = home::trust(path)?;
    let mut out = Output::new(ColorChoice::Auto);
    if said.json {
        out.json(&serde_json::json!({ "trusted": home.path() }))?;
    } else {
        let path = text::visible(&home.path().to_string_lossy());
        out.line(format!("trusted {path}"))?;
    }
    out.flush()?;
    Ok(Code::Ok)
}
