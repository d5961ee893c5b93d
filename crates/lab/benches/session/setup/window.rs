//! Window on a real terminal, whose output is searched for a mark and counted instead of drawn.

use super::stage::PATIENCE;
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

pub(crate) const COLS: u16 = 80;
pub(crate) const ROWS: u16 = 24;

pub(crate) struct Window {
    /// Non-blocking. The window closes when dropped.
    pty: Option<OwnedFd>,
    child: Child,
    buffer: Vec<u8>,
    /// End of the output, which may contain the beginning of a mark.
    tail: Vec<u8>,
    pub(crate) got: u64,
}

impl Window {
    pub(crate) fn open(command: Command) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(ROWS, COLS)).unwrap();
        let child = pty_process::blocking::Command::from(command)
            .spawn(pts)
            .unwrap();
        let pty = OwnedFd::from(pty);
        rustix::io::ioctl_fionbio(&pty, true).unwrap();
        Self {
            pty: Some(pty),
            child,
            buffer: vec![0; 64 << 10],
            tail: Vec::new(),
            got: 0,
        }
    }

    pub(crate) fn pty(&self) -> &OwnedFd {
        self.pty.as_ref().expect("it is open until it is dropped")
    }

    /// Return the next output.
    pub(crate) fn read(&mut self) -> &[u8] {
        loop {
            let pty = self.pty.as_ref().expect("it is open until it is dropped");
            match rustix::io::read(pty, &mut self.buffer[..]) {
                Ok(count) if count > 0 => {
                    self.got += count as u64;
                    return &self.buffer[..count];
                }
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(pty, PollFlags::IN)];
                    let patience = Timespec::try_from(PATIENCE).unwrap();
                    assert_ne!(poll(&mut fds, Some(&patience)), Ok(0), "nothing comes");
                }
                Err(Errno::INTR) => {}
                end => panic!("the program on the terminal has ended: {end:?}"),
            }
        }
    }

    /// Read until the mark is received.
    pub(crate) fn wait_for(&mut self, mark: &str) {
        self.watch(mark, |_| {});
    }

    /// Like [`Self::wait_for`], and pass on everything that is read.
    pub(crate) fn watch(&mut self, mark: &str, mut each: impl FnMut(&[u8])) {
        let mark = mark.as_bytes();
        let finder = memmem::Finder::new(mark);
        loop {
            let tail = std::mem::take(&mut self.tail);
            let new = self.read();
            each(new);
            // Only the boundary between two reads needs a copy.
            let seam = [&tail, &new[..new.len().min(mark.len())]].concat();
            let is_there = finder.find(&seam).is_some() || finder.find(new).is_some();
            let kept = if new.len() < mark.len() { &seam } else { new };
            self.tail = kept[kept.len().saturating_sub(mark.len())..].to_vec();
            if is_there {
                return;
            }
        }
    }

    pub(crate) fn type_key(&self, key: u8) {
        self.type_text(&[key]);
    }

    pub(crate) fn type_text(&self, text: &[u8]) {
        assert_eq!(rustix::io::write(self.pty(), text), Ok(text.len()));
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // The program gets a hangup.
        self.pty = None;
        let _ = self.child.wait();
    }
}
