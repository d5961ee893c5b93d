//! The state of an attached client: which bytes go to the session, which to the screen, and when
//! the client ends. Has no file descriptor and no clock: the event loop passes in bytes and the
//! time.

use super::keys::{KeySplitter, PREFIX, Typed};
use super::{AttachEnd, AttachOptions, Size, status_line};
use posthaste_core::text;
use posthaste_screen::Boundary;
use posthaste_wire::frames::{CONTROL, DATA, Decoder, Frame, FromClient, ToClient, encode};
use std::time::{Duration, Instant};

/// How long a notice stays on the screen.
const NOTICE_DURATION: Duration = Duration::from_secs(4);
/// Size of the screen's queue at which output from the session is no longer read. One frame may
/// exceed it.
const OUTPUT_QUEUE_BYTES: usize = 64 << 10;
/// Size of the session's queue at which keys are no longer read. It is large, so that the prefix
/// key is read even behind a large paste.
const KEY_QUEUE_BYTES: usize = 1 << 20;

/// Bytes that wait to be written to one descriptor.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    written_bytes: usize,
}

impl Queue {
    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes[self.written_bytes..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Remove `count` bytes that have been written.
    pub(super) fn written(&mut self, count: usize) {
        self.written_bytes += count;
        if self.is_empty() {
            self.bytes.clear();
            self.written_bytes = 0;
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.written_bytes > OUTPUT_QUEUE_BYTES {
            self.bytes.drain(..self.written_bytes);
            self.written_bytes = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }
}

/// Which viewer has taken the keyboard, according to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyboardHolder {
    Free,
    Ours,
    Others,
}

#[derive(Debug)]
struct TimedNotice {
    text: String,
    until: Instant,
}

pub(super) struct View {
    options: AttachOptions,
    size: Size,
    keys: KeySplitter,
    keyboard: KeyboardHolder,
    notice: Option<TimedNotice>,
    /// The text of our line, while the line is on the screen.
    drawn: Option<String>,
    decoder: Decoder,
    boundary: Boundary,
    has_drawn: bool,
    pub(super) to_session: Queue,
    pub(super) to_screen: Queue,
}

impl View {
    pub(super) fn new(options: AttachOptions, size: Size) -> Self {
        let mut view = Self {
            keys: KeySplitter::default(),
            keyboard: if options.take {
                KeyboardHolder::Ours
            } else {
                KeyboardHolder::Free
            },
            options,
            size,
            notice: None,
            drawn: None,
            decoder: Decoder::default(),
            boundary: Boundary::default(),
            has_drawn: false,
            to_session: Queue::default(),
            to_screen: Queue::default(),
        };
        view.scroll_screen();
        view
    }

    /// Scroll the person's screen up, so that its text stays in the scrollback.
    fn scroll_screen(&mut self) {
        let mut room = vec![b'\n'; self.size.rows.into()];
        room.extend(b"\x1b[H");
        self.to_screen.push(&room);
    }

    pub(super) fn wants_output(&self) -> bool {
        self.to_screen.waiting().len() < OUTPUT_QUEUE_BYTES
    }

    pub(super) fn wants_keys(&self) -> bool {
        self.to_session.waiting().len() < KEY_QUEUE_BYTES
    }

    /// Whether the program's screen has arrived and is drawn.
    pub(super) fn has_drawn(&self) -> bool {
        self.has_drawn && self.to_screen.is_empty()
    }

    /// When [`Self::update_line`] is due even if no bytes arrive.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.notice.as_ref().map(|notice| notice.until)
    }

    pub(super) fn typed(&mut self, now: Instant, bytes: &[u8]) -> Option<AttachEnd> {
        for typed in self.keys.feed(bytes) {
            match typed {
                Typed::Keys(keys) => self.send(now, &keys),
                Typed::Detach => return Some(AttachEnd::Detached),
                Typed::Keyboard => self.toggle(now),
                Typed::Redraw => self.send_control(&FromClient::Redraw),
            }
        }
        None
    }

    fn send(&mut self, now: Instant, keys: &[u8]) {
        if !self.options.read_only {
            self.to_session.push(&encode(DATA, keys));
        } else if !keys.starts_with(b"\x1b") {
            // Bytes that begin with an escape may be a mouse report or a reply of the terminal.
            self.notify(now, format!("read-only: {PREFIX} d detaches"));
        }
    }

    fn toggle(&mut self, now: Instant) {
        if self.options.read_only {
            self.notify(now, "read-only: the keyboard cannot be taken".into());
            return;
        }
        match self.keyboard {
            KeyboardHolder::Ours => self.send_control(&FromClient::Release),
            KeyboardHolder::Free | KeyboardHolder::Others => self.send_control(&FromClient::Take),
        }
    }

    fn send_control(&mut self, message: &FromClient) {
        let message = serde_json::to_vec(message).expect("plain fields have a JSON form");
        self.to_session.push(&encode(CONTROL, &message));
    }

    fn notify(&mut self, now: Instant, text: String) {
        self.notice = Some(TimedNotice {
            text,
            until: now + NOTICE_DURATION,
        });
    }

    pub(super) fn resized(&mut self, size: Size) {
        self.size = size;
        self.send_control(&FromClient::Resize {
            cols: size.cols,
            rows: size.rows,
        });
        self.invalidate_line();
    }

    /// Draw everything again after the client was stopped and continued.
    pub(super) fn continued(&mut self, size: Size) {
        self.size = size;
        self.scroll_screen();
        self.resized(size);
        self.send_control(&FromClient::Redraw);
    }

    /// Process bytes from the session.
    pub(super) fn received(&mut self, now: Instant, bytes: &[u8]) -> Option<AttachEnd> {
        self.decoder.feed(bytes);
        loop {
            match self.decoder.next_frame() {
                Ok(None) => return None,
                Ok(Some(Frame::Data(output))) => self.output(&output),
                Ok(Some(Frame::Control(message))) => {
                    if let Some(left) = self.handle_control(now, &message) {
                        return Some(left);
                    }
                }
                Ok(Some(Frame::Unknown(_))) => {}
                // Frame boundaries are lost.
                Err(_) => return Some(AttachEnd::LostSession),
            }
        }
    }

    fn output(&mut self, output: &[u8]) {
        self.boundary.advance(output);
        self.to_screen.push(output);
        self.has_drawn = true;
        self.invalidate_line();
    }

    /// Note that our line may have been overwritten, or that the last row has moved.
    fn invalidate_line(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drawn.clear();
        }
    }

