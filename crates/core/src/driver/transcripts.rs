//! When the agent's transcripts are read. The session keeps the files and their offsets.

use super::{Action, SessionDriver};
use crate::moment::Moment;
use std::time::Duration;

/// Delays between reads while a proof is awaited; the last delay repeats. On a busy machine an agent
/// can write its last rows seconds after its last hook.
const READ_INTERVALS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

#[derive(Debug, Default)]
pub(super) struct TranscriptSchedule {
    /// Number of reads since the last hook or offer.
    reads: usize,
    next_read: Option<Duration>,
    is_reading: bool,
    /// Whether a hook has named a transcript.
    pub(super) is_named: bool,
    /// Why the last read failed, if it did.
    pub(super) trouble: Option<String>,
}

impl TranscriptSchedule {
    /// Schedule a read now and restart the delays, after a hook or an offer.
    pub(super) fn read_soon(&mut self, now: Duration) {
        self.reads = 0;
        self.next_read = Some(now);
    }

    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    pub(super) fn next_read(&self) -> Option<Duration> {
        self.next_read.filter(|_| !self.is_reading)
    }

    /// Begin a read if one is due and a proof is awaited. Return whether one was begun.
    fn begin_read(&mut self, now: Duration, is_awaited: bool) -> bool {
        if self.next_read().is_none_or(|at| at > now) {
            return false;
        }
        self.next_read = None;
        self.is_reading = is_awaited && self.is_named;
        self.is_reading
    }

    pub(super) fn finish_read(&mut self, now: Duration, is_awaited: bool) {
        self.is_reading = false;
        self.reads += 1;
        if is_awaited && self.next_read.is_none() {
            let last = READ_INTERVALS.len() - 1;
            self.next_read = Some(now + READ_INTERVALS[self.reads.min(last)]);
        }
    }
}

impl SessionDriver {
    /// Read the transcripts if a read is due. An agent may write a row only after the hook that
    /// reports the same event, and no later hook may follow, so reads repeat on a timer.
    pub(super) fn read_transcripts(&mut self, now: Moment) {
        let is_awaited = self.delivery.needs_transcript();
        if self.transcripts.begin_read(now.mono, is_awaited) {
            self.actions.push_back(Action::ReadTranscripts);
        }
    }

    /// Read the transcripts a last time, if a proof is awaited. Return whether a read was begun.
    pub(super) fn begin_last_read(&mut self) -> bool {
        let is_awaited = self.delivery.needs_transcript() && self.transcripts.is_named;
        if is_awaited {
            self.transcripts.is_reading = true;
            self.actions.push_back(Action::ReadTranscripts);
        }
        is_awaited
    }

    /// Move the read offsets to the ends of the transcripts before an offer, because earlier rows
    /// cannot prove it. Keep the offsets while an earlier offer still awaits its proof.
    pub(super) fn skip_transcripts(&mut self) {
        if !self.delivery.needs_transcript() {
            self.actions.push_back(Action::SkipTranscripts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_follow_each_other_while_a_proof_is_awaited() {
        let at = Duration::from_secs;
        let mut schedule = TranscriptSchedule::default();
        assert!(!schedule.begin_read(at(0), true));
        schedule.read_soon(at(0));
        assert!(!schedule.begin_read(at(0), true), "no hook has named one");
        schedule.is_named = true;
        schedule.read_soon(at(1));
        assert!(schedule.begin_read(at(1), true));
        assert_eq!(schedule.next_read(), None);
        schedule.finish_read(at(2), true);
        assert_eq!(schedule.next_read(), Some(at(2) + READ_INTERVALS[1]));
        schedule.read_soon(at(3));
        assert!(schedule.begin_read(at(3), true));
        schedule.finish_read(at(3), false);
        assert_eq!(schedule.next_read(), None);
    }
}
