//! The simulated program: it boots, reads its terminal piece by piece, works, asks, swallows Enter
//! and falls silent. It knows nothing of delivery; a session sees only what the program shows.

use crate::harness::{BoxState, Claim, Held, Mismatch, Says, Sighting, Source};
use crate::sim::script::{Act, Nature, Sight};
use crate::sim::world::hook_calls::{Call, Typed};
use crate::sim::world::terminal::{Piece, TurnNo};
use std::collections::VecDeque;
use std::time::Duration;

/// After so long a rest it says once more that it rests.
const RESTS: Duration = Duration::from_secs(60);
/// How often it writes while it is busy.
const PULSE: Duration = Duration::from_millis(900);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Booting { until: Duration },
    Prompt,
    Working { until: Duration },
}

/// Content of its input box.
#[derive(Debug, Clone, Default)]
struct Input {
    /// Turns, and whether all of their text is there.
    turns: Vec<(TurnNo, bool)>,
    /// How many keys of a person's.
    typed: u32,
}

impl Input {
    fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.typed == 0
    }

    /// How it looks.
    fn text(&self, turns: &[Typed]) -> String {
        let mut words = vec!["x".repeat(self.typed as usize)];
        for (turn, is_whole) in &self.turns {
            let text = &turns[*turn].text;
            let half = text.chars().take(text.chars().count() / 2);
            words.push(match is_whole {
                true => text.clone(),
                false => half.collect(),
            });
        }
        words.join(" ").trim_start().to_owned()
    }
}

