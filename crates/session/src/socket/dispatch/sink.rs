//! The answer to a request: sent to the connection, or collected with the other answers of a batch.

use crate::socket::output::outbox::Outbox;
use posthaste_wire::method::{Method, MethodResult};
use posthaste_wire::rpc::{self, Failure, Id};
use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::oneshot;

/// Receives the answer to one request. A sink that is dropped without an answer sends an error.
pub(crate) struct Sink {
    id: Option<Id>,
    to: Target,
    _done: oneshot::Sender<()>,
}

enum Target {
    Outbox(Rc<Outbox>),
    Batch(Rc<Batch>),
    /// Answers are discarded, or the request is already answered.
    None,
}

/// The answers to a batch: one array on one line, queued answer by answer so that the limit of the
/// outbox applies.
pub(super) struct Batch {
    outbox: Rc<Outbox>,
    has_answers: Cell<bool>,
}

impl Batch {
    /// Begin a batch. Events are held back until it ends.
    pub(super) fn begin(outbox: Rc<Outbox>) -> Rc<Self> {
        outbox.hold_events();
        Rc::new(Self {
            outbox,
            has_answers: Cell::new(false),
        })
    }

    fn push(&self, reply: &[u8]) {
        let is_first = !self.has_answers.replace(true);
        self.outbox.push(if is_first { b"[" } else { b"," });
        self.outbox.push(reply.trim_ascii_end());
    }

    pub(super) fn end(&self) {
        let end: &[u8] = if self.has_answers.get() { b"]\n" } else { b"" };
        self.outbox.release(end);
    }
}

impl Sink {
    /// Create a sink for the answer to a single request, and a receiver that completes once it is
    /// answered.
    pub(super) fn single(id: Option<Id>, outbox: &Rc<Outbox>) -> (Self, oneshot::Receiver<()>) {
        Self::new(id, Target::Outbox(outbox.clone()))
    }

    /// Create a sink for an answer within a batch, and a receiver that completes once it is
    /// answered.
    pub(super) fn within(id: Option<Id>, batch: &Rc<Batch>) -> (Self, oneshot::Receiver<()>) {
        Self::new(id, Target::Batch(batch.clone()))
    }

    fn new(id: Option<Id>, to: Target) -> (Self, oneshot::Receiver<()>) {
        let (_done, is_done) = oneshot::channel();
        (Self { id, to, _done }, is_done)
    }

    /// Create a sink that discards the answer.
    pub(crate) fn discard() -> Self {
        Self::new(None, Target::None).0
    }

    pub(crate) fn answer<M: Method>(mut self, answer: &M::Reply) {
        self.send(&M::answer(answer));
    }

    pub(crate) fn refuse(mut self, failure: Failure) {
        self.send(&Err(failure));
    }

    pub(super) fn outcome<M: Method>(self, outcome: Result<M::Reply, Failure>) {
        match outcome {
            Ok(answer) => self.answer::<M>(&answer),
            Err(failure) => self.refuse(failure),
        }
    }

    fn send(&mut self, outcome: &MethodResult) {
        let reply = rpc::respond(self.id.as_ref(), outcome);
        match (std::mem::replace(&mut self.to, Target::None), reply) {
            (Target::Outbox(outbox), Some(reply)) => outbox.push(&reply),
            (Target::Batch(batch), Some(reply)) => batch.push(&reply),
            (Target::Outbox(_) | Target::Batch(_), None) | (Target::None, _) => {}
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.send(&Err(Failure::internal("the session is ending")));
    }
}
