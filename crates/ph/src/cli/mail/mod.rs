//! The verbs of mail. All of them read and change it through [`mailbox`].

pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod compose;
pub(crate) mod count;
pub(crate) mod inbox;
pub(crate) mod mailbox;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod thread;
pub(crate) mod why;
