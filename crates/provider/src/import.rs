//! Plans the import of a script's mail: each message once, under an id that is derived from the
//! script, the agent and the script's id.
//!
//! Decides only; the caller stores drafts and marks messages in the script. Two messages with one
//! id are the same message if sender, subject and body are equal, because scripts reuse ids. Times
//! are not compared, because some scripts invent one for each call.

use posthaste_core::{AgentName, Draft, Evidence, MessageId, MessageState};
use posthaste_wire::provider::Message;
use std::path::Path;

/// Start of the key of an imported message. A hash of the content, the time and the script's id
/// follow.
const KEY_PREFIX: &str = "exec:";
/// Maximum length of a script's id, which is an argument of commands.
const MAX_ID_BYTES: usize = 1_000;
/// Sender of a message whose sender's name cannot become an agent's name.
const UNKNOWN_SENDER: &str = "unknown";

/// Actions for the mail that a script lists.
#[derive(Debug, Default)]
pub struct ImportPlan {
    /// Messages to store.
    pub new: Vec<Draft>,
    /// Messages to mark as read in the script: our id, and the script's. They were accepted or read
    /// here, and the script still lists them.
    pub mark_read: Vec<(MessageId, String)>,
    /// Messages that cannot be imported, or not under their id, and why.
    pub rejected: Vec<String>,
    /// Remarks about imported messages.
    pub notes: Vec<String>,
}

/// How far a script's message is imported.
#[derive(Debug)]
pub enum ImportState {
    Known(MessageState),
    /// Not imported. Its id would be this.
    New(MessageId),
    /// Not imported, and its script's id belongs to an earlier message. Its id would be this.
    IdReused(MessageId),
    /// Imported, with another time.
    TimeChanged(MessageState),
}

/// Derive our id of a script's message.
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

/// Return the key of an imported message.
fn key_of(script: &Path, message: &Message) -> String {
    let at = message.created_at.as_nanosecond();
    format!(
        "{KEY_PREFIX}{}:{at}:{}",
        content_hash(script, message),
        message.id
    )
}

/// Hash the script, the sender, the subject and the body.
fn content_hash(script: &Path, message: &Message) -> String {
    let mut mark = [0; 8];
    let [from, subject, body] =
        [&message.from, &message.subject, &message.body].map(String::as_bytes);
    let script = script.as_os_str().as_encoded_bytes();
    hash([script, from, subject, body], &mut mark);
    format!("{:016x}", u64::from_be_bytes(mark))
}

/// Derive our id of a message whose script's id belongs to an earlier message.
fn reused_id(script: &Path, agent: &AgentName, message: &Message) -> MessageId {
    let mark = content_hash(script, message);
    id_of(
        script,
        agent,
        &format!("{KEY_PREFIX}{mark}::{}", message.id),
    )
}

/// Split a key into the content's hash, the time and the script's id.
fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let mut parts = key.strip_prefix(KEY_PREFIX)?.splitn(3, ':');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// Return whether a message is the copy of a script's message.
pub fn is_copy(message_state: &MessageState) -> bool {
    message_state.message.envelope.from_evidence == Evidence::Provider
}

fn key(message_state: &MessageState) -> Option<&str> {
    let key = message_state.message.envelope.key.as_deref();
    key.filter(|_| is_copy(message_state))
}

/// Return the script's id of a copy.
pub fn outside_id(message_state: &MessageState) -> Option<&str> {
    let (_, _, id) = parts(key(message_state)?)?;
    Some(id)
}

/// Look up a script's message.
pub fn find<E>(
    script: &Path,
    agent: &AgentName,
    message: &Message,
    mut look: impl FnMut(MessageId) -> Result<Option<MessageState>, E>,
) -> Result<ImportState, E> {
    let first = id_of(script, agent, &message.id);
    let Some(message_state) = look(first)? else {
        return Ok(ImportState::New(first));
    };
    let mark = content_hash(script, message);
    let is_same = |message_state: &MessageState| {
        let stored = key(message_state).and_then(parts);
        stored.is_some_and(|(stored, _, _)| stored == mark)
    };
    let message_state = if is_same(&message_state) {
        message_state
    } else {
        let again = reused_id(script, agent, message);
        match look(again)? {
            Some(message_state) => message_state,
            None => return Ok(ImportState::IdReused(again)),
        }
    };
    Ok(if key(&message_state) == Some(&key_of(script, message)) {
        ImportState::Known(message_state)
    } else {
        ImportState::TimeChanged(message_state)
    })
}

