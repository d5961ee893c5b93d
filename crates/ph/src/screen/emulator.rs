//! The emulated terminal, with what the library keeps to itself.
//!
//! Every action of the program passes through here on its way to the library. What a redraw must
//! know and the library does not tell (scroll region, tab stops, titles, key modes, the screen
//! behind the alternate one) is noted; what would let a program eat memory, crash the library or
//! tear a wide character in two is prevented. It decides nothing about clients and writes nothing.

use super::{Size, paint};
use alacritty_terminal::Term;
use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Osc52, TermMode};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, ModifyOtherKeys, NamedPrivateMode,
    PrivateMode, Rgb, StandardCharset, TabulationClearMode,
};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use unicode_width::UnicodeWidthChar;

/// A program that asks more than this without ever reading is not answered further.
const ANSWERS: usize = 256;
/// More marks on one character than this are not text.
const MARKS: usize = 16;
const TITLE_BYTES: usize = 1024;
const TITLES: usize = 16;
const KEY_MODES: usize = 16;
/// What browsers take, and other terminals.
const LINK_BYTES: usize = 2083;

/// Hears from the library what the program should be told.
#[derive(Clone)]
pub(super) struct Asked(SyncSender<Event>);

impl EventListener for Asked {
    fn send_event(&self, event: Event) {
        match event {
            // When the channel is full, the answer is dropped.
            Event::PtyWrite(_) | Event::ColorRequest(..) => {
                let _ = self.0.try_send(event);
            }
            // The clipboard belongs to the person: clients see what is stored there, and nobody
            // tells a program what is in it. A size in pixels is not known here.
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

/// Modes that the library does not know, kept for who attaches later.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Extra {
    pub(super) reverse_screen: bool,
    pub(super) press_mouse: bool,
    pub(super) decimal_mouse: bool,
}

pub(super) struct Emulator {
    pub(super) term: Term<Asked>,
    asked: Receiver<Event>,
    asks: Asked,
    /// The rows that scroll.
    pub(super) region: Range<usize>,
    pub(super) charset: CharsetIndex,
    /// `None` as long as they are where every terminal has them.
    pub(super) tabs: Option<Vec<bool>>,
    pub(super) title: Option<String>,
    titles: Vec<Option<String>>,
    /// The stack of the active screen; the library keeps its own copies of both.
    pub(super) keys: Vec<KeyboardModes>,
    keys_behind: Vec<KeyboardModes>,
    pub(super) other_keys: ModifyOtherKeys,
    /// Whether the program has chosen a cursor.
    pub(super) styled: bool,
    pub(super) extra: Extra,
    /// While the alternate screen shows: what draws the main one.
    pub(super) behind: Option<Vec<u8>>,
}

impl Emulator {
    pub(super) fn new(size: Size, scrollback: usize) -> Self {
        let (sender, asked) = sync_channel(ANSWERS);
        let asks = Asked(sender);
        let config = Config {
            scrolling_history: scrollback,
            kitty_keyboard: true,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Self {
            term: Term::new(config, &size, asks.clone()),
            asked,
            asks,
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
        }
    }

    pub(super) fn mode(&self) -> TermMode {
        *self.term.mode()
    }

    /// The flags of the kitty keyboard protocol that are in force.
    pub(super) fn key_flags(&self) -> KeyboardModes {
        let bits = (self.mode() & TermMode::KITTY_KEYBOARD_PROTOCOL).bits();
        let shift = TermMode::DISAMBIGUATE_ESC_CODES.bits().trailing_zeros();
        KeyboardModes::from_bits_truncate((bits >> shift) as u8)
    }

    pub(super) fn asked(&self) -> impl Iterator<Item = Event> + '_ {
        self.asked.try_iter()
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.term.resize(size);
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

    /// A narrower screen may have lost the second half of a wide character.
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

    /// The library has moved the lines of the main screen too, but shows them only to who swaps
    /// the screens, and that clears the alternate one: so it is put back afterwards.
    fn redraw_behind(&mut self) {
        let shown = self.term.grid().clone();
        let flags = self.key_flags();
        self.term.swap_alt();
        self.mend_edge();
        self.behind = Some(paint::beneath(&self.term, &self.keys_behind));
        self.term.swap_alt();
        *self.term.grid_mut() = shown;
        Handler::set_keyboard_mode(&mut self.term, flags, KeyboardModesApplyBehavior::Replace);
    }

    fn show_alternate(&mut self) {
        if self.mode().contains(TermMode::ALT_SCREEN) {
            return;
        }
        self.behind = Some(paint::beneath(&self.term, &self.keys));
        self.term.swap_alt();
        // Each visit begins anew, so that nobody has to know of earlier ones.
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

    fn cursor(&self) -> (Line, usize) {
        let point = self.term.grid().cursor.point;
        (point.line, point.column.0)
    }

    /// Before something changes on one side of a column alone: a wide character that lies across
    /// it becomes blank, as terminals do. Half a one would later take its neighbour along.
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

    /// Before a character is inserted: the row it goes to is pushed to the right.
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

    /// Whether the character that a mark would join has all the marks it may have.
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
            .is_some_and(|marks| marks.len() >= MARKS)
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

/// What the library does as it should.
macro_rules! pass_on {
    ($($action:ident($($name:ident: $kind:ty),*);)*) => {
        $(#[inline]
        fn $action(&mut self, $($name: $kind),*) {
            Handler::$action(&mut self.term, $($name),*);
        })*
    };
}

impl Handler for Emulator {
    pass_on! {
        goto(line: i32, col: usize);
        goto_line(line: i32);
        goto_col(col: usize);
        move_up(rows: usize);
        move_down(rows: usize);
        move_forward(cols: usize);
        move_backward(cols: usize);
        move_down_and_cr(rows: usize);
        move_up_and_cr(rows: usize);
        identify_terminal(intermediate: Option<char>);
        device_status(status: usize);
        put_tab(count: u16);
        backspace();
        carriage_return();
        linefeed();
        newline();
        scroll_up(rows: usize);
        scroll_down(rows: usize);
        insert_blank_lines(rows: usize);
        delete_lines(rows: usize);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        reverse_index();
        terminal_attribute(attr: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        report_mode(mode: Mode);
        report_private_mode(mode: PrivateMode);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, color: Rgb);
        dynamic_color_sequence(prefix: String, index: usize, terminator: &str);
        reset_color(index: usize);
        decaln();
        text_area_size_chars();
        report_keyboard_mode();
        set_keyboard_mode(mode: KeyboardModes, behavior: KeyboardModesApplyBehavior);
    }

    #[inline]
    fn input(&mut self, c: char) {
        if !c.is_ascii() && c.width() == Some(0) && self.crowded() {
            return;
        }
        if self.mode().contains(TermMode::INSERT) {
            self.make_room(c.width().unwrap_or(1));
        }
        self.term.input(c);
    }

    fn insert_blank(&mut self, count: usize) {
        let (_, column) = self.cursor();
        self.part_at(column);
        self.part_at(self.term.columns().saturating_sub(count));
        self.term.insert_blank(count);
    }

    fn erase_chars(&mut self, count: usize) {
        let (_, column) = self.cursor();
        self.part_at(column);
        self.part_at(column + count);
        self.term.erase_chars(count);
    }

    fn delete_chars(&mut self, count: usize) {
        let (_, column) = self.cursor();
        // With more than there are, the library would delete before the cursor too.
        let count = count.min(self.term.columns() - column);
        self.part_at(column);
        self.part_at(column + count);
        self.term.delete_chars(count);
    }

    fn clear_line(&mut self, mode: LineClearMode) {
        let (_, column) = self.cursor();
        match mode {
            LineClearMode::Right => self.part_at(column),
            LineClearMode::Left => self.part_at(column + 1),
            LineClearMode::All => {}
        }
        self.term.clear_line(mode);
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        let (line, column) = self.cursor();
        match mode {
            ClearMode::Below => self.part_at(column),
            ClearMode::Above => {
                self.part_at(column + 1);
                if line == 1 {
                    // The library forgets the one row above.
                    self.term.grid_mut().reset_region(..line);
                }
            }
            ClearMode::All | ClearMode::Saved => {}
        }
        self.term.clear_screen(mode);
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let rows = self.term.screen_lines();
        let bottom = bottom.unwrap_or(rows).min(rows);
        if top < bottom {
            self.region = top - 1..bottom;
            self.term.set_scrolling_region(top, Some(bottom));
        }
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
            | PrivateMode::Unknown(47 | 1047) => self.show_alternate(),
            PrivateMode::Unknown(1048) => self.term.save_cursor_position(),
            PrivateMode::Unknown(mode) => self.set_extra(mode, true),
            PrivateMode::Named(named) => {
                self.note(named);
                self.term.set_private_mode(mode);
            }
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
            | PrivateMode::Unknown(47 | 1047) => self.show_main(),
            PrivateMode::Unknown(1048) => self.term.restore_cursor_position(),
            PrivateMode::Unknown(mode) => self.set_extra(mode, false),
            PrivateMode::Named(named) => {
                self.note(named);
                self.term.unset_private_mode(mode);
            }
        }
    }

    fn set_horizontal_tabstop(&mut self) {
        let (_, column) = self.cursor();
        self.tabs()[column] = true;
        self.term.set_horizontal_tabstop();
    }

    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        let (_, column) = self.cursor();
        match mode {
            TabulationClearMode::Current => self.tabs()[column] = false,
            TabulationClearMode::All => self.tabs().fill(false),
        }
        self.term.clear_tabs(mode);
    }

    fn move_backward_tabs(&mut self, count: u16) {
        self.term.move_backward_tabs(count);
        // The library would still wrap, though the cursor has left the edge.
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    fn set_tabs(&mut self, interval: u16) {
        // The library has no such action, and sets a stop only where the cursor is.
        let cursor = self.term.grid().cursor.point.column;
        self.term.clear_tabs(TabulationClearMode::All);
        for column in (0..self.term.columns()).step_by(usize::from(interval.max(1))) {
            self.term.grid_mut().cursor.point.column = Column(column);
            self.term.set_horizontal_tabstop();
        }
        self.term.grid_mut().cursor.point.column = cursor;
        self.tabs = None;
    }

    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.charset = index;
        self.term.set_active_charset(index);
    }

    fn set_cursor_style(&mut self, style: Option<CursorStyle>) {
        self.styled = style.is_some();
        self.term.set_cursor_style(style);
    }

    fn set_cursor_shape(&mut self, shape: CursorShape) {
        self.styled = true;
        self.term.set_cursor_shape(shape);
    }

    fn set_title(&mut self, title: Option<String>) {
        self.title = title.map(|title| posthaste_core::text::head(&title, TITLE_BYTES).to_owned());
    }

    fn push_title(&mut self) {
        if self.titles.len() == TITLES {
            self.titles.remove(0);
        }
        self.titles.push(self.title.clone());
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop() {
            self.title = title;
        }
    }

    fn set_hyperlink(&mut self, link: Option<Hyperlink>) {
        let id_bytes = |link: &Hyperlink| link.id.as_ref().map_or(0, String::len);
        let link = link.filter(|link| link.uri.len() + id_bytes(link) <= LINK_BYTES);
        self.term.set_hyperlink(link);
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        if self.keys.len() == KEY_MODES {
            // The oldest gives way. The library would fall over at its own, higher, limit.
            self.keys.remove(0);
            Handler::pop_keyboard_modes(&mut self.term, u16::MAX);
            for &older in &self.keys {
                self.term.push_keyboard_mode(older);
            }
        }
        self.keys.push(mode);
        self.term.push_keyboard_mode(mode);
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        let left = self.keys.len().saturating_sub(usize::from(count));
        self.keys.truncate(left);
        self.term.pop_keyboard_modes(count);
    }

    fn set_modify_other_keys(&mut self, mode: ModifyOtherKeys) {
        self.other_keys = mode;
    }

    fn report_modify_other_keys(&mut self) {
        let answer = format!("\x1b[>4;{}m", self.other_keys as u8);
        self.asks.send_event(Event::PtyWrite(answer));
    }

    fn reset_state(&mut self) {
        self.term.reset_state();
        self.region = 0..self.term.screen_lines();
        self.charset = CharsetIndex::G0;
        self.tabs = None;
        self.title = None;
        self.titles.clear();
        self.keys.clear();
        self.keys_behind.clear();
        self.other_keys = ModifyOtherKeys::Reset;
        self.styled = false;
        self.extra = Extra::default();
        self.behind = None;
    }
}

impl Emulator {
    /// What a mode changes besides itself.
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
}
