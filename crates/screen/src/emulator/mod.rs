//! The emulated terminal, with state that the library does not expose.
//!
//! Every action of the program passes through here. Notes state for redraws (scroll region, tab
//! stops, titles, key modes, the main screen behind the alternate one). Prevents output that
//! exhausts memory, crashes the library or splits a wide character. Never writes to a terminal.

mod actions;

use crate::{Size, redraw};
use alacritty_terminal::Term;
use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Osc52, TermMode};
use alacritty_terminal::vte::ansi::{
    CharsetIndex, Handler, KeyboardModes, KeyboardModesApplyBehavior, ModifyOtherKeys,
    NamedPrivateMode,
};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use unicode_width::UnicodeWidthChar;

/// Limit for replies that wait. Further queries of a program that never reads get no reply.
const MAX_WAITING_REPLIES: usize = 256;
/// Limit for combining marks on one character.
const MAX_COMBINING_MARKS: usize = 16;

/// Receives the library's replies to the program.
#[derive(Clone)]
pub(crate) struct ReplyQueue(SyncSender<Event>);

impl EventListener for ReplyQueue {
    fn send_event(&self, event: Event) {
        match event {
            // If the channel is full, the reply is dropped.
            Event::PtyWrite(_) | Event::ColorRequest(..) => {
                let _ = self.0.try_send(event);
            }
            // The clipboard belongs to the person: attached terminals store to it, and programs
            // never read it. The size in pixels is unknown here.
            Event::ClipboardStore(..)
            | Event::ClipboardLoad(..)
            | Event::TextAreaSizeRequest(_)
            | Event::MouseCursorDirty
            | Event::Title(_)
            | Event::ResetTitle
            | Event::CursorBlinkingChange
            | Event::Wakeup
            | Event::Bell
            | Event::Exit
            | Event::ChildExit(_) => {}
        }
    }
}

/// Modes that the library does not know, kept for redraws.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Extra {
    pub(crate) reverse_screen: bool,
    pub(crate) press_mouse: bool,
    pub(crate) decimal_mouse: bool,
}

pub(crate) struct Emulator {
    pub(crate) term: Term<ReplyQueue>,
    replies: Receiver<Event>,
    reply_queue: ReplyQueue,
    /// Rows that scroll.
    pub(crate) region: Range<usize>,
    pub(crate) charset: CharsetIndex,
    /// `None` while the tab stops are the default ones.
    pub(crate) tabs: Option<Vec<bool>>,
    pub(crate) title: Option<String>,
    titles: Vec<Option<String>>,
    /// Keyboard modes of the active screen; the library does not expose its stacks.
    pub(crate) keys: Vec<KeyboardModes>,
    keys_behind: Vec<KeyboardModes>,
    pub(crate) other_keys: ModifyOtherKeys,
    /// Whether the program has set a cursor style.
    pub(crate) styled: bool,
    pub(crate) extra: Extra,
    /// Redraw of the main screen while the alternate screen is active.
    pub(crate) behind: Option<Vec<u8>>,
    scrollback: usize,
    /// Whether the library has allocated rows for all of the scrollback.
    has_all_rows: bool,
}

impl Emulator {
    pub(crate) fn new(size: Size, scrollback: usize) -> Self {
        let (sender, replies) = sync_channel(MAX_WAITING_REPLIES);
        let reply_queue = ReplyQueue(sender);
        let config = Config {
            scrolling_history: scrollback,
            kitty_keyboard: true,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Self {
            term: Term::new(config, &size, reply_queue.clone()),
            replies,
            reply_queue,
            region: 0..usize::from(size.rows),
            charset: CharsetIndex::G0,
            tabs: None,
            title: None,
            titles: Vec::new(),
            keys: Vec::new(),
            keys_behind: Vec::new(),
            other_keys: ModifyOtherKeys::Reset,
            styled: false,
            extra: Extra::default(),
            behind: None,
            scrollback,
            has_all_rows: false,
        }
    }

    /// The library allocates a thousand rows when the first line scrolls away, and again after a
    /// resize. Leave it only the rows of the scrollback, so that it never needs more.
    pub(crate) fn bound_rows(&mut self) {
        let history = self.term.history_size();
        if self.has_all_rows || history == 0 {
            return;
        }
        // The rows may have been resized while the alternate screen was active.
        self.own_up_to_rows();
        let grid = self.term.grid_mut();
        // Allocate the rest of the scrollback as empty rows, older than all others.
        grid.initialize_all();
        grid.truncate();
        // Keep those rows allocated but empty.
        grid.update_history(history);
        grid.update_history(self.scrollback);
        self.has_all_rows = true;
    }

    pub(crate) fn mode(&self) -> TermMode {
        *self.term.mode()
    }

    /// Return the active flags of the kitty keyboard protocol.
    pub(crate) fn key_flags(&self) -> KeyboardModes {
        let bits = (self.mode() & TermMode::KITTY_KEYBOARD_PROTOCOL).bits();
        let shift = TermMode::DISAMBIGUATE_ESC_CODES.bits().trailing_zeros();
        KeyboardModes::from_bits_truncate((bits >> shift) as u8)
    }

    pub(crate) fn waiting_replies(&self) -> impl Iterator<Item = Event> + '_ {
        self.replies.try_iter()
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.term.resize(size);
        self.has_all_rows = false;
        self.own_up_to_rows();
        self.region = 0..usize::from(size.rows);
        if let Some(tabs) = &mut self.tabs {
            let had = tabs.len();
            tabs.resize(usize::from(size.cols), false);
            for (column, stop) in tabs.iter_mut().enumerate().skip(had) {
                *stop = every_eighth(column);
            }
        }
        self.mend_edge();
        if self.behind.is_some() {
            self.redraw_behind();
        }
    }

