//! Tests of the driver's sequencing: inputs go in, actions come out.

use super::*;
use crate::activity::tests::ms;
use crate::delivery::{Decision, DeliveryConfig, Effect};
use crate::harness::{BoxState, Manifest, Sighting};
use crate::mail::MessageState;
use std::sync::Arc;
use uuid::Uuid;

/// Keeps the events that delivery was told.
#[derive(Default)]
struct Events(Vec<DeliveryEvent>);

impl Observer for Events {
    fn on_event(&mut self, _: Moment, event: &DeliveryEvent) {
        self.0.push(event.clone());
    }
    fn after_event(&mut self) {}
    fn on_decision(&mut self, _: Moment, _: &Delivery, _: &[MessageState], _: &Decision) {}
    fn on_effect(&mut self, _: Moment, _: &Delivery, _: &Effect) {}
    fn on_keyboard_released(&mut self) {}
    fn on_receipt_retry(&mut self, _: &[MessageId], _: &str) {}
    fn on_receipt_lost(&mut self, _: &[MessageId], _: &str) {}
    fn on_nudge_end(&mut self, _: &NudgeOutcome) {}
    fn on_answer_refused(&mut self, _: &str) {}
}

fn driver(manifest: Manifest, resumed: Option<Conversation>) -> SessionDriver {
    let config = DriverConfig {
        delivery: DeliveryConfig {
            harness: Arc::new(manifest),
            ..DeliveryConfig::generic(80)
        },
        run: RunIdentity {
            run: Uuid::nil(),
            harness: "test".to_owned(),
            cwd: "/".to_owned(),
        },
        resumed,
    };
    SessionDriver::new(config, ms(0))
}

#[test]
fn a_look_that_arrives_late_does_not_replace_a_newer_one() {
    let look = |output, input_box| Sighting {
        output,
        input_box,
        ..Sighting::default()
    };
    let newer = look(5, BoxState::Empty);
    let older = look(3, BoxState::Undescribed);
    let late = |input: fn(Sighting) -> Input| {
        let (mut driver, mut events) = (driver(Manifest::generic(), None), Events::default());
        driver.handle(ms(1), Input::ScreenChanged(newer.clone()), &mut events);
        driver.handle(ms(2), input(older.clone()), &mut events);
        events.0
    };
    let changed = DeliveryEvent::ScreenChanged(newer.clone());
    assert_eq!(
        late(Input::ScreenChanged),
        [changed.clone(), changed.clone()]
    );
    let looked = |sighting| Input::Looked {
        by: KeyboardUser::Turn,
        sighting,
    };
    assert_eq!(
        late(looked),
        [changed, DeliveryEvent::Looked(newer.clone())]
    );
}
