//! Google's API, which Gemini CLI uses: `POST /v1beta/models/NAME:generateContent` and
//! `:streamGenerateContent`. The path has the model's name and selects streaming.

use super::plan::Plan;
use super::reply::{Events, ModelReply};
use super::request::{Author, Dialect, Malformed, ModelRequest, fields, list, text};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn read(body: &Value, model: &str, stream: bool) -> Result<ModelRequest, Malformed> {
    let mut asked = ModelRequest {
        dialect: Dialect::Gemini,
        model: model.to_owned(),
        stream,
        tools: Vec::new(),
        pieces: Vec::new(),
        conversation: None,
        fields: ["responseJsonSchema", "responseSchema"]
            .iter()
            .flat_map(|schema| fields(&body["generationConfig"][schema]))
            .collect(),
    };
    for group in list(body, "tools")? {
        for tool in list(group, "functionDeclarations")? {
            asked.tools.push(text(tool, "name")?.to_owned());
        }
    }
    add_content(&mut asked, Author::System, &body["systemInstruction"])?;
    for content in list(body, "contents")? {
        let voice = match text(content, "role")? {
            "user" | "function" => Author::User,
            "model" => Author::Model,
            other => return Err(format!("unknown role {other:?}")),
        };
        add_content(&mut asked, voice, content)?;
    }
    Ok(asked)
}

fn add_content(asked: &mut ModelRequest, voice: Author, content: &Value) -> Result<(), Malformed> {
    for part in list(content, "parts")? {
        let given = &part["functionResponse"]["response"];
        match part["text"].as_str() {
            Some(text) => asked.say(voice, text),
            None if !given.is_null() => asked.say(Author::Tool, given.to_string()),
            // A call has no text.
            None => asked.say(voice, ""),
        }
    }
    Ok(())
}

pub(super) fn answer(asked: &ModelRequest, plan: &Plan, number: u64) -> ModelReply {
    let chunk = |parts: Value, reason: Option<&str>| {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        let usage = json!({
            "promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10,
        });
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model})
    };
    let call = plan.call.as_ref().map(|call| {
        let id = format!("lab{number}");
        json!({"functionCall": {"name": call.tool, "args": call.arguments, "id": id}})
    });
    if !asked.stream {
        let spoken = json!({"text": plan.whole()});
        let parts = [Some(spoken), call].into_iter().flatten().collect();
        return ModelReply::json_after(plan.slow, 200, &chunk(parts, Some("STOP")));
    }
    let mut events = Events::default();
    let mut parts = plan.words();
    parts.extend(call.iter().map(|_| (Duration::ZERO, String::new())));
    let last = parts.len() - 1;
    for (at, (wait, word)) in parts.into_iter().enumerate() {
        events.wait(wait);
        let part = match &call {
            Some(call) if at == last => call.clone(),
            _ => json!({"text": word}),
        };
        events.plain(&chunk(json!([part]), (at == last).then_some("STOP")));
    }
    events.answer()
}

pub(super) fn refusal(status: u16, reason: &str) -> ModelReply {
    let error = json!({"code": status, "message": reason, "status": "LAB_ERROR"});
    ModelReply::json(status, &json!({"error": error}))
}
