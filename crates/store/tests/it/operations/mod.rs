//! Operations: their results, and the look-ups after them.

mod delivery;
mod loops;
mod posting;
mod work;
