//! Methods as lines: calls, results and invalid parameters.

use super::server::Server;
use super::{ID, at, id, session, status};
use crate::Activity;
use crate::client::{self, SessionLine};
use crate::method::{self, Call, Method};
use crate::param::{Dropped, Enabled, Events, KeyText, Payload, PromptText};
use crate::rpc::{self, ClientLine, Failure, Request};
use crate::topic::Interest;
use posthaste_core::{Evidence, IdPrefix, Priority};
use std::collections::BTreeSet;
use std::fmt::Debug;

fn prefix(text: &str) -> IdPrefix {
    IdPrefix::parse(text).unwrap()
}

/// Check a request, its parsed call, its reply and the client's decoding of that.
fn check<M>(params: M, wrap: fn(M) -> Call, written: &str, answered: &str)
where
    M: Method + Clone,
    M::Reply: Debug,
{
    let line = client::request(7, &params);
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{}","params":"#,
        M::NAME
    );
    assert_eq!(
        String::from_utf8(line.clone()).unwrap(),
        format!("{head}{written}}}\n")
    );

    let ClientLine::One(Request { call: Ok(call), .. }) = rpc::read(&line) else {
        panic!("{}: {:?}", M::NAME, rpc::read(&line))
    };
    assert_eq!(call.name(), M::NAME);
    assert_eq!(call, wrap(params), "{}", M::NAME);

    let back = Server::default().reply_to(&line).unwrap();
    assert_eq!(
        back,
        format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{answered}}}\n")
    );
    let Ok(SessionLine::Reply(reply)) = client::parse_line(back.as_bytes()) else {
        panic!("{back}")
    };
    assert!(reply.is_to(7) && !reply.is_to(70));
    let answer = reply.read::<M>().unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), answered);
}

const MESSAGE: &str = concat!(
    r#""id":"3fa8c1d2-0b1c-4d2e-8f3a-4b5c6d7e8f90","from":"a","from_evidence":"flag","to":"bob","#,
    r#""subject":null,"body":"hi","created_at":"2026-01-23T10:00:00Z","read":false,"#,
    r#""thread_id":"3fa8c1d2-0b1c-4d2e-8f3a-4b5c6d7e8f90","reply_to":null,"priority":"normal","#,
    r#""receipt":"offered","reason":null,"receipts":["#,
    r#"{"state":"offering","at":"2026-01-23T10:00:01Z","route":"terminal","evidence":null},"#,
    r#"{"state":"offered","at":"2026-01-23T10:00:02Z","route":"terminal","evidence":null}]"#
);

#[test]
fn methods_of_the_original_keep_its_format() {
    check(
        method::GetStatus {},
        Call::GetStatus,
        "{}",
        concat!(
            r#"{"task_name":"my-feature","task_dir":"/tasks/my-feature","iteration":3,"#,
            r#""max_iterations":50,"current_story":"US-003","agent":"claude","status":"running","#,
            r#""interactive_mode":false,"mode_indicator":"autonomous","#,
            r#""started_at":"2026-01-23T10:00:00.000000","updated_at":"2026-01-23T10:15:30.000000","#,
            r#""recent_output":["line 1","line 2"]}"#
        ),
    );
    check(
        method::Stop {},
        Call::Stop,
        "{}",
        r#"{"status":"stop_requested"}"#,
    );
    check(
        method::Checkpoint {},
        Call::Checkpoint,
        "{}",
        r#"{"status":"checkpoint_requested"}"#,
    );
    check(
        method::InjectPrompt {
            prompt: PromptText("Fix the types.".to_owned()),
        },
        Call::InjectPrompt,
        r#"{"prompt":"Fix the types."}"#,
        r#"{"status":"prompt_injected","prompt":"Fix the types."}"#,
    );
    check(
        method::SetInteractiveMode {
            enabled: Enabled(false),
        },
        Call::SetInteractiveMode,
        r#"{"enabled":false}"#,
        r#"{"interactive_mode":false}"#,
    );
    check(
        method::WritePty {
            data: KeyText("ls -la\n".to_owned()),
        },
        Call::WritePty,
        r#"{"data":"ls -la\n"}"#,
        r#"{"status":"ignored","reason":"not in interactive mode"}"#,
    );
    check(
        method::Subscribe {
            events: Events(vec![Interest::Output, Interest::All]),
        },
        Call::Subscribe,
        r#"{"events":["output","*"]}"#,
        r#"{"subscribed":["*","output"]}"#,
    );
    check(
        method::Unsubscribe {
            events: Dropped(vec![Interest::Output]),
        },
        Call::Unsubscribe,
        r#"{"events":["output"]}"#,
        r#"{"subscribed":[]}"#,
    );
}

