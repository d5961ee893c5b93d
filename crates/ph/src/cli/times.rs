//! Times on the command line and in lists: parses durations and points in time, and formats times.

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned, civil};
use posthaste_store::report::{Report, Result};
use posthaste_store::times::zone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeStyle {
    Local,
    Utc,
    Relative,
}

impl TimeStyle {
    pub(crate) fn show(self, time: Timestamp, now: Timestamp) -> String {
        match self {
            Self::Local => time
                .to_zoned(zone().clone())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string(),
            Self::Utc => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            Self::Relative => relative(time, now),
        }
    }
}

fn relative(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(time).as_secs();
    let (count, unit) = match seconds.unsigned_abs() {
        0..60 => (seconds.unsigned_abs(), "s"),
        s @ 60..3_600 => (s / 60, "min"),
        s @ 3_600..86_400 => (s / 3_600, "h"),
        s => (s / 86_400, "d"),
    };
    if seconds < 0 {
        format!("in {count} {unit}")
    } else {
        format!("{count} {unit} ago")
    }
}

/// Parse a duration such as `90s`, `10m`, `1h 30m` or `2d`.
pub(crate) fn parse_duration(text: &str) -> std::result::Result<SignedDuration, String> {
    let span: Span = text
        .parse()
        .map_err(|_| format!("'{text}' is not a duration such as 90s, 10m, 1h30m, 2d"))?;
    let length = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| "months and years have no fixed length; use days".to_owned())?;
    if length.is_positive() {
        Ok(length)
    } else {
        Err("a duration must be more than zero".to_owned())
    }
}

/// Parse a time: with a zone, in local time, or as the next occurrence of a time of day.
pub(crate) fn parse_point(text: &str, now: Timestamp) -> Result<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    // A time with a named zone. If the zone is unknown, it must not be parsed as local time.
    if text.contains('[') {
        return match text.parse::<Zoned>() {
            Ok(time) => Ok(time.timestamp()),
            Err(error) => Err(Report::usage(format!("'{text}' is not a time: {error}"))),
        };
    }
    let zone = zone();
    let unclear = |_| Report::usage(format!("the time {text} does not exist in this time zone"));
    if let Ok(clock) = text.parse::<civil::Time>()
        && !text.contains('-')
    {
        let today = now.to_zoned(zone.clone());
        let at = |day: Zoned| {
            day.date()
                .to_datetime(clock)
                .to_zoned(zone.clone())
                .map_err(unclear)
        };
        let first = at(today.clone())?;
        let next = if first.timestamp() > now {
            first
        } else {
            at(today.tomorrow().map_err(unclear)?)?
        };
        return Ok(next.timestamp());
    }
    if let Ok(time) = text.replacen(' ', "T", 1).parse::<civil::DateTime>() {
        return Ok(time.to_zoned(zone.clone()).map_err(unclear)?.timestamp());
    }
    Err(Report::usage(format!("'{text}' is not a time"))
        .hint("write 2026-11-15T14:30, 2026-11-15T14:30:00Z or 14:30"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let check = |text: &str, want: Option<i64>| {
            assert_eq!(
                parse_duration(text).ok().map(|d| d.as_secs()),
                want,
                "{text:?}"
            );
        };
        check("90s", Some(90));
        check("10m", Some(600));
        check("1h30m", Some(5_400));
        check("1h 30m", Some(5_400));
        check("2d", Some(172_800));
        check("1w", Some(604_800));
        check("0s", None);
        check("-5m", None);
        check("1 month", None);
        check("soon", None);
        check("", None);
        check("10", None);
    }

    #[test]
    fn points_in_time_are_parsed() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let check = |text: &str, want: &str| {
            assert_eq!(
                parse_point(text, now).unwrap().to_string(),
                want,
                "{text:?}"
            );
        };
        check("2026-11-15T14:30:00Z", "2026-11-15T14:30:00Z");
        check("2026-11-15T14:30:00+02:00", "2026-11-15T12:30:00Z");
        check("2026-11-15T14:30[UTC]", "2026-11-15T14:30:00Z");
        let clock = parse_point("14:30", now).unwrap();
        assert!(clock > now && clock.duration_since(now) <= SignedDuration::from_hours(25));
        for bad in [
            "",
            "later",
            "25:00",
            "2026-13-01",
            "2026-11-15T14:30[Nowhere/At_All]",
        ] {
            assert!(parse_point(bad, now).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn relative_times_name_the_largest_unit() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let check = |seconds: i64, want: &str| {
            let time = now - SignedDuration::from_secs(seconds);
            assert_eq!(relative(time, now), want);
        };
        check(0, "0 s ago");
        check(59, "59 s ago");
        check(60, "1 min ago");
        check(7_200, "2 h ago");
        check(172_800, "2 d ago");
        check(-90, "in 1 min");
    }
}
