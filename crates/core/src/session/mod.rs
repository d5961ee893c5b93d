//! Sessions in the journal: starts, ends and conversations.
//!
//! Everything else about a session is live state and never a fact. A missing end is recorded by the
//! agent's next session, which alone can know that the earlier one is gone.

pub mod activity;

use crate::fact::{Event, Fact, Record};
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// A session started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The id of this run.
    pub run: Uuid,
    pub pid: u32,
    /// Start time in kernel ticks; distinguishes a reused pid.
    pub pid_started: u64,
    pub child_pid: u32,
    pub child_started: u64,
    pub command: Vec<String>,
    pub cwd: String,
    pub harness: String,
    /// The boot id. Pids of another boot are meaningless.
    pub boot: String,
}

/// A session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub run: Uuid,
    pub how: Ending,
}

/// The conversation of an agent's program, as reported by the agent's own hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    pub run: Uuid,
    /// The id for the agent's own resume command.
    pub id: String,
    pub harness: String,
    pub cwd: String,
    /// Path of the file in which the agent records the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// Whether the run has begun without this conversation, which an earlier run was in. A restart
    /// resumes it, unless the run has recorded a conversation of its own since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_resumed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The program exited with this status.
    Exit(i32),
    /// A signal ended the program.
    Signal(i32),
    /// The session disappeared without recording its end.
    Crashed,
    /// The session failed, possibly before it started.
    Failed(String),
}

/// ILL, ABRT, BUS, FPE, KILL and SEGV on Linux.
const FAULT_SIGNALS: [i32; 6] = [4, 6, 7, 8, 9, 11];
/// Exit status of a shell for a program that signal 0 ended.
const SIGNAL_STATUS_BASE: i32 = 128;

impl Ending {
    /// Whether nobody asked for this end: the session disappeared, or the program was ended by a
    /// signal that indicates a fault or by SIGKILL. A shell reports such a signal as exit status
    /// 128 plus its number. Any other exit status does not distinguish a crash from a request.
    pub fn is_crash(&self) -> bool {
        match self {
            Self::Crashed => true,
            Self::Signal(number) => FAULT_SIGNALS.contains(number),
            Self::Exit(status) => {
                FAULT_SIGNALS.contains(&status.saturating_sub(SIGNAL_STATUS_BASE))
            }
            Self::Failed(_) => false,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
            Self::Crashed => f.write_str("crashed"),
            Self::Failed(why) => write!(f, "failed: {}", crate::text::one_line(why, 200)),
        }
    }
}

/// Return the name of a signal whose number is the same on Linux and macOS.
fn signal_name(number: i32) -> Option<&'static str> {
    let name = match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        _ => return None,
    };
    Some(name)
}

/// A session with all its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub agent: AgentName,
    pub started_at: Timestamp,
    pub started: Started,
    pub end: Option<(Timestamp, Ending)>,
}

impl Run {
    /// Return the run that `fact` begins, if any.
    pub fn begun_by(fact: &Fact) -> Option<Self> {
        let Event::Started(started) = &fact.event else {
            return None;
        };
        Some(Self {
            agent: fact.agent.clone(),
            started_at: fact.at,
            started: started.clone(),
            end: None,
        })
    }

    pub fn apply(&mut self, fact: &Fact) {
        if fact.agent != self.agent {
            return;
        }
        if let Some(next) = Self::begun_by(fact) {
            *self = next;
        } else if let Event::Ended(ended) = &fact.event
            && ended.run == self.started.run
            // The first recorded end counts.
            && self.end.is_none()
        {
            self.end = Some((fact.at, ended.how.clone()));
        }
    }
}

/// Return the events that start a session. The caller holds the agent's lock, so a latest run
/// without an end has crashed.
pub fn start(started: &Started, latest: Option<&Run>) -> Vec<Event> {
    let same = |run: &&Run| run.started.run == started.run;
    if latest.filter(same).is_some() {
        return Vec::new();
    }
    let left_open = latest.filter(|run| run.end.is_none());
    let crashed = left_open.map(|run| {
        Event::Ended(Ended {
            run: run.started.run,
            how: Ending::Crashed,
        })
    });
    let started = Event::Started(started.clone());
    crashed.into_iter().chain([started]).collect()
}

/// Return the events that end a session: none if it has ended or is not the latest.
pub fn end(ended: &Ended, latest: Option<&Run>) -> Vec<Event> {
    let is_open = latest.is_some_and(|run| run.started.run == ended.run && run.end.is_none());
    let event = is_open.then(|| Event::Ended(ended.clone()));
    event.into_iter().collect()
}

/// Return the event that records `conversation`, unless it is already the latest.
pub fn converse(conversation: &Conversation, latest: Option<&Conversation>) -> Vec<Event> {
    let is_new = latest != Some(conversation);
    let event = is_new.then(|| Event::Conversation(conversation.clone()));
    event.into_iter().collect()
}

/// The latest run and conversation of every agent, in memory: the model that the journal's view
/// must agree with.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sessions {
    latest: BTreeMap<AgentName, Run>,
    conversations: BTreeMap<AgentName, Conversation>,
}

