//! What an agent's transcript shows as given to it: what its hooks added, and what was submitted.
//! Never what the agent said itself, nor what its tools found: both can repeat anything.

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
    match (record.kind.as_str(), &record.attachment, &record.message) {
        ("attachment", Some(attachment), _) if attachment.kind == "hook_additional_context" => {
            joined(&attachment.content, Value::as_str)
        }
        ("user", _, Some(message)) if message.role == "user" => joined(&message.content, |part| {
            let is_text = part.get("type").and_then(Value::as_str) == Some("text");
            part.get("text").filter(|_| is_text).and_then(Value::as_str)
        }),
        (_, _, _) => String::new(),
    }
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
        // The first line of a tail is cut off.
        check(&format!("ent\":\"x\"}}\n{added}\nnull\n7"), "a\nb\n");
    }
}