/// Find a copy by the script's id, for any agent. If the script has reused the id, return the first
/// message that had it.
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

/// Plan the import of the messages that a script lists for an agent.
pub fn plan<E>(
    script: &Path,
    agent: &AgentName,
    listed: &[Message],
    mut look: impl FnMut(MessageId) -> Result<Option<MessageState>, E>,
) -> Result<ImportPlan, E> {
    let mut plan = ImportPlan::default();
    for message in listed {
        let shown = posthaste_core::text::one_line(&message.id, 40);
        if let Err(why) = check(&message.id) {
            plan.rejected.push(format!("message '{shown}': {why}"));
            continue;
        }
        let found = match find(script, agent, message, &mut look)? {
            ImportState::New(id) => match plan.new.iter().find(|draft| draft.id == id) {
                // The list contains this id twice.
                Some(draft) if is_of(draft, &content_hash(script, message)) => continue,
                Some(_) => ImportState::IdReused(reused_id(script, agent, message)),
                None => ImportState::New(id),
            },
            found => found,
        };
        if let ImportState::IdReused(id) = found
            && plan.new.iter().any(|draft| draft.id == id)
        {
            continue;
        }
        if let ImportState::TimeChanged(_) = found {
            plan.notes.push(format!(
                "message '{shown}' changed its time; treated as the same message"
            ));
        }
        match found {
            ImportState::New(id) => plan.new.push(draft(script, agent, id, message)),
            ImportState::IdReused(id) => {
                plan.new.push(draft(script, agent, id, message));
                plan.rejected.push(format!(
                    "message '{shown}': its id was used by an earlier message; both are kept"
                ));
            }
            ImportState::Known(message_state) | ImportState::TimeChanged(message_state) => {
                if is_done(&message_state) {
                    plan.mark_read
                        .push((message_state.message.id, message.id.clone()));
                }
            }
        }
    }
    Ok(plan)
}

/// Return whether a draft has this content.
fn is_of(draft: &Draft, mark: &str) -> bool {
    let own = draft.key.as_deref().and_then(parts);
    own.is_some_and(|(own, _, _)| own == mark)
}

fn check(id: &str) -> Result<(), &'static str> {
    match id {
        "" => Err("it has no id"),
        id if id.len() > MAX_ID_BYTES => Err("its id is too long"),
        id if id.chars().any(char::is_control) => Err("its id has control characters"),
        _ => Ok(()),
    }
}

fn draft(script: &Path, agent: &AgentName, id: MessageId, message: &Message) -> Draft {
    let from = AgentName::parse(&message.from)
        .ok()
        .or_else(|| AgentName::suggestion(&message.from))
        .or_else(|| AgentName::parse(UNKNOWN_SENDER).ok())
        .unwrap_or_else(AgentName::human);
    let subject = posthaste_core::text::one_line(&message.subject, MAX_ID_BYTES);
    Draft {
        from_evidence: Evidence::Provider,
        subject: Some(subject).filter(|subject| !subject.is_empty()),
        key: Some(key_of(script, message)),
        // The script has decided whether a message to oneself is allowed.
        allow_self: true,
        ..Draft::new(id, from, agent.clone(), message.body.clone())
    }
}

