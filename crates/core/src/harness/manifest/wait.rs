//! Durations in manifests: `50ms`, `2s`, `1m`.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum duration.
const MAX_WAIT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Wait(Duration);

impl Wait {
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    pub fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<String> for Wait {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: Option<u64> = digits.parse().ok();
        let millis = match (number, &text[digits.len()..]) {
            (Some(number), "ms") => Some(number),
            (Some(number), "s") => number.checked_mul(1_000),
            (Some(number), "m") => number.checked_mul(60_000),
            (_, _) => None,
        };
        let Some(wait) = millis.map(Duration::from_millis) else {
            return Err("write a duration like 50ms, 2s or 1m".to_owned());
        };
        if wait > MAX_WAIT {
            return Err(format!("the longest wait is {} m", MAX_WAIT.as_secs() / 60));
        }
        Ok(Self(wait))
    }
}

impl From<Wait> for String {
    fn from(wait: Wait) -> Self {
        match wait.0.as_millis() {
            millis if millis % 1_000 == 0 => format!("{}s", millis / 1_000),
            millis => format!("{millis}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        let check = |text: &str, want: Result<u64, &str>| {
            let got = Wait::try_from(text.to_owned());
            match want {
                Ok(millis) => {
                    let wait = got.unwrap();
                    assert_eq!(wait, Wait::millis(millis), "{text}");
                    assert_eq!(Wait::try_from(String::from(wait)).unwrap(), wait);
                }
                Err(says) => assert!(got.unwrap_err().contains(says), "{text}"),
            }
        };
        check("50ms", Ok(50));
        check("2s", Ok(2_000));
        check("1m", Ok(60_000));
        check("0s", Ok(0));
        for bad in [
            "",
            "2",
            "s",
            "-1s",
            "1.5s",
            "2 s",
            "2h",
            "99999999999999999999s",
        ] {
            check(bad, Err("50ms, 2s or 1m"));
        }
        check("11m", Err("the longest wait"));
    }
}
