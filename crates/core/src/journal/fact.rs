//! Facts: the journal's entries, and how a stored record is parsed.
//!
//! A [`Record`] is a line of the journal, kept byte for byte; a [`Fact`] is its meaning to this
//! version. A record that cannot be parsed ([`Odd`]) is kept and reported, and blocks nothing.

use crate::ask::AskFact;
use crate::id::MessageId;
use crate::loop_::LoopFact;
use crate::message::{Envelope, Message};
use crate::name::AgentName;
use crate::receipt::{Receipt, Step};
use crate::session::{Conversation, Ended, Started};
use crate::tasks::Deed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub const MESSAGE_KIND: &str = "message";
pub const STARTED_KIND: &str = "session_started";
pub const ENDED_KIND: &str = "session_ended";
pub const CONVERSATION_KIND: &str = "conversation";

/// A line of the journal, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub seq: u64,
    pub origin: String,
    pub id: String,
    pub at: String,
    pub agent: String,
    pub kind: String,
    pub data: String,
}

/// An event with id, time and agent, before it has a sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub id: Uuid,
    pub at: Timestamp,
    /// The agent whose inbox or session it belongs to.
    pub agent: AgentName,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message was stored. Its id is the fact's id.
    Message(Envelope),
    /// The state of a stored message changed.
    Progress(Progress),
    /// A session of the agent started.
    Started(Started),
    /// A session of the agent ended.
    Ended(Ended),
    /// The agent's program is in a conversation that can be resumed.
    Conversation(Conversation),
    /// The agent's tasks, notes or completion changed.
    Work(Deed),
    /// The agent's loop changed.
    Loop(LoopFact),
    /// A question to a person was opened or closed. The id of an ask is the id of the fact that
    /// opened it.
    Ask(AskFact),
}

/// Data of a step: a fact about a stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub message: MessageId,
    /// The fact's kind; not part of its data.
    #[serde(skip, default = "unread_kind")]
    pub step: Step,
    /// The agent or person who acted, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For `offered`: the agent will prove that its model was given the message, so a run that ends
    /// without this proof leaves the message uncertain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proof_awaited: bool,
}

/// A placeholder during deserialization; [`Record::read`] sets the step from the kind.
fn unread_kind() -> Step {
    Step::Shown
}

impl Progress {
    pub fn of(message: MessageId, step: Step) -> Self {
        Self {
            message,
            step,
            by: None,
            route: None,
            attempt: None,
            evidence: None,
            reason: None,
            proof_awaited: false,
        }
    }
}

/// Why this version cannot parse a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Odd {
    #[error("unknown kind '{}'", crate::text::one_line(.0, 40))]
    UnknownKind(String),
    #[error("malformed {what}: {}", crate::text::one_line(.why, 200))]
    Malformed { what: &'static str, why: String },
}

impl Event {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => MESSAGE_KIND,
            Self::Progress(progress) => progress.step.as_str(),
            Self::Started(_) => STARTED_KIND,
            Self::Ended(_) => ENDED_KIND,
            Self::Conversation(_) => CONVERSATION_KIND,
            Self::Work(deed) => deed.kind(),
            Self::Loop(happened) => happened.kind(),
            Self::Ask(ask) => ask.kind(),
        }
    }

    pub fn data(&self) -> String {
        let json = match self {
            Self::Message(envelope) => serde_json::to_string(envelope),
            Self::Progress(progress) => serde_json::to_string(progress),
            Self::Started(started) => serde_json::to_string(started),
            Self::Ended(ended) => serde_json::to_string(ended),
            Self::Conversation(conversation) => serde_json::to_string(conversation),
            Self::Work(deed) => deed.data(),
            Self::Loop(happened) => happened.data(),
            Self::Ask(ask) => ask.data(),
        };
        json.expect("strings, numbers and times always have a JSON form")
    }
}

impl Fact {
    /// Return the message that this fact stores, if any.
    pub fn message(&self) -> Option<Message> {
        let Event::Message(envelope) = &self.event else {
            return None;
        };
        Some(Message {
            id: MessageId(self.id),
            to: self.agent.clone(),
            created_at: self.at,
            envelope: envelope.clone(),
        })
    }

