//! `ph attach` on a real terminal. The test plays the session.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::{PATIENCE, Ph, path_text};
use posthaste_lab::pty::{Size, Terminal};
use posthaste_wire::frames::{CONTROL, DATA, Decoder, Frame, FromClient, ToClient, encode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

const PREFIX: &str = "\x1c";
/// Turns on every mode that a program may leave on.
const EVERYTHING_ON: &[u8] = b"\x1b[?1049h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?2004h\
    \x1b[?1004h\x1b[?1h\x1b=\x1b[>1u\x1b[?25l\x1b[31m\x1b[2;5r\x1b[?7lready";

/// A session, and a terminal that is attached to it.
struct Stage {
    terminal: Terminal,
    stream: UnixStream,
    decoder: Decoder,
    asked: Value,
    _ph: Ph,
}

/// Return a home, a listener and its path.
fn listen() -> (Ph, UnixListener, PathBuf) {
    let ph = Ph::new();
    let path = ph.dir().join("bot.sock");
    let listener = UnixListener::bind(&path).expect("a new socket");
    (ph, listener, path)
}

/// A shell that runs other commands before and after the client.
fn shell(ph: &Ph, script: &str) -> Terminal {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/bin:/usr/bin")
        .env("HOME", ph.user())
        .env("PH_HOME", ph.home())
        .env("TERM", "xterm")
        .current_dir(ph.user());
    Terminal::start(command, Size::USUAL)
}

fn accept(listener: &UnixListener) -> UnixStream {
    let timeout = Timespec::try_from(PATIENCE).expect("a short time");
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&timeout)).expect("a listener");
    assert_eq!(ready, 1, "nobody connects");
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time");
    stream
}

fn line(stream: &mut UnixStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).expect("a line");
        line.extend(byte);
    }
    String::from_utf8(line).expect("text")
}

impl Stage {
    fn new(flags: &str) -> Self {
        Self::answering(flags, &[b"{\"ok\":true}\n"])
    }

    fn answering(flags: &str, answer: &[&[u8]]) -> Self {
        let (ph, listener, path) = listen();
        let program = env!("CARGO_BIN_EXE_ph");
        let script = format!(
            "printf '\\033]2;mine\\007'; echo before; '{program}' attach bot --socket '{}' {flags}; echo \"code $?\"",
            path_text(&path)
        );
        let terminal = shell(&ph, &script);
        let mut stream = accept(&listener);
        let asked = serde_json::from_str(&line(&mut stream)).expect("JSON");
        for part in answer {
            stream.write_all(part).expect("a client");
        }
        Self {
            terminal,
            stream,
            decoder: Decoder::default(),
            asked,
            _ph: ph,
        }
    }

    /// Start a client, and draw its first screen.
    fn drawn(flags: &str) -> Self {
        let mut stage = Self::new(flags);
        stage.draw("\x1b[H\x1b[2Jready");
        stage.terminal.wait_for("a screen", |s| s[0] == "ready");
        stage
    }

    fn draw(&mut self, output: impl AsRef<[u8]>) {
        self.stream
            .write_all(&encode(DATA, output.as_ref()))
            .expect("a client");
    }

    fn say(&mut self, said: &ToClient) {
        let said = serde_json::to_vec(said).expect("JSON");
        self.stream
            .write_all(&encode(CONTROL, &said))
            .expect("a client");
    }

    /// Return the next frame, or `None` at the end of the connection.
    fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("frames") {
                return Some(frame);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(read) => self.decoder.feed(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no frame: {error}"),
            }
        }
    }

    /// Return this many bytes of keys.
    fn keys(&mut self, count: usize) -> Vec<u8> {
        let mut keys = Vec::new();
        while keys.len() < count {
            match self.next() {
                Some(Frame::Data(bytes)) => keys.extend(bytes),
                other => panic!("no keys, but {other:?}"),
            }
        }
        keys
    }

    fn told(&mut self) -> FromClient {
        match self.next() {
            Some(Frame::Control(said)) => serde_json::from_slice(&said).expect("a control"),
            other => panic!("nothing was said, but {other:?}"),
        }
    }

    /// Return the process id of the client, which is a child of the shell.
    fn client(&self) -> Pid {
        rustix::net::sockopt::socket_peercred(&self.stream)
            .expect("a client")
            .pid
    }

    fn kill(&self, signal: Signal) {
        rustix::process::kill_process(self.client(), signal).expect("a client");
    }

    /// Check that the shell works below the last screen and that no mode is left on.
    fn is_back(&mut self, last: &str) {
        self.terminal.wait_for_text(last);
        self.terminal.wait_exit();
        self.assert_restored();
    }

    fn assert_restored(&self) {
        let usual = alacritty_terminal::term::TermMode::default();
        assert_eq!(self.terminal.mode(), usual);
        assert_eq!(self.terminal.title(), "mine");
        assert!(self.terminal.is_sane());
    }
}

