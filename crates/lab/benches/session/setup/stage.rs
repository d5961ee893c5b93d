//! Temporary home with the measured sessions. All of them end when it is dropped, even if a
//! measurement fails.

use posthaste_lab::bench::Programs;
use posthaste_wire::client;
use posthaste_wire::method::Method;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Timeout after which the benchmark has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Stage {
    pub(crate) ph: PathBuf,
    /// Program that opens a journal and exits.
    pub(crate) open: PathBuf,
    play: PathBuf,
    dir: PathBuf,
    names: Vec<String>,
    made: u32,
}

impl Stage {
    pub(crate) fn new(dir: &Path, programs: &Programs) -> Self {
        Self {
            ph: programs.path("ph"),
            open: programs.path("lab-open"),
            play: programs.path("lab-play"),
            dir: dir.to_owned(),
            names: Vec::new(),
            made: 0,
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Return a command in an environment without other variables.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.dir)
            .env("PH_HOME", self.dir.join("home"))
            .env("TMUX_TMPDIR", &self.dir)
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    pub(crate) fn ph(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.ph);
        command.args(args);
        command
    }

    /// Return a scripted terminal program, and the listener for its connection.
    pub(crate) fn script(&mut self) -> (Vec<PathBuf>, Cue) {
        self.made += 1;
        let path = self.dir.join(format!("play-{}.sock", self.made));
        let listener = UnixListener::bind(&path).unwrap();
        (vec![self.play.clone(), path], Cue { listener })
    }

    /// Start a session with this name.
    pub(crate) fn session(&mut self, name: &str) -> Player {
        self.session_as(name, "generic")
    }

    /// Start a session with another harness.
    pub(crate) fn session_as(&mut self, name: &str, harness: &str) -> Player {
        let (starting, cue) = self.starting_as(name, harness);
        let started = starting.wait_with_output().unwrap();
        assert!(started.status.success(), "{started:?}");
        cue.player()
    }

    /// Start a session without waiting for it.
    pub(crate) fn starting(&mut self, name: &str) -> (Child, Cue) {
        self.starting_as(name, "generic")
    }

    fn starting_as(&mut self, name: &str, harness: &str) -> (Child, Cue) {
        let (script, cue) = self.script();
        let args = ["run", "--detach", "--name", name, "--harness", harness];
        let mut command = self.ph(&args);
        command.arg("--socket");
        let child = command
            .arg(self.socket(name))
            .arg("--")
            .args(script)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        self.names.push(name.to_owned());
        (child, cue)
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.sock"))
    }

    pub(crate) fn connect(&self, name: &str) -> Connection {
        Connection::new(UnixStream::connect(self.socket(name)).unwrap())
    }

    /// End all sessions concurrently.
    pub(crate) fn clear(&mut self) {
        let names = std::mem::take(&mut self.names);
        let stops: Vec<_> = names
            .iter()
            .filter_map(|name| self.ph(&["stop", "--kill", name]).spawn().ok())
            .collect();
        for mut stop in stops {
            let _ = stop.wait();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Wait for a program of [`Stage::script`] to connect.
pub(crate) struct Cue {
    listener: UnixListener,
}

impl Cue {
    pub(crate) fn player(self) -> Player {
        let (stream, _) = self.listener.accept().unwrap();
        Player(Connection::new(stream))
    }
}

/// A program that follows commands.
pub(crate) struct Player(Connection);

impl Player {
    /// Return its next line.
    pub(crate) fn next_line(&mut self) -> &[u8] {
        self.0.line()
    }

    /// Send a command without waiting.
    pub(crate) fn begin(&mut self, what: &str) {
        self.0.write(format!("{what}\n").as_bytes());
    }

    /// Wait until it has written everything.
    pub(crate) fn wait(&mut self) {
        assert_eq!(self.0.line(), b"done\n");
    }

    pub(crate) fn play(&mut self, what: &str) {
        self.begin(what);
        self.wait();
    }
}

/// Client for lines.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<UnixStream>,
    line: Vec<u8>,
    asked: u64,
}

impl Connection {
    pub(crate) fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            line: Vec::new(),
            asked: 0,
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn line(&mut self) -> &[u8] {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line).unwrap();
        &self.line
    }

    /// Send one line and read one.
    pub(crate) fn round_trip(&mut self, line: &[u8]) -> &[u8] {
        self.write(line);
        self.line()
    }

    /// Make a call that must succeed.
    pub(crate) fn call<M: Method>(&mut self, params: &M) {
        self.asked += 1;
        let request = client::request(self.asked, params);
        let answer = self.round_trip(&request);
        assert!(
            memchr::memmem::find(answer, b"\"result\":").is_some(),
            "{}",
            String::from_utf8_lossy(answer)
        );
    }
}

/// Return a text that shares no character with the others at the same position, so that a screen
/// with one must draw all of the other.
pub(crate) fn mark(number: usize) -> String {
    let letter = |at: usize| char::from(b'A' + u8::try_from((number + at * 11) % 26).unwrap());
    format!("<{}>", (0..20).map(letter).collect::<String>())
}
