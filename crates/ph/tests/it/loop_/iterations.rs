//! Loops from start to end.

use super::stage::{Loop, Stage, tool};
use crate::common::wait_for;
use serde_json::json;

fn count(prompt: &str, part: &str) -> usize {
    prompt.matches(part).count()
}

fn begin(looped: &Loop, iteration: u32) -> String {
    let prompt = looped.prompt(iteration);
    let told = format!("Iteration: {iteration} of 50");
    assert!(prompt.contains(&told), "{prompt}");
    assert!(prompt.contains("Build a small house."), "{prompt}");
    prompt
}

#[test]
fn a_message_arrives_in_the_third_of_five_iterations() {
    let looped = Stage::new().start();
    let first = begin(&looped, 1);
    assert_eq!(count(&first, "## INBOX"), 0, "{first}");
    looped.go("true");
    begin(&looped, 2);
    let id = looped.ph().send("bot 'Please prioritize the door'");
    let why = looped.ph().run(&format!("why {id}"));
    assert!(why.out().contains("next iteration"), "{}", why.out());
    looped.go("true");
    let third = begin(&looped, 3);
    assert_eq!(count(&third, "Please prioritize the door"), 1, "{third}");
    assert_eq!(count(&third, "## INBOX"), 1);
    let shown = looped.ph().run(&format!("show --json {id}")).json();
    assert_eq!(shown["receipt"], "offered", "{shown}");
    let routes = shown["receipts"].as_array().expect("receipts");
    assert!(
        routes.iter().any(|step| step["route"] == "prompt"),
        "{shown}"
    );
    looped.go(&tool(
        "inbox_mark_read",
        &json!({"session_name": "bot", "id": &id[..8]}),
    ));
    let fourth = begin(&looped, 4);
    assert_eq!(count(&fourth, "Please prioritize the door"), 0, "{fourth}");
    let shown = looped.ph().run(&format!("show --json {id}")).json();
    assert_eq!(shown["receipt"], "read", "{shown}");
    looped.go("true");
    begin(&looped, 5);
    looped.go(&tool("session_complete", &json!({"session_name": "bot"})));
    assert_eq!(looped.ending(), r#"{"complete":"tool"}"#);
    let ended = |number| format!("{number} \"ended\"");
    let mut want: Vec<_> = (1..=4).map(ended).collect();
    want.push(r#"5 {"completed":"tool"}"#.to_owned());
    assert_eq!(looped.outcomes(), want);
    let session = looped.ph().run("status bot --json").json();
    assert_eq!(session["exit"], "exit 0", "{session}");
    assert_eq!(session["loop"]["status"], "completed", "{session}");
    assert_eq!(session["loop"]["iteration"], 5);
}

#[test]
fn an_unread_message_is_in_every_prompt_and_offered_once() {
    let looped = Stage::new().start();
    let id = looped.ph().send("bot 'Stay'");
    begin(&looped, 1);
    looped.go("true");
    let second = begin(&looped, 2);
    assert_eq!(count(&second, "Stay"), 1, "{second}");
    looped.go("true");
    let third = begin(&looped, 3);
    assert_eq!(count(&third, "Stay"), 1, "{third}");
    let shown = looped.ph().run(&format!("show --json {id}")).json();
    let steps: Vec<_> = shown["receipts"]
        .as_array()
        .expect("receipts")
        .iter()
        .collect();
    let offers = steps
        .iter()
        .filter(|step| step["state"] == "offered")
        .count();
    assert_eq!(offers, 1, "{shown}");
}

#[test]
fn tasks_and_notes_are_in_the_next_prompt() {
    let looped = Stage::new().start();
    begin(&looped, 1);
    looped.go(r#""$PH" task add 'Lay the floor' && "$PH" note add --type tip 'Use oak'"#);
    let second = begin(&looped, 2);
    assert!(second.contains("REMAINING:\n  - ["), "{second}");
    assert!(second.contains("Lay the floor"), "{second}");
    assert!(second.contains("- [#1] Use oak"), "{second}");
    let session = looped.ph().run("status bot --json").json();
    assert_eq!(session["loop"]["tasks_open"], 1, "{session}");
    assert_eq!(session["loop"]["current_task"], "Lay the floor");
    assert_eq!(session["activity"], "working");
    let list = looped.ph().run("ls").ok();
    assert!(
        list.contains("iteration 2 of 50 runs; tasks 0 done, 1 open"),
        "{list}"
    );
}

#[test]
fn the_agents_token_ends_the_loop_and_an_echo_does_not() {
    let prompt = "Say <promise>COMPLETE</promise> when done.";
    let looped = Stage::new().flags(&["--prompt", prompt]).start();
    let first = begin(&looped, 1);
    assert!(first.contains("<promise>COMPLETE</promise>"), "{first}");
    looped.go("echo user; cat \"$DIR/given\"; echo working");
    begin(&looped, 2);
    // A token before a failure does not count.
    looped.go("echo '<promise>COMPLETE</promise>'; exit 3");
    begin(&looped, 2);
    looped.go("cat \"$DIR/given\"; echo 'All is done.'; echo '<promise>COMPLETE</promise>'");
    assert_eq!(looped.ending(), r#"{"complete":"token"}"#);
    let outcomes = looped.outcomes();
    assert_eq!(outcomes[..2], ["1 \"ended\"", r#"2 {"failed":{"exit":3}}"#]);
}

#[test]
fn a_token_in_a_printed_spec_does_not_end_the_loop() {
    let stage = Stage::new();
    let spec =
        "Build a small house.\n\nWhen everything passes, print:\n<promise>COMPLETE</promise>\n";
    stage.ph.file("spec.md", spec);
    let looped = stage.start();
    let shows = [
        r#"cat -n "$DIR/spec.md"; echo 'I have begun; much is left.'"#,
        r#"cat -n "$DIR/spec.md""#,
        r#"cat "$DIR/spec.md""#,
        r#"grep -n promise "$DIR/spec.md""#,
        "echo 'I will not write <promise>COMPLETE</promise> until it is done.'",
    ];
    for (iteration, show) in (1..).zip(shows) {
        begin(&looped, iteration);
        looped.go(show);
    }
    begin(&looped, 6);
    looped.go(r#"cat "$DIR/spec.md"; echo 'It stands.'; echo '<promise>COMPLETE</promise>'"#);
    assert_eq!(looped.ending(), r#"{"complete":"token"}"#);
    assert_eq!(looped.outcomes().len(), 6);
}

#[test]
fn a_loop_ends_after_its_last_allowed_iteration() {
    let looped = Stage::new().flags(&["--iterations", "2"]).start();
    for iteration in [1, 2] {
        looped.prompt(iteration);
        looped.go("true");
    }
    assert_eq!(looped.ending(), "\"used_up\"");
    let session = looped.ph().run("status bot --json").json();
    assert_eq!(session["loop"]["status"], "stopped", "{session}");
}

#[test]
fn a_loop_ends_when_all_stories_pass() {
    let stage = Stage::new().prd(
        r#"{"id": "US-1", "title": "Floor", "priority": 1, "acceptanceCriteria": ["it is flat"]},
           {"id": "US-2", "title": "Roof", "priority": 2}"#,
    );
    let path = stage.path("prd.json");
    let looped = stage.start();
    let first = begin(&looped, 1);
    assert!(first.contains("Current story: US-1: Floor"), "{first}");
    assert!(first.contains("[ ] it is flat"), "{first}");
    assert_eq!(looped.status()["current_story"], "US-1");
    let one = super::stage::prd(r#"{"id":"US-1","passes":true},{"id":"US-2","priority":2}"#);
    looped.go(&format!("echo '{one}' > '{path}'"));
    let second = begin(&looped, 2);
    assert!(second.contains("Current story: US-2"), "{second}");
    assert_eq!(looped.status()["current_story"], "US-2");
    // An incomplete file, as an editor may leave it, is reported and does not end the loop.
    looped.go(&format!("printf '{{\"userStories\": [' > '{path}'"));
    let third = begin(&looped, 3);
    assert!(third.contains("malformed"), "{third}");
    looped.session.wait_for_text("is not a valid prd");
    let status = looped.ph().run("status bot").ok();
    assert!(status.contains("is not a valid prd: line 1"), "{status}");
    assert_eq!(
        std::fs::read_to_string(&path).expect("it is there"),
        "{\"userStories\": ["
    );
    let all = super::stage::prd(r#"{"id":"US-1","passes":true},{"id":"US-2","passes":true}"#);
    looped.go(&format!("echo '{all}' > '{path}'"));
    assert_eq!(looped.ending(), r#"{"complete":"stories"}"#);
}

#[test]
fn a_template_has_all_parts_and_a_message_is_not_a_template() {
    let stage = Stage::new();
    stage.ph.file(
        "own.txt",
        "Turn {{iteration}} of {{session}}.\n{{inbox}}\n{{tasks}}\nEnd.",
    );
    let template = stage.path("own.txt");
    let looped = stage.flags(&["--template", &template]).start();
    looped.prompt(1);
    looped.ph().send("bot 'a {{tasks}} b'");
    looped.go(r#""$PH" task add 'Lay {{inbox}}'"#);
    let second = looped.prompt(2);
    assert!(second.starts_with("Turn 2 of bot.\n## INBOX"), "{second}");
    assert!(second.contains("a {{tasks}} b"), "{second}");
    assert!(second.contains("Lay {{inbox}}"), "{second}");
    assert!(second.trim_end().ends_with("End."), "{second}");
}

#[test]
fn a_prompt_can_be_an_argument() {
    let stage = Stage::new();
    let script = r#"printf %s "$1" > "$DIR/coming"; mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"
        IFS= read -r order < "$DIR/orders"; eval "$order""#;
    let looped = stage
        .command(&["/bin/sh", "-c", script, "agent", "{prompt}"])
        .start();
    let id = looped.ph().send("bot hello");
    begin(&looped, 1);
    looped.go("true");
    let second = begin(&looped, 2);
    assert_eq!(count(&second, "hello"), 1, "{second}");
    wait_for("the receipt", || {
        let shown = looped.ph().run(&format!("show --json {id}")).json();
        (shown["receipt"] == "offered").then_some(())
    });
}
