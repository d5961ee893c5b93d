use super::*;
use crate::id::{IdPrefix, NoteId};
use crate::mail::tests::name;

fn task_id(n: u128) -> TaskId {
    TaskId(Uuid::from_u128(n))
}

fn fact(n: u128, at: i64, deed: Deed) -> Fact {
    Fact {
        id: Uuid::from_u128(n),
        at: Timestamp::from_second(at).unwrap(),
        agent: name("coder"),
        event: Event::Work(deed),
    }
}

pub(crate) fn added(text: &str, status: TaskStatus) -> Deed {
    Deed::Added(Added {
        text: text.to_owned(),
        status,
        iteration: None,
        by: name("coder"),
    })
}

pub(crate) fn moved(task: u128, status: TaskStatus, iteration: Option<u32>) -> Deed {
    Deed::Moved(Moved {
        task: task_id(task),
        status,
        iteration,
        by: name("coder"),
    })
}

/// One of each change, with and without optional fields.
pub(crate) fn every_deed() -> Vec<Deed> {
    let hostile = "a\n- [00000000] b\u{1b}[2J\u{0}";
    let mut deeds = vec![];
    for status in TaskStatus::ALL {
        deeds.push(added(hostile, status));
        deeds.push(moved(7, status, None));
        deeds.push(moved(7, status, Some(3)));
    }
    for kind in NoteType::ALL {
        for iteration in [None, Some(0), Some(u32::MAX)] {
            deeds.push(Deed::Noted(Noted {
                kind,
                text: hostile.to_owned(),
                iteration,
                by: AgentName::human(),
            }));
        }
    }
    for run in [None, Some(Uuid::from_u128(9))] {
        deeds.push(Deed::Completed(Completed {
            run,
            iteration: run.map(|_| 4),
            by: name("coder"),
        }));
    }
    deeds
}

fn replay(facts: &[Fact]) -> Work {
    let mut work = Work::default();
    facts.iter().for_each(|fact| work.apply(fact));
    work
}

#[test]
fn names_parse_back_to_their_values() {
    for status in TaskStatus::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(json, format!("\"{status}\""));
    }
    for kind in NoteType::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
        let json = serde_json::to_string(&kind).unwrap();
        assert_eq!(json, format!("\"{kind}\""));
    }
    assert!("done".parse::<TaskStatus>().is_err());
    assert!("hint".parse::<NoteType>().is_err());
}

#[test]
fn a_task_has_its_last_status() {
    use TaskStatus::{Blocked, Completed, InProgress, Remaining};
    let check = |deeds: &[Deed], want: (TaskStatus, Option<u32>, i64)| {
        let facts: Vec<_> = (1..)
            .zip(deeds)
            .map(|(at, deed)| fact(if at == 1 { 1 } else { 100 + at as u128 }, at, deed.clone()))
            .collect();
        let work = replay(&facts);
        let task = work.tasks().next().unwrap();
        let got = (task.status, task.iteration, task.updated_at.as_second());
        assert_eq!(got, want, "{deeds:?}");
        assert_eq!(task.created_at.as_second(), 1);
    };
    let add = added("write tests", Remaining);
    check(std::slice::from_ref(&add), (Remaining, None, 1));
    check(&[added("x", Blocked)], (Blocked, None, 1));
    check(
        &[add.clone(), moved(1, InProgress, Some(2))],
        (InProgress, Some(2), 2),
    );
    // A missing note keeps the earlier one.
    check(
        &[
            add.clone(),
            moved(1, InProgress, Some(2)),
            moved(1, Completed, None),
        ],
        (Completed, Some(2), 3),
    );
    // A completed task can be reopened.
    check(
        &[
            add.clone(),
            moved(1, Completed, None),
            moved(1, Remaining, None),
        ],
        (Remaining, None, 3),
    );
    // A change to another task has no effect.
    check(&[add, moved(2, Completed, None)], (Remaining, None, 1));
}

#[test]
fn a_change_may_precede_its_task() {
    let add = fact(1, 1, added("x", TaskStatus::Remaining));
    let begin = fact(2, 2, moved(1, TaskStatus::InProgress, Some(1)));
    let end = fact(3, 3, moved(1, TaskStatus::Completed, None));
    let in_order = replay(&[add.clone(), begin.clone(), end.clone()]);
    assert_eq!(replay(&[begin.clone(), end.clone(), add]), in_order);
    assert_eq!(replay(&[begin, end]).tasks().count(), 0);
}

