//! Where processes run that wait for one another.
//!
//! One that is woken by another on its own core goes on several times as soon as one on another
//! core, which is asleep. Left alone, the system may put what is measured in the one place and its
//! limit in the other, for a whole run; so both are also measured in the same, once in each. There,
//! a session and its program are always on one core.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Who asks and who answers on one core.
    Together,
    /// Who answers on another core than who asks.
    Apart,
    /// Wherever the system puts them.
    Free,
}

impl Placement {
    /// Those that there are on this machine.
    pub(crate) fn all() -> Vec<Self> {
        match affinity::count() {
            None => vec![Self::Free],
            Some(1) => vec![Self::Together],
            Some(_) => vec![Self::Together, Self::Apart, Self::Free],
        }
    }

    /// How a row says it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Together => "on one core",
            Self::Apart => "on two cores",
            Self::Free => "as it comes",
        }
    }

    /// The same as a part of a name.
    pub(crate) fn label(self) -> String {
        self.name().replace(' ', "-")
    }

    /// Runs `work` with this process where who asks belongs. What `start` starts is where who
    /// answers belongs, with all that it starts in turn.
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

    /// Those that this process may use.
    fn ours(set: &CpuSet) -> impl Iterator<Item = usize> {
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core))
    }

    pub(super) fn count() -> Option<usize> {
        Some(ours(&sched_getaffinity(None).unwrap()).count())
    }

    /// Does something on the core of this number among ours, or on any.
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

/// Elsewhere a process cannot be kept on a core.
#[cfg(not(target_os = "linux"))]
mod affinity {
    pub(super) fn count() -> Option<usize> {
        None
    }

    pub(super) fn on<T>(_: Option<usize>, work: impl FnOnce() -> T) -> T {
        work()
    }
}
