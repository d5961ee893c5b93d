//! Whether the mail as last read is recent enough to decide on. A read and a change are compared by
//! the journal's head, which is the number of its last fact.

use std::time::Duration;

/// Shortest interval between two reads of the journal, while there is much mail.
const READ_INTERVAL: Duration = Duration::from_millis(20);

/// The extra read before a turn, in case newer mail goes before the mail that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recheck {
    NotNeeded,
    /// The read has not begun, because another one is under way.
    Wanted,
    Reading,
    /// The read has ended: the turn begins, even if more mail has come meanwhile.
    Done,
}

#[derive(Debug, Clone)]
pub(crate) struct Freshness {
    /// Head as of the last read; `None` before the first read and after a failed one.
    read: Option<u64>,
    /// Head as of the last result of a commit. No turn begins on older mail.
    committed: u64,
    /// The highest head that a change notice named.
    noticed: u64,
    /// Whether a read is due for a reason that has no head, such as the clock.
    is_read_due: bool,
    is_reading: bool,
    recheck: Recheck,
    read_at: Option<Duration>,
    started_at: Duration,
}

impl Freshness {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            read: None,
            committed: 0,
            noticed: 0,
            is_read_due: true,
            is_reading: false,
            recheck: Recheck::NotNeeded,
            read_at: None,
            started_at: now,
        }
    }

    /// Whether the mail shows every commit of this session.
    pub(crate) fn is_fresh(&self) -> bool {
        self.read.is_some_and(|head| head >= self.committed)
    }

    /// Whether no newer mail is known of.
    pub(crate) fn is_current(&self) -> bool {
        !self.needs_read() && !self.is_reading
    }

    pub(crate) fn is_about_to_read(&self) -> bool {
        !self.is_current() || !self.is_fresh()
    }

    fn needs_read(&self) -> bool {
        let newest = self.committed.max(self.noticed);
        self.is_read_due || self.read.is_some_and(|head| head < newest)
    }

    /// Note that a read is due, whatever the head.
    pub(crate) fn set_read_due(&mut self) {
        self.is_read_due = true;
    }

    /// Note that the journal has reached `head`.
    pub(crate) fn notice(&mut self, head: u64) {
        self.noticed = self.noticed.max(head);
        self.is_read_due |= self.read.is_none();
    }

    /// Note the head of a commit of this session.
    pub(crate) fn commit(&mut self, head: u64) {
        self.committed = self.committed.max(head);
        self.is_read_due |= self.read.is_none();
    }

    /// When the next read is due.
    pub(crate) fn next_read(&self) -> Option<Duration> {
        let is_due = self.needs_read() && !self.is_reading;
        is_due.then(|| {
            self.read_at
                .map_or(self.started_at, |at| at + READ_INTERVAL)
        })
    }

    /// Begin a read if one is due. Return whether one was begun.
    pub(crate) fn begin_due_read(&mut self, now: Duration) -> bool {
        let is_due = self.next_read().is_some_and(|at| at <= now);
        if is_due {
            self.begin_read(now);
        }
        is_due
    }

    fn begin_read(&mut self, now: Duration) {
        self.is_reading = true;
        self.is_read_due = false;
        self.read_at = Some(now);
        if self.recheck == Recheck::Wanted {
            self.recheck = Recheck::Reading;
        }
    }

    /// End the read. `head` is `None` if the journal could not be read; then nothing is begun until
    /// the next periodic check or change notice has caused another read.
    pub(crate) fn finish_read(&mut self, head: Option<u64>) {
        self.is_reading = false;
        self.read = head;
        self.recheck = match (self.recheck, head) {
            (Recheck::Wanted, _) => Recheck::Wanted,
            (Recheck::Reading, Some(_)) => Recheck::Done,
            (Recheck::Reading | Recheck::Done | Recheck::NotNeeded, _) => Recheck::NotNeeded,
        };
    }

    /// Ask whether a turn that is due may begin. If newer mail could go before it, the turn waits for
    /// one more read. Return whether that read is to be begun now.
    pub(crate) fn recheck(&mut self, now: Duration) -> bool {
        if self.recheck != Recheck::Reading {
            self.recheck = Recheck::Wanted;
        }
        let begins = !self.is_reading;
        if begins {
            self.begin_read(now);
        }
        begins
    }

    /// Return whether the extra read has ended, and clear the result.
    pub(crate) fn take_rechecked(&mut self) -> bool {
        let is_done = self.recheck == Recheck::Done;
        if is_done {
            self.recheck = Recheck::NotNeeded;
        }
        is_done
    }

    /// Note that nothing is due, so that no turn waits for a read.
    pub(crate) fn needs_no_recheck(&mut self) {
        self.recheck = Recheck::NotNeeded;
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
        let mut freshness = Freshness::new(at(0));
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
    fn one_more_read_comes_before_a_turn() {
        let mut freshness = read_at(7);
        freshness.notice(8);
        assert!(
            freshness.recheck(at(1)),
            "it does not wait for the interval"
        );
        assert!(!freshness.take_rechecked());
        freshness.notice(9);
        freshness.finish_read(Some(8));
        assert!(freshness.take_rechecked());
        assert!(!freshness.take_rechecked());
        // A read that is under way may have begun too early.
        assert!(freshness.begin_due_read(at(30)));
        freshness.notice(10);
        assert!(!freshness.recheck(at(31)));
        freshness.finish_read(Some(9));
        assert!(!freshness.take_rechecked());
        assert!(freshness.recheck(at(32)));
        freshness.finish_read(Some(10));
        assert!(freshness.take_rechecked());
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
