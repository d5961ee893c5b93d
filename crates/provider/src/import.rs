//! A script's mail as facts of ours: each message once, under an id that follows from the script's.
//!
//! Decides what is to be done with what a script lists; does none of it. Mail that was accepted or
//! read here is to be marked there, which needs no memory: what is still listed was not marked.
//!
//! A script may give an id twice, to two messages: what it calls one message is one only if it says
//! the same of it. The second is another, and is kept beside the first. A time says nothing: some
//! make one up at every call, and their mail would multiply.

use posthaste_core::{AgentName, Draft, Evidence, MessageId, MessageState};
use posthaste_wire::provider::Message;
use std::path::Path;

/// What the key of such a message begins with; what it says, its time and the script's id follow.
const KEY: &str = "exec:";
/// How long a script's id may be: it goes on command lines.
const LONGEST: usize = 1_000;
/// Who it is from, where a script's name for them cannot be an agent's.
const SOMEBODY: &str = "unknown";

/// What is to be done with the mail that a script lists.
#[derive(Debug, Default)]
pub struct Sorted {
    /// To be stored.
    pub new: Vec<Draft>,
    /// What is to be marked as read there: our id, and the script's.
    pub done: Vec<(MessageId, String)>,
    /// What cannot be taken in, or not under its id, and why.
    pub odd: Vec<String>,
    /// What is worth a word and costs nothing.
    pub noted: Vec<String>,
}

/// What is known here of a message that a script has.
#[derive(Debug)]
pub enum Found {
    Known(MessageState),
    /// Not kept yet; this would be its id.
    New(MessageId),
    /// The script has given its id to another before; this would be ours.
    Again(MessageId),
    /// Known, and told with another time than before.
    Retimed(MessageState),
}

/// The id under which a script's message is kept here: the same every time.
fn id_of(script: &Path, agent: &AgentName, id: &str) -> MessageId {
    let mut bytes = [0; 16];
    let script = script.as_os_str().as_encoded_bytes();
    hash(
        [script, agent.as_str().as_bytes(), id.as_bytes()],
        &mut bytes,
    );
    MessageId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn hash<const N: usize>(parts: [&[u8]; N], into: &mut [u8]) {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize_xof().fill(into);
}

/// The key of a message: which script says what, when, under which id.
fn key_of(script: &Path, message: &Message) -> String {
    let at = message.created_at.as_nanosecond();
    format!("{KEY}{}:{at}:{}", mark_of(script, message), message.id)
}

/// What a script says, whenever that was.
fn mark_of(script: &Path, message: &Message) -> String {
    let mut mark = [0; 8];
    let said = [&message.from, &message.subject, &message.body].map(String::as_bytes);
    let [from, subject, body] = said;
    let script = script.as_os_str().as_encoded_bytes();
    hash([script, from, subject, body], &mut mark);
    format!("{:016x}", u64::from_be_bytes(mark))
}

/// The id of a message whose script has given its own to another before.
fn again_of(script: &Path, agent: &AgentName, message: &Message) -> MessageId {
    let mark = mark_of(script, message);
    id_of(script, agent, &format!("{KEY}{mark}::{}", message.id))
}

/// A key's parts: what is said, when, under which id.
fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let mut parts = key.strip_prefix(KEY)?.splitn(3, ':');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// Whether this is our copy of a script's message.
pub fn is_copy(message_state: &MessageState) -> bool {
    message_state.message.envelope.from_evidence == Evidence::Provider
}

fn key(message_state: &MessageState) -> Option<&str> {
    let key = message_state.message.envelope.key.as_deref();
    key.filter(|_| is_copy(message_state))
}

/// The script's id of a message that came from one.
pub fn outside_id(message_state: &MessageState) -> Option<&str> {
    let (_, _, id) = parts(key(message_state)?)?;
    Some(id)
}

/// What is known of a message.
pub fn find<E>(
    script: &Path,
    agent: &AgentName,
    message: &Message,
    mut look: impl FnMut(MessageId) -> Result<Option<MessageState>, E>,
) -> Result<Found, E> {
    let first = id_of(script, agent, &message.id);
    let Some(message_state) = look(first)? else {
        return Ok(Found::New(first));
    };
    let mark = mark_of(script, message);
    let is_same = |message_state: &MessageState| {
        let said = key(message_state).and_then(parts).map(|(said, _, _)| said);
        said == Some(&mark)
    };
    let message_state = if is_same(&message_state) {
        message_state
    } else {
        let again = again_of(script, agent, message);
        match look(again)? {
            Some(message_state) => message_state,
            None => return Ok(Found::Again(again)),
        }
    };
    Ok(if key(&message_state) == Some(&key_of(script, message)) {
        Found::Known(message_state)
    } else {
        Found::Retimed(message_state)
    })
}

/// The copy of what a script calls so, whoever it is for. Where the script has given that id to
/// several, the first of them.
pub fn copy_of<E>(
    script: &Path,
    agents: &[AgentName],
    id: &str,
    mut look: impl FnMut(MessageId) -> Result<Option<MessageState>, E>,
) -> Result<Option<MessageState>, E> {
    for agent in agents {
        if let Some(message_state) = look(id_of(script, agent, id))? {
            return Ok(Some(message_state));
        }
    }
    Ok(None)
}

/// Sorts what a script lists for an agent by what is known of it here.
pub fn sort<E>(
    script: &Path,
    agent: &AgentName,
    listed: &[Message],
    mut look: impl FnMut(MessageId) -> Result<Option<MessageState>, E>,
) -> Result<Sorted, E> {
    let mut sorted = Sorted::default();
    for message in listed {
        let shown = posthaste_core::text::one_line(&message.id, 40);
        if let Err(why) = check(&message.id) {
            sorted.odd.push(format!("message '{shown}': {why}"));
            continue;
        }
        let found = match find(script, agent, message, &mut look)? {
            Found::New(id) => match sorted.new.iter().find(|draft| draft.id == id) {
                // The list itself has that id twice.
                Some(draft) if is_of(draft, &mark_of(script, message)) => continue,
                Some(_) => Found::Again(again_of(script, agent, message)),
                None => Found::New(id),
            },
            found => found,
        };
        if let Found::Again(id) = found
            && sorted.new.iter().any(|draft| draft.id == id)
        {
            continue;
        }
        if let Found::Retimed(_) = found {
            sorted.noted.push(format!(
                "message '{shown}' with another time than before; it is taken for the same"
            ));
        }
        match found {
            Found::New(id) => sorted.new.push(draft(script, agent, id, message)),
            Found::Again(id) => {
                sorted.new.push(draft(script, agent, id, message));
                sorted.odd.push(format!(
                    "message '{shown}': another had its id before; both are kept"
                ));
            }
            Found::Known(message_state) | Found::Retimed(message_state) => {
                if is_done(&message_state) {
                    sorted
                        .done
                        .push((message_state.message.id, message.id.clone()));
                }
            }
        }
    }
    Ok(sorted)
}

/// Whether a draft says this.
fn is_of(draft: &Draft, mark: &str) -> bool {
    let said = draft.key.as_deref().and_then(parts);
    said.is_some_and(|(said, _, _)| said == mark)
}

fn check(id: &str) -> Result<(), &'static str> {
    match id {
        "" => Err("it has no id"),
        id if id.len() > LONGEST => Err("its id is too long"),
        id if id.chars().any(char::is_control) => Err("its id has control characters"),
        _ => Ok(()),
    }
}

