//! Input and output of the session's terminal: typing, looks at the screen, and reading by the
//! program.

use crate::driver::{Input, KeyboardUser};
use crate::harness::Sighting;
use crate::mail::MessageState;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::actions::clock;
use crate::sim::session::{
    LeaseState, LookState, ScreenLook, Session, TurnKind, TypingState, World,
};
use crate::sim::world::program::ReadResult;
use crate::sim::world::terminal::{KeyboardRequest, KeyboardResult, Piece};

impl Session {
    pub(crate) fn type_next(&mut self, world: &mut World<'_>) -> Checked {
        if let Some(KeyboardRequest::Lease(user)) = self.terminal.queue.front().copied()
            && !self.program.is_alive
        {
            self.terminal.queue.pop_front();
            *self.lease_of(user) = Some(LeaseState::Done(Input::KeyboardGone(user)));
            return Ok(());
        }
        match self.terminal.type_next() {
            Some(KeyboardResult::Wrote(_)) => world.oracle.check_key()?,
            Some(KeyboardResult::Granted(user)) => {
                *self.lease_of(user) = Some(LeaseState::Done(Input::KeyboardLeased(user)));
            }
            Some(KeyboardResult::HasDraft(user)) => {
                *self.lease_of(user) = Some(LeaseState::Done(Input::KeyboardRefused(user)));
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) fn step_typing(&mut self, world: &mut World<'_>) -> Checked {
        match self.typing.take() {
            Some(TypingState::FirstHalf) => self.type_text(world)?,
            Some(TypingState::SecondHalf) => {
                self.terminal.write(Piece::SecondHalf(self.turn.no));
                self.turn.is_whole = true;
                world.turns[self.turn.no].is_written = true;
                self.typing = Some(TypingState::Done(Input::Typed(self.turn.text())));
            }
            Some(TypingState::Enter) => {
                world.oracle.note_enter(&self.turn, self.program.is_alive);
                self.turn.enters += 1;
                // No effect reports the end of a reminder.
                self.turn.is_open &= self.turn.kind == TurnKind::Messages;
                self.terminal.write(Piece::Enter(self.turn.no));
                self.typing = Some(TypingState::Done(Input::EnterPressed(KeyboardUser::Turn)));
            }
            Some(TypingState::Done(input)) => return self.report(input, world),
            None => {}
        }
        Ok(())
    }

    /// Write the first half of a text, or the part before the write fails.
    fn type_text(&mut self, world: &mut World<'_>) -> Checked {
        world.oracle.check_text(&self.turn)?;
        let is_repeat = self.turn.messages.iter().any(MessageState::is_repeat);
        if is_repeat && self.turn.kind == TurnKind::Messages {
            world.trace.note(|| "  marked as a repeat".to_owned());
        }
        self.terminal.write(Piece::FirstHalf(self.turn.no));
        let is_broken = std::mem::take(&mut self.terminal.next_write_fails);
        self.typing = Some(if is_broken {
            world.oracle.note_text_cut_off();
            TypingState::Done(Input::TerminalFailed {
                by: KeyboardUser::Turn,
                why: "input/output error".to_owned(),
            })
        } else {
            TypingState::SecondHalf
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

    pub(crate) fn step_look(&mut self, world: &mut World<'_>) -> Checked {
        match self.look.take() {
            Some(LookState::Requested) => {
                self.look_at_screen(world);
                self.look = Some(LookState::Done(self.last_look.clone()));
                Ok(())
            }
            Some(LookState::Done(look)) => {
                let words = look.sighting.dialog.as_deref();
                world.oracle.answer_targets.note_shown(words, look.question);
                let (by, sighting) = (KeyboardUser::Turn, look.sighting);
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
        let is_persons = match piece {
            Piece::Key | Piece::Submit | Piece::Clear => true,
            Piece::FirstHalf(_)
            | Piece::SecondHalf(_)
            | Piece::Enter(_)
            | Piece::Interrupt
            | Piece::ClearBox => false,
        };
        Law::CannotAct.holds(is_persons || self.program.draft_keys() >= before, || {
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
