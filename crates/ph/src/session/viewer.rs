//! One attached terminal, as the session sees it.
//!
//! While its terminal has the program's own size it gets the program's bytes as they are; else it
//! is painted from the screen. One that reads too slowly loses what is waiting and is drawn anew.

use posthaste_screen::{Painter, Screen, Size};
use posthaste_wire::frames;
use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::mpsc;

/// How many frames may wait for one viewer; each has at most a batch of output.
pub(crate) const FRAMES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ViewerId(pub(crate) u64);

/// Bytes to be written to a viewer's socket.
pub(crate) type Framed = Rc<Vec<u8>>;

#[derive(Debug)]
pub(crate) struct Viewer {
    id: ViewerId,
    size: Size,
    frames: mpsc::Sender<Framed>,
    /// Set where it has missed something and must be drawn anew once it is ready.
    behind: Rc<Cell<bool>>,
    painter: Option<Painter>,
    is_unpainted: bool,
}

impl Viewer {
    pub(crate) fn new(
        id: ViewerId,
        size: Size,
        frames: mpsc::Sender<Framed>,
        behind: Rc<Cell<bool>>,
    ) -> Self {
        Self {
            id,
            size,
            frames,
            behind,
            painter: None,
            is_unpainted: false,
        }
    }

    pub(crate) fn id(&self) -> ViewerId {
        self.id
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
    }

    pub(crate) fn is_unpainted(&self) -> bool {
        self.is_unpainted && !self.behind.get()
    }

    /// The program wrote this.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        if self.painter.is_some() {
            self.is_unpainted = true;
        } else if !self.behind.get() && !bytes.is_empty() {
            self.send(bytes);
        }
    }

    /// Draws what has changed, where it is painted.
    pub(crate) fn paint(&mut self, screen: &Screen) {
        if !self.is_unpainted() {
            return;
        }
        if let Some(painter) = &mut self.painter {
            let bytes = painter.paint(screen);
            self.is_unpainted = false;
            self.send(&bytes);
        }
    }

    /// Draws everything.
    pub(crate) fn redraw(&mut self, screen: &Screen, same_size: impl FnOnce() -> Vec<u8>) {
        self.behind.set(false);
        self.is_unpainted = false;
        let bytes = if self.size == screen.size() {
            self.painter = None;
            same_size()
        } else {
            let mut painter = Painter::new(self.size);
            let bytes = painter.paint(screen);
            self.painter = Some(painter);
            bytes
        };
        self.send(&bytes);
    }

    fn send(&mut self, bytes: &[u8]) {
        let framed = Rc::new(frames::encode(frames::DATA, bytes));
        if self.frames.try_send(framed).is_err() {
            self.behind.set(true);
        }
    }
}
