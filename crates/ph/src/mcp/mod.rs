//! `ph mcp`: a server for the Model Context Protocol with the tools of an agent.
//!
//! A tool runs the code of a verb in this process; its replies have the wording of ralph's tools. Owns the
//! tools' names, arguments and replies; only `server.rs` knows the protocol. Never writes anything but the
//! protocol to standard output.

pub(crate) mod config;
mod mail;
mod server;
mod table;
mod tool;
mod wait;
mod work;

use crate::cli::loop_::worklist;
use crate::context::{Context, GlobalOptions};
use crate::output::{Sink, note};
use posthaste_core::{AgentName, text};
use posthaste_store::report::{Code, Report, Result};
use std::io::IsTerminal;
use tool::{Given, Tool};

/// Maximum number of threads: those that run verbs, and two for standard streams that are not pipes.
const MAX_THREADS: usize = 18;

/// Serve the protocol on standard input and output until the input ends or a signal arrives.
pub(crate) fn serve(said: &GlobalOptions) -> Result<Code> {
    let said = GlobalOptions {
        json: true,
        sink: Sink::Memory,
        ..said.clone()
    };
    // Report errors in the home and the settings now, before the first call.
    Context::new(&said)?.me()?;
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
    let ended = runtime.block_on(server::run(said));
    // Threads that still wait for a lock or for input end with the process.
    runtime.shutdown_background();
    ended.map(|()| Code::Ok)
}

/// A tool's reply: blocks of text.
#[derive(Debug)]
struct Reply(Vec<String>);

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self(vec![text])
    }
}

impl From<&str> for Reply {
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
    let mut told = hint.to_owned();
    for (verb, tool) in TOOL_BY_VERB {
        told = told.replace(verb, tool);
    }
    told
}

/// Run a tool on a thread that may block.
fn call(said: &GlobalOptions, tool: Tool, given: &Given) -> Result<Reply> {
    match tool {
        Tool::InboxList => mail::list(said),
        Tool::InboxMarkRead => mail::mark_read(said, given),
        Tool::SendMessage => mail::send(said, given),
        Tool::Reply => mail::reply(said, given),
        Tool::ReadMessage => mail::read(said, given),
        Tool::SearchMessages => mail::search(said, given),
        Tool::ListAgents => mail::agents(said),
        // This lists once; `wait.rs` waits.
        Tool::WaitForMessage => mail::list(said),
        Tool::TaskAdd => work::add_task(said, given),
        Tool::TaskStatus => work::set_status(said, given),
        Tool::TaskList => work::tasks(said),
        Tool::NoteAdd => work::add_note(said, given),
        Tool::NoteList => work::notes(said, given),
        Tool::SessionComplete => work::complete(said),
    }
}

/// Return the calling agent, and refuse another `session_name`. A blank name is an error of a caller
/// that does not know its session.
fn expect_own(said: &GlobalOptions, given: &Given) -> Result<AgentName> {
    let (me, _) = Context::new(said)?.me()?;
    let Some(name) = given.text("session_name") else {
        return Ok(me);
    };
    let name = name.trim();
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
