//! The record of the route through the program's API: when it can be used, the call under way, and
//! whether the agent must be told to continue.

use crate::driver::{Action, Input, JournalOperation};
use crate::harness::Route;
use crate::id::MessageId;
use crate::moment::Moment;
use crate::offer::OfferReport;
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
    /// The messages that were chosen last.
    pub(crate) chosen: Vec<MessageId>,
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

    /// Note that the API has not answered, if this is the call under way.
    fn lose_call(&mut self, now: Moment, is_call: impl Fn(&Call) -> bool) {
        if self.call.take_if(|call| is_call(call)).is_some() {
            self.fail(now);
        }
    }

    /// Record an input that delivery is about to handle.
    pub(crate) fn record_input(&mut self, now: Moment, input: &Input) {
        match input {
            Input::HookCalled { report, .. } => {
                let session = report.session.as_deref();
                self.is_conversation_known |= session.is_some_and(|id| id != SIDE_SESSION);
            }
            Input::Committed { commit, ids, .. } => {
                if let Some(call) = self.call.as_mut().filter(|call| call.number == commit.0) {
                    call.is_recorded = true;
                    call.ids.retain(|id| ids.contains(id));
                }
            }
            Input::NotCommitted { commit, .. } => {
                self.take_call(commit.0);
            }
            Input::ApiRefused { offer, .. } => {
                self.take_call(*offer);
                self.fail(now);
            }
            Input::ApiSilent(offer) => self.lose_call(now, |call| call.number == *offer),
            Input::ApiAccepted(offer) => {
                if let Some(call) = self.take_call(*offer) {
                    self.needs_continue = call.sent == Some(true);
                }
            }
            Input::ApiNotContinued { .. } => {
                self.needs_continue = true;
                self.fail(now);
            }
            _ => {}
        }
    }

    /// End a call that was recorded and not sent.
    pub(crate) fn after_input(&mut self) {
        self.call
            .take_if(|call| call.is_recorded && call.sent.is_none());
    }

    /// Record an action that delivery requests.
    pub(crate) fn record_action(&mut self, now: Moment, action: &Action, is_working: bool) {
        match action {
            Action::CheckApi { offer, .. } => {
                self.call = Some(Call {
                    number: *offer,
                    ids: self.chosen.clone(),
                    is_recorded: false,
                    sent: None,
                });
            }
            Action::PutMail { offer, .. } => {
                if let Some(call) = self.call.as_mut().filter(|call| call.number == *offer) {
                    call.sent = Some(is_working);
                }
            }
            Action::Commit {
                operation: JournalOperation::RecordStep { ids, report },
                ..
            } => self.record_step(now, ids, report),
            Action::ApiContinue { .. } => {
                self.needs_continue = false;
                self.continued_at = Some(now.mono);
            }
            _ => {}
        }
    }

    fn record_step(&mut self, now: Moment, ids: &[MessageId], report: &OfferReport) {
        match report {
            OfferReport::Offered { route, .. }
                if route == Route::Http.as_str() && self.needs_continue =>
            {
                self.taken_in_turn.extend(ids);
            }
            // The API did not answer in time.
            OfferReport::Uncertain { .. } => self.lose_call(now, |call| call.ids == *ids),
            _ => {}
        }
    }
}
