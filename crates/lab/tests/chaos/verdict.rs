//! Checks the outcome of a run: each message's fate, and leaked processes, descriptors and memory.

use crate::world::{Sent, World, runs_in_home};
use jiff::{SignedDuration, Timestamp};
use posthaste_core::{MessageState, Proven};
use std::collections::HashMap;
use std::path::Path;

const REPEAT: &str = "(repeat: may have been shown before)";
/// Time between an offer and a kill within which the program may not have read the offer.
const KILL_NEAR_OFFER: SignedDuration = SignedDuration::from_secs(5);
/// Limit of a session's open descriptors; a higher count is a leak.
const MAX_SESSION_DESCRIPTORS: usize = 64;
/// A session of a debug build takes some 30 MiB.
const MAX_SESSION_RSS_KIB: u64 = 96 << 10;

#[derive(Default)]
pub(crate) struct Verdict {
    lost: Vec<String>,
    doubled: Vec<String>,
    false_receipts: Vec<String>,
    processes: Vec<String>,
    descriptors: Vec<String>,
    memory: Vec<String>,
    damage: Vec<String>,
    /// Work that was done too rarely to prove anything.
    shortfall: Vec<String>,
    repeats: usize,
    /// Messages that were offered to a program shortly before it was killed, and that it has not
    /// read.
    unread: usize,
}

impl Verdict {
    fn rows(&self) -> [(&'static str, &[String]); 8] {
        [
            ("lost", &self.lost),
            ("doubled unmarked", &self.doubled),
            ("false receipts", &self.false_receipts),
            ("leaked processes", &self.processes),
            ("leaked descriptors", &self.descriptors),
            ("too much memory", &self.memory),
            ("damage", &self.damage),
            ("done too seldom", &self.shortfall),
        ]
    }

    pub(crate) fn is_good(&self) -> bool {
        self.rows().iter().all(|(_, found)| found.is_empty())
    }

    pub(crate) fn summary(&self) -> String {
        let mut told = String::new();
        for (what, found) in self.rows() {
            told += &format!("{what}: {}\n", found.len());
            for one in found.iter().take(5) {
                told += &format!("  {one}\n");
            }
        }
        let Self {
            repeats, unread, ..
        } = self;
        told + &format!(
            "shown again, marked: {repeats}\noffered to a program that was killed then: {unread}"
        )
    }
}

/// Judge the messages, then end all processes and look for remains.
pub(crate) fn judge(world: &mut World, is_delivered: bool, shortfall: Vec<String>) -> Verdict {
    let mut verdict = Verdict {
        shortfall,
        ..Verdict::default()
    };
    let agents: Vec<String> = world.agents.iter().chain(&world.hooked).cloned().collect();
    let heard: HashMap<String, String> = agents
        .iter()
        .map(|agent| (agent.clone(), read_log(&world.log(agent), agent)))
        .collect();
    let mut journal = world.journal();
    for sent in &world.sent {
        let heard = &heard[&sent.to];
        let (plain, marked) = occurrences(heard, &sent.word);
        verdict.repeats += marked;
        if plain > 1 {
            verdict
                .doubled
                .push(format!("{} to {}: {plain} times", sent.word, sent.to));
        }
        let Some(id) = &sent.id else { continue };
        match journal.find(&id.parse().unwrap()) {
            Err(error) => verdict.lost.push(format!("{id}: {error}")),
            Ok(message_state) => {
                let is_open = matches!(
                    message_state.status.proven,
                    Proven::Stored | Proven::Offering | Proven::Uncertain
                );
                if is_open || (!is_delivered && plain + marked == 0) {
                    let is_offered = !is_open;
                    verdict
                        .lost
                        .push(format!("{id} to {}: offered: {is_offered}", sent.to));
                } else if plain + marked == 0 && !was_killed(world, sent, &message_state) {
                    verdict.false_receipts.push(format!("{id} to {}", sent.to));
                } else if plain + marked == 0 {
                    verdict.unread += 1;
                }
            }
        }
    }
    drop(journal);
    verdict.damage.extend(world.failed_sends.clone());
    stop_and_check_leaks(world, &mut verdict);
    verdict
}

/// Return whether the program or hook may have ended before it passed on its offer.
fn was_killed(world: &World, sent: &Sent, message_state: &MessageState) -> bool {
    let offers = message_state
        .receipts
        .iter()
        .filter(|receipt| receipt.state == "offered");
    let times: Vec<Timestamp> = offers.map(|receipt| receipt.at).collect();
    let kills = world
        .kills
        .get(&sent.to)
        .map(Vec::as_slice)
        .unwrap_or_default();
    kills.iter().any(|kill| {
        let is_near = |offer: &Timestamp| {
            let after = kill.duration_since(*offer);
            after > SignedDuration::ZERO && after < KILL_NEAR_OFFER
        };
        times.iter().any(is_near)
    })
}

/// Count the occurrences of `word` after an ordinary header and after a repeat header.
fn occurrences(heard: &str, word: &str) -> (usize, usize) {
    let (mut plain, mut marked) = (0, 0);
    for (at, _) in heard.match_indices(word) {
        let line = heard[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
        match heard[line..at].contains(REPEAT) {
            true => marked += 1,
            false => plain += 1,
        }
    }
    (plain, marked)
}

/// Return the input of an agent's programs, or the output of its hooks.
fn read_log(path: &Path, agent: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if agent.starts_with('h') {
        return text;
    }
    let mut bytes = Vec::new();
    for line in text.lines() {
        let hex = line.split_once(' ').map(|(_, hex)| hex).unwrap_or_default();
        for pair in hex.as_bytes().chunks_exact(2) {
            let pair = std::str::from_utf8(pair).unwrap();
            bytes.push(u8::from_str_radix(pair, 16).unwrap());
        }
    }
    // A header begins a line: text that was cut off before it belongs to another offer.
    String::from_utf8_lossy(&bytes)
        .replace("[ph ", "\n[ph ")
        .replace("[URGENT ph ", "\n[URGENT ph ")
}

fn stop_and_check_leaks(world: &mut World, verdict: &mut Verdict) {
    for agent in &world.agents {
        let Some((session, _)) = world.pids(agent) else {
            verdict.lost.push(format!("{agent} does not run"));
            continue;
        };
        let open = std::fs::read_dir(format!("/proc/{session}/fd")).map_or(0, Iterator::count);
        if open > MAX_SESSION_DESCRIPTORS {
            verdict.descriptors.push(format!("{agent}: {open}"));
        }
        let status = std::fs::read_to_string(format!("/proc/{session}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident =
            resident.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        if let Some(resident) = resident.filter(|kib| *kib > MAX_SESSION_RSS_KIB) {
            verdict.memory.push(format!("{agent}: {resident} KiB"));
        }
    }
    let doctor = world.ph(&["doctor"]).output().unwrap();
    if !doctor.status.success() {
        let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
        verdict.damage.push("ph doctor fails".to_owned());
        verdict.damage.extend(
            said.lines()
                .filter(|line| line.contains("WRONG"))
                .map(str::to_owned),
        );
    }
    for agent in world.agents.clone() {
        let stopped = world.ph(&["stop", &agent]).output().unwrap();
        if !stopped.status.success() {
            verdict
                .processes
                .push(format!("{agent} does not stop: {stopped:?}"));
        }
    }
    let home = world.home();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if runs_in_home(pid, &home) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            verdict.processes.push(format!("{pid}: {line}"));
        }
    }
}
