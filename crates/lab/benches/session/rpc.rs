//! A request and its reply on an open connection.

use super::setup::limit::{self, Server};
use super::setup::placement::Placement;
use super::setup::stage::{Connection, Player, Stage, mark};
use posthaste_lab::bench::{Goal, Table, Unit, time};
use posthaste_wire::client;
use posthaste_wire::method::{GetStatus, Method, Session, Unsubscribe};
use posthaste_wire::param::Dropped;

const ROUNDS: usize = 5_000;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    for placement in Placement::all() {
        let start = || Answering::start(stage, placement);
        placement.run(start, |answering| ask(table, answering, placement));
    }
}

/// A session, and an echo server: one thread, tokio.
struct Answering {
    ours: Connection,
    echo: Connection,
    _player: Player,
    _server: Server,
}

impl Answering {
    fn start(stage: &mut Stage, placement: Placement) -> Self {
        let name = format!("bot-{}", placement.label());
        let mut player = stage.session(&name);
        player.play(&format!("screen {}", mark(1)));
        let server = Server::start(stage, limit::ECHO, &[]);
        Self {
            ours: stage.connect(&name),
            echo: server.connection(),
            _player: player,
            _server: server,
        }
    }
}

fn ask(table: &mut Table, answering: Answering, placement: Placement) {
    let nothing = Unsubscribe {
        events: Dropped(Vec::new()),
    };
    let mut ask = Ask {
        table,
        answering,
        placement,
    };
    ask.compare("unsubscribe from nothing", &nothing);
    ask.compare("session", &Session {});
    ask.compare("get_status, full screen", &GetStatus {});
}

struct Ask<'a> {
    table: &'a mut Table,
    answering: Answering,
    placement: Placement,
}

impl Ask<'_> {
    /// Compare with the same line to the echo server and back.
    fn compare<M: Method>(&mut self, what: &str, question: &M) {
        let line = client::request(1, question);
        let Answering { ours, echo, .. } = &mut self.answering;
        let answer = ours.round_trip(&line);
        assert!(memchr::memmem::find(answer, b"\"result\":").is_some());
        let [mut asked, mut echoed] = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            let took = time(|| {
                ours.round_trip(&line);
            });
            asked.push(took.as_secs_f64());
            let took = time(|| {
                echo.round_trip(&line);
            });
            echoed.push(took.as_secs_f64());
        }
        let what = format!("{what}, against an echo, {}", self.placement.name());
        self.table
            .turns(&what, Unit::Seconds, &asked, &echoed, &Goal::None);
    }
}
