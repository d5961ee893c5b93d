//! Where processes run that wait for one another.
//!
//! One that is woken by another on its own core goes on several times as soon as one on another
//! core, which is asleep. Left alone, the system may put what is measured in the one place and its
//! limit in the other, for a whole run; so both are measured in the same, once in each.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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
    /// How a row says it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Together => "on one core",
            Self::Apart => "on two cores",
            Self::Free => "anywhere",
        }
    }

    /// Runs `work` with this process where who asks belongs. What `start` starts is where who
    /// answers belongs, with all that it starts in turn.
    pub(crate) fn run<T>(self, start: impl FnOnce() -> T, work: impl FnOnce(T)) {
        let all = sched_getaffinity(None).unwrap();
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|core| all.is_set(*core))
            .collect();
        let (asks, answers) = match self {
            Self::Together => (only(cores[0]), only(cores[0])),
            Self::Apart => (only(cores[0]), only(cores[1 % cores.len()])),
            Self::Free => (all, all),
        };
        sched_setaffinity(None, &answers).unwrap();
        let started = start();
        sched_setaffinity(None, &asks).unwrap();
        work(started);
        sched_setaffinity(None, &all).unwrap();
    }
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}
