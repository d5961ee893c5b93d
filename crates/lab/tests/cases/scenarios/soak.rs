//! Soak test: sends many messages and kills the session, the agent and its hooks at random. No
//! message may be lost, arrive twice unmarked, or be accepted without the model having seen it.

use crate::list::CaseOutcome;
use crate::play::{Play, Sent};
use jiff::{SignedDuration, Timestamp};
use posthaste_lab::agents::{self, Agent};
use rustix::process::{Pid, Signal};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Default number of messages; `--messages N` sets another.
pub(crate) static MESSAGES: AtomicU32 = AtomicU32::new(30);
/// Senders take turns, so that none exceeds the limit between two agents.
const SENDERS: usize = 40;
const LARGEST_BURST: u32 = 12;
/// Duration of one search for hooks to kill.
const HOOK_HUNT: Duration = Duration::from_millis(800);
/// Timeout for all messages to be accepted after the last kill.
const PROVEN_WITHIN: Duration = Duration::from_secs(240);

#[derive(Default)]
struct Kills {
    sessions: u32,
    agents: u32,
    hooks: u32,
    /// When a session or an agent was killed.
    times: Vec<Timestamp>,
}

/// Linear congruential generator seeded with the number of messages, so that runs are comparable.
struct Random(u32);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % end
    }
}

pub(crate) fn kills(play: &mut Play) -> CaseOutcome {
    let wanted = MESSAGES.load(Ordering::Relaxed) as usize;
    let mut random = Random(u32::try_from(wanted).expect("a number"));
    let (mut sent, mut kills) = (Vec::new(), Kills::default());
    while sent.len() < wanted {
        for _ in 0..=random.below(LARGEST_BURST) {
            let from = format!("s{}", sent.len() % SENDERS);
            let one = play.send_as(&from, &format!("lab: number {}", sent.len()), &[]);
            play.expect_repeats(&one);
            sent.push(one);
        }
        play.terminal
            .watch(Duration::from_millis(u64::from(random.below(2_500))));
        match random.below(6) {
            0 => {
                kills.sessions += 1;
                kills.times.push(Timestamp::now());
                play.kill_session();
                play.start_again(random.below(2) == 0);
            }
            1 => {
                kills.agents += 1;
                let agent = play.agents_pid();
                kills.times.push(Timestamp::now());
                play.kill_agent(agent);
                play.start_again(true);
            }
            2 => kills.hooks += hunt(play),
            _ => {}
        }
    }
    prove(play, &sent);
    let (early, most) = judge(play, &sent, &kills.times);
    let Kills {
        sessions,
        agents,
        hooks,
        times: _,
    } = kills;
    let again = sent.iter().filter(|one| play.noted(one, "uncertain"));
    let (many, again) = (sent.len(), again.count());
    let what = format!(
        "{many} messages; killed: {sessions} sessions, {agents} agents, {hooks} hooks; \
         {again} uncertain; 0 lost, 0 doubled unmarked, 0 accepted unseen; \
         {early} accepted before their request (at most {} ms)",
        most.as_millis()
    );
    let receipt = "accepted".to_owned();
    CaseOutcome { what, receipt }
}

/// Kill hooks of this agent as they appear.
fn hunt(play: &Play) -> u32 {
    let stage = play.stage.dir().to_string_lossy().into_owned();
    let until = Instant::now() + HOOK_HUNT;
    let mut killed = 0;
    while Instant::now() < until {
        for process in agents::started_with(&stage) {
            let mut words = process.split(' ');
            let pid = words.next().and_then(|pid| pid.parse().ok());
            let is_ph = words.next().is_some_and(|program| program.ends_with("/ph"));
            let is_hook = is_ph && words.next() == Some("hook");
            if let (true, Some(pid)) = (is_hook, pid.and_then(Pid::from_raw)) {
                let done = rustix::process::kill_process(pid, Signal::KILL);
                killed += u32::from(done.is_ok());
            }
        }
    }
    killed
}