    fn handle_control(&mut self, now: Instant, message: &[u8]) -> Option<AttachEnd> {
        // A newer session may send types that this version does not know.
        match serde_json::from_slice(message).ok()? {
            ToClient::Ended { how } => {
                return Some(AttachEnd::Ended {
                    how: text::one_line(&how, 200),
                });
            }
            ToClient::Switch { name } => {
                self.notify(now, format!("continue with 'ph attach {name}'"));
            }
            ToClient::Notice { text } => self.notify(now, text),
            ToClient::Keyboard { taken, yours } => self.set_keyboard(now, taken, yours),
        }
        None
    }

    fn set_keyboard(&mut self, now: Instant, taken: bool, yours: bool) {
        let is = match (taken, yours) {
            (true, true) => KeyboardHolder::Ours,
            (true, false) => KeyboardHolder::Others,
            (false, _) => KeyboardHolder::Free,
        };
        let was = std::mem::replace(&mut self.keyboard, is);
        let text = match is {
            KeyboardHolder::Ours => {
                format!("you have the keyboard, and mail is held; {PREFIX} t releases it")
            }
            KeyboardHolder::Others => "another viewer has taken the keyboard".to_owned(),
            // Nothing has changed.
            KeyboardHolder::Free if was == KeyboardHolder::Free => return,
            KeyboardHolder::Free => "the keyboard is free again".to_owned(),
        };
        self.notify(now, text);
    }

