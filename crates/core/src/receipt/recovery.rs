//! The outcome of offers whose run has ended: an offer that was cut off becomes uncertain, and so does
//! an offer whose proof never came, unless the transcript of the resumed conversation has it.

use super::Proven;
use super::offer::OfferReport;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::text::inject;

/// Reason for a message whose offer was open when its session ended.
pub const CUT_OFF: &str = "the session ended while it was being offered";
/// Reason for a message whose run ended without proof.
pub const NEVER_PROVEN: &str =
    "the program ended, and nothing shows that its model was given the message";
const RESUMED_SHOWS: &str = "the transcript of the resumed conversation shows the message";

/// Offers that have no outcome yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenOffers {
    /// Every offer of a session that has ended. Offers of hooks are left alone, because a hook that
    /// still prints needs no session.
    All,
    /// Offers that a hook began and did not complete. The caller must hold the agent's inject lock.
    Injected,
    /// Offers whose proof can no longer arrive, because the run that made them has ended.
    Unproven,
    These(Vec<MessageId>),
}

impl OpenOffers {
    /// Whether a message belongs to these offers.
    pub fn include(&self, mail: &MessageState) -> bool {
        match self {
            Self::All => mail.status.proven == Proven::Offering && !inject::is_under_way(mail),
            Self::Injected => inject::is_under_way(mail),
            Self::Unproven => mail.status.proven == Proven::Unproven,
            Self::These(ids) => ids.contains(&mail.message.id),
        }
    }
}

/// Decide the outcome of offers of earlier runs whose proof is still awaited. `proven` are the messages that the transcript of the resumed conversation shows as
/// given to the model.
pub fn settle(unproven: &[MessageState], proven: &[MessageId]) -> Vec<(MessageId, OfferReport)> {
    let outcome = |mail: &MessageState| match proven.contains(&mail.message.id) {
        true => {
            let routes = mail.receipts.iter().rev();
            let route = routes.filter_map(|receipt| receipt.route.clone()).next();
            OfferReport::Accepted {
                route: route.unwrap_or_default(),
                evidence: RESUMED_SHOWS.to_owned(),
            }
        }
        false => OfferReport::Uncertain {
            reason: NEVER_PROVEN.to_owned(),
        },
    };
    let outcomes = unproven.iter().map(|mail| (mail.message.id, outcome(mail)));
    outcomes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::proven_by;
    use crate::mail::tests::{message, with_steps};
    use crate::receipt::Step::{Offered, Offering};

    #[test]
    fn only_the_resumed_transcript_proves_an_earlier_offer() {
        let mail =
            [1, 2].map(|n| with_steps(&message(n << 96, "alice", "bob"), &[Offering, Offered]));
        let header = format!(
            "[ph message from: alice id: {}] hi",
            mail[0].message.id.id8()
        );
        let accepted = |given: &str| {
            let outcomes = settle(&mail, &proven_by(given, &mail));
            let is_accepted =
                |(_, said): &(_, OfferReport)| matches!(said, OfferReport::Accepted { .. });
            outcomes.iter().map(is_accepted).collect::<Vec<_>>()
        };
        assert_eq!(accepted(""), [false, false]);
        assert_eq!(accepted(&header), [true, false]);
    }
}
