//! Time to attach until the screen is complete, and from key to echo.

use super::setup::limit::{self, Pty, Server};
use super::setup::peer::Tmux;
use super::setup::placement::Placement;
use super::setup::stage::{Player, Stage, mark};
use super::setup::window::{COLS, ROWS, Window};
use posthaste_lab::bench::{Goal, Table, Unit};
use posthaste_wire::frames::{self, Decoder, Frame};
use posthaste_wire::plain::{Attach, Request};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const ATTACHES: usize = 100;
const STRETCH: usize = 50;
const KEYS: usize = 2_000;
const STARTS: usize = 4;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    screens(table, stage);
    for placement in Placement::all() {
        keys(table, stage, placement);
    }
}

fn screens(table: &mut Table, stage: &mut Stage) {
    let mut ph = stage.session("bot");
    let Some(mut tmux) = Tmux::start(table, stage) else {
        return;
    };
    let screen = format!("screen {}", mark(1));
    ph.play(&screen);
    tmux.player.play(&screen);
    let [mut ours, mut theirs] = [const { Vec::new() }; 2];
    for _ in 0..ATTACHES {
        ours.push(to_screen(stage.ph(&["attach", "bot"])));
        theirs.push(to_screen(Tmux::attach(stage)));
    }
    table.turns(
        "ph attach to the right screen, against tmux attach",
        Unit::Seconds,
        &ours,
        &theirs,
        &Goal::AtMost(0.75),
    );
}

fn to_screen(command: Command) -> f64 {
    let begun = Instant::now();
    let mut window = Window::open(command);
    window.wait_for(&mark(1));
    begun.elapsed().as_secs_f64()
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

/// Compare the same program behind a session, behind a relay, and alone on a terminal.
struct Typing {
    attached: Attached,
    relayed: Relayed,
    pty: Pty,
    _player: Player,
}

impl Typing {
    fn start(stage: &mut Stage, name: &str) -> Self {
        let mut player = stage.session(name);
        player.play("echo");
        let attached = Attached::to(stage, name);
        let relayed = Relayed::start(stage);
        let mut pty = Pty::start(stage);
        pty.player.play("echo");
        Self {
            attached,
            relayed,
            pty,
            _player: player,
        }
    }
}

fn keys(table: &mut Table, stage: &mut Stage, placement: Placement) {
    let mut took = Took::default();
    // Started anew several times, because the system keeps processes on their cores for long.
    for start in 0..STARTS {
        let name = format!("echo-{}-{start}", placement.label());
        placement.run(
            || Typing::start(stage, &name),
            |typing| took.type_keys(typing),
        );
    }
    took.show(table, placement.name());
}

/// Times of the keys in each series.
#[derive(Default)]
struct Took {
    ours: Vec<f64>,
    relays: Vec<f64>,
    limits: Vec<f64>,
}

impl Took {
    fn type_keys(&mut self, mut typing: Typing) {
        // Measured in series, each on a machine that the series itself keeps awake.
        let stretch = || (b'a'..=b'z').cycle().take(STRETCH);
        for _ in 0..KEYS / STRETCH {
            for key in stretch() {
                self.ours.push(seconds(|| {
                    typing.attached.type_key(key);
                    typing.attached.output();
                }));
            }
            for key in stretch() {
                self.relays.push(seconds(|| typing.relayed.round_trip(key)));
            }
            for key in stretch() {
                self.limits.push(seconds(|| {
                    typing.pty.window.type_key(key);
                    typing.pty.window.read();
                }));
            }
        }
    }

    fn show(&self, table: &mut Table, placement: &str) {
        let Self {
            ours,
            relays,
            limits,
        } = self;
        let rows = [
            (
                "a key to its echo, against a PTY",
                ours,
                limits,
                &Goal::AtMost(2.5),
            ),
            (
                "  against a bare relay on a socket",
                ours,
                relays,
                &Goal::None,
            ),
            ("  that relay, against a PTY", relays, limits, &Goal::None),
        ];
        for (what, measured, limit, goal) in rows {
            let what = format!("{what}, {placement}");
            table.turns(&what, Unit::Seconds, measured, limit, goal);
        }
    }
}

/// Poll like `ph attach`, which has other inputs, and like the PTY reader here. A reader in `read`
/// is woken without need whenever the other side reads.
fn wait(stream: &UnixStream) {
    poll(&mut [PollFd::new(stream, PollFlags::IN)], None).unwrap();
}

/// A program behind a minimal relay.
struct Relayed {
    stream: UnixStream,
    _player: Player,
    _server: Server,
}

impl Relayed {
    fn start(stage: &mut Stage) -> Self {
        let (script, cue) = stage.script();
        let script: Vec<_> = script.iter().map(Path::new).collect();
        let server = Server::start(stage, limit::RELAY, &script);
        let stream = server.connect();
        let mut player = cue.player();
        player.play("echo");
        Self {
            stream,
            _player: player,
            _server: server,
        }
    }

    fn round_trip(&mut self, key: u8) {
        let mut echo = [0];
        self.stream.write_all(&[key]).unwrap();
        wait(&self.stream);
        self.stream.read_exact(&mut echo).unwrap();
        assert_eq!(echo, [key]);
    }
}

/// A client that speaks frames.
pub(crate) struct Attached {
    stream: UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Attached {
    fn to(stage: &Stage, name: &str) -> Self {
        Self::to_size(stage, name, (COLS, ROWS))
    }

    /// Send another size.
    pub(crate) fn to_size(stage: &Stage, name: &str, (cols, rows): (u16, u16)) -> Self {
        let request = Request::Attach(Attach {
            cols,
            rows,
            client: "ph".to_owned(),
            ..Attach::default()
        });
        let mut connection = stage.connect(name);
        let answer = connection.round_trip(&request.line());
        assert_eq!(answer, b"{\"ok\":true}\n");
        let mut decoder = Decoder::default();
        decoder.feed(connection.stream.fill_buf().unwrap());
        let mut attached = Self {
            stream: connection.stream.into_inner(),
            decoder,
            buffer: vec![0; 64 << 10],
        };
        // The current screen.
        attached.output();
        attached
    }

    fn type_key(&mut self, key: u8) {
        let frame = frames::encode(frames::DATA, &[key]);
        self.stream.write_all(&frame).unwrap();
    }

    /// Wait for output.
    fn output(&mut self) {
        loop {
            match self.decoder.next_frame().unwrap() {
                Some(Frame::Data(_)) => return,
                Some(Frame::Control(_) | Frame::Unknown(_)) => {}
                None => {
                    wait(&self.stream);
                    let count = self.stream.read(&mut self.buffer).unwrap();
                    assert_ne!(count, 0, "the session is gone");
                    self.decoder.feed(&self.buffer[..count]);
                }
            }
        }
    }
}
