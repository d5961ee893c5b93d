//! Reads of the journal: the mail that waits for the agent, and the steps of its messages since the
//! last read.

use super::looped::LoopView;
use super::{Clerk, log};
use posthaste_core::driver::{Input, MailView};
use posthaste_core::fact::Event as Fact;
use posthaste_core::why::{self, Why};
use posthaste_core::{AgentName, Body, Letter, MessageId, ReceiptState};
use posthaste_store::{Error, Journal};
use posthaste_wire::event::{self, MessageEvent, StateChange};
use posthaste_wire::topic::Topic;
use std::time::Instant;
use tracing::{debug, warn};

/// The agent's part of the journal, as of the last read.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The agent's mail, which is moved to the driver after each read.
    mail: MailView,
    /// Number of messages that wait for delivery, whether they are due or not.
    pub(super) queued: u64,
    pub(super) unread: u64,
    /// The loop and its tasks, if this session runs a loop.
    pub(super) looped: Option<LoopView>,
    /// Number of the last fact that listeners were told of; `None` before the first read.
    pub(super) seq: Option<u64>,
    happened: Vec<Happened>,
}

/// A step of a message, and the message's letter as of this read, without its body.
#[derive(Debug)]
struct Happened {
    receipt: &'static str,
    letter: Letter,
}

impl Clerk {
    /// Read the journal for the first time, before any request is answered.
    pub(super) async fn first_read(&mut self) {
        self.drive();
        if let Some(view) = self.viewed.recv().await {
            self.see(view);
        }
    }

    /// Begin to read the journal. [`Self::see`] takes the result.
    pub(super) fn read_mail(&mut self) {
        self.is_reading = true;
        let (shared, views) = (self.shared.clone(), self.views.clone());
        let seq = self.view.seq;
        let is_listened = self.shared.hub.wants(Topic::Message);
        tokio::task::spawn_local(async move {
            let agent = shared.agent.clone();
            let is_loop = shared.is_loop;
            let run = shared.run;
            let look = move |journal: &mut Journal| {
                let mut view = View::of(journal, &agent, seq, is_listened)?;
                if is_loop {
                    view.looped = LoopView::of(journal, &agent, run)?;
                }
                Ok(view)
            };
            let _ = views.send(shared.books.ask(look).await).await;
        });
    }

    /// Take the result of a read.
    pub(super) fn see(&mut self, view: Result<View, Error>) {
        self.is_reading = false;
        match view {
            Ok(mut view) => {
                let mail = std::mem::take(&mut view.mail);
                self.tell(Input::MailRead(mail));
                self.view = view;
                self.holds.is_stale = true;
                for happened in std::mem::take(&mut self.view.happened) {
                    let event = event::Event::Message(self.message_event(happened));
                    self.shared.hub.tell(Topic::Message, &event);
                }
                self.trouble = None;
                self.see_home(true);
                if let Some(looped) = self.view.looped.take() {
                    self.see_loop(looped);
                }
            }
            // The next periodic check brings another read.
            Err(error) => {
                self.tell(Input::MailUnreadable);
                if error.is_displaced() {
                    self.see_home(false);
                }
                let trouble = error.to_string();
                if self.trouble.as_ref() != Some(&trouble) {
                    warn!(target: log::DELIVERY, "the mail cannot be looked at: {trouble}");
                    self.trouble = Some(trouble);
                }
            }
        }
    }

    /// Return the event that tells listeners of a step of a message. The reason for which the message
    /// waits is known only to this session.
    fn message_event(&self, happened: Happened) -> MessageEvent {
        let Happened { receipt, letter } = happened;
        let now = self.now();
        let held = self
            .delivery()
            .hold(now, &letter, &self.driver.mail().pending);
        let reason = match why::why_live(&letter, now.wall, held) {
            Why::Held(hold) => Some(hold.reason),
            Why::Arrived { reason, .. } => reason,
        };
        MessageEvent {
            id: letter.message.id,
            receipt: receipt.to_owned(),
            reason,
            from: letter.message.envelope.from.to_string(),
            to: letter.message.to.to_string(),
        }
    }

