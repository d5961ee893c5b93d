//! Hooks of an agent without a session: print new mail at its prompts, each message once, like
//! `ph check --inject`. Records nothing about the agent's terminal.

use crate::cli::admin::hook::Args;
use crate::cli::{self, Caller};
use crate::context::{Context, GlobalOptions};
use posthaste_core::AgentName;
use posthaste_store::report::Report;

pub(super) fn inject(call: &Args, event: &str, payload: &str) -> Result<(), String> {
    let Some(agent) = agent_name(call)? else {
        return Err(
            "there is no session, and neither PH_AGENT nor --agent names an agent".to_owned(),
        );
    };
    try_inject(call, &agent, event, payload).map_err(|report| report.message().to_owned())
}

/// Return PH_AGENT, else the agent for which the hook was installed.
fn agent_name(call: &Args) -> Result<Option<AgentName>, String> {
    let env = std::env::var("PH_AGENT")
        .ok()
        .filter(|name| !name.is_empty());
    let name = env.or_else(|| call.agent.clone());
    let name = name.map(|name| AgentName::parse(&name)).transpose();
    name.map_err(|error| error.to_string())
}

fn try_inject(call: &Args, agent: &AgentName, event: &str, payload: &str) -> Result<(), Report> {
    let mut context = Context::new(&GlobalOptions::default())?;
    let manifest = context.catalogue()?.take(&call.harness)?;
    let hooks = &manifest.hook;
    if !hooks.read(event, payload).is_prompt_that_takes() {
        return Ok(());
    }
    // The person who installed the hook named the agent.
    let complain = |why: String| super::note_if_logging(&why);
    let Some(reminder) = cli::reminder(&mut context, agent, Caller::Hook, complain)? else {
        return Ok(());
    };
    let text = hooks.format.print(event, &reminder.text);
    reminder.print(&context, &text)
}
