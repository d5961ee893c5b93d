//! The JSON-RPC dialect, as the original was observed to speak it.

use super::server::Server;
use crate::rpc::{self, ClientLine, Failure, Id};
use crate::topic::{Interest, Topic};

/// One connection: each line and its reply.
fn check(lines: &[(&str, &str)]) {
    let mut server = Server::default();
    for (line, want) in lines {
        let got = server.reply_to(line.as_bytes()).unwrap_or_default();
        assert_eq!(got.trim_end_matches('\n'), *want, "{line}");
        assert!(got.is_empty() || got.ends_with('\n'), "{line}");
        assert!(got.lines().count() <= 1, "{line}");
    }
}

const PARSE_ERROR: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
const INVALID_REQUEST: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}"#;

#[test]
fn an_invalid_request_gets_the_originals_error() {
    check(&[
        ("", ""),
        ("  \t\r\n", ""),
        ("{", PARSE_ERROR),
        ("nonsense", PARSE_ERROR),
        (r#"{"jsonrpc":"2.0","id":1,"method":"stop"} x"#, PARSE_ERROR),
        (r#"{"jsonrpc":"2.0","id":1,"method":"stop",}"#, PARSE_ERROR),
        ("[1", PARSE_ERROR),
        ("5", INVALID_REQUEST),
        ("null", INVALID_REQUEST),
        (r#""stop""#, INVALID_REQUEST),
        (
            r#"{"id":1,"method":"stop"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid JSON-RPC version"}}"#,
        ),
        (
            r#"{"jsonrpc":2.0,"id":"a","method":"stop"}"#,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"Invalid JSON-RPC version"}}"#,
        ),
        (
            "{}",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid JSON-RPC version"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":2}"#,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Missing method"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":7}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing method"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"foo"}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: foo"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"a\"\n\u001bb"}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: a\"\n\u001bb"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":""}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: "}}"#,
        ),
    ]);
}

#[test]
fn invalid_utf8_is_a_parse_error() {
    let mut server = Server::default();
    for line in [
        &b"\xff"[..],
        b"{\"id\":\"\xc3\x28\"}",
        b"\x00",
        b"\xef\xbb\xbf{}",
    ] {
        let got = server.reply_to(line).unwrap();
        assert_eq!(got.trim_end(), PARSE_ERROR, "{line:?}");
    }
}

#[test]
fn an_id_is_returned_in_its_original_form() {
    for id in [
        "1",
        "1.0",
        "-0",
        "1e2",
        "123456789012345678901234567890",
        r#""a""#,
        r#""\u00e4\/""#,
        "true",
        "[1, 2]",
        r#"{"b": 1, "a": {}}"#,
        r#""""#,
        "0",
        "false",
    ] {
        check(&[(
            &format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"stop"}}"#),
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"status":"stop_requested"}}}}"#),
        )]);
    }
}

#[test]
fn a_request_without_id_gets_no_reply() {
    let mut server = Server::default();
    for line in [
        r#"{"jsonrpc":"2.0","method":"subscribe","params":{"events":["output"]}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"subscribe","params":{"events":["message"]}}"#,
        r#"{"jsonrpc":"2.0","method":"foo"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"write_pty"}"#,
    ] {
        assert_eq!(server.reply_to(line.as_bytes()), None, "{line}");
    }
    assert_eq!(
        server.topics.list(),
        [Interest::Message, Interest::Output],
        "carried out all the same"
    );
}

#[test]
fn parameters_that_are_not_an_object_count_as_empty() {
    for params in ["[]", "5", "null", r#""x""#, r#"[{"prompt":"x"}]"#, "{}"] {
        check(&[(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"inject_prompt","params":{params}}}"#),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Missing or empty 'prompt' parameter"}}"#,
        )]);
    }
}

