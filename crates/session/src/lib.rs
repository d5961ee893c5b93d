//! A session: one run of an agent in a terminal that outlives the window.
//!
//! [`host::start`] runs in the process that starts a session; everything else runs in the session's
//! own process. Its one thread runs a few tasks, and each task owns one part: `pty::terminal` owns
//! the screen and its viewers, `pty::keyboard` owns the input of the program, and `state` owns the
//! session's state and decides about mail. The journal's connection has its own thread, because a
//! disk may be slow.

pub mod harness;
pub mod host;
pub mod loop_;
pub mod poll;
pub mod pty;
pub mod routes;
pub mod socket;
mod state;

use host::journal_handle::JournalHandle;
use posthaste_core::{AgentName, Limits};
use posthaste_store::Home;
use pty::keyboard::Keyboard;
use pty::terminal::Terminal;
use pty::viewer::ViewerId;
use routes::http::HttpApi;
use socket::lines::BufferedBytes;
use socket::output::hub::Hub;
use state::{LoopView, StateRequest};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

/// Handles and facts of a session that its tasks and connections share.
#[derive(Debug)]
struct Shared {
    agent: AgentName,
    run: Uuid,
    /// Whether the program is the runner of a loop.
    is_loop: bool,
    home: Home,
    /// Limits of mail between agents.
    limits: Limits,
    /// The program's pid, and its start time in the kernel.
    child: (u32, u64),
    journal: JournalHandle,
    /// The program's HTTP API, if the session has given it one.
    http: Option<HttpApi>,
    terminal: Terminal,
    keyboard: Keyboard,
    hub: Rc<Hub>,
    requests: mpsc::Sender<StateRequest>,
    wakeups: Wakeups,
    connections: ConnectionCounts,
    watches: Watches,
}

/// Notifications that wake tasks of the session.
#[derive(Debug, Default)]
struct Wakeups {
    /// This process has committed a message.
    mail: Rc<Notify>,
    /// The journal's bell has rung: a process has committed something.
    bell: Arc<Notify>,
    /// The journal was read after a change.
    read: Rc<Notify>,
    /// The script that keeps the mail is to be called now.
    script_check: Rc<Notify>,
}

/// Counts that limit connections.
#[derive(Debug, Default)]
struct ConnectionCounts {
    buffered_bytes: BufferedBytes,
    /// Number of viewers that have attached so far.
    viewers: Cell<u64>,
    /// Number of connections that have not sent their first line.
    silent: Cell<usize>,
    /// Closes the connection that has been silent for longest.
    shed: Notify,
}

/// Values of the session's state that connections watch.
#[derive(Debug)]
struct Watches {
    /// The viewer that has taken the keyboard.
    keyboard_owner: watch::Receiver<Option<ViewerId>>,
    interactive: watch::Receiver<bool>,
    /// Current failure of the script that keeps the mail.
    mail_trouble: watch::Receiver<Option<posthaste_wire::MailTrouble>>,
    /// Notice for viewers. A new notice replaces the previous one.
    notice: watch::Receiver<String>,
    /// How the session has ended; `None` while it runs.
    ended: watch::Receiver<Option<String>>,
}

impl Shared {
    /// Send a request to the owner of the session's state. A request that is dropped because the
    /// session has ended answers its sender when it is dropped.
    async fn request(&self, request: StateRequest) {
        let _ = self.requests.send(request).await;
    }

    /// Send a request whose answer depends on the loop's state. In a loop, the state is read first,
    /// so that the answer includes every order that was confirmed before.
    async fn request_with_loop(&self, request: StateRequest) {
        if self.is_loop
            && let Some(view) = LoopView::read(self).await
        {
            self.request(StateRequest::Loop(view)).await;
        }
        self.request(request).await;
    }

    fn next_viewer(&self) -> ViewerId {
        let id = self.connections.viewers.get();
        self.connections.viewers.set(id + 1);
        ViewerId(id)
    }
}
