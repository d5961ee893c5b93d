//! What an agent's transcript shows as given to it: what its hooks added, and what was submitted.
//! Never what the agent said itself, nor what its tools found: both can repeat anything. Of Gemini
//! CLI's tools only what its own hook has put behind their results.

use serde::Deserialize;
use serde_json::Value;

/// How much at the end of a transcript is looked at.
pub const TAIL: u64 = 256 << 10;

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    attachment: Option<Attachment>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    payload: Option<Payload>,
    /// Of a user, as Gemini CLI writes it.
    #[serde(default)]
    content: Value,
    /// Of Gemini CLI's model, with what each gave back.
    #[serde(default, rename = "toolCalls")]
    calls: Value,
}

/// What Codex writes of a conversation.
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
    /// What a hook has added, and nothing else.
    fn is_given(&self) -> bool {
        let is_hooks = |kind: &String| kind == "hooks.additional_context";
        let kinds = &self.about.content_item_kinds;
        let is_added = !kinds.is_empty() && kinds.iter().all(is_hooks);
        self.kind == "message" && self.role == "developer" && is_added
    }
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

/// The texts that were given, one after another; lines that mean nothing are passed over.
pub fn given(tail: &str) -> String {
    let records = tail
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    records.map(|record| texts(&record)).collect()
}

fn texts(record: &Record) -> String {
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
        ("user", _, Some(message)) if message.role == "user" => {
            joined(&message.content, |part| text_of(part, "text"))
        }
        ("user", _, None) if record.content.is_array() => joined(&record.content, added),
        ("gemini", _, None) if record.calls.is_array() => joined_calls(&record.calls),
        (_, _, _) => String::new(),
    }
}

const OPEN: &str = "<hook_context>";
const CLOSE: &str = "</hook_context>";

/// What a hook of Gemini CLI's has added to a prompt. No message can hold these tags: a `<` in it is
/// written otherwise.
fn added(part: &Value) -> Option<&str> {
    let inside = part.get("text")?.as_str()?.strip_prefix(OPEN)?;
    inside.strip_suffix(CLOSE)
}

/// What hooks have added to the results of calls.
fn joined_calls(calls: &Value) -> String {
    let calls = calls.as_array().into_iter().flatten();
    let results = calls.filter_map(|call| call.get("result"));
    let lists = results.filter(|result| result.is_array());
    lists.map(|result| joined(result, behind)).collect()
}

/// What a hook of Gemini CLI's has added to a tool's result: the very last of it, in tags.
fn behind(part: &Value) -> Option<&str> {
    let given = part.get("functionResponse")?.get("response")?;
    let output = given.get("output")?.as_str()?.strip_suffix(CLOSE)?;
    let (before, inside) = output.rsplit_once(OPEN)?;
    let is_ours = before.ends_with("\n\n") && !inside.contains(['<', '>']);
    is_ours.then_some(inside)
}

/// The text of a part that is of this kind.
fn text_of<'a>(part: &'a Value, kind: &str) -> Option<&'a str> {
    let is_it = part.get("type").and_then(Value::as_str) == Some(kind);
    part.get("text").filter(|_| is_it).and_then(Value::as_str)
}

/// A text, or the texts of a list.
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
    fn only_what_was_given_counts() {
        let check = |line: &str, want: &str| assert_eq!(given(line), want, "{line}");
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
        let codex = |role: &str, kinds: &str| {
            format!(
                r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"a"}}],"internal_chat_message_metadata_passthrough":{{"content_item_kinds":[{kinds}]}}}}}}"#
            )
        };
        let hook = r#""hooks.additional_context""#;
        check(&codex("developer", hook), "a\n");
        check(&codex("developer", ""), "");
        check(&codex("developer", &format!(r#"{hook},"other""#)), "");
        check(&codex("user", hook), "");
        check(&codex("assistant", hook), "");
        check(
            r#"{"type":"response_item","payload":{"type":"function_call_output","output":"a"}}"#,
            "",
        );
        check(
            r#"{"id":"1","type":"user","content":[{"text":"a"},{"text":"<hook_context>b\nc</hook_context>"}]}"#,
            "b\nc\n",
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
        // A tool's own words, without its hook's.
        check(
            &result(&format!("{hook}\\n\\n<hook_context></hook_context>")),
            "\n",
        );
        let whole = r#"{"id":"1","type":"gemini","toolCalls":[{"result":"b"},{"result":null},{}]}"#;
        check(whole, "");
        // The first line of a tail is cut off.
        check(&format!("ent\":\"x\"}}\n{added}\nnull\n7"), "a\nb\n");
    }
}
