//! OpenAI's responses, which Codex uses: `POST /v1/responses`. Always streamed.

use super::plan::{Call, Plan};
use super::reply::{Events, ModelReply};
use super::request::{Author, Dialect, Malformed, ModelRequest, fields, list, text};
use serde_json::{Value, json};

/// Namespace of the agent's plain tools, if it sends only namespaces.
const FUNCTIONS: &str = "functions";

pub(super) fn read(body: &Value) -> Result<ModelRequest, Malformed> {
    let mut asked = ModelRequest {
        dialect: Dialect::Codex,
        model: text(body, "model")?.to_owned(),
        stream: body["stream"] == true,
        tools: Vec::new(),
        pieces: Vec::new(),
        conversation: None,
        fields: fields(&body["text"]["format"]["schema"]),
    };
    for tool in list(body, "tools")? {
        offered(&mut asked.tools, tool)?;
    }
    if let Some(instructions) = body["instructions"].as_str() {
        asked.say(Author::System, instructions);
    }
    for item in list(body, "input")? {
        add_item(&mut asked, item)?;
    }
    Ok(asked)
}

/// Return the name of a tool: `NAMESPACE::NAME`, except for plain tools. A tool of the model itself
/// has a type and no name.
fn offered(tools: &mut Vec<String>, tool: &Value) -> Result<(), Malformed> {
    let name = text(tool, "name").or_else(|_| text(tool, "type"))?;
    if tool["type"] != "namespace" {
        tools.push(name.to_owned());
        return Ok(());
    }
    for inner in list(tool, "tools")? {
        let inner = text(inner, "name")?;
        tools.push(match name {
            FUNCTIONS => inner.to_owned(),
            _ => format!("{name}::{inner}"),
        });
    }
    Ok(())
}

fn add_item(asked: &mut ModelRequest, item: &Value) -> Result<(), Malformed> {
    match text(item, "type")? {
        "message" => {
            let voice = match text(item, "role")? {
                "user" => Author::User,
                "assistant" => Author::Model,
                "system" | "developer" => Author::System,
                other => return Err(format!("unknown role {other:?}")),
            };
            if let Some(text) = item["content"].as_str() {
                asked.say(voice, text);
                return Ok(());
            }
            for part in list(item, "content")? {
                // A picture has no text.
                asked.say(voice, part["text"].as_str().unwrap_or_default());
            }
        }
        // For models that write code, the tools are in the conversation.
        "additional_tools" => {
            for tool in list(item, "tools")? {
                offered(&mut asked.tools, tool)?;
            }
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = &item["output"];
            let given = output
                .as_str()
                .map_or_else(|| output.to_string(), str::to_owned);
            asked.say(Author::Tool, given);
        }
        // Calls and thoughts have no text.
        _ => asked.say(Author::Model, ""),
    }
    Ok(())
}

pub(super) fn answer(_: &ModelRequest, plan: &Plan, number: u64) -> ModelReply {
    let id = format!("resp_lab{number}");
    let item = format!("msg_lab{number}");
    let message = |content: Value| json!({"type": "message", "role": "assistant", "id": item, "content": content});
    let mut events = Events::default();
    events.named(&json!({"type": "response.created", "response": {"id": id}}));
    events.named(&json!({
        "type": "response.output_item.added", "output_index": 0, "item": message(json!([])),
    }));
    for (wait, word) in plan.words() {
        events.wait(wait);
        events.named(&json!({
            "type": "response.output_text.delta", "item_id": item, "output_index": 0,
            "content_index": 0, "delta": word,
        }));
    }
    let spoken = message(json!([{"type": "output_text", "text": plan.whole()}]));
    events.named(&json!({
        "type": "response.output_item.done", "output_index": 0, "item": spoken,
    }));
    if let Some(call) = &plan.call {
        events.named(&json!({
            "type": "response.output_item.done", "output_index": 1, "item": called(call, number),
        }));
    }
    let usage = json!({
        "input_tokens": 5, "input_tokens_details": null,
        "output_tokens": 5, "output_tokens_details": null, "total_tokens": 10,
    });
    let response = json!({"id": id, "usage": usage});
    events.named(&json!({"type": "response.completed", "response": response}));
    events.answer()
}

fn called(call: &Call, number: u64) -> Value {
    let call_id = format!("call_lab{number}");
    if let Some(code) = call.arguments.as_str() {
        let id = format!("ctc_lab{number}");
        return json!({
            "type": "custom_tool_call", "id": id, "call_id": call_id, "name": call.tool,
            "namespace": FUNCTIONS, "input": code,
        });
    }
    let mut item = json!({
        "type": "function_call", "id": format!("fc_lab{number}"), "call_id": call_id,
        "name": call.tool, "arguments": call.arguments.to_string(),
    });
    if let Some((namespace, name)) = call.tool.split_once("::") {
        item["namespace"] = json!(namespace);
        item["name"] = json!(name);
    }
    item
}

/// Both of OpenAI's dialects share this error format.
pub(super) fn refusal(status: u16, reason: &str) -> ModelReply {
    let error = json!({"message": reason, "type": "lab_error", "code": null, "param": null});
    ModelReply::json(status, &json!({"error": error}))
}
