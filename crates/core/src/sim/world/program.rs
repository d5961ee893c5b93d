//! The simulated program: starts up, reads its terminal piece by piece, works, asks questions,
//! ignores Enter and falls silent. It does not know delivery; a session sees only its output.

use crate::harness::{BoxState, Claim, Held, Mismatch, Says, Sighting, Source};
use crate::sim::script::{KnownScreen, ProgramAction, ProgramProfile};
use crate::sim::world::hook_calls::{HookEvent, WrittenText};
use crate::sim::world::terminal::{Piece, TurnNo};
use std::collections::VecDeque;
use std::time::Duration;

/// Idle time after which the program reports its idleness once more.
const IDLE_REPEAT_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two outputs of a busy program.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(900);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Booting { until: Duration },
    Prompt,
    Working { until: Duration },
}

/// Content of the program's input box.
#[derive(Debug, Clone, Default)]
struct InputBox {
    /// Turns, and whether all of their text is present.
    turns: Vec<(TurnNo, bool)>,
    /// Number of keys that a person typed.
    typed: u32,
    /// Whether a person has taken prompts back from the queue, so that their text is a draft.
    is_taken_back: bool,
}

impl InputBox {
    fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.typed == 0
    }

    /// Add a prompt that a person takes back.
    fn take_back(&mut self, prompt: Self) {
        self.turns.extend(prompt.turns);
        self.typed += prompt.typed;
        self.is_taken_back = true;
    }

    /// Return the number of keys of a draft: a text that was taken back counts as one key.
    fn draft_keys(&self) -> u32 {
        self.typed + u32::from(self.is_taken_back)
    }

    /// Forget that a person has typed.
    fn forget_draft(&mut self) {
        self.typed = 0;
        self.is_taken_back = false;
    }

    /// Return the text as the screen shows it.
    fn text(&self, turns: &[WrittenText]) -> String {
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

/// Effect of a piece of input that the program has read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    Nothing,
    /// The piece is lost, because the program is not ready.
    Lost,
    /// Enter had no effect.
    Swallowed,
    /// The interrupt key ended the program.
    Quit,
    /// A prompt was submitted with these turns, each whole or in part. The prompt may be queued.
    Prompt {
        turns: Vec<(TurnNo, bool)>,
        /// Whether the prompt also contains keys of a person.
        is_typed: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Program {
    profile: ProgramProfile,
    state: State,
    pub(crate) is_alive: bool,
    pub(crate) is_reading: bool,
    pub(crate) takes_pastes: bool,
    pub(crate) question: Option<String>,
    input: InputBox,
    /// The last prompt that the model received.
    last_prompt: InputBox,
    /// Prompts that wait for the end of the current work.
    queue: VecDeque<InputBox>,
    is_hidden: bool,
    /// Whether a look has shown the draft in the input box.
    is_draft_shown: bool,
    questions: u32,
    prompts: u8,
    enters: u8,
    output_at: Duration,
    /// Whether the session was not yet told of the last output.
    pub(crate) has_output: bool,
    /// Whether the screen has changed since the last look.
    pub(crate) has_drawn: bool,
    /// Number of outputs so far.
    output: u64,
    /// Hook events that are not yet collected.
    pub(crate) calls: Vec<HookEvent>,
    idle_report_at: Option<Duration>,
}

impl Program {
    pub(crate) fn new(profile: ProgramProfile, now: Duration) -> Self {
        let boot_time = Duration::from_millis(profile.boot_millis.into());
        Self {
            profile,
            state: State::Booting {
                until: now + boot_time,
            },
            is_alive: true,
            is_reading: true,
            takes_pastes: false,
            question: None,
            input: InputBox::default(),
            last_prompt: InputBox::default(),
            queue: VecDeque::new(),
            is_hidden: false,
            is_draft_shown: false,
            questions: 0,
            prompts: 0,
            enters: 0,
            output_at: now + OUTPUT_INTERVAL,
            has_output: false,
            has_drawn: false,
            output: 0,
            calls: Vec::new(),
            idle_report_at: None,
        }
    }

    pub(crate) fn profile(&self) -> ProgramProfile {
        self.profile
    }

    /// Stop every misbehaviour, for the end of a run.
    pub(crate) fn stop_misbehaving(&mut self) {
        self.profile = ProgramProfile {
            work_millis: self.profile.work_millis.min(1_000),
            swallows_enter_every: 0,
            asks_every: 0,
            interrupt_ends_program: false,
            ..self.profile
        };
        self.is_reading = true;
        if std::mem::take(&mut self.is_hidden) {
            self.draw();
        }
    }

    fn draw(&mut self) {
        self.has_output = true;
        self.has_drawn = true;
        self.output += 1;
    }

    /// Look at the screen. `turns` are all texts that were written.
    pub(crate) fn look(&mut self, turns: &[WrittenText]) -> Sighting {
        self.has_drawn = false;
        let sighting = self.screen(turns);
        let is_shown = matches!(sighting.input_box, BoxState::Holds(_));
        self.is_draft_shown = match self.draft_keys() {
            0 => false,
            _ => self.is_draft_shown || is_shown,
        };
        sighting
    }

    fn screen(&self, turns: &[WrittenText]) -> Sighting {
        let is_working = matches!(self.state, State::Working { .. });
        let claim = || Claim {
            source: Source::Title,
            says: Says::Working,
            evidence: "its title says that it works".to_owned(),
        };
        let is_booting = matches!(self.state, State::Booting { .. });
        let is_hidden = self.is_hidden || is_booting || self.question.is_some();
        let input_box = match self.profile.screen {
            KnownScreen::Nothing | KnownScreen::Questions => BoxState::Undescribed,
            KnownScreen::InputBox if is_hidden => {
                BoxState::Unrecognised(Mismatch::new("the input box", "another view"))
            }
            KnownScreen::InputBox if self.input.is_empty() => BoxState::Empty,
            KnownScreen::InputBox => BoxState::Holds(Held {
                text: self.input.text(turns),
                is_scrolled: false,
            }),
        };
        let says_so = is_working && self.profile.title_shows_work;
        Sighting {
            ready: input_box.is_recognised(),
            output: self.output,
            claims: says_so.then(claim).into_iter().collect(),
            dialog: self.question.clone(),
            input_box,
            ..Sighting::default()
        }
    }

    /// Return the number of keys that a person has neither submitted nor cleared.
    pub(crate) fn draft_keys(&self) -> u32 {
        self.input.draft_keys()
    }

    /// Return the time of the program's next own change.
    pub(crate) fn next_change(&self) -> Option<Duration> {
        let until = match self.state {
            State::Booting { until } | State::Working { until } if self.is_alive => until,
            State::Prompt if self.is_alive => return self.idle_report_at,
            State::Booting { .. } | State::Working { .. } | State::Prompt => return None,
        };
        Some(if self.is_writing() {
            until.min(self.output_at)
        } else {
            until
        })
    }

    fn is_writing(&self) -> bool {
        match self.state {
            State::Booting { .. } => true,
            State::Working { .. } => !self.profile.is_silent,
            State::Prompt => false,
        }
    }

    /// Make the changes that are due.
    pub(crate) fn run(&mut self, now: Duration) {
        while let Some(at) = self.next_change().filter(|at| *at <= now) {
            if self.state == State::Prompt {
                self.idle_report_at = None;
                self.calls.push(HookEvent::Idle);
                continue;
            }
            self.draw();
            self.output_at = at + OUTPUT_INTERVAL;
            match self.state {
                State::Booting { until } if until <= at => {
                    self.takes_pastes = self.profile.takes_pastes;
                    self.calls.push(HookEvent::Started);
                    self.become_idle(at);
                }
                State::Working { until } if until <= at => {
                    self.calls.push(HookEvent::Idle);
                    self.become_idle(at);
                    if let Some(next) = self.queue.pop_front() {
                        self.work_on(at, next);
                    }
                }
                State::Booting { .. } | State::Working { .. } | State::Prompt => {}
            }
        }
    }

    /// Restart the idle timer, because the session may believe that the program works.
    pub(crate) fn report_idle_again(&mut self, now: Duration) {
        if self.state == State::Prompt {
            self.become_idle(now);
        }
    }

    fn become_idle(&mut self, now: Duration) {
        self.state = State::Prompt;
        self.idle_report_at = self
            .profile
            .hooks_report
            .then_some(now + IDLE_REPEAT_INTERVAL);
    }

    pub(crate) fn perform(&mut self, now: Duration, action: ProgramAction) {
        match action {
            ProgramAction::Output => self.draw(),
            ProgramAction::Ask => self.ask(),
            ProgramAction::CloseQuestion => {
                self.question = None;
                self.draw();
            }
            ProgramAction::HideInputBox(on) => {
                // The box stays visible while it holds a draft, because the session cannot know of
                // a draft that no look has shown.
                self.is_hidden = on && self.draft_keys() == 0;
                self.draw();
            }
            ProgramAction::StopReading => self.is_reading = false,
            ProgramAction::StartReading => self.is_reading = true,
            ProgramAction::SetPasteMode(on) => self.takes_pastes = on,
            ProgramAction::EndTurn => self.end_turn(now),
            // The terminal and the session carry these out.
            ProgramAction::FailNextWrite | ProgramAction::CallHook | ProgramAction::KillHooks => {}
            ProgramAction::Exit => self.is_alive = false,
        }
    }

    /// Return the number of the open question.
    pub(crate) fn question_number(&self) -> Option<u32> {
        self.question.as_ref().map(|_| self.questions)
    }

    /// Ask a question. Every two questions in a row have the same words.
    fn ask(&mut self) {
        self.draw();
        self.questions += 1;
        self.question = Some(format!("Run command {}?", self.questions / 2));
    }

    /// Read one piece of input.
    pub(crate) fn read(&mut self, now: Duration, piece: Piece) -> ReadResult {
        if let State::Booting { .. } = self.state {
            return ReadResult::Lost;
        }
        if self.question.is_some() {
            self.answer(piece);
            return ReadResult::Nothing;
        }
        self.draw();
        match piece {
            Piece::FirstHalf(turn) => self.input.turns.push((turn, false)),
            Piece::SecondHalf(turn) => {
                let is_turn = |(number, _): &&mut (TurnNo, bool)| *number == turn;
                if let Some((_, whole)) = self.input.turns.iter_mut().find(is_turn) {
                    *whole = true;
                }
            }
            Piece::Key => self.input.typed += 1,
            Piece::TakeBack => self.take_back(),
            Piece::Clear | Piece::ClearBox => self.input = InputBox::default(),
            Piece::Enter(_) => {
                self.enters = self.enters.wrapping_add(1);
                if is_nth(self.enters, self.profile.swallows_enter_every) {
                    return ReadResult::Swallowed;
                }
                return self.submit(now);
            }
            Piece::Submit => return self.submit(now),
            Piece::Interrupt => return self.interrupt(now),
        }
        ReadResult::Nothing
    }

    /// Handle a piece of input while a question is open. Other keys have no effect.
    fn answer(&mut self, piece: Piece) {
        let is_answer = match piece {
            Piece::Enter(_) | Piece::Submit => true,
            Piece::Interrupt => self.profile.interrupt_closes_questions,
            Piece::FirstHalf(_) | Piece::Key => self.profile.first_key_answers,
            Piece::SecondHalf(_) | Piece::Clear | Piece::ClearBox | Piece::TakeBack => false,
        };
        if is_answer {
            self.question = None;
            self.draw();
        }
        // Judged by the keys alone, Submit and Clear end a draft. Nothing else is known of a draft
        // that no look has shown.
        if let Piece::Submit | Piece::Clear = piece
            && !self.is_draft_shown
        {
            self.input.forget_draft();
        }
    }

    /// Move all queued prompts to the input box.
    fn take_back(&mut self) {
        let withdrawn: Vec<_> = self.queue.drain(..).collect();
        if withdrawn.is_empty() {
            return;
        }
        let turns = withdrawn.iter().flat_map(|prompt| prompt.turns.clone());
        self.calls.push(HookEvent::TakenBack {
            turns: turns.collect(),
        });
        for prompt in withdrawn {
            self.input.take_back(prompt);
        }
    }

    fn interrupt(&mut self, now: Duration) -> ReadResult {
        let is_working = matches!(self.state, State::Working { .. });
        if !is_working && self.profile.interrupt_ends_program {
            self.is_alive = false;
            return ReadResult::Quit;
        }
        if self.profile.interrupt_stops_work {
            // The program calls no hook after an interrupt, as many programs do.
            self.become_idle(now);
            if is_working && self.profile.restores_input && self.input.is_empty() {
                self.input.turns = std::mem::take(&mut self.last_prompt).turns;
            }
        }
        ReadResult::Nothing
    }

    fn submit(&mut self, now: Duration) -> ReadResult {
        let input = std::mem::take(&mut self.input);
        match input.is_empty() {
            true => ReadResult::Nothing,
            false => self.submit_prompt(now, input),
        }
    }

    /// Take a prompt that does not come through the input box.
    pub(crate) fn take_prompt(&mut self, now: Duration, turn: TurnNo) {
        self.draw();
        let prompt = InputBox {
            turns: vec![(turn, true)],
            ..InputBox::default()
        };
        self.submit_prompt(now, prompt);
    }

    fn submit_prompt(&mut self, now: Duration, input: InputBox) -> ReadResult {
        self.calls.push(HookEvent::Submitted {
            turns: input.turns.clone(),
            typed: input.typed,
        });
        let result = ReadResult::Prompt {
            turns: input.turns.clone(),
            is_typed: input.draft_keys() > 0,
        };
        if self.profile.queues_prompts && self.state != State::Prompt {
            self.queue.push_back(input);
        } else if self.profile.has_api {
            // The answer covers all prompts that were queued before.
            self.queue.push_back(input);
            self.work_on_queue(now);
        } else {
            self.work_on(now, input);
        }
        result
    }

    /// Give the model all queued prompts as one.
    fn work_on_queue(&mut self, now: Duration) {
        let mut all = InputBox::default();
        for prompt in self.queue.drain(..) {
            all.turns.extend(prompt.turns);
            all.typed += prompt.typed;
        }
        self.work_on(now, all);
    }

    /// Handle an interrupt that does not come through the terminal.
    pub(crate) fn abort(&mut self, now: Duration) {
        if self.profile.interrupt_stops_work {
            self.end_turn(now);
        }
    }

    /// Stop the work, and the question with it.
    fn end_turn(&mut self, now: Duration) {
        if matches!(self.state, State::Working { .. }) {
            self.question = None;
            self.draw();
            self.calls.push(HookEvent::Idle);
            self.become_idle(now);
        }
    }

    /// Give the model the prompts that have waited since a turn was cut off.
    pub(crate) fn continue_queue(&mut self, now: Duration) {
        self.draw();
        let (turns, typed) = (Vec::new(), 0);
        self.calls.push(HookEvent::Submitted { turns, typed });
        self.work_on_queue(now);
    }

    /// List the prompts that wait although the program does not work.
    pub(crate) fn stranded(&self) -> impl Iterator<Item = &[(TurnNo, bool)]> {
        let is_resting = self.state == State::Prompt;
        let stranded = self.queue.iter().filter(move |_| is_resting);
        stranded.map(|prompt| &prompt.turns[..])
    }

    /// List the prompts that are lost with the program: those in the queue, and those that a person
    /// has taken back from it.
    pub(crate) fn queued(&self) -> impl Iterator<Item = &[(TurnNo, bool)]> {
        let taken_back = Some(&self.input).filter(|input| input.is_taken_back);
        let queued = self.queue.iter().chain(taken_back);
        queued.map(|input| &input.turns[..])
    }

    /// Give the model a prompt.
    fn work_on(&mut self, now: Duration, input: InputBox) {
        self.prompts = self.prompts.wrapping_add(1);
        let work_time = Duration::from_millis(self.profile.work_millis.into());
        self.state = State::Working {
            until: now + work_time,
        };
        self.output_at = now + OUTPUT_INTERVAL;
        if is_nth(self.prompts, self.profile.asks_every) {
            self.ask();
        }
        self.calls.push(HookEvent::Given {
            turns: input.turns.clone(),
        });
        self.last_prompt = input;
    }

    /// Whether the program calls each hook twice.
    pub(crate) fn repeats_hook_calls(&self) -> bool {
        self.profile.repeats_hook_calls
    }
}

fn is_nth(count: u8, every: u8) -> bool {
    every > 0 && count.is_multiple_of(every)
}
