//! Reads of the journal: the mail that waits for the agent, and the steps of its messages since the
//! last read.

use super::SessionState;
use super::loop_view::LoopView;
use crate::Shared;
use crate::host::log;
use posthaste_core::driver::{Input, MailView};
use posthaste_core::fact::Event as Fact;
use posthaste_core::why::{self, Why};
use posthaste_core::{AgentName, Body, MessageId, MessageState, ReceiptState};
use posthaste_store::{Error, Journal};
use posthaste_wire::event::{self, MessageEvent, StateChange};
use posthaste_wire::topic::Topic;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::mpsc;
use tracing::{debug, warn};

/// The agent's part of the journal, as of the last read.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The agent's mail, which is moved to the driver after each read.
    mail: MailView,
    /// Number of messages that wait for delivery, whether they are due or not.
    queued: u64,
    unread: u64,
    /// The loop and its tasks, if this session runs a loop.
    looped: Option<LoopView>,
    /// Number of the last fact that listeners were told of; `None` before the first read.
    seq: Option<u64>,
    happened: Vec<Happened>,
}

/// A step of a message, and the message's message_state as of this read, without its body.
#[derive(Debug)]
struct Happened {
    receipt: &'static str,
    state: MessageState,
}

/// Reads the journal, one read at a time.
pub(super) struct MailReader {
    /// The agent's part of the journal, as of the last read.
    view: View,
    is_reading: bool,
    /// Why the last read failed, which is logged once.
    trouble: Option<String>,
    views: mpsc::Sender<Result<View, Error>>,
    viewed: mpsc::Receiver<Result<View, Error>>,
}

impl MailReader {
    pub(super) fn new() -> Self {
        let (views, viewed) = mpsc::channel(1);
        Self {
            view: View::default(),
            is_reading: false,
            trouble: None,
            views,
            viewed,
        }
    }

    pub(super) fn unread(&self) -> u64 {
        self.view.unread
    }

    pub(super) fn queued(&self) -> u64 {
        self.view.queued
    }

    /// Begin to read. [`Self::next`] gives the result.
    pub(super) fn begin(&mut self, shared: Rc<Shared>) {
        self.is_reading = true;
        let (views, seq) = (self.views.clone(), self.view.seq);
        let is_listened = shared.hub.wants(Topic::Message);
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

    /// Wait for the result of the read.
    pub(super) async fn next(&mut self) -> Option<Result<View, Error>> {
        self.viewed.recv().await
    }

    /// Keep a view whose mail and steps were taken out.
    fn keep(&mut self, view: View) {
        self.is_reading = false;
        self.trouble = None;
        self.view = view;
    }

    /// Note that a read has failed. Return the reason if it is another than last time.
    fn fail(&mut self, error: &Error) -> Option<&str> {
        self.is_reading = false;
        let trouble = error.to_string();
        let is_news = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble);
        self.trouble.as_deref().filter(|_| is_news)
    }
}

impl SessionState {
    /// Read the journal for the first time, before any request is answered.
    pub(super) async fn first_read(&mut self) {
        self.drive();
        if let Some(view) = self.mail.next().await {
            self.see(view);
        }
    }

    /// Take the result of a read.
    pub(super) fn see(&mut self, view: Result<View, Error>) {
        match view {
            Ok(mut view) => {
                let mail = std::mem::take(&mut view.mail);
                let steps = std::mem::take(&mut view.happened);
                let looped = view.looped.take();
                self.mail.keep(view);
                self.tell(Input::MailRead(mail));
                self.driver.note_change();
                for happened in steps {
                    let event = event::Event::Message(self.message_event(happened));
                    self.setup.shared.hub.tell(Topic::Message, &event);
                }
                self.see_home(true);
                if let Some(looped) = looped {
                    self.see_loop(looped);
                }
            }
            // The next periodic check brings another read.
            Err(error) => {
                if let Some(trouble) = self.mail.fail(&error) {
                    warn!(target: log::DELIVERY, "the mail cannot be looked at: {trouble}");
                }
                self.tell(Input::MailUnreadable);
                if error.is_displaced() {
                    self.see_home(false);
                }
            }
        }
    }

    /// Return the event that tells listeners of a step of a message. The reason for which the message
    /// waits is known only to this session.
    fn message_event(&self, happened: Happened) -> MessageEvent {
        let Happened {
            receipt,
            state: message_state,
        } = happened;
        let held = self.driver.hold(&message_state);
        let reason = match why::why_live(&message_state, posthaste_store::times::now(), held) {
            Why::Held(hold) => Some(hold.reason),
            Why::Arrived { reason, .. } => reason,
        };
        MessageEvent {
            id: message_state.message.id,
            receipt: receipt.to_owned(),
            reason,
            from: message_state.message.envelope.from.to_string(),
            to: message_state.message.to.to_string(),
        }
    }

    /// Read the journal a last time, so that listeners are told of the last steps of messages before
    /// they are told of the session's end.
    pub(super) async fn last_look(&mut self, deadline: Instant) {
        // Only the journal knows how a loop has ended, so a loop always reads it.
        if !self.setup.shared.is_loop && !self.setup.shared.hub.wants(Topic::Message) {
            return;
        }
        // A read that is under way may have begun too early, so another one follows it.
        let mut looks = if self.mail.is_reading { 2 } else { 1 };
        while looks > 0 {
            if !self.mail.is_reading {
                self.mail.begin(self.setup.shared.clone());
            }
            match tokio::time::timeout_at(deadline.into(), self.mail.next()).await {
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
        let (is, on) = super::handle::wire_activity(&activity);
        let Some(change) = self.published.set_activity(activity, is_paused) else {
            return;
        };
        debug!(
            target: log::SESSION,
            activity = is.as_str(),
            blocked_on = change.blocked_on.is_some().then_some(on).flatten(),
            paused = self.driver.delivery().paused_because(),
            "state changed"
        );
        self.driver.note_change();
        self.changed(change);
    }

    /// Tell listeners of a change of the session's state.
    pub(super) fn changed(&mut self, change: StateChange) {
        self.published.updated_at = posthaste_store::times::now();
        if !change.is_empty() {
            let event = event::Event::StateChange(change);
            self.setup.shared.hub.tell(Topic::StateChange, &event);
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
        let now = posthaste_store::times::now();
        let pending = journal.pending(agent, now)?;
        let mut owed = journal.owed(agent, now)?;
        // A reminder names these messages and does not repeat their bodies.
        for message_state in &mut owed {
            message_state.message.envelope.body = Body::Inline(String::new());
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
            pending_replies: owed,
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
            if let Some(mut message_state) = journal.state(id)? {
                message_state.message.envelope.body = Body::Inline(String::new());
                all.push(Happened {
                    receipt,
                    state: message_state,
                });
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_news_once() {
        let mut reader = MailReader::new();
        assert!(reader.fail(&Error::WriterGone).is_some());
        assert!(reader.fail(&Error::WriterGone).is_none());
        assert!(reader.fail(&Error::Overloaded).is_some());
        reader.keep(View::default());
        assert!(reader.fail(&Error::Overloaded).is_some());
    }
}
