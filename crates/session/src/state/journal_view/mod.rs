//! Reads of the journal: the mail that waits for the agent, and the steps of its messages since the
//! last read.

pub(super) mod loop_view;

use super::SessionState;
use crate::Shared;
use crate::host::log;
use loop_view::LoopView;
use posthaste_core::driver::{Input, MailView};
use posthaste_core::fact::Event as Fact;
use posthaste_core::why::{self, Why};
use posthaste_core::{AgentName, AskState, Body, MessageId, MessageState, ReceiptState};
use posthaste_store::{Error, Journal};
use posthaste_wire::ask::Ask;
use posthaste_wire::event::{self, MessageEvent};
use posthaste_wire::topic::Topic;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::mpsc;
use tracing::warn;

/// The agent's part of the journal, as of the last read.
#[derive(Debug, Default)]
pub(super) struct JournalView {
    /// The agent's mail, which is moved to the driver after each read.
    mail: MailView,
    /// Number of messages that wait for delivery, whether they are due or not.
    queued: u64,
    unread: u64,
    /// The loop and its tasks, if this session runs a loop.
    loop_view: Option<LoopView>,
    /// Number of the last fact whose step was published; `None` before the first read.
    seq: Option<u64>,
    news: News,
}

/// A step of a message, and the message's state as of this read, without its body.
#[derive(Debug)]
struct Step {
    receipt: &'static str,
    state: MessageState,
}

/// The changes since the last read that are published.
#[derive(Debug, Default)]
struct News {
    steps: Vec<Step>,
    /// Asks that were opened, answered or closed, as of this read.
    asks: Vec<AskState>,
}

/// Reads the journal, one read at a time.
pub(super) struct JournalReader {
    /// The agent's part of the journal, as of the last read.
    view: JournalView,
    is_reading: bool,
    /// Why the last read failed, which is logged once.
    trouble: Option<String>,
    views: mpsc::Sender<Result<JournalView, Error>>,
    viewed: mpsc::Receiver<Result<JournalView, Error>>,
}

impl JournalReader {
    pub(super) fn new() -> Self {
        let (views, viewed) = mpsc::channel(1);
        Self {
            view: JournalView::default(),
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
        let has_listeners = shared.hub.wants(Topic::Message) || shared.hub.wants(Topic::Ask);
        tokio::task::spawn_local(async move {
            let agent = shared.agent.clone();
            let is_loop = shared.is_loop;
            let run = shared.run;
            let read = move |journal: &mut Journal| {
                let mut view = JournalView::of(journal, &agent, seq, has_listeners)?;
                if is_loop {
                    view.loop_view = LoopView::of(journal, &agent, run)?;
                }
                Ok(view)
            };
            let _ = views.send(shared.journal.ask(read).await).await;
        });
    }

    /// Wait for the result of the read.
    pub(super) async fn next(&mut self) -> Option<Result<JournalView, Error>> {
        self.viewed.recv().await
    }

    /// Keep a view whose mail and steps were taken out.
    fn keep(&mut self, view: JournalView) {
        self.is_reading = false;
        self.trouble = None;
        self.view = view;
    }

    /// Note that a read has failed. Return the reason if it differs from the last one.
    fn fail(&mut self, error: &Error) -> Option<&str> {
        self.is_reading = false;
        let trouble = error.to_string();
        let is_new = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble);
        self.trouble.as_deref().filter(|_| is_new)
    }
}

impl SessionState {
    /// Read the journal for the first time, before any request is answered.
    pub(super) async fn first_read(&mut self) {
        self.perform_actions();
        if let Some(view) = self.reader.next().await {
            self.apply_read(view);
        }
    }

    /// Apply the result of a read.
    pub(super) fn apply_read(&mut self, view: Result<JournalView, Error>) {
        match view {
            Ok(mut view) => {
                let mail = std::mem::take(&mut view.mail);
                let news = std::mem::take(&mut view.news);
                let loop_view = view.loop_view.take();
                self.reader.keep(view);
                self.feed(Input::MailRead(mail));
                self.driver.note_change();
                for step in news.steps {
                    let event = event::Event::Message(self.message_event(step));
                    self.setup.shared.hub.publish(Topic::Message, &event);
                }
                for ask in &news.asks {
                    let event = event::Event::Ask(Box::new(Ask::new(ask)));
                    self.setup.shared.hub.publish(Topic::Ask, &event);
                }
                self.note_home(true);
                self.setup.shared.wakeups.read.notify_waiters();
                if let Some(loop_view) = loop_view {
                    self.apply_loop_view(loop_view);
                }
            }
            // The next periodic check brings another read.
            Err(error) => {
                if let Some(trouble) = self.reader.fail(&error) {
                    warn!(target: log::DELIVERY, "the mail cannot be read: {trouble}");
                }
                self.feed(Input::MailUnreadable);
                if error.is_displaced() {
                    self.note_home(false);
                }
            }
        }
    }

