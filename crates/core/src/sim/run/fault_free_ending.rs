//! The end of every run: from some point on nothing fails, and every message must arrive or end.

use crate::driver::Input;
use crate::mail::tests::name;
use crate::receipt::Order;
use crate::sim::oracle::delivery_record;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::Known;
use crate::sim::run::{Play, nth};
use crate::sim::script::{Deed, Disk, releases};
use crate::sim::session::Session;
use crate::sim::world::terminal::{Piece, Waiting};
use std::time::Duration;

/// More steps than any run needs: a run that takes more goes in circles.
const ENOUGH: u32 = 5_000;
/// Everything that a script delays is due within this time.
const LONGEST: Duration = Duration::from_secs(1_800);

struct Limits {
    time: Duration,
    steps: u32,
}

impl Play {
    /// End the run without failures: the disk works, the agent reads and asks nothing, and the person
    /// submits the draft and releases the keyboard. Every message must arrive or end.
    pub(crate) fn end_well(&mut self) -> Checked {
        self.trace.note(|| "from here on all goes well".to_owned());
        self.journal.disk = Disk::Works;
        let steps = self.steps + ENOUGH;
        loop {
            self.start()?;
            // A session reads a transcript that never comes for as long as it runs.
            let time = self.now.mono + LONGEST;
            let limits = Limits { time, steps };
            self.run_down(&limits)?;
            // The slow tick is there for bells that never rang, and for nothing else; the next
            // session for receipts that this one could not record.
            if self.session.as_ref().is_some_and(Session::has_given_up) {
                self.kill();
            } else if std::mem::take(&mut self.has_missed_bell) | self.take_blindness() {
                self.ring()?;
            } else {
                break;
            }
        }
        self.oracle.ledger.check_requeued()?;
        let is_ours = |(_, known): &(_, &Known)| known.to == self.agent;
        for (id, known) in self.oracle.ledger.all().filter(is_ours) {
            Law::NothingStarved.holds(known.is_settled(self.now.wall), || {
                format!("{} never reaches its agent: {known:?}", id.id8())
            })?;
        }
        Ok(())
    }

    /// Whether the session could not read its mail; it reads again after a periodic check.
    fn take_blindness(&mut self) -> bool {
        let session = self.session.as_mut();
        session.is_some_and(|session| std::mem::take(&mut session.is_blind))
    }

    /// Continue until nothing is left to do, and nothing wants to be woken.
    fn run_down(&mut self, limits: &Limits) -> Checked {
        loop {
            self.be_kind()?;
            // In turn, so that nobody waits for good.
            while let Some(next) = nth(&self.next(), self.steps as u8).copied() {
                Law::NothingStarved.holds(
                    self.steps < limits.steps,
                    || "it goes on and on, in circles",
                )?;
                self.step(next)?;
                self.start()?;
            }
            match self.wakeup().filter(|at| *at < limits.time) {
                Some(at) => self.pass(at.saturating_sub(self.now.mono)),
                None => {
                    self.be_kind()?;
                    if self.next().is_empty() {
                        return Ok(());
                    }
                }
            }
            self.wake()?;
        }
    }

    /// Archive what is owed; otherwise the agent would be reminded ten times of each message.
    fn forgive(&mut self) {
        let owed = self.journal.look(self.now.wall).pending_replies;
        for state in owed.iter().filter(|_| !self.nature.never_answers) {
            let (human, id) = (name("human"), state.message.id);
            let _ = self.journal.order(self.now, &human, Order::Archive, id);
        }
    }

    fn be_kind(&mut self) -> Checked {
        self.forgive();
        // A session checks periodically for offers that a killed hook left open.
        if self.session.is_some() && self.journal.cut_off_injected(self.now).unwrap_or_default() {
            self.ring()?;
        }
        let Some((session, mut world)) = self.session() else {
            return Ok(());
        };
        session.agent.behave();
        session.terminal.is_breaking = false;
        let is_asked = session.agent.question.is_some();
        let has_typed = !session.terminal.queue.is_empty();
        // What nobody else will submit: a draft, or a text that Enter did not.
        let told = &world.oracle.told;
        // Nor one of ours that is not there alone, or not whole.
        let waiting = session.waiting.as_ref().unwrap_or(&session.turn);
        let is_stuck =
            !told.is_waiting_for_enter || !delivery_record::holds(&told.input_box, &waiting.text());
        // An interrupt that is under way may still empty the box itself.
        let is_turn = !session.delivery().turn().0.is_empty();
        let is_held = !session.delivery().is_at_rest();
        let is_ours = match delivery_record::holds(&told.input_box, &waiting.text()) {
            true => is_held && !told.is_waiting_for_enter,
            false => is_turn && !told.is_waiting_for_enter,
        };
        let is_left = told.is_shown() && is_stuck && !is_ours;
        if (session.terminal.has_draft || is_asked || is_left) && !has_typed {
            let answer = Waiting::Piece(Piece::Submit);
            session.terminal.queue.push_back(answer);
        }
        for release in releases() {
            if let Deed::Release(by) = release
                && !session.is_ending()
                && world.oracle.told.pauses.iter().any(|(p, _)| *p == by)
            {
                session.tell(Input::Unpaused(by), &mut world)?;
            }
        }
        session.proceed(&mut world)
    }
}
