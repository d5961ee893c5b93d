//! Why a message is where it is, where a script keeps the mail.

use super::local_copies::{copy, copy_by_id, meant, state};
use crate::cli::names::SaidId;
use crate::context::Context;
use crate::output::message_text::field;
use posthaste_client::session::client::{Client, PROMPT};
use posthaste_core::{AgentName, MessageState, Timestamp};
use posthaste_provider::script::Script;
use posthaste_store::report::Result;
use posthaste_wire::method;
use posthaste_wire::provider::Message;
use serde_json::json;

/// What keeps a message with the script.
struct Held {
    reason: String,
    since: Timestamp,
    evidence: String,
    release: String,
}

/// Says so of what the script alone has; gives back what the journal has, which can say more.
pub(crate) fn why(
    context: &mut Context,
    script: &Script,
    id: &SaidId,
) -> Result<Option<MessageState>> {
    // What is here needs nobody's word.
    if let Some(state) = state(context, id)? {
        return Ok(Some(state));
    }
    let (id, _) = meant(context, id)?;
    let message = match script.get(&id) {
        Ok(message) => message,
        // What is known here of what it calls so needs no word of one that has none.
        Err(trouble) => {
            return match copy_by_id(context, script, &id)? {
                Some(state) => Ok(Some(state)),
                None => Err(trouble.into()),
            };
        }
    };
    if let Some(state) = copy(context, script, &message) {
        return Ok(Some(state));
    }
    let held = held(context, script, &message);
    if context.json {
        let said = |text: &str| (!message.read).then(|| text.to_owned());
        context.out.json(&json!({
            "id": id, "receipt": message.shown().receipt, "held": !message.read,
            "rule": said("script"), "reason": said(&held.reason), "since": held.since,
            "evidence": held.evidence, "release": said(&held.release),
        }))?;
    } else if message.read {
        field(context, "not held", "it is read")?;
    } else {
        let since = context.config.time.show(held.since, context.now);
        field(context, "held", &held.reason)?;
        field(context, "rule", "script")?;
        field(context, "since", &since)?;
        field(context, "release", &held.release)?;
    }
    Ok(None)
}

/// Its session is the one to fetch it: what that says is the reason.
fn held(context: &Context, script: &Script, message: &Message) -> Held {
    let trouble = AgentName::parse(&message.to)
        .ok()
        .and_then(|to| Client::of(&context.home, &to))
        .and_then(|mut session| session.call(&method::Session {}, PROMPT).ok())
        .map(|session| session.mail_trouble);
    let kept = format!("{} keeps it", script.path().display());
    let (reason, since, release) = match trouble {
        None => (
            kept.clone(),
            message.created_at,
            "its agent runs here, or reads it".to_owned(),
        ),
        Some(None) => (
            format!("{kept}; its session has not fetched it yet"),
            message.created_at,
            "its session asks the script the next time (mail.tick)".to_owned(),
        ),
        Some(Some(trouble)) => {
            let next = context.config.time.show(trouble.next, context.now);
            let release = format!("the script answers; it is asked again {next}");
            (trouble.what, trouble.since, release)
        }
    };
    Held {
        reason,
        since,
        evidence: kept,
        release,
    }
}
