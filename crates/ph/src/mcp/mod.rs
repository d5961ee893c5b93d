//! `ph mcp`: a server for the Model Context Protocol with the tools of an agent.
//!
//! A tool runs the code of a verb in this process; its replies have the wording of ralph's tools.
//! Owns the tools' names, arguments and replies; only `server.rs` knows the protocol. Never writes
//! anything but the protocol to standard output.

mod argument;
pub(crate) mod config;
mod mail;
mod server;
mod tool;
mod wait;
mod work;

use crate::cli::loop_::worklist;
use crate::context::{Context, GlobalOptions};
use crate::output::{Sink, note};
use posthaste_core::{AgentName, text};
use posthaste_store::report::{Code, Report, Result};
use std::io::IsTerminal;

/// Maximum number of threads: those that run verbs, and two for standard streams that are not
/// pipes.
const MAX_THREADS: usize = 18;

/// Serve the protocol on standard input and output until the input ends or a signal arrives.
pub(crate) fn serve(options: &GlobalOptions) -> Result<Code> {
    let options = GlobalOptions {
        json: true,
        sink: Sink::Memory,
        ..options.clone()
    };
    // Report errors in the home and the settings now, before the first call.
    Context::new(&options)?.me()?;
    worklist::iteration(None)?;
    if std::io::stdin().is_terminal() {
        note(
            "'ph mcp' speaks MCP on its standard streams; 'ph mcp config HARNESS' prints an agent's settings for it",
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_THREADS)
        .build()
        .map_err(|error| Report::storage(format!("cannot start the MCP server: {error}")))?;
    let ended = runtime.block_on(server::run(options));
    // Threads that still wait for a lock or for input end with the process.
    runtime.shutdown_background();
    ended.map(|()| Code::Ok)
}

/// A tool's reply: blocks of text.
#[derive(Debug)]
struct ToolReply(Vec<String>);

impl From<String> for ToolReply {
    fn from(text: String) -> Self {
        Self(vec![text])
    }
}

impl From<&str> for ToolReply {
    fn from(text: &str) -> Self {
        Self(vec![text.to_owned()])
    }
}

/// Return the text of an error for an agent.
fn error_text(report: &Report) -> String {
    let message = text::visible(report.message());
    match report.advice().map(by_tools).as_deref().map(text::visible) {
        Some(hint) => format!("ERROR: {message}\nhint: {hint}"),
        None => format!("ERROR: {message}"),
    }
}

/// Replace the verbs in a hint by the tools that do the same.
fn by_tools(hint: &str) -> String {
    const TOOL_BY_VERB: [(&str, &str); 7] = [
        ("'ph inbox --all'", "inbox_list"),
        ("'ph search'", "search_messages"),
        ("'ph task ls'", "task_list"),
        ("'ph task status'", "task_status"),
        ("with 'ph send'", "with send_message"),
        ("'ph ls'", "list_agents"),
        ("'ph inbox'", "inbox_list"),
    ];
    let replace = |hint: String, (verb, tool): (&str, &str)| hint.replace(verb, tool);
    TOOL_BY_VERB.into_iter().fold(hint.to_owned(), replace)
}

/// Return the calling agent, and refuse another `session_name`. A blank name is an error of a
/// caller that does not know its session.
fn expect_own(options: &GlobalOptions, session_name: Option<&str>) -> Result<AgentName> {
    let (me, _) = Context::new(options)?.me()?;
    let Some(name) = session_name.map(str::trim) else {
        return Ok(me);
    };
    if name.is_empty() {
        // This text is the same as in ralph.
        return Err(Report::usage("session_name required"));
    }
    if name == me.as_str() {
        return Ok(me);
    }
    let shown = text::one_line(name, 80);
    Err(Report::refused(format!(
        "this is the session of {me}; it cannot act for {shown}"
    ))
    .hint(format!(
        "omit session_name, or use {me}; send_message writes to other agents"
    )))
}