    /// Return the receipt that this fact adds to its message, if any.
    pub fn receipt(&self) -> Option<Receipt> {
        let stored = Receipt {
            state: "stored".to_owned(),
            at: self.at,
            by: None,
            route: None,
            evidence: None,
            reason: None,
        };
        match &self.event {
            Event::Message(_) => Some(stored),
            Event::Progress(progress) => Some(Receipt {
                state: progress.step.as_str().to_owned(),
                at: self.at,
                by: progress.by.clone(),
                route: progress.route.clone(),
                evidence: progress.evidence.clone(),
                reason: progress.reason.clone(),
            }),
            Event::Started(_)
            | Event::Ended(_)
            | Event::Conversation(_)
            | Event::Work(_)
            | Event::Loop(_)
            | Event::Ask(_) => None,
        }
    }
}

impl Record {
    pub fn read(&self) -> Result<Fact, Odd> {
        let event = self.event();
        let event = event.ok_or_else(|| Odd::UnknownKind(self.kind.clone()))?;
        let id = Uuid::parse_str(&self.id).map_err(|e| malformed("id", &e))?;
        if id.hyphenated().to_string() != self.id {
            return Err(malformed("id", &"not in canonical form"));
        }
        let at = self
            .at
            .parse()
            .map_err(|e: jiff::Error| malformed("time", &e))?;
        let agent = AgentName::parse(&self.agent).map_err(|e| malformed("agent", &e))?;
        Ok(Fact {
            id,
            at,
            agent,
            event: event?,
        })
    }

    /// Parse the event. `None` if its kind is unknown.
    fn event(&self) -> Option<Result<Event, Odd>> {
        let data = self.data.as_str();
        Some(match self.kind.as_str() {
            MESSAGE_KIND => parse_data("message", data).map(Event::Message),
            STARTED_KIND => parse_data("session start", data).map(Event::Started),
            ENDED_KIND => parse_data("session end", data).map(Event::Ended),
            CONVERSATION_KIND => parse_data("conversation", data).map(Event::Conversation),
            kind => match Step::from_kind(kind) {
                Some(step) => parse_data("step", data)
                    .map(|progress| Event::Progress(Progress { step, ..progress })),
                None => match Deed::read(kind, data) {
                    Some(deed) => deed.map(Event::Work),
                    None => match AskFact::read(kind, data) {
                        Some(ask) => ask.map(Event::Ask),
                        None => LoopFact::read(kind, data)?.map(Event::Loop),
                    },
                },
            },
        })
    }
}

/// Parse the data of a fact. The error names the fact as `what`.
pub(crate) fn parse_data<'a, T: Deserialize<'a>>(
    what: &'static str,
    data: &'a str,
) -> Result<T, Odd> {
    serde_json::from_str(data).map_err(|error| malformed(what, &error))
}

