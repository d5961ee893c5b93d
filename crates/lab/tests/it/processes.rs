//! Several processes on one journal, and the state after one of them is killed.

use jiff::Timestamp;
use posthaste_core::{MessageId, Record};
use posthaste_lab::{TempHome, assert_intact, assert_views_agree, draft, name, post, text_of};
use posthaste_store::follow::{Followed, Follower};
use posthaste_store::operation::Post;
use posthaste_store::{Error, Journal, Patience, files};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `lab-append`, killed when dropped.
struct Appender {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Appender {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lab-append"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn append(home: &TempHome, agent: &str, count: u32) -> Self {
        Self::start(&[home.path().to_str().unwrap(), agent, &count.to_string()])
    }

    fn hold(home: &TempHome) -> Self {
        let mut holder = Self::start(&["--hold", home.path().to_str().unwrap()]);
        assert_eq!(holder.line().as_deref(), Some("held"));
        holder
    }

    /// Return the next line, if it is complete.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.strip_suffix('\n').map(str::to_owned)
    }

    /// Return the next message that is reported as stored.
    fn acknowledged(&mut self) -> Option<MessageId> {
        self.line().map(|line| line.parse().unwrap())
    }

    fn finish(mut self) -> Vec<MessageId> {
        let ids = std::iter::from_fn(|| self.acknowledged()).collect();
        assert!(self.child.wait().unwrap().success());
        ids
    }

    /// Send SIGKILL, so that the process cannot clean up.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Check that every acknowledged message is stored completely, and has its file.
fn assert_kept(journal: &mut Journal, acknowledged: &[MessageId]) {
    for id in acknowledged {
        let message_state = journal.state(*id).unwrap().expect("acknowledged");
        assert_eq!(
            files::body(journal.home(), &message_state.message).unwrap(),
            text_of(*id)
        );
        let second = message_state.message.created_at.strftime("%Y%m%d-%H%M%S");
        let dir = journal.home().messages(&message_state.message.to);
        let file = dir.join(format!("{second}-{}.md", id.id8()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text_of(*id));
    }
}

#[test]
fn acknowledged_messages_outlive_a_kill() {
    let home = TempHome::new();
    let mut victim = Appender::append(&home, "victim", u32::MAX);
    let writers = ["one", "two", "three"].map(|agent| Appender::append(&home, agent, 1_000));
    let mut acknowledged: Vec<MessageId> = (0..100)
        .map(|_| victim.acknowledged().expect("it runs until it is killed"))
        .collect();
    victim.kill();
    acknowledged.extend(std::iter::from_fn(|| victim.acknowledged()));
    for writer in writers {
        let ids = writer.finish();
        assert_eq!(ids.len(), 1_000);
        acknowledged.extend(ids);
    }

    let mut journal = home.journal();
    assert_intact(&mut journal);
    assert_kept(&mut journal, &acknowledged);
    assert_views_agree(&mut journal, &[Timestamp::now()]);
    // At most the last message has no acknowledgement.
    let head = journal.head().unwrap();
    let known = acknowledged.len() as u64;
    assert!(
        head == known || head == known + 1,
        "{head} facts, {known} known"
    );
}

#[test]
fn repeated_kills_lose_no_message() {
    let home = TempHome::new();
    let mut acknowledged = Vec::new();
    // Each is killed in another phase: opening, committing, filing, ringing, cleaning up.
    for round in 0..40 {
        let mut victim = Appender::append(&home, "bob", u32::MAX);
        for _ in 0..round {
            acknowledged.push(victim.acknowledged().expect("it runs until it is killed"));
        }
        victim.kill();
        acknowledged.extend(std::iter::from_fn(|| victim.acknowledged()));
    }
    let mut journal = home.journal();
    assert_intact(&mut journal);
    assert_kept(&mut journal, &acknowledged);
    assert_views_agree(&mut journal, &[Timestamp::now()]);
    let unknown = journal.head().unwrap() - acknowledged.len() as u64;
    assert!(unknown <= 40, "{unknown}");
}

#[test]
fn ten_processes_create_one_home() {
    // Each round is another chance for a race.
    for _ in 0..5 {
        let home = TempHome::on_disk();
        let agents: Vec<String> = (0..10).map(|n| format!("agent-{n}")).collect();
        let writers: Vec<_> = agents
            .iter()
            .map(|agent| Appender::append(&home, agent, 1))
            .collect();
        let acknowledged: Vec<_> = writers.into_iter().flat_map(Appender::finish).collect();
        assert_eq!(acknowledged.len(), 10);

        let mut journal = home.journal();
        assert_intact(&mut journal);
        assert_kept(&mut journal, &acknowledged);
        let facts = journal.facts_after(0).unwrap();
        let origins: BTreeSet<_> = facts.iter().map(|record| record.origin.as_str()).collect();
        assert_eq!(origins, BTreeSet::from([journal.origin()]));
    }
}

/// Read until `enough`, with the position of the mark among the facts.
fn follow_until(
    follower: &mut Follower,
    mut enough: impl FnMut(&[Record]) -> bool,
) -> (Vec<Record>, Option<usize>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut facts = Vec::new();
    let mut mark = None;
    while !enough(&facts) {
        let next = follower.next(Some(deadline)).unwrap();
        match next.expect("the fact comes within a minute") {
            Followed::Fact(record) => facts.push(record),
            Followed::Mark { seq } => {
                assert_eq!(mark, None, "there is one mark");
                assert_eq!(seq, facts.last().map_or(0, |record| record.seq));
                mark = Some(facts.len());
            }
        }
    }
    (facts, mark)
}

fn ids(facts: &[Record]) -> Vec<MessageId> {
    facts
        .iter()
        .map(|record| record.id.parse().unwrap())
        .collect()
}

#[test]
fn a_follower_gets_history_a_mark_and_new_facts() {
    let home = TempHome::on_disk();
    let history = Appender::append(&home, "bob", 30).finish();
    let mut follower = Follower::new(home.journal(), 0, None).unwrap();
    let (facts, mark) = follow_until(&mut follower, |facts| facts.len() == 30);
    assert_eq!((ids(&facts), mark), (history, None));
    let marked = follower.next(None).unwrap();
    assert_eq!(marked, Some(Followed::Mark { seq: 30 }));
    // No further fact arrives.
    assert_eq!(follower.next(Some(Instant::now())).unwrap(), None);

    let live = Appender::append(&home, "carol", 30).finish();
    let (facts, mark) = follow_until(&mut follower, |facts| facts.len() == 30);
    assert_eq!((ids(&facts), mark), (live, None));
}

#[test]
fn a_follower_misses_no_fact_of_two_writers() {
    let home = TempHome::new();
    let before = Appender::append(&home, "bob", 50).finish();
    let mut writers = ["bob", "carol"].map(|agent| Appender::append(&home, agent, 400));
    // Both write before the follower starts.
    let first = writers.each_mut().map(|w| w.acknowledged().unwrap());
    let mut follower = Follower::new(home.journal(), 0, None).unwrap();
    let mut for_carol = Follower::new(home.journal(), 10, Some(name("carol"))).unwrap();

    let (facts, mark) = follow_until(&mut follower, |facts| facts.len() == 850);
    let seqs: Vec<u64> = facts.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=850).collect::<Vec<_>>());
    assert!(mark.is_none_or(|place| place >= 52), "{mark:?}");
    let (carols, _) = follow_until(&mut for_carol, |facts| facts.len() == 400);

    let history = |agent: &str| {
        let of_agent: Vec<_> = facts.iter().filter(|r| r.agent == agent).cloned().collect();
        ids(&of_agent)
    };
    let [bob, carol] = writers.map(Appender::finish);
    assert_eq!(history("bob"), [before, vec![first[0]], bob].concat());
    assert_eq!(history("carol"), [vec![first[1]], carol].concat());
    assert_eq!(ids(&carols), history("carol"));
}

