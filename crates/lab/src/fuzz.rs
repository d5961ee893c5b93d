//! Fuzz targets: each parses arbitrary bytes as one kind of outside input, and checks its
//! invariants.
//!
//! `just fuzz` runs them with coverage guidance; `tests/it/fuzz.rs` runs them on the corpora and on
//! mutations of them.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a fuzz target fails by panicking"
)]

use crate::TempHome;
use crate::journal::{at, draft, post};
use posthaste_core::delivery::{Delivery, DeliveryConfig, proven_by};
use posthaste_core::driver::{Action, HookCall, Input};
use posthaste_core::harness::{Manifest, transcript};
use posthaste_core::{Draft, MessageId, MessageState, Moment, text};
use posthaste_screen::{Lines, QueryFilter, Screen, Size};
use posthaste_store::transfer;
use posthaste_wire::frames::Decoder;
use posthaste_wire::rpc::{self, ClientLine};
use posthaste_wire::{client, plain};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use uuid::Uuid;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of its corpus and of its binary.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: [Target; 8] = [
    target("socket_line", socket_line),
    target("frames", frames),
    target("import", import),
    target("manifest", manifest),
    target("hook_payload", hook_payload),
    target("transcript_rows", transcript_rows),
    target("escapes", escapes),
    target("headers", headers),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Built-in manifests, whose hooks read payloads.
static MANIFESTS: LazyLock<Vec<Arc<Manifest>>> = LazyLock::new(|| {
    let texts = [
        include_str!("../../session/harness/claude.toml"),
        include_str!("../../session/harness/codex.toml"),
        include_str!("../../session/harness/gemini.toml"),
        include_str!("../../session/harness/opencode.toml"),
    ];
    texts
        .map(|text| Arc::new(toml::from_str(text).unwrap()))
        .into()
});

/// Lines of a session's socket in both dialects, and replies as a client reads them.
pub fn socket_line(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        for read in [rpc::read(line), rpc::read_on(line)] {
            let requests = match read {
                ClientLine::Blank | ClientLine::Plain(Ok(_)) => Vec::new(),
                ClientLine::Plain(Err(refusal)) => {
                    assert_one_json_line(&plain::Reply::from(refusal).line());
                    Vec::new()
                }
                ClientLine::One(request) => vec![request],
                ClientLine::Batch(requests) => requests,
            };
            for request in requests {
                if let Err(failure) = request.call {
                    let id = request.id.unwrap_or_else(rpc::Id::null);
                    assert_one_json_line(&rpc::refusal(&id, &failure));
                }
            }
        }
        let _ = client::parse_line(line);
        let _ = plain::Reply::read(line);
    }
}

fn assert_one_json_line(line: &[u8]) {
    let text = std::str::from_utf8(line).unwrap();
    assert!(
        text.ends_with('\n') && text.lines().count() == 1,
        "{text:?}"
    );
    serde_json::from_str::<&serde_json::value::RawValue>(text).unwrap();
}

/// Frames of an attached terminal. The first byte says where the input is cut in two.
pub fn frames(bytes: &[u8]) {
    let Some((at, bytes)) = bytes.split_first() else {
        return;
    };
    let read = |pieces: &[&[u8]]| {
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        for piece in pieces {
            decoder.feed(piece);
            while let Ok(Some(frame)) = decoder.next_frame() {
                frames.push(frame);
            }
        }
        frames
    };
    let (first, second) = bytes.split_at(usize::from(*at).min(bytes.len()));
    assert_eq!(read(&[bytes]), read(&[first, second]));
}

/// An export as `ph import` reads it. The journal stays readable, and a second import adds nothing.
pub fn import(bytes: &[u8]) {
    let home = TempHome::new();
    let mut journal = home.journal();
    let imported = |journal: &mut _| transfer::import(journal, &mut &*bytes, |_| {});
    let is_whole = imported(&mut journal).is_ok();
    let mut exported = Vec::new();
    transfer::export(&journal, &mut exported).unwrap();
    let head = journal.head().unwrap();
    assert_eq!(imported(&mut journal).is_ok(), is_whole);
    assert_eq!(journal.head().unwrap(), head, "a second import adds facts");
}

