//! Parser for agents' transcripts: extracts the texts that a model was given, as prompts or by hooks.
//! Ignores the agent's own output and tool results, because both can quote any text. The only
//! exception is the text that a Gemini CLI hook has appended to a tool result.

use serde::Deserialize;
use serde_json::Value;

/// Texts in a part of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The texts that the model was given, in order.
    pub given: String,
    /// The texts that a person withdrew before the model was given them.
    pub withdrawn: String,
}

impl Shown {
    /// Add the texts of these lines. Unknown lines are skipped.
    pub fn add(&mut self, lines: &str) {
        let records = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        for record in records {
            self.given.push_str(&texts(&record));
            if record.is_withdrawal() {
                let text = joined(&record.content, |_| None);
                self.withdrawn.push_str(&text);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return the size of the texts, in bytes.
    pub fn len(&self) -> usize {
        self.given.len() + self.withdrawn.len()
    }
}

#[derive(Deserialize)]
struct TranscriptRow {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    attachment: Option<Attachment>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    payload: Option<Payload>,
    /// Operation on Claude Code's prompt queue.
    #[serde(default)]
    operation: String,
    /// Content of a user row in Gemini CLI, or of a queue operation in Claude Code.
    #[serde(default)]
    content: Value,
    /// Tool calls of Gemini CLI's model, with their results.
    #[serde(default, rename = "toolCalls")]
    calls: Value,
}

impl TranscriptRow {
    /// Whether a person withdrew a queued prompt. Claude Code then puts the prompt into the input
    /// box.
    fn is_withdrawal(&self) -> bool {
        self.kind == "queue-operation" && self.operation == "popAll"
    }
}

/// The payload of a Codex row.
#[derive(Deserialize)]
struct Payload {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    about: About,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct About {
    content_item_kinds: Vec<String>,
}

impl Payload {
    /// Whether the row is a prompt or consists of a hook's text.
    fn is_given(&self) -> bool {
        let is_hooks = |kind: &String| kind == "hooks.additional_context";
        let kinds = &self.about.content_item_kinds;
        let is_added = !kinds.is_empty() && kinds.iter().all(is_hooks);
        let is_given = match self.role.as_str() {
            "user" => true,
            "developer" => is_added,
            _ => false,
        };
        self.kind == "message" && is_given
    }
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Value,
    /// Text of a queued prompt.
    #[serde(default)]
    prompt: Value,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

fn texts(record: &TranscriptRow) -> String {
    if let ("response_item", Some(payload)) = (record.kind.as_str(), &record.payload) {
        return match payload.is_given() {
            true => joined(&payload.content, |part| text_of(part, "input_text")),
            false => String::new(),
        };
    }
    match (record.kind.as_str(), &record.attachment, &record.message) {
        ("attachment", Some(attachment), _) if attachment.kind == "hook_additional_context" => {
            joined(&attachment.content, Value::as_str)
        }
        ("attachment", Some(attachment), _) if attachment.kind == "queued_command" => {
            joined(&attachment.prompt, |part| text_of(part, "text"))
        }
        ("user", _, Some(message)) if message.role == "user" => {
            joined(&message.content, |part| text_of(part, "text"))
        }
        ("user", _, None) if record.content.is_array() => joined(&record.content, prompt),
        ("gemini", _, None) if record.calls.is_array() => joined_calls(&record.calls),
        (_, _, _) => String::new(),
    }
}

const HOOK_TAG_OPEN: &str = "<hook_context>";
const HOOK_TAG_CLOSE: &str = "</hook_context>";

/// Return the text of a part of a Gemini CLI prompt, without the tags around text from a hook.
fn prompt(part: &Value) -> Option<&str> {
    let text = part.get("text")?.as_str()?;
    let inside = text
        .strip_prefix(HOOK_TAG_OPEN)
        .and_then(|text| text.strip_suffix(HOOK_TAG_CLOSE));
    Some(inside.unwrap_or(text))
}

/// Return the texts that hooks have appended to the results of tool calls.
fn joined_calls(calls: &Value) -> String {
    let calls = calls.as_array().into_iter().flatten();
    let results = calls.filter_map(|call| call.get("result"));
    let lists = results.filter(|result| result.is_array());
    lists.map(|result| joined(result, behind)).collect()
}

/// Return the text that a Gemini CLI hook has appended to a tool result: its tagged end.
fn behind(part: &Value) -> Option<&str> {
    let given = part.get("functionResponse")?.get("response")?;
    let output = given
        .get("output")?
        .as_str()?
        .strip_suffix(HOOK_TAG_CLOSE)?;
    let (before, inside) = output.rsplit_once(HOOK_TAG_OPEN)?;
    let is_ours = before.ends_with("\n\n") && !inside.contains(['<', '>']);
    is_ours.then_some(inside)
}

/// Return the text of a part of the given kind.
fn text_of<'a>(part: &'a Value, kind: &str) -> Option<&'a str> {
    let is_it = part.get("type").and_then(Value::as_str) == Some(kind);
    part.get("text").filter(|_| is_it).and_then(Value::as_str)
}

/// Return a text, or the joined texts of a list.
fn joined(content: &Value, text: impl Fn(&Value) -> Option<&str>) -> String {
    match content {
        Value::String(whole) => format!("{whole}\n"),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(text);
            texts.map(|text| format!("{text}\n")).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_given_to_the_model_count() {
        let check = |line: &str, want: &str| {
            let mut shown = Shown::default();
            shown.add(line);
            assert_eq!(shown.given, want, "{line}");
        };
        let added = r#"{"type":"attachment","attachment":{"type":"hook_additional_context","content":["a","b"]},"x":1}"#;
        check(added, "a\nb\n");
        check(
            r#"{"type":"attachment","attachment":{"type":"file","content":["a"]}}"#,
            "",
        );
        check(
            r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
            "hi\n",
        );
        let parts = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","content":"b"}]}}"#;
        check(parts, "a\n");
        check(
            r#"{"type":"assistant","message":{"role":"assistant","content":"a"}}"#,
            "",
        );
        check(
            r#"{"type":"user","message":{"role":"assistant","content":"a"}}"#,
            "",
        );
        let queued = |key: &str| {
            format!(
                r#"{{"type":"attachment","attachment":{{"type":"queued_command","{key}":"a"}}}}"#
            )
        };
        check(&queued("prompt"), "a\n");
        check(&queued("content"), "");
        let queue = |operation: &str| {
            let line =
                format!(r#"{{"type":"queue-operation","operation":"{operation}","content":"a"}}"#);
            let mut shown = Shown::default();
            shown.add(&line);
            (shown.given, shown.withdrawn)
        };
        let nothing = (String::new(), String::new());
        assert_eq!(queue("enqueue"), nothing);
        assert_eq!(queue("remove"), nothing);
        assert_eq!(queue("popAll"), (String::new(), "a\n".to_owned()));
        let codex = |role: &str, kinds: &str| {
            format!(
                r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"a"}}],"internal_chat_message_metadata_passthrough":{{"content_item_kinds":[{kinds}]}}}}}}"#
            )
        };
        let hook = r#""hooks.additional_context""#;
        check(&codex("developer", hook), "a\n");
        check(&codex("developer", ""), "");
        check(&codex("developer", &format!(r#"{hook},"other""#)), "");
        check(&codex("user", hook), "a\n");
        check(&codex("user", ""), "a\n");
        check(&codex("assistant", hook), "");
        check(
            r#"{"type":"response_item","payload":{"type":"function_call_output","output":"a"}}"#,
            "",
        );
        check(
            r#"{"id":"1","type":"user","content":[{"text":"a"},{"text":"<hook_context>b\nc</hook_context>"}]}"#,
            "a\nb\nc\n",
        );
        check(
            r#"{"id":"1","type":"gemini","content":[{"text":"<hook_context>b</hook_context>"}]}"#,
            "",
        );
        let result = |output: &str| {
            let result =
                format!(r#"{{"functionResponse":{{"response":{{"output":"{output}"}}}}}}"#);
            format!(
                r#"{{"id":"1","type":"gemini","content":"x","toolCalls":[{{"result":[{result}]}}]}}"#
            )
        };
        let hook = r"\n\n<hook_context>b\nc</hook_context>";
        check(&result(&format!("found{hook}")), "b\nc\n");
        check(&result(hook), "b\nc\n");
        check(&result(&format!("{hook} and more")), "");
        check(&result(r"x<hook_context>b</hook_context>"), "");
        check(&result(r"\n\n<hook_context>b<i>c</hook_context>"), "");
        check(&result("b"), "");
        // Only the hook's text of a tool result counts.
        check(
            &result(&format!("{hook}\\n\\n<hook_context></hook_context>")),
            "\n",
        );
        let whole = r#"{"id":"1","type":"gemini","toolCalls":[{"result":"b"},{"result":null},{}]}"#;
        check(whole, "");
        // The first line of a tail is incomplete.
        check(&format!("ent\":\"x\"}}\n{added}\nnull\n7"), "a\nb\n");
    }
}
