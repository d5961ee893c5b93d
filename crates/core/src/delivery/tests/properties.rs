//! Properties of random runs: no offer is lost, doubled or made at a forbidden moment, and every wait
//! has a reason.

use super::*;
use crate::delivery::terminal::State;
use proptest::prelude::*;

fn priorities() -> impl Strategy<Value = Vec<Priority>> {
    let priority = proptest::sample::select(&Priority::ALL[..]);
    proptest::collection::vec(priority, 0..40)
}

/// Return messages in the order of the journal.
fn in_order(priorities: &[Priority]) -> Vec<MessageState> {
    let mut all: Vec<_> = (1..).zip(priorities).collect();
    all.sort_by_key(|(n, priority)| match priority {
        Priority::IdleFirst => (**priority, -*n),
        Priority::Interrupt | Priority::Normal | Priority::Idle => (**priority, *n),
    });
    let messages = all.iter().map(|(n, priority)| mail(*n as u128, **priority));
    messages.collect()
}

fn random_event() -> impl Strategy<Value = Option<DeliveryEvent>> {
    let who = proptest::sample::select(&[PausedBy::Viewer, PausedBy::Request][..]);
    prop_oneof![
        6 => Just(None),
        3 => Just(Some(DeliveryEvent::Tick)),
        3 => Just(Some(DeliveryEvent::Output)),
        1 => proptest::option::of(Just("Run rm?".to_owned())).prop_map(|d| Some(DeliveryEvent::DialogChanged(d))),
        1 => who.clone().prop_map(|by| Some(DeliveryEvent::Paused(by))),
        1 => who.prop_map(|by| Some(DeliveryEvent::Unpaused(by))),
        1 => Just(Some(DeliveryEvent::DraftTyped)),
        1 => Just(Some(DeliveryEvent::DraftEnded)),
        1 => any::<bool>().prop_map(|on| Some(DeliveryEvent::PasteMode(on))),
        1 => Just(Some(DeliveryEvent::WriteFailed("EIO".into()))),
        1 => Just(Some(DeliveryEvent::NotRecorded("full".into()))),
    ]
}

