//! Checks the outcome of a run: each message's fate, and leaked processes, descriptors and memory.

use crate::world::{Sent, World, runs_in_home};
use jiff::{SignedDuration, Timestamp};
use posthaste_core::{MessageState, Proven};
use posthaste_store::Journal;
use std::collections::HashMap;
use std::path::Path;

const REPEAT: &str = "(repeat: may have been shown before)";
/// Time between an offer and a kill within which the program may not have read the offer.
const KILL_NEAR_OFFER: SignedDuration = SignedDuration::from_secs(5);

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
        let mut summary = String::new();
        for (what, found) in self.rows() {
            summary += &format!("{what}: {}\n", found.len());
            for one in found.iter().take(5) {
                summary += &format!("  {one}\n");
            }
        }
        let Self {
            repeats, unread, ..
        } = self;
        summary
            + &format!(
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
    let seen = seen_offers(world, &heard, &mut journal);
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
                } else if plain + marked == 0 && !was_unread(world, sent, &message_state, &seen) {
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

/// Return when each agent's program was offered what it has shown to have read: messages that were
/// offered once and seen once.
fn seen_offers(
    world: &World,
    heard: &HashMap<String, String>,
    journal: &mut Journal,
) -> HashMap<String, Vec<Timestamp>> {
    let mut seen: HashMap<String, Vec<Timestamp>> = HashMap::new();
    for sent in &world.sent {
        let Some(id) = &sent.id else { continue };
        let Ok(state) = journal.find(&id.parse().unwrap()) else {
            continue;
        };
        if let ([at], (1, 0)) = (&*offers(&state), occurrences(&heard[&sent.to], &sent.word)) {
            seen.entry(sent.to.clone()).or_default().push(*at);
        }
    }
    seen
}

fn offers(state: &MessageState) -> Vec<Timestamp> {
    let receipts = state.receipts.iter();
    let offers = receipts.filter(|receipt| receipt.state == "offered");
    offers.map(|receipt| receipt.at).collect()
}

/// Return whether the program was killed before it read its last offer. A program reads its offers
/// in order, so it must not have read a later one before it was killed. A hook is given its offer
/// before the offer is recorded, so it has no excuse.
fn was_unread(
    world: &World,
    sent: &Sent,
    message_state: &MessageState,
    seen: &HashMap<String, Vec<Timestamp>>,
) -> bool {
    let Some(last) = offers(message_state).last().copied() else {
        return false;
    };
    let kills = world.kills.get(&sent.to).into_iter().flatten();
    let Some(kill) = kills.copied().filter(|kill| *kill > last).min() else {
        return false;
    };
    let mut seen = seen.get(&sent.to).into_iter().flatten();
    world.agents.contains(&sent.to)
        && kill.duration_since(last) < KILL_NEAR_OFFER
        && !seen.any(|offer| last < *offer && *offer < kill)
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
        if world.pids(agent).is_none() {
            verdict.lost.push(format!("{agent} does not run"));
        }
    }
    world.sample();
    verdict.descriptors = world.samples.too_many_descriptors();
    verdict.memory = world.samples.too_much_memory();
    let doctor = world.ph(&["doctor"]).output().unwrap();
    if !doctor.status.success() {
        let findings = String::from_utf8_lossy(&doctor.stdout).into_owned();
        verdict.damage.push("ph doctor fails".to_owned());
        verdict.damage.extend(
            findings
                .lines()
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
