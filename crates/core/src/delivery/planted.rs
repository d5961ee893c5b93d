//! What a desk does wrong where a bug is planted in it; see `sim::planted`. In tests alone.

use super::{Desk, Drafting, Effect, Event, Flight, Moment, Pause, Phase};
use crate::activity::Activity;
use crate::id::MessageId;

impl Flight {
    /// The agent's word, without the agent.
    pub(super) fn accepted_by_enter(&self, evidence: String) -> Vec<Effect> {
        let accepted = Effect::Accepted {
            ids: self.ids.clone(),
            evidence: evidence.clone(),
            route: crate::harness::Route::Terminal,
        };
        let offered = self.offered(evidence).into_iter();
        offered.map(move |_| accepted.clone()).collect()
    }
}

impl Desk {
    pub(super) fn is_working(&self) -> bool {
        self.activity().activity == Activity::Working
    }

    /// The text once more, after a write that broke off.
    pub(super) fn types_again(&self, event: &Event) -> Option<Vec<Effect>> {
        match (event, &self.phase) {
            (Event::WriteFailed(_), Phase::Writing(flight)) => {
                let ids = flight.ids.clone();
                Some(vec![Effect::Write { ids }])
            }
            _ => None,
        }
    }

    /// The text, before the journal knows.
    pub(super) fn writes_first(&mut self, flight: Flight) -> Vec<Effect> {
        let ids = flight.ids.clone();
        self.phase = Phase::Writing(flight);
        vec![Effect::Write { ids }]
    }

    /// The receipt, before the text.
    pub(super) fn offers_too_early(&mut self, flight: Flight, ids: Vec<MessageId>) -> Vec<Effect> {
        self.phase = Phase::Writing(flight);
        let offered = Effect::Offered {
            ids: ids.clone(),
            evidence: "sent".to_owned(),
            route: crate::harness::Route::Terminal,
            proof_awaited: false,
        };
        vec![offered, Effect::Write { ids }]
    }

    /// Enter, on what was seen before.
    pub(super) fn enters_blindly(&mut self, flight: Flight) -> Vec<Effect> {
        self.phase = Phase::Entering(flight);
        vec![Effect::Enter]
    }

    /// The text once more, where it still stands in the box.
    pub(super) fn types_once_more(&mut self, flight: Flight) -> Vec<Effect> {
        let write = flight.write();
        self.phase = Phase::Writing(flight);
        vec![write]
    }

    /// A rest of hours.
    pub(super) fn rests_for_long(&mut self, now: Moment, why: String) {
        self.phase = Phase::Resting {
            since: now,
            until: now.mono * 1_000,
            why,
        };
    }

    pub(super) fn without_draft(&self) -> Self {
        Self {
            drafting: Drafting::default(),
            ..self.clone()
        }
    }

    pub(super) fn without_pauses(&self) -> Self {
        let pauses: Vec<Pause> = Vec::new();
        Self {
            pauses,
            ..self.clone()
        }
    }
}
