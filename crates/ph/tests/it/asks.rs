//! Asks: the questions of an agent are listed, answered once, and closed.

use crate::common::Done;
use crate::common::session::Wire;
use crate::common::stage::{Agent, Stage, until, until_so};
use crate::common::tui::install_manifest;
use posthaste_lab::pty::{Size, Terminal};
use serde_json::{Value, json};

/// A manifest for the lab's agent, whose dialogs are drawn by the test.
const ASKS: &str = r#"
name = "asks"
description = "The lab's agent with dialogs"
commands = ["lab-agent"]

[activity]
silence = "300ms"

[options]
allow = ['^Yes$']
always = ['^Yes, always$']
deny = ['^No$']
cut = ['\+\d+ lines']

[[dialog]]
name = "permission"
options = "digit"
whole = true
pattern = '\[ask\]\n(?<what>[^\n]+)\n[^#]*> 1\. [^#]*\z'
"#;
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Return what draws a permission request for a command.
fn dialog(command: &str) -> String {
    let command = command.replace('\n', "\r\n");
    format!("{CLEAR}[ask]\r\n{command}\r\nProceed?\r\n> 1. Yes\r\n  2. Yes, always\r\n  3. No\r\n")
}

fn stage() -> Stage {
    let stage = Stage::new();
    install_manifest(&stage, "asks", ASKS);
    stage
}

/// Start an agent that asks to run a command.
fn asking<'a>(stage: &'a Stage, command: &str) -> Agent<'a> {
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    agent.say(dialog(command));
    agent
}

/// Wait until the agent asks to run a command, and return the ask.
fn asked(stage: &Stage, command: &str) -> Value {
    until("the ask", || {
        let asks = stage.run("asks --json");
        let asks: Vec<Value> = serde_json::from_str(&asks.out()).ok()?;
        asks.into_iter().find(|ask| ask["summary"] == command)
    })
}

/// Wait until any question is recorded, and return its ask.
fn first_ask(stage: &Stage) -> Value {
    until("the ask", || {
        let asks: Vec<Value> = serde_json::from_str(&stage.run("asks --json").out()).ok()?;
        let is_recorded = |ask: &Value| ask["fingerprint"] != "";
        asks.into_iter().find(is_recorded)
    })
}

fn id4(ask: &Value) -> String {
    ask["id"].as_str().expect("an id")[..4].to_owned()
}

/// Answer, and let the dialog close once the key has come.
fn answer(stage: &Stage, agent: &Agent<'_>, line: &str, key: &str) -> Done {
    let answering = stage.call(&stage.words(line)).spawn();
    agent.until_heard(key);
    agent.say(CLEAR);
    Done::of(answering)
}

fn shows(terminal: &mut Terminal, text: &str) {
    terminal.wait_for(text, |lines| lines.iter().any(|line| line.contains(text)));
}

#[test]
fn a_question_is_listed_and_answered_once() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let ask = asked(&stage, "cargo test");
    assert_eq!(ask["text"], "[ask]\ncargo test\nProceed?");
    let option = |key: &str, label: &str, meaning: &str| json!({"key": key, "label": label, "meaning": meaning});
    let options = [
        option("1", "Yes", "allow"),
        option("2", "Yes, always", "allow_always"),
        option("3", "No", "deny"),
    ];
    assert_eq!(ask["options"], json!(options));
    let id = id4(&ask);
    let listed = stage.run("asks").ok();
    assert!(
        listed.contains(&format!("{id}  bot    permission  <1m    cargo test")),
        "{listed}"
    );
    let done = answer(&stage, &agent, &format!("answer {id} allow"), "1");
    let says = "applied      bot: Yes; the question closed after the answer was typed\n";
    assert_eq!(done.ok(), says);
    assert_eq!(agent.heard(), b"1", "a digit needs no Enter");
    let late = stage.run(&format!("answer {id} deny"));
    assert_eq!(late.code, 4);
    assert!(
        late.out()
            .starts_with("too late     'Yes' by human via ph answer, "),
        "{}",
        late.out()
    );
    assert_eq!(stage.run("asks").code, 1, "nothing waits");
    let all = stage.run("asks --all").ok();
    assert!(all.contains("answered by human: Yes  cargo test"), "{all}");
    assert_eq!(agent.heard(), b"1");
}

#[test]
fn one_of_many_answers_at_the_same_time_is_applied() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    let words = ["allow", "always", "deny", "2"];
    let all = words.map(|word| stage.call(&["answer", &id, word, "--json"]).spawn());
    until_so("a key", || !agent.heard().is_empty());
    agent.say(CLEAR);
    let outcomes = all.map(|child| Done::of(child).json()["outcome"].clone());
    let count = |what: &str| outcomes.iter().filter(|o| *o == what).count();
    assert_eq!(
        (count("applied"), count("too_late")),
        (1, 3),
        "{outcomes:?}"
    );
    assert_eq!(agent.heard().len(), 1);
}

