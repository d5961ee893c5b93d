//! `ph mcp`: the server's arguments, and the settings with which an agent starts it.

use crate::cli::prelude::*;
use crate::mcp::config::{Snippet, Surroundings};
use posthaste_store::home::find::HomeSource;
use serde_json::json;

/// Serve mail, tasks and notes to an agent over MCP
///
/// Speaks MCP on standard input and output. Serves the agent in whose session it runs, else
/// PH_AGENT, else the person. An agent starts this server itself; 'ph mcp config HARNESS' prints
/// the settings for that.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  ph mcp config claude
  ph mcp config codex --agent coder-1
  ph mcp"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<McpVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum McpVerb {
    /// Print the settings to merge into those of an agent: claude, codex, opencode or gemini
    ///
    /// Writes no file: merge the output into the existing settings. If --home or PH_HOME names a
    /// home, the settings name it too.
    #[command(after_help = "\
Examples:
  ph mcp config claude
  ph mcp config opencode --agent coder-1")]
    Config(ConfigArgs),
}

#[derive(Debug, clap::Args)]
struct ConfigArgs {
    /// Harness
    #[arg(value_name = "HARNESS", add = complete_harnesses())]
    harness: String,
    /// Agent to serve outside of 'ph run' [default: the session's agent]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
}

impl Args {
    /// Return whether the arguments start the server.
    pub(crate) fn is_server(&self) -> bool {
        self.verb.is_none()
    }
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let Some(McpVerb::Config(args)) = args.verb else {
        return Ok(Code::Ok);
    };
    let named = match context.home_source {
        HomeSource::Flag | HomeSource::Env => Some(context.home.path()),
        HomeSource::Project | HomeSource::Default => None,
    };
    let surroundings = Surroundings {
        program: "ph",
        home: named,
        agent: args.agent.as_ref(),
    };
    let snippet = Snippet::of(&args.harness, &surroundings)?;
    if context.json {
        context.out.json(&json!({
            "harness": args.harness,
            "file": snippet.file,
            "format": snippet.format,
            "snippet": snippet.text,
        }))?;
    } else {
        context.out.bytes(snippet.text.as_bytes())?;
        context.out.flush()?;
        crate::output::note(format!(
            "merge this into {}; '>' would overwrite the settings there",
            snippet.file
        ));
    }
    Ok(Code::Ok)
}
