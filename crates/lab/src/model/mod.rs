//! Model server for coding agents on loopback: speaks the APIs of Claude Code, Codex, OpenCode and
//! Gemini CLI, follows keywords in the user's text, and logs its requests. Runs no agent and
//! contacts no other host.
//!
//! Keywords count in the user's newest text, and only if tools are offered:
//!
//! - `hang=SECONDS`: wait this long before the reply
//! - `until=FILE`: wait until this file exists
//! - `slow=SECONDS`: send words for this long before the reply
//! - `http=CODE`: reply with an error
//! - `reply=TEXT`, to the end of its line: the reply
//! - `lines=N`: a reply of this many lines
//! - `bash=COMMAND`, to the end of its line: call the agent's shell tool
//! - `ask=COMMAND`, to the end of its line: the same, so that the agent asks its user first
//! - `tool=NAME:{json}`, to the end of its line: call any tool
//! - `Read PATH`, as in a message whose text is in a file: call the tool that reads files

mod anthropic;
mod chat;
mod gemini;
mod log;
mod plan;
mod reply;
mod request;
mod responses;
mod serve;
mod tally;

pub use log::{Log, LogEntry};
pub use request::{Author, Dialect, ModelRequest, Piece};
pub use serve::serve;
pub use tally::Tally;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A server on a thread of this process. Stops when dropped.
#[derive(Debug)]
pub struct Model {
    port: u16,
    log: Log,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Listen on a free port, and log requests to this file.
    pub fn start(log: &Path) -> Self {
        let listener = listen(0).expect("loopback has a free port");
        let port = listener.local_addr().expect("it listens").port();
        let (stop, stopped) = oneshot::channel();
        let path = log.to_owned();
        let thread = std::thread::spawn(move || {
            let stop_signal = async {
                // An error means that the sender is gone, which stops the server, too.
                let _ = stopped.await;
            };
            serve(listener, &path, stop_signal).expect("the server runs");
        });
        Self {
            port,
            log: Log::at(log),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Bind to loopback only.
pub fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}
