//! Replies of the model server in each vendor's format.

use super::{
    CHAT, GENERATE, MESSAGES, RESPONSES, STREAM, Stage, claude, codex, conversation, gemini,
    opencode,
};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn claude_gets_a_stream() {
    assert_snapshot!(Stage::new().post(MESSAGES, &claude("reply=hi", true)), @r#"
    HTTP/1.1 200 OK

    event: message_start
    data: {"message":{"content":[],"id":"msg_lab1","model":"claude-lab","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":5,"output_tokens":1}},"type":"message_start"}

    event: content_block_start
    data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

    event: content_block_delta
    data: {"delta":{"text":"hi","type":"text_delta"},"index":0,"type":"content_block_delta"}

    event: content_block_stop
    data: {"index":0,"type":"content_block_stop"}

    event: message_delta
    data: {"delta":{"stop_reason":"end_turn","stop_sequence":null},"type":"message_delta","usage":{"output_tokens":9}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
    assert_snapshot!(Stage::new().post(MESSAGES, &claude("reply=hi\nbash=ls", true)), @r#"
    HTTP/1.1 200 OK

    event: message_start
    data: {"message":{"content":[],"id":"msg_lab1","model":"claude-lab","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":5,"output_tokens":1}},"type":"message_start"}

    event: content_block_start
    data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

    event: content_block_delta
    data: {"delta":{"text":"hi","type":"text_delta"},"index":0,"type":"content_block_delta"}

    event: content_block_stop
    data: {"index":0,"type":"content_block_stop"}

    event: content_block_start
    data: {"content_block":{"id":"toolu_lab1","input":{},"name":"Bash","type":"tool_use"},"index":1,"type":"content_block_start"}

    event: content_block_delta
    data: {"delta":{"partial_json":"{\"command\":\"ls\",\"description\":\"lab command\"}","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

    event: content_block_stop
    data: {"index":1,"type":"content_block_stop"}

    event: message_delta
    data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"output_tokens":9}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
}

#[test]
fn claude_gets_a_whole_reply() {
    assert_snapshot!(Stage::new().post(MESSAGES, &claude("reply=hi\nbash=ls", false)), @r#"
    HTTP/1.1 200 OK

    {"content":[{"text":"hi","type":"text"},{"id":"toolu_lab1","input":{"command":"ls","description":"lab command"},"name":"Bash","type":"tool_use"}],"id":"msg_lab1","model":"claude-lab","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":{"input_tokens":5,"output_tokens":1}}
    "#);
}

#[test]
fn codex_gets_a_stream() {
    assert_snapshot!(Stage::new().post(RESPONSES, &codex("reply=hi")), @r#"
    HTTP/1.1 200 OK

    event: response.created
    data: {"response":{"id":"resp_lab1"},"type":"response.created"}

    event: response.output_item.added
    data: {"item":{"content":[],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.added"}

    event: response.output_text.delta
    data: {"content_index":0,"delta":"hi","item_id":"msg_lab1","output_index":0,"type":"response.output_text.delta"}

    event: response.output_item.done
    data: {"item":{"content":[{"text":"hi","type":"output_text"}],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.done"}

    event: response.completed
    data: {"response":{"id":"resp_lab1","usage":{"input_tokens":5,"input_tokens_details":null,"output_tokens":5,"output_tokens_details":null,"total_tokens":10}},"type":"response.completed"}
    "#);
    let call = r#"reply=hi
tool=mcp__ph::send:{"to":"a"}"#;
    assert_snapshot!(Stage::new().post(RESPONSES, &codex(call)), @r#"
    HTTP/1.1 200 OK

    event: response.created
    data: {"response":{"id":"resp_lab1"},"type":"response.created"}

    event: response.output_item.added
    data: {"item":{"content":[],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.added"}

    event: response.output_text.delta
    data: {"content_index":0,"delta":"hi","item_id":"msg_lab1","output_index":0,"type":"response.output_text.delta"}

    event: response.output_item.done
    data: {"item":{"content":[{"text":"hi","type":"output_text"}],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.done"}

    event: response.output_item.done
    data: {"item":{"arguments":"{\"to\":\"a\"}","call_id":"call_lab1","id":"fc_lab1","name":"send","namespace":"mcp__ph","type":"function_call"},"output_index":1,"type":"response.output_item.done"}

    event: response.completed
    data: {"response":{"id":"resp_lab1","usage":{"input_tokens":5,"input_tokens_details":null,"output_tokens":5,"output_tokens_details":null,"total_tokens":10}},"type":"response.completed"}
    "#);
}

#[test]
fn codex_gets_code_if_it_wants_code() {
    let stage = Stage::new();
    let mut body = codex("reply=hi\nbash=ls");
    body["tools"] = Value::Null;
    let functions = json!({"type": "namespace", "name": "functions", "tools": [
        {"type": "custom", "name": "exec"},
    ]});
    let clock = json!({"type": "namespace", "name": "clock", "tools": [{"name": "sleep"}]});
    let tools =
        json!({"type": "additional_tools", "role": "developer", "tools": [functions, clock]});
    body["input"].as_array_mut().unwrap().insert(0, tools);
    let answer = stage.post(RESPONSES, &body);
    let call = answer
        .lines()
        .find(|line| line.contains("custom_tool_call"));
    assert_snapshot!(call.unwrap(), @r#"data: {"item":{"call_id":"call_lab1","id":"ctc_lab1","input":"text(await tools.exec_command({\"cmd\":\"ls\"}))","name":"exec","namespace":"functions","type":"custom_tool_call"},"output_index":1,"type":"response.output_item.done"}"#);
    assert_snapshot!(conversation(stage.only()), @r#"
    Codex gpt-lab ["exec", "clock::sleep"]
    System: be good
    System: rules
    User: reply=hi
    bash=ls
    "#);
}

#[test]
fn opencode_gets_a_stream() {
    assert_snapshot!(Stage::new().post(CHAT, &opencode("reply=hi", true)), @r#"
    HTTP/1.1 200 OK

    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"hi"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"stop","index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":5,"total_tokens":10}}

    data: [DONE]
    "#);
    assert_snapshot!(Stage::new().post(CHAT, &opencode("reply=hi\nbash=ls", true)), @r#"
    HTTP/1.1 200 OK

    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"hi"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"command\":\"ls\",\"description\":\"lab command\"}","name":"bash"},"id":"call_lab1","index":0,"type":"function"}]},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"tool_calls","index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":5,"total_tokens":10}}

    data: [DONE]
    "#);
}

#[test]
fn opencode_gets_a_whole_reply() {
    assert_snapshot!(Stage::new().post(CHAT, &opencode("reply=hi\nbash=ls", false)), @r#"
    HTTP/1.1 200 OK

    {"choices":[{"finish_reason":"tool_calls","index":0,"message":{"content":"hi","role":"assistant","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\",\"description\":\"lab command\"}","name":"bash"},"id":"call_lab1","index":0,"type":"function"}]}}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion","usage":{"completion_tokens":5,"prompt_tokens":5,"total_tokens":10}}
    "#);
}

#[test]
fn gemini_gets_a_stream() {
    assert_snapshot!(Stage::new().post(STREAM, &gemini("reply=hi")), @r#"
    HTTP/1.1 200 OK

    data: {"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}
    "#);
    assert_snapshot!(Stage::new().post(STREAM, &gemini("reply=hi\nbash=ls")), @r#"
    HTTP/1.1 200 OK

    data: {"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}

    data: {"candidates":[{"content":{"parts":[{"functionCall":{"args":{"command":"ls","description":"lab command"},"id":"lab1","name":"run_shell_command"}}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}
    "#);
}

#[test]
fn gemini_gets_a_whole_reply() {
    assert_snapshot!(Stage::new().post(GENERATE, &gemini("reply=hi\nbash=ls")), @r#"
    HTTP/1.1 200 OK

    {"candidates":[{"content":{"parts":[{"text":"hi"},{"functionCall":{"args":{"command":"ls","description":"lab command"},"id":"lab1","name":"run_shell_command"}}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}
    "#);
}

#[test]
fn errors_have_each_vendors_format() {
    let stage = Stage::new();
    assert_snapshot!(stage.post(MESSAGES, &claude("http=529", true)), @r#"
    HTTP/1.1 529 <none>

    {"error":{"message":"lab error 529","type":"lab_error"},"type":"error"}
    "#);
    assert_snapshot!(stage.post(RESPONSES, &codex("http=429")), @r#"
    HTTP/1.1 429 Too Many Requests

    {"error":{"code":null,"message":"lab error 429","param":null,"type":"lab_error"}}
    "#);
    assert_snapshot!(stage.post(CHAT, &opencode("http=500", true)), @r#"
    HTTP/1.1 500 Internal Server Error

    {"error":{"code":null,"message":"lab error 500","param":null,"type":"lab_error"}}
    "#);
    assert_snapshot!(stage.post(STREAM, &gemini("http=503")), @r#"
    HTTP/1.1 503 Service Unavailable

    {"error":{"code":503,"message":"lab error 503","status":"LAB_ERROR"}}
    "#);
}

#[test]
fn a_reply_with_a_schema_is_json() {
    let mut body = gemini("hang=60");
    let properties = json!({"reasoning": {}, "next_speaker": {}});
    body["generationConfig"] = json!({"responseJsonSchema": {"properties": properties}});
    let answer = Stage::new().post(GENERATE, &body);
    assert!(
        answer.contains(r#"{\"next_speaker\":\"user\",\"reasoning\":\"x\"}"#),
        "{answer}"
    );
}
