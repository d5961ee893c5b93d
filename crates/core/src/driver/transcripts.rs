//! The conversation that the agent is in, and when its transcripts are read. The session keeps the
//! files and their offsets.

use super::{Action, Input, JournalOperation, Observer, SessionDriver};
use crate::harness::Report;
use crate::moment::Moment;
use crate::session::Conversation;
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

    pub(super) fn transcripts_read(
        &mut self,
        now: Moment,
        input: &Input,
        observer: &mut impl Observer,
    ) {
        let Input::TranscriptsRead {
            trouble,
            is_complete,
            ..
        } = input
        else {
            return;
        };
        self.transcripts.trouble.clone_from(trouble);
        self.deliver(now, input, observer);
        let is_awaited = self.delivery.needs_transcript();
        if is_awaited && !*is_complete {
            self.actions.push_back(Action::ReadTranscripts);
        } else {
            self.transcripts.finish_read(now.mono, is_awaited);
        }
    }

    /// Follow the transcript and the conversation that one of the agent's own hooks names.
    pub(super) fn follow_conversation(&mut self, now: Moment, report: &Report) {
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
