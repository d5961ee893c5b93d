//! Live sessions, and clients of their sockets. All processes of a session are killed at the end of
//! its test, even if the test panics.

use super::{Call, Done, PATIENCE, Ph, path_text, wait_for};
use posthaste_lab::tty::Tty;
use posthaste_wire::frames::{self, Decoder, Frame};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Name of the agent in most tests.
pub(crate) const BOT: &str = "bot";

/// A running session and its home.
pub(crate) struct Session {
    pub(crate) ph: Ph,
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
    pub(crate) pid: u32,
    pub(crate) child: u32,
}

impl Session {
    /// Start a shell script as `bot`.
    pub(crate) fn sh(script: &str) -> Self {
        Self::start(Ph::new(), &[], &["/bin/sh", "-c", script])
    }

    /// Start a program that logs its input, and wait until it runs.
    pub(crate) fn tty(paste: bool) -> (Self, Tty) {
        Self::tty_in(Ph::new(), paste)
    }

    pub(crate) fn tty_in(ph: Ph, paste: bool) -> (Self, Tty) {
        let tty = Tty::new(ph.dir().join("tty"));
        let environment = tty.environment(paste);
        let flags: Vec<&str> = environment.iter().flat_map(|e| ["--env", e]).collect();
        let command = Tty::command(TTY_TEST);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let session = Self::start(ph, &flags, &command);
        wait_for("the program", || (!tty.sizes().is_empty()).then_some(()));
        (session, tty)
    }

    pub(crate) fn start(ph: Ph, flags: &[&str], command: &[&str]) -> Self {
        let call = run(&ph, BOT, flags, command);
        Self::begin(ph, call)
    }

    /// Start a session with a call of [`run`].
    pub(crate) fn begin(ph: Ph, call: Call) -> Self {
        let done = call.run();
        assert_eq!((done.code, done.err().as_str()), (0, ""));
        let session = done.json();
        Self {
            name: session["name"].as_str().expect("a name").to_owned(),
            socket: session["socket"].as_str().expect("a socket").into(),
            pid: number(&session, "pid"),
            child: number(&session, "child_pid"),
            ph,
        }
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::to(&self.socket)
    }

    /// Call a method on the session's socket and return the result.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        self.wire().result(method, params)
    }

    pub(crate) fn activity(&self) -> String {
        let session = self.ask("session", json!({}));
        session["activity"].as_str().expect("a word").to_owned()
    }

    pub(crate) fn wait_for_activity(&self, wanted: &str) {
        wait_for(wanted, || (self.activity() == wanted).then_some(()));
    }

    /// Wait until the screen contains a text.
    pub(crate) fn wait_for_text(&self, text: &str) {
        wait_for(text, || {
            let screen = self.ask("peek", json!({}));
            let lines = screen["lines"].as_array().expect("lines");
            let shows = |line: &Value| line.as_str().is_some_and(|line| line.contains(text));
            lines.iter().any(shows).then_some(())
        });
    }

    /// Type keys like a person at an attached terminal.
    pub(crate) fn type_keys(&self, keys: &str) {
        let mut viewer = Viewer::attach(&self.socket, 80, 24);
        viewer.keys(keys.as_bytes());
        viewer.leave();
    }

    /// Return the resident memory of the session's process, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.expect("it runs, and this is Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let words: Vec<&str> = line.expect("its memory").split_whitespace().collect();
        words[0].parse().expect("a number")
    }

    /// Wait until both processes have exited and the socket is removed.
    pub(crate) fn wait_gone(&self) {
        wait_for("the end of the session", || self.is_gone().then_some(()));
    }

    fn is_gone(&self) -> bool {
        !is_alive(self.pid) && !is_alive(self.child) && !self.socket.exists()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid, signal);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_gone() {
            return;
        }
        let done = self.ph.call(&["stop", "--kill", &self.name]).run();
        if done.code != 0 || std::thread::panicking() {
            // `ph stop` failed, or the test did: end the session without its cooperation.
            for pid in [self.child, self.pid] {
                kill(pid, Signal::KILL);
            }
            let _ = std::fs::remove_file(&self.socket);
        } else {
            self.wait_gone();
        }
    }
}

/// Processes of an additional session, which are killed when dropped.
pub(crate) struct KillOnDrop([u32; 2]);

impl KillOnDrop {
    /// Take over the processes that a call of [`run`] has started.
    pub(crate) fn processes_of(done: &Done) -> Self {
        assert_eq!(done.code, 0, "{}", done.err());
        let session = done.json();
        Self(["child_pid", "pid"].map(|name| number(&session, name)))
    }

