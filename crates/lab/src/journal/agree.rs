//! Checks of a journal: its views equal a replay of its facts.

use jiff::{SignedDuration, Timestamp};
use posthaste_core::receipt::End;
use posthaste_core::{
    AgentName, IdPrefix, Loops, Mail, MessageId, MessageState, NoteType, Record, Sessions,
    TaskStatus, Work, inject, pending_replies, promotion,
};
use posthaste_store::{Error, Journal, Listing, Pending};
use std::collections::BTreeSet;

/// Return every record in order.
pub fn records(journal: &Journal) -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    loop {
        let last = all.last().map_or(0, |record| record.seq);
        let page = journal.facts_after(last).expect("facts can be read");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Return the times at which mail changes without a new fact, and the moments just before them.
pub fn moments(mail: &Mail) -> Vec<Timestamp> {
    let times = mail.all().flat_map(|message_state| {
        let envelope = &message_state.message.envelope;
        [envelope.not_before, envelope.expires_at, envelope.deadline]
            .into_iter()
            .flatten()
            .chain([message_state.message.created_at])
    });
    let just_before = |time: Timestamp| time - SignedDuration::from_nanos(1);
    let both: BTreeSet<_> = times.flat_map(|time| [just_before(time), time]).collect();
    both.into_iter().collect()
}

/// Check that no record is damaged, and that the numbers run from 1 without a gap.
pub fn assert_intact(journal: &mut Journal) {
    let health = journal
        .examine()
        .expect("an intact journal can be examined");
    assert_eq!(health.damage, Vec::<String>::new());
    assert!(health.is_gap_free);
    let seqs: Vec<u64> = records(journal).iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=health.facts).collect::<Vec<_>>());
}

/// Check that views and model agree on every message, inbox, thread, count and prefix.
pub fn assert_views_agree(journal: &mut Journal, times: &[Timestamp]) {
    let records = records(journal);
    let mail = Mail::replay(&records);
    let read = "an intact journal can be read";
    let mut agents: BTreeSet<AgentName> = BTreeSet::new();
    let mut threads: BTreeSet<MessageId> = BTreeSet::new();
    for message_state in mail.all() {
        let there = journal.state(message_state.message.id).expect(read);
        assert_eq!(there.as_ref(), Some(message_state));
        agents.insert(message_state.message.to.clone());
        threads.insert(message_state.message.envelope.thread_id);
    }
    assert_eq!(
        journal.agents().expect(read),
        agents.iter().cloned().collect::<Vec<_>>()
    );
    for agent in &agents {
        for now in times {
            assert_inbox_agrees(journal, &mail, agent, *now);
        }
    }
    for thread in sample(threads) {
        let there = |message_state: &&MessageState| message_state.status.end != Some(End::Deleted);
        let model: Vec<_> = mail.thread(thread).filter(there).cloned().collect();
        assert_eq!(
            journal.thread(thread).expect(read),
            model,
            "thread {thread}"
        );
    }
    for id in sample(
        mail.all()
            .map(|message_state| message_state.message.id.to_string()),
    ) {
        for count in [1, 2, 4, 8, 10, 36] {
            assert_prefix_agrees(journal, &mail, &id[..count]);
        }
    }
    let sessions = Sessions::replay(&records);
    let runs: Vec<_> = sessions.all().cloned().collect();
    assert_eq!(journal.sessions().expect(read), runs);
    for agent in &agents {
        let run = journal.session(agent).expect(read);
        assert_eq!(run.as_ref(), sessions.get(agent));
    }
    assert_work_agrees(journal, &Work::replay(&records));
    let loops = Loops::replay(&records);
    let states: Vec<_> = loops.all().cloned().collect();
    assert_eq!(journal.loops().expect(read), states);
    for agent in &agents {
        let state = journal.loop_state(agent).expect(read);
        assert_eq!(state.as_ref(), loops.get(agent));
    }
    let odd = journal.examine().expect(read);
    assert_eq!(odd.odd_count, mail.odd().len() as u64);
    let first: Vec<u64> = odd.odd.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(first, mail.odd()[..first.len()]);
}

/// Select all items of a short list and a sample of a long one: the model scans every message for
/// each.
fn sample<T>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: Vec<T> = all.into_iter().collect();
    let every = all.len().div_ceil(20).max(1);
    all.into_iter().step_by(every).collect()
}

