//! One attached terminal, as the session sees it.
//!
//! While its terminal has the program's own size it gets the program's bytes as they are; else it
//! is painted from the screen. One that reads too slowly loses what is waiting and is drawn anew.

use crate::socket::Socket;
use posthaste_screen::{Painter, Screen, Size};
use posthaste_wire::frames;
use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;
use tokio::sync::mpsc;

/// How many frames may wait for one viewer; each has at most a batch of output.
const FRAMES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ViewerId(pub(crate) u64);

/// Bytes to be written to a viewer's socket.
pub(crate) type Framed = Vec<u8>;

/// The way to a viewer: output is written there at once where nothing is before it, and waits for
/// its turn where something is. Two write there, on one thread: whoever takes something that waits
/// says that it writes before anybody else has a turn, and until all of it is written.
#[derive(Debug)]
pub(crate) struct Outlet {
    socket: Rc<Socket>,
    /// Whether somebody is in the middle of writing.
    is_taken: Cell<bool>,
    /// The rest of a frame for which there was no room. Nothing may come before it.
    cut: RefCell<Vec<u8>>,
    /// Set where the viewer has missed something and must be drawn anew once it is ready.
    is_behind: Cell<bool>,
}

impl Outlet {
    pub(crate) fn new(socket: Rc<Socket>) -> Rc<Self> {
        Rc::new(Self {
            socket,
            is_taken: Cell::new(false),
            cut: RefCell::default(),
            is_behind: Cell::new(false),
        })
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.get()
    }

    fn is_cut(&self) -> bool {
        !self.cut.borrow().is_empty()
    }

