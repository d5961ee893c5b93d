//! Speed of mail, as ratios to limits from the same run, because machines are noisy.
//!
//! `just bench` runs it. `PH_BENCH_MESSAGES` sets the size of the large journal (default:
//! 1,000,000), `PH_BENCH_DIR` the directory of the journals, to measure another disk.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]

use jiff::Timestamp;
use posthaste_core::{AgentName, Draft, IdPrefix, MessageId};
use posthaste_lab::bench::{BODY, Goal, Programs, SyncedCommit, Table, median, middle, time};
use posthaste_store::operation::Post;
use posthaste_store::search::{Query, ResultOrder};
use posthaste_store::{Home, Journal, Listing, Patience, Writer, transfer};
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use uuid::Uuid;

fn main() {
    // An argument selects one part; cargo adds a flag of its own.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let dir = std::env::var_os("PH_BENCH_DIR");
    let dir = dir.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let mut table = Table::new_in(Path::new(&dir));
    type Part = (&'static str, fn(&mut Table));
    let parts: [Part; 3] = [
        // This part comes first, because some file systems create files slowly for minutes after
        // many were removed. For the same reason all files are removed at the end.
        ("group", group_commit),
        ("processes", processes),
        ("large", large_journal),
    ];
    for (name, part) in parts {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            part(&mut table);
        }
    }
    table.end();
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn post(to: &AgentName) -> Post {
    let draft = Draft::new(
        MessageId(Uuid::new_v4()),
        AgentName::human(),
        to.clone(),
        BODY,
    );
    Post {
        now: Timestamp::now(),
        drafts: vec![draft],
    }
}

fn command(program: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PH_HOME", home)
        .env("HOME", home)
        .env("PH_AGENT", "bot");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Return the time from a process's start to its end.
fn to_end(program: &Path, home: &Path, args: &[&str]) -> Duration {
    let mut command = command(program, home, args);
    time(|| assert!(command.status().unwrap().success()))
}

/// Like [`to_end`], for a process whose output is read to the end.
fn to_last_word(program: &Path, home: &Path, args: &[&str]) -> Duration {
    let mut command = command(program, home, args);
    command.stdout(Stdio::piped());
    time(|| {
        let shown = command.output().unwrap();
        assert!(!shown.stdout.is_empty(), "there is new mail");
    })
}

/// Return the time from a process's start to its reply, which comes when the message is committed
/// and synced.
fn to_answer(program: &Path, home: &Path, args: &[&str]) -> Duration {
    let mut command = command(program, home, args);
    command.stdout(Stdio::piped());
    let mut child = None;
    let took = time(|| {
        let child = child.insert(command.spawn().unwrap());
        let mut answer = [0; 37];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut answer)
            .unwrap();
    });
    let ended = child.unwrap().wait().unwrap();
    assert!(ended.success(), "a message that is held costs more");
    took
}

/// Measure the cost of one process.
fn processes(table: &mut Table) {
    let programs = Programs::build();
    let [ph, empty, open] = &["ph", "lab-empty", "lab-open"].map(|name| programs.path(name));
    let dir = table.dir.path().to_owned();
    let home = dir.join("home");
    let mut limit = SyncedCommit::new(&dir.join("limit.db"));
    let home_arg = home.to_str().unwrap().to_owned();
    // Recipients alternate, because so many messages to one per minute would be held as a storm.
    let others = (0..40).map(|each| format!("other-{each}"));
    let sends_to: Vec<_> = others.collect();
    let mut sends_to = sends_to.iter().cycle();
    let mut send = || ["send", sends_to.next().unwrap(), BODY];
    for _ in 0..40 {
        to_end(ph, &home, &send());
    }
    let [
        mut empties,
        mut commits,
        mut sends,
        mut ends,
        mut opens,
        mut quiet,
        mut shown,
    ] = [const { Vec::new() }; 7];
    for _ in 0..400 {
        empties.push(to_end(empty, &home, &[]));
        commits.push(limit.commit(BODY));
        sends.push(to_answer(ph, &home, &send()));
        ends.push(to_end(ph, &home, &send()));
        opens.push(to_end(open, &home, &[&home_arg]));
        quiet.push(to_end(ph, &home, &["check", "--inject"]));
        // Sent by the person, because an agent's messages to itself would be held as a storm.
        let mut state = command(ph, &home, &["send", "bot", BODY]);
        state.env_remove("PH_AGENT").status().unwrap();
        shown.push(to_last_word(ph, &home, &["check", "--inject"]));
    }
    let commit = median(commits);
    let floor = median(empties) + commit;
    let open = median(opens);
    let send = median(sends);
    table.row(
        "ph send to its answer, against an empty process + a commit",
        send,
        floor,
        &Goal::AtMost(2.0),
    );
    table.row(
        "  the same, against one that opens the journal + a commit",
        send,
        open + commit,
        &Goal::None,
    );
    table.row(
        "  the same to the end of the process",
        median(ends),
        floor,
        &Goal::None,
    );
    table.row(
        "check --inject, nothing new, against opening it",
        median(quiet),
        open,
        &Goal::AtMost(2.0),
    );
    table.row(
        "check --inject, a new message, against the same",
        median(shown),
        open,
        &Goal::AtMost(2.0),
    );
}

/// Compare sixty-four concurrent senders with one, through the same writer.
fn group_commit(table: &mut Table) {
    let [mut ones, mut manies, mut begun] = [const { Vec::new() }; 3];
    for round in 0..3 {
        let home = |name: &str| table.dir.path().join(format!("{name}-{round}"));
        ones.push(rate(&home("one"), 1, 1_000, Filed::Afterwards));
        manies.push(rate(&home("many"), 64, 250, Filed::Afterwards));
        begun.push(rate(&home("begun"), 1, 1_000, Filed::Meanwhile));
    }
    let (one, many, begun) = (middle(ones), middle(manies), middle(begun));
    let mut row = |what: &str, one: f64, goal| {
        let shown = |rate: f64| format!("{rate:.0}/s");
        table.verdict(what, &shown(many), &shown(one), many / one, goal);
    };
    row(
        "64 senders in one process, against one at a time",
        one,
        &Goal::None,
    );
    row(
        "  against one whose files are begun while it is committed",
        begun,
        &Goal::None,
    );
}

/// Whether a message's file is started while its sender waits for the commit. This helps one
/// sender; with many senders there is no idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filed {
    Afterwards,
    Meanwhile,
}