fn draft(script: &Path, agent: &AgentName, id: MessageId, message: &Message) -> Draft {
    let from = AgentName::parse(&message.from)
        .ok()
        .or_else(|| AgentName::suggestion(&message.from))
        .or_else(|| AgentName::parse(SOMEBODY).ok())
        .unwrap_or_else(AgentName::human);
    let subject = posthaste_core::text::one_line(&message.subject, LONGEST);
    Draft {
        from_evidence: Evidence::Provider,
        subject: Some(subject).filter(|subject| !subject.is_empty()),
        key: Some(key_of(script, message)),
        // Whether somebody may write to itself was for the script to say.
        allow_self: true,
        ..Draft::new(id, from, agent.clone(), message.body.clone())
    }
}

/// Whether its agent has it, by its own word or by reading it, and nobody has taken that back.
fn is_done(message_state: &MessageState) -> bool {
    let last =
        message_state
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
    use posthaste_core::{Fact, Mail, Posting, Step, Timestamp, post};

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
        assert!(again.new.is_empty() && again.done.is_empty() && again.odd.is_empty());
        let messages = kept(&listed, &[]);
        let ids: Vec<_> = messages.all().filter_map(outside_id).collect();
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
    fn an_id_that_is_given_twice_is_two_messages() {
        let first = message("1", "alice");
        let mail = kept(std::slice::from_ref(&first), &[Step::Read]);
        let check = |change: fn(&mut Message)| {
            let mut second = first.clone();
            change(&mut second);
            let sorted = sorted(&[second], &mail);
            assert!(sorted.done.is_empty() && sorted.noted.is_empty());
            assert_eq!((sorted.new.len(), sorted.odd.len()), (1, 1));
            assert!(mail.get(sorted.new[0].id).is_none());
        };
        check(|message| message.body.push('!'));
        check(|message| message.subject.clear());
        check(|message| message.from = "carol".to_owned());
    }

    #[test]
    fn a_time_alone_makes_no_other_message() {
        let first = message("1", "alice");
        let mut other = first.clone();
        other.body.push('!');
        let both = [first.clone(), other.clone()];
        let mail = kept(&both, &[Step::Read]);
        for (mut later, done) in [(first, 1), (other, 0)] {
            for second in 1..4 {
                later.created_at = Timestamp::from_second(second).unwrap();
                let sorted = sorted(std::slice::from_ref(&later), &mail);
                assert!(sorted.new.is_empty() && sorted.odd.is_empty());
                assert_eq!((sorted.noted.len(), sorted.done.len()), (1, done));
            }
        }
        // So it is within one list.
        let [mut first, mut other] = both;
        let once = [first.clone(), other.clone()];
        first.created_at = Timestamp::from_second(1).unwrap();
        other.created_at = Timestamp::from_second(1).unwrap();
        let listed = [once.as_slice(), &[first, other]].concat();
        assert_eq!(sorted(&listed, &Mail::default()).new.len(), 2);
    }

    #[test]
    fn so_it_is_within_one_list() {
        let first = message("1", "alice");
        let mut other = first.clone();
        other.body.push('!');
        let sorted = sorted(&[first.clone(), other, first], &Mail::default());
        assert_eq!((sorted.new.len(), sorted.odd.len()), (2, 1));
        assert_ne!(sorted.new[0].id, sorted.new[1].id);
    }

    #[test]
    fn keys_tell_scripts_apart() {
        let [one, other] = ["/s", "/t"].map(|script| key_of(Path::new(script), &message("1", "a")));
        assert_ne!(one, other);
        assert_eq!(parts(&one).map(|(_, _, id)| id), Some("1"));
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
