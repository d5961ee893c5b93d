//! A session: one run of an agent in a terminal that outlives the window.
//!
//! [`host::start`] starts a session from another process; the rest runs in the session's own
//! process. One thread runs a few tasks, each of which owns a part: `pty::terminal` the screen and
//! its viewers, `pty::keyboard` the program's input, `state` the session state and the delivery of
//! mail. The journal has a thread of its own, because a disk may be slow.

pub mod harness;
pub mod host;
pub mod loop_;
pub mod pty;
pub mod routes;
pub mod socket;
mod state;

use host::books::Books;
use posthaste_core::{AgentName, Limits};
use posthaste_store::Home;
use pty::keyboard::Keyboard;
use pty::terminal::Terminal;
use pty::viewer::ViewerId;
use socket::hub::Hub;
use socket::lines::BufferedBytes;
use state::{LoopView, StateRequest};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

/// Handles to all parts of a session.
#[derive(Debug)]
struct Shared {
    agent: AgentName,
    run: Uuid,
    /// Whether the program is the runner of a loop.
    is_loop: bool,
    home: Home,
    /// Limits for mail between agents.
    limits: Limits,
    /// The program's pid, and when the kernel started it.
    child: (u32, u64),
    books: Books,
    /// Key for the program's own HTTP API, if it has one.
    door: Option<routes::door::Key>,
    terminal: Terminal,
    keyboard: Keyboard,
    hub: Rc<Hub>,
    requests: mpsc::Sender<StateRequest>,
    /// Notified when this process may have stored mail.
    mail_changed: Rc<Notify>,
    /// Notified when another process may have stored mail.
    bell: Arc<Notify>,
    /// Notified when a mail script must be asked for mail now.
    script_check: Rc<Notify>,
    buffered_bytes: BufferedBytes,
    /// The number of viewers so far.
    viewers: Cell<u64>,
    /// The number of connections that have not sent their first line.
    silent_connections: Cell<usize>,
    /// The viewer that has taken the keyboard.
    keyboard_owner: watch::Receiver<Option<ViewerId>>,
    interactive: watch::Receiver<bool>,
    /// The current error of the mail script.
    mail_trouble: watch::Receiver<Option<posthaste_wire::MailTrouble>>,
    /// The latest notice for viewers.
    notice: watch::Receiver<String>,
    /// How the session ended, once it has.
    ended: watch::Receiver<Option<String>>,
}

impl Shared {
    /// Send a request to the owner of the session state. If the session has ended, the request is
    /// dropped, and so is its reply channel.
    async fn request(&self, request: StateRequest) {
        let _ = self.requests.send(request).await;
    }

    /// Like [`Self::request`], but send the current state of a loop first: a client that was told
    /// that its request is recorded must see its effect.
    async fn request_current(&self, request: StateRequest) {
        if self.is_loop
            && let Some(view) = LoopView::now(self).await
        {
            self.request(StateRequest::Loop(view)).await;
        }
        self.request(request).await;
    }

    fn next_viewer(&self) -> ViewerId {
        let id = self.viewers.get();
        self.viewers.set(id + 1);
        ViewerId(id)
    }
}