/// A harness manifest.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(manifest) = toml::from_str::<Manifest>(text) {
        let _ = manifest.check();
        let _ = manifest.unused();
        let _ = manifest.lines();
    }
}

/// A hook's event in the first line, and its payload in the rest.
pub fn hook_payload(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let (event, payload) = input.split_once('\n').unwrap_or(("Stop", &input));
    let now = Moment {
        wall: at(0),
        mono: Duration::from_secs(10),
    };
    for manifest in &*MANIFESTS {
        let report = manifest.hook.read(event, payload);
        let manner = DeliveryConfig {
            harness: manifest.clone(),
            ..DeliveryConfig::generic(0)
        };
        let mut delivery = Delivery::new(manner, now);
        let called = Input::HookCalled {
            call: HookCall(1),
            report: Box::new(report),
            takes_mail: false,
        };
        let actions = delivery.on(now, &called);
        let is_step = |action: &Action| matches!(action, Action::Commit { .. });
        assert!(!actions.iter().any(is_step), "no message was offered");
        let activity = format!("{:?}", delivery.activity());
        assert_eq!(text::visible(&activity), activity);
    }
}

/// Rows of an agent's transcript. Rows are read one by one as well as at once.
pub fn transcript_rows(bytes: &[u8]) {
    let rows = String::from_utf8_lossy(bytes);
    let mut at_once = transcript::Shown::default();
    at_once.add(&rows);
    let mut one_by_one = transcript::Shown::default();
    for row in rows.lines() {
        one_by_one.add(row);
    }
    assert_eq!(at_once, one_by_one);
}

/// A program's output. The first byte says where it is cut in two.
pub fn escapes(bytes: &[u8]) {
    let Some((at, bytes)) = bytes.split_first() else {
        return;
    };
    let (first, second) = bytes.split_at(usize::from(*at).min(bytes.len()));
    let read = |pieces: &[&[u8]]| {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let mut each = |line: &str| found.push(line.to_owned());
        for piece in pieces {
            lines.feed(piece, &mut each);
        }
        lines.finish(&mut each);
        found
    };
    assert_eq!(read(&[bytes]), read(&[first, second]));
    let once = filtered(&[bytes]);
    assert_eq!(once, filtered(&[first, second]));
    assert_eq!(filtered(&[&once]), once, "a query is left");
    let size = Size { cols: 40, rows: 10 };
    let mut screen = Screen::new(size, 20);
    screen.feed(first);
    screen.resize(Size { cols: 21, rows: 7 });
    screen.feed(second);
    screen.stop_sync();
    let (row, column) = screen.cursor();
    assert!(row < 7 && column < 21, "{row} {column}");
    let _ = screen.take_replies();
}

/// Return a program's output without its queries.
fn filtered(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut filter, mut out) = (QueryFilter::default(), Vec::new());
    for piece in pieces {
        filter.pass(piece, &mut out);
    }
    filter.finish(&mut out);
    out
}

/// A text that may contain headers of messages.
pub fn headers(bytes: &[u8]) {
    static MESSAGES: LazyLock<Vec<MessageState>> = LazyLock::new(|| {
        let home = TempHome::new();
        let mut journal = home.journal();
        let draft = Draft {
            id: MessageId(Uuid::from_u128(1 << 96)),
            ..draft("alice", "bob", "hi")
        };
        vec![post(&mut journal, at(0), &draft).state]
    });
    let given = String::from_utf8_lossy(bytes);
    let proven = proven_by(&given, &MESSAGES);
    assert!(proven.is_empty() || given.contains("id: 00000001"));
    for line in text::lines(&given) {
        assert_eq!(proven_by(&line, &MESSAGES), [], "{line}");
        assert!(text::lines(&line).eq([line.clone()]), "{line:?}");
    }
}
