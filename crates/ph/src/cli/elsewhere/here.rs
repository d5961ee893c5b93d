//! Mail that is in the journal although a script keeps the mail: what came over a session's socket,
//! answers to a program, and copies of what the script has no more. It is shown and ordered here;
//! the script knows nothing of it.

use super::copies;
use super::script;
use crate::cli::names::SaidId;
use crate::context::Context;
use crate::provider::intake;
use crate::provider::script::Script;
use crate::report::{Report, Result};
use posthaste_core::{AgentName, Letter};
use posthaste_store::{Journal, Listing};

/// The script that keeps this message; none where the journal does.
pub(in crate::cli) fn keeper(context: &Context, id: &SaidId) -> Result<Option<Script>> {
    match script(context)? {
        Some(script) if !is_here(context, &script, id)? => Ok(Some(script)),
        Some(_) | None => Ok(None),
    }
}

/// The script that takes an answer to this message; none where that goes to the journal.
pub(in crate::cli) fn answered_by(context: &Context, id: &SaidId) -> Result<Option<Script>> {
    let Some(script) = script(context)? else {
        return Ok(None);
    };
    match copies::letter(context, id)? {
        Some(letter) if is_own(&letter) => Ok(None),
        // An answer in the journal would not reach who wrote it, and one there would be to another.
        Some(letter) if is_orphan(context, &script, &letter)? => {
            let (id, from) = (letter.message.id.id8(), &letter.message.envelope.from);
            let script = script.path().display();
            Err(Report::refused(format!(
                "{script} has no message any more that {id} stands for"
            ))
            .hint(format!("'ph send {from}' writes to its sender anew")))
        }
        Some(_) | None => Ok(Some(script)),
    }
}

/// Whether the journal alone has a message: its own, or a copy of what the script has no more.
pub(in crate::cli) fn is_here(context: &Context, script: &Script, id: &SaidId) -> Result<bool> {
    match copies::letter(context, id)? {
        Some(letter) => Ok(is_own(&letter) || is_orphan(context, script, &letter)?),
        None => Ok(false),
    }
}

/// Whether a message is the journal's own, and no copy of a script's.
pub(super) fn is_own(letter: &Letter) -> bool {
    intake::outside_id(letter).is_none()
}

/// Whether a copy is all that there is of a message: the script has dropped it, or has given its id
/// to another since, which must not be taken for it.
pub(super) fn is_orphan(context: &Context, script: &Script, letter: &Letter) -> Result<bool> {
    let Some(outside) = intake::outside_id(letter) else {
        return Ok(false);
    };
    match script.get(outside) {
        Ok(message) => {
            let copy = copies::copy(context, script, &message);
            Ok(copy.is_none_or(|copy| copy.message.id != letter.message.id))
        }
        Err(trouble) if trouble.is_not_found() => Ok(true),
        // One without 'get' is believed.
        Err(trouble) if trouble.is_unknown_op() => Ok(false),
        Err(trouble) => Err(trouble.into()),
    }
}

/// The mail of an agent that is the journal's own.
pub(super) fn mail(context: &Context, name: &AgentName, listing: Listing) -> Result<Vec<Letter>> {
    let home = context.home.clone();
    let Some(mut journal) = Journal::open_existing(home, context.config.patience)? else {
        return Ok(Vec::new());
    };
    let mut letters = journal.inbox(name, listing, context.now)?;
    letters.retain(|letter| !intake::is_copy(letter));
    Ok(letters)
}