    /// Draw or remove our line. Call this after all input of this moment was processed.
    pub(super) fn update_line(&mut self, now: Instant) {
        if self.notice.as_ref().is_some_and(|it| it.until <= now) {
            self.notice = None;
        }
        let wanted = if self.keys.is_pending() {
            Some(self.help())
        } else {
            self.notice.as_ref().map(|notice| notice.text.clone())
        };
        match wanted {
            None if self.drawn.is_some() => {
                self.drawn = None;
                self.send_control(&FromClient::Redraw);
            }
            Some(line) if self.drawn.as_ref() != Some(&line) => {
                // Inside an escape sequence, our line would break the sequence; behind a full
                // queue, it would be drawn too late.
                if self.boundary.is_here() && self.wants_output() {
                    self.to_screen.push(&status_line::draw(&line, self.size));
                    self.drawn = Some(line);
                }
            }
            None | Some(_) => {}
        }
    }

    fn help(&self) -> String {
        let name = &self.options.name;
        let keyboard = match self.keyboard {
            KeyboardHolder::Ours => "t release the keyboard",
            KeyboardHolder::Free | KeyboardHolder::Others => "t take the keyboard",
        };
        format!("{name}: d detach, {keyboard}, r redraw, {PREFIX} send {PREFIX}, Esc cancel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { cols: 60, rows: 10 };

    fn options() -> AttachOptions {
        AttachOptions {
            read_only: false,
            take: false,
            name: "bot".into(),
        }
    }

    fn view(options: AttachOptions) -> (View, Instant) {
        let mut view = View::new(options, SIZE);
        drain(&mut view.to_screen);
        (view, Instant::now())
    }

    fn drain(queue: &mut Queue) -> String {
        let waiting = String::from_utf8(queue.waiting().to_vec()).unwrap();
        queue.written(waiting.len());
        assert!(queue.is_empty());
        waiting
    }

    /// The frames sent to the session, as text.
    fn sent(view: &mut View) -> Vec<String> {
        let mut decoder = Decoder::default();
        decoder.feed(drain(&mut view.to_session).as_bytes());
        let mut frames = Vec::new();
        while let Some(frame) = decoder.next_frame().unwrap() {
            frames.push(match frame {
                Frame::Data(bytes) | Frame::Control(bytes) => String::from_utf8(bytes).unwrap(),
                Frame::Unknown(kind) => panic!("a frame of type {kind}"),
            });
        }
        frames
    }

    fn says(message: &ToClient) -> Vec<u8> {
        encode(CONTROL, &serde_json::to_vec(message).unwrap())
    }

    #[test]
    fn the_help_is_shown_while_a_command_is_awaited() {
        let (mut view, now) = view(options());
        assert_eq!(view.typed(now, b"\x1c"), None);
        view.update_line(now);
        let drawn = drain(&mut view.to_screen);
        assert!(
            drawn.contains("bot: d detach, t take the keyboard"),
            "{drawn:?}"
        );
        view.update_line(now);
        assert_eq!(drain(&mut view.to_screen), "", "the line is drawn once");
        view.received(now, &encode(DATA, b"more"));
        view.update_line(now);
        assert_eq!(drain(&mut view.to_screen), format!("more{drawn}"));
        view.typed(now, b"?");
        view.update_line(now);
        assert!(sent(&mut view).is_empty());
        view.typed(now, b"\x1b");
        view.update_line(now);
        assert_eq!(sent(&mut view), [r#"{"type":"redraw"}"#]);
        view.typed(now, b"d");
        assert_eq!(sent(&mut view), ["d"]);
        assert_eq!(view.typed(now, b"\x1cd"), Some(AttachEnd::Detached));
    }

    #[test]
    fn our_line_is_not_drawn_inside_an_escape_sequence() {
        let (mut view, now) = view(options());
        view.received(now, &encode(DATA, b"\x1b[3"));
        view.typed(now, b"\x1c");
        view.update_line(now);
        assert_eq!(drain(&mut view.to_screen), "\x1b[3");
        view.received(now, &encode(DATA, b"1m"));
        view.update_line(now);
        assert!(drain(&mut view.to_screen).starts_with("1m\x1b7"));
    }

    #[test]
    fn a_notice_disappears_after_its_time() {
        let (mut view, now) = view(options());
        let text = "a\u{1b}[2Jb".into();
        view.received(now, &says(&ToClient::Notice { text }));
        view.update_line(now);
        let drawn = drain(&mut view.to_screen);
        assert!(drawn.contains(" a[2Jb "), "{drawn:?}");
        let due = view.deadline().unwrap();
        view.update_line(due);
        assert_eq!(sent(&mut view), [r#"{"type":"redraw"}"#]);
        assert_eq!(view.deadline(), None);
    }

    #[test]
    fn the_keyboard_is_taken_and_released() {
        let (mut view, now) = view(options());
        view.typed(now, b"\x1ct");
        assert_eq!(sent(&mut view), [r#"{"type":"take"}"#]);
        for (taken, yours, message, next) in [
            (true, true, "you have the keyboard", "release"),
            (true, false, "another viewer has taken", "take"),
            (false, false, "the keyboard is free again", "take"),
        ] {
            view.received(now, &says(&ToClient::Keyboard { taken, yours }));
            view.update_line(now);
            let drawn = drain(&mut view.to_screen);
            assert!(drawn.contains(message), "{drawn:?}");
            view.typed(now, b"\x1ct");
            assert_eq!(sent(&mut view), [format!(r#"{{"type":"{next}"}}"#)]);
        }
    }

    #[test]
    fn a_read_only_viewer_sends_no_keys() {
        let (mut view, now) = view(AttachOptions {
            read_only: true,
            ..options()
        });
        view.typed(now, b"\x1b[<0;1;1M");
        view.update_line(now);
        assert_eq!(drain(&mut view.to_screen), "");
        view.typed(now, b"\x03");
        view.update_line(now);
        let drawn = drain(&mut view.to_screen);
        assert!(drawn.contains("read-only: Ctrl+\\ d detaches"), "{drawn:?}");
        view.typed(now, b"\x1ct");
        assert!(sent(&mut view).is_empty());
        assert_eq!(view.typed(now, b"\x1cd"), Some(AttachEnd::Detached));
    }

    #[test]
    fn control_frames_of_the_session_are_understood() {
        let check = |bytes: &[u8], want: Option<AttachEnd>| {
            let (mut view, now) = view(options());
            assert_eq!(view.received(now, bytes), want, "{bytes:?}");
        };
        let how = "exit 0\u{1b}[2J".into();
        let ended = AttachEnd::Ended {
            how: "exit 0[2J".into(),
        };
        check(&says(&ToClient::Ended { how }), Some(ended));
        check(&encode(CONTROL, br#"{"type":"of the future"}"#), None);
        check(&encode(CONTROL, b"nonsense"), None);
        check(&encode(9, b"?"), None);
        check(b"\x00\xff\xff\xff\xff", Some(AttachEnd::LostSession));
    }

    #[test]
    fn a_blocked_screen_stops_output_but_not_keys() {
        let (mut view, now) = view(options());
        view.received(now, &encode(DATA, &vec![b'x'; OUTPUT_QUEUE_BYTES]));
        assert!(!view.wants_output());
        assert!(view.wants_keys());
        for _ in 0..1000 {
            view.typed(now, b"\x1c?");
            view.update_line(now);
            view.typed(now, b"\x1b");
            view.update_line(now);
        }
        assert_eq!(view.to_screen.waiting().len(), OUTPUT_QUEUE_BYTES);
        assert_eq!(view.typed(now, b"\x1cd"), Some(AttachEnd::Detached));
    }

    #[test]
    fn a_queue_keeps_unwritten_bytes() {
        let mut queue = Queue::default();
        let mut want = Vec::new();
        let mut got = Vec::new();
        for round in 0..100_u8 {
            let bytes = vec![round; 5000];
            queue.push(&bytes);
            want.extend(bytes);
            let part = queue.waiting()[..queue.waiting().len() / 2].to_vec();
            queue.written(part.len());
            got.extend(part);
        }
        got.extend(queue.waiting());
        assert_eq!(got, want);
    }
}
