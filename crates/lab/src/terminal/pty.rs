//! A real PTY that runs a program and draws its output on a screen in memory.
//!
//! Never sleeps: every wait is on the terminal or on the program's end, with a deadline. No process
//! or descriptor outlives a [`Terminal`]. It replies to a program's queries like a real terminal,
//! but only while it is read.

use alacritty_terminal::Term;
use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::Processor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use rustix::termios::{LocalModes, Termios, Winsize};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Default deadline for a program to show something; see [`Terminal::with_timeout`].
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

impl Size {
    pub const NARROW: Self = Self { cols: 40, rows: 24 };
    pub const USUAL: Self = Self { cols: 80, rows: 24 };
    pub const LARGE: Self = Self {
        cols: 120,
        rows: 40,
    };
    pub const WIDE: Self = Self {
        cols: 200,
        rows: 50,
    };

    /// Parse `COLSxROWS`.
    pub fn parse(text: &str) -> Option<Self> {
        let (cols, rows) = text.split_once('x')?;
        let (cols, rows) = (cols.parse().ok()?, rows.parse().ok()?);
        (cols > 0 && rows > 0).then_some(Self { cols, rows })
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.cols, self.rows)
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.rows.into()
    }

    fn screen_lines(&self) -> usize {
        self.rows.into()
    }

    fn columns(&self) -> usize {
        self.cols.into()
    }
}

/// Events of the terminal model: replies for the program, and its new title.
enum TerminalEvent {
    Answer(String),
    Title(String),
}

struct EventSender(Sender<TerminalEvent>);

impl EventListener for EventSender {
    fn send_event(&self, event: Event) {
        let event = match event {
            Event::PtyWrite(text) => TerminalEvent::Answer(text),
            Event::Title(title) => TerminalEvent::Title(title),
            Event::ResetTitle => TerminalEvent::Title(String::new()),
            _ => return,
        };
        // The receiver is gone if the terminal is.
        let _ = self.0.send(event);
    }
}

/// Whether a wait draws the program's output or leaves it unread, like a window that hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Yes,
    No,
}

pub struct Terminal {
    /// Non-blocking.
    pty: OwnedFd,
    /// Kept open like a shell's: modes outlive the program and can be checked.
    pts: OwnedFd,
    child: Child,
    /// Closed at the other end when the program has ended.
    ended: OwnedFd,
    watcher: Option<JoinHandle<()>>,
    term: Term<EventSender>,
    parser: Processor,
    events: Receiver<TerminalEvent>,
    title: String,
    output: Vec<u8>,
    timeout: Duration,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal")
            .field("pid", &self.child.id())
            .field("screen", &self.screen())
            .finish_non_exhaustive()
    }
}

