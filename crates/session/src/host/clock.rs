//! The session's wall clock, for times that are shown or sent. Durations are measured by a
//! monotonic clock, because the wall clock may step.

use jiff::civil::DateTime;
use posthaste_core::Timestamp;
use posthaste_wire::method::GOOD_FOR;
use std::time::Duration;

pub(crate) use posthaste_core::driver::TOO_LATE;

pub(crate) fn local(time: Timestamp) -> DateTime {
    posthaste_store::times::zone().to_datetime(time)
}

/// Return the current time in the format of [`local_text`].
pub(crate) fn local_now() -> String {
    local_text(posthaste_store::times::now())
}

/// Format a time as the socket's events do: local time without a zone, to the microsecond.
pub(crate) fn local_text(time: Timestamp) -> String {
    local(time).strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

/// Whether a request of this time has expired, so that its sender has given up.
pub(crate) fn has_expired(asked_at: Option<Timestamp>) -> bool {
    let age = |at| Duration::try_from(posthaste_store::times::now().duration_since(at));
    // If the clock was set back, the time lies in the future: the age is unknown.
    asked_at.is_some_and(|at| age(at).is_ok_and(|age| age > GOOD_FOR))
}