impl Sessions {
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut sessions = Self::default();
        for fact in records.into_iter().filter_map(|record| record.read().ok()) {
            sessions.apply(&fact);
        }
        sessions
    }

    pub fn apply(&mut self, fact: &Fact) {
        if let Event::Conversation(conversation) = &fact.event {
            self.conversations
                .insert(fact.agent.clone(), conversation.clone());
        }
        match self.latest.get_mut(&fact.agent) {
            Some(run) => run.apply(fact),
            None => {
                let first = Run::begun_by(fact);
                let first = first.map(|run| (fact.agent.clone(), run));
                self.latest.extend(first);
            }
        }
    }

    pub fn get(&self, agent: &AgentName) -> Option<&Run> {
        self.latest.get(agent)
    }

    /// Return the latest conversation of an agent, from any run.
    pub fn conversation(&self, agent: &AgentName) -> Option<&Conversation> {
        self.conversations.get(agent)
    }

    /// Return the latest runs, ordered by agent.
    pub fn all(&self) -> impl Iterator<Item = &Run> {
        self.latest.values()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::mail::tests::name;

    pub(crate) fn started(run: u128) -> Started {
        Started {
            run: Uuid::from_u128(run),
            pid: 100,
            pid_started: 7_000,
            child_pid: 101,
            child_started: 7_001,
            command: vec!["sh".into(), "-c".into(), "a \u{1b} b".into()],
            cwd: "/tmp".into(),
            harness: "generic".into(),
            boot: "b00t".into(),
        }
    }

    fn ended(run: u128, how: Ending) -> Ended {
        let run = Uuid::from_u128(run);
        Ended { run, how }
    }

    fn fact(agent: &str, at: i64, event: Event) -> Fact {
        Fact {
            id: Uuid::from_u128(at as u128),
            at: Timestamp::from_second(at).unwrap(),
            agent: name(agent),
            event,
        }
    }

    #[test]
    fn an_ending_is_written_as_a_word_and_as_json() {
        let check = |how: Ending, word: &str, json: &str| {
            assert_eq!(how.to_string(), word);
            assert_eq!(serde_json::to_string(&how).unwrap(), json);
            assert_eq!(serde_json::from_str::<Ending>(json).unwrap(), how);
        };
        check(Ending::Exit(0), "exit 0", r#"{"exit":0}"#);
        check(Ending::Signal(9), "signal 9 (KILL)", r#"{"signal":9}"#);
        check(Ending::Signal(60), "signal 60", r#"{"signal":60}"#);
        check(Ending::Crashed, "crashed", r#""crashed""#);
        check(
            Ending::Failed("no\nsuch command".into()),
            "failed: no such command",
            r#"{"failed":"no\nsuch command"}"#,
        );
    }

    #[test]
    fn only_a_fault_or_a_lost_session_is_a_crash() {
        let check = |how: Ending, is_crash: bool| assert_eq!(how.is_crash(), is_crash, "{how}");
        check(Ending::Crashed, true);
        check(Ending::Signal(9), true);
        check(Ending::Signal(15), false);
        check(Ending::Failed("no such command".into()), false);
        check(Ending::Exit(0), false);
        check(Ending::Exit(1), false);
        // A shell reports SIGKILL and SIGSEGV like this, and also Ctrl+C and SIGTERM.
        check(Ending::Exit(137), true);
        check(Ending::Exit(139), true);
        check(Ending::Exit(130), false);
        check(Ending::Exit(143), false);
        check(Ending::Exit(i32::MIN), false);
    }

    #[test]
    fn the_latest_run_and_its_first_end_count() {
        use Event::{Ended as E, Started as S};
        let check = |facts: &[(&str, Event)], want: Option<(u128, Option<Ending>)>| {
            let mut sessions = Sessions::default();
            for (at, (agent, event)) in (1..).zip(facts) {
                sessions.apply(&fact(agent, at, event.clone()));
            }
            let got = sessions.get(&name("bob"));
            let got = got.map(|run| {
                let how = run.end.as_ref().map(|(_, how)| how.clone());
                (run.started.run.as_u128(), how)
            });
            assert_eq!(got, want, "{facts:?}");
        };
        let exit = |code| Ending::Exit(code);
        check(&[], None);
        check(&[("bob", S(started(1)))], Some((1, None)));
        check(&[("alice", S(started(1)))], None);
        check(
            &[("bob", S(started(1))), ("bob", E(ended(1, exit(0))))],
            Some((1, Some(exit(0)))),
        );
        check(
            &[
                ("bob", S(started(1))),
                ("bob", E(ended(1, exit(0)))),
                ("bob", E(ended(1, Ending::Crashed))),
            ],
            Some((1, Some(exit(0)))),
        );
        check(
            &[("bob", S(started(1))), ("bob", E(ended(2, exit(0))))],
            Some((1, None)),
        );
        check(
            &[
                ("bob", S(started(1))),
                ("bob", S(started(2))),
                ("bob", E(ended(1, exit(0)))),
            ],
            Some((2, None)),
        );
    }

    #[test]
    fn a_start_ends_an_open_run() {
        let run = |n, end: Option<Ending>| Run {
            agent: name("bob"),
            started_at: Timestamp::UNIX_EPOCH,
            started: started(n),
            end: end.map(|how| (Timestamp::UNIX_EPOCH, how)),
        };
        let begin = Event::Started(started(2));
        let crash = Event::Ended(ended(1, Ending::Crashed));
        let closed = run(1, Some(Ending::Exit(0)));
        let check = |latest: Option<&Run>, want: &[&Event]| {
            let got = start(&started(2), latest);
            assert_eq!(got.iter().collect::<Vec<_>>(), want, "{latest:?}");
        };
        check(None, &[&begin]);
        check(Some(&closed), &[&begin]);
        check(Some(&run(1, None)), &[&crash, &begin]);
        check(Some(&run(2, None)), &[]);

        let over = ended(1, Ending::Exit(0));
        assert_eq!(
            end(&over, Some(&run(1, None))),
            [Event::Ended(over.clone())]
        );
        assert_eq!(end(&over, Some(&closed)), []);
        assert_eq!(end(&over, Some(&run(2, None))), []);
        assert_eq!(end(&over, None), []);
    }
}
