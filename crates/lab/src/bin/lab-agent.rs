//! Test agent on a terminal that is controlled by files.
//!
//! Prints `ready`, logs every byte that it reads, and prints the content of a file. Only its own
//! polling interval affects its timing.
//!
//! Flags: `--log FILE` (one line per read: microseconds since its start, and the bytes in
//! hexadecimal), `--say FILE` (print the file's bytes when it exists, and remove it), `--busy FILE`
//! (print dots while it exists), `--raw` (without it, the terminal edits lines), `--paste` (enable
//! bracketed paste), `--yield` (remove the busy file on Ctrl+C), `--echo` (echo the input),
//! `--deaf` (never read), `--full` (a full screen with its size, redrawn when that changes).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval between checks of files and size.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between dots; well below the silence that counts as idle.
const DOT_INTERVAL: Duration = Duration::from_millis(200);
const INTERRUPT: u8 = 0x03;

type Outcome = Result<(), Box<dyn Error>>;

#[derive(Debug, Default)]
struct Flags {
    log: Option<PathBuf>,
    say: Option<PathBuf>,
    busy: Option<PathBuf>,
    raw: bool,
    paste: bool,
    yields: bool,
    echo: bool,
    deaf: bool,
    full: bool,
}

fn flags() -> Result<Flags, Box<dyn Error>> {
    let mut flags = Flags::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut path = || args.next().map(PathBuf::from);
        match arg.as_str() {
            "--log" => flags.log = path(),
            "--say" => flags.say = path(),
            "--busy" => flags.busy = path(),
            "--raw" => flags.raw = true,
            "--paste" => flags.paste = true,
            "--yield" => flags.yields = true,
            "--echo" => flags.echo = true,
            "--deaf" => flags.deaf = true,
            "--full" => flags.full = true,
            other => return Err(format!("unknown flag: {other}").into()),
        }
    }
    Ok(flags)
}

struct Agent {
    flags: Flags,
    begun: Instant,
    log: Option<File>,
    printed_at: Instant,
    drawn: Option<(u16, u16)>,
}

fn main() -> Outcome {
    let flags = flags()?;
    if flags.raw {
        let mut modes = tcgetattr(std::io::stdin())?;
        modes.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &modes)?;
    }
    let log = match &flags.log {
        Some(path) => Some(File::options().append(true).create(true).open(path)?),
        None => None,
    };
    let mut agent = Agent {
        flags,
        begun: Instant::now(),
        log,
        printed_at: Instant::now(),
        drawn: None,
    };
    if agent.flags.paste {
        print(b"\x1b[?2004h")?;
    }
    if agent.flags.full {
        print(b"\x1b[?1049h")?;
    } else {
        print(b"ready\r\n")?;
    }
    agent.run()
}

impl Agent {
    fn run(&mut self) -> Outcome {
        let tick = Timespec::try_from(POLL_INTERVAL)?;
        loop {
            self.say()?;
            self.dot()?;
            self.draw()?;
            if self.flags.deaf {
                std::thread::sleep(POLL_INTERVAL);
                continue;
            }
            let stdin = std::io::stdin();
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            if poll(&mut fds, Some(&tick))? > 0 && !self.read()? {
                return Ok(());
            }
        }
    }

    /// Read the available input; false at its end.
    fn read(&mut self) -> Result<bool, Box<dyn Error>> {
        let mut buffer = [0; 4096];
        // Bypasses the standard library's buffer: one read is one line of the log.
        let count = match rustix::io::read(std::io::stdin(), &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let bytes = &buffer[..count];
        if let Some(log) = &mut self.log {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = format!("{} {hex}\n", self.begun.elapsed().as_micros());
            log.write_all(line.as_bytes())?;
        }
        if self.flags.yields
            && bytes.contains(&INTERRUPT)
            && let Some(busy) = &self.flags.busy
        {
            let _ = std::fs::remove_file(busy);
        }
        if self.flags.echo {
            print(&[b"[", bytes.escape_ascii().to_string().as_bytes(), b"]"].concat())?;
        }
        Ok(true)
    }

    fn say(&self) -> Outcome {
        let Some(path) = &self.flags.say else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        std::fs::remove_file(path)?;
        print(&bytes)
    }

    fn dot(&mut self) -> Outcome {
        let is_busy = self.flags.busy.as_ref().is_some_and(|path| path.exists());
        if is_busy && self.printed_at.elapsed() >= DOT_INTERVAL {
            self.printed_at = Instant::now();
            print(b".")?;
        }
        Ok(())
    }

    /// Draw the corners, and the size in the middle, which look wrong at any other size.
    fn draw(&mut self) -> Outcome {
        if !self.flags.full {
            return Ok(());
        }
        let size = tcgetwinsize(std::io::stdout())?;
        let (rows, cols) = (size.ws_row, size.ws_col);
        if self.drawn == Some((rows, cols)) {
            return Ok(());
        }
        self.drawn = Some((rows, cols));
        let mut frame = b"\x1b[2J".to_vec();
        let mut put = |row: u16, col: u16, text: &str| {
            frame.extend(format!("\x1b[{row};{col}H{text}").bytes());
        };
        put(1, 1, "A");
        put(1, cols, "B");
        put(rows, 1, "C");
        put(rows, cols.saturating_sub(1), "D");
        put(rows / 2, 3, &format!("{cols}x{rows}"));
        print(&frame)
    }
}

fn print(bytes: &[u8]) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