/// Return the state and the parent of every process.
fn processes() -> Vec<(Pid, String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("processes") {
        let Ok(stat) = std::fs::read_to_string(entry.expect("a process").path().join("stat"))
        else {
            continue;
        };
        // pid (name) state parent …
        let Some((first, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let pid = first.split(' ').next().and_then(|pid| pid.parse().ok());
        let mut rest = rest.split(' ').map(str::to_owned);
        if let (Some(pid), Some(state), Some(parent)) = (pid, rest.next(), rest.next()) {
            found.extend(Pid::from_raw(pid).map(|pid| (pid, state, parent)));
        }
    }
    found
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let us = pid.as_raw_nonzero().to_string();
    let children = processes()
        .into_iter()
        .filter(|(_, _, parent)| *parent == us);
    children.map(|(pid, _, _)| pid).collect()
}

fn is_stopped(pid: Pid) -> bool {
    processes()
        .iter()
        .any(|(other, state, _)| *other == pid && state == "T")
}

#[test]
fn attaching_shows_the_screen_and_detaching_restores_the_terminal() {
    let mut stage = Stage::new("");
    assert_eq!(
        stage.asked,
        json!({"type": "attach", "cols": 80, "rows": 24, "client": "ph"})
    );
    stage.draw("\x1b[H\x1b[2Jhello \x1b[1m漢字");
    stage.draw("\x1b[24;1Hbottom");
    stage.terminal.wait_for("the screen", |screen| {
        screen[0] == "hello 漢字" && screen[23] == "bottom"
    });
    assert!(!stage.terminal.is_sane());
    stage.terminal.type_keys(format!("{PREFIX}d"));
    assert_eq!(stage.next(), None);
    stage.is_back("code 0");
    // The shell's earlier output is above, the program's last screen is visible, and the shell
    // continues below.
    assert!(stage.terminal.scrollback().contains(&"before".to_owned()));
    let shown = stage.terminal.screen();
    let found = |text: &str| shown.iter().position(|line| line == text);
    assert_eq!(found("detached from bot"), Some(21), "{shown:#?}");
    assert_eq!(found("bottom"), Some(20), "{shown:#?}");
}

#[test]
fn frames_after_the_handshake_are_drawn() {
    let mut answer = b"{\"ok\":true}\n".to_vec();
    answer.extend(encode(DATA, b"\x1b[H\x1b[2Jearly"));
    for cut in [answer.len(), 5, 12, 15] {
        let (first, second) = answer.split_at(cut);
        let mut stage = Stage::answering("", &[first, second]);
        stage.terminal.wait_for("a screen", |s| s[0] == "early");
    }
}

#[test]
fn keys_arrive_unchanged() {
    let mut stage = Stage::drawn("");
    let paste = format!("\x1b[200~{}{PREFIX}d\x1b[201~", "0123456789".repeat(1024));
    for typed in [
        "plain",
        "ü漢👩",
        "\x03\x04\x1a\x11\x13\r\n\x7f\0",
        "\x1b",
        "\x1b[A\x1bOP\x1b[1;5C\x1bx",
        "\x1b[<0;10;10M",
        paste.as_str(),
    ] {
        stage.terminal.type_keys(typed);
        assert_eq!(stage.keys(typed.len()), typed.as_bytes(), "{typed:?}");
    }
    for prefix in [PREFIX, "\x1b[92;5u", "\x1b[27;5;92~"] {
        stage.terminal.type_keys(prefix.repeat(2));
        assert_eq!(stage.keys(prefix.len()), prefix.as_bytes());
    }
}

#[test]
fn the_prefix_shows_the_help_until_a_command() {
    let mut stage = Stage::drawn("");
    stage.terminal.type_keys(PREFIX);
    stage.terminal.wait_for("the help", |screen| {
        screen[23].contains("bot: d detach") && screen[0] == "ready"
    });
    assert_eq!(stage.terminal.cursor(), (0, 5));
    stage.terminal.type_keys("x\x1b");
    assert_eq!(stage.told(), FromClient::Redraw);
    stage.draw("\x1b[H\x1b[2Jagain");
    stage.terminal.wait_for("a screen", |s| s[23].is_empty());
    stage.terminal.type_keys(format!("{PREFIX}r"));
    assert_eq!(stage.told(), FromClient::Redraw);
}

#[test]
fn the_keyboard_is_taken_and_released() {
    let mut stage = Stage::drawn("--take");
    assert_eq!(stage.asked["take"], json!(true));
    stage.terminal.type_keys(format!("{PREFIX}t"));
    assert_eq!(stage.told(), FromClient::Release);
    stage.say(&ToClient::Keyboard {
        taken: false,
        yours: false,
    });
    stage.terminal.wait_for_text("the keyboard is free again");
    stage.terminal.type_keys(format!("{PREFIX}t"));
    assert_eq!(stage.told(), FromClient::Take);
    stage.say(&ToClient::Keyboard {
        taken: true,
        yours: true,
    });
    stage.terminal.wait_for_text("you have the keyboard");
}

#[test]
fn a_read_only_viewer_is_told_that_keys_have_no_effect() {
    let mut stage = Stage::drawn("--read-only");
    assert_eq!(stage.asked["read_only"], json!(true));
    stage.terminal.type_keys("\x03");
    stage
        .terminal
        .wait_for_text("read-only: Ctrl+\\ d detaches");
    stage.terminal.type_keys(format!("{PREFIX}d"));
    assert_eq!(stage.next(), None, "nothing was sent");
    stage.is_back("code 0");
}

#[test]
fn a_new_size_is_sent_to_the_session() {
    let mut stage = Stage::drawn("");
    stage.terminal.resize(Size {
        cols: 100,
        rows: 30,
    });
    assert_eq!(
        stage.told(),
        FromClient::Resize {
            cols: 100,
            rows: 30
        }
    );
    stage.say(&ToClient::Notice {
        text: "mind\u{1b}[2J the gap".into(),
    });
    stage
        .terminal
        .wait_for("a notice", |s| s[29].starts_with(" mind[2J the gap"));
}

#[test]
fn the_last_screen_stays_after_the_program_has_ended() {
    let mut stage = Stage::drawn("");
    stage.draw("\x1b[24;1Hlast words");
    stage.say(&ToClient::Ended {
        how: "exit 0".into(),
    });
    stage.is_back("code 0");
    stage.terminal.wait_for_text("last words");
    stage.terminal.wait_for_text("bot ended: exit 0");
}

#[test]
fn every_end_of_the_client_restores_the_terminal() {
    let lost = |stage: &mut Stage| stage.stream.shutdown(std::net::Shutdown::Both).unwrap();
    type End<'a> = &'a dyn Fn(&mut Stage);
    let cases: [(&str, End<'_>, &str); 6] = [
        ("detached", &|s| s.terminal.type_keys("\x1cd"), "code 0"),
        ("lost", &lost, "the connection to bot is lost"),
        (
            "a false frame",
            &|s| s.stream.write_all(&[0xff; 5]).unwrap(),
            "code 1",
        ),
        ("TERM", &|s| s.kill(Signal::TERM), "code 143"),
        ("HUP", &|s| s.kill(Signal::HUP), "code 129"),
        ("INT", &|s| s.kill(Signal::INT), "code 130"),
    ];
    for (how, end, last) in cases {
        let mut stage = Stage::new("");
        stage.draw(EVERYTHING_ON);
        stage.terminal.wait_for_text("ready");
        let client = stage.client();
        stage
            .terminal
            .wait_until("a guardian", |_| !children_of(client).is_empty());
        let guardian = children_of(client)[0];
        end(&mut stage);
        stage.terminal.wait_for_text(last);
        let status = stage.terminal.wait_exit();
        // The interrupt may also kill the shell.
        assert!(
            status.success() || status.signal().is_some(),
            "{how}: {status}"
        );
        stage.assert_restored();
        assert!(
            rustix::process::test_kill_process(guardian).is_err(),
            "{how}"
        );
    }
}

#[test]
fn the_guardian_restores_the_terminal_of_a_killed_client() {
    let mut stage = Stage::new("");
    stage.draw(EVERYTHING_ON);
    stage.terminal.wait_for_text("ready");
    let client = stage.client();
    stage
        .terminal
        .wait_until("a guardian", |_| !children_of(client).is_empty());
    let guardian = children_of(client)[0];
    // Until it has its own process session, it dies with the shell that ends here.
    stage
        .terminal
        .wait_until("a guardian in a session of its own", |_| {
            rustix::process::getsid(Some(guardian)) == Ok(guardian)
        });
    stage.kill(Signal::KILL);
    stage.terminal.wait_until("a sane terminal", |terminal| {
        let usual = alacritty_terminal::term::TermMode::default();
        terminal.is_sane() && terminal.mode() == usual && terminal.title() == "mine"
    });
    // If the shell was faster, its text is on a screen that has been replaced.
    stage.terminal.wait_until("the shell", |terminal| {
        String::from_utf8_lossy(terminal.output()).contains("code 137")
    });
    stage.terminal.wait_until("nobody left", |_| {
        rustix::process::test_kill_process(guardian).is_err()
    });
}

#[test]
fn a_stopped_client_restores_the_terminal_and_redraws_when_continued() {
    let mut stage = Stage::drawn("");
    let client = stage.client();
    stage.kill(Signal::TSTP);
    stage
        .terminal
        .wait_until("a stopped client", |_| is_stopped(client));
    assert!(stage.terminal.is_sane());
    assert!(children_of(client).is_empty());
    stage.kill(Signal::CONT);
    let size = FromClient::Resize { cols: 80, rows: 24 };
    assert_eq!(stage.told(), size);
    assert_eq!(stage.told(), FromClient::Redraw);
    assert!(!stage.terminal.is_sane());
    stage.draw("\x1b[H\x1b[2Jagain");
    stage.terminal.wait_for("a screen", |s| s[0] == "again");
    stage.terminal.type_keys("\x1cd");
    stage.is_back("code 0");
}

#[test]
fn a_client_of_a_blocked_terminal_can_detach() {
    let mut stage = Stage::drawn("");
    stage.stream.set_nonblocking(true).unwrap();
    let frame = encode(DATA, &[b'x'; 60_000]);
    // Nobody reads the terminal, so first the terminal fills up, then the client, then the socket.
    let mut waiting = frame.as_slice();
    let mut is_full = false;
    while !is_full {
        match stage.stream.write(waiting) {
            Ok(written) => waiting = &waiting[written..],
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                // If there is no room for some time, it stays full.
                let timeout = Timespec {
                    tv_sec: 0,
                    tv_nsec: 200_000_000,
                };
                let mut fds = [PollFd::new(&stage.stream, PollFlags::OUT)];
                is_full = poll(&mut fds, Some(&timeout)).unwrap() == 0;
            }
        }
        if waiting.is_empty() {
            waiting = &frame;
        }
    }
    stage.terminal.type_keys("\x1cd");
    assert!(stage.terminal.wait_exit_unread().success());
    assert!(stage.terminal.is_sane());
    stage.terminal.wait_for_text("detached from bot");
    stage.assert_restored();
}

#[test]
fn refusals() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&["attach", "attach bot", "attach bot --socket /nowhere", "attach bot --take --read-only"]), @"
    $ ph attach
    ! error: the following required arguments were not provided:
    !   <NAME>
    !
    ! Usage: ph attach <NAME>
    !
    ! For more information, try '--help'.
    [exit 2]
    $ ph attach bot
    ! error: bot has never run
    ! hint: 'ph run --name bot COMMAND' starts it
    [exit 3]
    $ ph attach bot --socket /nowhere
    ! error: attaching needs a terminal
    ! hint: 'ph peek bot' prints the screen
    [exit 2]
    $ ph attach bot --take --read-only
    ! error: the argument '--take' cannot be used with '--read-only'
    !
    ! Usage: ph attach --take <NAME>
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    let mut stage = Stage::answering("", &[b"{\"ok\":false,\"error\":\"no\\u001b[2Jpe\"}\n"]);
    stage
        .terminal
        .wait_for_text("error: the session of bot: no[2Jpe");
    stage.is_back("code 4");
    let (ph, _, path) = listen();
    let program = env!("CARGO_BIN_EXE_ph");
    let mut terminal = shell(
        &ph,
        &format!("'{program}' attach bot --socket '{}'", path_text(&path)),
    );
    terminal.wait_for_text("no session of bot is running");
    assert_eq!(terminal.wait_exit().code(), Some(4));
}
