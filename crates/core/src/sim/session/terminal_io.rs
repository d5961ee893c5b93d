//! Input and output of the session's terminal: typing, looks at the screen, and reading by the
//! program.

use crate::driver::{Input, KeyboardUser};
use crate::harness::Sighting;
use crate::mail::MessageState;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::actions::clock;
use crate::sim::session::keyboard_work::{LeaseState, LookState, TypingState};
use crate::sim::session::{ScreenLook, Session, TurnKind, World};
use crate::sim::world::program::ReadResult;
use crate::sim::world::terminal::{KeyboardRequest, KeyboardResult, Piece, TurnNo};

impl Session {
    pub(crate) fn type_next(&mut self, world: &mut World<'_>) -> Checked {
        if let Some(KeyboardRequest::Lease(user)) = self.terminal.queue.front().copied()
            && !self.program.is_alive
        {
            self.terminal.queue.pop_front();
            self.work_of(user).lease = Some(LeaseState::Done(Input::KeyboardGone(user)));
            return Ok(());
        }
        match self.terminal.type_next() {
            Some(KeyboardResult::Wrote(_)) => world.oracle.check_key()?,
            Some(KeyboardResult::Granted(user)) => {
                self.work_of(user).lease = Some(LeaseState::Done(Input::KeyboardLeased(user)));
            }
            Some(KeyboardResult::HasDraft(user)) => {
                self.work_of(user).lease = Some(LeaseState::Done(Input::KeyboardRefused(user)));
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) fn step_typing(&mut self, by: KeyboardUser, world: &mut World<'_>) -> Checked {
        let text = self.text_of(by);
        match self.work_of(by).typing.take() {
            Some(TypingState::FirstHalf) => self.type_text(by, world)?,
            Some(TypingState::SecondHalf) => {
                self.terminal.write(Piece::SecondHalf(text));
                world.turns[text].is_written = true;
                let typed = match by {
                    KeyboardUser::Turn => {
                        self.turn.is_whole = true;
                        Input::Typed(self.turn.text())
                    }
                    KeyboardUser::Nudge => Input::LineTyped,
                };
                self.work_of(by).typing = Some(TypingState::Done(typed));
            }
            Some(TypingState::Enter) => {
                match by {
                    KeyboardUser::Turn => {
                        world.oracle.note_enter(&self.turn, self.program.is_alive);
                        self.turn.enters += 1;
                        // No effect reports the end of a reminder.
                        self.turn.is_open &= self.turn.kind == TurnKind::Messages;
                    }
                    KeyboardUser::Nudge => self.nudges.is_entered = true,
                }
                self.terminal.write(Piece::Enter(text));
                self.work_of(by).typing = Some(TypingState::Done(Input::EnterPressed(by)));
            }
            Some(TypingState::Done(input)) => return self.report(input, world),
            None => {}
        }
        Ok(())
    }

    /// Return the number of the text that a user of the keyboard types.
    fn text_of(&self, by: KeyboardUser) -> TurnNo {
        match by {
            KeyboardUser::Turn => self.turn.no,
            KeyboardUser::Nudge => self.nudges.line,
        }
    }

    /// Write the first half of a text, or the part before the write fails.
    fn type_text(&mut self, by: KeyboardUser, world: &mut World<'_>) -> Checked {
        match by {
            KeyboardUser::Turn => {
                world.oracle.check_text(&self.turn)?;
                let is_repeat = self.turn.messages.iter().any(MessageState::is_repeat);
                if is_repeat && self.turn.kind == TurnKind::Messages {
                    world.trace.note(|| "  marked as a repeat".to_owned());
                }
            }
            KeyboardUser::Nudge => world.oracle.check_line_start()?,
        }
        let text = self.text_of(by);
        self.terminal.write(Piece::FirstHalf(text));
        let is_broken = std::mem::take(&mut self.terminal.next_write_fails);
        if is_broken && by == KeyboardUser::Turn {
            world.oracle.note_text_cut_off();
        }
        self.work_of(by).typing = Some(match is_broken {
            true => TypingState::Done(Input::TerminalFailed {
                by,
                why: "input/output error".to_owned(),
            }),
            false => TypingState::SecondHalf,
        });
        Ok(())
    }

    /// Look at the screen. All output so far is visible.
    pub(crate) fn look_at_screen(&mut self, world: &World<'_>) {
        let sighting = self.program.look(world.turns);
        self.screen_changed |= sighting != self.last_look.sighting;
        let question = self.open_question();
        self.last_look = ScreenLook { sighting, question };
    }

    pub(crate) fn step_look(&mut self, by: KeyboardUser, world: &mut World<'_>) -> Checked {
        match self.work_of(by).look.take() {
            Some(LookState::Requested) => {
                self.look_at_screen(world);
                self.work_of(by).look = Some(LookState::Done(self.last_look.clone()));
                Ok(())
            }
            Some(LookState::Done(look)) => {
                let words = look.sighting.dialog.as_deref();
                world.oracle.answer_targets.note_shown(words, look.question);
                let sighting = look.sighting;
                self.report(Input::Looked { by, sighting }, world)
            }
            None => Ok(()),
        }
    }

    pub(crate) fn report_screen(
        &mut self,
        look: ScreenLook,
        how: fn(Sighting) -> Input,
        world: &mut World<'_>,
    ) -> Checked {
        let words = look.sighting.dialog.as_deref();
        world.oracle.answer_targets.note_shown(words, look.question);
        self.tell(how(look.sighting), world)
    }

    /// Let the program read one piece of its input.
    pub(crate) fn read_input(&mut self, world: &mut World<'_>) -> Checked {
        let Some(piece) = self.terminal.read() else {
            return Ok(());
        };
        if let Some(open) = self.open_question() {
            world.oracle.answer_targets.check_piece(piece, open)?;
        }
        let before = self.program.draft_keys();
        let result = self.program.read(world.now.mono, piece);
        world.trace.note(|| {
            let now = clock(world.now.mono);
            format!("  {now} the program reads {piece:?}: {result:?}")
        });
        let is_kept = piece.is_persons() || self.program.draft_keys() >= before;
        Law::CannotAct.holds(is_kept, || {
            format!("a person's draft is lost or submitted by {piece:?}")
        })?;
        let ReadResult::Prompt { turns, is_typed } = result else {
            return Ok(());
        };
        Law::CannotAct.holds(
            !matches!(piece, Piece::Enter(_)) || !is_typed,
            || "a person's draft was submitted by our Enter",
        )?;
        for id in Self::received(&turns, world.turns) {
            world.oracle.ledger.note_submitted(id);
        }
        Ok(())
    }
}