    /// Wait until the processes have exited by themselves. A session that is killed while it ends
    /// leaves its socket behind.
    pub(crate) fn wait_gone(&self) {
        wait_for("the end of the other session", || {
            (!self.0.iter().any(|pid| is_alive(*pid))).then_some(())
        });
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        for pid in self.0 {
            kill(pid, Signal::KILL);
        }
    }
}

fn number(session: &Value, name: &str) -> u32 {
    let number = session[name].as_u64().expect("it runs");
    u32::try_from(number).expect("a process")
}

/// Name of the ignored test that [`Session::tty`] runs as a program.
pub(crate) const TTY_TEST: &str = "terminal_program_for_other_tests";

/// Return the call that starts a session in the background.
pub(crate) fn run(ph: &Ph, name: &str, flags: &[&str], command: &[&str]) -> Call {
    let head = ["run", "--json", "--detach", "--name", name];
    ph.call(&[&head[..], flags, &["--"], command].concat())
}

/// Return whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z"),
        Err(_) if cfg!(target_os = "linux") => false,
        Err(_) => pid_of(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()),
    }
}

fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = pid_of(pid).filter(|_| is_alive(pid)) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// A client of the session's socket that sends and receives lines.
pub(crate) struct Wire {
    pub(crate) stream: UnixStream,
    /// Bytes that were received. Those before `given` were returned, and those before `scanned`
    /// contain no further line end.
    buffer: Vec<u8>,
    given: usize,
    scanned: usize,
    asked: u64,
    /// Events that arrived while a reply was awaited.
    events: VecDeque<Value>,
}

impl Wire {
    pub(crate) fn to(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("a session listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time");
        Self {
            stream,
            buffer: Vec::new(),
            given: 0,
            scanned: 0,
            asked: 0,
            events: VecDeque::new(),
        }
    }

    pub(crate) fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("a session");
    }

    /// Send a line.
    pub(crate) fn send_line(&mut self, line: impl AsRef<[u8]>) {
        self.send_bytes([line.as_ref(), b"\n"].concat());
    }

    /// Close the connection for writing.
    pub(crate) fn close_write(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("a session");
    }

    /// Return the next line without its line end, or `None` at the end of the connection.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let mut piece = vec![0; 64 << 10];
        loop {
            let unseen = &self.buffer[self.scanned..];
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let end = self.scanned + end;
                let line = self.buffer[self.given..end].to_vec();
                (self.given, self.scanned) = (end + 1, end + 1);
                return Some(String::from_utf8(line).expect("lines are UTF-8"));
            }
            self.buffer.drain(..self.given);
            (self.given, self.scanned) = (0, self.buffer.len());
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    assert!(self.buffer.is_empty(), "the last line has no end");
                    return None;
                }
                Ok(count) => self.buffer.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                // A read with a timeout also ends if this process is stopped and continued.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no line: {error}"),
            }
        }
    }

    /// Return all lines up to one that contains this text. No line is parsed before the text has
    /// arrived, so that reading keeps up with the session.
    pub(crate) fn lines_until(&mut self, text: &str) -> Vec<String> {
        let mut piece = vec![0; 256 << 10];
        let has_come = |read: &[u8], count: usize| {
            let from = read.len().saturating_sub(count + text.len());
            memchr::memmem::find(&read[from..], text.as_bytes()).is_some()
        };
        let mut count = self.buffer.len();
        while !has_come(&self.buffer, count) {
            count = match self.stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.expect("a session"),
            };
            assert!(count > 0, "the end, and no {text}");
            self.buffer.extend_from_slice(&piece[..count]);
        }
        let mut lines = vec![self.line()];
        while lines.last().is_some_and(|line| !line.contains(text)) {
            lines.push(self.line());
        }
        lines
    }

    pub(crate) fn line(&mut self) -> String {
        self.next_line().expect("a line, not the end")
    }

    pub(crate) fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }

    /// Call a method and return the whole reply. Events that arrive before it are kept.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = format!("own-{}", self.asked);
        let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method});
        call["params"] = params;
        self.send_line(call.to_string());
        loop {
            let line = self.json();
            if line["id"] == id {
                return line;
            }
            assert_eq!(line["method"], "event", "{line}");
            self.events.push_back(line["params"].clone());
        }
    }

    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let reply = self.ask(method, params);
        assert_eq!(reply["error"], Value::Null, "{reply}");
        reply["result"].clone()
    }

    /// Call a method that must fail, and return the error's code and text.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let reply = self.ask(method, params);
        let error = &reply["error"];
        let code = error["code"].as_i64().expect("a code");
        (code, error["message"].as_str().expect("a text").to_owned())
    }

    pub(crate) fn subscribe(&mut self, events: &[&str]) {
        self.result("subscribe", json!({"events": events}));
    }

    /// Return the `params` of the next event.
    pub(crate) fn event(&mut self) -> Value {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let line = self.json();
        assert_eq!(line["method"], "event", "{line}");
        line["params"].clone()
    }

    /// Return the data of the next event of this type with this field. Other events are dropped.
    pub(crate) fn wait_for_event(&mut self, kind: &str, field: &str) -> Value {
        loop {
            let event = self.event();
            if event["type"] == kind && event["data"].get(field).is_some() {
                return event["data"].clone();
            }
        }
    }

    /// Wait until the session closes the connection, and return what it sent before that.
    pub(crate) fn wait_closed(&mut self) -> Vec<Value> {
        let mut last: Vec<Value> = self.events.drain(..).collect();
        while let Some(line) = self.next_line() {
            let line: Value = serde_json::from_str(&line).expect("JSON");
            last.push(line.get("params").unwrap_or(&line).clone());
        }
        last
    }

    /// Send one request of the plain dialect on a connection of its own, and return its reply.
    pub(crate) fn plain(socket: &Path, request: &Value) -> String {
        let mut wire = Self::to(socket);
        wire.send_line(request.to_string());
        let reply = wire.line();
        assert_eq!(wire.next_line(), None, "one reply, then the end");
        reply
    }
}