    /// Writes whole frames, and before them what is left of one.
    pub(crate) async fn write_all(&self, frames: &[u8]) -> std::io::Result<()> {
        self.is_taken.set(true);
        self.socket.write_all(&self.cut.take()).await?;
        self.socket.write_all(frames).await?;
        self.is_taken.set(false);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Viewer {
    id: ViewerId,
    size: Size,
    outlet: Rc<Outlet>,
    frames: mpsc::Sender<Framed>,
    painter: Option<Painter>,
    is_unpainted: bool,
}

impl Viewer {
    /// Somebody who watches, and what waits to be written there.
    pub(crate) fn new(
        id: ViewerId,
        size: Size,
        outlet: Rc<Outlet>,
    ) -> (Self, mpsc::Receiver<Framed>) {
        let (frames, waiting) = mpsc::channel(FRAMES);
        let viewer = Self {
            id,
            size,
            outlet,
            frames,
            painter: None,
            is_unpainted: false,
        };
        (viewer, waiting)
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
        self.is_unpainted && !self.outlet.is_behind()
    }

    /// The program wrote this.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        if self.painter.is_some() {
            self.is_unpainted = true;
        } else if !self.outlet.is_behind() && !bytes.is_empty() {
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
        self.outlet.is_behind.set(false);
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
        let header = frames::header(frames::DATA, bytes.len());
        let whole = || [&header, bytes].concat();
        match self.write_now(&header, bytes) {
            0 => self.queue(whole()),
            written if written == header.len() + bytes.len() => {}
            written => {
                self.outlet.cut.replace(whole().split_off(written));
                // Has it written.
                self.queue(Vec::new());
            }
        }
    }

    /// Writes as much as there is room for, and nothing where something is before it or nobody is
    /// there any more to write the rest. Where that fails, whoever writes what waits finds it out.
    fn write_now(&self, header: &[u8], bytes: &[u8]) -> usize {
        let has_waiting = self.frames.capacity() < FRAMES || self.outlet.is_cut();
        if has_waiting || self.outlet.is_taken.get() || self.frames.is_closed() {
            return 0;
        }
        let frame = [IoSlice::new(header), IoSlice::new(bytes)];
        self.outlet.socket.write_now(&frame).unwrap_or(0)
    }

    fn queue(&self, frame: Vec<u8>) {
        if self.frames.try_send(frame).is_err() {
            self.outlet.is_behind.set(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_wire::frames::{Decoder, Frame};
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    const SIZE: Size = Size { cols: 80, rows: 24 };

    /// Somebody who watches, and their end of the connection.
    fn watching() -> (UnixStream, Rc<Outlet>, Viewer, mpsc::Receiver<Framed>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let outlet = Outlet::new(Rc::new(Socket::of(ours).unwrap()));
        let (viewer, waiting) = Viewer::new(ViewerId(1), SIZE, outlet.clone());
        (theirs, outlet, viewer, waiting)
    }

    async fn read(theirs: &mut UnixStream, decoder: &mut Decoder, count: usize) -> Vec<Frame> {
        let mut buffer = vec![0; 64 << 10];
        let mut read = Vec::new();
        while read.len() < count {
            match decoder.next_frame().unwrap() {
                Some(frame) => read.push(frame),
                None => {
                    let length = theirs.read(&mut buffer).await.unwrap();
                    assert_ne!(length, 0);
                    decoder.feed(&buffer[..length]);
                }
            }
        }
        read
    }

    #[tokio::test]
    async fn nothing_comes_between_the_parts_of_a_frame() {
        let (mut theirs, outlet, mut viewer, mut waiting) = watching();
        let mut decoder = Decoder::default();
        let data = |bytes: &[u8]| Frame::Data(bytes.to_vec());

        viewer.output(b"at once");
        assert!(waiting.is_empty());
        assert_eq!(read(&mut theirs, &mut decoder, 1).await, [data(b"at once")]);

        // No socket has so much room.
        let large = vec![b'x'; 2 << 20];
        viewer.output(&large);
        assert!(outlet.is_cut());
        viewer.output(b"after it");
        let writing = async {
            // As where there is something to be told when the rest is about to be written.
            let told = frames::encode(frames::CONTROL, b"{}");
            outlet.write_all(&told).await.unwrap();
            viewer.output(b"not yet");
            while let Ok(frame) = waiting.try_recv() {
                outlet.write_all(&frame).await.unwrap();
            }
            viewer.output(b"at once again");
            assert!(waiting.is_empty());
        };
        let (read, ()) = tokio::join!(read(&mut theirs, &mut decoder, 5), writing);
        let told = Frame::Control(b"{}".to_vec());
        let [not_yet, again] = [data(b"not yet"), data(b"at once again")];
        let expected = [data(&large), told, data(b"after it"), not_yet, again];
        assert!(read == expected);
    }

    #[tokio::test]
    async fn nobody_writes_into_what_another_writes() {
        let (mut theirs, outlet, mut viewer, mut waiting) = watching();
        let told = vec![b'x'; 2 << 20];
        let told = frames::encode(frames::CONTROL, &told);
        let mut writing = Box::pin(outlet.write_all(&told));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(writing.as_mut().poll(&mut context).is_pending());
        // There is room again, in the middle of it.
        let mut some = vec![0; 200_000];
        theirs.read_exact(&mut some).await.unwrap();
        viewer.output(b"after it");
        assert!(!waiting.is_empty());
        let mut decoder = Decoder::default();
        decoder.feed(&some);
        let rest = async {
            writing.await.unwrap();
            let frame = waiting.recv().await.unwrap();
            outlet.write_all(&frame).await.unwrap();
        };
        let (read, ()) = tokio::join!(read(&mut theirs, &mut decoder, 2), rest);
        let said = Frame::Control(told[5..].to_vec());
        assert!(read == [said, Frame::Data(b"after it".to_vec())]);
    }

    #[tokio::test]
    async fn what_is_cut_when_nobody_writes_any_more_stays_the_last() {
        let (mut theirs, outlet, mut viewer, waiting) = watching();
        viewer.output(&vec![b'x'; 2 << 20]);
        drop(waiting);
        let mut some = vec![0; 200_000];
        theirs.read_exact(&mut some).await.unwrap();
        viewer.redraw(&Screen::new(SIZE, 0), || b"all of it".to_vec());
        drop((viewer, outlet));
        let mut rest = Vec::new();
        theirs.read_to_end(&mut rest).await.unwrap();
        assert!(rest.iter().all(|byte| *byte == b'x'));
    }

    #[tokio::test]
    async fn a_viewer_that_does_not_read_falls_behind_and_holds_nobody_up() {
        let (mut theirs, outlet, mut viewer, mut waiting) = watching();
        let batch = vec![b'x'; 64 << 10];
        let mut kept = 0;
        while !outlet.is_behind() {
            viewer.output(&batch);
            kept += 1;
        }
        // What it misses is not kept, and what it was given is whole.
        viewer.output(b"missed");
        let writing = async {
            while let Ok(frame) = waiting.try_recv() {
                outlet.write_all(&frame).await.unwrap();
            }
            viewer.redraw(&Screen::new(SIZE, 0), || b"all of it".to_vec());
        };
        let mut decoder = Decoder::default();
        let (read, ()) = tokio::join!(read(&mut theirs, &mut decoder, kept), writing);
        let (last, whole) = read.split_last().unwrap();
        assert!(
            whole
                .iter()
                .all(|frame| *frame == Frame::Data(batch.clone()))
        );
        assert_eq!(*last, Frame::Data(b"all of it".to_vec()));
        assert!(!outlet.is_behind());
    }
}
