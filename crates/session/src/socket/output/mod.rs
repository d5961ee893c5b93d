//! Output of connections: responses and events, from the queue of each connection to its socket.

pub(crate) mod hub;
pub(crate) mod outbox;
mod write_queue;