#[test]
fn a_refused_subscription_changes_no_topics() {
    let call = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    let holds =
        |list: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"subscribed":{list}}}}}"#);
    let fails = |text: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"{text}"}}}}"#)
    };
    let bogus = |name: &str| {
        fails(&format!(
            "Invalid event type: '{name}'. Valid: *, ask, message, output, state_change"
        ))
    };
    let mut server = Server::default();
    for (method, params, want) in [
        ("subscribe", "{}", holds("[]")),
        ("subscribe", r#"{"events":[]}"#, holds("[]")),
        (
            "subscribe",
            r#"{"events":"output"}"#,
            fails("'events' must be a list"),
        ),
        (
            "subscribe",
            r#"{"events":null}"#,
            fails("'events' must be a list"),
        ),
        (
            "unsubscribe",
            r#"{"events":{}}"#,
            fails("'events' must be a list"),
        ),
        // Valid topics before an invalid one are not subscribed either.
        (
            "subscribe",
            r#"{"events":["output","bogus"]}"#,
            bogus("bogus"),
        ),
        ("subscribe", r#"{"events":["output",5]}"#, bogus("5")),
        ("subscribe", r#"{"events":[null]}"#, bogus("null")),
        ("subscribe", "{}", holds("[]")),
        (
            "subscribe",
            r#"{"events":["state_change","output","output"]}"#,
            holds(r#"["output","state_change"]"#),
        ),
        (
            "subscribe",
            r#"{"events":["*","message"]}"#,
            holds(r#"["*","message","output","state_change"]"#),
        ),
        (
            "unsubscribe",
            "{}",
            holds(r#"["*","message","output","state_change"]"#),
        ),
        (
            "unsubscribe",
            r#"{"events":["output","bogus",5]}"#,
            holds(r#"["*","message","state_change"]"#),
        ),
    ] {
        let got = server.reply_to(call(method, params).as_bytes()).unwrap();
        assert_eq!(got.trim_end(), want, "{method} {params}");
    }
    assert!(server.topics.wants(Topic::Output));
}

#[test]
fn a_batch_gets_one_line() {
    let done = r#"{"jsonrpc":"2.0","id":1,"result":{"status":"stop_requested"}}"#;
    let stop = r#"{"jsonrpc":"2.0","id":1,"method":"stop"}"#;
    let quiet = r#"{"jsonrpc":"2.0","method":"stop"}"#;
    let plain = r#"{"type":"stop"}"#;
    let version = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid JSON-RPC version"}}"#;
    check(&[
        ("[]", INVALID_REQUEST),
        (&format!("[{stop}]"), &format!("[{done}]")),
        (
            &format!(" [ {stop} , {quiet},{stop}]"),
            &format!("[{done},{done}]"),
        ),
        (&format!("[{quiet},{quiet}]"), ""),
        (
            &format!("[1,[],{stop},null]"),
            &format!("[{INVALID_REQUEST},{INVALID_REQUEST},{done},{INVALID_REQUEST}]"),
        ),
        (&format!("[{plain}]"), &format!("[{version}]")),
        (&format!("[{stop},{{]"), PARSE_ERROR),
    ]);
}

#[test]
fn a_batch_is_limited() {
    let of = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    match rpc::read(of(rpc::MAX_BATCH_REQUESTS).as_bytes()) {
        ClientLine::Batch(requests) => assert_eq!(requests.len(), rpc::MAX_BATCH_REQUESTS),
        other => panic!("{other:?}"),
    }
    check(&[(
        &of(rpc::MAX_BATCH_REQUESTS + 1),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batch too long: at most 1000 requests"}}"#,
    )]);
}

#[test]
fn deep_nesting_is_harmless() {
    let deep = "[".repeat(1_000_000);
    let shut = "]".repeat(1_000_000);
    check(&[
        (&deep, PARSE_ERROR),
        // A list in a list is a batch with an item that is not an object.
        (&format!("{deep}{shut}"), &format!("[{INVALID_REQUEST}]")),
        (&r#"{"a":"#.repeat(1_000_000), PARSE_ERROR),
        (
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"send","params":{{"body":{deep}{shut}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid 'body' parameter: invalid type: sequence, expected a string"}}"#,
        ),
        (
            &format!(r#"{{"jsonrpc":"2.0","id":{deep}{shut},"method":"stop"}}"#),
            &format!(
                r#"{{"jsonrpc":"2.0","id":{deep}{shut},"result":{{"status":"stop_requested"}}}}"#
            ),
        ),
        (
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"hook_event","params":{{"event_name":"x","payload":{deep}{shut}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":1,"result":{"status":"noted"}}"#,
        ),
    ]);
}

#[test]
fn a_broken_string_inside_is_a_parse_error() {
    check(&[
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"send","params":{"body":"\ud800"}}"#,
            PARSE_ERROR,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"inject_prompt","params":{"prompt":"\ud800"}}"#,
            PARSE_ERROR,
        ),
    ]);
}

#[test]
fn the_last_of_repeated_fields_counts() {
    check(&[(
        r#"{"jsonrpc":"1","id":1,"method":"x","jsonrpc":"2.0","id":2,"method":"stop"}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"status":"stop_requested"}}"#,
    )]);
}

#[test]
fn a_json_rpc_connection_keeps_its_dialect() {
    let plain = br#"{"type":"stop"}"#;
    assert!(matches!(rpc::read(plain), ClientLine::Plain(Ok(_))));
    let ClientLine::One(request) = rpc::read_on(plain) else {
        panic!("a request")
    };
    assert_eq!(request.id, Some(Id::null()));
    assert_eq!(
        request.call.unwrap_err().to_string(),
        "Invalid JSON-RPC version"
    );
}

#[test]
fn the_error_for_a_long_line_names_the_limit() {
    let line = rpc::refusal(&Id::null(), &Failure::line_too_long());
    assert_eq!(
        String::from_utf8(line).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Line too long: at most 10485760 bytes\"}}\n"
    );
}
