//! Fixtures for the tests of delivery: messages, deliveries in every state, and timed inputs.

mod due;
mod hook;
mod http;
mod interrupts;
mod loop_prompt;
mod nudges;
mod offers;
mod proof;
mod properties;
mod reminders;
mod screen;

pub(super) use properties::every_wait_has_a_reason;

use super::*;
use crate::activity::tests::ms;
use crate::driver::{CommitId, HookCall, JournalOperation, KeyboardUser, TurnContent, TurnMessage};
use crate::harness::{Report, Sighting, transcript};
use crate::id::MessageId;
use crate::mail::tests::{message, with_steps};
use crate::offer::OfferReport;
use crate::priority::Priority;
use crate::receipt::Step;
use crate::session::Ending;
use std::ops::{Deref, DerefMut};
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

/// A delivery, and the number of its last offer.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    delivery: Delivery,
    offer: u64,
}

impl Deref for Stage {
    type Target = Delivery;

    fn deref(&self) -> &Delivery {
        &self.delivery
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Delivery {
        &mut self.delivery
    }
}

impl Stage {
    pub(super) fn new(config: DeliveryConfig, now: Moment) -> Self {
        let delivery = Delivery::new(config, now);
        Self { delivery, offer: 0 }
    }

    fn note(&mut self, actions: Vec<Action>) -> Vec<Action> {
        for action in &actions {
            match action {
                Action::Commit { commit, operation } if operation.begins_offer() => {
                    self.offer = commit.0;
                }
                Action::CheckApi { offer, .. } => self.offer = *offer,
                _ => {}
            }
        }
        actions
    }

    #[expect(clippy::needless_pass_by_value, reason = "shorter for the callers")]
    pub(super) fn on(&mut self, now: Moment, input: Input) -> Vec<Action> {
        let actions = self.delivery.on(now, &input);
        self.note(actions)
    }

    pub(super) fn tick(&mut self, now: Moment) -> Vec<Action> {
        let actions = self.delivery.tick(now);
        self.note(actions)
    }

    /// Handle an input. Like the driver, then have the agent continue if that is due.
    pub(super) fn tell(&mut self, now: Moment, input: Input) -> Vec<Action> {
        let mut actions = self.on(now, input);
        actions.extend(self.delivery.continue_by_api());
        actions
    }

    pub(super) fn act(&mut self, now: Moment, pending: &[MessageState]) -> Vec<Action> {
        let actions = self.delivery.act(now, pending);
        self.note(actions)
    }

    pub(super) fn remind(&mut self, now: Moment, owed: &[MessageState]) -> Vec<Action> {
        let actions = self.delivery.remind(now, owed);
        self.note(actions)
    }

    pub(super) fn answer_hook(&mut self, now: Moment, pending: &[MessageState]) -> Vec<Action> {
        let actions = self.delivery.answer_hook(now, pending);
        self.note(actions)
    }

    pub(super) fn call(&mut self, now: Moment, call: &Call<'_>) -> Vec<Action> {
        match call {
            Call::On(input) => self.tell(now, input.clone()),
            Call::Tick => {
                let mut actions = self.tick(now);
                actions.extend(self.delivery.continue_by_api());
                actions
            }
            Call::Act(pending) => self.act(now, pending),
            Call::Remind(owed) => self.remind(now, owed),
            Call::Recorded(ids) => self.recorded(now, ids.clone()),
            Call::NotRecorded(why) => self.not_recorded(now, why),
        }
    }

    /// Lease the keyboard for the offer, or confirm the API, so that the offer is being recorded.
    fn begin_record(&mut self, now: Moment) {
        if self.is_offering() {
            self.on(now, Input::KeyboardLeased(KeyboardUser::Turn));
        } else if self.http.turn().is_some() {
            self.on(now, Input::ApiConfirmed(self.offer));
        }
    }

    /// Record the offer of these messages.
    pub(super) fn recorded(&mut self, now: Moment, ids: Vec<MessageId>) -> Vec<Action> {
        self.begin_record(now);
        let committed = Input::Committed {
            commit: CommitId(self.offer),
            ids,
            head: 0,
            has_more: false,
        };
        self.on(now, committed)
    }