    /// Read the journal a last time, so that listeners are told of the last steps of messages before
    /// they are told of the session's end.
    pub(super) async fn last_look(&mut self, deadline: Instant) {
        // Only the journal knows how a loop has ended, so a loop always reads it.
        if !self.shared.is_loop && !self.shared.hub.wants(Topic::Message) {
            return;
        }
        // A read that is under way may have begun too early, so another one follows it.
        let mut looks = if self.is_reading { 2 } else { 1 };
        while looks > 0 {
            if !self.is_reading {
                self.read_mail();
            }
            match tokio::time::timeout_at(deadline.into(), self.viewed.recv()).await {
                Ok(Some(view)) => self.see(view),
                Ok(None) | Err(_) => return,
            }
            looks -= 1;
        }
    }

    /// Tell listeners which parts of the session's state have changed since they were told last.
    pub(super) fn tell_changes(&mut self) {
        let (activity, _) = self.activity();
        let is_paused = self.is_paused();
        if (&activity, is_paused) == (&self.told.0, self.told.1) {
            return;
        }
        let was = super::grant::wire_activity(&self.told.0);
        let (is, on) = super::grant::wire_activity(&activity);
        let change = StateChange {
            activity: (was.0 != is).then_some(is),
            blocked_on: (was.1 != on).then_some(on),
            paused: (self.told.1 != is_paused).then_some(is_paused),
            ..StateChange::default()
        };
        debug!(
            target: log::SESSION,
            activity = is.as_str(),
            blocked_on = change.blocked_on.as_ref().and_then(Option::as_deref),
            paused = self.delivery().paused_because(),
            "state changed"
        );
        self.holds.is_stale = true;
        self.told = (activity, is_paused);
        self.changed(change);
    }

    /// Tell listeners of a change of the session's state.
    pub(super) fn changed(&mut self, change: StateChange) {
        self.updated_at = crate::times::now();
        if !change.is_empty() {
            let event = event::Event::StateChange(change);
            self.shared.hub.tell(Topic::StateChange, &event);
        }
    }
}

impl View {
    fn of(
        journal: &mut Journal,
        agent: &AgentName,
        seq: Option<u64>,
        is_listened: bool,
    ) -> Result<Self, Error> {
        journal.expect_in_place()?;
        // Before the rest: a fact that comes meanwhile may be seen, and is not claimed.
        let head = journal.head()?;
        let now = crate::times::now();
        let pending = journal.pending(agent, now)?;
        let mut owed = journal.owed(agent, now)?;
        // A reminder names these messages and does not repeat their bodies.
        for letter in &mut owed {
            letter.message.envelope.body = Body::Inline(String::new());
        }
        let unread = journal.count(agent, now)?.unread;
        let mut happened = Vec::new();
        if let (Some(seq), true) = (seq, is_listened) {
            happened = happened_since(journal, agent, seq, head)?;
        }
        let queued = pending.queued;
        let mail = MailView {
            head,
            pending: pending.due,
            owed,
            next_change: pending.next,
        };
        Ok(Self {
            mail,
            queued,
            unread,
            looped: None,
            seq: Some(head),
            happened,
        })
    }
}

/// Return the steps of this agent's messages after the fact `seq`, up to the fact `head`.
fn happened_since(
    journal: &mut Journal,
    agent: &AgentName,
    mut seq: u64,
    head: u64,
) -> Result<Vec<Happened>, Error> {
    let mut all = Vec::new();
    while seq < head {
        let mut page = journal.facts_after(seq)?;
        page.retain(|record| record.seq <= head);
        let Some(last) = page.last() else { break };
        seq = last.seq;
        for record in page.iter().filter(|record| record.agent == agent.as_str()) {
            let Ok(fact) = record.read() else { continue };
            let (id, receipt) = match &fact.event {
                Fact::Message(_) => (MessageId(fact.id), ReceiptState::Stored.as_str()),
                Fact::Progress(progress) => (progress.message, progress.step.as_str()),
                Fact::Started(_)
                | Fact::Ended(_)
                | Fact::Conversation(_)
                | Fact::Work(_)
                | Fact::Loop(_) => continue,
            };
            if let Some(mut letter) = journal.letter(id)? {
                letter.message.envelope.body = Body::Inline(String::new());
                all.push(Happened { receipt, letter });
            }
        }
    }
    Ok(all)
}