impl Terminal {
    /// Run the command as the leader of a new session on a new terminal, with its own environment
    /// and directory.
    pub fn start(command: Command, size: Size) -> Self {
        let (pty, pts) = pty_process::blocking::open().expect("a new PTY");
        pty.resize(pty_process::Size::new(size.rows, size.cols))
            .expect("a size");
        let name = rustix::termios::ttyname(&pts, Vec::new()).expect("a terminal has a name");
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let kept = rustix::fs::open(name, flags, rustix::fs::Mode::empty())
            .expect("our own terminal can be opened");
        let child = pty_process::blocking::Command::from(command)
            .spawn(pts)
            .expect("the program starts");
        let pty = OwnedFd::from(pty);
        rustix::io::ioctl_fionbio(&pty, true).expect("a terminal that does not block");
        let (ended, watcher) = watch(pid_of(&child));
        let (sender, events) = channel();
        let config = Config {
            kitty_keyboard: true,
            ..Config::default()
        };
        Self {
            pty,
            pts: kept,
            child,
            ended,
            watcher: Some(watcher),
            term: Term::new(config, &size, EventSender(sender)),
            parser: Processor::new(),
            events,
            title: String::new(),
            output: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Extend the deadline, for a slow program.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn pid(&self) -> Pid {
        pid_of(&self.child)
    }

    /// Return the rows of the screen as last drawn, without ASCII blanks at their ends. A no-break
    /// space (U+00A0) stays: Claude Code's prompt row ends in one, and its agents view in a space.
    pub fn screen(&self) -> Vec<String> {
        let rows = i32::try_from(self.term.screen_lines()).expect("a screen is small");
        (0..rows).map(|row| self.line(row)).collect()
    }

    /// Return the scrollback, oldest row first.
    pub fn scrollback(&self) -> Vec<String> {
        let lines = i32::try_from(self.term.history_size()).expect("the history is bounded");
        (-lines..0).map(|row| self.line(row)).collect()
    }

    fn line(&self, row: i32) -> String {
        let row = &self.term.grid()[Line(row)];
        let mut line = String::new();
        for column in 0..self.term.columns() {
            push_cell(&mut line, &row[Column(column)]);
        }
        line.truncate(line.trim_end_matches([' ', '\t']).len());
        line
    }

    /// Return row and column of the cursor, counted from 0.
    pub fn cursor(&self) -> (usize, usize) {
        let point = self.term.grid().cursor.point;
        let row = usize::try_from(point.line.0).expect("the cursor is on the screen");
        (row, point.column.0)
    }

    /// Return the modes that the program has set: alternate screen, mouse reports and others.
    pub fn mode(&self) -> TermMode {
        *self.term.mode()
    }

    /// Return the program's latest window title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Return every byte read so far.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    pub fn termios(&self) -> Termios {
        rustix::termios::tcgetattr(&self.pts).expect("the terminal is ours")
    }

    /// Return whether a shell could use the terminal: echo, line input and Ctrl+C are on.
    pub fn is_sane(&self) -> bool {
        let local = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        self.termios().local_modes.contains(local)
    }

    /// Draw output until the screen satisfies a condition.
    pub fn wait_for(&mut self, what: &str, wanted: impl Fn(&[String]) -> bool) {
        self.wait_until(what, |terminal| wanted(&terminal.screen()));
    }

    /// Draw output until the screen contains a text.
    pub fn wait_for_text(&mut self, text: &str) {
        self.wait_for(&format!("{text:?}"), |screen| {
            screen.iter().any(|line| line.contains(text))
        });
    }

    /// Draw output until the terminal satisfies a condition. It is checked after all output and
    /// periodically, because modes change without output.
    pub fn wait_until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + self.timeout;
        loop {
            self.draw();
            if wanted(self) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                panic!("waited in vain for {what}; the screen:\n{}", self.shown());
            }
            self.wait(left.min(Duration::from_millis(20)), Reading::Yes);
        }
    }

    /// Draw all output for this time, for a program that itself depends on time.
    pub fn watch(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(left, Reading::Yes) {
                return;
            }
        }
    }

    fn shown(&self) -> String {
        self.screen().join("\n").trim_end().to_owned()
    }

    /// Type bytes, in as many writes as the terminal needs.
    pub fn type_keys(&mut self, keys: impl AsRef<[u8]>) {
        let mut keys = keys.as_ref();
        let deadline = Instant::now() + DEFAULT_TIMEOUT;
        while !keys.is_empty() {
            match rustix::io::write(&self.pty, keys) {
                Ok(written) => keys = &keys[written..],
                Err(Errno::AGAIN | Errno::INTR) => {
                    assert!(
                        Instant::now() < deadline,
                        "the program does not read its input"
                    );
                    // A program may wait for its output to be read before it reads more.
                    self.draw();
                    let mut fds = [PollFd::new(&self.pty, PollFlags::OUT | PollFlags::IN)];
                    let _ = poll(&mut fds, Some(&timespec(Duration::from_millis(20))));
                }
                Err(error) => panic!("cannot type: {error}"),
            }
        }
    }

    pub fn resize(&mut self, size: Size) {
        let winsize = Winsize {
            ws_col: size.cols,
            ws_row: size.rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&self.pty, winsize).expect("a size");
        self.term.resize(size);
    }

    /// Signal the program only.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("our own child");
    }

    /// Signal the program's process group.
    pub fn signal_group(&self, signal: Signal) {
        rustix::process::kill_process_group(self.pid(), signal).expect("our own child's group");
    }

    /// Close the window: the program gets a hangup and has to end by itself.
    pub fn hang_up(mut self) -> ExitStatus {
        self.pty = rustix::fs::open(
            "/dev/null",
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .expect("/dev/null can be opened");
        self.wait_end(Reading::No)
    }

    /// Draw output until the program has ended.
    pub fn wait_exit(&mut self) -> ExitStatus {
        self.wait_end(Reading::Yes)
    }

    /// Wait for the program's end without reading its output.
    pub fn wait_exit_unread(&mut self) -> ExitStatus {
        self.wait_end(Reading::No)
    }

    fn wait_end(&mut self, reading: Reading) -> ExitStatus {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                panic!("the program does not end; the screen:\n{}", self.shown());
            }
            if self.wait(left, reading) {
                break;
            }
        }
        if reading == Reading::Yes {
            self.draw();
        }
        self.child.wait().expect("our own child")
    }

    /// Wait for output, which is drawn, or for the program's end. Return whether it has ended.
    fn wait(&mut self, at_most: Duration, reading: Reading) -> bool {
        let mut fds = vec![PollFd::new(&self.ended, PollFlags::IN)];
        if reading == Reading::Yes {
            fds.push(PollFd::new(&self.pty, PollFlags::IN));
        }
        // A signal to the test itself is ignored: the caller tries again.
        let _ = poll(&mut fds, Some(&timespec(at_most)));
        let has_ended = !fds[0].revents().is_empty();
        if reading == Reading::Yes {
            self.draw();
        }
        has_ended
    }

    /// Draw the available output and reply to queries.
    fn draw(&mut self) {
        let mut buffer = [0; 16 << 10];
        // Bounded, so that a program that never stops writing cannot block a test.
        for _ in 0..256 {
            let read = match rustix::io::read(&self.pty, &mut buffer) {
                Ok(0) | Err(Errno::AGAIN | Errno::INTR | Errno::IO) => break,
                Ok(read) => read,
                Err(error) => panic!("cannot read the terminal: {error}"),
            };
            self.output.extend_from_slice(&buffer[..read]);
            self.parser.advance(&mut self.term, &buffer[..read]);
        }
        let mut answers = String::new();
        for event in self.events.try_iter() {
            match event {
                TerminalEvent::Answer(answer) => answers.push_str(&answer),
                TerminalEvent::Title(title) => self.title = title,
            }
        }
        // A reply that is not accepted at once is lost, as on a terminal whose program does not
        // read.
        let _ = rustix::io::write(&self.pty, answers.as_bytes());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program leads its process group, and is not reaped yet, so the number is still valid.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process_group(self.pid(), Signal::KILL);
            let _ = rustix::process::kill_process(self.pid(), Signal::KILL);
        }
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        let _ = self.child.wait();
    }
}

