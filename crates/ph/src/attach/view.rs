//! What an attached client knows and decides: what goes to the session, what to the screen, and
//! when it is over. Has no descriptor and no clock; the pump brings it bytes and the time.

use super::keys::{Keys, Typed};
use super::{Left, Options, Size, bottom};
use posthaste_core::text;
use posthaste_screen::Boundary;
use posthaste_wire::frames::{CONTROL, DATA, Decoder, Frame, FromClient, ToClient, encode};
use std::time::{Duration, Instant};

/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(4);
/// What waits for one side before the other is left to wait. The last frame comes on top.
const ENOUGH: usize = 64 << 10;
/// The same for what is typed: a large paste should not keep the prefix key from being heard.
const ENOUGH_TYPED: usize = 1 << 20;

/// Bytes on their way out.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    gone: usize,
}

impl Queue {
    pub(super) fn waiting(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// So many of them have been written.
    pub(super) fn written(&mut self, count: usize) {
        self.gone += count;
        if self.is_empty() {
            self.bytes.clear();
            self.gone = 0;
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.gone > ENOUGH {
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }
}

/// Who has the keyboard to itself, as far as we were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keyboard {
    Free,
    Ours,
    Others,
}

#[derive(Debug)]
struct Notice {
    text: String,
    until: Instant,
}

pub(super) struct View {
    options: Options,
    size: Size,
    keys: Keys,
    keyboard: Keyboard,
    notice: Option<Notice>,
    /// Our line as it stands on the screen, if it does.
    drawn: Option<String>,
    decoder: Decoder,
    boundary: Boundary,
    has_drawn: bool,
    pub(super) to_session: Queue,
    pub(super) to_screen: Queue,
}

impl View {
    pub(super) fn new(options: Options, size: Size) -> Self {
        let mut view = Self {
            keys: Keys::new(options.prefix),
            keyboard: if options.take {
                Keyboard::Ours
            } else {
                Keyboard::Free
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
        view.make_room();
        view
    }

    /// Moves what the person has on the screen up, so that it can be found above.
    fn make_room(&mut self) {
        let mut room = vec![b'\n'; self.size.rows.into()];
        room.extend(b"\x1b[H");
        self.to_screen.push(&room);
    }

    pub(super) fn wants_output(&self) -> bool {
        self.to_screen.waiting().len() < ENOUGH
    }

    pub(super) fn wants_keys(&self) -> bool {
        self.to_session.waiting().len() < ENOUGH_TYPED
    }

    /// Whether the program's screen has come, and is on the person's.
    pub(super) fn has_drawn(&self) -> bool {
        self.has_drawn && self.to_screen.is_empty()
    }

    /// When [`Self::settle`] is due although nothing happens.
    pub(super) fn due(&self) -> Option<Instant> {
        self.notice.as_ref().map(|notice| notice.until)
    }

    pub(super) fn typed(&mut self, now: Instant, bytes: &[u8]) -> Option<Left> {
        for typed in self.keys.feed(bytes) {
            match typed {
                Typed::Keys(keys) => self.send(now, &keys),
                Typed::Detach => return Some(Left::Detached),
                Typed::Keyboard => self.toggle(now),
                Typed::Redraw => self.say(&FromClient::Redraw),
            }
        }
        None
    }

    fn send(&mut self, now: Instant, keys: &[u8]) {
        if !self.options.read_only {
            self.to_session.push(&encode(DATA, keys));
        } else if !keys.starts_with(b"\x1b") {
            // What begins with an escape may be no key, but the mouse or an answer.
            let prefix = self.options.prefix;
            self.notify(now, format!("read-only: {prefix} d detaches"));
        }
    }

    fn toggle(&mut self, now: Instant) {
        if self.options.read_only {
            self.notify(now, "read-only: the keyboard cannot be taken".into());
            return;
        }
        match self.keyboard {
            Keyboard::Ours => self.say(&FromClient::Release),
            Keyboard::Free | Keyboard::Others => self.say(&FromClient::Take),
        }
    }

    fn say(&mut self, said: &FromClient) {
        let said = serde_json::to_vec(said).expect("plain fields have a JSON form");
        self.to_session.push(&encode(CONTROL, &said));
    }

    fn notify(&mut self, now: Instant, text: String) {
        self.notice = Some(Notice {
            text,
            until: now + NOTICE,
        });
    }

    pub(super) fn resized(&mut self, size: Size) {
        self.size = size;
        self.say(&FromClient::Resize {
            cols: size.cols,
            rows: size.rows,
        });
        self.disturb();
    }

    /// The terminal is ours again; nobody knows what is on it.
    pub(super) fn continued(&mut self, size: Size) {
        self.size = size;
        self.make_room();
        self.resized(size);
        self.say(&FromClient::Redraw);
    }

    /// Bytes from the session.
    pub(super) fn received(&mut self, now: Instant, bytes: &[u8]) -> Option<Left> {
        self.decoder.feed(bytes);
        loop {
            match self.decoder.next_frame() {
                Ok(None) => return None,
                Ok(Some(Frame::Data(output))) => self.output(&output),
                Ok(Some(Frame::Control(said))) => {
                    if let Some(left) = self.told(now, &said) {
                        return Some(left);
                    }
                }
                Ok(Some(Frame::Unknown(_))) => {}
                // What follows cannot be told apart any more.
                Err(_) => return Some(Left::LostSession),
            }
        }
    }

    fn output(&mut self, output: &[u8]) {
        self.boundary.advance(output);
        self.to_screen.push(output);
        self.has_drawn = true;
        self.disturb();
    }

    /// Our line may have been written over, or stand where the bottom is no more.
    fn disturb(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            drawn.clear();
        }
    }

    fn told(&mut self, now: Instant, said: &[u8]) -> Option<Left> {
        // What a newer session says is passed over.
        match serde_json::from_slice(said).ok()? {
            ToClient::Ended { how } => {
                return Some(Left::Ended {
                    how: text::one_line(&how, 200),
                });
            }
            ToClient::Switch { name } => self.notify(now, format!("go on with {name}")),
            ToClient::Notice { text } => self.notify(now, text),
            ToClient::Keyboard { taken, yours } => self.keyboard_is(now, taken, yours),
        }
        None
    }

    fn keyboard_is(&mut self, now: Instant, taken: bool, yours: bool) {
        let is = match (taken, yours) {
            (true, true) => Keyboard::Ours,
            (true, false) => Keyboard::Others,
            (false, _) => Keyboard::Free,
        };
        let was = std::mem::replace(&mut self.keyboard, is);
        let prefix = self.options.prefix;
        let text = match is {
            Keyboard::Ours => {
                format!("the keyboard is yours, and mail waits; {prefix} t gives it back")
            }
            Keyboard::Others => "somebody else has taken the keyboard".to_owned(),
            // That is what everybody takes for granted.
            Keyboard::Free if was == Keyboard::Free => return,
            Keyboard::Free => "the keyboard is free again".to_owned(),
        };
        self.notify(now, text);
    }

    /// Brings our own line up to date. After everything else that happened at this moment.
    pub(super) fn settle(&mut self, now: Instant) {
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
                self.say(&FromClient::Redraw);
            }
            Some(line) if self.drawn.as_ref() != Some(&line) => {
                // Inside a sequence it would break that; behind a full queue it comes too late.
                if self.boundary.is_here() && self.wants_output() {
                    self.to_screen.push(&bottom::draw(&line, self.size));
                    self.drawn = Some(line);
                }
            }
            None | Some(_) => {}
        }
    }

    fn help(&self) -> String {
        let Options { name, prefix, .. } = &self.options;
        let keyboard = match self.keyboard {
            Keyboard::Ours => "t give the keyboard back",
            Keyboard::Free | Keyboard::Others => "t take the keyboard",
        };
        format!("{name}: d detach, {keyboard}, r redraw, {prefix} send it, Esc go on")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::*;

    const SIZE: Size = Size { cols: 60, rows: 10 };

    fn options() -> Options {
        Options {
            read_only: false,
            take: false,
            name: "bot".into(),
            prefix: Key::CTRL_BACKSLASH,
        }
    }

    fn view(options: Options) -> (View, Instant) {
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

    /// What the session gets, as words.
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

    fn says(said: &ToClient) -> Vec<u8> {
        encode(CONTROL, &serde_json::to_vec(said).unwrap())
    }

    #[test]
    fn the_help_stands_as_long_as_the_prefix_waits() {
        let (mut view, now) = view(options());
        assert_eq!(view.typed(now, b"\x1c"), None);
        view.settle(now);
        let drawn = drain(&mut view.to_screen);
        assert!(
            drawn.contains("bot: d detach, t take the keyboard"),
            "{drawn:?}"
        );
        view.settle(now);
        assert_eq!(drain(&mut view.to_screen), "", "once is enough");
        view.received(now, &encode(DATA, b"more"));
        view.settle(now);
        assert_eq!(drain(&mut view.to_screen), format!("more{drawn}"));
        view.typed(now, b"?");
        view.settle(now);
        assert!(sent(&mut view).is_empty());
        view.typed(now, b"\x1b");
        view.settle(now);
        assert_eq!(sent(&mut view), [r#"{"type":"redraw"}"#]);
        view.typed(now, b"d");
        assert_eq!(sent(&mut view), ["d"]);
        assert_eq!(view.typed(now, b"\x1cd"), Some(Left::Detached));
    }

    #[test]
    fn our_line_waits_for_a_place_to_stand() {
        let (mut view, now) = view(options());
        view.received(now, &encode(DATA, b"\x1b[3"));
        view.typed(now, b"\x1c");
        view.settle(now);
        assert_eq!(drain(&mut view.to_screen), "\x1b[3");
        view.received(now, &encode(DATA, b"1m"));
        view.settle(now);
        assert!(drain(&mut view.to_screen).starts_with("1m\x1b7"));
    }

    #[test]
    fn a_notice_goes_after_its_time() {
        let (mut view, now) = view(options());
        let text = "a\u{1b}[2Jb".into();
        view.received(now, &says(&ToClient::Notice { text }));
        view.settle(now);
        let drawn = drain(&mut view.to_screen);
        assert!(drawn.contains(" a[2Jb "), "{drawn:?}");
        let due = view.due().unwrap();
        view.settle(due);
        assert_eq!(sent(&mut view), [r#"{"type":"redraw"}"#]);
        assert_eq!(view.due(), None);
    }

    #[test]
    fn the_keyboard_is_taken_and_given_back() {
        let (mut view, now) = view(options());
        view.typed(now, b"\x1ct");
        assert_eq!(sent(&mut view), [r#"{"type":"take"}"#]);
        for (taken, yours, said, next) in [
            (true, true, "the keyboard is yours", "release"),
            (true, false, "somebody else has taken", "take"),
            (false, false, "the keyboard is free again", "take"),
        ] {
            view.received(now, &says(&ToClient::Keyboard { taken, yours }));
            view.settle(now);
            let drawn = drain(&mut view.to_screen);
            assert!(drawn.contains(said), "{drawn:?}");
            view.typed(now, b"\x1ct");
            assert_eq!(sent(&mut view), [format!(r#"{{"type":"{next}"}}"#)]);
        }
    }

    #[test]
    fn who_only_looks_sends_nothing() {
        let (mut view, now) = view(Options {
            read_only: true,
            ..options()
        });
        view.typed(now, b"\x1b[<0;1;1M");
        view.settle(now);
        assert_eq!(drain(&mut view.to_screen), "");
        view.typed(now, b"\x03");
        view.settle(now);
        let drawn = drain(&mut view.to_screen);
        assert!(drawn.contains("read-only: Ctrl+\\ d detaches"), "{drawn:?}");
        view.typed(now, b"\x1ct");
        assert!(sent(&mut view).is_empty());
        assert_eq!(view.typed(now, b"\x1cd"), Some(Left::Detached));
    }

    #[test]
    fn what_the_session_says() {
        let check = |bytes: &[u8], want: Option<Left>| {
            let (mut view, now) = view(options());
            assert_eq!(view.received(now, bytes), want, "{bytes:?}");
        };
        let how = "exit 0\u{1b}[2J".into();
        let ended = Left::Ended {
            how: "exit 0[2J".into(),
        };
        check(&says(&ToClient::Ended { how }), Some(ended));
        check(&encode(CONTROL, br#"{"type":"of the future"}"#), None);
        check(&encode(CONTROL, b"nonsense"), None);
        check(&encode(9, b"?"), None);
        check(b"\x00\xff\xff\xff\xff", Some(Left::LostSession));
    }

    #[test]
    fn a_screen_that_takes_nothing_stops_the_output_alone() {
        let (mut view, now) = view(options());
        view.received(now, &encode(DATA, &vec![b'x'; ENOUGH]));
        assert!(!view.wants_output());
        assert!(view.wants_keys());
        for _ in 0..1000 {
            view.typed(now, b"\x1c?");
            view.settle(now);
            view.typed(now, b"\x1b");
            view.settle(now);
        }
        assert_eq!(view.to_screen.waiting().len(), ENOUGH);
        assert_eq!(view.typed(now, b"\x1cd"), Some(Left::Detached));
    }

    #[test]
    fn a_queue_keeps_what_is_not_written() {
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
