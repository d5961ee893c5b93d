//! Orders that change messages without writing one: archive, cancel, delete, mark.

use super::local_copies::{Copies, apply_order};
use super::{Located, Mailbox, ScriptMessage, cannot};
use crate::cli::prelude::*;
use posthaste_core::Order;
use posthaste_provider::script::Script;
use posthaste_store::operation::OrderEffect;
use posthaste_wire::provider::{Message, Op};

/// The outcome of an order on one message.
struct OrderOutcome {
    id: String,
    shown_id: String,
    outcome: OrderEffect,
}

#[derive(Serialize)]
struct OrderOutcomeJson<'a> {
    id: &'a str,
    outcome: &'static str,
    changed: bool,
}

impl Mailbox {
    /// Apply an order, and print each outcome. The journal changes all of the messages or none. A
    /// script cannot, so what it has changed before it failed is printed.
    pub(crate) fn order(
        &self,
        context: &mut Context,
        order: Order,
        ids: &[TypedId],
    ) -> Result<Code> {
        if let Self::Script(script) = self {
            let (mut in_script, mut is_in_journal) = (Vec::new(), false);
            for id in ids {
                match self.find(context, id)? {
                    Located::Script(message) => in_script.push(message),
                    Located::Journal(..) => is_in_journal = true,
                }
            }
            if !is_in_journal {
                let mut ordered = Vec::new();
                let result = order_in_script(context, script, order, in_script, &mut ordered);
                print(context, order, &ordered)?;
                return result.map(|()| Code::Ok);
            }
            if !in_script.is_empty() {
                return Err(Report::usage(
                    "some of these messages are in the journal, others are kept by a script",
                )
                .hint(
                    "use one command for each kind; 'ph show ID' finds messages in the journal",
                ));
            }
        }
        let prefixes = ids.iter().map(TypedId::prefix);
        let prefixes = prefixes.collect::<Result<Vec<_>>>()?;
        let mut journal = context.reader()?;
        let mut ids = Vec::with_capacity(prefixes.len());
        for prefix in &prefixes {
            let id = context.find(journal.as_mut(), prefix)?.message.id;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let Some(mut journal) = journal else {
            return Ok(Code::Ok);
        };
        let ordered = mail::order(&mut journal, context.now, context.me()?.0, order, ids)?;
        let ordered = ordered.iter().map(|one| OrderOutcome {
            id: one.message.id.to_string(),
            shown_id: one.message.id.id8(),
            outcome: one.outcome,
        });
        let ordered: Vec<_> = ordered.collect();
        print(context, order, &ordered)?;
        mail::leave(journal);
        Ok(Code::Ok)
    }
}

fn order_in_script(
    context: &Context,
    script: &Script,
    order: Order,
    messages: Vec<ScriptMessage<'_>>,
    ordered: &mut Vec<OrderOutcome>,
) -> Result<()> {
    let op = match order {
        Order::MarkRead => Op::MarkRead,
        Order::MarkUnread => Op::MarkUnread,
        Order::Archive => Op::Archive,
        Order::Delete => Op::Delete,
        Order::Cancel => return Err(cannot(script, "cancel a message")),
        Order::Show | Order::Expire => return Err(cannot(script, "record that")),
    };
    for mut found in messages {
        let message = check_owner(context, &mut found, op)?;
        let copy = found.copy.take();
        let find = || Copies::open(context, script).find(&message?);
        let copy = copy.or_else(|| find().map(Box::new));
        let outcome = match script.order(op, &found.id) {
            Ok(()) => OrderEffect::Changed,
            Err(error) if error.is_already_archived() => OrderEffect::AlreadyArchived,
            Err(error) => return Err(error.into()),
        };
        if let Some(state) = copy {
            apply_order(context, &state, order);
        }
        ordered.push(OrderOutcome {
            shown_id: text::one_line(&found.id, usize::MAX),
            id: found.id,
            outcome,
        });
    }
    Ok(())
}

/// Refuse an agent's order on the mail of another agent, as the journal does. Return the message,
/// if the script has told it.
fn check_owner(
    context: &Context,
    found: &mut ScriptMessage<'_>,
    op: Op,
) -> Result<Option<Message>> {
    let (me, _) = context.me()?;
    match found.get() {
        Ok(message) if !me.is_human() && message.to != me.as_str() => {
            Err(Report::refused(format!(
                "{me} cannot {op} a message that belongs to {}",
                text::one_line(&message.to, 80)
            )))
        }
        Ok(message) => Ok(Some(message)),
        // Without 'get' the script itself has to check.
        Err(error) if error.is_unknown_op() || me.is_human() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn print(context: &mut Context, order: Order, ordered: &[OrderOutcome]) -> Result<()> {
    if context.json && !ordered.is_empty() {
        let ordered = ordered.iter().map(|one| OrderOutcomeJson {
            id: &one.id,
            outcome: word(order, one.outcome),
            changed: one.outcome == OrderEffect::Changed,
        });
        let ordered: Vec<_> = ordered.collect();
        context.out.json(&ordered)?;
    } else if !context.json {
        for one in ordered {
            let line = format!("{} {}", one.shown_id, word(order, one.outcome));
            context.out.line(line)?;
        }
    }
    context.out.flush()
}

/// Name an outcome.
fn word(order: Order, outcome: OrderEffect) -> &'static str {
    match (order, outcome) {
        (Order::Archive, OrderEffect::AlreadyArchived) => "already archived",
        (Order::Archive, _) => "archived",
        (Order::Delete, _) => "deleted",
        (Order::Cancel, OrderEffect::Changed) => "cancelled",
        (Order::Cancel, _) => "already cancelled",
        (Order::MarkRead, OrderEffect::Changed) => "marked as read",
        (Order::MarkRead, _) => "already read",
        (Order::MarkUnread, OrderEffect::Changed) => "marked as unread",
        (Order::MarkUnread, _) => "already unread",
        (Order::Show, _) => "shown",
        (Order::Expire, _) => "expired",
    }
}
