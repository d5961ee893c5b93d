//! The clock and the time zone of this machine.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::Path;
use std::sync::LazyLock;

/// Return the current time in microseconds. Clocks are not more precise than that.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// Return the machine's time zone, which is read once for each process.
pub fn zone() -> &'static TimeZone {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(|| match std::env::var_os("TZ") {
        Some(_) => TimeZone::system(),
        None => zone_of(Path::new("/etc/localtime")).unwrap_or_else(TimeZone::system),
    });
    &ZONE
}

/// Read a zone from its file. To find it by name, jiff would read the names of all zones first.
fn zone_of(file: &Path) -> Option<TimeZone> {
    let zone = std::fs::read(file).ok()?;
    TimeZone::tzif("local", &zone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return a zone file without history: one hour east of UTC, two in summer.
    fn central_europe() -> Vec<u8> {
        let counts = [0_u32, 0, 0, 0, 1, 4].map(u32::to_be_bytes).concat();
        let kind = [&3_600_i32.to_be_bytes()[..], &[0, 0], b"CET\0"].concat();
        let part = [&b"TZif2"[..], &[0; 15], &counts, &kind].concat();
        [&part[..], &part, b"\nCET-1CEST,M3.5.0,M10.5.0/3\n"].concat()
    }

    #[test]
    fn a_zone_is_read_from_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("localtime");
        assert!(zone_of(&file).is_none());
        for rubbish in [&b""[..], b"TZif", &[0xff; 100]] {
            std::fs::write(&file, rubbish).unwrap();
            assert!(zone_of(&file).is_none(), "{rubbish:?}");
        }
        assert!(zone_of(dir.path()).is_none());
        std::fs::write(&file, central_europe()).unwrap();
        let zone = zone_of(&file).unwrap();
        let check = |time: &str, want: &str| {
            let time: Timestamp = time.parse().unwrap();
            assert_eq!(zone.to_datetime(time).to_string(), want);
        };
        check("2026-01-15T12:00:00Z", "2026-01-15T13:00:00");
        check("2026-07-15T12:00:00Z", "2026-07-15T14:00:00");
    }
}
