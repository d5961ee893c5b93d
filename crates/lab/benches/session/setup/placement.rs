//! Placement of processes that wait for each other.
//!
//! A process that is woken by another on its own core continues several times as soon as one on a
//! sleeping core. The system may place the measured program and its limit differently for a whole
//! run, so both are also measured in the same placement, once in each. A session and its program
//! share a core then.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Client and server on one core.
    Together,
    /// Client and server on two cores.
    Apart,
    /// Placed by the system.
    Free,
}

impl Placement {
    /// Return the placements that this machine has.
    pub(crate) fn all() -> Vec<Self> {
        match affinity::count() {
            None => vec![Self::Free],
            Some(1) => vec![Self::Together],
            Some(_) => vec![Self::Together, Self::Apart, Self::Free],
        }
    }

    /// Name of the placement in a row.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Together => "on one core",
            Self::Apart => "on two cores",
            Self::Free => "as it comes",
        }
    }

    /// Name of the placement in an identifier.
    pub(crate) fn label(self) -> String {
        self.name().replace(' ', "-")
    }

    /// Run `work` with this process on the client's core. `start` and its processes run on the
    /// server's.
    pub(crate) fn run<T>(self, start: impl FnOnce() -> T, work: impl FnOnce(T)) {
        let (asks, answers) = match self {
            Self::Together => (Some(0), Some(0)),
            Self::Apart => (Some(0), Some(1)),
            Self::Free => (None, None),
        };
        let started = affinity::on(answers, start);
        affinity::on(asks, || work(started));
    }
}

#[cfg(target_os = "linux")]
mod affinity {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Return the cores that this process may use.
    fn ours(set: &CpuSet) -> impl Iterator<Item = usize> {
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core))
    }

    pub(super) fn count() -> Option<usize> {
        Some(ours(&sched_getaffinity(None).unwrap()).count())
    }

    /// Run a function on one of our cores, or on any.
    pub(super) fn on<T>(core: Option<usize>, work: impl FnOnce() -> T) -> T {
        let all = sched_getaffinity(None).unwrap();
        if let Some(core) = core {
            let mut only = CpuSet::new();
            only.set(ours(&all).nth(core).unwrap());
            sched_setaffinity(None, &only).unwrap();
        }
        let done = work();
        sched_setaffinity(None, &all).unwrap();
        done
    }
}

/// On this system a process cannot be bound to a core.
#[cfg(not(target_os = "linux"))]
mod affinity {
    pub(super) fn count() -> Option<usize> {
        None
    }

    pub(super) fn on<T>(_: Option<usize>, work: impl FnOnce() -> T) -> T {
        work()
    }
}
