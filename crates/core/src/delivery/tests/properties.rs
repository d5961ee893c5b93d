//! Properties of random runs: no offer is lost, doubled or made at a forbidden moment, and every wait
//! has a reason.

use super::*;
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

fn random_call() -> impl Strategy<Value = Option<Call<'static>>> {
    let who = proptest::sample::select(&[PausedBy::Viewer, PausedBy::Request][..]);
    let dialog = proptest::option::of(Just("Run rm?".to_owned()));
    let on = |input| Just(Some(Call::On(input)));
    prop_oneof![
        6 => Just(None),
        3 => Just(Some(Call::Tick)),
        3 => on(Input::OutputSeen),
        1 => dialog.prop_map(|what| Some(Call::On(Input::DialogChanged(what)))),
        1 => who.clone().prop_map(|by| Some(Call::On(Input::Paused(by)))),
        1 => who.prop_map(|by| Some(Call::On(Input::Unpaused(by)))),
        1 => on(Input::KeysTyped { is_draft: true }),
        1 => on(Input::KeysTyped { is_draft: false }),
        1 => any::<bool>().prop_map(|on| Some(Call::On(Input::PasteMode(on)))),
        1 => on(write_failed()),
        1 => Just(Some(Call::NotRecorded("full"))),
    ]
}

proptest! {
    #[test]
    fn an_idle_agent_gets_everything_in_order(priorities in priorities(), paste: bool) {
        let mut pending = in_order(&priorities);
        let want: Vec<_> = pending.iter().map(|mail| mail.message.id).collect();
        let delivery = after(idle(), &[Input::PasteMode(paste)]);
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
        calls in proptest::collection::vec((random_call(), 0..3_000_u64), 1..120),
    ) {
        let mut delivery = idle();
        let mut watch = Watch { pending: in_order(&priorities), ..Watch::default() };
        let mut now = 2_000;
        for (call, pass) in calls {
            now += pass;
            let call = watch.comes(call);
            let actions = delivery.call(ms(now), &call);
            watch.judge_all(&delivery, actions)?;
            let actions = delivery.act(ms(now), &watch.pending);
            watch.judge_all(&delivery, actions)?;
            if delivery.at.backoff.is_some() {
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
    /// The result of the last action, which is still to be reported.
    todo: Option<Call<'static>>,
    is_written: bool,
    is_urgent: bool,
    has_draft: bool,
    is_asked: bool,
    paused: Vec<PausedBy>,
}

impl Watch {
    /// Return what happens next. By default, that is the result of the last action.
    fn comes(&mut self, call: Option<Call<'static>>) -> Call<'static> {
        let call = call.or_else(|| self.todo.take()).unwrap_or(Call::Tick);
        match &call {
            Call::On(Input::KeysTyped { is_draft }) => self.has_draft = *is_draft,
            Call::On(Input::DialogChanged(what)) => self.is_asked = what.is_some(),
            Call::On(Input::Paused(by)) => self.paused.push(*by),
            Call::On(Input::Unpaused(by)) => self.paused.retain(|p| p != by),
            _ => {}
        }
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
            Action::PressKeys(_) | Action::ClearBox(_) => {
                let is_taken = self.paused.contains(&PausedBy::Viewer);
                prop_assert!(!self.has_draft && !is_taken);
            }
            Action::LeaseKeyboard(_) => {
                let turn = delivery.turn_in_flight().expect("a turn");
                match turn.enters {
                    None => self.is_offered(turn.ids)?,
                    Some(_) => self.todo = Some(Call::On(Input::KeyboardLeased(by))),
                }
            }
            Action::Type { turn, .. } => {
                prop_assert!(!self.is_barred() && !self.is_paused());
                let ids: Vec<_> = turn.messages().iter().map(|m| m.message.id).collect();
                prop_assert_eq!(&ids, &self.under_way);
                self.is_written = true;
                self.todo = Some(Call::On(Input::Typed(String::new())));
            }
            Action::PressEnter { .. } => {
                prop_assert!(!self.is_barred());
                self.todo = Some(Call::On(Input::EnterPressed(by)));
            }
            Action::Commit { .. } => {
                for (ids, report) in receipts(&[action]) {
                    self.judge_receipt(ids, report)?;
                }
            }
            Action::ReleaseKeyboard(_) | Action::SkipTranscripts => {}
            other => prop_assert!(false, "{other:?}"),
        }
        Ok(())
    }

    fn judge_receipt(&mut self, ids: &[MessageId], report: &OfferReport) -> Judged {
        match report {
            OfferReport::Offering { .. } => {}
            OfferReport::Offered { .. } => {
                prop_assert_eq!(ids, &self.under_way[..]);
                self.is_over();
            }
            OfferReport::Withdrawn { .. } => {
                prop_assert!(!self.is_written, "nothing of it was written");
                self.breaks_off(ids)?;
            }
            OfferReport::Uncertain { .. } => {
                prop_assert!(self.is_written, "otherwise it is withdrawn");
                self.breaks_off(ids)?;
            }
            other => prop_assert!(false, "{other:?}"),
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
        self.todo = Some(Call::Recorded(ids.clone()));
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