/// Check that views and model agree on every task, note and completion.
fn assert_work_agrees(journal: &mut Journal, work: &Work) {
    let read = "an intact journal can be read";
    let tasks: Vec<_> = work.tasks().cloned().collect();
    let notes: Vec<_> = work.notes().cloned().collect();
    let owners = tasks.iter().map(|task| &task.agent);
    let owners = owners.chain(notes.iter().map(|note| &note.agent));
    let mut agents: BTreeSet<_> = owners.cloned().collect();
    agents.insert(AgentName::human());
    for agent in &agents {
        let own: Vec<_> = tasks.iter().filter(|task| task.agent == *agent).collect();
        let all = journal.tasks(agent, &TaskStatus::ALL).expect(read);
        assert_eq!(all.iter().collect::<Vec<_>>(), own);
        let counts = journal.task_counts(agent).expect(read);
        for status in TaskStatus::ALL {
            let so = own.iter().copied().filter(|task| task.status == status);
            let so: Vec<_> = so.collect();
            let there = journal.tasks(agent, &[status]).expect(read);
            assert_eq!(there.iter().collect::<Vec<_>>(), so);
            assert_eq!(counts.of(status), so.len() as u64, "{agent} {status}");
        }
        let own: Vec<_> = notes.iter().filter(|note| note.agent == *agent).collect();
        let all = journal.notes(agent, &NoteType::ALL).expect(read);
        assert_eq!(all.iter().collect::<Vec<_>>(), own);
        for kind in NoteType::ALL {
            let count = own.iter().filter(|note| note.kind == kind).count();
            assert_eq!(journal.notes(agent, &[kind]).expect(read).len(), count);
        }
        let completion = journal.completion(agent).expect(read);
        assert_eq!(completion.as_ref(), work.completion(agent));
    }
    for task in sample(&tasks) {
        for count in [1, 8, 36] {
            let prefix = IdPrefix::parse(&task.id.to_string()[..count]).expect("a prefix");
            let fits: Vec<_> = tasks.iter().filter(|other| prefix.fits(other.id)).collect();
            match journal.task(&prefix) {
                Ok(there) => assert_eq!(vec![&there], fits),
                Err(Error::AmbiguousTask { fits: named, .. }) => {
                    assert!(fits.len() > 1);
                    assert!(named.iter().all(|id| prefix.fits(*id)));
                }
                Err(other) => panic!("{prefix}: {other}"),
            }
        }
    }
}

fn assert_inbox_agrees(journal: &mut Journal, mail: &Mail, agent: &AgentName, now: Timestamp) {
    let read = "an intact journal can be read";
    let unread: Vec<_> = mail.unread(agent, now).cloned().collect();
    let inbox: Vec<_> = mail.inbox(agent, now).cloned().collect();
    let listed = |journal: &mut Journal, listing| journal.inbox(agent, listing, now).expect(read);
    assert_eq!(
        listed(journal, Listing::Unread),
        unread,
        "unread of {agent} at {now}"
    );
    let all: Vec<_> = mail.listed(agent, now).cloned().collect();
    assert_eq!(
        listed(journal, Listing::All),
        all,
        "inbox of {agent} at {now}"
    );
    let count = journal.count(agent, now).expect(read);
    assert_eq!(
        (count.total, count.unread),
        (inbox.len() as u64, unread.len() as u64),
        "total and unread of {agent} at {now}"
    );
    // A hook that was killed may have left an offer, too.
    let is_left = |message_state: &MessageState| {
        message_state.message.to == *agent && inject::is_under_way(message_state)
    };
    assert_eq!(
        journal.has_not_shown(agent, now).expect(read),
        unread
            .iter()
            .any(|message_state| !message_state.status.is_offered_or_shown())
            || mail.all().any(is_left),
        "anything left to show {agent} at {now}"
    );
    let owed: Vec<_> = mail
        .owed(agent, now)
        .take(pending_replies::AT_ONCE)
        .cloned()
        .collect();
    assert_eq!(
        journal.owed(agent, now).expect(read),
        owed,
        "owed by {agent} at {now}"
    );
    let awaited: Vec<_> = mail.awaited(agent, now).cloned().collect();
    assert_eq!(
        journal.awaited(agent, now).expect(read),
        awaited,
        "awaited by {agent} at {now}"
    );
    let given = journal.given(agent).expect(read);
    assert_eq!(given.as_ref(), mail.given(agent), "given to {agent}");
    let pending = mail.pending(agent, now);
    let there = journal.pending(agent, now).expect(read);
    assert_eq!(
        (there.queued, there.next),
        (pending.len() as u64, next_change(mail, agent, now)),
        "pending for {agent} at {now}"
    );
    // Long lists are read in part.
    let first = &pending[..pending.len().min(Pending::MAX_MESSAGES)];
    let is_long = first
        .iter()
        .any(|l| l.message.envelope.body.bytes() > 1_000);
    assert!(
        there
            .due
            .iter()
            .eq(first.iter().copied().take(there.due.len()))
    );
    assert!(there.due.len() == first.len() || is_long && !there.due.is_empty());
}

/// Return the time of the next change to the messages that wait for an agent.
fn next_change(mail: &Mail, agent: &AgentName, now: Timestamp) -> Option<Timestamp> {
    let open = |message_state: &&MessageState| {
        message_state.message.to == *agent && message_state.status.is_unread()
    };
    let times = mail.all().filter(open).flat_map(|message_state| {
        let (status, envelope) = (message_state.status, &message_state.message.envelope);
        let due = envelope
            .not_before
            .filter(|_| !status.is_offered_or_shown());
        let gone = envelope.expires_at.filter(|_| !status.is_reached());
        let late = promotion::promotes_at(envelope).filter(|_| !status.is_offered_or_shown());
        due.into_iter().chain(gone).chain(late)
    });
    times.filter(|time| *time > now).min()
}

fn assert_prefix_agrees(journal: &mut Journal, mail: &Mail, prefix: &str) {
    let prefix = IdPrefix::parse(prefix).expect("the beginning of an id is a prefix");
    let fits = mail.find(&prefix);
    match (journal.find(&prefix), fits.as_slice()) {
        (Ok(message_state), [only]) => assert_eq!(Some(&message_state), mail.get(*only)),
        (Err(Error::NotFound(_)), []) => {}
        // The error names only the first ids.
        (Err(Error::Ambiguous { fits: named, .. }), several) => {
            assert!(named.len() >= 2 && several.starts_with(&named), "{prefix}");
        }
        (found, fits) => panic!("{prefix} fits {fits:?}, but the views say {found:?}"),
    }
}