proptest! {
    #[test]
    fn an_idle_agent_gets_everything_in_order(priorities in priorities(), paste: bool) {
        let mut pending = in_order(&priorities);
        let want: Vec<_> = pending.iter().map(|mail| mail.message.id).collect();
        let delivery = after(idle(), &[DeliveryEvent::PasteMode(paste)]);
        let mut got = Vec::new();
        while let Decision::Offer { ids, interrupt } = delivery.next(ms(3_000), &pending) {
            prop_assert!(!interrupt, "an idle agent gets no key");
            let size = |mail: &MessageState| turn::size(mail, turn::TextPlacement::Inline, delivery.input(), PATH);
            let turn: Vec<_> = pending.iter().filter(|mail| ids.contains(&mail.message.id)).collect();
            prop_assert!(turn.len() == 1 || turn.iter().map(|mail| size(mail)).sum::<usize>() <= turn::TURN);
            let alone = |mail: &&MessageState| mail.message.envelope.priority == Priority::Interrupt;
            prop_assert!(turn.len() == 1 || !turn.iter().any(alone));
            pending.retain(|mail| !ids.contains(&mail.message.id));
            got.extend(ids);
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn no_offer_is_lost_doubled_or_made_at_a_forbidden_moment(
        priorities in priorities(),
        events in proptest::collection::vec((random_event(), 0..3_000_u64), 1..120),
    ) {
        let mut delivery = idle();
        let mut watch = Watch { pending: in_order(&priorities), ..Watch::default() };
        let mut now = 2_000;
        for (event, pass) in events {
            now += pass;
            let event = watch.comes(event);
            let mut effects = delivery.on(ms(now), event);
            effects.extend(delivery.act(ms(now), &watch.pending));
            for effect in effects {
                watch.judge(effect)?;
            }
            if let State::Backoff(_) = delivery.terminal.state {
                watch.is_over();
            }
            every_wait_has_a_reason(&delivery, now, &watch.pending)?;
        }
    }
}

type Judged = Result<(), TestCaseError>;

/// Check that each pending message is due or held by a rule.
pub(in crate::delivery) fn every_wait_has_a_reason(
    delivery: &Delivery,
    now: u64,
    pending: &[MessageState],
) -> Judged {
    for mail in pending {
        let is_due = matches!(delivery.next(ms(now), pending), Decision::Offer { .. });
        let held = delivery.hold(ms(now), mail, pending).is_some();
        prop_assert!(held || is_due, "{mail:?}");
    }
    Ok(())
}

/// The environment of delivery, and the offer in flight.
#[derive(Default)]
struct Watch {
    pending: Vec<MessageState>,
    under_way: Vec<MessageId>,
    /// The result of the last effect, which is still to be reported.
    todo: Option<DeliveryEvent>,
    is_written: bool,
    is_urgent: bool,
    has_draft: bool,
    is_asked: bool,
    paused: Vec<PausedBy>,
}

impl Watch {
    /// Return the next event. Without an event, report the result of the last effect.
    fn comes(&mut self, event: Option<DeliveryEvent>) -> DeliveryEvent {
        let event = event
            .or_else(|| self.todo.take())
            .unwrap_or(DeliveryEvent::Tick);
        match &event {
            DeliveryEvent::DraftTyped => self.has_draft = true,
            DeliveryEvent::DraftEnded => self.has_draft = false,
            DeliveryEvent::DialogChanged(what) => self.is_asked = what.is_some(),
            DeliveryEvent::Paused(by) => self.paused.push(*by),
            DeliveryEvent::Unpaused(by) => self.paused.retain(|p| p != by),
            _ => {}
        }
        event
    }

    fn judge(&mut self, effect: Effect) -> Judged {
        match effect {
            Effect::Key(_) | Effect::Clear(_) => {
                let is_taken = self.paused.contains(&PausedBy::Viewer);
                prop_assert!(!self.has_draft && !is_taken);
            }
            Effect::Offer { ids } => self.is_offered(ids)?,
            Effect::Write { ids } => {
                prop_assert!(!self.is_barred() && !self.is_paused());
                prop_assert_eq!(&ids, &self.under_way);
                self.is_written = true;
                self.todo = Some(DeliveryEvent::Wrote(String::new()));
            }
            Effect::Enter => {
                prop_assert!(!self.is_barred());
                self.todo = Some(DeliveryEvent::Entered);
            }
            Effect::Resume => self.todo = Some(DeliveryEvent::Resumed),
            Effect::Offered { ids, .. } => {
                prop_assert_eq!(&ids, &self.under_way);
                self.is_over();
            }
            Effect::Withdraw { ids, .. } => {
                prop_assert!(!self.is_written, "nothing of it was written");
                self.breaks_off(&ids)?;
            }
            Effect::Uncertain { ids, .. } => {
                prop_assert!(self.is_written, "otherwise it is withdrawn");
                self.breaks_off(&ids)?;
            }
            Effect::Accepted { .. } => prop_assert!(false, "nothing proves it"),
            Effect::Abort | Effect::Continue | Effect::OfferByApi { .. } => {
                prop_assert!(false, "it has no API");
            }
            Effect::Look => {
                prop_assert!(false, "the harness cannot read the screen");
            }
            effect @ (Effect::Remind { .. }
            | Effect::SendDirect { .. }
            | Effect::WriteReminder { .. }
            | Effect::Fail { .. }) => panic!("{effect:?}"),
        }
        Ok(())
    }

    fn is_offered(&mut self, ids: Vec<MessageId>) -> Judged {
        prop_assert!(self.under_way.is_empty(), "one at a time");
        let urgent = |mail: &MessageState| mail.message.envelope.priority == Priority::Interrupt;
        let first = self.pending.iter().find(|mail| mail.message.id == ids[0]);
        self.is_urgent = first.is_some_and(urgent);
        prop_assert!(!self.is_barred() && !self.is_paused());
        self.is_written = false;
        self.todo = Some(DeliveryEvent::Recorded(ids.clone()));
        self.pending.retain(|mail| !ids.contains(&mail.message.id));
        self.under_way = ids;
        Ok(())
    }

    fn breaks_off(&mut self, ids: &[MessageId]) -> Judged {
        prop_assert!(ids.iter().all(|id| self.under_way.contains(id)));
        self.under_way.retain(|id| !ids.contains(id));
        if self.under_way.is_empty() {
            self.is_over();
        }
        Ok(())
    }

    fn is_over(&mut self) {
        self.under_way.clear();
        self.todo = None;
    }

    fn is_barred(&self) -> bool {
        self.has_draft || self.is_asked
    }

    /// Whether a pause holds the message. An interrupt passes a requested pause.
    fn is_paused(&self) -> bool {
        let is_taken = self.paused.contains(&PausedBy::Viewer);
        is_taken || (!self.paused.is_empty() && !self.is_urgent)
    }
}
