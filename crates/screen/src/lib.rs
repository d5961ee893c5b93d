//! What a session's terminal shows, and the ways its bytes go on from there.
//!
//! Owns the model of the screen and everything made from a program's raw output: redraws for who
//! attaches, plain lines, the recording. It knows no sockets, no sessions and no clock: time comes
//! in as an argument, and only the recording touches files.

mod drawing;
mod emulator;
mod intake;
mod lines;
mod model;
mod paint;
mod painter;
mod pen;
mod recording;
mod replay;
mod sieve;
#[cfg(test)]
mod streams;
mod text;

pub use drawing::Drawing;
pub use lines::Lines;
pub use model::Screen;
pub use paint::{leave, redraw};
pub use painter::Painter;
pub use recording::{About, Recorder};
pub use replay::{Event, Replay, What, last_screen, read, segments};
pub use sieve::Sieve;

use alacritty_terminal::grid::Dimensions;

/// How large a terminal is, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

impl Size {
    /// Brings a size within bounds: a client may ask for any, but not for all memory, and a
    /// screen narrower than a wide character cannot hold one.
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
