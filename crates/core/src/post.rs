//! Posting: from what a sender wants to the envelope that is stored.

use crate::fact::Event;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::message::{Body, Envelope, Evidence, Message};
use crate::name::AgentName;
use crate::priority::Priority;
use crate::receipt::{End, Refusal};
use jiff::{SignedDuration, Timestamp};

/// A message as its sender wants it. The id is the sender's own choice, so that the same message
/// tried over two ways is one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: MessageId,
    pub from: AgentName,
    pub from_evidence: Evidence,
    pub to: AgentName,
    pub subject: Option<String>,
    pub body: Body,
    pub priority: Priority,
    pub reply_to: Option<MessageId>,
    pub key: Option<String>,
    pub ttl: Option<SignedDuration>,
    pub not_before: Option<Timestamp>,
    pub allow_self: bool,
    pub raw: bool,
}

impl Draft {
    pub fn new(id: MessageId, from: AgentName, to: AgentName, body: impl Into<String>) -> Self {
        Self {
            id,
            from,
            from_evidence: Evidence::Default,
            to,
            subject: None,
            body: Body::Inline(body.into()),
            priority: Priority::Normal,
            reply_to: None,
            key: None,
            ttl: None,
            not_before: None,
            allow_self: false,
            raw: false,
        }
    }
}

/// What of the journal a posting is decided on.
#[derive(Debug, Default)]
pub struct Correspondence {
    /// The message that it answers.
    pub parent: Option<Message>,
    /// The latest message under the same sender, recipient and key.
    pub same_key: Option<Letter>,
    /// A message that stands under the same id.
    pub same_id: Option<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posting {
    New(Event),
    /// The same message stands in the journal already: nothing is to be written.
    Already(MessageId),
}

pub fn decide(now: Timestamp, draft: &Draft, known: &Correspondence) -> Result<Posting, Refusal> {
    if draft.from == draft.to && !draft.allow_self {
        return Err(Refusal::ToSelf(draft.from.clone()));
    }
    let thread_id = known
        .parent
        .as_ref()
        .map_or(draft.id, |parent| parent.envelope.thread_id);
    let hops = known
        .parent
        .as_ref()
        .map_or(0, |parent| parent.envelope.hops.saturating_add(1));
    let due = draft.not_before.map_or(now, |t| t.max(now));
    let envelope = Envelope {
        from: draft.from.clone(),
        from_evidence: draft.from_evidence,
        subject: draft.subject.clone(),
        body: draft.body.clone(),
        priority: draft.priority,
        thread_id,
        reply_to: draft.reply_to,
        key: draft.key.clone(),
        not_before: draft.not_before,
        // Its life begins when it is due; one without end is a message without `expires_at`.
        expires_at: draft.ttl.and_then(|ttl| due.checked_add(ttl).ok()),
        hops,
        raw: draft.raw,
    };
    if let Some(there) = &known.same_id {
        // Tried again over another way. Its times may differ by the moment between.
        let same = there.to == draft.to
            && there.envelope.from == envelope.from
            && there.envelope.body == envelope.body
            && there.envelope.subject == envelope.subject;
        return if same {
            Ok(Posting::Already(there.id))
        } else {
            Err(Refusal::IdTaken)
        };
    }
    match &known.same_key {
        Some(letter) if holds_its_key(letter, now) => Ok(Posting::Already(letter.message.id)),
        Some(_) | None => Ok(Posting::New(Event::Message(envelope))),
    }
}

/// Whether a repeat under its key is the same message again. One that was called back, ran out
/// of time or failed reached nobody, and one that was deleted is not found any more: a repeat of
/// these is a new message.
fn holds_its_key(letter: &Letter, now: Timestamp) -> bool {
    match letter.standing.at(&letter.message, now).end {
        None | Some(End::Archived) => true,
        Some(End::Deleted | End::Cancelled | End::Expired | End::Failed) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name};
    use crate::receipt::{Standing, Step};
    use uuid::Uuid;

    fn draft() -> Draft {
        Draft::new(
            MessageId(Uuid::from_u128(9)),
            name("alice"),
            name("bob"),
            "hi",
        )
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_000).unwrap()
    }

    fn envelope(draft: &Draft, known: &Correspondence) -> Envelope {
        match decide(now(), draft, known) {
            Ok(Posting::New(Event::Message(envelope))) => envelope,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_first_message_starts_its_own_thread() {
        let draft = draft();
        let envelope = envelope(&draft, &Correspondence::default());
        assert_eq!(
            (envelope.thread_id, envelope.reply_to, envelope.hops),
            (draft.id, None, 0)
        );
    }

    #[test]
    fn a_reply_joins_the_thread_one_hop_on() {
        let parent = message(3, "bob", "alice");
        let mut draft = draft();
        draft.reply_to = Some(parent.id);
        let envelope = envelope(
            &draft,
            &Correspondence {
                parent: Some(parent.clone()),
                ..Default::default()
            },
        );
        assert_eq!(
            (envelope.thread_id, envelope.reply_to, envelope.hops),
            (parent.id, Some(parent.id), 1)
        );
    }

    #[test]
    fn time_to_live_counts_from_when_it_is_due() {
        let mut draft = draft();
        draft.ttl = Some(SignedDuration::from_secs(60));
        assert_eq!(
            envelope(&draft, &Correspondence::default())
                .expires_at
                .unwrap()
                .as_second(),
            1_060
        );
        draft.not_before = Some(Timestamp::from_second(5_000).unwrap());
        assert_eq!(
            envelope(&draft, &Correspondence::default())
                .expires_at
                .unwrap()
                .as_second(),
            5_060
        );
        draft.ttl = Some(SignedDuration::MAX);
        assert_eq!(
            envelope(&draft, &Correspondence::default()).expires_at,
            None
        );
    }

    #[test]
    fn nobody_writes_to_itself_unasked() {
        let mut draft = draft();
        draft.to = name("alice");
        let none = Correspondence::default();
        assert_eq!(
            decide(now(), &draft, &none),
            Err(Refusal::ToSelf(name("alice")))
        );
        draft.allow_self = true;
        assert!(decide(now(), &draft, &none).is_ok());
    }

    #[test]
    fn the_same_key_or_id_is_the_same_message() {
        let draft = draft();
        let other = message(4, "alice", "bob");
        let by_key = |steps: &[Step]| {
            let mut standing = Standing::default();
            steps.iter().for_each(|step| standing.apply(*step));
            let letter = Letter {
                message: other.clone(),
                standing,
                receipts: vec![],
            };
            let known = Correspondence {
                same_key: Some(letter),
                ..Default::default()
            };
            decide(now(), &draft, &known)
        };
        for steps in [&[][..], &[Step::Read], &[Step::Archived]] {
            assert_eq!(by_key(steps), Ok(Posting::Already(other.id)), "{steps:?}");
        }
        for end in [Step::Deleted, Step::Cancelled, Step::Expired, Step::Failed] {
            assert!(matches!(by_key(&[end]), Ok(Posting::New(_))), "{end}");
        }
        let mut there = message(9, "alice", "bob");
        there.envelope.body = draft.body.clone();
        let by_id = Correspondence {
            same_id: Some(there.clone()),
            ..Default::default()
        };
        assert_eq!(
            decide(now(), &draft, &by_id),
            Ok(Posting::Already(draft.id))
        );
        there.envelope.body = Body::Inline("other".into());
        let clash = Correspondence {
            same_id: Some(there),
            ..Default::default()
        };
        assert_eq!(decide(now(), &draft, &clash), Err(Refusal::IdTaken));
    }
}