/// What came of a piece that it read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Saw {
    Nothing,
    /// It is lost: the program is not ready.
    Lost,
    /// Enter, that has no effect.
    Swallowed,
    /// It ended by the interrupt key.
    Quit,
    /// A prompt was submitted, with these turns in it, whole or not. It may be queued.
    Prompt {
        turns: Vec<(TurnNo, bool)>,
        /// Whether a person's own text stood in it too.
        is_typed: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Agent {
    nature: Nature,
    state: State,
    pub(crate) is_alive: bool,
    pub(crate) is_reading: bool,
    pub(crate) takes_pastes: bool,
    pub(crate) question: Option<String>,
    input: Input,
    /// What it was given last.
    given: Input,
    /// Prompts that wait until its work is done.
    queue: VecDeque<Input>,
    is_hidden: bool,
    /// Whether somebody has seen that a draft stands in its box.
    is_draft_shown: bool,
    asked: u32,
    prompts: u8,
    enters: u8,
    writes_at: Duration,
    /// Whether it has written something that nobody has noticed yet.
    pub(crate) has_written: bool,
    /// Whether its screen has changed since it was looked at.
    pub(crate) has_drawn: bool,
    /// How often it has written something.
    output: u64,
    /// Its hooks, that are to be called.
    pub(crate) calls: Vec<Call>,
    rests_at: Option<Duration>,
}

impl Agent {
    pub(crate) fn new(nature: Nature, now: Duration) -> Self {
        let boots = Duration::from_millis(nature.boots.into());
        Self {
            nature,
            state: State::Booting { until: now + boots },
            is_alive: true,
            is_reading: true,
            takes_pastes: false,
            question: None,
            input: Input::default(),
            given: Input::default(),
            queue: VecDeque::new(),
            is_hidden: false,
            is_draft_shown: false,
            asked: 0,
            prompts: 0,
            enters: 0,
            writes_at: now + PULSE,
            has_written: false,
            has_drawn: false,
            output: 0,
            calls: Vec::new(),
            rests_at: None,
        }
    }

    pub(crate) fn nature(&self) -> Nature {
        self.nature
    }

    /// From now on it is as good an agent as there is.
    pub(crate) fn behave(&mut self) {
        self.nature = Nature {
            works: self.nature.works.min(1_000),
            swallows: 0,
            asks: 0,
            quits: false,
            ..self.nature
        };
        self.is_reading = true;
        if std::mem::take(&mut self.is_hidden) {
            self.draws();
        }
    }

    fn draws(&mut self) {
        self.has_written = true;
        self.has_drawn = true;
        self.output += 1;
    }

    /// Its screen is looked at; `turns` are all that were written.
    pub(crate) fn look(&mut self, turns: &[Typed]) -> Sighting {
        self.has_drawn = false;
        let sighting = self.screen(turns);
        let is_shown = matches!(sighting.input_box, BoxState::Holds(_));
        self.is_draft_shown = match self.input.typed {
            0 => false,
            _ => self.is_draft_shown || is_shown,
        };
        sighting
    }

    fn screen(&self, turns: &[Typed]) -> Sighting {
        let is_working = matches!(self.state, State::Working { .. });
        let claim = || Claim {
            source: Source::Title,
            says: Says::Working,
            evidence: "its title says that it works".to_owned(),
        };
        let is_booting = matches!(self.state, State::Booting { .. });
        let is_hidden = self.is_hidden || is_booting || self.question.is_some();
        let input_box = match self.nature.sight {
            Sight::Nothing | Sight::Questions => BoxState::Undescribed,
            Sight::Box if is_hidden => {
                BoxState::Unrecognised(Mismatch::new("the input box", "another view"))
            }
            Sight::Box if self.input.is_empty() => BoxState::Empty,
            Sight::Box => BoxState::Holds(Held {
                text: self.input.text(turns),
                is_scrolled: false,
            }),
        };
        let says_so = is_working && self.nature.has_title;
        Sighting {
            ready: input_box.is_recognised(),
            output: self.output,
            claims: says_so.then(claim).into_iter().collect(),
            dialog: self.question.clone(),
            input_box,
            ..Sighting::default()
        }
    }

    /// How many keys a person has typed that were neither submitted nor cleared.
    pub(crate) fn draft(&self) -> u32 {
        self.input.typed
    }

    /// When it does something by itself.
    pub(crate) fn next(&self) -> Option<Duration> {
        let until = match self.state {
            State::Booting { until } | State::Working { until } if self.is_alive => until,
            State::Prompt if self.is_alive => return self.rests_at,
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
    pub(crate) fn run(&mut self, now: Duration) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            if self.state == State::Prompt {
                self.rests_at = None;
                self.calls.push(Call::Rests);
                continue;
            }
            self.draws();
            self.writes_at = at + PULSE;
            match self.state {
                State::Booting { until } if until <= at => {
                    self.takes_pastes = self.nature.takes_pastes;
                    self.calls.push(Call::Begins);
                    self.rest(at);
                }
                State::Working { until } if until <= at => {
                    self.calls.push(Call::Rests);
                    self.rest(at);
                    if let Some(next) = self.queue.pop_front() {
                        self.give(at, next);
                    }
                }
                State::Booting { .. } | State::Working { .. } | State::Prompt => {}
            }
        }
    }

    /// Somebody may believe that it works.
    pub(crate) fn says_again(&mut self, now: Duration) {
        if self.state == State::Prompt {
            self.rest(now);
        }
    }

    fn rest(&mut self, now: Duration) {
        self.state = State::Prompt;
        self.rests_at = self.nature.proves.then_some(now + RESTS);
    }

    pub(crate) fn act(&mut self, act: Act) {
        match act {
            Act::Output => self.draws(),
            Act::Ask => self.ask(),
            Act::Unask => {
                self.question = None;
                self.draws();
            }
            Act::Hide(on) => {
                // A draft that goes out of sight while nobody looks is known to nobody.
                self.is_hidden = on && self.draft() == 0;
                self.draws();
            }
            Act::StopReading => self.is_reading = false,
            Act::Read => self.is_reading = true,
            Act::Paste(on) => self.takes_pastes = on,
            // Those are the terminal's, and the session's.
            Act::BreakWrite | Act::Hook | Act::KillHooks => {}
            Act::Exit => self.is_alive = false,
        }
    }

    /// The number of the question that stands open.
    pub(crate) fn asks(&self) -> Option<u32> {
        self.question.as_ref().map(|_| self.asked)
    }

    /// Two in turn ask the same.
    fn ask(&mut self) {
        self.draws();
        self.asked += 1;
        self.question = Some(format!("Run command {}?", self.asked / 2));
    }

    /// Reads one piece of its input.
    pub(crate) fn read(&mut self, now: Duration, piece: Piece) -> Saw {
        if let State::Booting { .. } = self.state {
            return Saw::Lost;
        }
        if self.question.is_some() {
            self.answer(piece);
            return Saw::Nothing;
        }
        self.draws();
        match piece {
            Piece::First(turn) => self.input.turns.push((turn, false)),
            Piece::Rest(turn) => {
                let is_it = |(begun, _): &&mut (TurnNo, bool)| *begun == turn;
                if let Some((_, whole)) = self.input.turns.iter_mut().find(is_it) {
                    *whole = true;
                }
            }
            Piece::Key => self.input.typed += 1,
            Piece::Clear | Piece::Erase => self.input = Input::default(),
            Piece::Enter(_) => {
                self.enters = self.enters.wrapping_add(1);
                if is_nth(self.enters, self.nature.swallows) {
                    return Saw::Swallowed;
                }
                return self.submit(now);
            }
            Piece::Submit => return self.submit(now),
            Piece::Break => return self.stop(now),
        }
        Saw::Nothing
    }

    /// A key that meets its question. One that has no effect is ignored without a word.
    fn answer(&mut self, piece: Piece) {
        let is_answer = match piece {
            Piece::Enter(_) | Piece::Submit => true,
            Piece::Break => self.nature.is_dismissed,
            Piece::First(_) | Piece::Key => self.nature.is_hasty,
            Piece::Rest(_) | Piece::Clear | Piece::Erase => false,
        };
        if is_answer {
            self.question = None;
            self.draws();
        }
        // As far as keys tell, what was typed is submitted or cleared by these: that is all that
        // is known of it where nobody has seen it in the box.
        if let Piece::Submit | Piece::Clear = piece
            && !self.is_draft_shown
        {
            self.input.typed = 0;
        }
    }

    fn stop(&mut self, now: Duration) -> Saw {
        let is_working = matches!(self.state, State::Working { .. });
        if !is_working && self.nature.quits {
            self.is_alive = false;
            return Saw::Quit;
        }
        if self.nature.is_stopped {
            // Like many, it calls no hook then.
            self.rest(now);
            if is_working && self.nature.puts_back && self.input.is_empty() {
                self.input.turns = std::mem::take(&mut self.given).turns;
            }
        }
        Saw::Nothing
    }

    fn submit(&mut self, now: Duration) -> Saw {
        let input = std::mem::take(&mut self.input);
        if input.is_empty() {
            return Saw::Nothing;
        }
        self.calls.push(Call::Submitted {
            turns: input.turns.clone(),
            typed: input.typed,
        });
        let saw = Saw::Prompt {
            turns: input.turns.clone(),
            is_typed: input.typed > 0,
        };
        let is_working = matches!(self.state, State::Working { .. });
        if self.nature.queues && is_working {
            self.queue.push_back(input);
        } else {
            self.give(now, input);
        }
        saw
    }

    /// The prompts that the model was not given yet.
    pub(crate) fn queued(&self) -> impl Iterator<Item = &[(TurnNo, bool)]> {
        self.queue.iter().map(|input| &input.turns[..])
    }

    /// The model is given a prompt.
    fn give(&mut self, now: Duration, input: Input) {
        self.prompts = self.prompts.wrapping_add(1);
        let works = Duration::from_millis(self.nature.works.into());
        self.state = State::Working { until: now + works };
        self.writes_at = now + PULSE;
        if is_nth(self.prompts, self.nature.asks) {
            self.ask();
        }
        self.calls.push(Call::Given {
            turns: input.turns.clone(),
        });
        self.given = input;
    }

    /// Whether it calls each hook twice.
    pub(crate) fn repeats(&self) -> bool {
        self.nature.repeats
    }
}

fn is_nth(count: u8, every: u8) -> bool {
    every > 0 && count.is_multiple_of(every)
}