/// A client that has attached to the terminal with frames, like the original's client.
pub(crate) struct Viewer {
    pub(crate) stream: UnixStream,
    decoder: Decoder,
    /// All terminal output so far.
    pub(crate) output: Vec<u8>,
    /// All control frames so far.
    pub(crate) controls: Vec<Value>,
}

impl Viewer {
    pub(crate) fn attach(socket: &Path, cols: u16, rows: u16) -> Self {
        Self::with(
            socket,
            &json!({"type": "attach", "cols": cols, "rows": rows}),
        )
    }

    pub(crate) fn with(socket: &Path, request: &Value) -> Self {
        let mut stream = Wire::to(socket).stream;
        writeln!(stream, "{request}").expect("a session");
        let mut reply = Vec::new();
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).expect("a reply");
            reply.extend(byte);
        }
        assert_eq!(String::from_utf8_lossy(&reply), "{\"ok\":true}\n");
        Self::over(stream)
    }

    /// Take over a connection from the end of the reply to its `attach` request.
    pub(crate) fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time");
        Self {
            stream,
            decoder: Decoder::default(),
            output: Vec::new(),
            controls: Vec::new(),
        }
    }

    pub(crate) fn frame(&mut self, kind: u8, payload: &[u8]) {
        let frame = frames::encode(kind, payload);
        self.stream.write_all(&frame).expect("a session");
    }

    pub(crate) fn keys(&mut self, keys: &[u8]) {
        self.frame(frames::DATA, keys);
    }

    pub(crate) fn control(&mut self, control: &Value) {
        self.frame(frames::CONTROL, control.to_string().as_bytes());
    }

    /// Receive the next frame. Return false at the end of the connection.
    pub(crate) fn next_frame(&mut self) -> bool {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.decoder.next_frame().expect("whole frames") {
                Some(Frame::Data(output)) => self.output.extend(output),
                Some(Frame::Control(payload)) => {
                    self.controls
                        .push(serde_json::from_slice(&payload).expect("JSON"));
                }
                Some(Frame::Unknown(kind)) => panic!("a frame of type {kind}"),
                None => match self.stream.read(&mut buffer) {
                    Ok(0) => return false,
                    Ok(count) => {
                        self.decoder.feed(&buffer[..count]);
                        continue;
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => panic!("no frame: {error}"),
                },
            }
            return true;
        }
    }

    /// Wait until the output contains a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |viewer| {
            let shown = String::from_utf8_lossy(&viewer.output);
            shown.contains(text)
        });
    }

    /// Wait for a control frame.
    pub(crate) fn wait_for_control(&mut self, wanted: &Value) {
        self.wait_until(&wanted.to_string(), |viewer| {
            viewer.controls.contains(wanted)
        });
    }

    pub(crate) fn wait_until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        while !wanted(self) {
            assert!(self.next_frame(), "the end, and no {what}");
        }
    }

    /// Detach, and wait until the session closes the connection: then it has received everything.
    pub(crate) fn leave(mut self) {
        self.stream.shutdown(Shutdown::Write).expect("a session");
        while self.next_frame() {}
    }
}

/// Return the socket path at which clients of the original look for a session of this name.
pub(crate) fn originals_socket_path(ph: &Ph, task: &str) -> String {
    let path = ph.user().join(".local/share/ralph/sockets");
    path_text(&path.join(format!("{task}.sock")))
}
