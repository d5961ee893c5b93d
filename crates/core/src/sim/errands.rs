//! What a session does, a step at a time: it tells its desk, types, records and looks, as the
//! binary's clerk and errands do.

use super::agent::Saw;
use super::law::{Checked, Law};
use super::planted::{self, Bug};
use super::reasons;
use super::session::{Going, Look, Offering, Receipt, Session, Stroke, World};
use super::terminal::{Done, Piece, Waiting};
use crate::delivery::{Decision, Effect, Event, REST};
use crate::id::MessageId;
use crate::offer::Said;
use crate::session::Ending;
use crate::turn::Input;
use std::time::Duration;

const ROUTE: &str = "terminal";
/// How long a receipt is tried again that could not be recorded.
const INSIST: Duration = Duration::from_secs(180);

impl Session {
    /// One of the things under way comes a step further.
    pub(super) fn step(&mut self, going: Going, world: &mut World<'_>) -> Checked {
        let now = world.now.mono;
        world.trace.note(|| format!("  {} {going:?}", clock(now)));
        match going {
            Going::Keyboard => self.type_next(world)?,
            Going::Offer => self.go_on_offering(world)?,
            Going::Stroke => self.go_on_typing(world)?,
            Going::Receipt(n) => self.record(n, world),
            Going::Look => self.go_on_looking(world),
            Going::Draft => {
                self.told_draft = self.terminal.has_draft;
                let event = if self.told_draft {
                    Event::Draft
                } else {
                    Event::DraftGone
                };
                self.tell(event, world)?;
            }
            Going::Pulse => {
                self.agent.has_written = false;
                self.tell(Event::Output, world)?;
            }
            Going::Screen => {
                self.told_question.clone_from(&self.agent.question);
                self.tell(Event::Dialog(self.told_question.clone()), world)?;
            }
            Going::Read => self.read(world)?,
            Going::Exit => self.notice_exit(world)?,
            Going::Expire => {
                self.is_expiring = false;
                // What cannot be recorded now is recorded by the next who comes by.
                let _ = world.journal.expire(world.now);
                self.outdate();
            }
        }
        self.proceed(world)
    }

    /// Whatever the time has come for.
    pub(super) fn proceed(&mut self, world: &mut World<'_>) -> Checked {
        if self.ended.is_some() {
            return Ok(());
        }
        let now = world.now;
        if self.agent.takes_pastes != (self.desk.input() == Input::Pasted) {
            self.tell(Event::Paste(self.agent.takes_pastes), world)?;
        }
        if self.desk.is_writing() && self.stroke.is_none() && self.desk.next_wakeup().is_none() {
            world.trace.note(|| "  Enter is withheld".to_owned());
        }
        if self.desk.next_wakeup().is_some_and(|at| at <= now.mono) {
            self.tell(Event::Tick, world)?;
        }
        if self.next.is_some_and(|at| at <= now.wall) {
            self.next = None;
            self.is_stale = true;
            self.is_expiring = true;
        }
        if self.is_stale && self.look.is_none() {
            self.is_stale = false;
            let is_fresh = true;
            self.look = Some(Look {
                is_fresh,
                found: None,
            });
        }
        let is_unread = self.terminal.is_unread();
        let is_told = self.desk.unread_for(now).is_some();
        if !self.view.is_empty() && !self.desk.is_writing() && is_unread != is_told {
            self.tell(Event::Unread(is_unread), world)?;
        }
        self.act(world)?;
        reasons::wakeups(now, &self.desk, &self.view)
    }

    /// Begins with what is due.
    fn act(&mut self, world: &mut World<'_>) -> Checked {
        if self.is_about_to_look() {
            return Ok(());
        }
        let chosen = self.desk.next(world.now, &self.view);
        world
            .oracle
            .begins(world.now, &self.desk, &self.view, &chosen)?;
        let Decision::Offer { ids, .. } = &chosen else {
            return Ok(());
        };
        self.turn.letters = self.letters(ids);
        let effects = self.desk.act(world.now, &self.view);
        self.perform(effects, world)
    }

