//! A model server for coding agents, on loopback: it speaks what Claude Code, Codex, OpenCode and
//! Gemini CLI speak, does what the user's words say, and notes what it was sent. It knows no
//! agent's program and reaches nothing outside.
//!
//! Keywords, in the user's newest words and only where tools are on offer:
//!
//! - `hang=SECONDS`: nothing at all for so long, then the answer
//! - `until=FILE`: nothing at all until this file is there
//! - `slow=SECONDS`: words for so long, then the answer
//! - `http=CODE`: an error instead of an answer
//! - `reply=TEXT`, to the end of its line: the answer
//! - `lines=N`: an answer of so many lines
//! - `bash=COMMAND`, to the end of its line: a call of the agent's own shell tool
//! - `ask=COMMAND`, to the end of its line: the same, so that the agent asks its user first
//! - `tool=NAME:{json}`, to the end of its line: a call of any tool
//! - `Read PATH`, as a message says whose text is in a file: a call of whatever reads files

mod answer;
mod anthropic;
mod asked;
mod chat;
mod gemini;
mod log;
mod plan;
mod responses;
mod serve;
mod tally;

pub use asked::{Asked, Dialect, Piece, Voice};
pub use log::{Log, Record};
pub use serve::serve;
pub use tally::Tally;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A server in this process, on a thread of its own. It is gone when this is.
#[derive(Debug)]
pub struct Model {
    port: u16,
    log: Log,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Listens on a free port, and notes in this file what it is asked.
    pub fn start(log: &Path) -> Self {
        let listener = listen(0).expect("loopback has a free port");
        let port = listener.local_addr().expect("it listens").port();
        let (stop, stopped) = oneshot::channel();
        let path = log.to_owned();
        let thread = std::thread::spawn(move || {
            let told = async {
                // An error is the sender's end, which means the same.
                let _ = stopped.await;
            };
            serve(listener, &path, told).expect("the server runs");
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

/// On loopback, and nowhere else.
pub fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}
