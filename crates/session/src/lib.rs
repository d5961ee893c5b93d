//! A session: one run of an agent in a terminal that outlives the window.
//!
//! [`host::start`] is the side of whoever asks for one; the rest is the session's own process.
//! There, one thread runs a handful of tasks, each the one owner of its piece: `pty::terminal` of
//! the screen and its viewers, `pty::keyboard` of the way into the program, `state` of the state
//! and the mail. The journal's connection has a thread of its own, because a disk may be slow.

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
use socket::lines::Room;
use state::{LoopView, StateRequest};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

/// What every connection needs to reach the rest of its session.
#[derive(Debug)]
struct Shared {
    agent: AgentName,
    run: Uuid,
    /// Whether its program is the runner of a loop.
    is_loop: bool,
    home: Home,
    /// What is too much mail between agents.
    limits: Limits,
    /// The program's pid, and when the kernel started it.
    child: (u32, u64),
    books: Books,
    /// The program's own door, where it has one.
    door: Option<routes::door::Key>,
    terminal: Terminal,
    keyboard: Keyboard,
    hub: Rc<Hub>,
    requests: mpsc::Sender<StateRequest>,
    /// Rings when there may be new mail.
    mail: Rc<Notify>,
    /// The same, rung from other processes.
    ring: Arc<Notify>,
    /// Rings when the script that keeps the mail is to be asked now.
    round: Rc<Notify>,
    room: Room,
    viewers: Cell<u64>,
    /// How many connections have not sent their first line.
    silent_connections: Cell<usize>,
    /// Which viewer has the keyboard to itself.
    taken: watch::Receiver<Option<ViewerId>>,
    interactive: watch::Receiver<bool>,
    /// What is wrong with the script that keeps the mail, where something is.
    mail_trouble: watch::Receiver<Option<posthaste_wire::MailTrouble>>,
    /// What viewers are told on the way; the latest replaces what was before.
    notice: watch::Receiver<String>,
    /// How it ended, once it has.
    ended: watch::Receiver<Option<String>>,
}

impl Shared {
    /// Hands something to the owner of the session's state. Where it has ended, whoever waits
    /// for an answer is told by what the request carries.
    async fn request(&self, request: StateRequest) {
        let _ = self.requests.send(request).await;
    }

    /// The same for what asks how the session stands: a loop is looked at first, so that whoever
    /// was told that his order is recorded finds it.
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
