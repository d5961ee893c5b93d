//! Descriptors and memory of the sessions, sampled while they run.

use std::collections::BTreeMap;

/// Limit of a session's open descriptors; a higher count is a leak.
const MAX_DESCRIPTORS: u64 = 64;
/// A session of a debug build takes some 30 MiB.
const MAX_RESIDENT_KIB: u64 = 96 << 10;

/// The highest values that each agent's sessions had.
#[derive(Default)]
pub(crate) struct Samples {
    peaks: BTreeMap<String, Peak>,
    pub(crate) count: u32,
}

#[derive(Default)]
struct Peak {
    descriptors: u64,
    resident_kib: u64,
}

impl Samples {
    /// Add the present values of an agent's session.
    pub(crate) fn add(&mut self, agent: &str, session: i32) {
        self.count += 1;
        let peak = self.peaks.entry(agent.to_owned()).or_default();
        let open = std::fs::read_dir(format!("/proc/{session}/fd")).map_or(0, Iterator::count);
        peak.descriptors = peak.descriptors.max(open as u64);
        let status = std::fs::read_to_string(format!("/proc/{session}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        peak.resident_kib = peak.resident_kib.max(resident.unwrap_or(0));
    }

    pub(crate) fn too_many_descriptors(&self) -> Vec<String> {
        self.above(MAX_DESCRIPTORS, "", |peak| peak.descriptors)
    }

    pub(crate) fn too_much_memory(&self) -> Vec<String> {
        self.above(MAX_RESIDENT_KIB, " KiB", |peak| peak.resident_kib)
    }

    fn above(&self, most: u64, unit: &str, value: impl Fn(&Peak) -> u64) -> Vec<String> {
        let peaks = self.peaks.iter().map(|(agent, peak)| (agent, value(peak)));
        let above = peaks.filter(|(_, value)| *value > most);
        above
            .map(|(agent, value)| format!("{agent}: {value}{unit}"))
            .collect()
    }
}
