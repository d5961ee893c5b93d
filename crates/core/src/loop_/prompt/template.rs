//! Templates: a person's own prompt with placeholders for the parts of a loop's prompt.
//!
//! A template is parsed once, before values are inserted, and inserted values are never scanned. So
//! no message, note or spec can act as a template.

use std::fmt;

/// The values of placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPart {
    /// The loop's name.
    Session,
    /// The number of the iteration.
    Iteration,
    /// The path of the spec.
    Spec,
    /// The path of the prd.
    Prd,
    /// The current story of the prd.
    Story,
    Injected,
    Inbox,
    Context,
    Notes,
    Tasks,
    Tools,
    Instructions,
    Extra,
}

impl PromptPart {
    /// All parts and the names of their placeholders.
    const NAMES: [(Self, &'static str); 13] = [
        (Self::Session, "session"),
        (Self::Iteration, "iteration"),
        (Self::Spec, "spec"),
        (Self::Prd, "prd"),
        (Self::Story, "story"),
        (Self::Injected, "injected"),
        (Self::Inbox, "inbox"),
        (Self::Context, "context"),
        (Self::Notes, "notes"),
        (Self::Tasks, "tasks"),
        (Self::Tools, "tools"),
        (Self::Instructions, "instructions"),
        (Self::Extra, "extra"),
    ];

    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(part, _)| part)
    }

    pub fn as_str(self) -> &'static str {
        let mut names = Self::NAMES.into_iter();
        let name = names.find_map(|(part, name)| (part == self).then_some(name));
        name.expect("every part is in the table")
    }
}

impl fmt::Display for PromptPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}}}}}", self.as_str())
    }
}

/// Why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "line {line}: unknown placeholder '{{{{{name}}}}}'; use one of {}",
        known()
    )]
    Unknown { line: usize, name: String },
    #[error("line {line}: '{{{{' has no '}}}}' on its line; write '{{{{{{{{' for literal braces")]
    Open { line: usize },
    #[error("the template is empty")]
    Empty,
}

fn known() -> String {
    let all: Vec<String> = PromptPart::all().map(|part| part.to_string()).collect();
    all.join(", ")
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Blank(PromptPart),
}

/// For example `Work on {{spec}}. {{tasks}}`; `{{{{` stands for `{{`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    pieces: Vec<Piece>,
}

impl PromptTemplate {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            pieces.push(Piece::Text(rest[..at].to_owned()));
            let inside = &rest[at + 2..];
            if let Some(after) = inside.strip_prefix("{{") {
                pieces.push(Piece::Text("{{".to_owned()));
                rest = after;
                continue;
            }
            let line = text[..text.len() - inside.len()].matches('\n').count() + 1;
            let name = inside.lines().next().unwrap_or_default();
            let Some((name, _)) = name.split_once("}}") else {
                return Err(TemplateError::Open { line });
            };
            let part = PromptPart::all().find(|part| part.as_str() == name.trim());
            let Some(part) = part else {
                let name = crate::text::one_line(name, 40);
                return Err(TemplateError::Unknown { line, name });
            };
            pieces.push(Piece::Blank(part));
            rest = &inside[name.len() + 2..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces })
    }

    pub fn has(&self, part: PromptPart) -> bool {
        self.pieces.contains(&Piece::Blank(part))
    }

    pub(super) fn fill(&self, value: impl Fn(PromptPart) -> String) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Blank(part) => value(*part),
        });
        pieces.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once() {
        let check = |text: &str, want: &str| {
            let template = PromptTemplate::parse(text).unwrap();
            // Inserted values are not scanned for placeholders.
            let got = template.fill(|part| format!("<{}{{{{tasks}}}}>", part.as_str()));
            assert_eq!(got, want, "{text}");
        };
        check("plain { } {x} }}", "plain { } {x} }}");
        check("a{{spec}}b", "a<spec{{tasks}}>b");
        check("{{ inbox }}{{notes}}", "<inbox{{tasks}}><notes{{tasks}}>");
        check("{{{{spec}}", "{{spec}}");
        check("{{{{{{spec}}", "{{<spec{{tasks}}>");
        check("ä\n{{tasks}}\n", "ä\n<tasks{{tasks}}>\n");
    }

    #[test]
    fn every_part_has_a_placeholder() {
        for part in PromptPart::all() {
            let template = PromptTemplate::parse(&part.to_string()).unwrap();
            assert!(template.has(part));
            assert_eq!(template.fill(|p| p.as_str().to_owned()), part.as_str());
            let mut others = PromptPart::all().filter(|other| *other != part);
            assert!(others.all(|other| !template.has(other)));
        }
    }

    #[test]
    fn an_unknown_placeholder_is_reported_with_the_known_ones() {
        let check = |text: &str, want: &str| {
            let error = PromptTemplate::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text}: {error}");
        };
        check(
            "a\nb {{taks}}",
            "line 2: unknown placeholder '{{taks}}'; use one of {{session}}, ",
        );
        check("{{}}", "line 1: unknown placeholder '{{}}'");
        check("{{INBOX}}", "line 1: unknown placeholder");
        check("{{a\u{1b}[2J}}", "line 1: unknown placeholder '{{a[2J}}'");
        check(
            "x\n\n{{spec\n}}",
            "line 3: '{{' has no '}}' on its line; write '{{{{'",
        );
        check("{{", "line 1: '{{' has no");
        check(" \n", "the template is empty");
        let error = PromptTemplate::parse("{{x}}").unwrap_err().to_string();
        for part in PromptPart::all() {
            assert!(error.contains(&part.to_string()), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_template_causes_a_panic(text in "[{}a-z ä\\n]{0,40}|(\\{\\{(spec|tasks)?\\}?\\}?){0,5}") {
            if let Ok(template) = PromptTemplate::parse(&text) {
                let filled = template.fill(|part| part.to_string());
                proptest::prop_assert!(filled.len() <= text.len());
            }
        }
    }
}