#[test]
fn mail_methods_round_trip() {
    check(
        method::Send::new(""),
        Call::Send,
        r#"{"body":""}"#,
        &format!(r#"{{{MESSAGE},"is_new":true}}"#),
    );
    check(
        method::Send {
            id: Some(id()),
            from: Some("a".parse().unwrap()),
            from_evidence: Some(Evidence::Ancestry),
            to: Some("bob".parse().unwrap()),
            subject: Some("s".to_owned()),
            body: "two\nlines".to_owned(),
            priority: Some(Priority::IdleFirst),
            reply_to: Some(prefix("3fa8")),
            key: Some("k".to_owned()),
            ttl_ms: Some(1_000),
            not_before: Some(at(0)),
            deadline_ms: Some(2_000),
            expects_reply: true,
            closes: Some(prefix("9b0e")),
            allow_self: true,
            raw: true,
            asked_at: Some(at(0)),
        },
        Call::Send,
        &format!(
            concat!(
                r#"{{"id":"{}","from":"a","from_evidence":"ancestry","to":"bob","subject":"s","#,
                r#""body":"two\nlines","priority":"idle-first","reply_to":"3fa8","key":"k","#,
                r#""ttl_ms":1000,"not_before":"2026-01-23T10:00:00Z","deadline_ms":2000,"#,
                r#""expects_reply":true,"closes":"9b0e","allow_self":true,"raw":true,"#,
                r#""asked_at":"2026-01-23T10:00:00Z"}}"#
            ),
            ID
        ),
        &format!(r#"{{{MESSAGE},"is_new":true}}"#),
    );
    check(
        method::Show { id: prefix("3fa8") },
        Call::Show,
        r#"{"id":"3fa8"}"#,
        &format!(
            r#"{{{MESSAGE},"key":null,"not_before":null,"expires_at":null,"deadline":null,"hops":0,"cause":null,"expects_reply":false,"reply":null,"closes":null,"file":"/m/bob/1.md"}}"#
        ),
    );
    check(
        method::Why { id: prefix(ID) },
        Call::Why,
        &format!(r#"{{"id":"{ID}"}}"#),
        &format!(
            r#"{{"id":"{ID}","receipt":"offered","held":false,"rule":null,"reason":null,"since":"2026-01-23T10:00:02Z","evidence":null,"release":null,"reply":null}}"#
        ),
    );
    check(method::Inbox { all: false }, Call::Inbox, "{}", "[]");
    check(
        method::Inbox { all: true },
        Call::Inbox,
        r#"{"all":true}"#,
        &format!("[{{{MESSAGE}}}]"),
    );
    check(
        method::MarkRead {
            ids: vec![prefix("3fa8"), prefix("4")],
        },
        Call::MarkRead,
        r#"{"ids":["3fa8","4"]}"#,
        &format!(r#"{{"marked":["{ID}"]}}"#),
    );
}

#[test]
fn session_methods_round_trip() {
    check(
        method::CheckMail {},
        Call::CheckMail,
        "{}",
        r#"{"status":"noted"}"#,
    );
    check(
        method::Nudge {
            text: KeyText("now".to_owned()),
            asked_at: Some(at(0)),
        },
        Call::Nudge,
        r#"{"text":"now","asked_at":"2026-01-23T10:00:00Z"}"#,
        r#"{"status":"nudged"}"#,
    );
    check(
        method::Nudge {
            text: KeyText("later".to_owned()),
            asked_at: None,
        },
        Call::Nudge,
        r#"{"text":"later"}"#,
        r#"{"status":"held","reason":"a draft"}"#,
    );
    check(method::Pause {}, Call::Pause, "{}", r#"{"paused":true}"#);
    check(method::Resume {}, Call::Resume, "{}", r#"{"paused":false}"#);
    check(
        method::Session {},
        Call::Session,
        "{}",
        concat!(
            r#"{"name":"bob","activity":"blocked","blocked_on":"Bash","#,
            r#""since":"2026-01-23T10:01:00Z","evidence":"hook PermissionRequest","pid":10,"#,
            r#""child_pid":11,"socket":"/run/bob.sock","command":["claude","--model","x y"],"#,
            r#""cwd":"/src","harness":"claude","started_at":"2026-01-23T10:00:00Z","unread":1,"#,
            r#""queued":2,"paused":"a client asked for a pause","ended_at":null,"exit":null}"#
        ),
    );
    check(
        method::Peek {
            lines: Some(5),
            ansi: true,
        },
        Call::Peek,
        r#"{"lines":5,"ansi":true}"#,
        r#"{"lines":["$ "],"cols":80,"rows":24,"title":null}"#,
    );
    check(
        method::HookEvent {
            harness: Some("claude".to_owned()),
            event_name: "Stop".to_owned(),
            payload: Payload::new("{\n  \"a\": 1.0,\r\n  \"b\": \"x\\ny\"\n}\n").unwrap(),
            takes_context: true,
            run: Some("7".to_owned()),
        },
        Call::HookEvent,
        r#"{"harness":"claude","event_name":"Stop","payload":{   "a": 1.0,    "b": "x\ny" },"takes_context":true,"run":"7"}"#,
        r#"{"status":"noted","output":"hi","offer":3}"#,
    );
    check(
        method::HookEvent {
            harness: None,
            event_name: "Stop".to_owned(),
            payload: Payload::new("null").unwrap(),
            takes_context: false,
            run: None,
        },
        Call::HookEvent,
        r#"{"event_name":"Stop"}"#,
        r#"{"status":"noted"}"#,
    );
    check(
        method::HookTaken { offer: 3 },
        Call::HookTaken,
        r#"{"offer":3}"#,
        r#"{"status":"noted"}"#,
    );
    check(method::Kill {}, Call::Kill, "{}", r#"{"status":"killed"}"#);
}

#[test]
fn every_method_has_a_unique_name_that_is_parsed() {
    let names: BTreeSet<_> = Call::NAMES.iter().collect();
    assert_eq!(names.len(), Call::NAMES.len());
    for name in Call::NAMES {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}"}}"#);
        let ClientLine::One(request) = rpc::read(line.as_bytes()) else {
            panic!("{name}")
        };
        match request.call {
            Ok(call) => assert_eq!(call.name(), *name),
            Err(failure) => assert_eq!(failure.code, Failure::INVALID_PARAMS, "{name}"),
        }
    }
}

#[test]
fn keys_are_forwarded_in_interactive_mode() {
    let mut server = Server::default();
    let mut call = |method: &str, params: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        server.reply_to(line.as_bytes()).unwrap()
    };
    assert_eq!(
        call("set_interactive_mode", r#"{"enabled":true}"#),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"interactive_mode\":true}}\n"
    );
    assert_eq!(
        call("write_pty", r#"{"data":" "}"#),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"status\":\"forwarded\"}}\n"
    );
}

#[test]
fn the_error_names_an_invalid_parameter() {
    let check = |method: &str, params: &str, want: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let ClientLine::One(request) = rpc::read(line.as_bytes()) else {
            panic!("{line}")
        };
        let want = Failure::invalid_params(want);
        assert_eq!(request.call, Err(want), "{line}");
        assert_eq!(request.id.unwrap().get(), "1");
    };
    let prompt = "Missing or empty 'prompt' parameter";
    for params in [
        r#"{"prompt":" \n "}"#,
        r#"{"prompt":5}"#,
        r#"{"prompt":null}"#,
    ] {
        check("inject_prompt", params, prompt);
    }
    let enabled = "Missing or invalid 'enabled' parameter (must be bool)";
    for params in [
        "{}",
        r#"{"enabled":1}"#,
        r#"{"enabled":"true"}"#,
        r#"{"enabled":null}"#,
    ] {
        check("set_interactive_mode", params, enabled);
    }
    let data = "Missing or empty 'data' parameter";
    for params in ["{}", r#"{"data":""}"#, r#"{"data":[1]}"#] {
        check("write_pty", params, data);
    }
    check("send", "{}", "Missing 'body' parameter");
    check(
        "send",
        r#"{"body":5}"#,
        "Invalid 'body' parameter: invalid type: integer `5`, expected a string",
    );
    check(
        "send",
        r#"{"body":"x","to":"A/b"}"#,
        "Invalid 'to' parameter: an agent's name starts with a-z or 0-9, not with 'A'",
    );
    check(
        "send",
        r#"{"body":"x","priority":"bogus"}"#,
        "Invalid 'priority' parameter: unknown variant `bogus`, expected one of `interrupt`, `normal`, `idle-first`, `idle`",
    );
    check(
        "send",
        r#"{"body":"x","reply_to":"xyz"}"#,
        "Invalid 'reply_to' parameter: an id is made of 0-9, a-f and '-'",
    );
    check(
        "send",
        r#"{"body":"x","ttl_ms":-1}"#,
        "Invalid 'ttl_ms' parameter: invalid value: integer `-1`, expected u64",
    );
    check(
        "send",
        r#"{"body":"x","raw":"yes"}"#,
        "Invalid 'raw' parameter: invalid type: string \"yes\", expected a boolean",
    );
    check("show", "{}", "Missing 'id' parameter");
    check(
        "why",
        r#"{"id":""}"#,
        "Invalid 'id' parameter: an id cannot be empty",
    );
    check("mark_read", "{}", "Missing 'ids' parameter");
    check(
        "mark_read",
        r#"{"ids":["3fa8",7]}"#,
        "Invalid 'ids' parameter: invalid type: integer `7`, expected a string",
    );
    check("nudge", "{}", "Missing or empty 'text' parameter");
    check(
        "peek",
        r#"{"lines":"5"}"#,
        "Invalid 'lines' parameter: invalid type: string \"5\", expected u64",
    );
    check("hook_event", "{}", "Missing 'event_name' parameter");
    check("hook_taken", "{}", "Missing 'offer' parameter");
    check(
        "inbox",
        r#"{"all":1}"#,
        "Invalid 'all' parameter: invalid type: integer `1`, expected a boolean",
    );
    the_error_names_an_invalid_word();
}

fn the_error_names_an_invalid_word() {
    for (field, value) in [("id", "no"), ("from_evidence", "no"), ("not_before", "no")] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"send","params":{{"body":"x","{field}":"{value}"}}}}"#
        );
        let ClientLine::One(request) = rpc::read(line.as_bytes()) else {
            panic!("{line}")
        };
        let text = request.call.unwrap_err().message;
        assert!(
            text.starts_with(&format!("Invalid '{field}' parameter: ")),
            "{text}"
        );
    }
}

#[test]
fn the_error_shortens_an_invalid_value() {
    let long = "x".repeat(100_000);
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"inbox","params":{{"all":"\u001b{long}"}}}}"#);
    let ClientLine::One(request) = rpc::read(line.as_bytes()) else {
        panic!("a request")
    };
    let text = request.call.unwrap_err().message;
    assert!(text.len() < 400 && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn null_and_unknown_parameters_are_ignored() {
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"send","params":{"body":"x","to":null,"raw":null,"colour":"red"}}"#;
    let ClientLine::One(request) = rpc::read(line) else {
        panic!("a request")
    };
    assert_eq!(request.call, Ok(Call::Send(method::Send::new("x"))));
}

#[test]
fn sessions_and_states_round_trip() {
    let json = serde_json::to_string(&session()).unwrap();
    assert_eq!(
        serde_json::from_str::<crate::Session>(&json).unwrap(),
        session()
    );
    let json = serde_json::to_string(&status()).unwrap();
    assert_eq!(
        serde_json::from_str::<crate::Status>(&json).unwrap(),
        status()
    );
    for activity in [
        Activity::Starting,
        Activity::Idle,
        Activity::Working,
        Activity::Blocked,
        Activity::Exited,
    ] {
        assert_eq!(
            serde_json::to_string(&activity).unwrap(),
            format!("\"{activity}\"")
        );
    }
}
