//! The plain dialect, as the original's client speaks it.

use super::{ID, at, id, message_state, session};
use crate::param::Payload;
use crate::plain::{AgentInfo, Attach, MessageInfo, Refusal, Reply, Request, Send};
use crate::rpc::{self, ClientLine};
use crate::{Activity, plain};
use jiff::tz::{TimeZone, offset};
use posthaste_core::{Priority, ReceiptState, Step};

fn read(line: &str) -> Result<Request, Refusal> {
    match rpc::read(line.as_bytes()) {
        ClientLine::Plain(request) => request,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn requests_of_the_original_are_parsed() {
    let check = |line: &str, want: Request| {
        assert_eq!(read(line), Ok(want.clone()), "{line}");
        let again = String::from_utf8(want.line()).unwrap();
        assert_eq!(read(&again), Ok(want), "{again}");
    };
    check(
        r#"{"type":"send","priority":"idle-first","from":"concierge","body":"hi","raw":true,"expects_response":true,"er_trigger_id":"1234abcd"}"#,
        Request::Send(Send {
            priority: Priority::IdleFirst,
            from: "concierge".to_owned(),
            body: "hi".to_owned(),
            raw: true,
            expects_response: true,
            er_trigger_id: "1234abcd".to_owned(),
        }),
    );
    for priority in Priority::ALL {
        check(
            &format!(r#"{{"type":"send","priority":"{priority}"}}"#),
            Request::Send(Send {
                priority,
                ..Send::default()
            }),
        );
    }
    for unsaid in [
        r#"{"type":"send"}"#,
        r#"{"type":"send","priority":"","from":null,"body":null,"raw":null}"#,
    ] {
        check(unsaid, Request::Send(Send::default()));
    }
    check(
        r#"{"type":"show","message_id":"3fa8"}"#,
        Request::Show {
            message_id: "3fa8".to_owned(),
        },
    );
    check(r#"{"type":"status"}"#, Request::Status);
    check(r#" {"type":"stop","extra":[1]} "#, Request::Stop);
    check(
        r#"{"type":"hook_event","event_name":"PreToolUse","payload":{"tool_name": "Bash", "n":1.0}}"#,
        Request::HookEvent {
            event_name: "PreToolUse".to_owned(),
            payload: Some(Payload::new(r#"{"tool_name": "Bash", "n":1.0}"#).unwrap()),
        },
    );
    check(
        r#"{"type":"hook_event","event_name":"Stop"}"#,
        Request::HookEvent {
            event_name: "Stop".to_owned(),
            payload: None,
        },
    );
    check(
        r#"{"type":"attach","cols":120,"rows":40,"osc_fg":"rgb:ffff/ffff/ffff","osc_bg":"rgb:0000/0000/0000","colorfgbg":"15;0"}"#,
        Request::Attach(Attach {
            cols: 120,
            rows: 40,
            osc_fg: "rgb:ffff/ffff/ffff".to_owned(),
            osc_bg: "rgb:0000/0000/0000".to_owned(),
            colorfgbg: "15;0".to_owned(),
            ..Attach::default()
        }),
    );
    check(
        r#"{"type":"attach","cols":-1,"rows":70000,"client":"ph","read_only":true,"take":true}"#,
        Request::Attach(Attach {
            cols: 0,
            rows: u16::MAX,
            client: "ph".to_owned(),
            read_only: true,
            take: true,
            ..Attach::default()
        }),
    );
}

#[test]
fn our_requests_follow_the_originals_style() {
    let attach = Request::Attach(Attach {
        cols: 80,
        rows: 24,
        take: true,
        ..Attach::default()
    });
    assert_eq!(
        String::from_utf8(attach.line()).unwrap(),
        "{\"type\":\"attach\",\"cols\":80,\"rows\":24,\"take\":true}\n"
    );
    let hook = Request::HookEvent {
        event_name: "Stop".to_owned(),
        payload: Some(Payload::new("{\n}").unwrap()),
    };
    assert_eq!(
        String::from_utf8(hook.line()).unwrap(),
        "{\"type\":\"hook_event\",\"event_name\":\"Stop\",\"payload\":{ }}\n"
    );
    assert_eq!(
        String::from_utf8(Request::Status.line()).unwrap(),
        "{\"type\":\"status\"}\n"
    );
}

#[test]
fn invalid_requests_get_the_originals_errors() {
    let check = |line: &str, want: &str| {
        let reply = Reply::from(read(line).unwrap_err());
        let text = serde_json::to_string(want).unwrap();
        assert_eq!(
            String::from_utf8(reply.line()).unwrap(),
            format!("{{\"ok\":false,\"error\":{text}}}\n"),
            "{line}"
        );
    };
    for kind in [
        "X",
        "",
        "relaunch",
        "trigger_add",
        "trigger_list",
        "trigger_remove",
        "schedule_add",
        "schedule_list",
        "schedule_remove",
        "set-concierge",
        "remove-concierge",
        "Send",
    ] {
        check(
            &format!(r#"{{"type":"{kind}"}}"#),
            &format!("unknown request type: {kind}"),
        );
    }
    check(r#"{"type":null}"#, "unknown request type: ");
    check(
        r#"{"type":"send","priority":"bogus"}"#,
        "invalid priority: bogus",
    );
    check(
        r#"{"type":5}"#,
        "invalid request: 'type': invalid type: integer `5`, expected a string",
    );
    check(
        r#"{"type":"send","body":["x"]}"#,
        "invalid request: 'body': invalid type: sequence, expected a string",
    );
    check(
        r#"{"type":"send","raw":"yes"}"#,
        "invalid request: 'raw': invalid type: string \"yes\", expected a boolean",
    );
    check(
        r#"{"type":"attach","cols":"80"}"#,
        "invalid request: 'cols': invalid type: string \"80\", expected i64",
    );
    assert_eq!(
        Refusal::NotFound("3fa8".to_owned()).to_string(),
        "message not found: 3fa8"
    );
}

#[test]
fn replies_have_the_originals_format() {
    let check = |reply: Reply, want: &str| {
        let line = reply.line();
        assert_eq!(
            String::from_utf8(line.clone()).unwrap(),
            format!("{want}\n")
        );
        assert_eq!(Reply::read(&line).unwrap(), reply);
    };
    check(Reply::ok(), r#"{"ok":true}"#);
    check(Reply::refused("no"), r#"{"ok":false,"error":"no"}"#);
    check(
        Reply::sent(id()),
        &format!(r#"{{"ok":true,"message_id":"{ID}"}}"#),
    );
    let zone = TimeZone::fixed(offset(2));
    let info = |steps: &[Step]| {
        MessageInfo::new(
            &message_state(steps),
            "/m/bob/1.md".to_owned(),
            at(99),
            &zone,
        )
    };
    check(
        Reply::message(info(&[Step::Offering])),
        &format!(
            r#"{{"ok":true,"message":{{"id":"{ID}","from":"a","priority":"normal","status":"queued","file_path":"/m/bob/1.md","created_at":"2026-01-23 12:00:00"}}}}"#
        ),
    );
    check(
        Reply::message(info(&[Step::Offering, Step::Offered, Step::Accepted])),
        &format!(
            r#"{{"ok":true,"message":{{"id":"{ID}","from":"a","priority":"normal","status":"delivered","file_path":"/m/bob/1.md","created_at":"2026-01-23 12:00:00","delivered_at":"2026-01-23 12:00:02"}}}}"#
        ),
    );
    check(
        Reply::message(MessageInfo::default()),
        r#"{"ok":true,"message":{"id":"","from":"","priority":"","status":"","file_path":"","created_at":""}}"#,
    );
    check(
        Reply::agent(AgentInfo::new(&session(), at(7_300))),
        concat!(
            r#"{"ok":true,"agent":{"name":"bob","command":"claude --model x y","cwd":"/src","#,
            r#""uptime":"2h","state":"active","sub_state":"blocked_on_permission","#,
            r#""state_display_text":"Active (permission)","state_duration":"2h","queued_count":2,"#,
            r#""blocked_on_permission":true,"blocked_tool_name":"Bash"}}"#
        ),
    );
    check(
        Reply::agent(AgentInfo::default()),
        r#"{"ok":true,"agent":{"name":"","command":"","uptime":"","state":"","state_display_text":"","state_duration":"","queued_count":0}}"#,
    );
}

#[test]
fn states_use_the_originals_words() {
    let check = |activity, want: &str, label: &str| {
        let mut session = session();
        session.activity = activity;
        let info = AgentInfo::new(&session, at(63));
        assert_eq!(
            (info.state.as_str(), info.state_display_text.as_str()),
            (want, label)
        );
        assert_eq!(info.blocked_on_permission, activity == Activity::Blocked);
        assert_eq!(info.state_duration, "3s");
        assert_eq!(info.uptime, "1m");
    };
    check(Activity::Starting, "initialized", "Initialized");
    check(Activity::Idle, "idle", "Idle");
    check(Activity::Working, "active", "Active");
    check(Activity::Blocked, "active", "Active (permission)");
    check(Activity::Exited, "exited", "Exited");
}

#[test]
fn a_message_that_never_arrived_is_not_called_delivered() {
    for (state, want) in [
        (ReceiptState::Stored, "queued"),
        (ReceiptState::Offering, "queued"),
        (ReceiptState::Uncertain, "queued"),
        (ReceiptState::Offered, "delivered"),
        (ReceiptState::Accepted, "delivered"),
        (ReceiptState::Read, "delivered"),
        (ReceiptState::Archived, "delivered"),
        (ReceiptState::Deleted, "deleted"),
        (ReceiptState::Cancelled, "cancelled"),
        (ReceiptState::Expired, "expired"),
        (ReceiptState::Failed, "failed"),
    ] {
        assert_eq!(plain::status(state), want);
    }
}
