//! Anthropic's messages, which Claude Code uses: `POST /v1/messages`.

use super::plan::Plan;
use super::reply::{Events, ModelReply};
use super::request::{Author, Dialect, Malformed, ModelRequest, fields, list, shortened, text};
use serde_json::{Value, json};

pub(super) fn read(body: &Value) -> Result<ModelRequest, Malformed> {
    let tools = list(body, "tools")?.iter();
    let mut asked = ModelRequest {
        dialect: Dialect::Claude,
        model: text(body, "model")?.to_owned(),
        stream: body["stream"] == true,
        tools: tools
            .map(|tool| text(tool, "name").map(str::to_owned))
            .collect::<Result<_, _>>()?,
        pieces: Vec::new(),
        conversation: None,
        fields: fields(&body["output_config"]["format"]["schema"]),
    };
    content(&mut asked, Author::System, &body["system"])?;
    for message in list(body, "messages")? {
        let voice = match text(message, "role")? {
            "user" => Author::User,
            "assistant" => Author::Model,
            // The agent inserts system remarks into the conversation.
            "system" => Author::System,
            other => return Err(format!("unknown role {other:?}")),
        };
        content(&mut asked, voice, &message["content"])?;
    }
    Ok(asked)
}

/// A text, or blocks of several kinds.
fn content(asked: &mut ModelRequest, voice: Author, content: &Value) -> Result<(), Malformed> {
    let blocks = match content {
        Value::Null => return Ok(()),
        Value::String(text) => {
            asked.say(voice, text);
            return Ok(());
        }
        Value::Array(blocks) => blocks,
        other => return Err(format!("no content: {}", shortened(other))),
    };
    for block in blocks {
        match text(block, "type")? {
            "text" => asked.say(voice, text(block, "text")?),
            "tool_result" => content_of_result(asked, &block["content"]),
            // Calls, thoughts and pictures have no text that tests search for.
            _ => asked.say(voice, ""),
        }
    }
    Ok(())
}

fn content_of_result(asked: &mut ModelRequest, content: &Value) {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    let given = content
        .as_str()
        .map_or_else(|| texts.join("\n"), str::to_owned);
    asked.say(Author::Tool, given);
}

pub(super) fn answer(asked: &ModelRequest, plan: &Plan, number: u64) -> ModelReply {
    let id = format!("msg_lab{number}");
    let reason = plan.call.as_ref().map_or("end_turn", |_| "tool_use");
    let call = plan.call.as_ref().map(|call| {
        let (id, input) = (format!("toolu_lab{number}"), &call.arguments);
        json!({"type": "tool_use", "id": id, "name": call.tool, "input": input})
    });
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    });
    if asked.stream {
        return stream(&message, plan, call, reason);
    }
    let mut whole = message;
    let spoken = json!({"type": "text", "text": plan.whole()});
    whole["content"] = [Some(spoken), call].into_iter().flatten().collect();
    whole["stop_reason"] = json!(reason);
    ModelReply::json_after(plan.slow, 200, &whole)
}

fn stream(message: &Value, plan: &Plan, call: Option<Value>, reason: &str) -> ModelReply {
    let mut events = Events::default();
    events.named(&json!({"type": "message_start", "message": message}));
    let begin = |index: u8, block: &Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u8, delta: &Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let end = |index: u8| json!({"type": "content_block_stop", "index": index});
    events.named(&begin(0, &json!({"type": "text", "text": ""})));
    for (wait, word) in plan.words() {
        events.wait(wait);
        events.named(&delta(0, &json!({"type": "text_delta", "text": word})));
    }
    events.named(&end(0));
    if let Some(mut call) = call {
        let input = call["input"].take().to_string();
        call["input"] = json!({});
        events.named(&begin(1, &call));
        events.named(&delta(
            1,
            &json!({"type": "input_json_delta", "partial_json": input}),
        ));
        events.named(&end(1));
    }
    events.named(&json!({
        "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 9},
    }));
    events.named(&json!({"type": "message_stop"}));
    events.answer()
}

pub(super) fn refusal(status: u16, reason: &str) -> ModelReply {
    let error = json!({"type": "lab_error", "message": reason});
    ModelReply::json(status, &json!({"type": "error", "error": error}))
}