    pub(super) fn tell(&mut self, event: Event, world: &mut World<'_>) -> Checked {
        world
            .trace
            .note(|| format!("  {} the desk hears {event:?}", clock(world.now.mono)));
        world.oracle.tell(world.now, &event);
        let effects = self.desk.on(world.now, event);
        self.perform(effects, world)
    }

    fn perform(&mut self, effects: Vec<Effect>, world: &mut World<'_>) -> Checked {
        for effect in effects {
            world
                .trace
                .note(|| format!("  {} the desk wants {effect:?}", clock(world.now.mono)));
            world.oracle.does(&self.desk, &effect)?;
            match effect {
                Effect::Key(_) => {
                    let key = Waiting::Piece(Piece::Break);
                    self.terminal.queue.push_back(key);
                }
                Effect::Offer { ids } => {
                    // What is known of the mail is old as soon as this is recorded.
                    self.is_fresh = false;
                    if let Some(look) = &mut self.look {
                        look.is_fresh = false;
                    }
                    self.turn.ids = ids;
                    self.offering = Some(Offering::Asked);
                    self.terminal.queue.push_back(Waiting::Turn);
                }
                Effect::Write { ids } => {
                    if planted::is(Bug::TurnLookedUpLate) {
                        self.turn.letters = self.letters(&ids);
                    }
                    let is_in = |id: &MessageId| ids.contains(id);
                    self.turn.letters.retain(|l| is_in(&l.message.id));
                    self.turn.no = world.turns.len();
                    self.turn.input = Some(self.desk.input());
                    self.turn.ids.clone_from(&ids);
                    world.turns.push(ids);
                    self.stroke = Some(Stroke::First);
                }
                Effect::Enter => {
                    let is_raw = |l: &crate::mail::Letter| l.message.envelope.raw;
                    let is_raw = self.turn.letters.iter().all(is_raw);
                    world.oracle.may_type(&self.desk, is_raw, "Enter")?;
                    self.stroke = Some(Stroke::Enter);
                }
                Effect::Offered { ids, evidence } => {
                    let route = ROUTE.to_owned();
                    self.owe(ids, Said::Offered { route, evidence }, world);
                }
                Effect::Withdraw { ids, reason } => {
                    self.owe(ids, Said::Withdrawn { reason }, world);
                }
                Effect::Uncertain { ids, reason } => {
                    self.owe(ids, Said::Uncertain { reason }, world);
                }
            }
        }
        Ok(())
    }

    fn owe(&mut self, ids: Vec<MessageId>, said: Said, world: &World<'_>) {
        self.receipts.push(Receipt {
            ids,
            said,
            give_up: world.now.mono + INSIST,
            again: world.now.mono,
        });
    }

    /// The letters of a turn, in its order.
    fn letters(&self, ids: &[MessageId]) -> Vec<crate::mail::Letter> {
        ids.iter()
            .filter_map(|id| self.view.iter().find(|letter| letter.message.id == *id))
            .cloned()
            .collect()
    }

    fn type_next(&mut self, world: &mut World<'_>) -> Checked {
        match self.terminal.type_next() {
            Some(Done::Wrote(_)) => world.oracle.types()?,
            Some(Done::Granted) => self.offering = Some(Offering::Granted),
            Some(Done::HasDraft) => self.offering = Some(Offering::Said(Event::Barred)),
            None => {}
        }
        Ok(())
    }

    fn go_on_offering(&mut self, world: &mut World<'_>) -> Checked {
        let event = match self.offering.take() {
            Some(Offering::Granted) => {
                let route = ROUTE.to_owned();
                let said = Said::Offering { route };
                let recorded = world.journal.say(world.now, &self.turn.ids, &said);
                self.offering = Some(Offering::Said(match recorded {
                    Ok(moved) => Event::Recorded(moved),
                    Err(_) => Event::NotRecorded("the disk fails".to_owned()),
                }));
                return Ok(());
            }
            Some(Offering::Said(event)) => event,
            other @ (Some(Offering::Asked) | None) => {
                self.offering = other;
                return Ok(());
            }
        };
        self.hear(event, world)
    }

