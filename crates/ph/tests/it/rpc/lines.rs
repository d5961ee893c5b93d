//! Replies to request lines, valid and invalid.

use crate::common::session::{Session, Wire};

const QUIET: &str = "echo ready; exec cat";

/// Sent after every case: shows that no other reply comes and that the connection still works.
const MARK: &str = r#"{"jsonrpc":"2.0","id":"mark","method":"unsubscribe"}"#;

/// Send a line and return every reply to it.
fn answers(wire: &mut Wire, line: &[u8]) -> Vec<String> {
    wire.send_line(line);
    wire.send_line(MARK);
    let mut heard = Vec::new();
    loop {
        let line = wire.line();
        if line.starts_with(r#"{"jsonrpc":"2.0","id":"mark","#) {
            return heard;
        }
        heard.push(line);
    }
}

fn error(id: &str, code: i32, text: &str) -> Vec<String> {
    let text = serde_json::to_string(text).expect("a text");
    let error = format!(r#"{{"code":{code},"message":{text}}}"#);
    vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)]
}

fn result(id: &str, result: &str) -> Vec<String> {
    vec![format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    )]
}

#[test]
fn a_line_that_is_not_a_request_gets_an_error_and_the_connection_goes_on() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let mut check = |line: &[u8], code: i32, text: &str| {
        let shown = String::from_utf8_lossy(line);
        assert_eq!(
            answers(&mut wire, line),
            error("null", code, text),
            "{shown}"
        );
    };
    for broken in [
        "{",
        "}",
        "not json",
        "{\"jsonrpc\":\"2.0\",",
        r#"{"jsonrpc":"2.0","id":1,"method":"stop"}}"#,
        "[1,2",
        "{'a':1}",
        "\u{0}",
    ] {
        check(broken.as_bytes(), -32700, "Parse error");
    }
    check(b"\xff\xfe{}", -32700, "Parse error");
    check(&vec![b'['; 100_000], -32700, "Parse error");
    for other in ["1", "-1.5", "\"text\"", "null", "true", "[]"] {
        check(other.as_bytes(), -32600, "Invalid request");
    }
    for version in ["{}", r#"{"jsonrpc":"1.0"}"#, r#"{"jsonrpc":2.0}"#] {
        check(version.as_bytes(), -32600, "Invalid JSON-RPC version");
    }
    for nameless in [r#"{"jsonrpc":"2.0"}"#, r#"{"jsonrpc":"2.0","method":5}"#] {
        check(nameless.as_bytes(), -32600, "Missing method");
    }
}

