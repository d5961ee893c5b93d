//! One question and its answer on an open connection.

use super::bare::{self, Server};
use super::stage::{Connection, Stage, mark};
use posthaste_lab::bench::{Goal, Table, Unit, time};
use posthaste_wire::client;
use posthaste_wire::method::{GetStatus, Method, Session, Unsubscribe};
use posthaste_wire::param::Dropped;

const ROUNDS: usize = 5_000;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let mut player = stage.session("bot");
    player.play(&format!("screen {}", mark(1)));
    let server = Server::start(stage, bare::ECHO, &[]);
    let mut echo = server.connection();
    let mut ours = stage.connect("bot");
    let mut ask = Ask {
        table,
        ours: &mut ours,
        echo: &mut echo,
    };
    let nothing = Unsubscribe {
        events: Dropped(Vec::new()),
    };
    let goal = Goal::AtMost(2.0);
    ask.compare("unsubscribe from nothing", &nothing, &goal);
    ask.compare("session", &Session {}, &Goal::None);
    ask.compare("get_status, with a full screen", &GetStatus {}, &Goal::None);
}

struct Ask<'a> {
    table: &'a mut Table,
    ours: &'a mut Connection,
    echo: &'a mut Connection,
}

impl Ask<'_> {
    /// Against the same line there and back, through a process with one thread and tokio.
    fn compare<M: Method>(&mut self, what: &str, question: &M, goal: &Goal) {
        let line = client::request(1, question);
        let answer = self.ours.round_trip(&line);
        assert!(memchr::memmem::find(answer, b"\"result\":").is_some());
        let [mut ours, mut limits] = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            let asked = time(|| {
                self.ours.round_trip(&line);
            });
            let echoed = time(|| {
                self.echo.round_trip(&line);
            });
            ours.push(asked.as_secs_f64());
            limits.push(echoed.as_secs_f64());
        }
        let what = format!("{what}, against a bare echo");
        self.table.turns(&what, Unit::Seconds, &ours, &limits, goal);
    }
}