    fn go_on_typing(&mut self, world: &mut World<'_>) -> Checked {
        let no = self.turn.no;
        match self.stroke.take() {
            Some(Stroke::First) => {
                let input = self.turn.input.unwrap_or(Input::Typed);
                let ids = &world.turns[no];
                world.oracle.writes(ids, &self.turn.letters, input)?;
                if self.turn.letters.iter().any(crate::mail::Letter::is_repeat) {
                    world.trace.note(|| "  marked as a repeat".to_owned());
                }
                self.terminal.write(Piece::First(no));
                let is_broken = std::mem::take(&mut self.terminal.is_breaking);
                self.stroke = Some(if is_broken {
                    world.oracle.is_cut_off();
                    Stroke::Said(Event::WriteFailed("input/output error".to_owned()))
                } else {
                    Stroke::Rest
                });
            }
            Some(Stroke::Rest) => {
                self.terminal.write(Piece::Rest(no));
                self.stroke = Some(Stroke::Said(Event::Wrote));
            }
            Some(Stroke::Enter) => {
                let ids = &world.turns[no];
                world.oracle.enters(ids, self.agent.is_alive);
                self.terminal.write(Piece::Enter);
                self.stroke = Some(Stroke::Said(Event::Entered));
            }
            Some(Stroke::Said(event)) => return self.hear(event, world),
            None => {}
        }
        Ok(())
    }

    /// An errand reports. That the program has ended is always heard first.
    fn hear(&mut self, event: Event, world: &mut World<'_>) -> Checked {
        if !self.agent.is_alive && self.ended.is_none() {
            self.notice_exit(world)?;
        }
        self.tell(event, world)?;
        if !self.desk.is_writing() {
            self.terminal.is_leased = false;
        }
        self.outdate();
        Ok(())
    }

    fn outdate(&mut self) {
        self.is_fresh = false;
        if let Some(look) = &mut self.look {
            look.is_fresh = false;
        }
        self.is_stale = true;
    }

    fn record(&mut self, n: usize, world: &mut World<'_>) {
        let receipt = &mut self.receipts[n];
        match world.journal.say(world.now, &receipt.ids, &receipt.said) {
            Ok(_) => drop(self.receipts.remove(n)),
            Err(_) if world.now.mono >= receipt.give_up => {
                let receipt = self.receipts.remove(n);
                world.trace.note(|| format!("  given up: {receipt:?}"));
                self.given_up.extend(receipt.ids);
            }
            Err(_) => receipt.again = world.now.mono + REST,
        }
        self.outdate();
    }

    fn go_on_looking(&mut self, world: &mut World<'_>) {
        match self.look.take() {
            Some(Look {
                is_fresh,
                found: None,
            }) => {
                let found = Some(world.journal.pending(world.now.wall));
                self.look = Some(Look { is_fresh, found });
            }
            Some(Look {
                is_fresh,
                found: Some((view, next)),
            }) => {
                (self.view, self.next) = (view, next);
                self.is_fresh = is_fresh;
            }
            None => {}
        }
    }

    /// The program reads a piece of its input.
    fn read(&mut self, world: &mut World<'_>) -> Checked {
        let Some(piece) = self.terminal.read() else {
            return Ok(());
        };
        let saw = self.agent.read(world.now.mono, piece);
        world.trace.note(|| {
            let now = clock(world.now.mono);
            format!("  {now} the program reads {piece:?}: {saw:?}")
        });
        let Saw::Prompt { turns, is_typed } = saw else {
            return Ok(());
        };
        Law::CannotAct.holds(
            piece != Piece::Enter || !is_typed,
            || "a person's draft was submitted by our Enter",
        )?;
        let ids = turns.iter().flat_map(|turn| &world.turns[*turn]);
        let times = if self.agent.repeats() { 2 } else { 1 };
        for id in ids {
            world.words.extend(std::iter::repeat_n(*id, times));
        }
        Ok(())
    }

    fn notice_exit(&mut self, world: &mut World<'_>) -> Checked {
        self.ended = Some(world.now.mono);
        self.stroke = None;
        world.oracle.is_cut_off();
        self.tell(Event::Exited(Ending::Exit(0)), world)
    }
}

/// A time of the run, in seconds.
pub(super) fn clock(mono: Duration) -> String {
    format!("{:8.3}", mono.as_secs_f64())
}
