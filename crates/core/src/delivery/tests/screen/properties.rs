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

fn random_call() -> impl Strategy<Value = Option<Call<'static>>> {
    let on = |input| Just(Some(Call::On(input)));
    prop_oneof![
        8 => Just(None),
        2 => Just(Some(Call::Tick)),
        1 => on(Input::OutputSeen),
        4 => sighting().prop_map(|sighting| Some(Call::On(Input::ScreenChanged(sighting)))),
        1 => on(Input::KeysTyped { is_draft: true }),
        1 => on(Input::KeysTyped { is_draft: false }),
        1 => on(Input::PasteMode(true)),
        1 => on(write_failed()),
    ]
}

proptest! {
    /// Text is written only right after a look at an empty box. Enter is pressed only right after a
    /// look that shows only the text and no question.
    #[test]
    fn no_screen_misleads_a_delivery(
        lanes in proptest::collection::vec(
            proptest::sample::select(&[Normal, Interrupt, Idle][..]), 1..6),
        calls in proptest::collection::vec((random_call(), sighting(), 0..1_500_u64), 1..200),
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
        for (call, shown, pass) in calls {
            now += pass;
            let call = watch.comes(call, shown);
            let is_failure = matches!(call, Call::On(Input::TerminalFailed { .. }));
            let actions = delivery.call(ms(now), &call);
            if is_failure && !actions.is_empty() {
                watch.todo = None;
            }
            watch.judge_all(&delivery, actions)?;
            let actions = delivery.act(ms(now), &watch.pending);
            watch.judge_all(&delivery, actions)?;
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
    /// The result of the last action, which is still to be reported.
    todo: Option<Call<'static>>,
    has_written: bool,
    /// The sighting of the look that was just reported.
    looked: Option<Sighting>,
}

type Judged = Result<(), TestCaseError>;

impl Watch {
    /// Return what happens next. By default, that is the result of the last action.
    fn comes(&mut self, call: Option<Call<'static>>, shown: Sighting) -> Call<'static> {
        let call = match call.or_else(|| self.todo.take()) {
            Some(Call::On(Input::Looked { .. })) => Call::On(looked_at(shown)),
            call => call.unwrap_or(Call::Tick),
        };
        self.looked = match &call {
            Call::On(Input::Looked { sighting, .. }) => Some(sighting.clone()),
            _ => None,
        };
        call
    }

    fn judge_all(&mut self, delivery: &Delivery, actions: Vec<Action>) -> Judged {
        for action in actions {
            self.judge(delivery, action)?;
        }
        Ok(())
    }

    fn judge(&mut self, delivery: &Delivery, action: Action) -> Judged {
        let by = KeyboardUser::Turn;
        match action {
            Action::LeaseKeyboard(_) => {
                let turn = delivery.turn_in_flight().expect("a turn");
                if turn.enters.is_some() {
                    self.todo = Some(Call::On(Input::KeyboardLeased(by)));
                    return Ok(());
                }
                prop_assert!(self.under_way.is_empty(), "one at a time");
                self.pending
                    .retain(|mail| !turn.ids.contains(&mail.message.id));
                self.todo = Some(Call::Recorded(turn.ids.clone()));
                self.under_way = turn.ids;
                self.has_written = false;
            }
            Action::Type { turn, .. } => {
                let is_again = std::mem::replace(&mut self.has_written, true);
                prop_assert!(!is_again, "once");
                let ids: Vec<_> = turn.messages().iter().map(|m| m.message.id).collect();
                prop_assert_eq!(&ids, &self.under_way);
                let looked = self.looked.as_ref().expect("a text follows a look");
                prop_assert_eq!(&looked.input_box, &BoxState::Empty);
                self.todo = Some(Call::On(wrote()));
            }
            Action::PressEnter { .. } => {
                prop_assert!(self.has_written);
                let looked = self.looked.as_ref().expect("Enter follows a look");
                prop_assert_eq!(&looked.dialog, &None);
                prop_assert_eq!(&looked.input_box, &holds("text").input_box);
                self.todo = Some(Call::On(Input::EnterPressed(by)));
            }
            Action::Look(_) => self.todo = Some(Call::On(looked_at(Sighting::default()))),
            Action::PressKeys(_) => {
                let is_sure = self.shows_work() || is_blocked(delivery);
                prop_assert!(!self.quits || is_sure, "it might quit");
            }
            Action::Commit { .. } => {
                for (ids, report) in receipts(&[action]) {
                    self.judge_receipt(ids, report)?;
                }
            }
            Action::ClearBox(_) | Action::ReleaseKeyboard(_) | Action::SkipTranscripts => {}
            other => prop_assert!(false, "{other:?}"),
        }
        Ok(())
    }

    fn judge_receipt(&mut self, ids: &[MessageId], report: &OfferReport) -> Judged {
        match report {
            OfferReport::Offering { .. } => {}
            OfferReport::Withdrawn { .. } => {
                prop_assert!(!self.has_written);
                self.under_way.retain(|id| !ids.contains(id));
            }
            OfferReport::Offered { .. } | OfferReport::Uncertain { .. } => {
                prop_assert!(self.has_written);
                prop_assert_eq!(ids, &self.under_way[..], "each once");
                self.under_way.clear();
            }
            other => prop_assert!(false, "{other:?}"),
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
