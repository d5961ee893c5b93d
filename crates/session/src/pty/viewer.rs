//! One attached terminal, on the session's side.
//!
//! A viewer with the program's terminal size gets the program's bytes unchanged; any other is
//! painted from the screen. A viewer that reads too slowly misses output and is redrawn later.

use crate::socket::Socket;
use posthaste_screen::{Painter, Screen, Size};
use posthaste_wire::frames;
use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;
use tokio::sync::mpsc;

/// How many frames may wait for one viewer. A frame holds at most one batch of output. If the queue
/// is full, the viewer falls behind.
const MAX_QUEUED_FRAMES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ViewerId(pub(crate) u64);

/// Encoded frames for a viewer's socket.
pub(crate) type Framed = Vec<u8>;

/// Writes frames to a viewer's socket.
///
/// The terminal's task writes output directly if nothing waits, and queues it otherwise. The
/// viewer's task writes the queue with [`Self::write_all`], during which nothing is written
/// directly. Both tasks run on one thread.
#[derive(Debug)]
pub(crate) struct ViewerWriter {
    socket: Rc<Socket>,
    is_writing: Cell<bool>,
    /// The unwritten end of a frame. It must be written before anything else.
    partial_frame: RefCell<Vec<u8>>,
    /// Whether the viewer has missed output and must be redrawn.
    is_behind: Cell<bool>,
}

impl ViewerWriter {
    pub(crate) fn new(socket: Rc<Socket>) -> Rc<Self> {
        Rc::new(Self {
            socket,
            is_writing: Cell::new(false),
            partial_frame: RefCell::default(),
            is_behind: Cell::new(false),
        })
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.get()
    }

    fn has_partial_frame(&self) -> bool {
        !self.partial_frame.borrow().is_empty()
    }

    /// Write the rest of a partial frame, then whole frames.
    pub(crate) async fn write_all(&self, frames: &[u8]) -> std::io::Result<()> {
        self.is_writing.set(true);
        self.socket.write_all(&self.partial_frame.take()).await?;
        self.socket.write_all(frames).await?;
        self.is_writing.set(false);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Viewer {
    id: ViewerId,
    size: Size,
    writer: Rc<ViewerWriter>,
    frames: mpsc::Sender<Framed>,
    painter: Option<Painter>,
    is_unpainted: bool,
}

impl Viewer {
    /// Create a viewer, and the queue of frames for the task that writes to its socket.
    pub(crate) fn new(
        id: ViewerId,
        size: Size,
        writer: Rc<ViewerWriter>,
    ) -> (Self, mpsc::Receiver<Framed>) {
        let (frames, queue) = mpsc::channel(MAX_QUEUED_FRAMES);
        let viewer = Self {
            id,
            size,
            writer,
            frames,
            painter: None,
            is_unpainted: false,
        };
        (viewer, queue)
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
        self.is_unpainted && !self.writer.is_behind()
    }

    /// Send output of the program, or note that this viewer must be painted.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        if self.painter.is_some() {
            self.is_unpainted = true;
        } else if !self.writer.is_behind() && !bytes.is_empty() {
            self.send(bytes);
        }
    }

    /// Paint the changes of the screen, if this viewer is painted.
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