#[test]
fn a_lost_ring_delays_a_follower_by_a_tick() {
    let home = TempHome::new();
    let mut follower = Follower::new(home.journal(), 0, None).unwrap();
    let marked = follower.next(None).unwrap();
    assert_eq!(marked, Some(Followed::Mark { seq: 0 }));
    // The bell is replaced, so the follower does not hear it.
    std::fs::remove_file(home.home().bell()).unwrap();
    let unheard = Appender::append(&home, "bob", 3).finish();
    let (facts, _) = follow_until(&mut follower, |facts| facts.len() == 3);
    assert_eq!(ids(&facts), unheard);
}

#[test]
fn a_dead_holders_lock_is_free() {
    let home = TempHome::new();
    home.journal();
    let mut holder = Appender::hold(&home);
    let waiting = Appender::append(&home, "bob", 3);

    let mut impatient = Journal::open(home.home(), Patience(Duration::from_millis(50))).unwrap();
    let hello = draft("alice", "bob", "hello");
    let post_hello = || Post {
        now: Timestamp::now(),
        drafts: vec![hello.clone()],
    };
    let busy = impatient.commit(post_hello()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy:?}");
    assert!(
        busy.to_string()
            .contains(&format!("waited 50 ms for process {} ", holder.child.id())),
        "{busy}"
    );

    holder.kill();
    assert_eq!(waiting.finish().len(), 3);
    assert!(post(&mut home.journal(), Timestamp::now(), &hello).is_new);
    assert_eq!(home.journal().head().unwrap(), 4);
}

#[test]
fn a_released_lock_leaves_the_journal_unchanged() {
    let home = TempHome::new();
    let mut holder = Appender::hold(&home);
    drop(holder.child.stdin.take());
    assert!(holder.child.wait().unwrap().success());
    let mut rest = String::new();
    holder.out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), home.journal().head().unwrap()), ("", 0));
}
