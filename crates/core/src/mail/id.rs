//! Ids of messages, asks, tasks, notes and injected prompts, and prefixes of ids.
//!
//! Ids are random UUIDs, so the first eight digits are usually enough to tell two of them apart. An
//! ambiguous prefix is an error, never a guess.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Defines an id type. Each kind of object has its own, so that ids cannot be mixed up.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Return the first eight digits: the short form for people and agents.
            pub fn id8(self) -> String {
                let mut text = self.0.simple().to_string();
                text.truncate(8);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0.hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<$name> for IdPrefix {
            fn from(id: $name) -> Self {
                Self(id.to_string())
            }
        }
    };
}

id!(MessageId);
id!(
    /// The id of a task on an agent's list.
    TaskId
);
id!(
    /// The id of an agent's note.
    NoteId
);

id!(
    /// The id of an ask.
    AskId
);

id!(
    /// The id of a text that was injected into a loop's next prompt.
    PromptId
);

/// The beginning of an id, spelled like a full one: lower case, with hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdPrefix(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    #[error("an id cannot be empty")]
    Empty,
    #[error("an id is made of 0-9, a-f and '-'")]
    NotHex,
    #[error("an id has 32 digits; this one is longer")]
    TooLong,
}

/// Number of digits before each hyphen of a full id.
const HYPHENS_AFTER: [usize; 4] = [8, 12, 16, 20];

impl IdPrefix {
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        if digits.is_empty() {
            return Err(if text.trim().is_empty() {
                PrefixError::Empty
            } else {
                PrefixError::NotHex
            });
        }
        if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(PrefixError::NotHex);
        }
        if digits.len() > 32 {
            return Err(PrefixError::TooLong);
        }
        let mut spelled = String::with_capacity(36);
        for (index, digit) in digits.chars().enumerate() {
            if HYPHENS_AFTER.contains(&index) {
                spelled.push('-');
            }
            spelled.push(digit.to_ascii_lowercase());
        }
        Ok(Self(spelled))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn fits(&self, id: impl Into<Uuid>) -> bool {
        id.into().hyphenated().to_string().starts_with(&self.0)
    }

    /// Return the smallest string, in byte order, that is greater than every id with this prefix.
    pub fn upper_bound(&self) -> String {
        // All characters of an id sort before 'g'.
        format!("{}g", self.0)
    }
}

impl fmt::Display for IdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for IdPrefix {
    type Error = PrefixError;
    fn try_from(text: String) -> Result<Self, PrefixError> {
        Self::parse(&text)
    }
}

impl From<IdPrefix> for String {
    fn from(prefix: IdPrefix) -> Self {
        prefix.0
    }
}

impl FromStr for IdPrefix {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3fa8c1d2-0b1c-4d2e-8f3a-4b5c6d7e8f90";

    #[test]
    fn a_prefix_is_normalized_like_an_id() {
        let check = |text: &str, want: Result<&str, PrefixError>| {
            assert_eq!(
                IdPrefix::parse(text).as_ref().map(IdPrefix::as_str),
                want.as_ref().map(|s| *s),
                "{text:?}"
            );
        };
        check("3fa8", Ok("3fa8"));
        check("3FA8C1D2", Ok("3fa8c1d2"));
        check("3fa8c1d20b", Ok("3fa8c1d2-0b"));
        check("3fa8c1d2-0b", Ok("3fa8c1d2-0b"));
        check(ID, Ok(ID));
        check("  3fa8 ", Ok("3fa8"));
        check("", Err(PrefixError::Empty));
        check("-", Err(PrefixError::NotHex));
        check("--force", Err(PrefixError::NotHex));
        check("xyz", Err(PrefixError::NotHex));
        check("é", Err(PrefixError::NotHex));
        check(&"a".repeat(33), Err(PrefixError::TooLong));
    }

    #[test]
    fn a_prefix_matches_the_ids_that_begin_with_it() {
        let id: MessageId = ID.parse().unwrap();
        assert_eq!(id.id8(), "3fa8c1d2");
        assert!(IdPrefix::parse("3fa8c1d2").unwrap().fits(id));
        assert!(IdPrefix::parse(ID).unwrap().fits(id));
        assert!(!IdPrefix::parse("3fa9").unwrap().fits(id));
        assert!(IdPrefix::parse("3fa8").unwrap().upper_bound().as_str() > ID);
    }
}
