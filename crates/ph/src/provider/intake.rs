//! A script's mail as facts of ours: each message once, under an id that follows from the script's.
//!
//! Decides what is to be done with what a script lists; does none of it. Mail that was accepted or
//! read here is to be marked there, which needs no memory: what is still listed was not marked.

use posthaste_core::{AgentName, Draft, Evidence, Letter, MessageId, Posting, post};
use posthaste_wire::provider::Message;
use std::path::Path;

/// What the key of such a message begins with; the script's id follows.
const KEY: &str = "exec:";
/// How long a script's id may be: it goes on command lines.
const LONGEST: usize = 1_000;
/// Who it is from, where a script's name for them cannot be an agent's.
const SOMEBODY: &str = "unknown";

/// What is to be done with the mail that a script lists.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// To be stored.
    pub(crate) new: Vec<Draft>,
    /// The script's ids of what is to be marked as read there.
    pub(crate) done: Vec<String>,
    /// What cannot be taken in, and why.
    pub(crate) odd: Vec<String>,
}

/// The id under which a script's message is kept here: the same every time.
pub(crate) fn id_of(script: &Path, agent: &AgentName, id: &str) -> MessageId {
    let mut hash = blake3::Hasher::new();
    for part in [
        script.as_os_str().as_encoded_bytes(),
        agent.as_str().as_bytes(),
        id.as_bytes(),
    ] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    hash.finalize_xof().fill(&mut bytes);
    MessageId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// The script's id of a message that came from one.
pub(crate) fn outside_id(letter: &Letter) -> Option<&str> {
    let envelope = &letter.message.envelope;
    let is_its = envelope.from_evidence == Evidence::Provider;
    envelope
        .key
        .as_deref()?
        .strip_prefix(KEY)
        .filter(|_| is_its)
}

/// Sorts what a script lists for an agent by what is known of it here.
pub(crate) fn sort<E>(
    script: &Path,
    agent: &AgentName,
    listed: &[Message],
    mut look: impl FnMut(MessageId) -> Result<Option<Letter>, E>,
) -> Result<Sorted, E> {
    let mut sorted = Sorted::default();
    for message in listed {
        if let Err(why) = check(&message.id) {
            let shown = posthaste_core::text::one_line(&message.id, 40);
            sorted.odd.push(format!("message '{shown}': {why}"));
            continue;
        }
        match look(id_of(script, agent, &message.id))? {
            None => sorted.new.push(draft(script, agent, message)),
            Some(letter) if is_done(&letter) => sorted.done.push(message.id.clone()),
            Some(_) => {}
        }
    }
    Ok(sorted)
}

fn check(id: &str) -> Result<(), &'static str> {
    match id {
        "" => Err("it has no id"),
        id if id.len() > LONGEST => Err("its id is too long"),
        id if id.chars().any(char::is_control) => Err("its id has control characters"),
        _ => Ok(()),
    }
}

fn draft(script: &Path, agent: &AgentName, message: &Message) -> Draft {
    let from = AgentName::parse(&message.from)
        .ok()
        .or_else(|| AgentName::suggestion(&message.from))
        .or_else(|| AgentName::parse(SOMEBODY).ok())
        .unwrap_or_else(AgentName::human);
    let subject = posthaste_core::text::one_line(&message.subject, LONGEST);
    Draft {
        from_evidence: Evidence::Provider,
        subject: Some(subject).filter(|subject| !subject.is_empty()),
        key: Some(format!("{KEY}{}", message.id)),
        // Whether somebody may write to itself was for the script to say.
        allow_self: true,
        ..Draft::new(
            id_of(script, agent, &message.id),
            from,
            agent.clone(),
            message.body.clone(),
        )
    }
}

/// A script's message as it would be stored.
pub(crate) fn message(
    script: &Path,
    agent: &AgentName,
    message: &Message,
) -> Option<posthaste_core::Message> {
    check(&message.id).ok()?;
    let draft = draft(script, agent, message);
    let alone = post::Correspondence::default();
    match post::decide(message.created_at, &draft, &alone) {
        Ok(Posting::New { envelope, .. }) => Some(posthaste_core::Message {
            id: draft.id,
            to: agent.clone(),
            created_at: message.created_at,
            envelope: *envelope,
        }),
        Ok(Posting::Already(_)) | Err(_) => None,
    }
}

