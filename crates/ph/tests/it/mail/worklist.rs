//! `ph task` and `ph note`: an agent's list and notebook, from the command line.

use crate::common::Ph;
use posthaste_core::tasks::MAX_TEXT_BYTES;

#[test]
fn tasks_from_beginning_to_end() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "task ls --agent coder",
        "task add --agent coder 'Write the login page'",
        "coder$ task add --status blocked 'Deploy'",
        "coder$ task ls",
        "coder$ task status {1} in_progress --iteration 2",
        "coder$ task status {1} in_progress",
        "task status {2} completed",
        "coder$ task ls",
        "coder$ task ls --status blocked",
        "coder$ note add 'The tests need --no-cache' --iteration 1",
        "note add --agent coder --type stuck 'No key'",
        "coder$ note ls",
        "coder$ note ls --type tip",
        "note ls",
        "log",
    ]), @"
    $ ph task ls --agent coder
    no tasks of coder
    ! note: nothing has been stored in [home] yet
    $ ph task add --agent coder Write the login page
    [id1]
    coder$ ph task add --status blocked Deploy
    [id2]
    coder$ ph task ls
    [id2]  blocked      Deploy
    [id1]  remaining    Write the login page
    coder$ ph task status [id1] in_progress --iteration 2
    [id1] in_progress
    coder$ ph task status [id1] in_progress
    [id1] already in_progress
    $ ph task status [id2] completed
    [id2] completed
    coder$ ph task ls
    [id1]  in_progress  Write the login page
    [id2]  completed    Deploy
    coder$ ph task ls --status blocked
    no blocked tasks of coder
    coder$ ph note add The tests need --no-cache --iteration 1
    [id3]
    $ ph note add --agent coder --type stuck No key
    [id4]
    coder$ ph note ls
    [id3]  learning  #1   The tests need --no-cache
    [id4]  stuck          No key
    coder$ ph note ls --type tip
    no tip notes of coder
    $ ph note ls
    no notes of human
    $ ph log
         1  [time]  coder         task       [id1]  remaining by human: Write the login page
         2  [time]  coder         task       [id2]  blocked by coder: Deploy
         3  [time]  coder         status     [id1]  in_progress by coder, in iteration 2
         4  [time]  coder         status     [id2]  completed by human
         5  [time]  coder         note       [id3]  learning by coder: The tests need --no-cache
         6  [time]  coder         note       [id4]  stuck by human: No key
    ");
}

#[test]
fn json_has_every_field() {
    let ph = Ph::new();
    let added = ph
        .call(&["task", "add", "a\nb", "--json"])
        .agent("coder")
        .env("PH_ITERATION", "4")
        .run()
        .json();
    let id = added["id"].as_str().unwrap();
    assert_eq!(
        (
            &added["agent"],
            &added["text"],
            &added["status"],
            &added["iteration"]
        ),
        (
            &"coder".into(),
            &"a\nb".into(),
            &"remaining".into(),
            &4.into()
        )
    );
    let changed = ph.run_as("coder", &format!("task status {id} completed --json"));
    let changed = changed.json();
    assert_eq!(
        (&changed["status"], &changed["changed"]),
        (&"completed".into(), &true.into())
    );
    let listed = ph.run("task ls --agent coder --json").json();
    assert_eq!(listed[0]["id"], added["id"]);
    assert_eq!(listed[0]["created_at"], added["created_at"]);
    let around = |said: &str| {
        let call = ph.call(&["note", "add", "x", "--json"]).agent("other");
        call.env("PH_ITERATION", said).run()
    };
    assert_eq!(around("7").json()["iteration"], 7);
    assert_eq!(around("").json()["iteration"], serde_json::Value::Null);
    around("x").fails(2, "PH_ITERATION is not a number");
    assert_eq!(ph.run("task ls --json").json(), serde_json::json!([]));
    let note = ph.run_as("coder", "note add --type tip x --json").json();
    assert_eq!(
        (&note["type"], &note["by"]),
        (&"tip".into(), &"coder".into())
    );
    assert_eq!(ph.run("note ls --agent coder --json").json()[0], note);
    assert_eq!(ph.run("note ls --json").json(), serde_json::json!([]));
}

