//! Tests of the built-in manifests on hook events of the real programs.

use super::{SIZES, at, delivery, manifest, screen};
use crate::pty::screen_watch::read_screen;
use posthaste_core::driver::{HookCall, Input};
use posthaste_core::harness::Sighting;

/// Feed recorded hook events of the real programs, and check the activity after the last one.
#[test]
fn hooks_alone_determine_the_activity() {
    let check = |agent: &str, events: &[(&str, &str)], want: &str| {
        let harness = manifest(agent);
        let mut delivery = delivery(&harness);
        let idle = screen(&harness, agent, SIZES[1], "idle");
        let sighting = read_screen(&harness, &idle, 0);
        delivery.on(at(1), &Input::OutputSeen);
        // The program is ready. From here on, only hooks report its activity.
        let claims = Vec::new();
        delivery.on(
            at(2),
            &Input::ScreenChanged(Sighting { claims, ..sighting }),
        );
        for (n, (event, payload)) in (1..).zip(events) {
            let report = harness.hook.read(event, payload);
            let called = Input::HookCalled {
                call: HookCall(n),
                report: Box::new(report),
                takes_mail: false,
            };
            delivery.on(at(n * 1_000), &called);
        }
        let judged = delivery.activity();
        let got = format!("{}: {}", judged.activity, judged.evidence);
        assert_eq!(got, want, "{agent} {events:?}");
    };
    let prompt = r#"{"session_id":"a","prompt":"hi"}"#;
    let bash = r#"{"session_id":"a","tool_name":"Bash"}"#;
    for (agent, ends) in [
        ("claude", "Stop"),
        ("codex", "Stop"),
        ("codex", "Interrupt"),
    ] {
        let turn = [
            ("SessionStart", r#"{"session_id":"a","source":"startup"}"#),
            ("UserPromptSubmit", prompt),
            ("PreToolUse", bash),
            ("PermissionRequest", bash),
            ("PostToolUse", bash),
            (ends, r#"{"session_id":"a"}"#),
        ];
        check(agent, &turn[..2], "working: hook UserPromptSubmit");
        check(agent, &turn[..4], "blocked: hook PermissionRequest");
        check(agent, &turn[..5], "working: hook PostToolUse");
        check(agent, &turn, &format!("idle: hook {ends}"));
        // Events of another conversation are ignored.
        let other = [turn[1], ("Stop", r#"{"session_id":"b"}"#)];
        check(agent, &other, "working: hook UserPromptSubmit");
        let cleared = [
            turn[1],
            ("SessionEnd", r#"{"session_id":"a","reason":"clear"}"#),
            ("SessionStart", r#"{"session_id":"b","source":"clear"}"#),
            ("UserPromptSubmit", r#"{"session_id":"b","prompt":"hi"}"#),
        ];
        check(agent, &cleared, "working: hook UserPromptSubmit");
    }
    let asks = r#"{"session_id":"a","notification_type":"ToolPermission","message":"Shell"}"#;
    let turn = [
        ("BeforeAgent", prompt),
        ("BeforeTool", bash),
        ("Notification", asks),
        ("AfterAgent", prompt),
    ];
    check("gemini", &turn[..1], "working: hook BeforeAgent");
    check("gemini", &turn[..3], "blocked: hook Notification");
    check("gemini", &turn, "idle: hook AfterAgent");
    let status = |status: &str| format!(r#"{{"session_id":"a","status":"{status}"}}"#);
    let (busy, idle) = (status("busy"), status("idle"));
    let asks = r#"{"session_id":"a","tool_name":"bash touch x"}"#;
    let turn = [
        ("chat.message", prompt),
        ("session.status", &*busy),
        ("permission.asked", asks),
        ("permission.replied", asks),
        ("session.status", &*idle),
        ("chat.message", r#"{"session_id":"b","prompt":"hi"}"#),
    ];
    check("opencode", &turn[..2], "working: hook session.status");
    check("opencode", &turn[..3], "blocked: hook permission.asked");
    check("opencode", &turn[..4], "working: hook permission.replied");
    check("opencode", &turn[..5], "idle: hook session.status");
    check("opencode", &turn, "working: hook chat.message");
}