    /// Draw the whole screen. `same_size` makes the bytes for a viewer of the program's size.
    pub(crate) fn redraw(&mut self, screen: &Screen, same_size: impl FnOnce() -> Vec<u8>) {
        self.writer.is_behind.set(false);
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
                let rest = whole().split_off(written);
                self.writer.partial_frame.replace(rest);
                // An empty entry makes the viewer's task write the rest.
                self.queue(Vec::new());
            }
        }
    }

    /// Write as much as the socket has room for, and return the number of bytes. Writes nothing if
    /// other bytes must come first, or if the viewer's task has ended and cannot write the rest.
    /// Errors are left to that task.
    fn write_now(&self, header: &[u8], bytes: &[u8]) -> usize {
        let is_queued = self.frames.capacity() < MAX_QUEUED_FRAMES;
        let must_wait = is_queued || self.writer.has_partial_frame();
        if must_wait || self.writer.is_writing.get() || self.frames.is_closed() {
            return 0;
        }
        let frame = [IoSlice::new(header), IoSlice::new(bytes)];
        self.writer.socket.write_now(&frame).unwrap_or(0)
    }

    fn queue(&self, frame: Vec<u8>) {
        if self.frames.try_send(frame).is_err() {
            self.writer.is_behind.set(true);
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

    /// Create a viewer and the client's end of its connection.
    fn viewer() -> (UnixStream, Rc<ViewerWriter>, Viewer, mpsc::Receiver<Framed>) {
        let (ours, client) = UnixStream::pair().unwrap();
        let writer = ViewerWriter::new(Rc::new(Socket::new(ours).unwrap()));
        let (viewer, queue) = Viewer::new(ViewerId(1), SIZE, writer.clone());
        (client, writer, viewer, queue)
    }

    async fn read(client: &mut UnixStream, decoder: &mut Decoder, count: usize) -> Vec<Frame> {
        let mut buffer = vec![0; 64 << 10];
        let mut read = Vec::new();
        while read.len() < count {
            match decoder.next_frame().unwrap() {
                Some(frame) => read.push(frame),
                None => {
                    let length = client.read(&mut buffer).await.unwrap();
                    assert_ne!(length, 0);
                    decoder.feed(&buffer[..length]);
                }
            }
        }
        read
    }

    #[tokio::test]
    async fn a_partial_frame_is_completed_before_other_output() {
        let (mut client, writer, mut viewer, mut queue) = viewer();
        let mut decoder = Decoder::default();
        let data = |bytes: &[u8]| Frame::Data(bytes.to_vec());

        viewer.output(b"direct");
        assert!(queue.is_empty());
        assert_eq!(read(&mut client, &mut decoder, 1).await, [data(b"direct")]);

        // Larger than any socket buffer.
        let large = vec![b'x'; 2 << 20];
        viewer.output(&large);
        assert!(writer.has_partial_frame());
        viewer.output(b"queued");
        let writing = async {
            // A control frame is written while the rest of the frame waits.
            let control = frames::encode(frames::CONTROL, b"{}");
            writer.write_all(&control).await.unwrap();
            viewer.output(b"queued too");
            while let Ok(frame) = queue.try_recv() {
                writer.write_all(&frame).await.unwrap();
            }
            viewer.output(b"direct again");
            assert!(queue.is_empty());
        };
        let (read, ()) = tokio::join!(read(&mut client, &mut decoder, 5), writing);
        let control = Frame::Control(b"{}".to_vec());
        let [queued_too, again] = [data(b"queued too"), data(b"direct again")];
        let expected = [data(&large), control, data(b"queued"), queued_too, again];
        assert!(read == expected);
    }

    #[tokio::test]
    async fn output_waits_for_a_control_frame_that_is_being_written() {
        let (mut client, writer, mut viewer, mut queue) = viewer();
        let control = frames::encode(frames::CONTROL, &vec![b'x'; 2 << 20]);
        let mut writing = Box::pin(writer.write_all(&control));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(writing.as_mut().poll(&mut context).is_pending());
        // The socket has room again in the middle of the frame.
        let mut some = vec![0; 200_000];
        client.read_exact(&mut some).await.unwrap();
        viewer.output(b"queued");
        assert!(!queue.is_empty());
        let mut decoder = Decoder::default();
        decoder.feed(&some);
        let rest = async {
            writing.await.unwrap();
            let frame = queue.recv().await.unwrap();
            writer.write_all(&frame).await.unwrap();
        };
        let (read, ()) = tokio::join!(read(&mut client, &mut decoder, 2), rest);
        let control = Frame::Control(control[5..].to_vec());
        assert!(read == [control, Frame::Data(b"queued".to_vec())]);
    }

    #[tokio::test]
    async fn nothing_follows_a_partial_frame_once_the_writing_task_has_ended() {
        let (mut client, writer, mut viewer, queue) = viewer();
        viewer.output(&vec![b'x'; 2 << 20]);
        drop(queue);
        let mut some = vec![0; 200_000];
        client.read_exact(&mut some).await.unwrap();
        viewer.redraw(&Screen::new(SIZE, 0), || b"redraw".to_vec());
        drop((viewer, writer));
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert!(rest.iter().all(|byte| *byte == b'x'));
    }

    #[tokio::test]
    async fn a_viewer_that_does_not_read_falls_behind_and_is_redrawn() {
        let (mut client, writer, mut viewer, mut queue) = viewer();
        let batch = vec![b'x'; 64 << 10];
        let mut kept = 0;
        while !writer.is_behind() {
            viewer.output(&batch);
            kept += 1;
        }
        // Missed output is dropped, and queued frames stay whole.
        viewer.output(b"missed");
        let writing = async {
            while let Ok(frame) = queue.try_recv() {
                writer.write_all(&frame).await.unwrap();
            }
            viewer.redraw(&Screen::new(SIZE, 0), || b"redraw".to_vec());
        };
        let mut decoder = Decoder::default();
        let (read, ()) = tokio::join!(read(&mut client, &mut decoder, kept), writing);
        let (last, whole) = read.split_last().unwrap();
        assert!(
            whole
                .iter()
                .all(|frame| *frame == Frame::Data(batch.clone()))
        );
        assert_eq!(*last, Frame::Data(b"redraw".to_vec()));
        assert!(!writer.is_behind());
    }
}
