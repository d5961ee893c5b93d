//! Orders on messages that a script keeps: given to it, and followed by our copies.

use super::cannot;
use super::local_copies::{copy, follow, meant};
use crate::cli::names::SaidId;
use crate::context::Context;
use posthaste_core::{Order, text};
use posthaste_provider::script::Script;
use posthaste_store::operation::Outcome;
use posthaste_store::report::{Code, Report, Result};
use posthaste_wire::provider::{Message, Op};

/// Carries one order out on each of these messages, and says of each what became of it.
pub(crate) fn order(
    context: &mut Context,
    script: &Script,
    order: Order,
    ids: &[SaidId],
    word: impl Fn(Outcome) -> &'static str,
) -> Result<Code> {
    let op = match order {
        Order::MarkRead => Op::MarkRead,
        Order::MarkUnread => Op::MarkUnread,
        Order::Archive => Op::Archive,
        Order::Delete => Op::Delete,
        Order::Cancel => return Err(cannot(script, "call a message back")),
        Order::Show | Order::Expire => return Err(cannot(script, "record that")),
    };
    let mut outcomes = Vec::with_capacity(ids.len());
    let failed = ids.iter().try_for_each(|said| {
        let (id, local) = meant(context, said)?;
        let there = may(context, script, &id, op)?;
        let local = local.or_else(|| copy(context, script, &there?));
        let outcome = match script.order(op, &id) {
            Ok(()) => Outcome::Changed,
            Err(trouble) if trouble.is_already_archived() => Outcome::AlreadyArchived,
            Err(trouble) => return Err(trouble.into()),
        };
        if let Some(state) = local {
            follow(context, &state, order);
        }
        outcomes.push((id, outcome));
        Ok(())
    });
    // A script cannot do all or none: what was done is told.
    print_outcomes(context, &outcomes, word)?;
    failed.map(|()| Code::Ok)
}

/// As in the journal: an agent does with its own mail as it likes, and the person with all. Gives
/// back the message, where the script tells.
fn may(context: &Context, script: &Script, id: &str, op: Op) -> Result<Option<Message>> {
    let (me, _) = context.me()?;
    match script.get(id) {
        Ok(message) if !me.is_human() && message.to != me.as_str() => {
            Err(Report::refused(format!(
                "{me} cannot {op} a message that belongs to {}",
                text::one_line(&message.to, 80)
            )))
        }
        Ok(message) => Ok(Some(message)),
        // One without 'get' has to know by itself.
        Err(trouble) if trouble.is_unknown_op() || me.is_human() => Ok(None),
        Err(trouble) => Err(trouble.into()),
    }
}

fn print_outcomes(
    context: &mut Context,
    outcomes: &[(String, Outcome)],
    word: impl Fn(Outcome) -> &'static str,
) -> Result<()> {
    if context.json && !outcomes.is_empty() {
        let answers = outcomes.iter().map(|(id, outcome)| {
            let changed = *outcome == Outcome::Changed;
            serde_json::json!({ "id": id, "outcome": word(*outcome), "changed": changed })
        });
        let answers: Vec<_> = answers.collect();
        context.out.json(&answers)?;
    } else if !context.json {
        for (id, outcome) in outcomes {
            let id = text::one_line(id, usize::MAX);
            context.out.line(format!("{id} {}", word(*outcome)))?;
        }
    }
    context.out.flush()
}
