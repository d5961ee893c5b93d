//! The end of every run: nothing fails any more, and every message must arrive or end.

use crate::driver::Input;
use crate::id::MessageId;
use crate::mail::tests::name;
use crate::receipt::Order;
use crate::sim::oracle::delivery_record;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::known_message::KnownMessage;
use crate::sim::run::{Simulation, nth};
use crate::sim::script::scene::{denial, withdrawal};
use crate::sim::script::{ApiBehaviour, Disk, Line, PersonAction, releases};
use crate::sim::session::Session;
use crate::sim::world::terminal::{KeyboardRequest, Piece};
use std::time::Duration;

/// Maximum number of steps of an ending. Only an endless loop takes more.
const ENOUGH: u32 = 5_000;
/// Maximum duration of an ending. Everything that a script delays is due within it.
const LONGEST: Duration = Duration::from_secs(1_800);

struct Limits {
    time: Duration,
    steps: u32,
}

impl Simulation {
    /// End the run without failures: the disk works, the program reads its input and asks nothing,
    /// and the person submits the draft and releases the keyboard. Every message must arrive or
    /// end.
    pub(crate) fn end_without_faults(&mut self) -> Checked {
        self.trace.note(|| "from here on nothing fails".to_owned());
        self.come_to_rest()?;
        // No later mail has the agent continue, and no end of the program has the message come again.
        if self.profile.has_api {
            self.continue_with(denial(2_000, 48))?;
        }
        if self.profile.transcript_proves && self.profile.queues_prompts {
            let clear = [Line::Person(PersonAction::Clear)];
            self.continue_with(withdrawal(48, 24).into_iter().chain(clear))?;
        }
        self.oracle.ledger.check_requeued()?;
        self.oracle.ledger.check_withdrawn()?;
        self.oracle.ledger.check_asks_closed()?;
        self.check_queue()?;
        let is_ours = |(_, known): &(_, &KnownMessage)| known.to == self.agent;
        for (id, known) in self.oracle.ledger.all().filter(is_ours) {
            Law::NothingStarved.holds(known.is_settled(self.now.wall), || {
                format!("{} never reaches its agent: {known:?}", id.id8())
            })?;
        }
        Ok(())
    }

    /// Play more lines, and come to rest again.
    fn continue_with(&mut self, lines: impl IntoIterator<Item = Line>) -> Checked {
        lines.into_iter().try_for_each(|line| self.line(line))?;
        self.come_to_rest()
    }

    /// Continue without failures until nothing is left to do.
    fn come_to_rest(&mut self) -> Checked {
        self.journal.disk = Disk::Works;
        let steps = self.steps + ENOUGH;
        loop {
            self.start()?;
            // A running session keeps waiting for a transcript that never appears, so limit the
            // time.
            let time = self.now.mono + LONGEST;
            let limits = Limits { time, steps };
            self.run_until_idle(&limits)?;
            // The periodic check is only a substitute for missed notifications. Receipts that this
            // session could not record are left to the next session.
            if self.session.as_ref().is_some_and(Session::has_given_up) {
                self.kill();
            } else if std::mem::take(&mut self.has_missed_bell) | self.take_unreadable_mail() {
                self.notify_journal_change()?;
            } else {
                return Ok(());
            }
        }
    }

    /// Check that no mail from the API stays in the program's queue: the agent is told to continue.
    fn check_queue(&self) -> Checked {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let ids: Vec<_> = session
            .program
            .stranded()
            .flat_map(|turns| Session::received(turns, &self.turns))
            .collect();
        let is_left = |id: &&MessageId| {
            let was_in_turn = self.oracle.record.api.was_taken_in_turn(**id);
            was_in_turn && self.oracle.ledger.is_waiting_for_model(**id)
        };
        let left = ids.iter().find(is_left);
        Law::NothingStarved.holds(left.is_none(), || {
            let id = left.copied().map(MessageId::id8).unwrap_or_default();
            format!("{id} stays in the program's queue, and its model is never given it")
        })
    }

    /// Return whether the session could not read its mail, and clear that flag. The session reads
    /// again after a periodic check.
    fn take_unreadable_mail(&mut self) -> bool {
        let session = self.session.as_mut();
        session.is_some_and(|session| std::mem::take(&mut session.mail_is_unreadable))
    }

    /// Continue until no step is possible and no timer is set.
    fn run_until_idle(&mut self, limits: &Limits) -> Checked {
        loop {
            self.remove_obstacles()?;
            // Take the possible steps in turn, so that none of them waits forever.
            while let Some(next) = nth(&self.possible_steps(), self.steps as u8).copied() {
                Law::NothingStarved.holds(
                    self.steps < limits.steps,
                    || "the run does not come to rest",
                )?;
                self.step(next)?;
                self.start()?;
            }
            match self.wakeup().filter(|at| *at < limits.time) {
                Some(at) => self.advance(at.saturating_sub(self.now.mono)),
                None => {
                    self.remove_obstacles()?;
                    if self.possible_steps().is_empty() {
                        return Ok(());
                    }
                }
            }
            self.wake()?;
        }
    }

    /// Archive the messages whose replies are owed. The agent would otherwise be reminded ten times
    /// of each.
    fn archive_owed(&mut self) {
        let owed = self.journal.read_mail(self.now.wall).pending_replies;
        for state in owed.iter().filter(|_| !self.profile.never_replies) {
            let (human, id) = (name("human"), state.message.id);
            let _ = self.journal.order(self.now, &human, Order::Archive, id);
        }
    }

    fn remove_obstacles(&mut self) -> Checked {
        self.archive_owed();
        self.api = ApiBehaviour::Answers;
        // A session checks periodically for offers that killed hooks left open.
        if self.session.is_some() && self.journal.cut_off_injected(self.now).unwrap_or_default() {
            self.notify_journal_change()?;
        }
        let Some((session, mut world)) = self.session() else {
            return Ok(());
        };
        session.program.stop_misbehaving();
        session.terminal.next_write_fails = false;
        let is_asked = session.program.question.is_some();
        let has_typed = !session.terminal.queue.is_empty();
        // Only the person can submit a draft, or a text that stayed in the box after Enter.
        let record = &world.oracle.record;
        // Nor does the session submit its own text if the box holds only a part of it, or more.
        let waiting = session.waiting.as_ref().unwrap_or(&session.turn);
        let is_stuck = !record.is_waiting_for_enter
            || !delivery_record::holds(&record.input_box, &waiting.text());
        // An interrupt that is under way may still empty the box itself.
        let is_turn = session.delivery().turn_in_flight().is_some();
        let is_held = !session.delivery().is_at_rest();
        let is_ours = match delivery_record::holds(&record.input_box, &waiting.text()) {
            true => is_held && !record.is_waiting_for_enter,
            false => is_turn && !record.is_waiting_for_enter,
        };
        let is_left = record.box_holds_text() && is_stuck && !is_ours;
        if (session.terminal.has_draft || is_asked || is_left) && !has_typed {
            let answer = KeyboardRequest::Piece(Piece::Submit);
            session.terminal.queue.push_back(answer);
        }
        for release in releases() {
            if let PersonAction::Release(by) = release
                && !session.is_ending()
                && world.oracle.record.pauses.iter().any(|(p, _)| *p == by)
            {
                session.tell(Input::Unpaused(by), &mut world)?;
            }
        }
        session.perform_actions(&mut world)
    }
}