/// Return a descriptor that becomes readable when the process ends. The process is not reaped.
fn watch(pid: Pid) -> (OwnedFd, JoinHandle<()>) {
    let (ended, open) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a new pipe");
    let watcher = std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options) {}
        drop(open);
    });
    (ended, watcher)
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).expect("a deadline is near")
}

fn push_cell(line: &mut String, cell: &Cell) {
    let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    if cell.flags.intersects(spacers) {
        return;
    }
    line.push(cell.c);
    line.extend(cell.zerowidth().unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Terminal {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .env_clear()
            .env("PATH", "/bin:/usr/bin");
        Terminal::start(command, Size { cols: 20, rows: 4 })
    }

    #[test]
    fn a_program_draws_reads_keys_and_exits() {
        let mut terminal = sh(
            "printf '\\033]0;a title\\007wide 漢 e\u{301}\\r\\n'; read x; echo \"got $x\"; exit 3",
        );
        terminal.wait_for_text("wide 漢 e\u{301}");
        assert_eq!(terminal.title(), "a title");
        terminal.type_keys("hello\n");
        terminal.wait_for("the answer", |screen| screen[2] == "got hello");
        assert_eq!(terminal.cursor(), (3, 0));
        assert_eq!(terminal.wait_exit().code(), Some(3));
    }

    #[test]
    fn a_terminal_replies_resizes_and_keeps_scrollback() {
        let mut terminal = sh(
            "trap 'stty size' WINCH; stty raw -echo; printf '\\033[6n'; \
             dd bs=1 count=6 2>/dev/null | od -c | head -1; stty sane; echo go; \
             while read x; do echo \"$x\"; done",
        );
        terminal.wait_for_text("033");
        terminal.wait_for_text("go");
        terminal.resize(Size { cols: 30, rows: 5 });
        terminal.type_keys("one\n");
        terminal.wait_for_text("5 30");
        terminal.type_keys("two\nthree\nfour\n");
        terminal.wait_until("history", |terminal| !terminal.scrollback().is_empty());
        assert!(terminal.is_sane());
    }

    #[test]
    fn unread_output_does_not_delay_the_end() {
        let mut terminal = sh("echo unread; exit 0");
        assert!(terminal.wait_exit_unread().success());
        assert!(terminal.output().is_empty());
    }

    #[test]
    fn no_process_outlives_its_terminal() {
        let mut terminal = sh("trap '' HUP TERM; echo here; sleep 1000 & wait");
        terminal.wait_for_text("here");
        let group = terminal.pid();
        drop(terminal);
        // The last process of the group may still be ending, and nothing signals its end.
        let deadline = Instant::now() + DEFAULT_TIMEOUT;
        while rustix::process::test_kill_process_group(group).is_ok() {
            assert!(Instant::now() < deadline, "somebody is left");
            std::thread::yield_now();
        }
    }
}
