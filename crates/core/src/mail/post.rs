//! Posting: decides which envelope is stored for a draft, if any.

use crate::ask::{self, AskAnswer, AskState};
use crate::fact::{Event, Progress};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::mail::pending_replies;
use crate::message::{Body, Envelope, Evidence, Message};
use crate::name::AgentName;
use crate::priority::Priority;
use crate::receipt::{End, Refusal, Step};
use crate::storm::{self, Given, Limits};
use crate::turn;
use jiff::{SignedDuration, Timestamp};

/// A message to be stored. The caller chooses the id, so that a draft that is sent twice, by two
/// ways, is stored once.
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
    /// Maximum wait for an idle agent, counted from the time at which the message is due.
    pub deadline: Option<SignedDuration>,
    pub expects_reply: bool,
    /// The message to which no reply is expected any longer.
    pub closes: Option<MessageId>,
    pub allow_self: bool,
    pub raw: bool,
    /// The ask that a raw message answers.
    pub answers: Option<AskAnswer>,
    /// Limits against storms.
    pub limits: Limits,
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
            deadline: None,
            expects_reply: false,
            closes: None,
            allow_self: false,
            raw: false,
            answers: None,
            limits: Limits::NONE,
        }
    }
}

/// The journal's state that the decision depends on.
#[derive(Debug, Default)]
pub struct Correspondence {
    /// The message that the draft replies to.
    pub parent: Option<MessageState>,
    /// The message that the draft closes.
    pub closed: Option<MessageState>,
    /// The message that the sender was given last.
    pub given: Option<Given>,
    /// Number of messages from this sender to this recipient in the last minute.
    pub recent: u32,
    /// The latest message with the same sender, recipient and key.
    pub same_key: Option<MessageState>,
    /// The ask that the draft answers.
    pub ask: Option<AskState>,
    /// The message of an earlier answer to that ask.
    pub rival: Option<MessageState>,
    /// The stored message with the same id.
    pub same_id: Option<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posting {
    New {
        envelope: Box<Envelope>,
        /// Further events to commit with the message, each with the agent that it belongs to.
        also: Vec<(AgentName, Event)>,
    },
    /// An equal message is already stored; nothing is written.
    Already(MessageId),
}

pub fn decide(now: Timestamp, draft: &Draft, known: &Correspondence) -> Result<Posting, Refusal> {
    if draft.from == draft.to && !draft.allow_self {
        return Err(Refusal::ToSelf(draft.from.clone()));
    }
    if says_nothing(draft) {
        return Err(Refusal::Empty);
    }
    if draft.raw && draft.body.bytes() > turn::MAX_RAW_BYTES {
        return Err(Refusal::RawTooLong);
    }
    if let Some(closed) = &known.closed {
        may_close(draft, closed)?;
    }
    let envelope = envelope(now, draft, known);
    if let Some(there) = &known.same_id {
        // A repeated attempt by another way. Its times may differ.
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
    if let Some(answer) = &draft.answers {
        ask::accept(answer, known.ask.as_ref(), known.rival.as_ref())?;
    }
    match &known.same_key {
        Some(mail) if holds_its_key(mail, now) => Ok(Posting::Already(mail.message.id)),
        Some(_) | None => Ok(Posting::New {
            also: also(draft, known, &envelope),
            envelope: Box::new(envelope),
        }),
    }
}

/// Whether a message has neither a text nor a subject. A subject alone is enough unless the message
/// is raw. Messages from a provider are stored as they are.
fn says_nothing(draft: &Draft) -> bool {
    let has_subject = draft
        .subject
        .as_deref()
        .is_some_and(|s| !s.trim().is_empty());
    // To choose the option that is highlighted, Enter alone is pressed.
    if draft.answers.is_some() {
        return false;
    }
    let is_blank = match &draft.body {
        Body::Inline(text) => text.trim().is_empty(),
        Body::Filed { .. } => false,
    };
    let is_taken_in = draft.from_evidence == Evidence::Provider;
    is_blank && !is_taken_in && (draft.raw || !has_subject)
}

fn envelope(now: Timestamp, draft: &Draft, known: &Correspondence) -> Envelope {
    let parent = known.parent.as_ref().map(|mail| &mail.message);
    let cause = storm::cause(&draft.from, draft.from_evidence, known.given.as_ref(), now);
    let due = draft.not_before.map_or(now, |t| t.max(now));
    Envelope {
        from: draft.from.clone(),
        from_evidence: draft.from_evidence,
        subject: draft.subject.clone(),
        body: draft.body.clone(),
        priority: draft.priority,
        thread_id: parent.map_or(draft.id, |parent| parent.envelope.thread_id),
        reply_to: draft.reply_to,
        key: draft.key.clone(),
        not_before: draft.not_before,
        // Without a representable end, the message never expires.
        expires_at: draft.ttl.and_then(|ttl| due.checked_add(ttl).ok()),
        deadline: draft.deadline.and_then(|wait| due.checked_add(wait).ok()),
        expects_reply: draft.expects_reply,
        closes: draft.closes,
        hops: storm::hops(&draft.from, parent, cause),
        cause: cause
            .map(|cause| cause.id)
            .filter(|id| draft.reply_to != Some(*id)),
        raw: draft.raw,
        answers: draft.answers.clone().map(Box::new),
    }
}

/// Return the events that follow from storing the message: replies to what it answers or closes, or
/// its failure if it exceeds a limit.
fn also(draft: &Draft, known: &Correspondence, envelope: &Envelope) -> Vec<(AgentName, Event)> {
    let (from, to) = (&draft.from, &draft.to);
    if let Some(why) = storm::excess(draft.limits, from, to, envelope.hops, known.recent) {
        let failed = Progress {
            reason: Some(why),
            ..Progress::of(draft.id, Step::Failed)
        };
        return vec![(to.clone(), Event::Progress(failed))];
    }
    let is_answer = |mail: &&MessageState| mail.message.to == *from;
    let answers = known.parent.iter().filter(is_answer);
    let mut answered: Vec<&MessageState> = answers.chain(&known.closed).collect();
    answered.dedup_by_key(|mail| mail.message.id);
    let is_awaited =
        |mail: &&MessageState| mail.message.envelope.expects_reply && !mail.status.answered;
    let step = |mail: &MessageState| {
        let answer = Progress {
            by: Some(from.clone()),
            evidence: Some(format!("in message {}", draft.id.id8())),
            ..Progress::of(mail.message.id, Step::Answered)
        };
        (mail.message.to.clone(), Event::Progress(answer))
    };
    answered.into_iter().filter(is_awaited).map(step).collect()
}

fn may_close(draft: &Draft, closed: &MessageState) -> Result<(), Refusal> {
    let message = &closed.message;
    if !pending_replies::may_close(&draft.from, message) {
        return Err(Refusal::NotTheirsToClose(draft.from.clone()));
    }
    if message.envelope.expects_reply {
        Ok(())
    } else {
        Err(Refusal::NothingExpected(message.id))
    }
}

/// Whether a repeat under the same key is the same message. A message that was cancelled, deleted,
/// has expired or failed no longer holds its key: its repeat is a new message.
fn holds_its_key(mail: &MessageState, now: Timestamp) -> bool {
    match mail.status.at(&mail.message, now).end {
        None | Some(End::Archived) => true,
        Some(End::Deleted | End::Cancelled | End::Expired | End::Failed) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name, with_steps};
    use crate::receipt::{MessageStatus, Step};
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
            Ok(Posting::New { envelope, .. }) => *envelope,
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
    fn a_message_needs_a_text_or_a_subject() {
        let check = |body: &str, subject: Option<&str>, raw: bool, by: Evidence, want: bool| {
            let mut draft = draft();
            draft.body = Body::Inline(body.to_owned());
            draft.subject = subject.map(str::to_owned);
            draft.raw = raw;
            draft.from_evidence = by;
            let got = decide(now(), &draft, &Correspondence::default());
            let is_empty = matches!(got, Err(Refusal::Empty));
            assert_eq!(!is_empty, want, "{body:?} {subject:?} {raw} {by:?}");
        };
        check("hi", None, false, Evidence::Flag, true);
        check("", None, false, Evidence::Flag, false);
        check(" \n\t", None, false, Evidence::Flag, false);
        check("", Some(" "), false, Evidence::Flag, false);
        check("", Some("tests"), false, Evidence::Flag, true);
        check("", Some("tests"), true, Evidence::Flag, false);
        // A provider's messages are stored as they are.
        check("", None, false, Evidence::Provider, true);
    }

    #[test]
    fn a_reply_joins_the_thread_with_one_more_hop() {
        let parent = message(3, "bob", "alice");
        let mut draft = draft();
        draft.reply_to = Some(parent.id);
        let envelope = envelope(
            &draft,
            &Correspondence {
                parent: Some(with_steps(&parent, &[])),
                ..Default::default()
            },
        );
        assert_eq!(
            (envelope.thread_id, envelope.reply_to, envelope.hops),
            (parent.id, Some(parent.id), 1)
        );
    }

    #[test]
    fn a_reply_ends_the_wait_for_it_once() {
        let mut asked = message(3, "bob", "alice");
        asked.envelope.expects_reply = true;
        let check =
            |from: &str, reply: bool, closes: bool, before: &[Step], want: Result<usize, &str>| {
                let mut draft = draft();
                draft.from = name(from);
                let mail = with_steps(&asked, before);
                let known = Correspondence {
                    parent: reply.then(|| mail.clone()),
                    closed: closes.then(|| mail.clone()),
                    ..Default::default()
                };
                let got = match decide(now(), &draft, &known) {
                    Ok(Posting::New { also, .. }) => Ok(also.len()),
                    Ok(other) => panic!("{other:?}"),
                    Err(refusal) => Err(refusal.to_string()),
                };
                let want = want.map_err(str::to_owned);
                assert_eq!(got, want, "{from} {reply} {closes} {before:?}");
            };
        check("alice", true, false, &[], Ok(1));
        check("alice", true, true, &[], Ok(1));
        check("alice", false, true, &[], Ok(1));
        check("alice", true, false, &[Step::Answered], Ok(0));
        // A follow-up from the asker does not count as a reply.
        check("carol", true, false, &[], Ok(0));
        let not_theirs = "carol is neither sender nor recipient of that message";
        check("carol", false, true, &[], Err(not_theirs));
    }

    #[test]
    fn a_message_over_a_limit_is_stored_and_fails() {
        let mut draft = draft();
        draft.limits = Limits { hops: 3, rate: 2 };
        let parent = |hops| {
            let mut parent = message(3, "bob", "alice");
            parent.envelope.hops = hops;
            parent.envelope.expects_reply = true;
            Some(with_steps(&parent, &[]))
        };
        let steps = |known: &Correspondence| match decide(now(), &draft, known) {
            Ok(Posting::New { also, .. }) => {
                let step = |(_, event): &(_, Event)| match event {
                    Event::Progress(progress) => progress.step,
                    other => panic!("{other:?}"),
                };
                also.iter().map(step).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let with = |hops, recent| Correspondence {
            parent: parent(hops),
            recent,
            ..Default::default()
        };
        assert_eq!(steps(&with(2, 1)), [Step::Answered]);
        assert_eq!(steps(&with(3, 1)), [Step::Failed]);
        assert_eq!(steps(&with(2, 2)), [Step::Failed]);
    }

    #[test]
    fn the_message_that_an_agent_was_given_causes_its_next_one() {
        let mut draft = draft();
        draft.from_evidence = Evidence::Ancestry;
        let mut cause = message(5, "carol", "alice");
        cause.envelope.hops = 4;
        let mut known = Correspondence {
            given: Some(Given {
                message: cause.clone(),
                at: now(),
            }),
            ..Default::default()
        };
        let found = envelope(&draft, &known);
        assert_eq!((found.hops, found.cause), (5, Some(cause.id)));
        assert_eq!(found.thread_id, draft.id);
        draft.reply_to = Some(cause.id);
        known.parent = Some(with_steps(&cause, &[]));
        let found = envelope(&draft, &known);
        assert_eq!((found.hops, found.cause), (5, None));
    }

    #[test]
    fn a_deadline_is_counted_from_the_due_time() {
        let mut draft = draft();
        draft.deadline = Some(SignedDuration::from_secs(60));
        draft.not_before = Some(Timestamp::from_second(5_000).unwrap());
        let found = envelope(&draft, &Correspondence::default());
        assert_eq!(found.deadline.unwrap().as_second(), 5_060);
    }

    #[test]
    fn a_raw_message_has_a_maximum_length() {
        let mut draft = draft();
        draft.raw = true;
        draft.body = Body::Inline("y".repeat(4_001));
        let none = Correspondence::default();
        assert_eq!(decide(now(), &draft, &none), Err(Refusal::RawTooLong));
    }

    #[test]
    fn time_to_live_is_counted_from_the_due_time() {
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
    fn an_agent_writes_to_itself_only_with_permission() {
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
    fn an_equal_key_or_id_is_the_same_message() {
        let draft = draft();
        let other = message(4, "alice", "bob");
        let by_key = |steps: &[Step]| {
            let mut status = MessageStatus::default();
            steps.iter().for_each(|step| status.apply(*step));
            let mail = MessageState {
                message: other.clone(),
                status,
                receipts: vec![],
            };
            let known = Correspondence {
                same_key: Some(mail),
                ..Default::default()
            };
            decide(now(), &draft, &known)
        };
        for steps in [&[][..], &[Step::Read], &[Step::Archived]] {
            assert_eq!(by_key(steps), Ok(Posting::Already(other.id)), "{steps:?}");
        }
        for end in [Step::Deleted, Step::Cancelled, Step::Expired, Step::Failed] {
            assert!(matches!(by_key(&[end]), Ok(Posting::New { .. })), "{end}");
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
