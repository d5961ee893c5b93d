//! Hooks of an agent that a person started without a session: they print new mail at its prompts,
//! each message once.

use crate::common::Ph;
use serde_json::{Value, json};

fn prompt(ph: &Ph, args: &[&str]) -> crate::common::Call {
    let payload = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hi"});
    let call = ph.call(&[&["hook", "claude"], args].concat());
    call.stdin(payload.to_string())
}

#[test]
fn new_mail_is_shown_at_a_prompt_once() {
    let ph = Ph::new();
    assert_eq!(prompt(&ph, &["--agent", "coder"]).run().ok(), "");
    let id = ph.send("coder 'fix the login page'");
    assert_eq!(prompt(&ph, &[]).run().ok(), "");
    assert_eq!(prompt(&ph, &["--agent", "other"]).run().ok(), "");
    assert_eq!(prompt(&ph, &["--agent", "No Name"]).run().ok(), "");
    assert_eq!(
        prompt(&ph, &["--agent", "coder", "--injected"]).run().ok(),
        ""
    );
    let tool = json!({"hook_event_name": "PostToolUse"}).to_string();
    let call = ph.call(&["hook", "claude", "--agent", "coder"]);
    assert_eq!(call.stdin(tool).run().ok(), "");
    let printed: Value = prompt(&ph, &["--agent", "coder"]).run().json();
    let output = &printed["hookSpecificOutput"];
    assert_eq!(output["hookEventName"], "UserPromptSubmit");
    let text = output["additionalContext"].as_str().expect("a text");
    assert!(
        text.contains("fix the login page") && text.contains(&id[..8]),
        "{text}"
    );
    assert_eq!(prompt(&ph, &["--agent", "coder"]).run().ok(), "");
    // PH_AGENT overrides the agent for which the hook was installed.
    ph.send("tester again");
    let call = prompt(&ph, &["--agent", "coder"]).agent("tester");
    assert!(call.run().ok().contains("again"));
}
