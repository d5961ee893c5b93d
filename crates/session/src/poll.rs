//! Waits for descriptors, and reads and resizes terminals, without an async runtime.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::termios::Winsize;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// The other end of a descriptor is closed or failed. Reported even if it was not requested.
pub const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// Signals as a descriptor to wait on.
pub type SignalPipe = SignalDelivery<UnixStream, SignalOnly>;

/// The result of reading a terminal that may have nothing to read.
#[derive(Debug)]
pub enum TerminalRead {
    Bytes(usize),
    Nothing,
    /// No process has the terminal open at its other end.
    Closed,
}

/// Wait until a descriptor is ready, `deadline` has passed or a signal has arrived. Return the
/// events of each descriptor, which are empty for an absent one.
pub fn wait<const N: usize>(
    wanted: [(Option<BorrowedFd<'_>>, PollFlags); N],
    deadline: Option<Instant>,
) -> Result<[PollFlags; N], Errno> {
    let present = wanted.iter().filter_map(|(fd, flags)| {
        let fd = (*fd)?;
        Some(PollFd::from_borrowed_fd(fd, *flags))
    });
    let mut fds: Vec<_> = present.collect();
    let timeout = deadline.and_then(|deadline| {
        Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()
    });
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok([PollFlags::empty(); N]),
        Err(error) => return Err(error),
    }
    let mut events = fds.iter().map(PollFd::revents);
    Ok(wanted.map(|(fd, _)| fd.and_then(|_| events.next()).unwrap_or(PollFlags::empty())))
}

pub fn read_terminal(terminal: impl AsFd, buffer: &mut [u8]) -> TerminalRead {
    match rustix::io::read(terminal, buffer) {
        Ok(0) | Err(Errno::IO | Errno::NXIO) => TerminalRead::Closed,
        Ok(count) => TerminalRead::Bytes(count),
        Err(_) => TerminalRead::Nothing,
    }
}

pub(crate) fn resize_terminal(terminal: impl AsFd, cols: u16, rows: u16) -> Result<(), Errno> {
    let size = Winsize {
        ws_row: rows,
        ws_col: cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(terminal, size)
}

/// Receive these signals through a descriptor instead of their default actions.
pub fn receive_signals(signals: &[i32]) -> std::io::Result<SignalPipe> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    SignalDelivery::with_pipe(read, write, SignalOnly, signals)
}
