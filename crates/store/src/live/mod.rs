//! Live sessions, seen from other processes: their files, processes and sockets.
//!
//! Never starts a session.

pub mod process;
pub mod process_notes;
mod session_dir;

pub use crate::home::file_id::KnownFile;
pub use session_dir::{
    Launch, MAX_SOCKET_PATH, NameLock, SessionDir, SessionRecord, agents, private_dir,
};

use crate::Home;
use posthaste_core::session::Run;
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for which [`reach`] waits if the socket's backlog is full.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

/// Connect to a socket, with a short timeout. If its backlog is full, the error is
/// [`std::io::ErrorKind::WouldBlock`]: a process listens, and does not accept.
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
    // The agents of a loop are leaders of their own process sessions.
    let noted = process_notes::processes_of(home, &run.agent).into_iter();
    let all = [child].into_iter().chain(noted);
    let mut left: Vec<u32> = all
        .flat_map(|(pid, began)| process::left_of(pid, began))
        .collect();
    left.sort_unstable();
    left.dedup();
    left
}
