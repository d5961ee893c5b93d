//! What a hook is told on its standard input: JSON, within a time and a bound.

use posthaste_wire::param::Payload;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How long it may take to come. Whoever calls a hook has it ready.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much is kept. What is longer is read to its end, because the caller may wait for that.
const LONGEST: usize = 32 << 20;
/// How much is passed on as it is; of more, only the short fields.
const WHOLE: usize = 256 << 10;
const SHORT: usize = 32 << 10;
/// The field with the event's name, in each of the agents that have hooks.
const NAME: &str = "hook_event_name";

#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) event: Option<String>,
    pub(super) payload: Option<Payload>,
}

pub(super) fn read() -> Heard {
    if std::io::stdin().is_terminal() {
        return Heard::default();
    }
    let bytes = until(Instant::now() + PATIENCE);
    std::str::from_utf8(&bytes).map_or_else(|_| Heard::default(), understand)
}

/// What comes before the deadline.
fn until(deadline: Instant) -> Vec<u8> {
    let stdin = rustix::stdio::stdin();
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let mut is_too_long = false;
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        let left = Timespec::try_from(left).ok();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        match rustix::event::poll(&mut polled, left.as_ref()) {
            Ok(1..) | Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => break,
        }
        match rustix::io::read(stdin, &mut buffer[..]) {
            Ok(0) => break,
            Ok(count) if kept.len() + count <= LONGEST => kept.extend_from_slice(&buffer[..count]),
            Ok(_) => is_too_long = true,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => break,
        }
    }
    if is_too_long { Vec::new() } else { kept }
}

fn understand(text: &str) -> Heard {
    let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text) else {
        return Heard::default();
    };
    let event = fields.get(NAME);
    let event = event.and_then(|name| serde_json::from_str(name.get()).ok());
    let payload = if text.len() <= WHOLE {
        Payload::new(text).ok()
    } else {
        let is_short = |value: &RawValue| value.get().len() <= SHORT;
        let short: BTreeMap<_, _> = fields.into_iter().filter(|(_, v)| is_short(v)).collect();
        let text = serde_json::to_string(&short).ok();
        text.and_then(|text| Payload::new(&text).ok())
    };
    Heard { event, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_is_named_in_it_and_long_fields_are_left_out() {
        let check = |text: &str, event: Option<&str>, payload: Option<&str>| {
            let heard = understand(text);
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
        let long = "y".repeat(WHOLE);
        let text = format!(r#"{{"x":"{long}","hook_event_name":"Stop","a":[ 1 ]}}"#);
        check(
            &text,
            Some("Stop"),
            Some(r#"{"a":[ 1 ],"hook_event_name":"Stop"}"#),
        );
    }
}
