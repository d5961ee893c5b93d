use crate::cli::names::{NameParser, complete_agents, complete_harnesses};
use crate::context::Context;
use crate::mcp::config::{Snippet, Surroundings};
use posthaste_core::AgentName;
use posthaste_store::home::find::HomeSource;
use posthaste_store::report::{Code, Result};
use serde_json::json;

/// Serve mail, tasks and notes to an agent over MCP
///
/// Reads and writes the protocol on the standard streams: mail, tasks and notes of the agent whose
/// session it runs in, else of PH_AGENT, else of the person. An agent starts it itself; 'ph mcp
/// config HARNESS' prints what to write into its settings.
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
    /// Print what to merge into the settings of an agent: claude, codex, opencode or gemini
    ///
    /// Nothing is written: what stands in those settings already must stay beside it. A home that is named (--home, PH_HOME) is named there too.
    #[command(after_help = "\
Examples:
  ph mcp config claude
  ph mcp config opencode --agent coder-1")]
    Config(ConfigArgs),
}

#[derive(Debug, clap::Args)]
struct ConfigArgs {
    /// The kind of agent
    #[arg(value_name = "HARNESS", add = complete_harnesses())]
    harness: String,
    /// Whose tools, where it is not run by 'ph run' [default: who the session says]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    agent: Option<AgentName>,
}

impl Args {
    /// Whether it is to serve.
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
            "merge this into {}, beside what stands there; '>' would overwrite that",
            snippet.file
        ));
    }
    Ok(Code::Ok)
}
