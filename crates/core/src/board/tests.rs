//! Tests of the board.

use super::*;
use crate::ask::tests::permission;
use crate::ask::{AskFact, AskState};
use crate::fact::{Event, Fact};
use crate::mail::tests::{message, name, with_steps};
use crate::receipt::Step;
use crate::session::tests::started;
use crate::session::{Ending, Run};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000 + second).unwrap()
}

fn run(end: Option<Ending>) -> Option<Run> {
    let begun = Fact {
        id: Uuid::from_u128(1),
        at: at(0),
        agent: name("web"),
        event: Event::Started(started(1)),
    };
    let mut run = Run::begun_by(&begun)?;
    run.end = end.map(|how| (at(5), how));
    Some(run)
}

fn live(activity: LiveActivity) -> LiveSession {
    LiveSession {
        activity,
        since: at(1),
        evidence: String::new(),
        blocked_on: None,
        paused: None,
    }
}

fn asked() -> AskState {
    AskState::opened_by(&Fact {
        id: Uuid::from_u128(0xa7f2 << 112),
        at: at(3),
        agent: name("web"),
        event: Event::Ask(AskFact::Opened(permission(1))),
    })
    .unwrap()
}

fn session(live: LiveSession) -> BoardUpdate {
    BoardUpdate::Session(Box::new(live))
}

fn journal(row: JournalRow) -> BoardUpdate {
    BoardUpdate::Journal(Box::new(row))
}

fn board(updates: Vec<(&str, BoardUpdate)>) -> Board {
    let mut board = Board::default();
    for (agent, update) in updates {
        board.apply(&name(agent), update);
    }
    board
}

/// Check the one agent of a board, and what waits.
fn check(updates: Vec<BoardUpdate>, row: &str, asks: &[&str]) {
    let board = board(updates.into_iter().map(|update| ("web", update)).collect());
    let rows = board.rows();
    let found = &rows[0];
    let (mark, _) = found.state.glyphs();
    let since = found
        .since
        .map_or(0, |since| since.duration_since(at(0)).as_secs());
    let line = format!("{mark} {} {since} {}", found.state.word(), found.detail);
    assert_eq!(line.trim(), row);
    let found: Vec<_> = board
        .asks()
        .iter()
        .map(|ask| format!("{} {}", ask.kind, ask.summary))
        .collect();
    assert_eq!(found, asks, "{row}");
}

#[test]
fn a_row_says_what_the_agent_needs() {
    let with = |asks: Vec<AskState>| JournalRow {
        run: run(None),
        asks,
        ..JournalRow::default()
    };
    let idle = || session(live(LiveActivity::Idle));
    check(vec![journal(with(vec![])), idle()], "○ idle 1", &[]);
    check(
        vec![journal(with(vec![])), session(live(LiveActivity::Working))],
        "● working 1",
        &[],
    );
    let question = "Bash command: cargo test";
    let permission = format!("permission {question}");
    let asking = vec![
        journal(with(vec![asked()])),
        session(live(LiveActivity::Blocked)),
    ];
    check(asking, &format!("? asks 3 {question}"), &[&permission]);
    let held = JournalRow {
        held: 1,
        ..with(vec![])
    };
    let paused = LiveSession {
        paused: Some("by a client".to_owned()),
        ..live(LiveActivity::Idle)
    };
    check(
        vec![journal(held), session(paused)],
        "○ idle 1 1 held: by a client",
        &[],
    );
    let silent = vec![
        journal(with(vec![])),
        idle(),
        BoardUpdate::Silent { since: at(9) },
    ];
    check(silent, "! no answer 9", &[]);
}

#[test]
fn mail_and_trouble_wait_until_they_are_seen() {
    let mail = JournalRow {
        run: run(None),
        mail_to_person: vec![with_steps(&message(7, "web", "human"), &[])],
        ..JournalRow::default()
    };
    let updates = vec![journal(mail), session(live(LiveActivity::Working))];
    check(updates, "● working 1 1 unread for you", &["mail hello"]);
    let ended = |how| {
        journal(JournalRow {
            run: run(how),
            ..JournalRow::default()
        })
    };
    check(vec![ended(Some(Ending::Exit(0)))], "ended 5", &[]);
    check(vec![ended(Some(Ending::Exit(143)))], "ended 5", &[]);
    check(vec![ended(Some(Ending::Signal(15)))], "ended 5", &[]);
    let status = "exited with status 1";
    check(
        vec![ended(Some(Ending::Exit(1)))],
        &format!("✗ failed 5 {status}"),
        &["trouble exited with status 1"],
    );
    check(
        vec![ended(None)],
        "✗ failed 0 its session has crashed",
        &["trouble its session has crashed"],
    );
    let id = run(None).unwrap().started.run;
    let seen = journal(JournalRow {
        run: run(Some(Ending::Exit(1))),
        seen: vec![id],
        ..JournalRow::default()
    });
    check(vec![seen], "ended 5", &[]);
    // The question of a program that is gone cannot be answered.
    let gone = journal(JournalRow {
        run: run(Some(Ending::Exit(0))),
        asks: vec![asked()],
        ..JournalRow::default()
    });
    check(vec![gone], "ended 5", &[]);
    let failed = JournalRow {
        run: run(None),
        troubled: vec![with_steps(&message(8, "human", "web"), &[Step::Failed])],
        ..JournalRow::default()
    };
    let line = "message 00000000 is failed";
    check(
        vec![journal(failed), session(live(LiveActivity::Idle))],
        &format!("○ idle 1 {line}"),
        &["trouble message 00000000 is failed"],
    );
}

#[test]
fn agents_are_sorted_by_need_and_then_by_age() {
    let row = |asks| {
        journal(JournalRow {
            run: run(None),
            asks,
            ..JournalRow::default()
        })
    };
    let late = LiveSession {
        since: at(2),
        ..live(LiveActivity::Working)
    };
    let mut board = board(vec![
        ("idle", session(live(LiveActivity::Idle))),
        ("late", session(late)),
        ("early", session(live(LiveActivity::Working))),
        ("asks", row(vec![asked()])),
        ("asks", session(live(LiveActivity::Blocked))),
        ("never", row(vec![])),
        ("never", BoardUpdate::NoSession),
    ]);
    let names = |board: &Board| {
        let rows = board.rows();
        rows.iter()
            .map(|row| row.agent.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&board), ["asks", "never", "early", "late", "idle"]);
    assert_eq!(board.waiting(), 2);
    board.remove(&name("never"));
    assert_eq!(names(&board), ["asks", "early", "late", "idle"]);
}
