//! Fixtures for the tests of delivery: messages, deliveries in every state, and timed events.

mod due;
mod hook;
mod http;
mod interrupts;
mod loop_prompt;
mod offers;
mod proof;
mod properties;
mod reminders;
mod screen;

pub(super) use properties::every_wait_has_a_reason;

use super::*;
use crate::activity::tests::ms;
use crate::id::MessageId;
use crate::mail::tests::{message, with_steps};
use crate::priority::Priority;
use crate::receipt::Step;
use crate::session::Ending;
use uuid::Uuid;

const PATH: usize = 80;

pub(crate) fn id(n: u128) -> MessageId {
    MessageId(Uuid::from_u128(n))
}

pub(crate) fn mail(n: u128, priority: Priority) -> MessageState {
    let mut message = message(n, "alice", "bob");
    message.envelope.priority = priority;
    with_steps(&message, &[])
}

/// Return a message whose short id is unique.
pub(super) fn distinct_mail(n: u128, priority: Priority) -> MessageState {
    mail(n << 96, priority)
}

/// Return the ids of messages from [`distinct_mail`].
pub(super) fn distinct_ids(all: &[u128]) -> Vec<MessageId> {
    all.iter().map(|n| id(n << 96)).collect()
}

pub(super) fn direct_recorded(number: u64, all: &[u128]) -> DeliveryEvent {
    let ids = distinct_ids(all);
    DeliveryEvent::DirectRecorded { number, ids }
}

pub(super) fn raw(n: u128) -> MessageState {
    let mut raw = mail(n, Priority::Interrupt);
    raw.message.envelope.raw = true;
    raw.message.created_at = ms(3_000).wall;
    raw
}

pub(super) fn starting() -> Delivery {
    Delivery::new(DeliveryConfig::generic(PATH), ms(0))
}

/// Return a delivery whose agent has been idle since 2 s.
fn idle() -> Delivery {
    idle_at(starting())
}

/// Make the agent of a new delivery idle since 2 s.
pub(super) fn idle_at(mut delivery: Delivery) -> Delivery {
    delivery.on(ms(0), DeliveryEvent::Output);
    delivery.on(ms(2_000), DeliveryEvent::Tick);
    delivery
}

fn after(mut delivery: Delivery, events: &[DeliveryEvent]) -> Delivery {
    for event in events {
        delivery.on(ms(3_000), event.clone());
    }
    delivery
}

fn working() -> Delivery {
    after(idle(), &[DeliveryEvent::Output])
}

fn blocked() -> Delivery {
    after(working(), &[dialog("Run rm?")])
}

fn paused() -> Delivery {
    after(idle(), &[DeliveryEvent::Paused(PausedBy::Viewer)])
}

fn drafting() -> Delivery {
    after(idle(), &[DeliveryEvent::DraftTyped])
}

fn exited() -> Delivery {
    after(idle(), &[DeliveryEvent::Exited(Ending::Exit(0))])
}

fn dialog(what: &str) -> DeliveryEvent {
    DeliveryEvent::DialogChanged(Some(what.to_owned()))
}

pub(super) fn rule(hold: Option<crate::why::Hold>) -> &'static str {
    hold.map_or("-", |hold| hold.rule)
}

/// An event, the millisecond at which it happens, and the effects that must follow.
pub(super) type Line<'a> = (u64, Call<'a>, &'a str);

pub(super) enum Call<'a> {
    On(DeliveryEvent),
    Act(&'a [MessageState]),
    Remind(&'a [MessageState]),
}

fn summary(effects: &[Effect]) -> String {
    let list = |ids: &[MessageId]| {
        // Ids from `distinct_ids` differ only in their first digits.
        let number = |id: &MessageId| match id.0.as_u128() {
            high if high >> 96 > 0 => high >> 96,
            low => low,
        };
        let ids: Vec<_> = ids.iter().map(|id| number(id).to_string()).collect();
        ids.join(",")
    };
    let words = effects.iter().map(|effect| match effect {
        Effect::Key(key) => format!("key {key:?}"),
        Effect::Clear(key) => format!("clear {key:?}"),
        Effect::Abort => "abort".to_owned(),
        Effect::Continue => "continue".to_owned(),
        Effect::OfferByApi { ids, .. } => format!("offer by API {}", list(ids)),
        Effect::Offer { ids } => format!("offer {}", list(ids)),
        Effect::Write { ids } => format!("write {}", list(ids)),
        Effect::Enter => "enter".to_owned(),
        Effect::Look => "look".to_owned(),
        Effect::Resume => "resume".to_owned(),
        Effect::Offered { ids, .. } => format!("offered {}", list(ids)),
        Effect::SendDirect { ids, .. } => format!("send {}", list(ids)),
        Effect::Accepted { ids, .. } => format!("accepted {}", list(ids)),
        Effect::Withdraw { ids, .. } => format!("withdraw {}", list(ids)),
        Effect::Uncertain { ids, .. } => format!("uncertain {}", list(ids)),
        Effect::Remind { ids } => format!("remind {}", list(ids)),
        Effect::WriteReminder { ids } => format!("write reminder {}", list(ids)),
        Effect::Fail { ids, .. } => format!("fail {}", list(ids)),
    });
    words.collect::<Vec<_>>().join("; ")
}

pub(super) fn play(mut delivery: Delivery, lines: &[Line<'_>]) -> Delivery {
    for (at, doing, want) in lines {
        let (what, effects) = match doing {
            Call::On(event) => (format!("{event:?}"), delivery.on(ms(*at), event.clone())),
            Call::Act(pending) => ("act".to_owned(), delivery.act(ms(*at), pending)),
            Call::Remind(owed) => ("remind".to_owned(), delivery.remind(ms(*at), owed)),
        };
        assert_eq!(summary(&effects), *want, "{what} at {at}");
    }
    delivery
}

pub(super) fn recorded(ids: &[u128]) -> Call<'static> {
    Call::On(DeliveryEvent::Recorded(
        ids.iter().map(|n| id(*n)).collect(),
    ))
}

pub(super) fn owed(n: u128, reminded: usize) -> MessageState {
    let mut message = message(n, "alice", "bob");
    message.envelope.expects_reply = true;
    let steps = [&[Step::Offered][..], &vec![Step::Reminded; reminded]].concat();
    with_steps(&message, &steps)
}
