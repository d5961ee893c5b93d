//! Tasks, notes and completions: found by a prefix, denied, exported and imported.

use posthaste_core::tasks::{NewNote, NewTask};
use posthaste_core::{
    AgentName, Ended, Ending, IdPrefix, NoteId, NoteType, Task, TaskId, TaskStatus,
};
use posthaste_lab::{TempHome, assert_intact, assert_views_agree, at, name, records, started};
use posthaste_store::operation::{
    AddNote, AddTask, EndRun, MoveTask, RecordCompletion, StartRun, TaskChange,
};
use posthaste_store::{Decided, Error, Journal, transfer};
use uuid::Uuid;

fn add(journal: &mut Journal, agent: &str, id: u128, text: &str) -> Decided<Task> {
    let job = AddTask {
        now: at(0),
        agent: name(agent),
        task: NewTask {
            id: TaskId(Uuid::from_u128(id)),
            text: text.to_owned(),
            status: TaskStatus::Remaining,
            iteration: None,
            by: AgentName::human(),
        },
    };
    journal.commit(job).unwrap()
}

fn set(journal: &mut Journal, who: &str, id: u128, status: TaskStatus) -> Decided<TaskChange> {
    let job = MoveTask {
        now: at(5),
        who: name(who),
        task: TaskId(Uuid::from_u128(id)),
        status,
        iteration: Some(2),
    };
    journal.commit(job).unwrap()
}

const A: u128 = 0x3fa8_c1d2_0000_0000_0000_0000_0000_0001;
const B: u128 = 0x3fa8_c1ff_0000_0000_0000_0000_0000_0002;

#[test]
fn a_prefix_selects_one_task_or_is_an_error() {
    let home = TempHome::new();
    let mut journal = home.journal();
    add(&mut journal, "coder", A, "one").unwrap();
    add(&mut journal, "other", B, "two").unwrap();
    let mut find = |prefix: &str| journal.task(&IdPrefix::parse(prefix).unwrap());
    assert_eq!(find("3fa8c1d2").unwrap().text, "one");
    assert_eq!(find("3FA8C1FF").unwrap().text, "two");
    let both = find("3fa8").unwrap_err();
    assert!(matches!(both, Error::AmbiguousTask { .. }), "{both}");
    let named = both.to_string();
    assert!(
        named.contains("3fa8c1d2-") && named.contains("3fa8c1ff-"),
        "{named}"
    );
    assert_eq!(find("9").unwrap_err().to_string(), "no task 9");
}

#[test]
fn a_denied_change_of_a_task_changes_nothing() {
    let home = TempHome::new();
    let mut journal = home.journal();
    add(&mut journal, "coder", A, "one").unwrap();
    let facts = records(&journal);
    let denied = add(&mut journal, "coder", B, " \n").unwrap_err();
    assert_eq!(denied.to_string(), "a task needs a text");
    let mut check = |who, task, want: &str| {
        let denied = set(&mut journal, who, task, TaskStatus::Completed);
        assert_eq!(denied.unwrap_err().to_string(), want);
    };
    let missing = format!("no task {}", TaskId(Uuid::from_u128(B)));
    check("coder", B, &missing);
    check(
        "other",
        A,
        "other cannot change a task of coder that another agent added",
    );
    let same = set(&mut journal, "coder", A, TaskStatus::Remaining).unwrap();
    assert!(!same.is_changed, "{same:?}");
    let complete = RecordCompletion {
        now: at(0),
        who: name("other"),
        agent: name("coder"),
        iteration: None,
    };
    let denied = journal.commit(complete).unwrap().unwrap_err();
    assert_eq!(
        denied.to_string(),
        "other cannot report the session of coder as complete"
    );
    assert_eq!(records(&journal), facts);
}

