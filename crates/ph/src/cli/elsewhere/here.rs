//! Mail that is in the journal although a script keeps the mail: what came over a session's socket,
//! and answers to a program. It is shown and ordered here; the script knows nothing of it.

use super::script;
use crate::cli::names::SaidId;
use crate::context::Context;
use crate::provider::intake;
use crate::provider::script::Script;
use crate::report::Result;
use posthaste_core::{AgentName, Evidence, Letter};
use posthaste_store::{Journal, Listing};

/// The script that keeps this message; none where it is the journal's.
pub(in crate::cli) fn keeper(context: &Context, id: &SaidId) -> Result<Option<Script>> {
    match script(context)? {
        Some(script) if !is_here(context, id)? => Ok(Some(script)),
        Some(_) | None => Ok(None),
    }
}

/// Whether a message is the journal's own, and no copy of a script's.
pub(in crate::cli) fn is_here(context: &Context, id: &SaidId) -> Result<bool> {
    let Some(letter) = super::copies::letter(context, id)? else {
        return Ok(false);
    };
    Ok(intake::outside_id(&letter).is_none())
}

/// The mail of an agent that is the journal's own.
pub(super) fn mail(context: &Context, name: &AgentName, listing: Listing) -> Result<Vec<Letter>> {
    let home = context.home.clone();
    let Some(mut journal) = Journal::open_existing(home, context.config.patience)? else {
        return Ok(Vec::new());
    };
    let mut letters = journal.inbox(name, listing, context.now)?;
    letters.retain(|letter| letter.message.envelope.from_evidence != Evidence::Provider);
    Ok(letters)
}
