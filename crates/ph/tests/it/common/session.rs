//! A live session, and a line to its socket. Nothing of a session outlives its test, however that
//! ends.

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

/// The agent of most tests.
pub(crate) const BOT: &str = "bot";

/// A session that runs, and the home it runs in.
pub(crate) struct Session {
    pub(crate) ph: Ph,
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
    pub(crate) pid: u32,
    pub(crate) child: u32,
}

impl Session {
    /// A shell script as `bot`.
    pub(crate) fn sh(script: &str) -> Self {
        Self::start(Ph::new(), &[], &["/bin/sh", "-c", script])
    }

    /// A program that writes down what it reads, once it is there.
    pub(crate) fn tty(paste: bool) -> (Self, Tty) {
        Self::tty_in(Ph::new(), paste)
    }

    pub(crate) fn tty_in(ph: Ph, paste: bool) -> (Self, Tty) {
        let tty = Tty::new(ph.dir().join("tty"));
        let environment = tty.environment(paste);
        let flags: Vec<&str> = environment.iter().flat_map(|e| ["--env", e]).collect();
        let command = Tty::command(TTY);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let session = Self::start(ph, &flags, &command);
        wait_for("the program", || (!tty.sizes().is_empty()).then_some(()));
        (session, tty)
    }

    pub(crate) fn start(ph: Ph, flags: &[&str], command: &[&str]) -> Self {
        let call = run(&ph, BOT, flags, command);
        Self::begin(ph, call)
    }

    /// What a call of [`run`] starts.
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

    /// Asks the session itself.
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

    /// Until a text stands on the screen.
    pub(crate) fn wait_for_text(&self, text: &str) {
        wait_for(text, || {
            let screen = self.ask("peek", json!({}));
            let lines = screen["lines"].as_array().expect("lines");
            let shows = |line: &Value| line.as_str().is_some_and(|line| line.contains(text));
            lines.iter().any(shows).then_some(())
        });
    }

    /// Types what a person would.
    pub(crate) fn type_keys(&self, keys: &str) {
        let mut viewer = Viewer::attach(&self.socket, 80, 24);
        viewer.keys(keys.as_bytes());
        viewer.leave();
    }

    /// The session's memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.expect("it runs, and this is Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let words: Vec<&str> = line.expect("its memory").split_whitespace().collect();
        words[0].parse().expect("a number")
    }

    /// Waits until nothing is left of it.
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
            // Whatever is wrong with it, it ends here.
            for pid in [self.child, self.pid] {
                kill(pid, Signal::KILL);
            }
            let _ = std::fs::remove_file(&self.socket);
        } else {
            self.wait_gone();
        }
    }
}

/// What else a test has started: it ends with it.
pub(crate) struct Ends([u32; 2]);

