//! A point in time on two clocks, read together at the edge.

use jiff::Timestamp;
use std::time::Duration;

/// Waits are measured on `mono`, which no step of the clock disturbs; what is written in a message
/// (not before, expires) or shown to a person is `wall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub wall: Timestamp,
    /// Since some fixed beginning, the same for all moments that are compared.
    pub mono: Duration,
}
