//! `ph mcp`: the tools of an agent, for any program that speaks the Model Context Protocol.
//!
//! A tool is a verb by another name: it goes the way that the command line goes, in this process,
//! and answers in the words of the loop that the tools come from. Owns the tools' names, arguments
//! and replies; the protocol itself is known to `server.rs` alone. Nothing but the protocol is
//! ever written to standard output.

pub(crate) mod config;
mod mail;
mod server;
mod table;
mod tool;
mod wait;
mod work;

use crate::cli::loop_::worklist;
use crate::context::{Context, Said};
use crate::output::{Sink, note};
use posthaste_core::{AgentName, text};
use posthaste_store::report::{Code, Report, Result};
use std::io::IsTerminal;
use tool::{Given, Tool};

/// The threads on which verbs run, and two for standard streams that are no pipes.
const THREADS: usize = 18;

/// Serves the protocol on the standard streams until they end, or a signal comes.
pub(crate) fn serve(said: &Said) -> Result<Code> {
    let said = Said {
        json: true,
        sink: Sink::Memory,
        ..said.clone()
    };
    // What is wrong with the surroundings is better known now than at the first call.
    Context::new(&said)?.me()?;
    worklist::iteration(None)?;
    if std::io::stdin().is_terminal() {
        note(
            "this speaks MCP on its standard streams; 'ph mcp config HARNESS' says how an agent is told of it",
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .build()
        .map_err(|error| Report::storage(format!("cannot start: {error}")))?;
    let ended = runtime.block_on(server::run(said));
    // Whatever still waits for a lock, or for a line that will not come, ends with the process.
    runtime.shutdown_background();
    ended.map(|()| Code::Ok)
}

/// What a tool answers: blocks of text.
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

/// An error in the words of the tools.
fn told(report: &Report) -> String {
    let message = text::visible(report.message());
    match report.advice().map(by_tools).as_deref().map(text::visible) {
        Some(hint) => format!("ERROR: {message}\nhint: {hint}"),
        None => format!("ERROR: {message}"),
    }
}

/// A hint whose verbs are the tools that do the same, where there are such.
fn by_tools(hint: &str) -> String {
    const SAME: [(&str, &str); 7] = [
        ("'ph inbox --all'", "inbox_list"),
        ("'ph search'", "search_messages"),
        ("'ph task ls'", "task_list"),
        ("'ph task status'", "task_status"),
        ("with 'ph send'", "with send_message"),
        ("'ph ls'", "list_agents"),
        ("'ph inbox'", "inbox_list"),
    ];
    let mut told = hint.to_owned();
    for (verb, tool) in SAME {
        told = told.replace(verb, tool);
    }
    told
}

/// Carries a tool out, on a thread that may wait for the disk.
fn call(said: &Said, tool: Tool, given: &Given) -> Result<Reply> {
    match tool {
        Tool::InboxList => mail::list(said),
        Tool::InboxMarkRead => mail::mark_read(said, given),
        Tool::SendMessage => mail::send(said, given),
        Tool::Reply => mail::reply(said, given),
        Tool::ReadMessage => mail::read(said, given),
        Tool::SearchMessages => mail::search(said, given),
        Tool::ListAgents => mail::agents(said),
        // One look; the waiting is done by `wait.rs`.
        Tool::WaitForMessage => mail::list(said),
        Tool::TaskAdd => work::add_task(said, given),
        Tool::TaskStatus => work::set_status(said, given),
        Tool::TaskList => work::tasks(said),
        Tool::NoteAdd => work::add_note(said, given),
        Tool::NoteList => work::notes(said, given),
        Tool::SessionComplete => work::complete(said),
    }
}

/// Refuses a session that is not the caller's own. None said is one's own; a blank one is the
/// mistake of a caller that does not know its session.
fn expect_own(said: &Said, given: &Given) -> Result<AgentName> {
    let (me, _) = Context::new(said)?.me()?;
    let Some(name) = given.text("session_name") else {
        return Ok(me);
    };
    let name = name.trim();
    if name.is_empty() {
        // To the letter what the tools have always said.
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
        "leave session_name out, or say {me}; send_message writes to others"
    )))
}
