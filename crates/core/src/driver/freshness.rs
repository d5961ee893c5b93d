//! Whether the mail as last read is recent enough to decide on: one comparison of journal heads. The
//! head of a read is the number of the last fact that the read could see.

use std::time::Duration;

/// Shortest interval between two reads of the journal, while there is much mail.
const READ_INTERVAL: Duration = Duration::from_millis(20);

/// A read for a reason that has no head, such as the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimedRead {
    NotNeeded,
    Due,
    Reading,
}

#[derive(Debug, Clone)]
pub(super) struct Freshness {
    /// Head of the last read; `None` before the first read and after a failed one.
    read: Option<u64>,
    /// Head as of the last result of a commit. No turn begins on older mail.
    committed: u64,
    /// The highest head that a change notice or a commit has named.
    newest: u64,
    /// The newest head when a turn became due. The turn does not begin on older mail.
    awaited: Option<u64>,
    timed: TimedRead,
    is_reading: bool,
    read_at: Option<Duration>,
}

impl Freshness {
    pub(super) fn new() -> Self {
        Self {
            read: None,
            committed: 0,
            newest: 0,
            awaited: None,
            timed: TimedRead::Due,
            is_reading: false,
            read_at: None,
        }
    }

    /// Whether the mail shows every commit of this session.
    pub(super) fn is_fresh(&self) -> bool {
        self.read >= Some(self.committed)
    }

    /// Whether no newer mail is known of.
    pub(super) fn is_current(&self) -> bool {
        !self.needs_read() && !self.is_reading
    }

    pub(super) fn is_about_to_read(&self) -> bool {
        !self.is_current() || !self.is_fresh()
    }

    fn needs_read(&self) -> bool {
        self.timed == TimedRead::Due || self.read.is_some_and(|head| head < self.newest)
    }

    /// Note that a read is due, whatever the head.
    pub(super) fn set_read_due(&mut self) {
        self.timed = TimedRead::Due;
    }

    /// Note that the journal has reached `head`.
    pub(super) fn notice(&mut self, head: u64) {
        self.newest = self.newest.max(head);
        if self.read.is_none() {
            self.set_read_due();
        }
    }

    /// Note the head of a commit of this session.
    pub(super) fn commit(&mut self, head: u64) {
        self.committed = self.committed.max(head);
        self.notice(head);
    }

    /// When the next read is due.
    pub(super) fn next_read(&self) -> Option<Duration> {
        let is_due = self.needs_read() && !self.is_reading;
        let at = self.read_at.map(|at| at + READ_INTERVAL);
        is_due.then(|| at.unwrap_or_default())
    }

    /// Begin a read if one is due. Return whether one was begun.
    pub(super) fn begin_due_read(&mut self, now: Duration) -> bool {
        self.next_read().is_some_and(|at| at <= now) && self.begin_read(now)
    }

    /// Begin a read, unless one is under way. Return whether it was begun.
    pub(super) fn begin_read(&mut self, now: Duration) -> bool {
        if self.is_reading {
            return false;
        }
        self.is_reading = true;
        self.read_at = Some(now);
        if self.timed == TimedRead::Due {
            self.timed = TimedRead::Reading;
        }
        true
    }

    /// End the read. `head` is `None` if the journal could not be read; then nothing is begun until
    /// the next periodic check or change notice has caused another read.
    pub(super) fn finish_read(&mut self, head: Option<u64>) {
        self.is_reading = false;
        self.read = head;
        if self.timed == TimedRead::Reading {
            self.timed = TimedRead::NotNeeded;
        }
    }

    /// Whether a turn that is due may begin. Mail that was known of when the turn became due may go
    /// before it, and must be read first. Mail that comes later need not be, or a stream of mail
    /// would hold the turn for ever.
    pub(super) fn may_begin_turn(&mut self) -> bool {
        let awaited = *self.awaited.get_or_insert(self.newest);
        self.timed == TimedRead::NotNeeded && self.read >= Some(awaited)
    }

    /// Note that no turn waits: it has begun, or nothing is due any more.
    pub(super) fn end_wait(&mut self) {
        self.awaited = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Return the state after a first read at this head.
    fn read_at(head: u64) -> Freshness {
        let mut freshness = Freshness::new();
        assert!(freshness.begin_due_read(at(0)));
        freshness.finish_read(Some(head));
        freshness
    }

    #[test]
    fn a_change_that_was_read_needs_no_read() {
        let mut freshness = read_at(7);
        freshness.notice(7);
        freshness.commit(6);
        assert!(freshness.is_fresh() && freshness.is_current());
        assert_eq!(freshness.next_read(), None);
        freshness.notice(8);
        assert!(freshness.is_fresh() && !freshness.is_current());
        assert_eq!(freshness.next_read(), Some(READ_INTERVAL));
    }

    #[test]
    fn mail_from_before_a_commit_is_not_fresh() {
        let mut freshness = read_at(7);
        freshness.commit(9);
        assert!(!freshness.is_fresh());
        assert!(!freshness.begin_due_read(at(19)));
        assert!(freshness.begin_due_read(at(20)));
        // This read began before the commit was recorded.
        freshness.finish_read(Some(8));
        assert!(!freshness.is_fresh());
        assert!(freshness.begin_due_read(at(40)));
        freshness.finish_read(Some(9));
        assert!(freshness.is_fresh() && freshness.is_current());
    }

    #[test]
    fn a_change_during_a_read_needs_another_read() {
        let mut freshness = read_at(7);
        freshness.notice(8);
        assert!(freshness.begin_due_read(at(20)));
        freshness.notice(9);
        freshness.finish_read(Some(8));
        assert_eq!(freshness.next_read(), Some(at(40)));
    }

    #[test]
    fn mail_that_was_known_of_is_read_before_a_turn() {
        let mut freshness = read_at(7);
        assert!(freshness.may_begin_turn());
        freshness.end_wait();
        freshness.notice(8);
        assert!(!freshness.may_begin_turn());
        assert!(
            freshness.begin_read(at(1)),
            "it does not wait for the interval"
        );
        // More mail comes meanwhile. The turn does not wait for that.
        freshness.notice(9);
        freshness.finish_read(Some(8));
        assert!(freshness.may_begin_turn());
        freshness.end_wait();
        // A read that is under way may have begun too early.
        assert!(freshness.begin_due_read(at(30)));
        freshness.notice(10);
        assert!(!freshness.may_begin_turn() && !freshness.begin_read(at(31)));
        freshness.finish_read(Some(9));
        assert!(!freshness.may_begin_turn() && freshness.begin_read(at(32)));
        freshness.finish_read(Some(10));
        assert!(freshness.may_begin_turn());
        freshness.end_wait();
        // The clock may have made other mail due.
        freshness.set_read_due();
        assert!(!freshness.may_begin_turn() && freshness.begin_read(at(33)));
        assert!(!freshness.may_begin_turn());
        freshness.finish_read(Some(10));
        assert!(freshness.may_begin_turn());
    }

    #[test]
    fn a_failed_read_is_repeated_only_for_a_reason() {
        let mut freshness = read_at(7);
        freshness.set_read_due();
        assert!(freshness.begin_due_read(at(20)));
        freshness.finish_read(None);
        assert!(!freshness.is_fresh());
        assert_eq!(freshness.next_read(), None);
        freshness.notice(8);
        assert_eq!(freshness.next_read(), Some(at(40)));
    }
}
