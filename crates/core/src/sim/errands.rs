//! What a session does, a step at a time: it tells its desk, types, records and looks, as the
//! binary's clerk and errands do.

use super::aims::Part;
use super::calls::Typed;
use super::harness;
use super::law::Checked;
use super::planted::{self, Bug};
use super::reasons;
use super::session::{
    Begin, Cargo, Going, Look, Offering, Peek, Receipt, Session, Stroke, Turn, World,
};
use super::terminal::{Piece, Waiting};
use crate::delivery::{Decision, Effect, Event, REST};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::offer::Said;
use crate::session::Ending;
use crate::turn::Input;
use std::time::Duration;

/// How long a receipt is tried again that could not be recorded.
const INSIST: Duration = Duration::from_secs(180);

impl Session {
    /// One of the things under way comes a step further.
    pub(super) fn step(&mut self, going: Going, world: &mut World<'_>) -> Checked {
        let now = world.now.mono;
        world.trace.note(|| format!("  {} {going:?}", clock(now)));
        match going {
            // Who judges is not woken for each key.
            Going::Keyboard => return self.type_next(world),
            Going::Offer => self.go_on_offering(world)?,
            Going::Stroke => self.go_on_typing(world)?,
            Going::Receipt(n) => self.record(n, world),
            Going::Hook(n) => self.go_on_with_hook(n, world)?,
            Going::Look => self.go_on_looking(world),
            Going::Draft => self.catch_up(world)?,
            Going::Pulse => {
                self.agent.has_written = false;
                self.tell(Event::Output, world)?;
            }
            Going::Question => {
                self.told_question.clone_from(&self.agent.question);
                let (words, asks) = (self.told_question.as_deref(), self.asks());
                world.oracle.aims.shows(words, asks);
                self.tell(Event::Dialog(self.told_question.clone()), world)?;
            }
            Going::Screen => self.glance(world),
            Going::Seen => {
                self.is_news = false;
                let glance = self.sighted.clone();
                self.tell_seen(glance, Event::Seen, world)?;
            }
            Going::Peek => self.go_on_peeking(world)?,
            Going::Forget => {
                let forget = Waiting::Forget(self.terminal.keys);
                self.terminal.queue.push_back(forget);
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
        self.catch_up(world)?;
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
        let has_more = self.has_more_to_type() && !self.desk.is_writing();
        if (has_more || self.desk.awaits_reading()) && is_unread != is_told {
            self.tell(Event::Unread(is_unread), world)?;
        }
        self.act(world)?;
        reasons::wakeups(now, &self.desk, &self.view)
    }

    /// Begins with what is due.
    fn act(&mut self, world: &mut World<'_>) -> Checked {
        if self.is_fresh {
            let lapsed = self.desk.lapsed(world.now, &self.view);
            self.perform(lapsed, world)?;
        }
        if self.is_about_to_look() {
            return Ok(());
        }
        let chosen = self.desk.next(world.now, &self.view);
        let (desk, view) = (&self.desk, self.unhooked());
        world.oracle.begins(world.now, desk, &view, &chosen)?;
        let effects = match chosen {
            Decision::Offer { .. } => self.desk.act(world.now, &self.view),
            Decision::Wait { .. } => self.desk.remind(world.now, &self.owed),
        };
        self.perform(effects, world)
    }

    /// What was typed is told before anything else. What was written may not have been read yet.
    fn catch_up(&mut self, world: &mut World<'_>) -> Checked {
        if !std::mem::take(&mut self.terminal.is_draft_news) {
            return Ok(());
        }
        let event = if self.terminal.has_draft {
            Event::Draft
        } else {
            Event::DraftGone
        };
        self.tell_next(event, world)
    }

    pub(super) fn tell(&mut self, event: Event, world: &mut World<'_>) -> Checked {
        self.catch_up(world)?;
        self.tell_next(event, world)
    }

    fn tell_next(&mut self, event: Event, world: &mut World<'_>) -> Checked {
        world
            .trace
            .note(|| format!("  {} the desk hears {event:?}", clock(world.now.mono)));
        world.oracle.told.tell(world.now, &event);
        let effects = self.desk.on(world.now, event);
        self.perform(effects, world)?;
        world.oracle.told.looked = None;
        // Also where a turn has to wait: whoever is to answer a question needs the keyboard.
        let is_held = self.offering.is_some() || self.stroke.is_some();
        if !self.desk.is_writing() && !is_held {
            self.terminal.is_leased = false;
            return world.oracle.gives_back(&self.turn);
        }
        Ok(())
    }

    fn perform(&mut self, effects: Vec<Effect>, world: &mut World<'_>) -> Checked {
        for effect in effects {
            world
                .trace
                .note(|| format!("  {} the desk wants {effect:?}", clock(world.now.mono)));
            world.oracle.does(&self.desk, &effect, &self.turn)?;
            self.carry_out(effect, world)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect, world: &mut World<'_>) -> Checked {
        match effect {
            Effect::Key(keys) => {
                let is_erase = keys == harness::clear_keys().bytes();
                let piece = if is_erase { Piece::Erase } else { Piece::Break };
                self.terminal.queue.push_back(Waiting::Piece(piece));
            }
            Effect::Offer { ids } => {
                let letters = letters(&self.view, &ids);
                self.begin(Begin::Offer, ids, letters, world);
            }
            Effect::Remind { ids } => {
                let letters = letters(&self.owed, &ids);
                self.begin(Begin::Reminder, ids, letters, world);
            }
            Effect::Resume => {
                if let Some(parked) = self.parked.take() {
                    self.turn = parked;
                }
                // Whoever had it until now has given it back.
                self.terminal.is_leased = false;
                self.take_keyboard(Begin::Resume);
            }
            Effect::Write { ids } | Effect::WriteReminder { ids } => self.write(ids, world),
            Effect::Enter => {
                self.aim(Part::Enter, world);
                self.stroke = Some(Stroke::Enter);
            }
            Effect::Look => self.peek = Some(Peek::Asked),
            Effect::Give { number, .. } => self.give(number, world)?,
            // Nobody here has a door; the oracle has said so.
            Effect::Abort | Effect::GoOn | Effect::Call { .. } => {}
            Effect::Offered {
                ids,
                evidence,
                route,
                proof_awaited,
            } => {
                let said = Said::Offered {
                    route: route.as_str().to_owned(),
                    evidence,
                    proof_awaited,
                };
                self.owe(ids, said, world);
            }
            Effect::Accepted {
                ids,
                evidence,
                route,
            } => {
                let route = route.as_str().to_owned();
                self.owe(ids, Said::Accepted { route, evidence }, world);
            }
            Effect::Withdraw { ids, reason } => {
                self.owe(ids, Said::Withdrawn { reason }, world);
            }
            Effect::Uncertain { ids, reason } => {
                self.give_up_hooks(&ids);
                self.owe(ids, Said::Uncertain { reason }, world);
            }
            Effect::Fail { ids, reason } => {
                self.outdate();
                self.owe(ids, Said::Failed { reason }, world);
            }
        }
        Ok(())
    }

    fn begin(&mut self, what: Begin, ids: Vec<MessageId>, letters: Vec<Letter>, world: &World<'_>) {
        // What is known of the mail is old as soon as this is recorded.
        self.is_fresh = false;
        if let Some(look) = &mut self.look {
            look.is_fresh = false;
        }
        let turn = Turn {
            cargo: match what {
                Begin::Offer | Begin::Resume => Cargo::Messages,
                Begin::Reminder => Cargo::Reminder,
            },
            no: 0,
            ids,
            letters,
            input: None,
            is_open: false,
            is_whole: false,
            enters: 0,
            attempts: 0,
        };
        let last = std::mem::replace(&mut self.turn, turn);
        // Of a reminder that broke off, nobody says so.
        let is_told = last.cargo == Cargo::Messages || world.oracle.told.is_parked;
        if last.is_open && is_told {
            self.parked = Some(last);
        }
        self.take_keyboard(what);
    }

    fn take_keyboard(&mut self, what: Begin) {
        self.offering = Some(Offering::Asked(what));
        self.terminal.queue.push_back(Waiting::Turn);
    }

    fn write(&mut self, ids: Vec<MessageId>, world: &mut World<'_>) {
        if planted::is(Bug::TurnLookedUpLate) {
            self.turn.letters = letters(&self.view, &ids);
        }
        let is_in = |id: &MessageId| ids.contains(id);
        self.turn.letters.retain(|l| is_in(&l.message.id));
        self.turn.is_open = true;
        self.turn.attempts += 1;
        self.turn.no = world.turns.len();
        self.turn.input = Some(self.desk.input());
        self.turn.ids.clone_from(&ids);
        world.turns.push(Typed {
            text: self.turn.text(),
            ids,
            is_written: false,
        });
        self.aim(Part::Text, world);
        self.stroke = Some(Stroke::First);
    }

    /// The keys of an answer are decided upon.
    fn aim(&self, part: Part, world: &mut World<'_>) {
        if let (Cargo::Messages, [only]) = (self.turn.cargo, &self.turn.letters[..])
            && only.message.envelope.raw
        {
            let id = only.message.id;
            let has_come = only.message.created_at <= world.now.wall;
            world.oracle.aims.wants(id, has_come, self.turn.no, part);
        }
    }

    fn owe(&mut self, ids: Vec<MessageId>, said: Said, world: &World<'_>) {
        if ids.iter().any(|id| self.turn.ids.contains(id)) {
            self.turn.is_open = false;
        }
        let is_in = |parked: &mut Turn| ids.iter().any(|id| parked.ids.contains(id));
        self.parked.take_if(is_in);
        self.receipts.push(Receipt {
            ids,
            said,
            give_up: world.now.mono + INSIST,
            again: world.now.mono,
        });
    }

    /// An errand reports. That the program has ended is always heard first.
    pub(super) fn hear(&mut self, event: Event, world: &mut World<'_>) -> Checked {
        self.notice_exit_first(world)?;
        self.tell(event, world)?;
        self.outdate();
        Ok(())
    }

    pub(super) fn notice_exit_first(&mut self, world: &mut World<'_>) -> Checked {
        if !self.agent.is_alive && self.ended.is_none() {
            return self.notice_exit(world);
        }
        Ok(())
    }

    pub(super) fn outdate(&mut self) {
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
                let found = Some(world.journal.look(world.now.wall));
                self.look = Some(Look { is_fresh, found });
            }
            Some(Look {
                is_fresh,
                found: Some(found),
            }) => {
                (self.view, self.owed) = (found.pending, found.owed);
                self.next = found.next;
                self.is_fresh = is_fresh;
            }
            None => {}
        }
    }

    fn notice_exit(&mut self, world: &mut World<'_>) -> Checked {
        self.ended = Some(world.now.mono);
        (self.stroke, self.peek) = (None, None);
        world.oracle.is_cut_off();
        self.tell(Event::Exited(Ending::Exit(0)), world)
    }
}

/// The letters of a turn, in its order.
pub(super) fn letters(view: &[Letter], ids: &[MessageId]) -> Vec<Letter> {
    ids.iter()
        .filter_map(|id| view.iter().find(|letter| letter.message.id == *id))
        .cloned()
        .collect()
}

/// A time of the run, in seconds.
pub(super) fn clock(mono: Duration) -> String {
    format!("{:8.3}", mono.as_secs_f64())
}