#[test]
fn a_request_is_answered_under_its_id_as_it_came() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let none = r#"{"subscribed":[]}"#;
    for id in [
        "1",
        "0",
        "-7",
        "1.0",
        "1e3",
        "12345678901234567890123",
        "\"\"",
        "\"é \\u00e9 \\\"\"",
        "true",
        "false",
        "[1,null]",
        r#"{"a":{"b":null}}"#,
    ] {
        let say = |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#);
        for (rest, want) in [
            (r#""method":"unsubscribe""#, result(id, none)),
            (
                r#""method":"foo""#,
                error(id, -32601, "Method not found: foo"),
            ),
            (r#""method":7"#, error(id, -32600, "Missing method")),
            (r#""params":{}"#, error(id, -32600, "Missing method")),
        ] {
            let line = say(rest);
            assert_eq!(answers(&mut wire, line.as_bytes()), want, "{line}");
        }
        let line = format!(r#"{{"jsonrpc":"2","id":{id},"method":"stop"}}"#);
        let want = error(id, -32600, "Invalid JSON-RPC version");
        assert_eq!(answers(&mut wire, line.as_bytes()), want, "{line}");
    }
}

#[test]
fn a_request_without_an_id_is_carried_out_without_a_reply() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let mut check = |line: &str| {
        assert_eq!(
            answers(&mut wire, line.as_bytes()),
            Vec::<String>::new(),
            "{line:?}"
        );
    };
    check("");
    check("  \t ");
    check("\r");
    check(r#"{"jsonrpc":"2.0","method":"foo"}"#);
    check(r#"{"jsonrpc":"2.0","id":null,"method":"foo"}"#);
    check(r#"{"jsonrpc":"2.0","method":"inject_prompt"}"#);
    check(r#"{"jsonrpc":"2.0","id":null,"method":"write_pty","params":{}}"#);
    check(r#"{"jsonrpc":"2.0","method":"set_interactive_mode","params":{"enabled":true}}"#);
    let status = wire.result("get_status", serde_json::json!({}));
    assert_eq!(status["interactive_mode"], true);
    assert_eq!(status["mode_indicator"], "interactive");
}

#[test]
fn invalid_parameters_get_the_originals_errors() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let prompt = "Missing or empty 'prompt' parameter";
    let enabled = "Missing or invalid 'enabled' parameter (must be bool)";
    let data = "Missing or empty 'data' parameter";
    let list = "'events' must be a list";
    let text = "Missing or empty 'text' parameter";
    for (method, params, want) in [
        ("inject_prompt", "{}", prompt),
        ("inject_prompt", "[]", prompt),
        ("inject_prompt", "\"x\"", prompt),
        ("inject_prompt", "null", prompt),
        ("inject_prompt", r#"{"prompt":""}"#, prompt),
        ("inject_prompt", r#"{"prompt":" \n\t "}"#, prompt),
        ("inject_prompt", r#"{"prompt":5}"#, prompt),
        ("inject_prompt", r#"{"prompt":null}"#, prompt),
        ("set_interactive_mode", "{}", enabled),
        ("set_interactive_mode", r#"{"enabled":1}"#, enabled),
        ("set_interactive_mode", r#"{"enabled":"true"}"#, enabled),
        ("set_interactive_mode", r#"{"enabled":null}"#, enabled),
        // The parameter is checked before the mode, which is not interactive.
        ("write_pty", "{}", data),
        ("write_pty", r#"{"data":""}"#, data),
        ("write_pty", r#"{"data":[104]}"#, data),
        ("subscribe", r#"{"events":"output"}"#, list),
        ("subscribe", r#"{"events":{"output":1}}"#, list),
        ("unsubscribe", r#"{"events":1}"#, list),
        (
            "subscribe",
            r#"{"events":["bogus"]}"#,
            "Invalid event type: 'bogus'. Valid: *, ask, message, output, state_change",
        ),
        ("nudge", "{}", text),
        ("send", "{}", "Missing 'body' parameter"),
        ("show", "{}", "Missing 'id' parameter"),
        ("why", "{}", "Missing 'id' parameter"),
        ("mark_read", "{}", "Missing 'ids' parameter"),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let want = error("1", -32602, want);
        assert_eq!(answers(&mut wire, line.as_bytes()), want, "{line}");
    }
    assert_eq!(session.ph.facts().matches("\"message\"").count(), 0);
}

#[test]
fn subscriptions_are_listed_sorted() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let mut check = |method: &str, events: &str, want: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"{events}}}"#);
        let want = result("1", &format!(r#"{{"subscribed":[{want}]}}"#));
        wire.send_line(&line);
        // Events may arrive between replies once they are subscribed.
        let mut got = wire.line();
        while got.contains(r#""method":"event""#) {
            got = wire.line();
        }
        assert_eq!(vec![got], want, "{line}");
    };
    let of = |names: &str| format!(r#","params":{{"events":[{names}]}}"#);
    check("subscribe", "", "");
    check("subscribe", r#","params":{}"#, "");
    check("subscribe", &of(""), "");
    check(
        "subscribe",
        &of(r#""state_change","output""#),
        r#""output","state_change""#,
    );
    check("subscribe", "", r#""output","state_change""#);
    check(
        "subscribe",
        &of(r#""output""#),
        r#""output","state_change""#,
    );
    check(
        "subscribe",
        &of(r#""message","*""#),
        r#""*","message","output","state_change""#,
    );
    check(
        "unsubscribe",
        &of(r#""output","bogus",7"#),
        r#""*","message","state_change""#,
    );
    check("unsubscribe", &of(r#""*""#), r#""message","state_change""#);
    check("unsubscribe", "", r#""message","state_change""#);
    check("unsubscribe", &of(r#""message","state_change""#), "");
}

#[test]
fn requests_may_be_sent_without_waiting_and_the_last_without_its_end() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let ask = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"unsubscribe"}}"#);
    let lines: Vec<String> = (0..200).map(ask).collect();
    wire.send_bytes(format!("\n\n{}\r\n \n{}", lines.join("\n\n"), ask(200)));
    wire.close_write();
    for id in 0..=200 {
        let want = result(&id.to_string(), r#"{"subscribed":[]}"#);
        assert_eq!(vec![wire.line()], want);
    }
    assert_eq!(wire.next_line(), None);
}

#[test]
fn batches_are_answered_in_one_line() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let ask = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"unsubscribe"}}"#);
    let done = |id: &str| result(id, r#"{"subscribed":[]}"#).concat();
    let invalid = error("null", -32600, "Invalid request").concat();
    let mut check = |line: &str, want: &[String]| {
        let want: Vec<String> = match want {
            [] => Vec::new(),
            want => vec![format!("[{}]", want.join(","))],
        };
        assert_eq!(answers(&mut wire, line.as_bytes()), want, "{line}");
    };
    check(&format!("[{}]", ask("1")), &[done("1")]);
    check(
        &format!(" [ {} , {}, 5, [] ]", ask("\"a\""), ask("null")),
        &[done("\"a\""), invalid.clone(), invalid.clone()],
    );
    check(&format!("[{}]", ask("null")), &[]);
    check(
        r#"[{"jsonrpc":"2.0","id":3,"method":"foo"},{"id":4}]"#,
        &[
            error("3", -32601, "Method not found: foo").concat(),
            error("4", -32600, "Invalid JSON-RPC version").concat(),
        ],
    );
    let many: Vec<String> = (0..1_000).map(|id| ask(&id.to_string())).collect();
    let all: Vec<String> = (0..1_000).map(|id| done(&id.to_string())).collect();
    check(&format!("[{}]", many.join(",")), &all);
    let more = format!("[{},{}]", many.join(","), ask("1000"));
    assert_eq!(
        answers(&mut wire, more.as_bytes()),
        error("null", -32600, "Batch too long: at most 1000 requests")
    );
}

#[test]
fn a_batch_is_answered_before_the_events_that_it_causes() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let call = |id: u32, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    wire.send_line(format!(
        "[{},{},{}]",
        call(1, "subscribe", r#"{"events":["state_change"]}"#),
        call(2, "set_interactive_mode", r#"{"enabled":true}"#),
        call(3, "inject_prompt", r#"{"prompt":"x"}"#),
    ));
    let replies = wire.json();
    let ids: Vec<_> = replies
        .as_array()
        .expect("a batch")
        .iter()
        .map(|r| &r["id"])
        .collect();
    assert_eq!(ids, [1, 2, 3]);
    wire.wait_for_event("state_change", "interactive_mode");
    wire.wait_for_event("state_change", "injected_prompt");
}

#[test]
fn ten_mebibytes_are_a_line_and_more_is_an_error() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let line = |length: usize| {
        let (head, tail) = (r#"{"jsonrpc":"2.0","id":"big","method":"foo","x":""#, "\"}");
        let fill = "x".repeat(length - head.len() - tail.len());
        [head, &fill, tail].concat()
    };
    let most = 10 << 20;
    let too_long = error("null", -32600, "Line too long: at most 10485760 bytes");
    let unknown = error("\"big\"", -32601, "Method not found: foo");
    assert_eq!(answers(&mut wire, line(most).as_bytes()), unknown);
    assert_eq!(answers(&mut wire, line(most + 1).as_bytes()), too_long);
    assert_eq!(answers(&mut wire, line(3 * most).as_bytes()), too_long);
    assert_eq!(answers(&mut wire, line(most).as_bytes()), unknown);
    // The last line is answered even without a line end.
    wire.send_bytes(line(most + 1));
    wire.close_write();
    assert_eq!(vec![wire.line()], too_long);
    assert_eq!(wire.next_line(), None);
}