    /// The library clears only cells that it believes to be written, and forgets coloured blanks
    /// after a resize: they would return with the next line. Mark all cells as written.
    fn own_up_to_rows(&mut self) {
        let (first, last) = (self.term.topmost_line(), self.term.bottommost_line());
        let edge = self.term.last_column();
        let grid = self.term.grid_mut();
        for line in (first.0..=last.0).map(Line) {
            // Mutable access is enough to mark the cell.
            let _ = &mut grid[line][edge];
        }
    }

    /// Repair wide characters whose second half is lost in a narrower screen.
    fn mend_edge(&mut self) {
        let edge = self.term.last_column();
        for line in (0..self.term.screen_lines()).map(Line::from) {
            if self.term.grid()[line][edge]
                .flags
                .contains(Flags::WIDE_CHAR)
            {
                self.term.grid_mut()[line][edge].clear_wide();
            }
        }
    }

    /// Update the redraw of the main screen. The library exposes the main screen only by swapping
    /// the screens, which clears the alternate one, so that is restored afterwards.
    fn redraw_behind(&mut self) {
        let shown = self.term.grid().clone();
        let flags = self.key_flags();
        self.term.swap_alt();
        self.mend_edge();
        self.behind = Some(redraw::hidden_main(&self.term, &self.keys_behind));
        self.term.swap_alt();
        *self.term.grid_mut() = shown;
        Handler::set_keyboard_mode(&mut self.term, flags, KeyboardModesApplyBehavior::Replace);
    }

    fn show_alternate(&mut self) {
        if self.mode().contains(TermMode::ALT_SCREEN) {
            return;
        }
        self.behind = Some(redraw::hidden_main(&self.term, &self.keys));
        self.term.swap_alt();
        // Every visit starts anew, so that redraws do not depend on earlier ones.
        let grid = self.term.grid_mut();
        grid.saved_cursor = grid.cursor.clone();
        Handler::pop_keyboard_modes(&mut self.term, u16::MAX);
        self.keys_behind = std::mem::take(&mut self.keys);
    }

    fn show_main(&mut self) {
        if self.mode().contains(TermMode::ALT_SCREEN) {
            self.term.swap_alt();
            self.keys = std::mem::take(&mut self.keys_behind);
            self.behind = None;
        }
    }

    fn set_extra(&mut self, mode: u16, on: bool) {
        match mode {
            5 => self.extra.reverse_screen = on,
            9 => self.extra.press_mouse = on,
            1015 => self.extra.decimal_mouse = on,
            _ => {}
        }
    }

    /// Note the other effects of a mode.
    fn note(&mut self, mode: NamedPrivateMode) {
        match mode {
            NamedPrivateMode::ColumnMode => self.region = 0..self.term.screen_lines(),
            NamedPrivateMode::BlinkingCursor => self.styled = true,
            NamedPrivateMode::CursorKeys
            | NamedPrivateMode::Origin
            | NamedPrivateMode::LineWrap
            | NamedPrivateMode::ShowCursor
            | NamedPrivateMode::ReportMouseClicks
            | NamedPrivateMode::ReportCellMouseMotion
            | NamedPrivateMode::ReportAllMouseMotion
            | NamedPrivateMode::ReportFocusInOut
            | NamedPrivateMode::Utf8Mouse
            | NamedPrivateMode::SgrMouse
            | NamedPrivateMode::AlternateScroll
            | NamedPrivateMode::UrgencyHints
            | NamedPrivateMode::SwapScreenAndSetRestoreCursor
            | NamedPrivateMode::BracketedPaste
            | NamedPrivateMode::SyncUpdate => {}
        }
    }

    fn cursor(&self) -> (Line, usize) {
        let point = self.term.grid().cursor.point;
        (point.line, point.column.0)
    }

    /// Blank a wide character that lies across `column`, before a change to one side only, as
    /// terminals do. Half of one would later damage its neighbour.
    fn part_at(&mut self, column: usize) {
        let (line, _) = self.cursor();
        self.part(line, column);
    }

