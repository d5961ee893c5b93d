//! The program on its terminal: what it writes and who sees it, what is typed and by whom.

pub mod child;
pub(crate) mod draft;
pub(crate) mod keyboard;
pub(crate) mod program;
pub(crate) mod pulse;
pub(crate) mod reading;
pub(crate) mod sight;
pub(crate) mod terminal;
pub(crate) mod viewer;
