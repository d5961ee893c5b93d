//! Mail that is in the journal although a script keeps the mail: what came over a session's socket,
//! answers to a program, and copies of what the script has no more. It is shown and ordered here;
//! the script knows nothing of it.

use super::copies;
use super::script;
use crate::cli::names::SaidId;
use crate::context::Context;
use crate::provider::intake;
use crate::provider::script::Script;
use crate::provider::trouble::Trouble;
use crate::report::{Report, Result};
use posthaste_core::{AgentName, Letter};
use posthaste_store::{Journal, Listing};
use posthaste_wire::provider::Message;

/// A message that a script keeps.
pub(in crate::cli) struct Kept {
    pub(super) script: Script,
    /// What the script says of it, where it was asked already.
    got: Option<Message>,
}

impl Kept {
    pub(super) fn get(&mut self, id: &str) -> std::result::Result<Message, Trouble> {
        match self.got.take() {
            Some(message) => Ok(message),
            None => self.script.get(id),
        }
    }
}

/// Who has a message.
enum Where {
    /// The journal alone: it is its own, or a copy of what the script has no more.
    Here(Letter),
    /// The script, and what it says of it where it was asked.
    There(Option<Message>),
}

/// A message that the script keeps; none where the journal does.
pub(in crate::cli) fn kept(context: &Context, id: &SaidId) -> Result<Option<Kept>> {
    let Some(script) = script(context)? else {
        return Ok(None);
    };
    match look(context, &script, id)? {
        Where::Here(_) => Ok(None),
        Where::There(got) => Ok(Some(Kept { script, got })),
    }
}

/// Whether the journal alone has a message.
pub(in crate::cli) fn is_here(context: &Context, script: &Script, id: &SaidId) -> Result<bool> {
    look(context, script, id).map(|found| matches!(found, Where::Here(_)))
}

/// The script that takes an answer to this message; none where that goes to the journal.
pub(in crate::cli) fn answered_by(context: &Context, id: &SaidId) -> Result<Option<Script>> {
    let Some(script) = script(context)? else {
        return Ok(None);
    };
    match look(context, &script, id)? {
        Where::There(_) => Ok(Some(script)),
        Where::Here(letter) if !intake::is_copy(&letter) => Ok(None),
        // An answer in the journal would not reach who wrote it, and one there would be to another.
        Where::Here(letter) => {
            let (id, from) = (letter.message.id.id8(), &letter.message.envelope.from);
            let script = script.path().display();
            Err(Report::refused(format!(
                "{script} has no message any more that {id} stands for"
            ))
            .hint(format!("'ph send {from}' writes to its sender anew")))
        }
    }
}

/// Looks for a message by any of its ids. By ours, the script is asked whether it still means the
/// same by its own: it may have given that to another since, which must not be taken for it.
fn look(context: &Context, script: &Script, id: &SaidId) -> Result<Where> {
    let Some(letter) = copies::letter(context, id)? else {
        return Ok(Where::There(None));
    };
    let Some(outside) = intake::outside_id(&letter) else {
        return Ok(Where::Here(letter));
    };
    match script.get(outside) {
        Ok(message) => {
            let copy = copies::copy(context, script, &message);
            let is_same = copy.is_some_and(|copy| copy.message.id == letter.message.id);
            Ok(if is_same {
                Where::There(Some(message))
            } else {
                Where::Here(letter)
            })
        }
        Err(trouble) if trouble.is_not_found() => Ok(Where::Here(letter)),
        // One without 'get' is believed.
        Err(trouble) if trouble.is_unknown_op() => Ok(Where::There(None)),
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
