//! Agent names and their syntax.
//!
//! A name becomes a directory, a socket and a header line, so [`AgentName::parse`] accepts only
//! `[a-z0-9][a-z0-9._-]{0,63}`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const MAX_NAME_CHARS: usize = 64;
const HUMAN: &str = "human";

/// The name of an inbox, whether or not a session runs under it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("an agent's name cannot be empty")]
    Empty,
    #[error("an agent's name has at most {MAX_NAME_CHARS} characters; this one has {0}")]
    TooLong(usize),
    #[error("an agent's name starts with a-z or 0-9, not with {}", shown(*.0))]
    BadStart(char),
    #[error("an agent's name may contain only a-z, 0-9, '.', '_' and '-', not {}", shown(*.0))]
    BadChar(char),
}

/// Quote a character for an error message; control characters are escaped.
fn shown(c: char) -> String {
    if c.is_ascii_graphic() || c.is_alphanumeric() {
        format!("'{c}'")
    } else {
        format!("'{}'", c.escape_unicode())
    }
}

impl AgentName {
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let first = text.chars().next().ok_or(NameError::Empty)?;
        let count = text.chars().count();
        if count > MAX_NAME_CHARS {
            return Err(NameError::TooLong(count));
        }
        if !(first.is_ascii_lowercase() || first.is_ascii_digit()) {
            return Err(NameError::BadStart(first));
        }
        match text.chars().find(|c| !is_allowed(*c)) {
            Some(bad) => Err(NameError::BadChar(bad)),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Return the name of the person's inbox.
    pub fn human() -> Self {
        Self(HUMAN.to_owned())
    }

    pub fn is_human(&self) -> bool {
        self.0 == HUMAN
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Return a valid name similar to `text`, for a hint. Never use it as the name itself.
    pub fn suggestion(text: &str) -> Option<Self> {
        let mended: String = text
            .trim()
            .to_lowercase()
            .chars()
            .map(|c| if is_allowed(c) { c } else { '-' })
            .skip_while(|c| !c.is_ascii_alphanumeric())
            .take(MAX_NAME_CHARS)
            .collect();
        Self::parse(mended.trim_end_matches('-')).ok()
    }
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-')
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentName({})", self.0)
    }
}

impl FromStr for AgentName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_names_are_accepted() {
        let check = |text: &str, want: Result<(), NameError>| {
            assert_eq!(AgentName::parse(text).map(|_| ()), want, "{text:?}");
        };
        check("bot", Ok(()));
        check("coder-1", Ok(()));
        check("0.a_b-c", Ok(()));
        check(&"a".repeat(64), Ok(()));
        check("", Err(NameError::Empty));
        check(&"a".repeat(65), Err(NameError::TooLong(65)));
        check("Bot", Err(NameError::BadStart('B')));
        check("-flag", Err(NameError::BadStart('-')));
        check("..", Err(NameError::BadStart('.')));
        check("a/b", Err(NameError::BadChar('/')));
        check("a b", Err(NameError::BadChar(' ')));
        check("a\u{1b}[2J", Err(NameError::BadChar('\u{1b}')));
        check("bött", Err(NameError::BadChar('ö')));
        check("a\0", Err(NameError::BadChar('\0')));
    }

    #[test]
    fn an_error_contains_no_control_characters() {
        let error = AgentName::parse("a\u{1b}[2J").unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    #[test]
    fn a_suggestion_is_a_valid_name() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(
                AgentName::suggestion(text).as_ref().map(AgentName::as_str),
                want,
                "{text:?}"
            );
        };
        check("My Bot", Some("my-bot"));
        check("../etc/passwd", Some("etc-passwd"));
        check("--", None);
        check("", None);
        check(&"x".repeat(200), Some(&"x".repeat(64)));
    }
}
