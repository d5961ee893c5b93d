//! Scripted agent with a screen: an input box, a transcript, and dialogs. Imitates the difficulties
//! of real agents: boots slowly, works, swallows Enter, asks at the wrong moment, quits.
//!
//! Flags: `--log FILE` (one line per event, see below), `--do FILE` (carry out the file's lines
//! when it exists, and remove it), `--boot FILE` (boot while it exists, and lose all input),
//! `--work` (work after each turn until `rest` or an interrupt), `--silent` (draw nothing while
//! working), `--swallow N` (lose the first N Enters), `--ask-on-text WHAT` (ask this as soon as the
//! box has text), `--keep-box` (show the box below a dialog), `--hide` (do not show typed text),
//! `--title` (show the activity in the title), `--alt` (alternate screen), `--paste` (bracketed
//! paste), `--quit` (Ctrl+C exits when idle), `--put-back` (an interrupt restores the last turn to
//! the box), `--ignore N` (ignore the first N keys in a dialog), `--hooks` (report to its session
//! like an agent's hooks: SessionStart, UserPromptSubmit with the text, PermissionRequest,
//! PostToolUse after a yes, nothing after a no or an interrupt, Stop).
//!
//! Lines of `--do`: `settings` (a view without the box, until `box`), `work`, `rest`, `ask WHAT`,
//! `answer` (close the dialog), `type TEXT`, `osc TEXT` (send OSC 7501), `print TEXT`, `hook EVENT
//! JSON` (report this event in any state), `clear` (start another session id and report it), `exit
//! CODE`.
//!
//! The log has `turn "TEXT"`, `yes "WHAT"`, `no "WHAT"`, `swallowed`, `lost N`, `discarded "TEXT"`,
//! `ignored "TEXT"`, `interrupted`, `cleared "TEXT"` and `quit`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval between checks of files.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Interval of the spinner.
const SPIN_INTERVAL: Duration = Duration::from_millis(100);
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[derive(Debug, Default)]
struct Script {
    log: Option<PathBuf>,
    orders: Option<PathBuf>,
    boot: Option<PathBuf>,
    swallow: u32,
    ignore: u32,
    ask_on_text: Option<String>,
    flags: Vec<String>,
}

impl Script {
    fn read() -> Outcome<Self> {
        const FLAGS: [&str; 11] = [
            "--work",
            "--silent",
            "--keep-box",
            "--hide",
            "--title",
            "--alt",
            "--paste",
            "--quit",
            "--put-back",
            "--hooks",
            "--again",
        ];
        let mut script = Self::default();
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut next = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--log" => script.log = Some(next()?.into()),
                "--do" => script.orders = Some(next()?.into()),
                "--boot" => script.boot = Some(next()?.into()),
                "--swallow" => script.swallow = next()?.parse()?,
                "--ignore" => script.ignore = next()?.parse()?,
                "--ask-on-text" => script.ask_on_text = Some(next()?),
                flag if FLAGS.contains(&flag) => script.flags.push(arg),
                other => return Err(format!("unknown flag: {other}").into()),
            }
        }
        Ok(script)
    }

    /// Return whether a flag is set, and unset it.
    fn takes(&mut self, flag: &str) -> bool {
        let has = self.has(flag);
        self.flags.retain(|known| known != flag);
        has
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }
}

struct Tui {
    script: Script,
    log: Option<File>,
    transcript: Vec<String>,
    input: String,
    /// A view without an input box.
    settings: bool,
    asked: Option<String>,
    works: bool,
    spun_at: Instant,
    spins: usize,
    /// Bytes of an unfinished paste.
    pending: Vec<u8>,
    /// Number of clears: a part of its session id.
    clears: usize,
}

fn main() -> Outcome {
    let script = Script::read()?;
    let mut modes = tcgetattr(std::io::stdin())?;
    modes.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &modes)?;
    let log = match &script.log {
        Some(path) => Some(File::options().append(true).create(true).open(path)?),
        None => None,
    };
    let mut tui = Tui {
        script,
        log,
        transcript: Vec::new(),
        input: String::new(),
        settings: false,
        asked: None,
        works: false,
        spun_at: Instant::now(),
        spins: 0,
        pending: Vec::new(),
        clears: 0,
    };
    tui.boot()?;
    if tui.script.has("--alt") {
        print(b"\x1b[?1049h")?;
    }
    if tui.script.has("--paste") {
        print(b"\x1b[?2004h")?;
    }
    tui.draw()?;
    tui.hook("SessionStart", &[("source", "startup")])?;
    tui.run()
}

impl Tui {
    fn note(&mut self, line: &str) -> Outcome {
        if let Some(log) = &mut self.log {
            log.write_all(format!("{line}\n").as_bytes())?;
        }
        Ok(())
    }