    pub(super) fn not_recorded(&mut self, now: Moment, why: &str) -> Vec<Action> {
        self.begin_record(now);
        let not_committed = Input::NotCommitted {
            commit: CommitId(self.offer),
            why: why.to_owned(),
            is_final: false,
        };
        self.on(now, not_committed)
    }
}

pub(super) fn direct_recorded(all: &[u128]) -> Call<'static> {
    Call::Recorded(distinct_ids(all))
}

pub(super) fn write_failed() -> Input {
    let (by, why) = (KeyboardUser::Turn, "EIO".to_owned());
    Input::TerminalFailed { by, why }
}

pub(super) fn looked_at(sighting: Sighting) -> Input {
    let by = KeyboardUser::Turn;
    Input::Looked { by, sighting }
}

/// Return the call of a hook that takes no mail.
pub(super) fn hook_called(report: Report) -> Input {
    Input::HookCalled {
        call: HookCall(0),
        report: Box::new(report),
        takes_mail: false,
    }
}

pub(super) fn transcript_read(shown: transcript::Shown) -> Input {
    let trouble = None;
    Input::TranscriptsRead {
        shown,
        trouble,
        is_complete: true,
    }
}

pub(super) fn raw(n: u128) -> MessageState {
    let mut raw = mail(n, Priority::Interrupt);
    raw.message.envelope.raw = true;
    raw.message.created_at = ms(3_000).wall;
    raw
}

pub(super) fn starting() -> Stage {
    Stage::new(DeliveryConfig::generic(PATH), ms(0))
}

/// Return a delivery whose agent has been idle since 2 s.
fn idle() -> Stage {
    idle_at(starting())
}

/// Make the agent of a new delivery idle since 2 s.
pub(super) fn idle_at(mut delivery: Stage) -> Stage {
    delivery.on(ms(0), Input::OutputSeen);
    delivery.tick(ms(2_000));
    delivery
}

fn after(mut delivery: Stage, events: &[Input]) -> Stage {
    for event in events {
        delivery.on(ms(3_000), event.clone());
    }
    delivery
}

fn working() -> Stage {
    after(idle(), &[Input::OutputSeen])
}

fn blocked() -> Stage {
    after(working(), &[dialog("Run rm?")])
}

fn paused() -> Stage {
    after(idle(), &[Input::Paused(PausedBy::Viewer)])
}

fn drafting() -> Stage {
    after(idle(), &[Input::KeysTyped { is_draft: true }])
}

fn exited() -> Stage {
    after(idle(), &[Input::Exited(Ending::Exit(0))])
}

fn dialog(what: &str) -> Input {
    Input::DialogChanged(Some(what.to_owned()))
}

pub(super) fn rule(hold: Option<crate::why::Hold>) -> &'static str {
    hold.map_or("-", |hold| hold.rule)
}

/// An input, the millisecond at which it comes, and the actions that must follow.
pub(super) type Line<'a> = (u64, Call<'a>, &'a str);

