//! What the desk decides, sent on its way, and what is reported back. Nothing is decided here.

use super::Clerk;
use crate::session::door;
use crate::session::errands::{self, Report};
use crate::session::keyboard::{Lease, Typed};
use posthaste_core::delivery::{Effect, Event};
use posthaste_core::{Letter, MessageId};

impl Clerk {
    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.log_effect(&effect);
            let shared = self.shared.clone();
            match effect {
                Effect::Key(key) => {
                    if !self.shared.keyboard.try_type_in(Typed::Bytes(key)) {
                        self.tell(Event::Unpressed);
                    }
                }
                Effect::Offer { ids } => {
                    // What is known of the mail is old as soon as this is recorded.
                    self.outdate();
                    self.skip_transcripts();
                    self.in_hand = pick(&self.view.pending.due, &ids);
                    let repeats = Letter::repeats(&self.in_hand);
                    self.send(errands::offer(shared, ids, repeats));
                }
                Effect::Remind { ids } => {
                    self.outdate();
                    self.in_hand = pick(&self.view.owed, &ids);
                    self.send(errands::remind(shared, ids));
                }
                Effect::Write { ids } => self.write_messages(&ids),
                Effect::WriteReminder { ids } => {
                    let input = self.desk.input();
                    self.write(&ids, |letters, lease| {
                        errands::write_reminder(lease, letters, input)
                    });
                }
                Effect::Enter => {
                    let enter = self.desk.enter_key().to_vec();
                    self.stroke(enter, Event::Entered);
                }
                Effect::Give { number, .. } => self.give(number),
                Effect::Call { number, ids } => self.call(number, &ids),
                Effect::Abort => self.send(door::abort(shared, self.conversation())),
                Effect::GoOn => self.send(door::go_on(shared, self.conversation())),
                Effect::Look => self.send(errands::look(shared)),
                Effect::Resume => self.send(errands::resume(shared)),
                effect @ Effect::Fail { .. } => {
                    self.outdate();
                    self.send(errands::record(shared, effect));
                }
                effect @ Effect::Offered { .. } => {
                    self.transcripts.read_soon();
                    self.send(errands::record(shared, effect));
                }
                effect @ (Effect::Accepted { .. }
                | Effect::Withdraw { .. }
                | Effect::Uncertain { .. }) => {
                    self.send(errands::record(shared, effect));
                }
            }
        }
    }

    fn write_messages(&mut self, ids: &[MessageId]) {
        let (shared, input) = (self.shared.clone(), self.desk.input());
        let letters = pick(&self.in_hand, ids);
        let tellings: Vec<_> = letters.iter().map(|l| self.desk.telling(l)).collect();
        self.write(ids, |letters, lease| {
            let told = letters.into_iter().zip(tellings).collect();
            errands::write(shared, lease, told, input)
        });
    }

    /// Has what is in hand typed.
    fn write<F>(&mut self, ids: &[MessageId], errand: impl FnOnce(Vec<Letter>, Lease) -> F)
    where
        F: Future<Output = Report> + 'static,
    {
        let letters = pick(&self.in_hand, ids);
        self.in_hand.clear();
        if letters.len() != ids.len() {
            // Never less than what is claimed.
            let why = "its text is not at hand".to_owned();
            self.send(std::future::ready(Report::Event(Event::WriteFailed(why))));
        } else if let Some(lease) = self.lease.clone() {
            self.send(errand(letters, lease));
        }
    }

    fn stroke(&mut self, keys: Vec<u8>, typed: Event) {
        if let Some(lease) = self.lease.clone() {
            self.send(errands::strokes(lease, keys, typed));
        }
    }

    /// Sends somebody on an errand, who reports back.
    pub(super) fn send(&mut self, errand: impl Future<Output = Report> + 'static) {
        self.errands += 1;
        let reports = self.reports.clone();
        tokio::task::spawn_local(async move {
            // Nobody hears it where the session has ended.
            let _ = reports.send(errand.await).await;
        });
    }

    pub(super) fn hear(&mut self, report: Report) {
        self.errands -= 1;
        self.catch_up();
        self.log_report(&report);
        match report {
            Report::Event(event) => self.tell(event),
            Report::Offering { lease, ids } => {
                self.lease = Some(lease);
                self.tell(Event::Recorded(ids));
            }
            Report::Resumed(lease) => {
                self.lease = Some(lease);
                self.tell(Event::Resumed);
            }
            Report::Recorded => {}
            Report::Handing(giving) => self.offer_to_hook(giving),
            Report::Calling(calling) => self.offer_by_door(calling),
            Report::Transcript(read) => self.transcribe(read),
        }
        self.outdate();
        self.is_stale = true;
    }
}

/// The letters of a turn, in its order.
pub(super) fn pick(letters: &[Letter], ids: &[MessageId]) -> Vec<Letter> {
    ids.iter()
        .filter_map(|id| letters.iter().find(|letter| letter.message.id == *id))
        .cloned()
        .collect()
}