#[test]
fn an_answer_to_a_question_that_has_changed_is_not_given() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    agent.say(dialog("git push"));
    let next = id4(&asked(&stage, "git push"));
    let done = stage.run(&format!("answer {id} allow"));
    assert_eq!(done.code, 4);
    let says = format!("changed      bot now asks {next}: git push. Nothing was answered.\n");
    assert_eq!(done.out(), says);
    agent.say(CLEAR);
    until_so("no ask", || stage.run("asks").code == 1);
    let done = stage.run(&format!("answer {next} deny"));
    assert_eq!(done.code, 4);
    assert_eq!(
        done.out(),
        "changed      bot no longer asks this. Nothing was answered.\n"
    );
    assert_eq!(agent.heard(), b"");
}

#[test]
fn an_ignored_answer_is_not_applied_and_another_may_follow() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    let done = stage.run(&format!("answer {id} allow"));
    assert_eq!(done.code, 4, "{}", done.err());
    assert!(
        done.out().starts_with("not applied  bot: "),
        "{}",
        done.out()
    );
    assert_eq!(agent.heard(), b"11", "it is typed once more");
    let done = answer(&stage, &agent, &format!("answer {id} deny"), "3");
    assert!(done.ok().starts_with("applied      bot: No; "));
}

#[test]
fn a_text_denies_and_is_sent_as_a_message() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    let answering = stage
        .call(&["answer", &id, "Use the staging server."])
        .spawn();
    agent.until_heard("3");
    agent.say(CLEAR);
    let done = Done::of(answering);
    assert!(
        done.out().starts_with("applied      bot: No; "),
        "{}",
        done.out()
    );
    assert!(
        done.err()
            .contains("note: the text was sent to bot as message "),
        "{}",
        done.err()
    );
    agent.until_heard("] Use the staging server.\r");
    // A mistyped key is no text.
    agent.say(dialog("rm -r x"));
    let id = id4(&asked(&stage, "rm -r x"));
    let facts = stage.facts();
    stage
        .run(&format!("answer {id} 9"))
        .fails(4, "no option is called '9'");
    assert_eq!(stage.facts(), facts);
}

#[test]
fn a_script_names_the_ask_unless_it_denies() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    for line in ["answer bot allow", "answer bot", &format!("answer {id}")] {
        let done = stage.run(line);
        done.fails(2, "bot asks: cargo test");
        let hint = format!("hint: 'ph answer {id} allow' or 'ph answer {id} deny' answers it");
        assert!(done.err().contains(&hint), "{}", done.err());
    }
    assert_eq!(agent.heard(), b"");
    let done = answer(&stage, &agent, "answer bot deny", "3");
    assert!(done.ok().starts_with("applied      bot: No; "));
    stage
        .run("answer bot deny")
        .fails(3, "no question of bot is open");
    stage
        .run("answer nobody deny")
        .fails(3, "no question of nobody is open");
}

#[test]
fn a_person_is_shown_the_question_and_asked() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    let mut person = stage.terminal(&format!("answer {id}"), Size::USUAL);
    shows(&mut person, "(Enter: later):");
    for shown in [
        "  cargo test",
        "allow   1  Yes",
        "always  2  Yes, always",
        "deny    3  No",
    ] {
        shows(&mut person, shown);
    }
    person.type_keys("allow\r");
    agent.until_heard("1");
    agent.say(CLEAR);
    shows(&mut person, "applied");
    person.wait_exit();
    agent.say(dialog("git push"));
    let id = id4(&asked(&stage, "git push"));
    let mut person = stage.terminal(&format!("answer {id}"), Size::USUAL);
    shows(&mut person, "(Enter: later):");
    person.type_keys("\r");
    shows(&mut person, "later: nothing was answered");
    person.wait_exit();
    assert_eq!(agent.heard(), b"1");
}

#[test]
fn an_answer_in_the_terminal_closes_the_ask() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    let mut person = stage.terminal("attach bot", Size::USUAL);
    shows(&mut person, "Proceed?");
    person.type_keys("1");
    agent.until_heard("1");
    agent.say(CLEAR);
    until_so("no ask", || stage.run("asks").code == 1);
    let late = stage.run(&format!("answer {id} deny"));
    assert!(
        late.out()
            .starts_with("too late     answered by human in the terminal, "),
        "{}",
        late.out()
    );
    person.type_keys("\x1cd");
    person.wait_exit();
}

