//! Patterns over a screen's text. Matching takes time linear in the text, whatever the pattern, so
//! it cannot hang a session.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Maximum length of a pattern, and maximum size of its compiled form.
const MAX_PATTERN_BYTES: usize = 1_000;
const MAX_COMPILED_BYTES: usize = 1 << 20;

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

    /// Return the text of the named group in the first match, or the whole match if there is no
    /// such group.
    pub fn take<'t>(&self, text: &'t str, group: &str) -> Option<&'t str> {
        let found = self.0.captures(text)?;
        let taken = found.name(group).or_else(|| found.get(0));
        taken.map(|taken| taken.as_str())
    }

    /// Return the rows of the first match, and the text of its named group.
    pub(crate) fn find<'t>(
        &self,
        text: &'t str,
        group: &str,
    ) -> Option<(&'t str, Option<&'t str>)> {
        let found = self.0.captures(text)?;
        let all = found.get(0)?;
        let begin = text[..all.start()].rfind('\n').map_or(0, |end| end + 1);
        let rows = &text[begin..all.end()];
        Some((rows, found.name(group).map(|taken| taken.as_str())))
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
            return Err(
                "a pattern must not be empty, because it would match everywhere".to_owned(),
            );
        }
        let regex = compile(&text)?;
        if regex.is_match("") {
            return Err(
                "this pattern matches the empty text, so it would match everywhere".to_owned(),
            );
        }
        Ok(Self(regex))
    }
}

/// Compile a pattern with bounded size, which bounds its time.
pub(in crate::harness) fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes"));
    }
    RegexBuilder::new(text)
        .multi_line(true)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| in_a_line(&error))
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.as_str().to_owned()
    }
}

/// Describe an error in one line; the library's text has several.
fn in_a_line(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the compiled pattern is too large".to_owned(),
        error => {
            let drawn = error.to_string();
            let said = drawn.lines().last().unwrap_or_default();
            format!("invalid pattern: {}", said.trim_start_matches("error: "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_bounded_and_matches_no_empty_text() {
        let check = |text: &str, says: &str| {
            let error = Pattern::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(says), "{text:.40}: {error}");
            assert!(!error.contains('\n'), "{error}");
        };
        check("", "empty");
        check("a*", "everywhere");
        check("^$", "everywhere");
        check("(", "invalid pattern: unclosed group");
        check("(?=x)", "invalid pattern: look-around");
        check(r"(a)\1", "invalid pattern: backreferences");
        check(&"x".repeat(1_001), "at most 1000 bytes");
        check(r"(\w{100}){100}", "too large");
    }

    #[test]
    fn line_anchors_match_at_screen_rows() {
        let pattern = Pattern::try_from(r"^❯ (?<draft>.+)$".to_owned()).unwrap();
        assert_eq!(pattern.position("a\n❯ hi"), Some(2));
        assert_eq!(pattern.take("a\n❯ hi\nb", "draft"), Some("hi"));
        assert_eq!(pattern.take("a\n❯ hi\nb", "what"), Some("❯ hi"));
        assert_eq!(pattern.take("a ❯ hi", "draft"), None);
    }
}
