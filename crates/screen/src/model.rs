//! Model of one terminal: bytes in; text, modes and replies out.
//!
//! The session's only model of its program's screen. Replies to the program's queries, whether or
//! not a terminal is attached. Never blocks, and never grows beyond its size.

use crate::Size;
use crate::emulator::Emulator;
use crate::output::ParserInput;
use alacritty_terminal::event::Event;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::color::Colors;
use alacritty_terminal::vte::ansi::{NamedColor, Processor, Rgb};
use std::time::Instant;

/// Model of one terminal.
pub struct Screen {
    parser: Processor,
    input: ParserInput,
    emulator: Emulator,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = self.size();
        f.debug_struct("Screen")
            .field("size", &size)
            .finish_non_exhaustive()
    }
}

impl Screen {
    pub fn new(size: Size, scrollback_lines: usize) -> Self {
        Self {
            parser: Processor::new(),
            input: ParserInput::default(),
            emulator: Emulator::new(size.sane(), scrollback_lines),
        }
    }

    /// Process output of the program.
    pub fn feed(&mut self, bytes: &[u8]) {
        let (parser, emulator) = (&mut self.parser, &mut self.emulator);
        self.input
            .admit(bytes, |piece| parser.advance(emulator, piece));
        self.emulator.bound_rows();
    }

    /// Return the replies to the program's queries since the last call. They are to be written to
    /// the program.
    pub fn take_replies(&mut self) -> Vec<u8> {
        let mut replies = Vec::new();
        for event in self.emulator.waiting_replies() {
            match event {
                Event::PtyWrite(answer) => replies.extend_from_slice(answer.as_bytes()),
                Event::ColorRequest(index, answer) => {
                    let color = color(self.emulator.term.colors(), index);
                    replies.extend_from_slice(answer(color).as_bytes());
                }
                // The listener sends no other events.
                _ => {}
            }
        }
        replies
    }

    /// Return the deadline of an unfinished synchronized update, whose output is held back.
    pub fn sync_deadline(&self) -> Option<Instant> {
        self.parser.sync_timeout().sync_timeout()
    }

    /// Show the output that is held back. Needed when the deadline has passed, and before a redraw
    /// that raw output follows.
    pub fn stop_sync(&mut self) {
        if self.sync_deadline().is_some() {
            self.parser.stop_sync(&mut self.emulator);
        }
    }

    pub fn resize(&mut self, size: Size) {
        // The output that is held back was written for the old size.
        self.stop_sync();
        self.emulator.resize(size.sane());
    }

    pub fn size(&self) -> Size {
        let fits = |cells: usize| u16::try_from(cells).unwrap_or(u16::MAX);
        Size {
            cols: fits(self.emulator.term.columns()),
            rows: fits(self.emulator.term.screen_lines()),
        }
    }

    pub fn title(&self) -> Option<&str> {
        self.emulator.title.as_deref()
    }

    /// Keep the latest operating system command with this number from now on.
    pub fn listen(&mut self, number: u16) {
        self.input.listen(number);
    }

    /// Return the latest operating system command with the number given to [`Self::listen`].
    pub fn note(&self) -> Option<&str> {
        self.input.note()
    }

    /// Return whether the program distinguishes pasted text from typed text.
    pub fn bracketed_paste(&self) -> bool {
        self.emulator.mode().contains(TermMode::BRACKETED_PASTE)
    }

    pub fn alternate_screen(&self) -> bool {
        self.emulator.mode().contains(TermMode::ALT_SCREEN)
    }

    pub fn wants_mouse(&self) -> bool {
        self.emulator.mode().intersects(TermMode::MOUSE_MODE) || self.emulator.extra.press_mouse
    }

