//! A pattern over what a screen shows. Matching takes time in proportion to the text, whatever
//! text and pattern are: neither can make a session hang.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// How long a pattern may be, and how large what is made of it.
const LONGEST: usize = 1_000;
const LARGEST: usize = 1 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// What the group of this name took, where the pattern is found; all that was found where
    /// there is no such group.
    pub fn take<'t>(&self, text: &'t str, group: &str) -> Option<&'t str> {
        let found = self.0.captures(text)?;
        let taken = found.name(group).or_else(|| found.get(0));
        taken.map(|taken| taken.as_str())
    }

    /// All that was found, and what the group of this name took of it.
    pub(crate) fn find<'t>(
        &self,
        text: &'t str,
        group: &str,
    ) -> Option<(&'t str, Option<&'t str>)> {
        let found = self.0.captures(text)?;
        let all = found.get(0)?.as_str();
        Some((all, found.name(group).map(|taken| taken.as_str())))
    }

    /// Return the byte offset of the first match.
    pub(crate) fn position(&self, text: &str) -> Option<usize> {
        self.0.find(text).map(|found| found.start())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern cannot be empty: it would be found everywhere".to_owned());
        }
        let regex = compile(&text)?;
        if regex.is_match("") {
            return Err("this pattern is found in nothing at all, so everywhere".to_owned());
        }
        Ok(Self(regex))
    }
}

/// Compile a pattern whose size, and so whose time, is bounded.
pub(in crate::harness) fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > LONGEST {
        return Err(format!("a pattern has at most {LONGEST} bytes"));
    }
    RegexBuilder::new(text)
        .multi_line(true)
        .size_limit(LARGEST)
        .dfa_size_limit(LARGEST)
        .build()
        .map_err(|error| in_a_line(&error))
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.as_str().to_owned()
    }
}

/// What is wrong with a pattern; the library draws it over several lines.
fn in_a_line(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "this pattern is too large".to_owned(),
        error => {
            let drawn = error.to_string();
            let said = drawn.lines().last().unwrap_or_default();
            format!("not a pattern: {}", said.trim_start_matches("error: "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_bounded_and_means_something() {
        let check = |text: &str, says: &str| {
            let error = Pattern::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(says), "{text:.40}: {error}");
            assert!(!error.contains('\n'), "{error}");
        };
        check("", "empty");
        check("a*", "everywhere");
        check("^$", "everywhere");
        check("(", "not a pattern: unclosed group");
        check("(?=x)", "not a pattern: look-around");
        check(r"(a)\1", "not a pattern: backreferences");
        check(&"x".repeat(1_001), "at most 1000 bytes");
        check(r"(\w{100}){100}", "too large");
    }

    #[test]
    fn lines_begin_and_end_where_they_do_on_the_screen() {
        let pattern = Pattern::try_from(r"^❯ (?<draft>.+)$".to_owned()).unwrap();
        assert_eq!(pattern.position("a\n❯ hi"), Some(2));
        assert_eq!(pattern.take("a\n❯ hi\nb", "draft"), Some("hi"));
        assert_eq!(pattern.take("a\n❯ hi\nb", "what"), Some("❯ hi"));
        assert_eq!(pattern.take("a ❯ hi", "draft"), None);
    }
}