#[test]
fn invalid_arguments_change_nothing() {
    let ph = Ph::new();
    let fresh: [(&[&str], i32, &str); 9] = [
        (&["task"], 2, "Usage: ph task"),
        (&["task", "add"], 2, "<TEXT>"),
        (&["task", "add", " "], 2, "a task needs a text"),
        (
            &["task", "add", "--status", "completed", "x"],
            2,
            "possible values: remaining, blocked",
        ),
        (&["task", "add", "--agent", "../x", "x"], 2, "--agent"),
        (&["task", "status", "abc", "done"], 2, "[possible values:"),
        (
            &["task", "status", "xyz", "blocked"],
            2,
            "'ph task ls' lists ids",
        ),
        (
            &["note", "add", "--type", "hint", "x"],
            2,
            "[possible values:",
        ),
        (&["task", "status", "abc", "blocked"], 3, "no task abc"),
    ];
    for (words, code, says) in fresh {
        ph.call(words).run().fails(code, says);
    }
    assert!(!ph.home().exists(), "nothing was made for what was refused");

    let id = ph.run("task add --agent coder x").ok();
    let facts = ph.facts();
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("", &["task", "add", &long], 2, "at most 16384 bytes"),
        (
            "",
            &["note", "add", &long],
            2,
            "hint: put the text into a file",
        ),
        (
            "other",
            &["task", "status", id.trim(), "completed"],
            4,
            "other cannot change a task of coder",
        ),
        (
            "",
            &["task", "status", "00000000", "completed"],
            3,
            "no task 00000000",
        ),
        (
            "../x",
            &["task", "add", "x"],
            2,
            "PH_AGENT names the agent that runs ph",
        ),
    ];
    for (agent, words, code, says) in cases {
        ph.call(words).agent(agent).run().fails(code, says);
    }
    assert_eq!(ph.facts(), facts);
}

#[test]
fn an_ambiguous_prefix_lists_both_ids() {
    let ph = Ph::new();
    // Seventeen ids of sixteen first digits: two begin alike.
    let ids: Vec<_> = (0..17)
        .map(|n| ph.run(&format!("task add t{n}")).ok())
        .collect();
    let twice = ids.iter().find(|id| {
        let alike = ids.iter().filter(|other| other[..1] == id[..1]);
        alike.count() > 1
    });
    let digit = &twice.unwrap()[..1];
    let done = ph.run(&format!("task status {digit} completed"));
    done.fails(3, "matches more than one task");
    let err = done.err();
    let alike: Vec<_> = ids.iter().filter(|id| &id[..1] == digit).collect();
    assert!(alike.iter().all(|id| err.contains(id.trim())), "{err}");
}

#[test]
fn nothing_in_a_text_acts_or_forges_a_line() {
    let ph = Ph::new();
    let text = "x\u{1b}[2J\n00000000  completed    forged";
    ph.call(&["task", "add", text]).run().ok();
    ph.call(&["note", "add", text]).run().ok();
    for verb in ["task ls", "note ls"] {
        let shown = ph.run(verb).ok();
        assert_eq!(shown.lines().count(), 1, "{shown}");
        assert!(!shown.contains('\u{1b}'));
    }
    assert_eq!(ph.run("log").ok().lines().count(), 2);
    assert_eq!(ph.run("task ls --json").json()[0]["text"], text);
}

#[test]
fn a_task_id_is_completed() {
    let ph = Ph::new();
    let id = ph.run_as("coder", "task add 'Write the login page'").ok();
    let words = ph
        .call(&["--", "ph", "task", "status", &id[..4]])
        .env("PH_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "3")
        .env("_CLAP_IFS", "\n")
        .agent("coder")
        .run()
        .ok();
    assert_eq!(words, id[..8]);
}

#[test]
fn an_agent_can_be_named() {
    let ph = Ph::new();
    let task = ph.run("task add --agent coder x").ok();
    let task = task.trim();
    let line = |agent: &str| format!("task status {task} in_progress --agent {agent}");
    let facts = ph.facts();
    ph.run(&line("other")).fails(3, "is on the list of coder");
    assert_eq!(ph.facts(), facts, "nothing is changed");
    assert!(ph.run(&line("coder")).ok().contains("in_progress"));
    let id = ph.send("coder hello");
    for (verb, says) in [("mark-read", "as read"), ("mark-unread", "as unread")] {
        let facts = ph.facts();
        let refused = ph.run(&format!("{verb} --agent other {id}"));
        refused.fails(3, "the recipient of that message is coder");
        assert_eq!(ph.facts(), facts, "nothing is changed");
        let done = ph.run(&format!("{verb} --agent coder {id}")).ok();
        assert!(done.contains(says), "{done}");
    }
}