#[test]
fn adding_and_changing_need_permission() {
    let task = |text: &str, status| NewTask {
        id: task_id(1),
        text: text.to_owned(),
        status,
        iteration: None,
        by: name("lead"),
    };
    let check = |text: &str, status, want: Result<(), &str>| {
        let got = task(text, status).decide();
        let got = got.map(|_| ()).map_err(|refusal| refusal.to_string());
        assert_eq!(got, want.map_err(str::to_owned), "{text:?} {status}");
    };
    check("x", TaskStatus::Remaining, Ok(()));
    check("x", TaskStatus::Blocked, Ok(()));
    check(
        "x",
        TaskStatus::Completed,
        Err("a new task is remaining or blocked, not completed"),
    );
    for blank in ["", " \n\t", "\u{1b}\u{200b}\u{7}"] {
        check(blank, TaskStatus::Remaining, Err("a task needs a text"));
    }
    let long = "x".repeat(MAX_TEXT_BYTES);
    check(&long, TaskStatus::Remaining, Ok(()));
    check(
        &format!("{long}x"),
        TaskStatus::Remaining,
        Err("a task has at most 16384 bytes; this has 16385"),
    );

    let there = Fact {
        agent: name("coder"),
        ..fact(
            1,
            1,
            Deed::Added(Added {
                text: "x".into(),
                status: TaskStatus::Remaining,
                iteration: None,
                by: name("lead"),
            }),
        )
    };
    let there = Task::added_by_fact(&there).unwrap();
    let check = |who: &str, status, want: Result<bool, &str>| {
        let got = there.decide(&name(who), status, None);
        let got = got.map(|event| event.is_some()).map_err(|r| r.to_string());
        assert_eq!(got, want.map_err(str::to_owned), "{who} {status}");
    };
    for who in ["coder", "lead", "human"] {
        check(who, TaskStatus::Completed, Ok(true));
        check(who, TaskStatus::Remaining, Ok(false));
    }
    let no = "other cannot change a task of coder that another agent added";
    check("other", TaskStatus::Completed, Err(no));
    check("other", TaskStatus::Remaining, Err(no));
}

#[test]
fn notes_are_kept_in_order() {
    let note = |n, kind| NewNote {
        id: NoteId(Uuid::from_u128(n)),
        kind,
        text: format!("note {n}"),
        iteration: Some(1),
        by: name("coder"),
    };
    let facts: Vec<_> = [NoteType::Tip, NoteType::Stuck]
        .into_iter()
        .zip(1..)
        .map(|(kind, n)| {
            let Ok(Event::Work(deed)) = note(n, kind).decide() else {
                panic!("it is a note");
            };
            fact(n, 1, deed)
        })
        .collect();
    let work = replay(&facts);
    let got: Vec<_> = work.notes().map(|n| (n.kind, n.text.as_str())).collect();
    assert_eq!(
        got,
        [(NoteType::Tip, "note 1"), (NoteType::Stuck, "note 2")]
    );
    let blank = NewNote {
        text: " ".into(),
        ..note(3, NoteType::Tip)
    };
    assert_eq!(
        blank.decide().unwrap_err().to_string(),
        "a note needs a text"
    );
}

#[test]
fn the_last_completion_counts_and_names_its_run() {
    let run = Uuid::from_u128(5);
    let agent = name("coder");
    let said = |run, at| {
        let Ok(Event::Work(deed)) = complete(&agent, &agent, run, Some(2)) else {
            panic!("it may say so");
        };
        fact(at as u128, at, deed)
    };
    let work = replay(&[said(None, 1), said(Some(run), 2)]);
    let last = work.completion(&agent).unwrap();
    assert_eq!((last.at.as_second(), last.completed.run), (2, Some(run)));
    assert_eq!(work.completion(&name("other")), None);
    assert!(complete(&AgentName::human(), &agent, None, None).is_ok());
    assert_eq!(
        complete(&name("other"), &agent, None, None)
            .unwrap_err()
            .to_string(),
        "other cannot report the session of coder as complete"
    );
}

#[test]
fn tasks_are_counted_by_status() {
    let mut counts = TaskCounts::default();
    for (count, status) in (1..).zip(TaskStatus::ALL) {
        counts.add(status, count);
        assert_eq!(counts.of(status), count);
    }
    assert_eq!(counts.open(), 1 + 2 + 3);
    let open = TaskStatus::ALL.into_iter().filter(|s| s.is_open());
    assert_eq!(open.map(|s| counts.of(s)).sum::<u64>(), counts.open());
}

#[test]
fn a_prefix_matches_a_task_like_a_message() {
    let id = TaskId(Uuid::from_u128(0x3fa8_c1d2 << 96));
    assert_eq!(id.id8(), "3fa8c1d2");
    assert!(IdPrefix::parse("3FA8").unwrap().fits(id));
    assert!(!IdPrefix::parse("3fa9").unwrap().fits(id));
}
