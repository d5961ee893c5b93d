use crate::context::GlobalOptions;
use crate::output::Output;
use anstream::ColorChoice;
use posthaste_core::text;
use posthaste_store::home::find as home;
use posthaste_store::report::{Code, Report, Result};

/// Accept a project's home that was copied, cloned or unpacked
///
/// ph refuses a .posthaste directory with mail that you did not create on this machine, because its
/// mail would be delivered to your agents. 'ph trust' makes such a home private and gives it this
/// project's id, so that ph uses it from then on. Its manifests, and settings that can run programs,
/// stay ignored. A .posthaste directory with only settings becomes a home.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph trust --home .posthaste")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, said: &GlobalOptions) -> Result<Code> {
    let Some(path) = &said.home else {
        return Err(Report::usage("cannot trust a home: --home is missing")
            .hint("run 'ph trust --home PATH'"));
    };
    if std::env::var_os("PH_AGENT").is_some_and(|agent| !agent.is_empty()) {
        return Err(
            Report::refused("agents cannot run 'ph trust' (PH_AGENT is set)")
                .hint("run 'ph trust --home PATH' in a terminal of your own"),
        );
    }
    let home = home::trust(path)?;
    let mut out = Output::new(ColorChoice::Auto);
    if said.json {
        out.json(&serde_json::json!({ "trusted": home.path().to_string_lossy() }))?;
    } else {
        let path = text::visible(&home.path().to_string_lossy());
        out.line(format!("trusted {path}"))?;
    }
    out.flush()?;
    Ok(Code::Ok)
}