/// Whether its agent has it, by its own word or by reading it, and nobody has taken that back.
fn is_done(letter: &Letter) -> bool {
    let last = letter
        .receipts
        .iter()
        .rev()
        .find_map(|receipt| match receipt.state.as_str() {
            "accepted" | "read" | "archived" | "deleted" => Some(true),
            "unread" => Some(false),
            _ => None,
        });
    last.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::fact::Event;
    use posthaste_core::fact::Progress;
    use posthaste_core::{Fact, Mail, Step, Timestamp};

    fn message(id: &str, from: &str) -> Message {
        Message {
            id: id.to_owned(),
            from: from.to_owned(),
            to: "bob".to_owned(),
            subject: "a\nb".to_owned(),
            body: "hi".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            read: false,
            thread_id: String::new(),
            reply_to: String::new(),
        }
    }

    fn bob() -> AgentName {
        AgentName::parse("bob").unwrap()
    }

    fn sorted(listed: &[Message], known: &Mail) -> Sorted {
        let look = |id| Ok::<_, ()>(known.get(id).cloned());
        sort(Path::new("/s"), &bob(), listed, look).unwrap()
    }

    /// The mail after these were stored, and these steps of the first.
    fn kept(listed: &[Message], steps: &[Step]) -> Mail {
        let mut mail = Mail::default();
        let at = Timestamp::UNIX_EPOCH;
        for draft in sorted(listed, &Mail::default()).new {
            let Ok(Posting::New { envelope, .. }) =
                post::decide(at, &draft, &post::Correspondence::default())
            else {
                panic!("it is new")
            };
            let event = Event::Message(*envelope);
            let (id, agent) = (draft.id.0, bob());
            mail.apply(&Fact {
                id,
                at,
                agent,
                event,
            });
        }
        let first = id_of(Path::new("/s"), &bob(), &listed[0].id);
        for (n, step) in (1..).zip(steps) {
            mail.apply(&Fact {
                id: uuid::Uuid::from_u128(n),
                at,
                agent: bob(),
                event: Event::Progress(Progress::of(first, *step)),
            });
        }
        mail
    }

    #[test]
    fn what_is_new_is_kept_once() {
        let listed = [
            message("1", "alice"),
            message("-2", "The Boss!"),
            message("3", ""),
        ];
        let new = sorted(&listed, &Mail::default()).new;
        let names: Vec<_> = new.iter().map(|draft| draft.from.as_str()).collect();
        assert_eq!(names, ["alice", "the-boss", "unknown"]);
        assert_eq!(new[0].subject.as_deref(), Some("a b"));
        let again = sorted(&listed, &kept(&listed, &[]));
        assert!(again.new.is_empty() && again.done.is_empty());
        let letters = kept(&listed, &[]);
        let ids: Vec<_> = letters.all().filter_map(outside_id).collect();
        assert_eq!(ids, ["1", "-2", "3"]);
    }

    #[test]
    fn another_script_s_or_agent_s_is_another() {
        let alice = AgentName::parse("alice").unwrap();
        let ids = [
            id_of(Path::new("/s"), &bob(), "1"),
            id_of(Path::new("/t"), &bob(), "1"),
            id_of(Path::new("/s"), &alice, "1"),
            id_of(Path::new("/s"), &bob(), "2"),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[..at].contains(id));
        }
    }

    #[test]
    fn what_was_accepted_or_read_is_marked_there() {
        use Step::{Accepted, Archived, Offered, Offering, Read, Shown, Unread};
        let listed = [message("1", "alice")];
        let check = |steps: &[Step], want: bool| {
            let done = sorted(&listed, &kept(&listed, steps)).done;
            assert_eq!(!done.is_empty(), want, "{steps:?}");
        };
        check(&[], false);
        check(&[Offering, Offered], false);
        check(&[Shown], false);
        check(&[Offering, Offered, Accepted], true);
        check(&[Read], true);
        check(&[Archived], true);
        check(&[Read, Unread], false);
        check(&[Offering, Offered, Accepted, Read, Unread], false);
        check(&[Read, Unread, Accepted], true);
    }

    #[test]
    fn what_cannot_be_asked_for_again_is_not_taken() {
        let long = "x".repeat(1_001);
        for id in ["", "a\0b", "a\nb", long.as_str()] {
            let sorted = sorted(&[message(id, "alice")], &Mail::default());
            assert!(sorted.new.is_empty() && sorted.odd.len() == 1, "{id:?}");
        }
    }
}
