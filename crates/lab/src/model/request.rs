//! Request to a model, independent of its dialect.
//!
//! Knows no vendor's format: each dialect has a file of its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// API dialect; each agent of the lab has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Anthropic's messages: Claude Code.
    Claude,
    /// OpenAI's responses: Codex.
    Codex,
    /// OpenAI's chat completions: OpenCode.
    OpenCode,
    /// Google's `generateContent`: Gemini CLI.
    Gemini,
}

/// Author of a part of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// System prompt, and text that the agent adds to the user's.
    System,
    User,
    /// Result of a tool.
    Tool,
    Model,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub voice: Author,
    pub text: String,
}

/// Parsed request to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRequest {
    pub dialect: Dialect,
    pub model: String,
    /// Whether the reply is to be streamed.
    pub stream: bool,
    /// Offered tools. A request without tools is for the agent's own use (a summary, a title).
    pub tools: Vec<String>,
    /// The whole conversation, oldest part first.
    pub pieces: Vec<Piece>,
    /// The agent's id of the conversation. Gemini CLI sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Fields of the reply if it has to be JSON; such a request is for the agent's own use, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// Reason why a request is invalid.
pub(super) type Malformed = String;

impl ModelRequest {
    /// Return whether this request continues the agent's conversation.
    pub fn is_turn(&self) -> bool {
        !self.tools.is_empty() && self.fields.is_empty()
    }

    /// Return the parts since the model's last reply.
    pub fn fresh(&self) -> &[Piece] {
        let spoken = |piece: &Piece| piece.voice == Author::Model;
        let from = self.pieces.iter().rposition(spoken).map_or(0, |at| at + 1);
        &self.pieces[from..]
    }

    /// Return the user's newest text, without additions of the agent.
    pub fn prompt(&self) -> Option<String> {
        let pieces = self.fresh().iter().rev();
        pieces
            .filter(|piece| piece.voice == Author::User)
            .map(|piece| without_reminders(&piece.text).trim().to_owned())
            .find(|text| !text.is_empty())
    }

    /// Return all tool results since the model's last reply.
    pub fn result(&self) -> Option<String> {
        let given = self.fresh().iter().filter(|p| p.voice == Author::Tool);
        let given: Vec<&str> = given.map(|piece| piece.text.as_str()).collect();
        (!given.is_empty()).then(|| given.join("\n"))
    }

    /// Count the occurrences of a text in the request. The model's own text does not count.
    pub fn count(&self, text: &str) -> usize {
        let pieces = self.pieces.iter().filter(|p| p.voice != Author::Model);
        pieces.map(|piece| piece.text.matches(text).count()).sum()
    }

    pub(super) fn say(&mut self, voice: Author, text: impl Into<String>) {
        let text = text.into();
        self.pieces.push(Piece { voice, text });
    }
}

/// Return a text without the tags that agents add to it: Claude Code's own remarks, and Gemini
/// CLI's output of hooks.
fn without_reminders(text: &str) -> String {
    let text = without_tag(text, "<system-reminder>", "</system-reminder>");
    without_tag(&text, "<hook_context>", "</hook_context>")
}

fn without_tag(text: &str, open: &str, close: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(open) {
        left.push_str(before);
        // A tag without an end hides the rest of the text.
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    left + rest
}

/// Return the list under a name. A missing list is empty, another type is an error.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], Malformed> {
    match &value[name] {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(format!("{name:?} is not a list: {}", shortened(other))),
    }
}

/// Return the fields of a JSON reply from its schema.
pub(super) fn fields(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flat_map(|all| all.keys().cloned())
        .collect()
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, Malformed> {
    let absent = || format!("there is no text {name:?} in {}", shortened(value));
    value[name].as_str().ok_or_else(absent)
}

pub(super) fn shortened(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

/// Request of Claude Code with these parts, for tests.
#[cfg(test)]
pub(super) fn claude_request(pieces: &[(Author, &str)]) -> ModelRequest {
    let mut asked = ModelRequest {
        dialect: Dialect::Claude,
        model: "m".to_owned(),
        stream: true,
        tools: vec!["Bash".to_owned()],
        pieces: Vec::new(),
        conversation: None,
        fields: Vec::new(),
    };
    for (voice, text) in pieces {
        asked.say(*voice, *text);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[(Author, &str)], prompt: Option<&str>, result: Option<&str>) {
        let asked = claude_request(pieces);
        assert_eq!(asked.prompt().as_deref(), prompt);
        assert_eq!(asked.result().as_deref(), result);
    }

    #[test]
    fn only_the_users_newest_text_counts() {
        use Author::{Model, System, Tool, User};
        check(&[], None, None);
        check(&[(System, "be good"), (User, "hi")], Some("hi"), None);
        check(
            &[(User, "one"), (Model, "ok"), (User, "two")],
            Some("two"),
            None,
        );
        check(&[(User, "one"), (User, "two")], Some("two"), None);
        check(
            &[(User, "one"), (Model, "ok"), (Tool, "a"), (Tool, "b")],
            None,
            Some("a\nb"),
        );
        check(
            &[(Model, "ok"), (Tool, "a"), (User, "mid")],
            Some("mid"),
            Some("a"),
        );
        let wrapped = "<system-reminder>x\n</system-reminder>\nhi <system-reminder>y";
        check(&[(User, wrapped)], Some("hi"), None);
        let remark = "<system-reminder>x</system-reminder>\n";
        check(&[(User, "hi"), (User, remark)], Some("hi"), None);
    }

    #[test]
    fn the_models_own_text_is_not_counted() {
        use Author::{Model, Tool, User};
        let asked = claude_request(&[(User, "id1 id1"), (Model, "id1"), (Tool, "id1")]);
        assert_eq!(asked.count("id1"), 3);
        assert_eq!(asked.count("id2"), 0);
    }
}
