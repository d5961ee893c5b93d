//! OpenAI's chat completions, which OpenCode uses: `POST /v1/chat/completions`.

use super::plan::Plan;
use super::reply::{Events, ModelReply};
use super::request::{Author, Dialect, Malformed, ModelRequest, list, text};
use serde_json::{Value, json};

pub(super) fn read(body: &Value) -> Result<ModelRequest, Malformed> {
    let tools = list(body, "tools")?.iter();
    let named = |tool: &Value| text(&tool["function"], "name").map(str::to_owned);
    let mut asked = ModelRequest {
        dialect: Dialect::OpenCode,
        model: text(body, "model")?.to_owned(),
        stream: body["stream"] == true,
        tools: tools.map(named).collect::<Result<_, _>>()?,
        pieces: Vec::new(),
        conversation: None,
        fields: Vec::new(),
    };
    for message in list(body, "messages")? {
        let voice = match text(message, "role")? {
            "user" => Author::User,
            "assistant" => Author::Model,
            "system" | "developer" => Author::System,
            "tool" => Author::Tool,
            other => return Err(format!("unknown role {other:?}")),
        };
        match &message["content"] {
            // A call has no text.
            Value::Null => asked.say(voice, ""),
            Value::String(text) => asked.say(voice, text),
            _ => {
                for part in list(message, "content")? {
                    asked.say(voice, part["text"].as_str().unwrap_or_default());
                }
            }
        }
    }
    Ok(asked)
}

pub(super) fn answer(asked: &ModelRequest, plan: &Plan, number: u64) -> ModelReply {
    let of = |object: &str| {
        let id = format!("chatcmpl-lab{number}");
        json!({"id": id, "object": object, "created": 0, "model": asked.model})
    };
    let reason = plan.call.as_ref().map_or("stop", |_| "tool_calls");
    let calls = plan.call.as_ref().map(|call| {
        let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
        let id = format!("call_lab{number}");
        json!([{"index": 0, "id": id, "type": "function", "function": function}])
    });
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10});
    if !asked.stream {
        let mut message = json!({"role": "assistant", "content": plan.whole()});
        if let Some(calls) = calls {
            message["tool_calls"] = calls;
        }
        let mut whole = of("chat.completion");
        whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": reason}]);
        whole["usage"] = usage;
        return ModelReply::json_after(plan.slow, 200, &whole);
    }
    let chunk = |delta: Value, reason: Option<&str>| {
        let mut chunk = of("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        chunk
    };
    let mut events = Events::default();
    events.plain(&chunk(json!({"role": "assistant", "content": ""}), None));
    for (wait, word) in plan.words() {
        events.wait(wait);
        events.plain(&chunk(json!({"content": word}), None));
    }
    if let Some(calls) = calls {
        events.plain(&chunk(json!({"tool_calls": calls}), None));
    }
    events.plain(&chunk(json!({}), Some(reason)));
    let mut last = of("chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage;
    events.plain(&last);
    events.done();
    events.answer()
}
