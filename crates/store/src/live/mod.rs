//! Sessions as other processes find them: their files, their processes, and the way to their socket.

pub mod place;
pub mod process;

use crate::Home;
use posthaste_core::session::Run;
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long [`reach`] waits for room among the connections that nobody has accepted.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

/// Connects to a socket, or says within a moment why not. One that has too many waiting already
/// gives [`std::io::ErrorKind::WouldBlock`]: somebody is there, and does not answer.
pub fn reach(socket: &Path) -> std::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let fd = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    let stream = UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    loop {
        match rustix::net::connect(&stream, &address) {
            Ok(()) => break,
            Err(rustix::io::Errno::AGAIN) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Return the processes that a crashed session has left.
pub fn orphans(home: &Home, run: &Run) -> Vec<u32> {
    if run.end.is_some() || run.started.boot != process::boot() {
        return Vec::new();
    }
    let child = (run.started.child_pid, run.started.child_started);
    // The agents of a loop lead process sessions of their own.
    let noted = place::noted(home, &run.agent).into_iter();
    let all = [child].into_iter().chain(noted);
    let mut left: Vec<u32> = all
        .flat_map(|(pid, began)| process::left_of(pid, began))
        .collect();
    left.sort_unstable();
    left.dedup();
    left
}
