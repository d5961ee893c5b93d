//! Tests of the recorder and the reader together.

use super::recorder::BUFFER_BYTES;
use super::*;
use crate::{QueryFilter, Screen, Size};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const SIZE: Size = Size { cols: 20, rows: 4 };

fn about() -> RecordingInfo {
    RecordingInfo {
        size: SIZE,
        started: 1_700_000_000,
        command: "sh -c \"x\"".to_owned(),
        title: "scout".to_owned(),
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Session whose output is both modelled and recorded.
struct Session {
    dir: tempfile::TempDir,
    screen: Screen,
    filter: QueryFilter,
    recorder: Recorder,
}

impl Session {
    fn new(limit: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(dir.path(), "s", limit, about()).unwrap();
        let screen = Screen::new(SIZE, 50);
        Self {
            dir,
            screen,
            filter: QueryFilter::default(),
            recorder,
        }
    }

    fn write(&mut self, at: Duration, bytes: &[u8]) {
        self.screen.feed(bytes);
        let mut passed = Vec::new();
        self.filter.pass(bytes, &mut passed);
        self.recorder.output(at, &passed);
    }

    fn flush(&mut self, at: Duration) {
        self.recorder.flush(&mut self.screen, at).unwrap();
    }

    fn on_disk(&self) -> String {
        fs::read_to_string(self.dir.path().join("s.cast")).unwrap()
    }
}

#[test]
fn a_recording_is_an_asciicast() {
    let mut session = Session::new(1_000_000);
    session.write(
        Duration::from_millis(1500),
        b"hi \"you\"\\\r\n\x1b[1m\x07\xff\xc3",
    );
    session.write(secs(2), b"\xa9");
    session.recorder.resize(secs(3), Size { cols: 30, rows: 5 });
    session.flush(secs(4));
    insta::assert_snapshot!(session.on_disk(), @r#"
    {"command":"sh -c \"x\"","env":{"TERM":"xterm-256color"},"height":4,"offset":0.0,"timestamp":1700000000,"title":"scout","version":2,"width":20}
    [1.500000,"o","hi \"you\"\\\r\n\u001b[1m\u0007�"]
    [2.000000,"o","é"]
    [3.000000,"r","30x5"]
    "#);
    let path = session.dir.path().join("s.cast");
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn any_bytes_are_recorded_as_json() {
    let mut session = Session::new(1_000_000);
    let every: Vec<u8> = (0..=255).chain(*b"tail").collect();
    session.recorder.output(secs(1), &every);
    session.flush(secs(2));
    let text = session.on_disk();
    let (_, _, data): (f64, char, String) =
        serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(data, String::from_utf8_lossy(&every));
}

#[test]
fn the_last_screen_is_restored() {
    let mut session = Session::new(1_000_000);
    session.write(secs(1), "one\r\n\x1b[31m日本\x1b[m\r\n".as_bytes());
    session.screen.resize(Size { cols: 10, rows: 3 });
    session.recorder.resize(secs(2), session.screen.size());
    session.write(secs(3), b"a line that wraps");
    session.flush(secs(4));
    let last = last_screen(session.dir.path(), "s", 50).unwrap();
    assert_eq!(last.ansi(Some(9)), session.screen.ansi(Some(9)));
    assert_eq!(last.size(), session.screen.size());
    assert!(last_screen(session.dir.path(), "other", 50).is_none());
}

#[test]
fn a_recording_stays_within_its_limit() {
    let limit = 20_000;
    let mut session = Session::new(limit);
    for n in 0..2_000 {
        session.write(secs(n), format!("line {n}\r\n").as_bytes());
        session.flush(secs(n));
    }
    let paths = recording_files(session.dir.path(), "s");
    let total: u64 = paths
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(paths.len(), 2);
    assert!(total > limit / 2 && total < limit + 4096, "{total}");
    let last = last_screen(session.dir.path(), "s", 20).unwrap();
    assert_eq!(last.text(Some(15)), session.screen.text(Some(15)));
    // The newer file alone restores the screen, and its times continue.
    let newer = open_recording(&paths[1]).unwrap();
    let mut screen = Screen::new(newer.size(), 0);
    let mut at = Duration::ZERO;
    for event in newer {
        at = event.at;
        screen.feed(event.output().as_bytes());
    }
    assert_eq!(screen.text(None), session.screen.text(None));
    assert_eq!(at, secs(1_999));
}

#[test]
fn a_redraw_replaces_excess_output() {
    let mut session = Session::new(1_000_000);
    for n in 0..100_000 {
        session.write(secs(1), format!("flood {n}\r\n").as_bytes());
    }
    session.flush(secs(2));
    assert!(session.on_disk().len() < 2 * BUFFER_BYTES);
    let last = last_screen(session.dir.path(), "s", 0).unwrap();
    assert_eq!(last.text(None), session.screen.text(None));
    session.write(secs(3), b"after");
    session.flush(secs(4));
    let last = last_screen(session.dir.path(), "s", 0).unwrap();
    assert_eq!(last.text(None), session.screen.text(None));
}

#[test]
fn a_redraw_never_interrupts_a_sequence() {
    let mut session = Session::new(0);
    session.write(secs(1), b"\x1b[?2026hupdate \x1b[3");
    session.flush(secs(1));
    session.write(secs(2), b"1mred\x1b[?2026l\xe6\x97");
    session.flush(secs(2));
    session.write(secs(3), b"\xa5\x1b[6n");
    session.flush(secs(3));
    let last = last_screen(session.dir.path(), "s", 0).unwrap();
    assert_eq!(last.ansi(Some(1)), ["update \u{1b}[31mred日\u{1b}[m"]);
    assert_eq!(last.ansi(None), session.screen.ansi(None));
    assert!(!session.on_disk().contains("[6n"));
}

#[test]
fn an_incomplete_last_line_is_ignored() {
    let mut session = Session::new(1_000_000);
    session.write(secs(1), b"whole");
    session.write(secs(2), b" and cut");
    session.flush(secs(3));
    let path = session.dir.path().join("s.cast");
    let text = session.on_disk();
    for cut in 1..25 {
        fs::write(&path, &text.as_bytes()[..text.len() - cut]).unwrap();
        let last = last_screen(session.dir.path(), "s", 0).unwrap();
        let want = if cut == 1 { "whole and cut" } else { "whole" };
        assert_eq!(last.text(Some(1)), [want], "{cut}");
    }
    fs::write(&path, &text.as_bytes()[..20]).unwrap();
    assert!(last_screen(session.dir.path(), "s", 0).is_none());
}

#[test]
fn a_failed_write_is_reported_once_and_retried() {
    let mut session = Session::new(0);
    let aside = session.dir.path().with_extension("aside");
    fs::rename(session.dir.path(), &aside).unwrap();
    session.write(secs(1), b"lost");
    assert!(
        session
            .recorder
            .flush(&mut session.screen, secs(1))
            .is_err()
    );
    session.write(secs(2), b" and");
    session.flush(secs(2));
    session.flush(secs(30));
    fs::rename(&aside, session.dir.path()).unwrap();
    session.write(secs(60), b" found");
    session.flush(secs(60));
    let last = last_screen(session.dir.path(), "s", 0).unwrap();
    assert_eq!(last.text(Some(1)), ["lost and found"]);
}

#[test]
fn a_recording_follows_no_link_and_replaces_the_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, dir.path().join("s.cast")).unwrap();
    fs::write(dir.path().join("s.1.cast"), "old").unwrap();
    Recorder::create(dir.path(), "s", 0, about()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(recording_files(dir.path(), "s").len(), 1);
}

#[test]
fn output_and_resize_are_distinct_events() {
    let mut session = Session::new(1_000_000);
    session.write(secs(1), b"x");
    session.recorder.resize(secs(2), Size { cols: 9, rows: 3 });
    session.flush(secs(2));
    let events: Vec<_> = open_recording(&session.dir.path().join("s.cast"))
        .unwrap()
        .collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], ReplayEvent::output_at(secs(1), "x"));
    assert_eq!(events[1].size(), Some(Size { cols: 9, rows: 3 }));
}
