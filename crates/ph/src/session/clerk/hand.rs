//! What hooks of the agent's say, and what is handed to them, or goes by its own door.

use super::{Clerk, Tell, log};
use crate::session::door::{self, Call, Calling};
use crate::session::errands;
use crate::session::handing::{self, Giving, Hand};
use crate::session::transcript::{self, Found};
use posthaste_core::delivery::Event;
use posthaste_core::harness;
use posthaste_core::turn::Telling;
use posthaste_core::{Conversation, Letter, MessageId};
use posthaste_wire::method::{HookEvent, Hooked};
use std::time::Instant;
use tracing::debug;

impl Clerk {
    /// What a hook says is for the harness to understand; one for another kind of agent is that
    /// of a program which this one has started, and one of another run has outlived its program.
    pub(super) fn hook(&mut self, hook: HookEvent, tell: Tell<Hooked>) {
        let harness = self.outset.harness.clone();
        let is_ours = |named: &String| *named == harness.name;
        let run = self.shared.run.to_string();
        let is_now = |named: &String| *named == run;
        if !hook.harness.as_ref().is_none_or(is_ours) || !hook.run.as_ref().is_none_or(is_now) {
            let event = &hook.event_name;
            debug!(target: log::HOOKS, event, "ignored: of another program or run");
            return tell(Hooked::noted());
        }
        let event = &hook.event_name;
        debug!(target: log::HOOKS, event, takes_context = hook.takes_context, "called");
        let report = harness.hook.read(&hook.event_name, hook.payload.get());
        let event = Event::Hook(Box::new(report.clone()));
        if hook.takes_context {
            self.tell(event);
            self.hand(&report, hook.event_name, tell);
        } else {
            tell(Hooked::noted());
            self.tell(event);
        }
        self.follow(&report);
    }

    /// Hands over what is due, if anything is. Only what was looked up since the last offer: else
    /// it would not be known what is a repeat.
    fn hand(&mut self, report: &harness::Report, event: String, tell: Tell<Hooked>) {
        self.skip_transcripts();
        let (now, pending) = (self.now(), &self.view.pending.due);
        let handing = self.is_fresh.then(|| self.desk.hand(now, report, pending));
        let Some(handing) = handing.flatten() else {
            return tell(Hooked::noted());
        };
        let hand = Hand {
            number: handing.number,
            letters: self.told_of(&handing.ids),
            event,
            format: self.outset.harness.hook.format,
            tell,
        };
        self.outdate();
        self.send(handing::hand(self.shared.clone(), hand));
    }

    /// The letters of an offer that goes past the terminal, and how each is told.
    fn told_of(&self, ids: &[MessageId]) -> Vec<(Letter, Telling)> {
        let letters = super::act::pick(&self.view.pending.due, ids).into_iter();
        let told = letters.map(|letter| {
            let telling = self.desk.telling(&letter);
            (letter, telling)
        });
        told.collect()
    }

    /// Has an offer made by the agent's own door.
    pub(super) fn call(&mut self, number: u64, ids: &[MessageId]) {
        let call = Call {
            number,
            letters: self.told_of(ids),
            conversation: self.conversation(),
        };
        // What is known of the mail is old as soon as this is recorded.
        self.outdate();
        self.send(door::call(self.shared.clone(), call));
    }

    /// The conversation that the door leads to; without one, its errands find none.
    pub(super) fn conversation(&self) -> String {
        self.desk.conversation().unwrap_or_default().to_owned()
    }

    /// It stands in the journal: the desk is asked once more.
    pub(super) fn offer_by_door(&mut self, calling: Calling) {
        let (number, ids) = (calling.number, calling.ids.clone());
        self.calling = Some(calling);
        self.tell(Event::Handed { number, ids });
        self.calling = None;
    }

    /// It stands in the journal: the desk is asked once more, and the hook told either way.
    pub(super) fn offer_to_hook(&mut self, giving: Giving) {
        let (number, ids) = (giving.number, giving.ids.clone());
        self.giving = Some(giving);
        self.tell(Event::Handed { number, ids });
        if let Some(giving) = self.giving.take() {
            (giving.tell)(Hooked::noted());
        }
    }

    pub(super) fn give(&mut self, number: u64) {
        if let Some(giving) = self.giving.take_if(|giving| giving.number == number) {
            (giving.tell)(Hooked {
                output: Some(giving.output),
                offer: Some(number),
                ..Hooked::noted()
            });
        }
        if let Some(calling) = self.calling.take_if(|calling| calling.number == number) {
            self.send(door::put(self.shared.clone(), calling));
        }
    }

    /// Follow the transcript and the conversation that a hook of the agent's own names.
    fn follow(&mut self, report: &harness::Report) {
        if !self.desk.is_own(report) {
            return;
        }
        if let Some(path) = report.transcript() {
            let is_awaited = self.desk.asks_transcript();
            self.transcripts.follow(path, is_awaited);
        }
        self.transcripts.read_soon();
        let Some(id) = report.session().filter(|_| report.is_of_a_turn()) else {
            return;
        };
        let record = &self.outset.record;
        let before = self.conversation.as_ref().filter(|known| known.id == id);
        let path = report.transcript().map(str::to_owned);
        let conversation = Conversation {
            run: record.run,
            id: id.to_owned(),
            harness: record.launch.harness.clone(),
            cwd: record.launch.cwd.to_string_lossy().into_owned(),
            transcript: path.or_else(|| before?.transcript.clone()),
        };
        if self.conversation.as_ref() != Some(&conversation) {
            self.conversation = Some(conversation.clone());
            self.send(errands::converse(self.shared.clone(), conversation));
        }
    }

    /// Settle the offers of earlier sessions once the program has resumed its conversation. If the
    /// program ends before that, the end of the run makes them uncertain.
    pub(super) fn settle_resumed(&mut self) {
        if self.desk.is_starting() {
            return;
        }
        if let Some(resumed) = self.outset.resumed.take() {
            self.send(errands::settle(self.shared.clone(), resumed));
        }
    }

    /// A hook has passed it on; it may be the last that comes.
    pub(super) fn taken(&mut self, number: u64) {
        self.tell(Event::Taken(number));
        self.transcripts.read_soon();
    }

    /// Move the read offsets to the ends of the transcripts before an offer: earlier rows cannot prove
    /// the offer. Keep the offsets while an earlier offer still awaits its proof.
    pub(super) fn skip_transcripts(&mut self) {
        if !self.desk.asks_transcript() {
            self.transcripts.skip_to_end();
        }
    }

    /// Read the transcripts if a read is due. An agent may write a row only after the hook that
    /// reports the same event, and no later hook may follow, so reads repeat on a timer.
    pub(super) fn read_transcripts(&mut self, now: Instant) {
        let is_awaited = self.desk.asks_transcript();
        if let Some(files) = self.transcripts.begin(now, is_awaited) {
            self.send(transcript::read(files));
        }
    }

    pub(super) fn transcribe(&mut self, found: Found) {
        self.tell(Event::Transcribed(found.text.clone()));
        let is_awaited = self.desk.asks_transcript();
        self.transcripts.finish(found, is_awaited);
    }

    /// Read the transcripts to their end, after the program has ended.
    pub(super) async fn read_last(&mut self) {
        if self.desk.asks_transcript() {
            let found = transcript::read_now(self.transcripts.rest()).await;
            self.transcribe(found);
        }
    }
}
