//! Actions of the program on the emulated terminal.
//!
//! Most actions go to the library unchanged. The others are noted, bounded or corrected. Replies go
//! only through the library's own channel.

use super::{Emulator, Extra};
use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, ModifyOtherKeys, NamedPrivateMode,
    PrivateMode, Rgb, StandardCharset, TabulationClearMode,
};

const MAX_TITLE_BYTES: usize = 1024;
const MAX_STACKED_TITLES: usize = 16;
const MAX_STACKED_KEY_MODES: usize = 16;
/// Limit of browsers and other terminals.
const MAX_LINK_BYTES: usize = 2083;

/// Actions that the library performs correctly.
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
        // Nearly all output is plain text and skips the checks.
        let is_plain = c.is_ascii() && !self.mode().contains(TermMode::INSERT);
        if is_plain || self.admits(c) {
            self.term.input(c);
        }
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
        // With a larger count, the library would also delete before the cursor.
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
                    // The library does not clear a single row above.
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
        // The library has no such action, and sets a stop only at the cursor.
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
        self.title =
            title.map(|title| posthaste_core::text::head(&title, MAX_TITLE_BYTES).to_owned());
    }

    fn push_title(&mut self) {
        if self.titles.len() == MAX_STACKED_TITLES {
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
        let link = link.filter(|link| link.uri.len() + id_bytes(link) <= MAX_LINK_BYTES);
        self.term.set_hyperlink(link);
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        if self.keys.len() == MAX_STACKED_KEY_MODES {
            // Drop the oldest mode. The library would panic at its own, higher limit.
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
        self.reply_queue.send_event(Event::PtyWrite(answer));
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
