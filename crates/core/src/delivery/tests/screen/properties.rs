//! Properties of random screens: one turn at a time, written once and ended once.

use super::super::every_wait_has_a_reason;
use super::*;
use crate::id::MessageId;
use proptest::prelude::*;

/// Return a random sighting.
fn sighting() -> impl Strategy<Value = Sighting> {
    let input_box = prop_oneof![
        3 => Just(empty()),
        1 => Just(hidden()),
        2 => Just(holds("text")),
        1 => Just(holds("mine")),
    ];
    let says = prop_oneof![
        Just(vec![]),
        Just(claims(Says::Working).claims),
        Just(claims(Says::Idle).claims),
    ];
    let dialog = prop_oneof![3 => Just(None), 1 => Just(Some("Run rm?".to_owned()))];
    let output = 0..2_u64;
    (input_box, says, dialog, output).prop_map(|(shown, claims, dialog, output)| {
        let shown = match dialog {
            Some(_) => hidden(),
            None => shown,
        };
        Sighting {
            claims,
            dialog,
            output,
            ..shown
        }
    })
}

fn random_event() -> impl Strategy<Value = Option<DeliveryEvent>> {
    prop_oneof![
        8 => Just(None),
        2 => Just(Some(DeliveryEvent::Tick)),
        1 => Just(Some(DeliveryEvent::Output)),
        4 => sighting().prop_map(|sighting| Some(DeliveryEvent::ScreenChanged(sighting))),
        1 => Just(Some(DeliveryEvent::DraftTyped)),
        1 => Just(Some(DeliveryEvent::DraftEnded)),
        1 => Just(Some(DeliveryEvent::PasteMode(true))),
        1 => Just(Some(DeliveryEvent::WriteFailed("EIO".to_owned()))),
    ]
}

proptest! {
    /// Text is written only right after a look at an empty box. Enter is pressed only right after a
    /// look that shows only the text and no question.
    #[test]
    fn no_screen_misleads_a_delivery(
        lanes in proptest::collection::vec(
            proptest::sample::select(&[Normal, Interrupt, Idle][..]), 1..6),
        events in proptest::collection::vec((random_event(), sighting(), 0..1_500_u64), 1..200),
        quits: bool,
    ) {
        let mut pending: Vec<_> = (1..).zip(&lanes).map(|(n, lane)| mail(n, *lane)).collect();
        pending.sort_by_key(|mail| mail.message.envelope.priority);
        let mut delivery = with(|manifest| {
            clearing(manifest);
            manifest.interrupt.quits_when_idle = quits;
        });
        let mut watch = Watch { pending, quits, ..Watch::default() };
        let mut now = 3_000;
        for (event, shown, pass) in events {
            now += pass;
            let event = watch.comes(event, shown);
            let is_failure = matches!(event, DeliveryEvent::WriteFailed(_));
            let mut effects = delivery.on(ms(now), event);
            if is_failure && !effects.is_empty() {
                watch.todo = None;
            }
            effects.extend(delivery.act(ms(now), &watch.pending));
            for effect in effects {
                watch.judge(&delivery, effect)?;
            }
            every_wait_has_a_reason(&delivery, now, &watch.pending)?;
            // A delivery that waits for a person's answer lets the person type.
            let is_held = is_blocked(&delivery) && delivery.is_writing();
            prop_assert!(watch.todo.is_some() || !is_held);
        }
    }
}

fn is_blocked(delivery: &Delivery) -> bool {
    matches!(delivery.activity().activity, Activity::Blocked(_))
}

/// The offer in flight, and the last look.
#[derive(Default)]
struct Watch {
    pending: Vec<MessageState>,
    /// Whether the interrupt key may end the program.
    quits: bool,
    under_way: Vec<MessageId>,
    /// The result of the last effect, which is still to be reported.
    todo: Option<DeliveryEvent>,
    has_written: bool,
    /// The sighting of the look that was just reported.
    looked: Option<Sighting>,
}

impl Watch {
    /// Return the next event. Without an event, report the result of the last effect.
    fn comes(&mut self, event: Option<DeliveryEvent>, shown: Sighting) -> DeliveryEvent {
        let event = match event.or_else(|| self.todo.take()) {
            Some(DeliveryEvent::Looked(_)) => DeliveryEvent::Looked(shown),
            Some(event) => event,
            None => DeliveryEvent::Tick,
        };
        self.looked = match &event {
            DeliveryEvent::Looked(sighting) => Some(sighting.clone()),
            _ => None,
        };
        event
    }

    fn judge(&mut self, delivery: &Delivery, effect: Effect) -> Result<(), TestCaseError> {
        match effect {
            Effect::Offer { ids } => {
                prop_assert!(self.under_way.is_empty(), "one at a time");
                self.pending.retain(|mail| !ids.contains(&mail.message.id));
                self.todo = Some(DeliveryEvent::Recorded(ids.clone()));
                self.under_way = ids;
                self.has_written = false;
            }
            Effect::Write { ids } => {
                let is_again = std::mem::replace(&mut self.has_written, true);
                prop_assert!(!is_again, "once");
                prop_assert_eq!(&ids, &self.under_way);
                let looked = self.looked.as_ref().expect("a text follows a look");
                prop_assert_eq!(&looked.input_box, &BoxState::Empty);
                self.todo = Some(wrote());
            }
            Effect::Enter => {
                prop_assert!(self.has_written);
                let looked = self.looked.as_ref().expect("Enter follows a look");
                prop_assert_eq!(&looked.dialog, &None);
                prop_assert_eq!(&looked.input_box, &holds("text").input_box);
                self.todo = Some(DeliveryEvent::Entered);
            }
            Effect::Look => self.todo = Some(DeliveryEvent::Looked(Sighting::default())),
            Effect::Resume => self.todo = Some(DeliveryEvent::Resumed),
            Effect::Abort | Effect::Continue | Effect::OfferByApi { .. } => {
                prop_assert!(false, "it has no API");
            }
            Effect::Clear(_) => {}
            Effect::Key(_) => {
                let is_sure = self.shows_work() || is_blocked(delivery);
                prop_assert!(!self.quits || is_sure, "it might quit");
            }
            Effect::Withdraw { ids, .. } => {
                prop_assert!(!self.has_written);
                self.under_way.retain(|id| !ids.contains(id));
            }
            Effect::Offered { ids, .. } | Effect::Uncertain { ids, .. } => {
                prop_assert!(self.has_written);
                prop_assert_eq!(&ids, &self.under_way, "each once");
                self.under_way.clear();
            }
            Effect::Accepted { .. } => prop_assert!(false, "nothing proves it"),
            Effect::Remind { .. }
            | Effect::WriteReminder { .. }
            | Effect::SendDirect { .. }
            | Effect::Fail { .. } => {
                panic!("no reply is expected, and no message is raw: {effect:?}")
            }
        }
        Ok(())
    }

    /// Whether the look shows work or a question to interrupt.
    fn shows_work(&self) -> bool {
        let works = claims(Says::Working).claims;
        let looked = self.looked.as_ref();
        looked.is_some_and(|seen| seen.dialog.is_some() || seen.claims == works)
    }
}
