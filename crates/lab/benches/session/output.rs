//! Output: from the program's first byte to the last on a client's screen, and without a client.

use super::setup::limit::{Model, Pty};
use super::setup::peer::{Dtach, Tmux};
use super::setup::stage::{Player, Stage, mark};
use super::setup::window::Window;
use posthaste_lab::bench::{Goal, Table, Unit, middle};
use std::time::Instant;

const ROUNDS: usize = 11;

struct Kind {
    name: &'static str,
    play: &'static str,
    bytes: usize,
    against_tmux: f64,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "plain lines",
        play: "lines",
        bytes: 32 << 20,
        against_tmux: 1.0,
    },
    Kind {
        name: "redraws",
        play: "redraws",
        bytes: 16 << 20,
        against_tmux: 2.0,
    },
];

/// Several rounds: the program's bytes per second, and the share that the client got.
struct Shown {
    rates: Vec<f64>,
    parts: Vec<f64>,
}

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    attached(table, stage);
    alone(table, stage);
}

fn attached(table: &mut Table, stage: &mut Stage) {
    let mut ph = stage.session("bot");
    let mut tmux = Tmux::start(table, stage);
    let mut dtach = Dtach::start(table, stage);
    let mut ours = Window::open(stage.ph(&["attach", "bot"]));
    let mut theirs = tmux.is_some().then(|| Window::open(Tmux::attach(stage)));
    let mut bare = dtach
        .as_ref()
        .map(|dtach| Window::open(dtach.attach(stage)));
    let mut round = 0;
    for kind in &KINDS {
        let [mut by_ph, mut by_tmux, mut by_dtach] = [const { Shown::new() }; 3];
        for _ in 0..ROUNDS {
            round += 1;
            by_ph.show(kind, round, &mut ph, &mut ours);
            if let (Some(tmux), Some(window)) = (&mut tmux, &mut theirs) {
                by_tmux.show(kind, round, &mut tmux.player, window);
            }
            if let (Some(dtach), Some(window)) = (&mut dtach, &mut bare) {
                by_dtach.show(kind, round, &mut dtach.player, window);
            }
        }
        by_ph.compare(
            table,
            kind,
            "tmux",
            &by_tmux,
            &Goal::AtLeast(kind.against_tmux),
        );
        by_ph.compare(table, kind, "dtach", &by_dtach, &Goal::None);
        table.line(&format!(
            "  of the program's bytes the client got: ph {}, tmux {}, dtach {}",
            by_ph.part(),
            by_tmux.part(),
            by_dtach.part()
        ));
    }
}

impl Shown {
    const fn new() -> Self {
        Self {
            rates: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// One round of output, from its first byte to the mark on the client's terminal.
    fn show(&mut self, kind: &Kind, round: usize, player: &mut Player, window: &mut Window) {
        let mark = mark(round);
        let before = window.got;
        let begun = Instant::now();
        player.begin(&format!("{} {} {mark}", kind.play, kind.bytes));
        window.wait_for(&mark);
        let took = begun.elapsed().as_secs_f64();
        player.wait();
        self.rates.push(kind.bytes as f64 / took);
        self.parts
            .push((window.got - before) as f64 / kind.bytes as f64);
    }

    fn compare(&self, table: &mut Table, kind: &Kind, who: &str, peer: &Self, goal: &Goal) {
        if !peer.rates.is_empty() {
            let what = format!("{} to ph attach, against {who}", kind.name);
            let unit = Unit::BytesPerSecond;
            table.turns(&what, unit, &self.rates, &peer.rates, goal);
        }
    }

    fn part(&self) -> String {
        if self.parts.is_empty() {
            return "-".to_owned();
        }
        format!("{:.0} %", 100.0 * middle(self.parts.clone()))
    }
}

/// Wait until the program has written everything, which requires that it is read.
fn alone(table: &mut Table, stage: &mut Stage) {
    let mut ph = stage.session("alone");
    let Pty {
        mut window,
        mut player,
    } = Pty::start(stage);
    let mut model = Model::new();
    for kind in &KINDS {
        let [mut ours, mut limits] = [const { Vec::new() }; 2];
        for round in 0..ROUNDS {
            let mark = mark(round);
            let what = format!("{} {} {mark}", kind.play, kind.bytes);
            let rate = |begun: Instant| kind.bytes as f64 / begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            ph.play(&what);
            ours.push(rate(begun));
            let begun = Instant::now();
            player.begin(&what);
            window.watch(&mark, |bytes| model.feed(bytes));
            limits.push(rate(begun));
            player.wait();
        }
        table.turns(
            &format!("{} with nobody attached, against a bare model", kind.name),
            Unit::BytesPerSecond,
            &ours,
            &limits,
            &Goal::None,
        );
    }
}
