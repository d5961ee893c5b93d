//! The end of a run: its last receipts, the last read of the transcripts, and the outcome of messages
//! whose proof never came.
//!
//! ```text
//! Running ─exited▶ Recording ─recorded, or 2 s▶ EndingProcesses ─ended▶ LastRead ─read▶ Closing ─▶ Finished
//!                                                                          └── 2 s for both ──────────▲
//! ```
//!
//! A process that the program has left may still write to the transcript, so the last read comes
//! after the end of these processes. Unproven messages become uncertain only once the offers of
//! earlier runs are settled: the transcript of the resumed conversation may have those. A program
//! that ends before it has resumed the conversation leaves them to the next session, and was offered
//! nothing itself.

use super::{Action, Input, JournalOperation, Observer, SessionDriver};
use crate::moment::Moment;
use crate::session::Conversation;
use std::time::Duration;

/// How long the last receipts may take: those of open offers, and then those of unproven messages. A
/// write that hangs never has a receipt.
const LAST_RECEIPTS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) enum Phase {
    #[default]
    Running,
    /// The program has ended, and the last receipts are being recorded.
    Recording {
        give_up_at: Duration,
    },
    EndingProcesses,
    LastRead {
        give_up_at: Duration,
        has_begun: bool,
    },
    /// Unproven messages become uncertain, once earlier offers are settled.
    Closing {
        give_up_at: Duration,
        has_marked: bool,
    },
    Finished,
}

impl Phase {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        match self {
            Self::Recording { give_up_at }
            | Self::LastRead { give_up_at, .. }
            | Self::Closing { give_up_at, .. } => Some(*give_up_at),
            Self::Running | Self::EndingProcesses | Self::Finished => None,
        }
    }
}

/// Offers of earlier runs whose proof is awaited, if the conversation was resumed.
#[derive(Debug)]
pub(super) enum EarlierOffers {
    Open(Conversation),
    /// The commit of their outcome is open.
    Settling,
    Settled,
    /// Their outcome could not be recorded. The next session settles them.
    Lost,
}

impl EarlierOffers {
    pub(super) fn new(resumed: Option<Conversation>) -> Self {
        resumed.map_or(Self::Settled, Self::Open)
    }
}

impl SessionDriver {
    /// Whether the run is over, and the driver has nothing more to record.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    pub(super) fn exited(&mut self, now: Moment, input: &Input, observer: &mut impl Observer) {
        let give_up_at = now.mono + LAST_RECEIPTS_WITHIN;
        self.phase = Phase::Recording { give_up_at };
        self.deliver(now, input, observer);
    }

    pub(super) fn processes_ended(&mut self, now: Moment) {
        if let Phase::EndingProcesses = self.phase {
            let give_up_at = now.mono + LAST_RECEIPTS_WITHIN;
            let has_begun = false;
            self.phase = Phase::LastRead {
                give_up_at,
                has_begun,
            };
        }
    }

    /// Settle the offers of earlier runs once the program has resumed its conversation.
    pub(super) fn settle_earlier_offers(&mut self, now: Moment) {
        if let EarlierOffers::Open(resumed) = &self.earlier_offers
            && !self.delivery.is_starting()
        {
            let resumed = resumed.clone();
            self.earlier_offers = EarlierOffers::Settling;
            self.record(now, JournalOperation::SettleEarlierOffers(resumed));
        }
    }

    /// Note that a message was offered. If that comes after the unproven messages became uncertain,
    /// they are marked once more.
    pub(super) fn note_offered(&mut self) {
        if let Phase::Closing { has_marked, .. } = &mut self.phase {
            *has_marked = false;
        }
    }

    /// Continue the end of the run as far as possible now.
    pub(super) fn continue_end(&mut self, now: Moment) {
        let is_late = self.phase.next_timeout().is_some_and(|at| at <= now.mono);
        let is_recorded = self.commits.is_empty() && !self.delivery.has_direct_offers();
        match self.phase {
            Phase::Recording { .. } if is_recorded || is_late => {
                self.phase = Phase::EndingProcesses;
                self.actions.push_back(Action::EndProcesses);
            }
            Phase::LastRead { .. } | Phase::Closing { .. } if is_late => {
                self.phase = Phase::Finished;
            }
            Phase::LastRead {
                give_up_at,
                has_begun,
            } if !self.transcripts.is_reading() => {
                self.phase = match !has_begun && self.begin_last_read() {
                    true => Phase::LastRead {
                        give_up_at,
                        has_begun: true,
                    },
                    false => Phase::Closing {
                        give_up_at,
                        has_marked: false,
                    },
                };
                self.continue_end(now);
            }
            Phase::Closing {
                give_up_at,
                has_marked,
            } => match self.earlier_offers {
                EarlierOffers::Settled if !has_marked => {
                    self.record(now, JournalOperation::CloseUnproven);
                    self.phase = Phase::Closing {
                        give_up_at,
                        has_marked: true,
                    };
                }
                EarlierOffers::Settled | EarlierOffers::Open(_) | EarlierOffers::Lost
                    if is_recorded =>
                {
                    self.phase = Phase::Finished;
                }
                EarlierOffers::Settled
                | EarlierOffers::Open(_)
                | EarlierOffers::Settling
                | EarlierOffers::Lost => {}
            },
            Phase::Running
            | Phase::Recording { .. }
            | Phase::EndingProcesses
            | Phase::LastRead { .. }
            | Phase::Finished => {}
        }
    }
}
