//! The record of the route through the program's API: when it can be used, the call under way, and
//! whether the agent must be told to continue.

use crate::delivery::{DeliveryEvent, Effect};
use crate::harness::Route;
use crate::id::MessageId;
use crate::moment::Moment;
use crate::sim::world::hook_calls::SIDE_SESSION;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an API that has failed is not used.
const COOLDOWN: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Call {
    number: u64,
    ids: Vec<MessageId>,
    is_recorded: bool,
    /// Whether the mail was sent, and whether the agent was working then.
    sent: Option<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct ApiRecord {
    has_api: bool,
    /// Whether a hook of the program has named its conversation.
    is_conversation_known: bool,
    fails_until: Option<Duration>,
    call: Option<Call>,
    /// Whether mail was taken in the middle of a turn, and the agent was not told to continue since.
    pub(crate) needs_continue: bool,
    /// When the agent was last told to continue.
    continued_at: Option<Duration>,
    /// Messages that were taken in the middle of a turn.
    taken_in_turn: BTreeSet<MessageId>,
}

impl ApiRecord {
    pub(crate) fn new(has_api: bool) -> Self {
        Self {
            has_api,
            ..Self::default()
        }
    }

    /// Whether the API can be used now.
    pub(crate) fn is_usable(&self, now: Moment) -> bool {
        let has_failed = self.fails_until.is_some_and(|until| now.mono < until);
        self.has_api && self.is_conversation_known && !has_failed
    }

    /// Whether a call is under way, from the check of the API to its answer.
    pub(crate) fn is_calling(&self) -> bool {
        self.call.is_some()
    }

    /// Whether the agent was told to continue just now.
    pub(crate) fn continues(&self, now: Moment) -> bool {
        self.continued_at == Some(now.mono)
    }

    pub(crate) fn was_taken_in_turn(&self, id: MessageId) -> bool {
        self.taken_in_turn.contains(&id)
    }

    /// Return the messages of an offer that may be sent now.
    pub(crate) fn sent_messages(&self, number: u64) -> Option<&[MessageId]> {
        let call = self.call.as_ref().filter(|call| call.number == number);
        let sent = call.filter(|call| call.sent.is_some());
        sent.map(|call| &call.ids[..])
    }

    fn fail(&mut self, now: Moment) {
        self.fails_until = Some(now.mono + COOLDOWN);
    }

    fn take_call(&mut self, number: u64) -> Option<Call> {
        self.call.take_if(|call| call.number == number)
    }

    /// Record an event that delivery is about to handle.
    pub(crate) fn record_event(&mut self, now: Moment, event: &DeliveryEvent) {
        match event {
            DeliveryEvent::HookCalled(report) => {
                let session = report.session.as_deref();
                self.is_conversation_known |= session.is_some_and(|id| id != SIDE_SESSION);
            }
            DeliveryEvent::DirectRecorded { number, .. } => {
                if let Some(call) = self.call.as_mut().filter(|call| call.number == *number) {
                    call.is_recorded = true;
                }
            }
            DeliveryEvent::DirectRefused { number, .. } => {
                self.take_call(*number);
                self.fail(now);
            }
            DeliveryEvent::DirectUnconfirmed(number) => {
                if self.take_call(*number).is_some() {
                    self.fail(now);
                }
            }
            DeliveryEvent::DirectConfirmed(number) => {
                if let Some(call) = self.take_call(*number) {
                    self.needs_continue = call.sent == Some(true);
                }
            }
            DeliveryEvent::ContinueFailed { .. } => {
                self.needs_continue = true;
                self.fail(now);
            }
            _ => {}
        }
    }

    /// End a call that was recorded and not sent.
    pub(crate) fn after_event(&mut self) {
        self.call
            .take_if(|call| call.is_recorded && call.sent.is_none());
    }

    /// Record an effect that delivery requests.
    pub(crate) fn record_effect(&mut self, now: Moment, effect: &Effect, is_working: bool) {
        match effect {
            Effect::OfferByApi { number, ids } => {
                self.call = Some(Call {
                    number: *number,
                    ids: ids.clone(),
                    is_recorded: false,
                    sent: None,
                });
            }
            Effect::SendDirect { number, ids } => {
                if let Some(call) = self.call.as_mut().filter(|call| call.number == *number) {
                    call.sent = Some(is_working);
                    call.ids.clone_from(ids);
                }
            }
            Effect::Offered {
                ids,
                route: Route::Http,
                ..
            } if self.needs_continue => self.taken_in_turn.extend(ids),
            // The API did not answer in time.
            Effect::Uncertain { ids, .. } => {
                if self.call.take_if(|call| call.ids == *ids).is_some() {
                    self.fail(now);
                }
            }
            Effect::Continue => {
                self.needs_continue = false;
                self.continued_at = Some(now.mono);
            }
            _ => {}
        }
    }
}