/// Wait until every message is accepted.
fn prove(play: &mut Play, sent: &[Sent]) {
    let is_missing = |play: &Play, one: &Sent| !play.noted(one, "accepted");
    let is_done = |play: &mut Play| !sent.iter().any(|one| is_missing(play, one));
    if !play.soon_within(PROVEN_WITHIN, is_done) {
        let missing: Vec<_> = sent.iter().filter(|one| is_missing(play, one)).collect();
        let seen: Vec<_> = missing
            .iter()
            .map(|one| play.tally.seen(&one.mark))
            .collect();
        let journeys: Vec<_> = missing
            .iter()
            .take(3)
            .map(|one| play.journey(one))
            .collect();
        panic!(
            "{} of {} were not accepted; seen by the model: {seen:?}; the first:\n{}",
            missing.len(),
            sent.len(),
            journeys.join("\n\n")
        );
    }
    play.free();
}

/// Check every message, and return how many were accepted before the model was given them, and by
/// how much at most.
fn judge(play: &mut Play, sent: &[Sent], kills: &[Timestamp]) -> (usize, SignedDuration) {
    play.tally.look();
    let (mut early, mut most) = (0, SignedDuration::ZERO);
    for one in sent {
        let mark = &one.mark;
        let facts = &play.facts;
        let count = |text: &str| play.tally.given(text, |at| facts.conversation_at(at));
        let Some((given, _)) = count(mark) else {
            panic!("{mark} is accepted and unseen");
        };
        let times = count(&format!("{mark}]")).map_or(0, |(_, times)| times);
        assert!(
            times < 2,
            "{mark} came {times} times unmarked; its journey:\n{}\nthe requests around it:\n{}",
            play.journey(one),
            requests_with(play, mark)
        );
        let (accepted, evidence) = facts.first(&one.id, "accepted").expect("it is accepted");
        if accepted < given {
            let begun = facts
                .first(&one.id, "offering")
                .map_or(accepted, |first| first.0);
            let ahead = given.duration_since(accepted);
            let is_in = |from, to| kills.iter().any(|at| (from..=to).contains(at));
            let may_be_ahead = match evidence {
                RESUMED_SHOWS => is_in(begun, accepted),
                _ => ahead <= row_ahead(play.agent) || is_in(accepted, accepted + KILL_AHEAD),
            };
            assert!(
                may_be_ahead,
                "{mark} was accepted {ahead:?} before the model was given it; its journey:\n{}",
                play.journey(one)
            );
            early += 1;
            most = most.max(ahead);
        }
    }
    play.judge();
    (early, most)
}

/// Evidence of a message that a resumed conversation proves.
const RESUMED_SHOWS: &str = "the transcript of the resumed conversation shows the message";
/// Time within which the request would have followed the row, if the agent had not been killed.
const KILL_AHEAD: SignedDuration = SignedDuration::from_secs(1);

/// Time by which an agent's transcript may be ahead of the request (ADR 22), on a busy machine.
fn row_ahead(agent: Agent) -> SignedDuration {
    match agent {
        Agent::Claude | Agent::Codex | Agent::Gemini => SignedDuration::from_secs(1),
        Agent::OpenCode => SignedDuration::ZERO,
    }
}

/// Describe the requests in which the number of a text differs from the request before.
fn requests_with(play: &Play, text: &str) -> String {
    let (mut summary, mut before) = (String::new(), 0);
    for (number, turn) in play.tally.turns().iter().enumerate() {
        let count = turn.count(text);
        if count != before {
            let heads: Vec<String> = turn
                .pieces
                .iter()
                .map(|piece| head_of(&piece.text))
                .collect();
            let first = heads
                .iter()
                .take(4)
                .cloned()
                .collect::<Vec<_>>()
                .join(" | ");
            let last = heads.last().cloned().unwrap_or_default();
            summary += &format!(
                "{number}: {before} to {count}, {} pieces: {first} … {last}\n",
                heads.len()
            );
        }
        before = count;
    }
    summary
}

fn head_of(text: &str) -> String {
    text.chars().take(60).collect::<String>().replace('\n', " ")
}
