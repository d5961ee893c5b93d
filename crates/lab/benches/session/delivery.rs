//! Time until a message is in its agent's terminal: from its commit if nothing holds it, else from
//! the state that releases it. The program reports its input over a socket; a bare terminal is
//! written to directly.

use super::setup::limit::Pty;
use super::setup::stage::{Connection, Player, Stage};
use posthaste_core::{AgentName, Evidence, Priority};
use posthaste_lab::bench::{BODY, Goal, Table, Unit, middle};
use posthaste_wire::method::{Pause, Resume, Send, Subscribe};
use posthaste_wire::param::Events;
use posthaste_wire::topic::Interest;
use std::time::Instant;

const ROUNDS: usize = 100;
const WARM_UP: usize = 10;
/// Goals in seconds.
const AFTER_COMMIT: f64 = 0.0015;
const AFTER_RELEASE: f64 = 0.005;

/// Manifest: the title has the activity, and a message needs no turn.
const HARNESS: &str = r#"
name = "bench"
description = "A program that is written to"

[activity]
silence = "100ms"

[activity.title]
working = ['^busy$']
idle = ['^calm$']
"#;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let dir = stage.dir().join(".config/posthaste/harness");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("bench.toml"), HARNESS).unwrap();
    let mut pty = Pty::start(stage);
    pty.player.play("hear");
    let mut agent = Agent::start(stage);
    let mut measure = |what: &str, limit: f64, deliver: fn(&mut Agent) -> f64| {
        let [mut ours, mut bare] = [const { Vec::new() }; 2];
        for round in 0..ROUNDS + WARM_UP {
            let took = deliver(&mut agent);
            agent.settle();
            let limit = written(&mut pty);
            if round >= WARM_UP {
                ours.push(took);
                bare.push(limit);
            }
        }
        let none = &Goal::None;
        table.turns(
            &format!("{what}, against a bare write"),
            Unit::Seconds,
            &ours,
            &bare,
            none,
        );
        let (most, ours) = (Goal::AtMost(1.0), middle(ours));
        table.fixed(
            "  the same, against the promise",
            Unit::Seconds,
            ours,
            limit,
            &most,
        );
    };
    measure("committed to the terminal", AFTER_COMMIT, committed);
    measure("unpaused to the terminal", AFTER_RELEASE, unpaused);
    measure("at rest to the terminal", AFTER_RELEASE, at_rest);
}

/// Return the time for a text into a bare terminal.
fn written(pty: &mut Pty) -> f64 {
    let begun = Instant::now();
    pty.window.type_text(&BODY.as_bytes()[..300]);
    assert_eq!(pty.player.next_line(), b"text\n");
    begun.elapsed().as_secs_f64()
}

/// A session, a connection to it, and a subscriber.
struct Agent {
    player: Player,
    connection: Connection,
    listener: Connection,
}

impl Agent {
    fn start(stage: &mut Stage) -> Self {
        // A name of its own, because other mail would come first.
        let mut player = stage.session_as("served", "bench");
        player.play("hear");
        let mut listener = stage.connect("served");
        listener.call(&Subscribe {
            events: Events(vec![Interest::Message, Interest::StateChange]),
        });
        let mut agent = Self {
            connection: stage.connect("served"),
            player,
            listener,
        };
        agent.player.play("title calm");
        agent.until("idle");
        agent
    }

    fn send(&mut self, priority: Priority) {
        self.connection.call(&Send {
            from: Some(AgentName::human()),
            from_evidence: Some(Evidence::Default),
            priority: Some(priority),
            ..Send::new(&BODY[..300])
        });
    }

    /// Wait for the text, ignoring other reports.
    fn until_typed(&mut self) {
        while self.player.next_line() != b"text\n" {}
    }

    fn until(&mut self, activity: &str) {
        self.until_event(&format!("\"activity\":\"{activity}\""));
    }

    /// Send a message that is held, and wait until the session knows it.
    fn send_held(&mut self, priority: Priority) {
        self.send(priority);
        self.until_event("\"receipt\":\"stored\"");
    }

    fn until_event(&mut self, wanted: &str) {
        while memchr::memmem::find(self.listener.line(), wanted.as_bytes()).is_none() {}
    }

    /// Wait until the message is submitted and the agent is at rest.
    fn settle(&mut self) {
        while self.player.next_line() != b"enter\n" {}
        self.until("idle");
    }
}

/// Return the time from the reply to the sender, which follows the commit.
fn committed(agent: &mut Agent) -> f64 {
    agent.send(Priority::Normal);
    let begun = Instant::now();
    agent.until_typed();
    begun.elapsed().as_secs_f64()
}

fn unpaused(agent: &mut Agent) -> f64 {
    agent.connection.call(&Pause {});
    agent.send_held(Priority::Normal);
    let begun = Instant::now();
    agent.connection.call(&Resume {});
    agent.until_typed();
    begun.elapsed().as_secs_f64()
}

/// Return the time from before the program reports that it is idle.
fn at_rest(agent: &mut Agent) -> f64 {
    agent.player.play("title busy");
    agent.until("working");
    agent.send_held(Priority::Idle);
    let begun = Instant::now();
    agent.player.begin("title calm");
    agent.until_typed();
    begun.elapsed().as_secs_f64()
}