/// Return the messages per second that this number of senders store, sync and file. The senders are
/// tasks of one thread, like the connections of a session.
fn rate(home: &Path, senders: usize, each: usize, filed: Filed) -> f64 {
    let (writer, thread) =
        Writer::start(&Home::open(home, None).unwrap(), Patience::DEFAULT).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let took = time(|| {
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for sender in 0..senders {
                let writer = writer.clone();
                let to = name(&format!("agent-{}", sender % 8));
                tasks.spawn(async move {
                    for _ in 0..each {
                        stored(&writer, post(&to), filed).await;
                    }
                });
            }
            tasks.join_all().await;
        });
    });
    drop(writer);
    thread.join();
    (senders * each) as f64 / took.as_secs_f64()
}

/// Store one message, and wait until it is committed and filed.
async fn stored(writer: &Writer, post: Post, filed: Filed) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let then = move |committed| drop(sender.send(committed));
    let mut prewrite = writer.submit(post, then).unwrap();
    if filed == Filed::Meanwhile {
        prewrite.begin();
    }
    receiver.await.unwrap().settle(&prewrite).unwrap().unwrap();
}

/// Compare look-ups in a large journal with those in a small one, and with a scan of all messages.
fn large_journal(table: &mut Table) {
    let large_size = std::env::var("PH_BENCH_MESSAGES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    let dir = table.dir.path().to_owned();
    let mut small = Filled::new(&dir.join("small"), 1_000);
    let mut large = Filled::new(&dir.join("large"), large_size);
    let scan = time(|| {
        let mut last = 0;
        let mut unread = 0u64;
        loop {
            let page = large.journal.facts_after(last).unwrap();
            let Some(end) = page.last() else { break };
            last = end.seq;
            unread += page
                .iter()
                .filter(|record| record.agent == "wanted")
                .count() as u64;
        }
        assert_eq!(unread, Filled::WANTED as u64);
    });
    type Look = (&'static str, fn(&mut Filled));
    let looks: [Look; 3] = [
        ("unread mail of one agent", Filled::unread),
        ("count", Filled::count),
        ("a thread", Filled::thread),
    ];
    for (what, look) in looks {
        let [mut in_small, mut in_large] = [const { Vec::new() }; 2];
        for _ in 0..300 {
            in_small.push(time(|| look(&mut small)));
            in_large.push(time(|| look(&mut large)));
        }
        let (in_small, in_large) = (median(in_small), median(in_large));
        table.row(
            &format!("{what}: {large_size} messages, against 1,000"),
            in_large,
            in_small,
            &Goal::AtMost(1.5),
        );
        table.row(
            &format!("{what}: against reading the whole journal"),
            in_large,
            scan,
            &Goal::None,
        );
    }
    let filled = time(|| large.search("nobody"));
    table.line(&format!(
        "{:<58} {:>12}",
        format!("filling the search index, {large_size} messages"),
        micros(filled)
    ));
    for (what, words) in [("a rare word", "needle"), ("a common word", "login")] {
        let times = (0..50).map(|_| time(|| large.search(words))).collect();
        let limit = Duration::from_millis(50);
        table.row(
            &format!("search for {what}, {large_size} messages, against 50 ms"),
            median(times),
            limit,
            &Goal::None,
        );
    }
}

/// Create a journal with many messages, twenty of which are for one agent.
struct Filled {
    journal: Journal,
    wanted: AgentName,
    thread: IdPrefix,
}

impl Filled {
    const WANTED: usize = 20;

    fn new(path: &Path, size: usize) -> Self {
        let mut journal =
            Journal::open(Home::open(path, None).unwrap(), Patience::DEFAULT).unwrap();
        let (thread, mut lines) = facts(size);
        transfer::import(&mut journal, &mut lines, |_| {}).unwrap();
        Self {
            journal,
            wanted: name("wanted"),
            thread: thread.into(),
        }
    }

    fn unread(&mut self) {
        let messages = self
            .journal
            .inbox(&self.wanted, Listing::Unread, Timestamp::now())
            .unwrap();
        assert_eq!(messages.len(), Self::WANTED);
    }

    fn count(&mut self) {
        let count = self.journal.count(&self.wanted, Timestamp::now()).unwrap();
        assert_eq!(count.unread, Self::WANTED as u64);
    }

    fn thread(&mut self) {
        let state = self.journal.find(&self.thread).unwrap();
        let messages = self
            .journal
            .thread(state.message.envelope.thread_id)
            .unwrap();
        assert_eq!(messages.len(), Self::WANTED);
    }

    fn search(&mut self, words: &str) {
        let query = Query {
            words: words.to_owned(),
            from: None,
            to: None,
            order: ResultOrder::NewestFirst,
            limit: 20,
        };
        self.journal.search(&query, |_| {}).unwrap();
    }
}

/// Generate `size` messages as an export would contain them.
fn facts(size: usize) -> (MessageId, BufReader<impl Read>) {
    let thread = MessageId(Uuid::new_v4());
    let every = size / Filled::WANTED;
    let mut index = 0;
    let mut rest = Vec::new();
    let lines = Lines(move |out: &mut [u8]| {
        while rest.is_empty() && index < size {
            let is_wanted = index % every == every - 1;
            let id = if index == every - 1 {
                thread
            } else {
                MessageId(Uuid::new_v4())
            };
            let (agent, thread) = if is_wanted {
                ("wanted".to_owned(), thread)
            } else {
                (format!("agent-{}", index % 1_000), id)
            };
            let body = if index % 100_000 == 7 {
                format!("{BODY} needle")
            } else {
                BODY.to_owned()
            };
            let data = format!(
                r#"{{"from":"human","from_evidence":"default","body":"{body}","priority":"normal","thread_id":"{thread}"}}"#
            );
            rest = format!(
                "{{\"seq\":{},\"origin\":\"bench\",\"id\":\"{id}\",\"at\":\"2026-11-15T08:00:00Z\",\"agent\":\"{agent}\",\"kind\":\"message\",\"data\":{data}}}\n",
                index + 1
            )
            .into_bytes();
            index += 1;
        }
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        rest.drain(..count);
        count
    });
    (thread, BufReader::with_capacity(1 << 16, lines))
}

struct Lines<F>(F);

impl<F: FnMut(&mut [u8]) -> usize> Read for Lines<F> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        Ok(self.0(out))
    }
}