impl Ends {
    /// What a call of [`run`] has started.
    pub(crate) fn with(done: &Done) -> Self {
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

impl Drop for Ends {
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

/// The test that [`Session::tty`] runs as a program.
pub(crate) const TTY: &str = "a_program_that_others_run";

/// The call that starts a session.
pub(crate) fn run(ph: &Ph, name: &str, flags: &[&str], command: &[&str]) -> Call {
    let head = ["run", "--json", "--detach", "--name", name];
    ph.call(&[&head[..], flags, &["--"], command].concat())
}

/// Whether a process is there, and not merely unburied.
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

/// A connection that speaks lines.
pub(crate) struct Wire {
    pub(crate) stream: UnixStream,
    /// What was read, how much of that was given out, and how much more holds no line end.
    buffer: Vec<u8>,
    given: usize,
    scanned: usize,
    asked: u64,
    /// Told while something else was waited for.
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

    pub(crate) fn put(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("a session");
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: impl AsRef<[u8]>) {
        self.put([line.as_ref(), b"\n"].concat());
    }

    /// Has nothing more to say.
    pub(crate) fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("a session");
    }

    /// The next line, without its end; none at the end of the connection.
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
                Err(error) => panic!("no line: {error}"),
            }
        }
    }

    /// All lines up to one that holds this text; none of them is looked at before that.
    pub(crate) fn lines_until(&mut self, text: &str) -> Vec<String> {
        let mut piece = vec![0; 256 << 10];
        let has_come = |read: &[u8], count: usize| {
            let from = read.len().saturating_sub(count + text.len());
            memchr::memmem::find(&read[from..], text.as_bytes()).is_some()
        };
        let mut count = self.buffer.len();
        while !has_come(&self.buffer, count) {
            count = self.stream.read(&mut piece).expect("a session");
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

    /// The whole reply to a call. Events that come before it are kept.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = format!("own-{}", self.asked);
        let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method});
        call["params"] = params;
        self.say(call.to_string());
        loop {
            let said = self.json();
            if said["id"] == id {
                return said;
            }
            assert_eq!(said["method"], "event", "{said}");
            self.events.push_back(said["params"].clone());
        }
    }

    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let reply = self.ask(method, params);
        assert_eq!(reply["error"], Value::Null, "{reply}");
        reply["result"].clone()
    }

    /// The code and the text of an error.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let reply = self.ask(method, params);
        let error = &reply["error"];
        let code = error["code"].as_i64().expect("a code");
        (code, error["message"].as_str().expect("a text").to_owned())
    }

    pub(crate) fn subscribe(&mut self, events: &[&str]) {
        self.result("subscribe", json!({"events": events}));
    }

    /// The next event: what its `params` hold.
    pub(crate) fn event(&mut self) -> Value {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let said = self.json();
        assert_eq!(said["method"], "event", "{said}");
        said["params"].clone()
    }

    /// The data of the next event of a type that has a field, whatever is told before.
    pub(crate) fn wait_for_event(&mut self, kind: &str, field: &str) -> Value {
        loop {
            let event = self.event();
            if event["type"] == kind && event["data"].get(field).is_some() {
                return event["data"].clone();
            }
        }
    }

    /// Asserts that the session has closed it, whatever it says before that.
    pub(crate) fn wait_closed(&mut self) -> Vec<Value> {
        let mut last: Vec<Value> = self.events.drain(..).collect();
        while let Some(line) = self.next_line() {
            let said: Value = serde_json::from_str(&line).expect("JSON");
            last.push(said.get("params").unwrap_or(&said).clone());
        }
        last
    }

    /// One request of the plain dialect on a connection of its own, and its reply.
    pub(crate) fn plain(socket: &Path, request: &Value) -> String {
        let mut wire = Self::to(socket);
        wire.say(request.to_string());
        let reply = wire.line();
        assert_eq!(wire.next_line(), None, "one reply, then the end");
        reply
    }
}

/// A connection that has attached, as the original's client does.
pub(crate) struct Viewer {
    pub(crate) stream: UnixStream,
    decoder: Decoder,
    /// All the output so far.
    pub(crate) output: Vec<u8>,
    /// All that was said beside it.
    pub(crate) said: Vec<Value>,
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

    /// From the end of the reply on.
    pub(crate) fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time");
        Self {
            stream,
            decoder: Decoder::default(),
            output: Vec::new(),
            said: Vec::new(),
        }
    }

    pub(crate) fn frame(&mut self, kind: u8, payload: &[u8]) {
        let frame = frames::encode(kind, payload);
        self.stream.write_all(&frame).expect("a session");
    }

    pub(crate) fn keys(&mut self, keys: &[u8]) {
        self.frame(frames::DATA, keys);
    }

    pub(crate) fn control(&mut self, said: &Value) {
        self.frame(frames::CONTROL, said.to_string().as_bytes());
    }

    /// Takes in the next frame; false at the end of the connection.
    pub(crate) fn next_frame(&mut self) -> bool {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.decoder.next_frame().expect("whole frames") {
                Some(Frame::Data(output)) => self.output.extend(output),
                Some(Frame::Control(said)) => {
                    self.said.push(serde_json::from_slice(&said).expect("JSON"));
                }
                Some(Frame::Unknown(kind)) => panic!("a frame of type {kind}"),
                None => match self.stream.read(&mut buffer) {
                    Ok(0) => return false,
                    Ok(count) => {
                        self.decoder.feed(&buffer[..count]);
                        continue;
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                    Err(error) => panic!("no frame: {error}"),
                },
            }
            return true;
        }
    }

    /// Until the output shows a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |viewer| {
            let shown = String::from_utf8_lossy(&viewer.output);
            shown.contains(text)
        });
    }

    /// Until something was said beside the output.
    pub(crate) fn wait_for_said(&mut self, wanted: &Value) {
        self.wait_until(&wanted.to_string(), |viewer| viewer.said.contains(wanted));
    }

    pub(crate) fn wait_until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        while !wanted(self) {
            assert!(self.next_frame(), "the end, and no {what}");
        }
    }

    /// Goes, and waits until the session has let it go: everything it said was heard.
    pub(crate) fn leave(mut self) {
        self.stream.shutdown(Shutdown::Write).expect("a session");
        while self.next_frame() {}
    }
}

/// Where clients of the original look for a session of this name.
pub(crate) fn originals_path(ph: &Ph, task: &str) -> String {
    let path = ph.user().join(".local/share/ralph/sockets");
    path_text(&path.join(format!("{task}.sock")))
}
