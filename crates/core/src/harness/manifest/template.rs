//! Templates in manifests. The placeholders are a fixed list of values that the session knows;
//! nothing of the environment or of a message can be inserted.

use serde::{Deserialize, Serialize};

const MAX_TEMPLATE_BYTES: usize = 16_000;

/// A value that a session inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    Agent,
    Home,
    /// The agent's own message folder.
    MessageDir,
    Socket,
    /// The path of the `ph` binary, for hooks.
    Ph,
    Cwd,
    /// The session's directory for files that it gives the program.
    Layer,
    /// A free port on loopback, for the program's HTTP API.
    Port,
    /// User name for that API.
    User,
    /// Password for that API.
    Secret,
}

impl Placeholder {
    pub const ALL: [Self; 10] = [
        Self::Agent,
        Self::Home,
        Self::MessageDir,
        Self::Socket,
        Self::Ph,
        Self::Cwd,
        Self::Layer,
        Self::Port,
        Self::User,
        Self::Secret,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Home => "home",
            Self::MessageDir => "message_dir",
            Self::Socket => "socket",
            Self::Ph => "ph",
            Self::Cwd => "cwd",
            Self::Layer => "layer",
            Self::Port => "port",
            Self::User => "user",
            Self::Secret => "secret",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Blank(Placeholder),
}

/// For example `--settings={message_dir}/x`; `{{` and `}}` stand for braces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    said: String,
    pieces: Vec<Piece>,
}

impl Template {
    /// Return a template without placeholders.
    pub fn literal(text: &str) -> Self {
        Self {
            said: text.replace('{', "{{").replace('}', "}}"),
            pieces: vec![Piece::Text(text.to_owned())],
        }
    }

    /// Whether the template contains this placeholder.
    pub fn has(&self, blank: Placeholder) -> bool {
        self.pieces.contains(&Piece::Blank(blank))
    }

    pub fn fill(&self, value: impl Fn(Placeholder) -> String) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Blank(blank) => value(*blank),
        });
        pieces.collect()
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(said: String) -> Result<Self, String> {
        let pieces = parse(&said, Braces::Doubled)?;
        Ok(Self { said, pieces })
    }
}

/// The spelling of braces that are not part of a placeholder.
#[derive(Clone, Copy)]
enum Braces {
    Doubled,
    Plain,
}

fn parse(said: &str, braces: Braces) -> Result<Vec<Piece>, String> {
    if said.len() > MAX_TEMPLATE_BYTES || said.contains('\0') {
        return Err(format!(
            "at most {MAX_TEMPLATE_BYTES} bytes, without a zero byte"
        ));
    }
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = said;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_doubled = rest.starts_with("{{") || rest.starts_with("}}");
        let literal = match (braces, blank(rest)) {
            (Braces::Doubled, _) if is_doubled => 2,
            (_, Ok((blank, after))) => {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Blank(blank));
                rest = after;
                continue;
            }
            (Braces::Doubled, Err(error)) => return Err(error),
            (Braces::Plain, Err(_)) => 1,
        };
        text.push_str(&rest[..1]);
        rest = &rest[literal..];
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// Parse the placeholder at the beginning of a text; return it and the rest.
fn blank(text: &str) -> Result<(Placeholder, &str), String> {
    let found = Placeholder::ALL.into_iter().find_map(|blank| {
        let after = text.strip_prefix('{')?.strip_prefix(blank.as_str())?;
        Some((blank, after.strip_prefix('}')?))
    });
    found.ok_or_else(|| {
        let all = Placeholder::ALL.map(|blank| format!("{{{}}}", blank.as_str()));
        format!(
            "unknown placeholder; use one of {}, and write a literal brace twice",
            all.join(", ")
        )
    })
}

/// The text of a file with placeholders. Files often contain braces: those that are not
/// placeholders stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Document(Template);

impl Document {
    /// Insert values, escaped for the inside of a JSON string.
    pub fn fill(&self, value: impl Fn(Placeholder) -> String) -> String {
        self.0.fill(|blank| {
            let quoted = serde_json::Value::String(value(blank)).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }
}

impl TryFrom<String> for Document {
    type Error = String;

    fn try_from(said: String) -> Result<Self, String> {
        let pieces = parse(&said, Braces::Plain)?;
        Ok(Self(Template { said, pieces }))
    }
}

impl From<Document> for String {
    fn from(document: Document) -> Self {
        document.0.said
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_other_braces() {
        let check = |said: &str, want: &str| {
            let document = Document::try_from(said.to_owned()).unwrap();
            assert_eq!(document.fill(|_| "a\"b\\{home}".to_owned()), want);
            assert_eq!(String::from(document), said);
        };
        check("", "");
        check(r#"{"a": {}}"#, r#"{"a": {}}"#);
        check(r#"{"dir": "{layer}/x"}"#, r#"{"dir": "a\"b\\{home}/x"}"#);
        check("{ layer } {other} {", "{ layer } {other} {");
    }

    #[test]
    fn placeholders_are_replaced_once() {
        let check = |said: &str, want: &str| {
            let template = Template::try_from(said.to_owned()).unwrap();
            // Inserted values are not scanned for placeholders.
            let got = template.fill(|blank| format!("<{}{{home}}>", blank.as_str()));
            assert_eq!(got, want);
        };
        check("plain", "plain");
        check("", "");
        check("a{agent}b", "a<agent{home}>b");
        check("{message_dir}{ph}", "<message_dir{home}><ph{home}>");
        check("{{\"k\": 1}}", "{\"k\": 1}");
        for bad in ["{", "}", "{nothing}", "{HOME}", "{agent", "{ agent }"] {
            let error = Template::try_from(bad.to_owned()).unwrap_err();
            assert!(error.contains("{message_dir}"), "{bad}: {error}");
        }
    }
}
