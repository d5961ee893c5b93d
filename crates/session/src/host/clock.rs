//! The session's clocks. The wall may step; silences and waits are measured by one that does not.

use jiff::civil::DateTime;
use posthaste_core::Timestamp;
use posthaste_wire::method::GOOD_FOR;
use std::time::Duration;

pub(crate) use posthaste_core::driver::TOO_LATE;

pub(crate) fn local(time: Timestamp) -> DateTime {
    posthaste_store::times::zone().to_datetime(time)
}

/// Local time as the socket's events have it: without a zone, to the microsecond.
pub(crate) fn local_now() -> String {
    local_text(posthaste_store::times::now())
}

pub(crate) fn local_text(time: Timestamp) -> String {
    local(time).strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

/// Whether whoever asked at this time has given up by now.
pub(crate) fn is_too_late(asked_at: Option<Timestamp>) -> bool {
    let age = |at| Duration::try_from(posthaste_store::times::now().duration_since(at));
    // From a time to come only where the clock was set back: then nobody knows.
    asked_at.is_some_and(|at| age(at).is_ok_and(|age| age > GOOD_FOR))
}
