//! Reads a hook's JSON from standard input, with a timeout and a size limit.

use posthaste_session::poll;
use posthaste_wire::param::Payload;
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Timeout for the whole input, which the agent has ready when it runs the hook.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of the input. A longer one is ignored, but still read to its end, because the agent
/// may wait until all of it is written.
const MAX_INPUT_BYTES: usize = 32 << 20;
/// Maximum size of input that is forwarded unchanged. Of a longer one, only fields of at most
/// [`MAX_FIELD_BYTES`] are forwarded.
const MAX_FORWARDED_BYTES: usize = 256 << 10;
const MAX_FIELD_BYTES: usize = 32 << 10;
/// The field with the event's name. All supported agents use the same one.
const EVENT_NAME_FIELD: &str = "hook_event_name";

#[derive(Debug, Default)]
pub(super) struct HookInput {
    pub(super) event: Option<String>,
    pub(super) payload: Option<Payload>,
}

pub(super) fn read() -> HookInput {
    if std::io::stdin().is_terminal() {
        return HookInput::default();
    }
    let bytes = read_until(Instant::now() + READ_TIMEOUT);
    std::str::from_utf8(&bytes).map_or_else(|_| HookInput::default(), parse)
}

/// Read until the end of input or the deadline.
fn read_until(deadline: Instant) -> Vec<u8> {
    let stdin = rustix::stdio::stdin();
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let mut is_too_long = false;
    while Instant::now() < deadline {
        match poll::wait([(Some(stdin), PollFlags::IN)], Some(deadline)) {
            Ok([events]) if events.is_empty() => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        match rustix::io::read(stdin, &mut buffer[..]) {
            Ok(0) => break,
            Ok(count) if kept.len() + count <= MAX_INPUT_BYTES => {
                kept.extend_from_slice(&buffer[..count]);
            }
            Ok(_) => is_too_long = true,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => break,
        }
    }
    if is_too_long { Vec::new() } else { kept }
}

fn parse(text: &str) -> HookInput {
    let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text) else {
        return HookInput::default();
    };
    let event = fields.get(EVENT_NAME_FIELD);
    let event = event.and_then(|name| serde_json::from_str(name.get()).ok());
    let payload = if text.len() <= MAX_FORWARDED_BYTES {
        Payload::new(text).ok()
    } else {
        let is_short = |value: &RawValue| value.get().len() <= MAX_FIELD_BYTES;
        let short: BTreeMap<_, _> = fields.into_iter().filter(|(_, v)| is_short(v)).collect();
        let text = serde_json::to_string(&short).ok();
        text.and_then(|text| Payload::new(&text).ok())
    };
    HookInput { event, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_name_is_read_and_long_fields_are_dropped() {
        let check = |text: &str, event: Option<&str>, payload: Option<&str>| {
            let heard = parse(text);
            assert_eq!(heard.event.as_deref(), event, "{text:.80}");
            assert_eq!(
                heard.payload.as_ref().map(Payload::get),
                payload,
                "{text:.80}"
            );
        };
        let stop = r#"{"hook_event_name":"Stop","x":[1]}"#;
        check(stop, Some("Stop"), Some(stop));
        check("{\n\"x\": 1}\n", None, Some("{ \"x\": 1}"));
        check(
            r#"{"hook_event_name":1}"#,
            None,
            Some(r#"{"hook_event_name":1}"#),
        );
        for none in ["", "null", "[]", "{", "\u{1b}[2J", "7"] {
            check(none, None, None);
        }
        let long = "y".repeat(MAX_FORWARDED_BYTES);
        let text = format!(r#"{{"x":"{long}","hook_event_name":"Stop","a":[ 1 ]}}"#);
        check(
            &text,
            Some("Stop"),
            Some(r#"{"a":[ 1 ],"hook_event_name":"Stop"}"#),
        );
    }
}
