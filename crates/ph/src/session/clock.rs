//! The session's clocks. The wall may step; silences and waits are measured by one that does not.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use posthaste_core::Timestamp;
use std::sync::LazyLock;

/// Read once: a session does not move between zones.
static ZONE: LazyLock<TimeZone> = LazyLock::new(TimeZone::system);

pub(crate) fn zone() -> &'static TimeZone {
    &ZONE
}

pub(crate) fn local(time: Timestamp) -> DateTime {
    ZONE.to_datetime(time)
}

/// Local time as the socket's events have it: without a zone, to the microsecond.
pub(crate) fn local_now() -> String {
    local_text(crate::times::now())
}

pub(crate) fn local_text(time: Timestamp) -> String {
    local(time).strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}
