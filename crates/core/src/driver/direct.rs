//! The routes that bypass the terminal: mail that a hook call passes on to the agent, and mail for
//! the agent's API. Each offer is recorded before its mail is sent.

use super::journal::commits::CommitPurpose;
use super::{Action, HookCall, HookMail, JournalOperation, Observer, SessionDriver, pick};
use crate::delivery::DeliveryEvent;
use crate::harness::{Report, Route};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::session::Conversation;
use std::time::Duration;

/// How long the journal may take to record an offer to a hook. The agent waits for its hook, and the
/// hook gives up after 200 ms.
const HOOK_COMMITTED_WITHIN: Duration = Duration::from_millis(120);
const TOO_LATE: &str = "the journal took longer than a hook waits";

/// The receiver of an offer.
#[derive(Debug, Clone)]
enum Destination {
    Hook {
        call: HookCall,
        /// When the hook is answered without mail; `None` once it was.
        answer_by: Option<Duration>,
    },
    Api {
        conversation: String,
    },
}

/// Mail on its way to a hook or the API.
#[derive(Debug, Clone)]
struct DirectDelivery {
    offer: u64,
    messages: Vec<MessageState>,
    to: Destination,
}

#[derive(Debug, Default)]
pub(super) struct DirectDeliveries(Vec<DirectDelivery>);

impl DirectDeliveries {
    pub(super) fn has(&self, id: MessageId) -> bool {
        let mut messages = self.0.iter().flat_map(|delivery| &delivery.messages);
        messages.any(|mail| mail.message.id == id)
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let answer_by = |delivery: &DirectDelivery| match delivery.to {
            Destination::Hook { answer_by, .. } => answer_by,
            Destination::Api { .. } => None,
        };
        self.0.iter().filter_map(answer_by).min()
    }

    pub(super) fn end(&mut self, offer: u64) -> bool {
        let before = self.0.len();
        self.0.retain(|delivery| delivery.offer != offer);
        self.0.len() < before
    }

    fn get_mut(&mut self, offer: u64) -> Option<&mut DirectDelivery> {
        self.0.iter_mut().find(|delivery| delivery.offer == offer)
    }

    fn take(&mut self, offer: u64) -> Option<DirectDelivery> {
        let at = self.0.iter().position(|delivery| delivery.offer == offer)?;
        Some(self.0.remove(at))
    }
}

impl SessionDriver {
    pub(super) fn hook_called(
        &mut self,
        now: Moment,
        call: HookCall,
        report: &Report,
        takes_mail: bool,
        observer: &mut impl Observer,
    ) {
        if !takes_mail {
            self.answer_hook(call, None);
        }
        self.notify_delivery(
            now,
            DeliveryEvent::HookCalled(Box::new(report.clone())),
            observer,
        );
        if takes_mail {
            self.offer_to_hook(now, call, report);
        }
        self.follow_conversation(now, report);
    }

    fn answer_hook(&mut self, call: HookCall, mail: Option<HookMail>) {
        self.actions.push_back(Action::AnswerHook { call, mail });
    }

    /// Offer the due mail to a hook. The mail must have been read after the last offer, because an
    /// older read does not show which messages are repeats.
    fn offer_to_hook(&mut self, now: Moment, call: HookCall, report: &Report) {
        self.skip_transcripts();
        let is_fresh = self.freshness.is_fresh();
        let hook_offer =
            is_fresh.then(|| self.delivery.offer_to_hook(now, report, &self.mail.pending));
        let Some(hook_offer) = hook_offer.flatten() else {
            return self.answer_hook(call, None);
        };
        let answer_by = Some(now.mono + HOOK_COMMITTED_WITHIN);
        let to = Destination::Hook { call, answer_by };
        self.record_direct_offer(hook_offer.number, &hook_offer.ids, Route::Hook, to);
    }

    fn record_direct_offer(
        &mut self,
        offer: u64,
        ids: &[MessageId],
        route: Route,
        to: Destination,
    ) {
        let messages = pick(&self.mail.pending, ids);
        let operation = Self::offering(route, ids.to_vec(), &messages);
        self.direct_deliveries.0.push(DirectDelivery {
            offer,
            messages,
            to,
        });
        self.commit(operation, CommitPurpose::DirectOffer(offer));
    }

