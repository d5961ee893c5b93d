//! The reason why a script's message has not reached its agent.

use super::local_copies::{self, Copies};
use super::{Located, Mailbox};
use crate::cli::prelude::*;
use posthaste_client::session::client::{Client, FALLBACK_TIMEOUT};
use posthaste_core::{MessageState, Timestamp};
use posthaste_provider::script::Script;
use posthaste_wire::provider::Message;
use serde_json::json;

/// Return the message if the journal has it, because the journal knows the reason. Otherwise print
/// the reason of the script's message.
pub(crate) fn explain(
    context: &mut Context,
    mailbox: &Mailbox,
    id: &TypedId,
) -> Result<Option<MessageState>> {
    let Mailbox::Script(script) = mailbox else {
        return match mailbox.find(context, id)? {
            Located::Journal(_, state) => Ok(Some(*state)),
            Located::Script(_) => Ok(None),
        };
    };
    let script_id = id.for_script()?;
    if let Some((_, state)) = local_copies::find(context, id)? {
        return Ok(Some(state));
    }
    let message = match script.get(script_id) {
        Ok(message) => message,
        // The copy has an answer even if the script has none.
        Err(error) => {
            return match local_copies::find_by_script_id(context, script, script_id)? {
                Some(state) => Ok(Some(state)),
                None => Err(error.into()),
            };
        }
    };
    if let Some(state) = Copies::open(context, script).find(&message) {
        return Ok(Some(state));
    }
    print(context, script, script_id, &message)?;
    Ok(None)
}

fn print(context: &mut Context, script: &Script, id: &str, message: &Message) -> Result<()> {
    let hold = hold(context, script, message);
    if context.json {
        let if_held = |text: &str| (!message.read).then(|| text.to_owned());
        return context.out.json(&json!({
            "id": id, "receipt": message.shown().receipt, "held": !message.read,
            "rule": if_held("script"), "reason": if_held(&hold.reason), "since": hold.since,
            "evidence": hold.evidence, "release": if_held(&hold.release),
        }));
    }
    if message.read {
        return fields(context, [("not held", Some("it is read".to_owned()))]);
    }
    let since = context.shown_time(hold.since);
    let lines = [
        ("held", hold.reason),
        ("rule", "script".to_owned()),
        ("since", since),
        ("release", hold.release),
    ];
    fields(context, lines.map(|(name, value)| (name, Some(value))))
}

/// The reason why a message is still with the script.
struct ScriptHold {
    reason: String,
    since: Timestamp,
    evidence: String,
    release: String,
}

/// Ask the recipient's session, which imports the message, for its last error.
fn hold(context: &Context, script: &Script, message: &Message) -> ScriptHold {
    let trouble = AgentName::parse(&message.to)
        .ok()
        .and_then(|to| Client::connect_to(&context.home, &to))
        .and_then(|mut session| session.call(&method::Session {}, FALLBACK_TIMEOUT).ok())
        .map(|session| session.mail_trouble);
    let evidence = format!("{} keeps it", script.path().display());
    let (reason, since, release) = match trouble {
        None => (
            evidence.clone(),
            message.created_at,
            "its session starts, or the agent reads it".to_owned(),
        ),
        Some(None) => (
            format!("{evidence}; its session has not fetched it yet"),
            message.created_at,
            "the session's next request to the script (mail.tick)".to_owned(),
        ),
        Some(Some(trouble)) => {
            let next = context.shown_time(trouble.next);
            let release = format!("the script answers; it is asked again {next}");
            (trouble.what, trouble.since, release)
        }
    };
    ScriptHold {
        reason,
        since,
        evidence,
        release,
    }
}
