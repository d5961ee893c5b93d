//! What a session types and looks at, and what the program makes of it: as the binary's keyboard and
//! its looks at the screen do.

use crate::driver::{Input, KeyboardUser};
use crate::harness::Sighting;
use crate::mail::MessageState;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::actions::clock;
use crate::sim::session::{Cargo, Glance, Lease, Peek, Session, Stroke, World};
use crate::sim::world::program::Saw;
use crate::sim::world::terminal::{Done, Piece, Waiting};

impl Session {
    pub(crate) fn type_next(&mut self, world: &mut World<'_>) -> Checked {
        if let Some(Waiting::Lease(user)) = self.terminal.queue.front().copied()
            && !self.agent.is_alive
        {
            self.terminal.queue.pop_front();
            *self.lease_of(user) = Some(Lease::Said(Input::KeyboardGone(user)));
            return Ok(());
        }
        match self.terminal.type_next() {
            Some(Done::Wrote(_)) => world.oracle.types()?,
            Some(Done::Granted(user)) => {
                *self.lease_of(user) = Some(Lease::Said(Input::KeyboardLeased(user)));
            }
            Some(Done::HasDraft(user)) => {
                *self.lease_of(user) = Some(Lease::Said(Input::KeyboardRefused(user)));
            }
            None => {}
        }
        Ok(())
    }

    pub(crate) fn go_on_typing(&mut self, world: &mut World<'_>) -> Checked {
        match self.stroke.take() {
            Some(Stroke::First) => self.type_text(world)?,
            Some(Stroke::Rest) => {
                self.terminal.write(Piece::Rest(self.turn.no));
                self.turn.is_whole = true;
                world.turns[self.turn.no].is_written = true;
                self.stroke = Some(Stroke::Said(Input::Typed(self.turn.text())));
            }
            Some(Stroke::Enter) => {
                world.oracle.enters(&self.turn, self.agent.is_alive);
                self.turn.enters += 1;
                // Of a reminder nothing more is said.
                self.turn.is_open &= self.turn.cargo == Cargo::Messages;
                self.terminal.write(Piece::Enter(self.turn.no));
                self.stroke = Some(Stroke::Said(Input::EnterPressed(KeyboardUser::Turn)));
            }
            Some(Stroke::Said(input)) => return self.report(input, world),
            None => {}
        }
        Ok(())
    }

    /// The first half of a text, or all that goes in before the write breaks off.
    fn type_text(&mut self, world: &mut World<'_>) -> Checked {
        world.oracle.writes(&self.turn)?;
        let is_repeat = self.turn.messages.iter().any(MessageState::is_repeat);
        if is_repeat && self.turn.cargo == Cargo::Messages {
            world.trace.note(|| "  marked as a repeat".to_owned());
        }
        self.terminal.write(Piece::First(self.turn.no));
        let is_broken = std::mem::take(&mut self.terminal.is_breaking);
        self.stroke = Some(if is_broken {
            world.oracle.is_cut_off();
            Stroke::Said(Input::TerminalFailed {
                by: KeyboardUser::Turn,
                why: "input/output error".to_owned(),
            })
        } else {
            Stroke::Rest
        });
        Ok(())
    }

    /// The terminal looks at the screen, once all that was written is on it.
    pub(crate) fn glance(&mut self, world: &World<'_>) {
        let sighting = self.agent.look(world.turns);
        self.is_news |= sighting != self.sighted.sighting;
        let asks = self.asks();
        self.sighted = Glance { sighting, asks };
    }

    pub(crate) fn go_on_peeking(&mut self, world: &mut World<'_>) -> Checked {
        match self.peek.take() {
            Some(Peek::Asked) => {
                self.glance(world);
                self.peek = Some(Peek::Said(self.sighted.clone()));
                Ok(())
            }
            Some(Peek::Said(glance)) => {
                let words = glance.sighting.dialog.as_deref();
                world.oracle.aims.shows(words, glance.asks);
                let (by, sighting) = (KeyboardUser::Turn, glance.sighting);
                self.report(Input::Looked { by, sighting }, world)
            }
            None => Ok(()),
        }
    }

    pub(crate) fn tell_seen(
        &mut self,
        glance: Glance,
        how: fn(Sighting) -> Input,
        world: &mut World<'_>,
    ) -> Checked {
        let words = glance.sighting.dialog.as_deref();
        world.oracle.aims.shows(words, glance.asks);
        self.tell(how(glance.sighting), world)
    }

    /// The program reads a piece of its input.
    pub(crate) fn read(&mut self, world: &mut World<'_>) -> Checked {
        let Some(piece) = self.terminal.read() else {
            return Ok(());
        };
        if let Some(open) = self.asks() {
            world.oracle.aims.meets(piece, open)?;
        }
        let before = self.agent.draft();
        let saw = self.agent.read(world.now.mono, piece);
        world.trace.note(|| {
            let now = clock(world.now.mono);
            format!("  {now} the program reads {piece:?}: {saw:?}")
        });
        let is_persons = match piece {
            Piece::Key | Piece::Submit | Piece::Clear => true,
            Piece::First(_) | Piece::Rest(_) | Piece::Enter(_) | Piece::Break | Piece::Erase => {
                false
            }
        };
        Law::CannotAct.holds(is_persons || self.agent.draft() >= before, || {
            format!("a person's draft is lost or submitted by {piece:?}")
        })?;
        let Saw::Prompt { turns, is_typed } = saw else {
            return Ok(());
        };
        Law::CannotAct.holds(
            !matches!(piece, Piece::Enter(_)) || !is_typed,
            || "a person's draft was submitted by our Enter",
        )?;
        for id in Self::gets(&turns, world.turns) {
            world.oracle.ledger.submits(id);
        }
        Ok(())
    }
}