/// Return whether the agent has accepted or read the message, and nobody has marked it as unread
/// since.
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

    fn planned(listed: &[Message], known: &Mail) -> ImportPlan {
        let look = |id| Ok::<_, ()>(known.get(id).cloned());
        plan(Path::new("/s"), &bob(), listed, look).unwrap()
    }

    /// Import messages, and apply steps to the first.
    fn kept(listed: &[Message], steps: &[Step]) -> Mail {
        let mut mail = Mail::default();
        let at = Timestamp::UNIX_EPOCH;
        for draft in planned(listed, &Mail::default()).new {
            let Ok(Posting::New { envelope, .. }) =
                post::decide(at, &draft, &post::Correspondence::default())
            else {
                panic!("the message is new")
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
    fn a_new_message_is_imported_once() {
        let listed = [
            message("1", "alice"),
            message("-2", "The Boss!"),
            message("3", ""),
        ];
        let new = planned(&listed, &Mail::default()).new;
        let names: Vec<_> = new.iter().map(|draft| draft.from.as_str()).collect();
        assert_eq!(names, ["alice", "the-boss", "unknown"]);
        assert_eq!(new[0].subject.as_deref(), Some("a b"));
        let again = planned(&listed, &kept(&listed, &[]));
        assert!(again.new.is_empty() && again.mark_read.is_empty() && again.rejected.is_empty());
        let messages = kept(&listed, &[]);
        let ids: Vec<_> = messages.all().filter_map(outside_id).collect();
        assert_eq!(ids, ["1", "-2", "3"]);
    }

    #[test]
    fn ids_differ_by_script_agent_and_id() {
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
    fn a_reused_id_is_another_message() {
        let first = message("1", "alice");
        let mail = kept(std::slice::from_ref(&first), &[Step::Read]);
        let check = |change: fn(&mut Message)| {
            let mut second = first.clone();
            change(&mut second);
            let plan = planned(&[second], &mail);
            assert!(plan.mark_read.is_empty() && plan.notes.is_empty());
            assert_eq!((plan.new.len(), plan.rejected.len()), (1, 1));
            assert!(mail.get(plan.new[0].id).is_none());
        };
        check(|message| message.body.push('!'));
        check(|message| message.subject.clear());
        check(|message| message.from = "carol".to_owned());
    }

    #[test]
    fn another_time_is_the_same_message() {
        let first = message("1", "alice");
        let mut other = first.clone();
        other.body.push('!');
        let both = [first.clone(), other.clone()];
        let mail = kept(&both, &[Step::Read]);
        for (mut later, done) in [(first, 1), (other, 0)] {
            for second in 1..4 {
                later.created_at = Timestamp::from_second(second).unwrap();
                let plan = planned(std::slice::from_ref(&later), &mail);
                assert!(plan.new.is_empty() && plan.rejected.is_empty());
                assert_eq!((plan.notes.len(), plan.mark_read.len()), (1, done));
            }
        }
        // Within one list, such a message is stored once too.
        let [mut first, mut other] = both;
        let once = [first.clone(), other.clone()];
        first.created_at = Timestamp::from_second(1).unwrap();
        other.created_at = Timestamp::from_second(1).unwrap();
        let listed = [once.as_slice(), &[first, other]].concat();
        assert_eq!(planned(&listed, &Mail::default()).new.len(), 2);
    }

    #[test]
    fn a_reused_id_within_one_list_is_another_message() {
        let first = message("1", "alice");
        let mut other = first.clone();
        other.body.push('!');
        let plan = planned(&[first.clone(), other, first], &Mail::default());
        assert_eq!((plan.new.len(), plan.rejected.len()), (2, 1));
        assert_ne!(plan.new[0].id, plan.new[1].id);
    }

    #[test]
    fn keys_differ_by_script() {
        let [one, other] = ["/s", "/t"].map(|script| key_of(Path::new(script), &message("1", "a")));
        assert_ne!(one, other);
        assert_eq!(parts(&one).map(|(_, _, id)| id), Some("1"));
    }

    #[test]
    fn accepted_and_read_messages_are_marked_in_the_script() {
        use Step::{Accepted, Archived, Offered, Offering, Read, Shown, Unread};
        let listed = [message("1", "alice")];
        let check = |steps: &[Step], want: bool| {
            let done = planned(&listed, &kept(&listed, steps)).mark_read;
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
    fn a_message_with_an_invalid_id_is_rejected() {
        let long = "x".repeat(1_001);
        for id in ["", "a\0b", "a\nb", long.as_str()] {
            let plan = planned(&[message(id, "alice")], &Mail::default());
            assert!(plan.new.is_empty() && plan.rejected.len() == 1, "{id:?}");
        }
    }
}
