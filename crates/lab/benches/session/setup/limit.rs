//! Limits: the cost of the same bytes without our code. Servers run in a process of their own, like
//! sessions; the terminal model runs in this one, which is compiled like `ph`.

use super::stage::{Connection, Player, Stage};
use super::window::{COLS, ROWS, Window};
use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::term::Config;
use alacritty_terminal::vte::ansi::Processor;
use posthaste_lab::pty::Size;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Scrollback of a session, too.
const SCROLLBACK_LINES: usize = 500;
/// Limit of a session for the bytes that it publishes at once.
const MAX_WRITE_BYTES: usize = 64 << 10;

pub(crate) const ECHO: &str = "__echo";
pub(crate) const FAN: &str = "__fan";
pub(crate) const RELAY: &str = "__relay";

/// Run an echo server: one thread, tokio.
pub(crate) fn echo(socket: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    let serve = async {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        // Report that the server listens.
        std::io::stdout().write_all(b"\n").unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn_local(async move {
                let mut buffer = vec![0; 16 << 10];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    if stream.write_all(&buffer[..count]).await.is_err() {
                        break;
                    }
                }
            });
        }
    };
    runtime.block_on(serve);
}

/// Run a server that writes a file to all its connections, in large pieces, for every byte on
/// standard input.
pub(crate) fn fan(socket: &str, file: &str) {
    let listener = UnixListener::bind(socket).unwrap();
    std::io::stdout().write_all(b"\n").unwrap();
    let bytes = std::fs::read(file).unwrap();
    let mut command = [0];
    // The first byte is the number of connections.
    std::io::stdin().read_exact(&mut command).unwrap();
    let streams: Vec<UnixStream> = (0..command[0])
        .map(|_| {
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    while std::io::stdin().read_exact(&mut command).is_ok() {
        let mut rests = vec![&bytes[..]; streams.len()];
        while rests.iter().any(|rest| !rest.is_empty()) {
            let mut waits = Vec::new();
            for (mut stream, rest) in streams.iter().zip(&mut rests) {
                if rest.is_empty() {
                    continue;
                }
                match stream.write(&rest[..rest.len().min(MAX_WRITE_BYTES)]) {
                    Ok(count) => *rest = &rest[count..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        waits.push(PollFd::new(stream, PollFlags::OUT));
                    }
                    Err(error) => panic!("a reader is gone: {error}"),
                }
            }
            let unfinished = rests.iter().filter(|rest| !rest.is_empty()).count();
            if waits.len() == unfinished && unfinished > 0 {
                poll(&mut waits, None).unwrap();
            }
        }
    }
}

/// Run a relay between a socket and a program's terminal: no screen, no recording, no mail, one
/// client.
pub(crate) fn relay(socket: &str, program: &[&str]) {
    let listener = UnixListener::bind(socket).unwrap();
    let mut command = Command::new(program[0]);
    command.args(&program[1..]);
    let window = Window::open(command);
    std::io::stdout().write_all(b"\n").unwrap();
    let (stream, _) = listener.accept().unwrap();
    let ends = [stream.as_fd(), window.pty().as_fd()];
    let mut buffer = vec![0; 16 << 10];
    loop {
        let mut fds = ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN));
        poll(&mut fds, None).unwrap();
        let ready = fds.map(|fd| !fd.revents().is_empty());
        for (from, to) in [(0, 1), (1, 0)] {
            if ready[from] {
                let Ok(count @ 1..) = rustix::io::read(ends[from], &mut buffer) else {
                    return;
                };
                let written = rustix::io::write(ends[to], &buffer[..count]);
                assert_eq!(written, Ok(count), "keys and their echoes fit");
            }
        }
    }
}

/// This program as a server.
pub(crate) struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    pub(crate) fn start(stage: &Stage, kind: &str, args: &[&Path]) -> Self {
        let socket = stage.dir().join(format!("{kind}.sock"));
        let _ = std::fs::remove_file(&socket);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(kind)
            .arg(&socket)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        let listens = child.stdout.as_mut().unwrap().read_exact(&mut ready);
        listens.unwrap();
        Self { child, socket }
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).unwrap()
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::new(self.connect())
    }

    pub(crate) fn send(&mut self, byte: u8) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(&[byte]).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A terminal without a session.
pub(crate) struct Pty {
    pub(crate) window: Window,
    pub(crate) player: Player,
}

impl Pty {
    pub(crate) fn start(stage: &mut Stage) -> Self {
        let (script, cue) = stage.script();
        let [program, socket] = script.as_slice() else {
            unreachable!("a script is a program and its socket")
        };
        let mut command = stage.command(program);
        command.arg(socket);
        let window = Window::open(command);
        let player = cue.player();
        Self { window, player }
    }
}

/// The terminal model alone, with the session's size and scrollback.
pub(crate) struct Model {
    term: Term<VoidListener>,
    parser: Processor,
}

impl Model {
    pub(crate) fn new() -> Self {
        let size = Size {
            cols: COLS,
            rows: ROWS,
        };
        let config = Config {
            scrolling_history: SCROLLBACK_LINES,
            ..Config::default()
        };
        Self {
            term: Term::new(config, &size, VoidListener),
            parser: Processor::new(),
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }
}