#[test]
fn a_session_that_dies_after_the_key_leaves_the_answer_uncertain() {
    let stage = stage();
    let agent = asking(&stage, "cargo test");
    let id = id4(&asked(&stage, "cargo test"));
    let answering = stage.call(&["answer", &id, "allow"]).spawn();
    agent.until_heard("1");
    stage.run("stop bot --kill");
    let done = Done::of(answering);
    assert_eq!(done.code, 1, "{} {}", done.out(), done.err());
    assert!(
        done.out().starts_with("uncertain    bot: "),
        "{}",
        done.out()
    );
    let all = stage.run("asks --all").ok();
    assert!(all.contains("withdrawn"), "{all}");
    let again = stage.run(&format!("answer {id} allow"));
    assert_eq!(again.code, 4, "an approval is not given twice");
}

#[test]
fn a_question_that_the_agent_has_cut_is_allowed_only_by_attaching() {
    let stage = stage();
    let agent = asking(&stage, "cat <<E\n+34 lines");
    let ask = first_ask(&stage);
    assert_eq!(ask["partial"], true);
    let id = id4(&ask);
    let done = stage.run(&format!("answer {id} allow"));
    done.fails(4, "the text of this question is incomplete");
    assert_eq!(agent.heard(), b"");
    let done = answer(&stage, &agent, &format!("answer {id} deny"), "3");
    assert!(done.ok().starts_with("applied      bot: No; "));
}

#[test]
fn a_question_cannot_act_on_a_terminal() {
    let stage = stage();
    let _agent = asking(&stage, "echo \u{202e}evil\u{202c} \x1b]0;owned\x07x");
    let ask = first_ask(&stage);
    let listed = stage.run("asks").ok() + &ask.to_string();
    assert!(!listed.contains(['\u{202e}', '\x1b', '\x07']), "{listed:?}");
}

#[test]
fn a_client_of_the_socket_lists_follows_and_answers() {
    let stage = stage();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let socket = stage.status("bot")["socket"]
        .as_str()
        .expect("a path")
        .to_owned();
    let mut wire = Wire::to(socket.as_ref());
    wire.subscribe(&["ask"]);
    agent.say(dialog("cargo test"));
    let opened = wire.event();
    assert_eq!(opened["type"], "ask");
    let ask = &opened["data"];
    assert_eq!(ask["summary"], "cargo test");
    let mut other = Wire::to(socket.as_ref());
    let listed = other.result("asks", json!({}));
    assert_eq!(listed[0]["id"], ask["id"]);
    let params = |fingerprint: &Value| json!({"ask": ask["id"], "fingerprint": fingerprint, "choice": "allow", "via": "test"});
    let changed = other.result("answer", params(&json!("0000")));
    assert_eq!(changed["outcome"], "changed");
    assert_eq!(changed["now"]["id"], ask["id"]);
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "answer", "params": params(&ask["fingerprint"])});
    other.send_line(call.to_string());
    agent.until_heard("1");
    agent.say(CLEAR);
    let reply = other.json();
    assert_eq!(reply["result"]["outcome"], "applied", "{reply}");
    let closed = until("the end of the ask", || {
        let event = wire.event();
        event["data"]["closed"].is_object().then_some(event)
    });
    assert_eq!(closed["data"]["closed"]["how"], "answered");
    assert_eq!(closed["data"]["closed"]["via"], "test");
}

/// A manifest for a menu without numbers, in which a marker shows the highlighted option.
const MENU: &str = r#"
name = "menu"
description = "The lab's agent with a menu"
commands = ["lab-agent"]

[activity]
silence = "300ms"

[options]
allow = ['^Trust$']
deny = ['^No$']

[[dialog]]
name = "trust"
options = "arrows"
whole = true
pattern = '\[menu\]\n(?<what>[^\n]+)\n\n[^#]*> [^#]*\z'
"#;

#[test]
fn arrow_keys_move_the_marker_and_enter_follows_on_the_chosen_option() {
    let stage = Stage::new();
    install_manifest(&stage, "menu", MENU);
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let menu = |no: &str, trust: &str| {
        format!("{CLEAR}[menu]\r\nTrust this?\r\n\r\n{no} No\r\n{trust} Trust\r\n")
    };
    agent.say(menu(">", " "));
    let ask = first_ask(&stage);
    let labels: Vec<_> = ask["options"].as_array().expect("a list").iter().collect();
    assert_eq!(labels[1]["label"], "Trust", "{ask}");
    let id = id4(&ask);
    let answering = stage.call(&["answer", &id, "allow"]).spawn();
    agent.until_heard("\x1b[B");
    assert_eq!(agent.heard(), b"\x1b[B", "Enter waits for the marker");
    agent.say(menu(" ", ">"));
    agent.until_heard("\x1b[B\r");
    agent.say(CLEAR);
    let done = Done::of(answering).ok();
    assert!(done.starts_with("applied      bot: Trust; "), "{done}");
    assert_eq!(agent.heard(), b"\x1b[B\r");
}
