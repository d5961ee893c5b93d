//! Mail to a live session: by a command, on an open connection, and on many.

use super::setup::limit::{self, Server};
use super::setup::peer::Tmux;
use super::setup::stage::{Connection, Player, Stage};
use posthaste_core::{AgentName, Evidence};
use posthaste_lab::bench::{BODY, Goal, SyncedCommit, Table, Unit, time};
use posthaste_wire::client;
use posthaste_wire::method::{Pause, Send};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

const COMMANDS: usize = 300;
const SENDS: usize = 1_000;
const ROUNDS: usize = 5;
const MANY: usize = 64;
/// Length of the output of `ph send`: an id and a line break.
const ANSWER: usize = 37;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let mut player = stage.session("bot");
    player.play("swallow");
    commands(table, stage);
    // Deliveries are paused, so that only sending is measured.
    let mut quiet: Player = stage.session("quiet");
    quiet.play("swallow");
    stage.connect("quiet").call(&Pause {});
    open_connection(table, stage);
    many(table, stage);
}

fn body() -> &'static str {
    &BODY[..300]
}

fn commands(table: &mut Table, stage: &mut Stage) {
    let Some(mut tmux) = Tmux::start(table, stage) else {
        return;
    };
    tmux.player.play("swallow");
    let mut ph = stage.ph(&["send", "bot", body()]);
    let mut keys = Tmux::command(stage, &["send-keys", "-t", "bench", body(), "Enter"]);
    for _ in 0..20 {
        to_end(&mut ph);
        to_end(&mut keys);
    }
    let [mut answers, mut ends, mut theirs] = [const { Vec::new() }; 3];
    for _ in 0..COMMANDS {
        answers.push(to_answer(&mut ph));
        theirs.push(to_end(&mut keys));
        ends.push(to_end(&mut ph));
    }
    table.turns(
        "ph send to its synced answer, against tmux send-keys",
        Unit::Seconds,
        &answers,
        &theirs,
        &Goal::AtMost(1.0),
    );
    table.turns(
        "  the same to the end of the process",
        Unit::Seconds,
        &ends,
        &theirs,
        &Goal::None,
    );
}

fn to_end(command: &mut Command) -> f64 {
    command.stdout(Stdio::null());
    let took = time(|| assert!(command.status().unwrap().success()));
    took.as_secs_f64()
}

fn to_answer(command: &mut Command) -> f64 {
    command.stdout(Stdio::piped());
    let mut child = None;
    let took = time(|| {
        let child = child.insert(command.spawn().unwrap());
        let mut answer = [0; ANSWER];
        let stdout = child.stdout.as_mut().unwrap();
        stdout.read_exact(&mut answer).unwrap();
    });
    assert!(child.unwrap().wait().unwrap().success());
    took.as_secs_f64()
}

/// A message like that of `ph send`.
fn message() -> Send {
    Send {
        from: Some(AgentName::human()),
        from_evidence: Some(Evidence::Default),
        ..Send::new(body())
    }
}

fn open_connection(table: &mut Table, stage: &Stage) {
    let server = Server::start(stage, limit::ECHO, &[]);
    let mut echo = server.connection();
    let mut commit = SyncedCommit::new(&stage.dir().join("limit.db"));
    let mut quiet = stage.connect("quiet");
    let mut busy = stage.connect("bot");
    let line = client::request(1, &message());
    let [mut sends, mut delivered, mut limits] = [const { Vec::new() }; 3];
    for round in 0..SENDS + 50 {
        let ours = time(|| quiet.call(&message()));
        let trip = time(|| {
            echo.round_trip(&line);
        });
        let limit = trip + commit.commit(body());
        let beside = time(|| busy.call(&message()));
        if round >= 50 {
            sends.push(ours.as_secs_f64());
            limits.push(limit.as_secs_f64());
            delivered.push(beside.as_secs_f64());
        }
    }
    table.turns(
        "send on a connection, against a round trip + a commit",
        Unit::Seconds,
        &sends,
        &limits,
        &Goal::AtMost(2.0),
    );
    table.turns(
        "  the same while mail is being delivered",
        Unit::Seconds,
        &delivered,
        &limits,
        &Goal::None,
    );
}

fn many(table: &mut Table, stage: &Stage) {
    let mut ones = Vec::new();
    let mut manies = Vec::new();
    for _ in 0..ROUNDS {
        ones.push(rate(stage, 1, SENDS));
        manies.push(rate(stage, MANY, 10 * SENDS));
    }
    table.turns(
        &format!("{MANY} connections, against one at a time"),
        Unit::PerSecond,
        &manies,
        &ones,
        &Goal::AtLeast(4.0),
    );
}

/// Return the sends per second with this number of connections, each with one request in flight.
/// One thread serves all connections, which leaves the other core to the session.
fn rate(stage: &Stage, connections: usize, sends: usize) -> f64 {
    let line = client::request(1, &message());
    let mut open: Vec<Connection> = (0..connections).map(|_| stage.connect("quiet")).collect();
    let mut begun = 0;
    let mut answered = 0;
    let took = time(|| {
        for connection in &mut open {
            connection.write(&line);
            begun += 1;
        }
        while answered < sends {
            let mut fds: Vec<_> = open
                .iter()
                .map(|c| PollFd::from_borrowed_fd(c.stream.get_ref().as_fd(), PollFlags::IN))
                .collect();
            poll(&mut fds, None).unwrap();
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            for (connection, _) in open.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                let answer = connection.line();
                assert!(memchr::memmem::find(answer, b"\"result\":").is_some());
                answered += 1;
                if begun < sends {
                    connection.write(&line);
                    begun += 1;
                }
            }
        }
    });
    sends as f64 / took.as_secs_f64()
}