#[derive(Debug, Clone)]
pub(super) enum Call<'a> {
    On(Input),
    Tick,
    Act(&'a [MessageState]),
    Remind(&'a [MessageState]),
    /// The journal has recorded the offer of these messages, after the keyboard was leased or the API
    /// was confirmed.
    Recorded(Vec<MessageId>),
    NotRecorded(&'a str),
}

pub(super) fn tick(at: u64, want: &str) -> Line<'_> {
    (at, Call::Tick, want)
}

/// Return the receipts among these actions.
pub(super) fn receipts(actions: &[Action]) -> Vec<(&[MessageId], &OfferReport)> {
    let receipt = |action| match action {
        &Action::Commit {
            operation:
                JournalOperation::RecordStep {
                    ref ids,
                    ref report,
                },
            ..
        } => Some((&ids[..], report)),
        _ => None,
    };
    actions.iter().filter_map(receipt).collect()
}

pub(super) fn summary(delivery: &Delivery, actions: &[Action]) -> String {
    let list = |ids: &[MessageId]| {
        // Ids from `distinct_ids` differ only in their first digits.
        let number = |id: &MessageId| match id.0.as_u128() {
            high if high >> 96 > 0 => high >> 96,
            low => low,
        };
        let ids: Vec<_> = ids.iter().map(|id| number(id).to_string()).collect();
        ids.join(",")
    };
    let sent = |messages: &[TurnMessage]| {
        let ids: Vec<_> = messages.iter().map(|m| m.state.message.id).collect();
        format!("send {}", list(&ids))
    };
    let words = actions.iter().filter_map(|action| {
        Some(match action {
            Action::PressKeys(key) => format!("key {key:?}"),
            Action::ClearBox(key) => format!("clear {key:?}"),
            Action::ApiInterrupt { .. } => "abort".to_owned(),
            Action::ApiContinue { .. } => "continue".to_owned(),
            Action::CheckApi { .. } => {
                let ids = delivery.http.turn().map(OutgoingTurn::ids);
                format!("offer by API {}", list(&ids.unwrap_or_default()))
            }
            Action::LeaseKeyboard(KeyboardUser::Turn) => match delivery.turn_in_flight() {
                Some(turn) if turn.enters.is_some() => "resume".to_owned(),
                Some(turn) if turn.is_reminder => format!("remind {}", list(&turn.ids)),
                turn => format!("offer {}", list(&turn?.ids)),
            },
            Action::LeaseKeyboard(KeyboardUser::Nudge) => "lease for a line".to_owned(),
            Action::TypeLine(line) => format!("line {line}"),
            Action::EndNudge { outcome, .. } => match outcome {
                NudgeOutcome::Typed => "nudge typed".to_owned(),
                NudgeOutcome::Refused(reason) => format!("nudge refused: {reason}"),
            },
            Action::Type { turn, .. } => {
                let what = match turn {
                    TurnContent::Messages(_) => "write",
                    TurnContent::Reminder(_) => "write reminder",
                };
                let messages = turn.messages();
                let ids: Vec<_> = messages.iter().map(|mail| mail.message.id).collect();
                format!("{what} {}", list(&ids))
            }
            Action::PressEnter { .. } => "enter".to_owned(),
            Action::Look(_) => "look".to_owned(),
            Action::AnswerHook { mail, .. } => sent(&mail.as_ref()?.messages),
            Action::PutMail { messages, .. } => sent(messages),
            Action::Commit {
                operation: JournalOperation::RecordStep { ids, report },
                ..
            } => {
                let what = match report {
                    OfferReport::Offering { .. } | OfferReport::Reminded { .. } => return None,
                    OfferReport::Offered { .. } => "offered",
                    OfferReport::Accepted { .. } => "accepted",
                    OfferReport::Withdrawn { .. } => "withdraw",
                    OfferReport::Uncertain { .. } => "uncertain",
                    OfferReport::Failed { .. } => "fail",
                };
                format!("{what} {}", list(ids))
            }
            Action::ReleaseKeyboard(_) | Action::SkipTranscripts => return None,
            other => format!("{other:?}"),
        })
    });
    words.collect::<Vec<_>>().join("; ")
}

pub(super) fn play(mut stage: Stage, lines: &[Line<'_>]) -> Stage {
    for (at, call, want) in lines {
        let actions = stage.call(ms(*at), call);
        assert_eq!(summary(&stage, &actions), *want, "{call:?} at {at}");
    }
    stage
}

pub(super) fn recorded(ids: &[u128]) -> Call<'static> {
    Call::Recorded(ids.iter().map(|n| id(*n)).collect())
}

pub(super) fn owed(n: u128, reminded: usize) -> MessageState {
    let mut message = message(n, "alice", "bob");
    message.envelope.expects_reply = true;
    let steps = [&[Step::Offered][..], &vec![Step::Reminded; reminded]].concat();
    with_steps(&message, &steps)
}
