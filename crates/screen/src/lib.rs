//! A session's terminal without a window.
//!
//! Owns the model of the screen and everything derived from a program's raw output: redraws for
//! terminals that attach, plain lines, the recording. Has no sockets, sessions or clock: time is an
//! argument, and only the recording touches files.

mod emulator;
pub mod input;
mod model;
mod output;
mod recording;
mod redraw;
#[cfg(test)]
mod test_output;
mod text;

pub use model::Screen;
pub use output::{Boundary, Drawing, Lines, QueryFilter};
pub use recording::{
    Recorder, RecordingInfo, Replay, ReplayEvent, ReplayedChange, last_screen, open_recording,
    recording_files,
};
pub use redraw::{Painter, leave_sequence, redraw};

use alacritty_terminal::grid::Dimensions;

/// Size of a terminal in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

impl Size {
    /// Limit the size: a client may ask for any size but must not exhaust memory, and a screen has
    /// to be wide enough for a wide character.
    pub fn sane(self) -> Self {
        Self {
            cols: self.cols.clamp(2, 1000),
            rows: self.rows.clamp(1, 500),
        }
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.rows)
    }

    fn columns(&self) -> usize {
        usize::from(self.cols)
    }
}