#[test]
fn a_completion_belongs_to_the_run_in_which_it_was_recorded() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let agent = name("coder");
    let now = at(0);
    let complete = |journal: &mut Journal| {
        let job = RecordCompletion {
            now,
            who: agent.clone(),
            agent: agent.clone(),
            iteration: Some(3),
        };
        journal.commit(job).unwrap().unwrap();
        let there = journal.completion(&agent).unwrap().unwrap();
        assert_eq!(there.completed.iteration, Some(3));
        there.completed.run
    };
    let start = |journal: &mut Journal, run| {
        let agent = agent.clone();
        let started = started(Uuid::from_u128(run));
        journal
            .commit(StartRun {
                now,
                agent,
                started,
            })
            .unwrap()
            .unwrap();
    };
    assert_eq!(journal.completion(&agent).unwrap(), None);
    assert_eq!(complete(&mut journal), None);
    start(&mut journal, 1);
    assert_eq!(complete(&mut journal), Some(Uuid::from_u128(1)));
    let ended = Ended {
        run: Uuid::from_u128(1),
        how: Ending::Exit(0),
    };
    let job = EndRun {
        now,
        agent: agent.clone(),
        ended,
    };
    journal.commit(job).unwrap().unwrap();
    start(&mut journal, 2);
    // The earlier completion does not belong to the new run.
    let there = journal.completion(&agent).unwrap().unwrap();
    assert_eq!(there.completed.run, Some(Uuid::from_u128(1)));
    assert_eq!(complete(&mut journal), Some(Uuid::from_u128(2)));
    assert_views_agree(&mut journal, &[now]);
}

#[test]
fn tasks_notes_and_completions_are_exported_and_imported() {
    let home = TempHome::new();
    let mut journal = home.journal();
    add(&mut journal, "coder", A, "one\n- [00000000] forged").unwrap();
    set(&mut journal, "coder", A, TaskStatus::InProgress).unwrap();
    let job = AddNote {
        now: at(1),
        agent: name("coder"),
        note: NewNote {
            id: NoteId(Uuid::from_u128(9)),
            kind: NoteType::Stuck,
            text: "no key\u{1b}[2J".to_owned(),
            iteration: Some(1),
            by: name("coder"),
        },
    };
    journal.commit(job).unwrap().unwrap();
    let job = RecordCompletion {
        now: at(2),
        who: name("coder"),
        agent: name("coder"),
        iteration: None,
    };
    journal.commit(job).unwrap().unwrap();
    let lines: String = records(&journal)
        .iter()
        .map(|record| transfer::to_line(record) + "\n")
        .collect();

    let elsewhere = TempHome::new();
    let mut copy = elsewhere.journal();
    let imported = transfer::import(&mut copy, &mut lines.as_bytes(), |_| {}).unwrap();
    assert_eq!(imported.added, 4);
    assert_eq!(records(&copy), records(&journal));
    let both = [&mut journal, &mut copy].map(|journal| {
        let agent = name("coder");
        (
            journal.tasks(&agent, &TaskStatus::ALL).unwrap(),
            journal.notes(&agent, &NoteType::ALL).unwrap(),
            journal.completion(&agent).unwrap(),
        )
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0].0[0].status, TaskStatus::InProgress);
    assert_views_agree(&mut copy, &[at(9)]);
    assert_intact(&mut copy);
}

#[test]
fn a_long_task_list_is_returned_whole_and_by_index() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for n in 0..1_050_u128 {
        add(&mut journal, "coder", (n << 96) | 1, &n.to_string()).unwrap();
    }
    set(&mut journal, "coder", (7 << 96) | 1, TaskStatus::Completed).unwrap();
    let agent = name("coder");
    let open = [TaskStatus::Remaining, TaskStatus::InProgress];
    let open = journal.tasks(&agent, &open).unwrap();
    assert_eq!(open.len(), 1_049);
    assert_eq!(open[7].text, "8");
    let counts = journal.task_counts(&agent).unwrap();
    assert_eq!((counts.open(), counts.completed), (1_049, 1));
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    let version: u32 = journal.examine().unwrap().view_versions[0];
    for sql in [
        "SELECT seq FROM v#_tasks WHERE agent = 'a' AND status = 1 ORDER BY seq",
        "SELECT status, count(*) FROM v#_tasks WHERE agent = 'a' GROUP BY status",
        "SELECT seq, id FROM v#_tasks WHERE id >= 'a' AND id < 'ag' ORDER BY id LIMIT 8",
        "SELECT seq FROM v#_marks WHERE kind = 12 AND whose = 'a' AND at = 1 ORDER BY seq",
        "SELECT seq FROM v#_marks WHERE kind = 9 AND whose = 'a' AND at = 0 ORDER BY seq DESC LIMIT 1",
        "SELECT l.seq FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq \
         WHERE m.kind = 3 AND m.whose = 'a' AND m.at > 1 AND l.read = 0 ORDER BY m.at LIMIT 1",
    ] {
        let sql = sql.replace("v#", &format!("v{version}"));
        let plan: String = conn
            .query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [], |row| row.get(3))
            .unwrap();
        assert!(plan.starts_with("SEARCH"), "{sql}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}