    /// Return the event for a step of a message. Only this session knows the reason for which a message
    /// waits.
    fn message_event(&self, step: Step) -> MessageEvent {
        let Step {
            receipt,
            state: message_state,
        } = step;
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

    /// Read the journal a last time, to publish the last steps of messages before the session's end.
    pub(super) async fn read_last_steps(&mut self, deadline: Instant) {
        // Only the journal knows how a loop has ended, so a loop always reads it.
        if !self.setup.shared.is_loop && !self.setup.shared.hub.wants(Topic::Message) {
            return;
        }
        // A read that is under way may have begun too early, so another one follows it.
        let mut reads = if self.reader.is_reading { 2 } else { 1 };
        while reads > 0 {
            if !self.reader.is_reading {
                self.reader.begin(self.setup.shared.clone());
            }
            match tokio::time::timeout_at(deadline.into(), self.reader.next()).await {
                Ok(Some(view)) => self.apply_read(view),
                Ok(None) | Err(_) => return,
            }
            reads -= 1;
        }
    }
}

impl JournalView {
    fn of(
        journal: &mut Journal,
        agent: &AgentName,
        seq: Option<u64>,
        has_listeners: bool,
    ) -> Result<Self, Error> {
        journal.expect_in_place()?;
        // Read this first: a fact that is added meanwhile may be included, but is not claimed.
        let head = journal.head()?;
        let now = posthaste_store::times::now();
        let pending = journal.pending(agent, now)?;
        let mut owed = journal.owed(agent, now)?;
        // A reminder names these messages and does not repeat their bodies.
        for message_state in &mut owed {
            message_state.message.envelope.body = Body::Inline(String::new());
        }
        let unread = journal.count(agent, now)?.unread;
        let mut news = News::default();
        if let (Some(seq), true) = (seq, has_listeners) {
            news = news_since(journal, agent, seq, head)?;
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
            loop_view: None,
            seq: Some(head),
            news,
        })
    }
}

/// Return what has changed for this agent after the fact `seq`, up to the fact `head`.
fn news_since(
    journal: &mut Journal,
    agent: &AgentName,
    mut seq: u64,
    head: u64,
) -> Result<News, Error> {
    let mut news = News::default();
    while seq < head {
        let mut page = journal.facts_after(seq)?;
        page.retain(|record| record.seq <= head);
        let Some(last) = page.last() else { break };
        seq = last.seq;
        for record in page.iter().filter(|record| record.agent == agent.as_str()) {
            let Ok(fact) = record.read() else { continue };
            let opened = AskState::opened_by(&fact).map(|ask| ask.id);
            if let Some(id) = opened.or(AskState::changed_by(&fact)) {
                news.asks.extend(journal.ask(&id.into()).ok());
            }
            let (id, receipt) = match &fact.event {
                Fact::Message(_) => (MessageId(fact.id), ReceiptState::Stored.as_str()),
                Fact::Progress(progress) => (progress.message, progress.step.as_str()),
                Fact::Started(_)
                | Fact::Ended(_)
                | Fact::Conversation(_)
                | Fact::Work(_)
                | Fact::Loop(_)
                | Fact::Ask(_) => continue,
            };
            if let Some(mut message_state) = journal.state(id)? {
                message_state.message.envelope.body = Body::Inline(String::new());
                news.steps.push(Step {
                    receipt,
                    state: message_state,
                });
            }
        }
    }
    Ok(news)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_read_failure_is_reported_once() {
        let mut reader = JournalReader::new();
        assert!(reader.fail(&Error::WriterGone).is_some());
        assert!(reader.fail(&Error::WriterGone).is_none());
        assert!(reader.fail(&Error::Overloaded).is_some());
        reader.keep(JournalView::default());
        assert!(reader.fail(&Error::Overloaded).is_some());
    }
}