    fn part(&mut self, line: Line, column: usize) {
        if column == 0 || column >= self.term.columns() {
            return;
        }
        let spacer = Flags::WIDE_CHAR_SPACER;
        if self.term.grid()[line][Column(column)]
            .flags
            .contains(spacer)
        {
            let row = &mut self.term.grid_mut()[line];
            row[Column(column)].flags.remove(spacer);
            row[Column(column - 1)].clear_wide();
        }
    }

    /// Prepare the row for an inserted character, which shifts it to the right.
    fn make_room(&mut self, width: usize) {
        let edge = self.term.columns().saturating_sub(width);
        let (line, column) = self.cursor();
        let wraps =
            self.term.grid().cursor.input_needs_wrap && self.mode().contains(TermMode::LINE_WRAP);
        let next = Line(line.0 + 1);
        if !wraps {
            self.part(line, column);
            self.part(line, edge);
        } else if next.0 as usize != self.region.end {
            self.part(next.min(self.term.bottommost_line()), edge);
        }
    }

    /// Return whether this character may be written. Makes room for it in insert mode.
    fn admits(&mut self, c: char) -> bool {
        if !c.is_ascii() && c.width() == Some(0) && self.crowded() {
            return false;
        }
        if self.mode().contains(TermMode::INSERT) {
            self.make_room(c.width().unwrap_or(1));
        }
        true
    }

    /// Return whether the character before the cursor has the maximum number of marks.
    fn crowded(&self) -> bool {
        let cursor = &self.term.grid().cursor;
        let back = usize::from(!cursor.input_needs_wrap);
        let mut column = cursor.point.column.0.saturating_sub(back);
        let row = &self.term.grid()[cursor.point.line];
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        row[Column(column)]
            .zerowidth()
            .is_some_and(|marks| marks.len() >= MAX_COMBINING_MARKS)
    }

    fn tabs(&mut self) -> &mut Vec<bool> {
        let columns = self.term.columns();
        self.tabs
            .get_or_insert_with(|| (0..columns).map(every_eighth).collect())
    }
}

fn every_eighth(column: usize) -> bool {
    column.is_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_output::{cell_state, stream};
    use alacritty_terminal::term::cell::Cell;
    use alacritty_terminal::vte::ansi::Processor;
    use proptest::prelude::*;

    const SCROLLBACK: usize = 12;

    /// Return all rows of screen and scrollback, and the cursor's position.
    fn seen(emulator: &Emulator) -> String {
        let grid = emulator.term.grid();
        let rows = (grid.topmost_line().0..=grid.bottommost_line().0).map(Line);
        let mut out = format!("{:?}\n", grid.cursor.point);
        for line in rows {
            grid[line][..]
                .iter()
                .for_each(|cell| cell_state(&mut out, cell));
            out.push('\n');
        }
        out
    }

    #[test]
    fn coloured_blanks_do_not_return() {
        let mut parser: Processor = Processor::new();
        let mut emulator = Emulator::new(Size { cols: 10, rows: 4 }, SCROLLBACK);
        // Write blue from edge to edge until the scrollback is full of it.
        parser.advance(&mut emulator, b"\x1b[44m");
        parser.advance(&mut emulator, "line\r\n".repeat(20).as_bytes());
        emulator.bound_rows();
        emulator.resize(Size { cols: 15, rows: 4 });
        parser.advance(&mut emulator, b"\x1b[m\r\n\r\n\r\n\r\n");
        emulator.bound_rows();
        let grid = emulator.term.grid();
        for line in (0..4).map(Line) {
            for cell in &grid[line][..] {
                assert_eq!(*cell, Cell::default(), "{line:?}");
            }
        }
    }

    fn step() -> impl Strategy<Value = (String, Option<Size>)> {
        let lines = (0..30_usize).prop_map(|count| "line\r\n".repeat(count));
        let size = (1..20_u16, 1..9_u16).prop_map(|(cols, rows)| Size { cols, rows });
        let text = prop_oneof![stream(10), lines];
        (text, prop::option::of(size))
    }

    proptest! {
        #[test]
        fn bounded_rows_hold_the_same(steps in prop::collection::vec(step(), 1..8)) {
            let size = Size { cols: 10, rows: 4 };
            let mut parsers: [Processor; 2] = [Processor::new(), Processor::new()];
            let [mut ours, mut plain] = [(); 2].map(|()| Emulator::new(size, SCROLLBACK));
            for (text, size) in steps {
                parsers[0].advance(&mut ours, text.as_bytes());
                parsers[1].advance(&mut plain, text.as_bytes());
                ours.bound_rows();
                prop_assert_eq!(seen(&ours), seen(&plain));
                if let Some(size) = size {
                    ours.resize(size.sane());
                    plain.resize(size.sane());
                    prop_assert_eq!(seen(&ours), seen(&plain));
                }
            }
        }
    }
}
