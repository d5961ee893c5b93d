//! The model of a program: it boots, reads its terminal piece by piece, works, asks, swallows
//! Enter and falls silent. It knows nothing of desks; what it shows is what a session sees.

use super::script::{Act, Nature};
use super::terminal::{Piece, TurnNo};
use std::time::Duration;

/// How often it writes while it is busy.
const PULSE: Duration = Duration::from_millis(900);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Booting { until: Duration },
    Prompt,
    Working { until: Duration },
}

/// What stands in its input line.
#[derive(Debug, Default)]
struct Input {
    /// Turns, and whether all of their text is there.
    turns: Vec<(TurnNo, bool)>,
    is_typed: bool,
}

/// What came of a piece that it read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Saw {
    Nothing,
    /// It is lost: the program is not ready.
    Lost,
    /// Enter, that has no effect.
    Swallowed,
    /// A prompt was submitted, with these turns in it.
    Prompt {
        turns: Vec<TurnNo>,
        /// Whether a person's own text stood in it too.
        is_typed: bool,
    },
}

#[derive(Debug)]
pub(super) struct Agent {
    nature: Nature,
    state: State,
    pub(super) is_alive: bool,
    pub(super) is_reading: bool,
    pub(super) takes_pastes: bool,
    pub(super) question: Option<String>,
    input: Input,
    prompts: u8,
    enters: u8,
    writes_at: Duration,
    /// Whether it has written something that nobody has noticed yet.
    pub(super) has_written: bool,
}

impl Agent {
    pub(super) fn new(nature: Nature, now: Duration) -> Self {
        let boots = Duration::from_millis(nature.boots.into());
        Self {
            nature,
            state: State::Booting { until: now + boots },
            is_alive: true,
            is_reading: true,
            takes_pastes: false,
            question: None,
            input: Input::default(),
            prompts: 0,
            enters: 0,
            writes_at: now + PULSE,
            has_written: false,
        }
    }

    /// From now on it is as good an agent as there is.
    pub(super) fn behave(&mut self) {
        self.nature = Nature {
            works: self.nature.works.min(1_000),
            swallows: 0,
            asks: 0,
            ..self.nature
        };
        self.is_reading = true;
    }

    /// When it does something by itself.
    pub(super) fn next(&self) -> Option<Duration> {
        let until = match self.state {
            State::Booting { until } | State::Working { until } if self.is_alive => until,
            State::Booting { .. } | State::Working { .. } | State::Prompt => return None,
        };
        Some(if self.writes() {
            until.min(self.writes_at)
        } else {
            until
        })
    }

    fn writes(&self) -> bool {
        match self.state {
            State::Booting { .. } => true,
            State::Working { .. } => !self.nature.is_silent,
            State::Prompt => false,
        }
    }

    /// Does what its time has come for.
    pub(super) fn run(&mut self, now: Duration) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            self.has_written = true;
            self.writes_at = at + PULSE;
            match self.state {
                State::Booting { until } if until <= at => {
                    self.takes_pastes = self.nature.takes_pastes;
                    self.state = State::Prompt;
                }
                State::Working { until } if until <= at => self.state = State::Prompt,
                State::Booting { .. } | State::Working { .. } | State::Prompt => {}
            }
        }
    }

    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Output => self.has_written = true,
            Act::Ask => self.ask(),
            Act::Unask => self.question = None,
            Act::StopReading => self.is_reading = false,
            Act::Read => self.is_reading = true,
            Act::Paste(on) => self.takes_pastes = on,
            // That is the terminal's.
            Act::BreakWrite => {}
            Act::Exit => self.is_alive = false,
        }
    }

    fn ask(&mut self) {
        self.has_written = true;
        self.question = Some(format!("Run command {}?", self.prompts));
    }

    /// Reads one piece of its input.
    pub(super) fn read(&mut self, now: Duration, piece: Piece) -> Saw {
        if let State::Booting { .. } = self.state {
            return Saw::Lost;
        }
        self.has_written = true;
        if self.question.is_some() {
            let is_answer = match piece {
                Piece::Enter | Piece::Submit => true,
                Piece::Break => self.nature.is_dismissed,
                Piece::First(_) | Piece::Rest(_) | Piece::Key | Piece::Clear => false,
            };
            if is_answer {
                self.question = None;
            }
            // As far as keys tell, what was typed is submitted or cleared by these: that is all
            // that a session sees of it.
            if let Piece::Submit | Piece::Clear = piece {
                self.input.is_typed = false;
            }
            return Saw::Nothing;
        }
        match piece {
            Piece::First(turn) => self.input.turns.push((turn, false)),
            Piece::Rest(turn) => {
                let is_it = |(begun, _): &&mut (TurnNo, bool)| *begun == turn;
                if let Some((_, whole)) = self.input.turns.iter_mut().find(is_it) {
                    *whole = true;
                }
            }
            Piece::Key => self.input.is_typed = true,
            Piece::Clear => self.input = Input::default(),
            Piece::Enter => {
                self.enters = self.enters.wrapping_add(1);
                if is_nth(self.enters, self.nature.swallows) {
                    return Saw::Swallowed;
                }
                return self.submit(now);
            }
            Piece::Submit => return self.submit(now),
            Piece::Break => {
                if self.nature.is_stopped {
                    self.state = State::Prompt;
                }
            }
        }
        Saw::Nothing
    }

    fn submit(&mut self, now: Duration) -> Saw {
        let input = std::mem::take(&mut self.input);
        if input.turns.is_empty() && !input.is_typed {
            return Saw::Nothing;
        }
        self.prompts = self.prompts.wrapping_add(1);
        let works = Duration::from_millis(self.nature.works.into());
        self.state = State::Working { until: now + works };
        self.writes_at = now + PULSE;
        if is_nth(self.prompts, self.nature.asks) {
            self.ask();
        }
        let whole = input.turns.into_iter().filter(|(_, whole)| *whole);
        Saw::Prompt {
            turns: whole.map(|(turn, _)| turn).collect(),
            is_typed: input.is_typed,
        }
    }

    /// Whether it tells twice what it has accepted.
    pub(super) fn repeats(&self) -> bool {
        self.nature.repeats
    }
}

fn is_nth(count: u8, every: u8) -> bool {
    every > 0 && count.is_multiple_of(every)
}
