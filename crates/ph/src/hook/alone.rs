//! A hook of an agent that no session runs, because a person started it: new mail at its prompts,
//! once each, as `ph check --inject` shows it. Nothing is claimed of its terminal.

use super::Call;
use crate::cli::{self, Caller};
use crate::context::{Context, Said};
use crate::output;
use posthaste_core::AgentName;
use posthaste_session::harness::Catalogue;
use posthaste_store::report::Report;

pub(super) fn inject(call: &Call, event: &str, payload: &str) -> Result<(), String> {
    let Some(agent) = whose(call)? else {
        return Err("there is no session, and neither PH_AGENT nor --agent names one".to_owned());
    };
    try_inject(call, &agent, event, payload).map_err(|report| report.message().to_owned())
}

/// What was said when it was installed, unless the environment says otherwise.
fn whose(call: &Call) -> Result<Option<AgentName>, String> {
    let env = std::env::var("PH_AGENT")
        .ok()
        .filter(|name| !name.is_empty());
    let said = env.or_else(|| call.agent.clone());
    let name = said.map(|name| AgentName::parse(&name)).transpose();
    name.map_err(|error| error.to_string())
}

fn try_inject(call: &Call, agent: &AgentName, event: &str, payload: &str) -> Result<(), Report> {
    let mut context = Context::new(&Said::default())?;
    let manifest = Catalogue::of(&context.home, &context.config.harnesses.status_rows())?
        .take(&call.harness)?;
    let hooks = &manifest.hook;
    if !hooks.read(event, payload).is_prompt_that_takes() {
        return Ok(());
    }
    // Who set it up has said whose it is.
    let complain = |why: String| super::tell(&why);
    let Some(reminder) = cli::reminder(&mut context, agent, Caller::Hook, complain)? else {
        return Ok(());
    };
    let printed = output::all_to_stdout(hooks.format.print(event, &reminder.text).as_bytes());
    let printed = printed.map_err(|error| error.to_string());
    reminder.settle(&context, printed.as_ref().map_err(String::as_str))?;
    printed.map_err(|error| Report::storage(format!("nobody reads what it is given: {error}")))
}