fn malformed(what: &'static str, why: &dyn ToString) -> Odd {
    Odd::Malformed {
        what,
        why: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name};
    use crate::message::Body;
    use crate::session::Ending;
    use crate::session::tests::started;

    fn stored(fact: &Fact) -> Record {
        Record {
            seq: 1,
            origin: Uuid::nil().to_string(),
            id: fact.id.to_string(),
            at: fact.at.to_string(),
            agent: fact.agent.to_string(),
            kind: fact.event.kind().to_owned(),
            data: fact.event.data(),
        }
    }

    #[test]
    fn a_fact_reads_back_as_itself() {
        let sample = message(7, "alice", "bob");
        let mut envelope = sample.envelope.clone();
        let check = |event: Event| {
            let fact = Fact {
                id: sample.id.0,
                at: sample.created_at,
                agent: name("bob"),
                event,
            };
            assert_eq!(stored(&fact).read(), Ok(fact));
        };
        check(Event::Message(envelope.clone()));
        let every_control: String = (0u32..0xa0).filter_map(char::from_u32).collect();
        envelope.body = Body::Inline(every_control);
        check(Event::Message(envelope.clone()));
        envelope.body = Body::Filed {
            bytes: 3,
            blake3: "abc".into(),
        };
        envelope.subject = Some("s".into());
        envelope.key = Some("k".into());
        envelope.expires_at = Some(sample.created_at);
        check(Event::Message(envelope));
        for step in Step::ALL {
            check(Event::Progress(Progress {
                by: Some(name("bob")),
                ..Progress::of(sample.id, step)
            }));
        }
        let begun = started(1);
        let run = begun.run;
        check(Event::Started(begun));
        let how = Ending::Failed("no such command".into());
        for how in [Ending::Exit(1), Ending::Signal(9), Ending::Crashed, how] {
            check(Event::Ended(Ended { run, how }));
        }
        for deed in crate::tasks::tests::every_deed() {
            check(Event::Work(deed));
        }
        for happened in crate::loop_::tests::every_fact() {
            check(Event::Loop(happened));
        }
        for ask in crate::ask::tests::every_fact() {
            check(Event::Ask(ask));
        }
    }

    #[test]
    fn an_unreadable_record_says_why() {
        let sample = message(0xabc, "alice", "bob");
        let fact = Fact {
            id: sample.id.0,
            at: sample.created_at,
            agent: name("bob"),
            event: Event::Message(sample.envelope),
        };
        let check = |spoil: fn(&mut Record), want: &str| {
            let mut record = stored(&fact);
            spoil(&mut record);
            let got = record.read().expect_err("spoilt").to_string();
            assert!(got.starts_with(want), "{got} should start with {want}");
        };
        check(|r| r.kind = "iteration".into(), "unknown kind 'iteration'");
        check(|r| r.data = "{".into(), "malformed message");
        check(|r| r.data = "{}".into(), "malformed message");
        check(|r| r.at = "yesterday".into(), "malformed time");
        check(|r| r.agent = "../x".into(), "malformed agent");
        check(|r| r.id = "1".into(), "malformed id");
        check(|r| r.id = r.id.to_uppercase(), "malformed id");
        check(|r| r.kind = "read".into(), "malformed step");
        check(|r| r.kind = STARTED_KIND.into(), "malformed session start");
        check(|r| r.kind = ENDED_KIND.into(), "malformed session end");
        check(|r| r.kind = "task".into(), "malformed task:");
        check(|r| r.kind = "task_status".into(), "malformed task status");
        check(|r| r.kind = "note".into(), "malformed note");
        check(
            |r| {
                r.kind = "session_complete".into();
                r.data = "{}".into();
            },
            "malformed completion",
        );
        for (kind, want) in [
            ("loop_began", "malformed loop's begin"),
            ("iteration_started", "malformed iteration's start"),
            ("iteration_ended", "malformed iteration's end"),
            ("loop_asked", "malformed request to a loop"),
            ("loop_resumed", "malformed loop's resumption"),
            ("prompt_injected", "malformed injected prompt"),
            ("loop_interactive", "malformed interactive mode"),
            ("loop_ended", "malformed loop's end"),
        ] {
            let mut record = stored(&fact);
            record.kind = kind.into();
            record.data = "{}".into();
            let got = record.read().expect_err("spoilt").to_string();
            assert!(got.starts_with(want), "{got} should start with {want}");
        }
        check(
            |r| {
                r.kind = "iteration_ended".into();
                r.data = r#"{"number":1,"outcome":"of a later version"}"#.into();
            },
            "malformed iteration's end: unknown variant",
        );
        check(
            |r| {
                r.kind = "loop_checkpointed".into();
                r.data = "[".into();
            },
            "malformed checkpoint",
        );
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let sample = message(7, "alice", "bob");
        let fact = Fact {
            id: sample.id.0,
            at: sample.created_at,
            agent: name("bob"),
            event: Event::Message(sample.envelope),
        };
        let mut record = stored(&fact);
        record.data.insert_str(1, r#""colour":"blue","#);
        assert_eq!(record.read(), Ok(fact));
    }
}