    /// Return row and column, counted from 0.
    pub fn cursor(&self) -> (usize, usize) {
        let point = self.emulator.term.grid().cursor.point;
        (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
    }

    pub fn cursor_visible(&self) -> bool {
        self.emulator.mode().contains(TermMode::SHOW_CURSOR)
    }

    pub(crate) fn emulator(&self) -> &Emulator {
        &self.emulator
    }
}

/// Return a colour as the program has set it, or xterm's default on a dark background.
fn color(set: &Colors, index: usize) -> Rgb {
    const NAMED_COLORS: [u32; 16] = [
        0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5,
        0x7f_7f7f, 0xff_0000, 0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
    ];
    if let Some(color) = set[index] {
        return color;
    }
    let cube = |step: usize| if step == 0 { 0 } else { 55 + 40 * step as u8 };
    match index {
        0..16 => {
            let [_, r, g, b] = NAMED_COLORS[index].to_be_bytes();
            Rgb { r, g, b }
        }
        16..232 => {
            let at = index - 16;
            let (r, g, b) = (cube(at / 36), cube(at / 6 % 6), cube(at % 6));
            Rgb { r, g, b }
        }
        232..256 => {
            let grey = 8 + 10 * (index - 232) as u8;
            Rgb {
                r: grey,
                g: grey,
                b: grey,
            }
        }
        index if index == NamedColor::Background as usize => Rgb::default(),
        _ => Rgb {
            r: 0xe5,
            g: 0xe5,
            b: 0xe5,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_output::{Likeness, cut, state, stream};
    use proptest::prelude::*;

    const SIZE: Size = Size { cols: 10, rows: 4 };

    fn fed(bytes: &[u8]) -> Screen {
        let mut screen = Screen::new(SIZE, 20);
        screen.feed(bytes);
        screen
    }

    #[test]
    fn queries_get_replies() {
        let check = |asked: &str, want: &str| {
            let answer = fed(asked.as_bytes()).take_replies();
            assert_eq!(String::from_utf8(answer).unwrap(), want, "{asked:?}");
        };
        check("\x1b[5n", "\x1b[0n");
        check("ab\r\nc\x1b[6n", "\x1b[2;2R");
        check("\x1b[c\x1bZ", "\x1b[?6c\x1b[?6c");
        check("\x1b[>c", "\x1b[>0;2600;1c");
        check(
            "\x1b[?2026$p\x1b[?2004h\x1b[?2004$p",
            "\x1b[?2026;2$y\x1b[?2004;1$y",
        );
        check("\x1b[?u\x1b[>5u\x1b[?u", "\x1b[?0u\x1b[?5u");
        check("\x1b[18t", "\x1b[8;4;10t");
        check("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07");
        check("\x1b]10;?\x1b\\", "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\");
        check(
            "\x1b]4;1;?;231;?;232;?\x07",
            concat!(
                "\x1b]4;1;rgb:cdcd/0000/0000\x07",
                "\x1b]4;231;rgb:ffff/ffff/ffff\x07",
                "\x1b]4;232;rgb:0808/0808/0808\x07"
            ),
        );
        check(
            "\x1b]11;#102030\x07\x1b]11;?\x07",
            "\x1b]11;rgb:1010/2020/3030\x07",
        );
        check("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m");
        check("\x1b]52;c;?\x07\x1b]52;c;Zm9v\x07", "");
    }

    #[test]
    fn unread_replies_are_bounded() {
        let mut screen = fed("\x1b[6n".repeat(100_000).as_bytes());
        assert!(screen.take_replies().len() < 4096);
        assert!(screen.take_replies().is_empty());
    }

    #[test]
    fn modes_are_reported() {
        let mut screen =
            fed(b"\x1b]0;title\x07\x1b[?2004h\x1b[?1049h\x1b[?1002h\x1b[?25l\x1b[2;3H");
        assert_eq!(screen.title(), Some("title"));
        assert!(screen.bracketed_paste() && screen.alternate_screen() && screen.wants_mouse());
        assert!(!screen.cursor_visible());
        assert_eq!(screen.cursor(), (1, 2));
        screen.feed(b"\x1bc");
        assert_eq!(screen.title(), None);
        assert!(!screen.bracketed_paste() && !screen.alternate_screen() && !screen.wants_mouse());
        assert!(screen.cursor_visible());
    }

    #[test]
    fn any_size_is_limited() {
        let check = |cols, rows, want: (u16, u16)| {
            let size = Size { cols, rows };
            let mut screen = Screen::new(size, 0);
            assert_eq!((screen.size().cols, screen.size().rows), want);
            screen.resize(SIZE);
            screen.resize(size);
            assert_eq!((screen.size().cols, screen.size().rows), want);
            screen.feed("漢字 text\r\n".repeat(3).as_bytes());
        };
        check(0, 0, (2, 1));
        check(80, 24, (80, 24));
        check(u16::MAX, u16::MAX, (1000, 500));
    }

    #[test]
    fn a_synchronized_update_is_shown_at_once() {
        let mut screen = fed(b"\x1b[?2026hhalf");
        assert!(screen.sync_deadline().is_some());
        assert_eq!(screen.text(None)[0], "");
        screen.stop_sync();
        assert!(screen.sync_deadline().is_none());
        assert_eq!(screen.text(None)[0], "half");
        screen.feed(b"\x1b[?2026h and\x1b[?2026l");
        assert_eq!(screen.text(None)[0], "half and");
    }

    #[test]
    fn a_program_can_neither_exhaust_memory_nor_crash_the_model() {
        let mut screen = fed("\x1b[>1u".repeat(10_000).as_bytes());
        screen.feed("\x1b[22t\x1b]2;t\x07".repeat(10_000).as_bytes());
        screen.feed("\u{301}".repeat(100_000).as_bytes());
        screen.feed(format!("\x1b]2;{}\x07", "x".repeat(1_000_000)).as_bytes());
        assert_eq!(screen.title().map(str::len), Some(1024));
        assert!(screen.text(None)[0].len() < 64);
    }

    #[test]
    fn defects_of_the_library_are_corrected() {
        let check = |bytes: &str, want: &str| {
            let screen = fed(bytes.as_bytes());
            assert_eq!(screen.text(None).join("|"), want, "{bytes:?}");
        };
        // Deleting more characters than the rest of the row spares the characters before the
        // cursor.
        check("abcdef\x1b[1;4H\x1b[9P", "abc|||");
        // Erasing above includes the first row.
        check("one\r\ntwo\x1b[1J", "|||");
        // Half of a wide character spares its neighbour.
        check("a漢b\x1b[1;3H\x1b[1X\x1b[1;2HX", "aX b|||");
        check("日本\x1b[1;2H\x1b[P\x1b[1;1Hx", "x本|||");
        check("12345678日\x1b[1;1H\x1b[@", " 12345678|||");
        check("12345678日\x1b[1;1H\x1b[4hX", "X12345678|||");
        // A region beyond the screen is ignored.
        check("\x1b[9;20r\x1b[4;1Ha\r\nb", "||a|b");
    }

    #[test]
    fn other_ways_to_the_alternate_screen_work() {
        for mode in [47, 1047, 1049] {
            let mut screen = fed(format!("main\x1b[?{mode}hother").as_bytes());
            assert!(screen.alternate_screen());
            screen.feed(format!("\x1b[?{mode}l").as_bytes());
            assert_eq!(screen.text(None)[0], "main");
        }
    }

    proptest! {
        #[test]
        fn no_cut_makes_a_difference(
            bytes in stream(30),
            noise in prop::collection::vec(any::<u8>(), 0..20),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let bytes = [bytes.as_bytes(), &noise].concat();
            let mut one = fed(&bytes);
            let mut other = fed(b"");
            for chunk in cut(&bytes, &places) {
                other.feed(chunk);
            }
            one.stop_sync();
            other.stop_sync();
            prop_assert_eq!(state(&one, Likeness::State), state(&other, Likeness::State));
        }

        #[test]
        fn no_size_breaks_it(
            parts in prop::collection::vec((stream(10), 0..30_u16, 0..12_u16), 1..6),
        ) {
            let mut screen = fed(b"");
            for (part, cols, rows) in parts {
                screen.feed(part.as_bytes());
                screen.resize(Size { cols, rows });
                let mut other = Screen::new(screen.size(), 0);
                other.feed(&crate::redraw(&screen));
                prop_assert_eq!(state(&screen, Likeness::Looks), state(&other, Likeness::Looks));
            }
        }
    }
}