    fn boot(&mut self) -> Outcome {
        print(b"booting...\r\n")?;
        while self.script.boot.as_ref().is_some_and(|path| path.exists()) {
            if let Some(bytes) = read(POLL_INTERVAL)? {
                self.note(&format!("lost {}", bytes.len()))?;
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Outcome {
        loop {
            self.obey()?;
            if self.works && !self.script.has("--silent") && self.spun_at.elapsed() >= SPIN_INTERVAL
            {
                self.spun_at = Instant::now();
                self.spins += 1;
                self.draw()?;
            }
            if let Some(bytes) = read(POLL_INTERVAL)? {
                self.hear(&bytes)?;
                self.draw()?;
            }
        }
    }

    /// Carry out the lines of the control file, and remove it.
    fn obey(&mut self) -> Outcome {
        let Some(path) = &self.script.orders else {
            return Ok(());
        };
        let orders = match std::fs::read_to_string(path) {
            Ok(orders) => orders,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        std::fs::remove_file(path)?;
        for order in orders.lines() {
            let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
            match verb {
                "work" => self.works = true,
                "rest" => {
                    self.works = false;
                    self.hook("Stop", &[])?;
                }
                "ask" => self.ask(rest.to_owned())?,
                "answer" => self.asked = None,
                "settings" => self.settings = true,
                "box" => self.settings = false,
                "type" => self.input.push_str(rest),
                "osc" => print(format!("\x1b]7501;{rest}\x07").as_bytes())?,
                "print" => self.transcript.push(rest.to_owned()),
                "hook" => {
                    let (event, payload) = rest.split_once(' ').unwrap_or((rest, "null"));
                    tell_session(event, payload)?;
                }
                "clear" => self.clear()?,
                "exit" => std::process::exit(rest.parse()?),
                other => return Err(format!("unknown order: {other}").into()),
            }
        }
        self.draw()
    }

    fn hear(&mut self, bytes: &[u8]) -> Outcome {
        self.pending.extend(bytes);
        let mut rest = std::mem::take(&mut self.pending);
        while !rest.is_empty() {
            let used = if let Some(pasted) = rest.strip_prefix(PASTE_BEGINS) {
                let Some(end) = find(pasted, PASTE_ENDS) else {
                    break;
                };
                let text = String::from_utf8_lossy(&pasted[..end]).into_owned();
                self.put(&text)?;
                PASTE_BEGINS.len() + end + PASTE_ENDS.len()
            } else if rest.starts_with(b"\x1b[") {
                let end = rest[2..].iter().position(|b| (0x40..0x7f).contains(b));
                end.map_or(rest.len(), |end| end + 3)
            } else if rest[0] < 0x20 || rest[0] == 0x7f {
                self.key(rest[0])?;
                1
            } else {
                let end = rest.iter().position(|b| *b < 0x20 || *b == 0x7f);
                let end = end.unwrap_or(rest.len());
                let text = String::from_utf8_lossy(&rest[..end]).into_owned();
                self.put(&text)?;
                end
            };
            rest.drain(..used);
        }
        self.pending = rest;
        Ok(())
    }

    /// Handle typed or pasted text.
    fn put(&mut self, text: &str) -> Outcome {
        if self.asked.is_some() && self.script.ignore > 0 {
            self.script.ignore -= 1;
            return self.note(&format!("ignored {text:?}"));
        }
        if self.asked.is_some() {
            return match text {
                "y" => self.answer("yes"),
                "n" => self.answer("no"),
                other => self.note(&format!("discarded {other:?}")),
            };
        }
        self.input.push_str(text);
        match self.script.ask_on_text.take() {
            Some(what) => self.ask(what),
            None => Ok(()),
        }
    }

    fn ask(&mut self, what: String) -> Outcome {
        self.hook("PermissionRequest", &[("tool_name", &what)])?;
        self.asked = Some(what);
        Ok(())
    }

    /// Start a new session with an empty transcript.
    fn clear(&mut self) -> Outcome {
        self.hook("SessionEnd", &[("reason", "clear")])?;
        self.transcript.clear();
        self.clears += 1;
        self.hook("SessionStart", &[("source", "clear")])
    }

    /// Report its state to its session, if it has hooks.
    fn hook(&self, event: &str, fields: &[(&str, &str)]) -> Outcome {
        if !self.script.has("--hooks") {
            return Ok(());
        }
        let id = format!("lab-{}", self.clears);
        let all = fields.iter().copied().chain([("session_id", id.as_str())]);
        let payload: serde_json::Map<_, _> = all
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        tell_session(event, &serde_json::Value::from(payload).to_string())
    }

    fn answer(&mut self, how: &str) -> Outcome {
        match self.asked.take() {
            Some(what) => {
                if how == "yes" {
                    self.hook("PostToolUse", &[("tool_name", &what)])?;
                }
                self.note(&format!("{how} {what:?}"))?;
                if self.script.takes("--again") {
                    return self.ask(what);
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn key(&mut self, key: u8) -> Outcome {
        match (key, self.asked.is_some()) {
            (b'\r', true) => self.answer("yes"),
            (0x1b | 0x03, true) => self.answer("no"),
            (_, true) => Ok(()),
            (b'\r', false) => self.enter(),
            (0x1b, false) if self.works => self.interrupt(),
            (0x03, false) if self.works => self.interrupt(),
            (0x03, false) if self.script.has("--quit") => {
                self.note("quit")?;
                std::process::exit(0)
            }
            (0x15 | 0x03, false) => {
                let cleared = std::mem::take(&mut self.input);
                self.note(&format!("cleared {cleared:?}"))
            }
            (0x7f, false) => {
                self.input.pop();
                Ok(())
            }
            (b'\n', false) => {
                self.input.push('\n');
                Ok(())
            }
            (_, false) => Ok(()),
        }
    }

    fn enter(&mut self) -> Outcome {
        if self.script.swallow > 0 {
            self.script.swallow -= 1;
            return self.note("swallowed");
        }
        if self.input.is_empty() {
            return Ok(());
        }
        let turn = std::mem::take(&mut self.input);
        self.note(&format!("turn {turn:?}"))?;
        self.hook("UserPromptSubmit", &[("prompt", &turn)])?;
        self.transcript
            .push(format!("you: {}", turn.replace('\n', " ")));
        self.works = self.script.has("--work");
        if !self.works {
            self.hook("Stop", &[])?;
        }
        Ok(())
    }

    fn interrupt(&mut self) -> Outcome {
        self.works = false;
        if self.script.has("--put-back")
            && let Some(turn) = self.transcript.pop()
        {
            self.input = turn.trim_start_matches("you: ").to_owned();
        }
        self.note("interrupted")
    }

    fn draw(&mut self) -> Outcome {
        let size = tcgetwinsize(std::io::stdout())?;
        let cols = usize::from(size.ws_col.max(20));
        let mut lines = vec!["lab-tui".to_owned()];
        let from = self.transcript.len().saturating_sub(8);
        lines.extend(self.transcript[from..].iter().cloned());
        lines.push("-".repeat(20));
        if let Some(what) = &self.asked {
            lines.push(format!("Do you want to {what}?"));
            lines.push("* 1. Yes".to_owned());
            lines.push("  2. No".to_owned());
        }
        let mut cursor = None;
        if self.settings {
            lines.push("Settings: press a key to change one".to_owned());
        } else if self.asked.is_none() || self.script.has("--keep-box") {
            cursor = Some(self.draw_box(&mut lines, cols));
        }
        if self.works {
            let spinner = ["|", "/", "-", "\\"][self.spins % 4];
            lines.push(format!("{spinner} working, esc to interrupt"));
        } else {
            lines.push("? for help".to_owned());
        }
        let mut frame = b"\x1b[H\x1b[2J".to_vec();
        if self.script.has("--title") {
            let title = if self.works { "... busy" } else { "* lab" };
            frame.extend(format!("\x1b]0;{title}\x07").bytes());
        }
        for line in lines {
            let line: String = line.chars().take(cols - 1).collect();
            frame.extend(format!("{line}\r\n").bytes());
        }
        if let Some((row, column)) = cursor {
            frame.extend(format!("\x1b[{};{}H", row + 1, column + 1).bytes());
        }
        print(&frame)
    }

    /// Draw the input box, and return the row and column of its cursor.
    fn draw_box(&self, lines: &mut Vec<String>, cols: usize) -> (usize, usize) {
        let shown = match self.input.as_str() {
            "" => "Type a message",
            _ if self.script.has("--hide") => "",
            input => input,
        };
        let chars: Vec<char> = shown.replace('\n', " ").chars().collect();
        let mut row = String::new();
        for (n, part) in chars.chunks(cols - 3).enumerate() {
            row = part.iter().collect();
            lines.push(format!("{}{row}", if n == 0 { "> " } else { "  " }));
        }
        if chars.is_empty() {
            lines.push("> ".to_owned());
        }
        let cursor = match self.input.is_empty() {
            true => (lines.len() - 1, 2),
            false => (lines.len() - 1, 2 + row.chars().count()),
        };
        lines.push("-".repeat(20));
        cursor
    }
}

/// Send a hook's event to the session that runs this program, and wait for the reply. Without a
/// session, do nothing.
fn tell_session(event: &str, payload: &str) -> Outcome {
    let Some(socket) = std::env::var_os("PH_SOCKET") else {
        return Ok(());
    };
    let Ok(mut session) = UnixStream::connect(socket) else {
        return Ok(());
    };
    let event = serde_json::Value::from(event);
    let line =
        format!("{{\"type\":\"hook_event\",\"event_name\":{event},\"payload\":{payload}}}\n");
    session.write_all(line.as_bytes())?;
    session.read_to_end(&mut Vec::new())?;
    Ok(())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Return typed input, waiting for this time. Exits at the end of the input.
fn read(wait: Duration) -> Outcome<Option<Vec<u8>>> {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    if poll(&mut fds, Some(&Timespec::try_from(wait)?))? == 0 {
        return Ok(None);
    }
    let mut buffer = [0; 4096];
    match rustix::io::read(std::io::stdin(), &mut buffer) {
        Ok(0) => std::process::exit(0),
        Ok(count) => Ok(Some(buffer[..count].to_vec())),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn print(bytes: &[u8]) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
