//! What a model is asked, whichever dialect the request came in.
//!
//! Nothing here knows a vendor's shapes: those are in the file of each dialect.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks: each agent of the lab has a dialect of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Anthropic's messages, as Claude Code sends them.
    Claude,
    /// OpenAI's responses, as Codex sends them.
    Codex,
    /// OpenAI's chat completions, as OpenCode sends them.
    OpenCode,
    /// Google's `generateContent`, as Gemini CLI sends it.
    Gemini,
}

/// Who said a piece of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    /// The system prompt, and what the agent itself puts beside a user's words.
    System,
    User,
    /// What a tool gave back.
    Tool,
    Model,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub voice: Voice,
    pub text: String,
}

/// A request to a model, read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub dialect: Dialect,
    pub model: String,
    /// Whether the answer is wanted as it comes.
    pub stream: bool,
    /// The tools on offer. A request without any is the agent's own affair (a summary, a title).
    pub tools: Vec<String>,
    /// The whole conversation, oldest first.
    pub pieces: Vec<Piece>,
    /// The fields of the answer, where it has to be JSON: also the agent's own affair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// Why a request cannot be read.
pub(super) type Malformed = String;

impl Asked {
    /// Whether the agent's own conversation is asked on, not something beside it.
    pub fn is_turn(&self) -> bool {
        !self.tools.is_empty() && self.fields.is_empty()
    }

    /// What has come since the model last spoke.
    pub fn fresh(&self) -> &[Piece] {
        let spoken = |piece: &Piece| piece.voice == Voice::Model;
        let from = self.pieces.iter().rposition(spoken).map_or(0, |at| at + 1);
        &self.pieces[from..]
    }

    /// The user's newest words, without what the agent has wrapped around them.
    pub fn prompt(&self) -> Option<String> {
        let said = self.fresh().iter().rev();
        said.filter(|piece| piece.voice == Voice::User)
            .map(|piece| without_reminders(&piece.text).trim().to_owned())
            .find(|text| !text.is_empty())
    }

    /// What tools have just given back, all of it.
    pub fn result(&self) -> Option<String> {
        let given = self.fresh().iter().filter(|p| p.voice == Voice::Tool);
        let given: Vec<&str> = given.map(|piece| piece.text.as_str()).collect();
        (!given.is_empty()).then(|| given.join("\n"))
    }

    /// How often a text stands in what the model was sent; its own words do not count.
    pub fn count(&self, text: &str) -> usize {
        let heard = self.pieces.iter().filter(|p| p.voice != Voice::Model);
        heard.map(|piece| piece.text.matches(text).count()).sum()
    }

    pub(super) fn say(&mut self, voice: Voice, text: impl Into<String>) {
        let text = text.into();
        self.pieces.push(Piece { voice, text });
    }
}

/// Claude Code puts its own remarks among the user's words, in tags, and Gemini CLI what a hook adds.
fn without_reminders(text: &str) -> String {
    let text = without_tag(text, "<system-reminder>", "</system-reminder>");
    without_tag(&text, "<hook_context>", "</hook_context>")
}

fn without_tag(text: &str, open: &str, close: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(open) {
        left.push_str(before);
        // One that is never closed hides all that follows.
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    left + rest
}

/// The list under a name; absent is empty, anything else is an error.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], Malformed> {
    match &value[name] {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(format!("{name:?} is not a list: {}", shortened(other))),
    }
}

/// The fields of an answer that has to be JSON, from its schema.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pieces: &[(Voice, &str)]) -> Asked {
        let mut asked = Asked {
            dialect: Dialect::Claude,
            model: "m".to_owned(),
            stream: true,
            tools: vec!["Bash".to_owned()],
            pieces: Vec::new(),
            fields: Vec::new(),
        };
        for (voice, text) in pieces {
            asked.say(*voice, *text);
        }
        asked
    }

    #[track_caller]
    fn check(pieces: &[(Voice, &str)], prompt: Option<&str>, result: Option<&str>) {
        let asked = asked(pieces);
        assert_eq!(asked.prompt().as_deref(), prompt);
        assert_eq!(asked.result().as_deref(), result);
    }

    #[test]
    fn the_newest_words_of_the_user_count() {
        use Voice::{Model, System, Tool, User};
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
    fn the_models_own_words_are_not_counted() {
        use Voice::{Model, Tool, User};
        let asked = asked(&[(User, "id1 id1"), (Model, "id1"), (Tool, "id1")]);
        assert_eq!(asked.count("id1"), 3);
        assert_eq!(asked.count("id2"), 0);
    }
}
