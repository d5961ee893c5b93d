//! Whether the mail as last read is recent enough to decide on.

use std::time::Duration;

/// Shortest interval between two reads of the journal, while there is much mail.
const READ_INTERVAL: Duration = Duration::from_millis(20);
/// A change that is noticed so soon after a read began is taken for the change that caused the read.
/// The session notices its own commits as changes too, and each would cost another read.
const OWN_CHANGE_WITHIN: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy)]
struct Read {
    /// Whether the read was begun after the last result of an action.
    is_fresh: bool,
    /// Whether the read was begun because something is due.
    is_sure: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Freshness {
    /// Whether the mail was read after the last result of an action.
    is_fresh: bool,
    /// Whether the mail was read because something is due.
    is_sure: bool,
    reading: Option<Read>,
    /// Whether a read is wanted because something is due, and mail that has come since the last
    /// read may go before it.
    pub(super) is_wanted: bool,
    read_at: Option<Duration>,
    /// Whether there is a reason to read.
    is_stale: bool,
    /// Whether this session has stored mail since the last read began.
    has_mail: bool,
    begun: Duration,
}

impl Freshness {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            is_fresh: false,
            is_sure: false,
            reading: None,
            is_wanted: false,
            read_at: None,
            is_stale: true,
            has_mail: true,
            begun: now,
        }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    pub(super) fn is_about_to_read(&self) -> bool {
        self.is_stale || self.reading.is_some() || !self.is_fresh
    }

    pub(super) fn set_stale(&mut self) {
        self.is_stale = true;
    }

    pub(super) fn journal_changed(&mut self, has_mail: bool) {
        self.is_stale = true;
        self.has_mail |= has_mail;
    }

    /// Note that the mail, as read or as being read, may be older than the last recorded change.
    pub(super) fn outdate(&mut self) {
        self.is_fresh = false;
        if let Some(read) = &mut self.reading {
            read.is_fresh = false;
        }
    }

    pub(super) fn take_sure(&mut self) -> bool {
        std::mem::take(&mut self.is_sure)
    }

    /// Note that the read under way was begun for something that is no longer due.
    pub(super) fn doubt(&mut self) {
        if let Some(read) = &mut self.reading {
            read.is_sure = false;
        }
    }

    /// Whether no mail can have come since the last read began.
    pub(super) fn is_current(&self, now: Duration) -> bool {
        let read_at = self.read_at.unwrap_or(self.begun);
        let is_own = !self.has_mail && now.saturating_sub(read_at) < OWN_CHANGE_WITHIN;
        (!self.is_stale || is_own) && self.reading.is_none()
    }

    /// When the next read is due.
    pub(super) fn next_read(&self) -> Option<Duration> {
        let is_due = self.is_stale && self.reading.is_none();
        is_due.then(|| self.read_at.map_or(self.begun, |at| at + READ_INTERVAL))
    }

    /// Begin a read if one is due. Return whether one was begun.
    pub(super) fn begin_due_read(&mut self, now: Duration) -> bool {
        self.next_read().is_some_and(|at| at <= now) && self.begin_read(now)
    }

    /// Begin a read, unless one is under way. Return whether one was begun.
    pub(super) fn begin_read(&mut self, now: Duration) -> bool {
        if self.reading.is_some() {
            return false;
        }
        (self.is_stale, self.has_mail) = (false, false);
        self.reading = Some(Read {
            is_fresh: true,
            is_sure: std::mem::take(&mut self.is_wanted),
        });
        self.read_at = Some(now);
        true
    }

    /// Note that the read has ended. After a failure, no delivery is begun until the next periodic
    /// check has caused another read.
    pub(super) fn finish_read(&mut self, is_read: bool) {
        let read = self.reading.take().filter(|_| is_read);
        self.is_fresh = read.is_some_and(|read| read.is_fresh);
        self.is_sure = read.is_some_and(|read| read.is_sure);
    }
}
