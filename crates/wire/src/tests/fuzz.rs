//! No input makes the parsers panic, and every reply is one line of JSON.

use super::server::Server;
use crate::frames::Decoder;
use crate::method::Call;
use crate::{client, plain, rpc};
use proptest::prelude::*;

/// Check that every reply is one line of JSON, or empty.
fn check_lines(bytes: &[u8]) {
    bytes.split(|byte| *byte == b'\n').for_each(check_line);
}

fn check_line(line: &[u8]) {
    if let Some(back) = Server::default().reply_to(line) {
        assert!(back.ends_with('\n') && back.lines().count() == 1);
        serde_json::from_str::<&serde_json::value::RawValue>(&back).unwrap();
    }
    let _ = rpc::read_on(line);
    let _ = client::parse_line(line);
    let _ = plain::Reply::read(line);
}

/// A line of nearly valid JSON.
fn valid_line() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        ".{0,12}".prop_map(|text: String| format!("{text:?}")),
        Just("[]".to_owned()),
        Just(r#"["output","bogus",{}]"#.to_owned()),
        Just(r#"{"a":[1,"\ud800"]}"#.to_owned()),
    ];
    let key = prop::sample::select(vec![
        "id",
        "body",
        "to",
        "events",
        "prompt",
        "enabled",
        "data",
        "ids",
        "text",
        "lines",
        "from",
        "event_name",
        "payload",
        "priority",
        "ttl_ms",
        "not_before",
        "cols",
        "message_id",
        "type",
    ]);
    let fields = prop::collection::vec((key, value.clone()), 0..4).prop_map(|fields| {
        let fields: Vec<_> = fields
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"))
            .collect();
        fields.join(",")
    });
    let method = prop::sample::select(Call::NAMES);
    let kind = prop::sample::select(vec!["send", "show", "hook_event", "attach", "stop"]);
    prop_oneof![
        (value, method, fields.clone()).prop_map(|(id, method, fields)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{fields}}}}}"#
        )),
        (kind, fields).prop_map(|(kind, fields)| {
            let comma = if fields.is_empty() { "" } else { "," };
            format!(r#"{{"type":"{kind}"{comma}{fields}}}"#)
        }),
    ]
}

/// A nearly valid line with random damage.
fn mutated_line() -> impl Strategy<Value = Vec<u8>> {
    let accident = (any::<prop::sample::Index>(), 0..4_u8, any::<u8>());
    (valid_line(), prop::collection::vec(accident, 0..6)).prop_map(|(line, accidents)| {
        let mut line = line.into_bytes();
        for (place, kind, byte) in accidents {
            if line.is_empty() {
                break;
            }
            let place = place.index(line.len());
            match kind {
                0 => line[place] = byte,
                1 => line.insert(place, byte),
                2 => {
                    line.remove(place);
                }
                _ => line.truncate(place),
            }
        }
        line
    })
}

proptest! {
    #[test]
    fn any_bytes_get_one_line_of_json(line in prop::collection::vec(any::<u8>(), 0..200)) {
        check_lines(&line);
    }

    #[test]
    fn any_text_gets_one_line_of_json(line in r#"[\[\]{}":,0-9a-z\\ ]{0,60}"#) {
        check_lines(line.as_bytes());
    }

    #[test]
    fn mutated_lines_get_one_line_of_json(line in mutated_line()) {
        check_lines(&line);
    }

    #[test]
    fn mutated_batches_get_one_line_of_json(lines in prop::collection::vec(mutated_line(), 0..4)) {
        check_lines(&[b"[", lines.join(&b","[..]).as_slice(), b"]"].concat());
    }

    #[test]
    fn a_frame_decoder_keeps_no_more_than_its_input(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)
    ) {
        let mut decoder = Decoder::default();
        let mut given = 0;
        for part in parts {
            decoder.feed(&part);
            given += part.len();
            while let Ok(Some(_)) = decoder.next_frame() {}
            prop_assert!(decoder.kept() <= given);
        }
    }

    #[test]
    fn a_frame_decoder_keeps_no_more_than_nearly_valid_input(
        frames in prop::collection::vec((0..4_u8, 0..9_u8, prop::collection::vec(any::<u8>(), 0..9)), 0..20)
    ) {
        let mut decoder = Decoder::default();
        let mut given = 0;
        for (kind, length, payload) in frames {
            let bytes = [&[kind, 0, 0, 0, length], payload.as_slice()].concat();
            decoder.feed(&bytes);
            given += bytes.len();
            while let Ok(Some(_)) = decoder.next_frame() {}
            prop_assert!(decoder.kept() <= given);
        }
    }
}
