//! Times in the formats of each dialect. The time zone is an argument.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Local time in the JSON-RPC dialect, without zone and always with six digits:
/// `2026-01-23T10:30:00.000000`.
pub fn stamp(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at)
        .strftime("%Y-%m-%dT%H:%M:%S%.6f")
        .to_string()
}

/// Local time in the plain dialect: `2026-01-23 10:30:00`.
pub fn plain(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at)
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// Duration in whole units of the largest one that fits: `3s`, `4m`, `2h`, `1d`.
pub fn length(length: SignedDuration) -> String {
    let seconds = length.as_secs().max(0);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400.. => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::offset;

    #[test]
    fn times_are_local_and_of_one_length() {
        let zone = TimeZone::fixed(offset(2));
        let check = |at: &str, iso: &str, plainly: &str| {
            let at = at.parse().unwrap();
            assert_eq!(stamp(at, &zone), iso);
            assert_eq!(plain(at, &zone), plainly);
        };
        check(
            "2026-01-23T08:30:00Z",
            "2026-01-23T10:30:00.000000",
            "2026-01-23 10:30:00",
        );
        check(
            "2026-01-23T22:30:01.123456789Z",
            "2026-01-24T00:30:01.123456",
            "2026-01-24 00:30:01",
        );
        check(
            "2026-01-23T08:30:00.5Z",
            "2026-01-23T10:30:00.500000",
            "2026-01-23 10:30:00",
        );
    }

    #[test]
    fn lengths_have_one_unit() {
        for (seconds, want) in [
            (-5, "0s"),
            (0, "0s"),
            (3, "3s"),
            (59, "59s"),
            (60, "1m"),
            (299, "4m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (7_300, "2h"),
            (86_399, "23h"),
            (86_400, "1d"),
            (864_000, "10d"),
        ] {
            assert_eq!(length(SignedDuration::from_secs(seconds)), want);
        }
    }
}