    /// Answer each hook whose commit takes too long, without mail. The mail of such a hook is not
    /// sent.
    pub(super) fn answer_late_hooks(&mut self, now: Moment) {
        let mut late = Vec::new();
        for delivery in &mut self.direct_deliveries.0 {
            if let Destination::Hook { call, answer_by } = &mut delivery.to
                && answer_by.take_if(|at| *at <= now.mono).is_some()
            {
                late.push(*call);
            }
        }
        for call in late {
            self.answer_hook(call, None);
        }
    }

    /// Drop an offer, and answer its hook without mail if the hook still waits.
    pub(super) fn refuse_direct(&mut self, offer: u64) {
        if let Some(Destination::Hook {
            call,
            answer_by: Some(_),
        }) = self
            .direct_deliveries
            .take(offer)
            .map(|delivery| delivery.to)
        {
            self.answer_hook(call, None);
        }
    }

    /// Send an offer that the journal has recorded, unless delivery refuses it now.
    pub(super) fn deliver_directly(
        &mut self,
        now: Moment,
        offer: u64,
        ids: Vec<MessageId>,
        observer: &mut impl Observer,
    ) {
        let Some(delivery) = self.direct_deliveries.get_mut(offer) else {
            return;
        };
        let is_late = matches!(
            delivery.to,
            Destination::Hook {
                answer_by: None,
                ..
            }
        );
        let event = match is_late {
            true => DeliveryEvent::DirectRefused {
                number: offer,
                ids,
                why: TOO_LATE.to_owned(),
            },
            false => DeliveryEvent::DirectRecorded { number: offer, ids },
        };
        self.notify_delivery(now, event, observer);
        // If delivery has sent the mail, the offer is closed and this does nothing.
        self.refuse_direct(offer);
    }

    /// Send the messages of an offer to its hook or to the API.
    pub(super) fn send_direct(&mut self, offer: u64, ids: &[MessageId]) {
        let Some(DirectDelivery { messages, to, .. }) = self.direct_deliveries.take(offer) else {
            return;
        };
        let messages = self.turn_messages(pick(&messages, ids));
        match to {
            Destination::Hook { call, .. } => {
                self.answer_hook(call, Some(HookMail { offer, messages }));
            }
            Destination::Api { conversation } => self.actions.push_back(Action::PutMail {
                offer,
                messages,
                conversation,
            }),
        }
    }

    /// Offer mail to the agent's API. The offer is recorded once the API is confirmed to be this
    /// agent's.
    pub(super) fn call_api(&mut self, offer: u64, ids: &[MessageId]) {
        let conversation = self.api_conversation();
        let to = Destination::Api {
            conversation: conversation.clone(),
        };
        let messages = pick(&self.mail.pending, ids);
        self.direct_deliveries.0.push(DirectDelivery {
            offer,
            messages,
            to,
        });
        self.actions.push_back(Action::CheckApi {
            offer,
            conversation,
        });
    }

    pub(super) fn api_confirmed(&mut self, offer: u64) {
        let Some(delivery) = self.direct_deliveries.get_mut(offer) else {
            return;
        };
        let ids = delivery.messages.iter().map(|mail| mail.message.id);
        let operation: JournalOperation =
            Self::offering(Route::Http, ids.collect(), &delivery.messages);
        self.commit(operation, CommitPurpose::DirectOffer(offer));
    }

    /// Return the id of the conversation for API actions. If no conversation is known, the id is
    /// empty and matches none.
    pub(super) fn api_conversation(&self) -> String {
        self.delivery.conversation().unwrap_or_default().to_owned()
    }

    /// Follow the transcript and the conversation that one of the agent's own hooks names.
    fn follow_conversation(&mut self, now: Moment, report: &Report) {
        if !self.delivery.is_own(report) {
            return;
        }
        if let Some(path) = report.transcript() {
            self.transcripts.is_named = true;
            let from_start = self.delivery.needs_transcript();
            let path = path.to_owned();
            self.actions
                .push_back(Action::FollowTranscript { path, from_start });
        }
        self.transcripts.read_soon(now.mono);
        let Some(id) = report.session().filter(|_| report.enters_conversation()) else {
            return;
        };
        let before = self.conversation.as_ref().filter(|known| known.id == id);
        let path = report.transcript().map(str::to_owned);
        let conversation = Conversation {
            run: self.run.run,
            id: id.to_owned(),
            harness: self.run.harness.clone(),
            cwd: self.run.cwd.clone(),
            transcript: path.or_else(|| before?.transcript.clone()),
            not_resumed: false,
        };
        if self.conversation.as_ref() != Some(&conversation) {
            self.conversation = Some(conversation.clone());
            self.record(now, JournalOperation::RecordConversation(conversation));
        }
    }
}
