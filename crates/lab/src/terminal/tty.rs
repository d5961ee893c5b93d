//! Terminal program that a session runs: reports that it is ready, logs every read with its time,
//! and is busy as a file says.
//!
//! It is started as a test of the calling test binary (see [`Tty::command`]), so it needs no binary
//! of its own.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::OptionalActions;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Environment variables with the program's directory, and whether it enables bracketed paste.
const DIR: &str = "LAB_TTY_DIR";
const PASTE: &str = "LAB_TTY_PASTE";
/// Interval between checks of the control files, and between outputs while busy.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The program from outside: its control files and logs.
#[derive(Debug, Clone)]
pub struct Tty {
    dir: PathBuf,
}

/// Bytes of one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stroke {
    pub at: Duration,
    pub bytes: Vec<u8>,
}

impl Tty {
    /// Set the directory of its files.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        std::fs::create_dir_all(&dir).expect("a new directory");
        Self { dir }
    }

    /// Return the command line that runs the program through the test with this name, which calls
    /// [`run`].
    pub fn command(test: &str) -> Vec<String> {
        let this = std::env::current_exe().expect("this program has a path");
        let this = this.into_os_string().into_string().expect("a plain path");
        let flags = ["--exact", "--ignored", "--nocapture", "--test-threads=1"];
        let mut words = vec![this, test.to_owned()];
        words.extend(flags.map(str::to_owned));
        words
    }

    /// Return the environment that the program needs: `NAME=VALUE`.
    pub fn environment(&self, wants_paste: bool) -> Vec<String> {
        let dir = self.dir.to_str().expect("a temporary path is UTF-8");
        let mut all = vec![format!("{DIR}={dir}")];
        all.extend(wants_paste.then(|| format!("{PASTE}=1")));
        all
    }

    /// Make the program write continuously until it is [`Self::calm`] or interrupted.
    pub fn busy(&self) {
        std::fs::write(self.file("busy"), "").expect("a new file");
    }

    pub fn calm(&self) {
        // An interrupt may have removed the file.
        let _ = std::fs::remove_file(self.file("busy"));
    }

    pub fn is_busy(&self) -> bool {
        self.file("busy").exists()
    }

    pub fn strokes(&self) -> Vec<Stroke> {
        let log = std::fs::read_to_string(self.file("strokes")).unwrap_or_default();
        let lines = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        lines.map(|line| Stroke::parse(line.trim_end())).collect()
    }

    /// Return everything that the program has read.
    pub fn typed(&self) -> String {
        let bytes: Vec<u8> = self.strokes().into_iter().flat_map(|s| s.bytes).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Return the sizes that the terminal has had, as `COLSxROWS`.
    pub fn sizes(&self) -> Vec<String> {
        let sizes = std::fs::read_to_string(self.file("sizes")).unwrap_or_default();
        sizes.lines().map(str::to_owned).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Stroke {
    fn parse(line: &str) -> Self {
        let (at, hex) = line.split_once(' ').expect("a time and bytes");
        let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
        let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits");
        Self {
            at: Duration::from_micros(at.parse().expect("a number")),
            bytes: digits.chunks_exact(2).map(byte).collect(),
        }
    }

    fn shown(bytes: &[u8]) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.expect("the clock is set").as_micros();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{micros} {hex}\n")
    }
}

/// Run the program: returns at once unless its environment is set, else when its terminal is gone.
pub fn run() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let tty = Tty::new(dir);
    let stdin = rustix::stdio::stdin();
    let mut modes = rustix::termios::tcgetattr(stdin).expect("a terminal");
    modes.make_raw();
    rustix::termios::tcsetattr(stdin, OptionalActions::Now, &modes).expect("raw");
    if std::env::var_os(PASTE).is_some() {
        say(b"\x1b[?2004h");
    }
    say(b"ready\r\n");
    let timeout = Timespec::try_from(POLL_INTERVAL).expect("a short time");
    let mut size = String::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let now = rustix::termios::tcgetwinsize(stdin).expect("a terminal");
        let now = format!("{}x{}\n", now.ws_col, now.ws_row);
        if now != size {
            note(&tty.file("sizes"), &now);
            size = now;
        }
        if tty.is_busy() {
            say(b".");
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if !matches!(poll(&mut fds, Some(&timeout)), Ok(1..)) {
            continue;
        }
        match rustix::io::read(stdin, &mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                note(&tty.file("strokes"), &Stroke::shown(&buffer[..count]));
                if buffer[..count].contains(&0x03) {
                    tty.calm();
                }
            }
        }
    }
}

fn say(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    // If the write fails, the next read reports that the terminal is gone.
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

/// Append a line with one write.
fn note(path: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.as_mut().map(|file| file.write_all(line.as_bytes()));
    assert!(matches!(written, Ok(Ok(()))), "cannot note what was read");
}
