//! A point in time on two clocks.

use jiff::Timestamp;
use std::time::Duration;

/// Waits are measured on `mono`, which clock steps do not disturb. Times in messages (not before,
/// expires) and times for people are `wall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub wall: Timestamp,
    /// Time since an origin that all compared moments share.
    pub mono: Duration,
}
