//! Waiting for a message, pausing, answering questions, deadlines and expected replies, with the
//! real binary and an agent in a real terminal.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::Done;
use crate::common::stage::{Stage, millis_between, until, until_so};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn id_of(done: &Done) -> String {
    done.out().lines().next().expect("an id").to_owned()
}

#[test]
fn a_sender_waits_until_its_message_has_reached_a_state() {
    let stage = Stage::new();
    stage.agent("bot", "--raw");
    // The wait begins before the agent is ready.
    let done = stage.run("send bot hello --wait offered --timeout 30s");
    let id = id_of(&done);
    assert_eq!((done.code, done.err().as_str()), (0, ""));
    assert_eq!(done.out(), format!("{id}\n"));
    assert_eq!(stage.receipt(&id), "offered");
    // A later state than the requested one counts, too.
    stage.run(&format!("mark-read {id}")).ok();
    let done = stage.run(&format!(
        "reply {id} --from bot more --wait accepted --timeout 1s --json"
    ));
    assert_eq!(done.code, 1);
    let told = done.json();
    assert_eq!(
        (&told["reached"], &told["receipt"]),
        (&json!(false), &json!("stored"))
    );
    let err = done.err();
    assert!(err.contains("is not accepted yet: it is stored"), "{err}");
    assert!(err.contains("why: it is in the person's inbox"), "{err}");
    // Another process's change ends the wait through the bell; a tick would take a second or two.
    let mut waits = ["x", "y", "z"].map(|body| {
        let waiting = stage.call(&["send", "human", body, "--from", "bot", "--wait", "read"]);
        let waiting = waiting.spawn();
        let there = until("the message", || {
            let inbox = stage.run("inbox human --json").json();
            let found = inbox
                .as_array()?
                .iter()
                .find(|m| m["body"] == body)
                .cloned();
            found.map(|m| m["id"].as_str().expect("an id").to_owned())
        });
        stage.run(&format!("read {there}")).ok();
        let read = Instant::now();
        let done = Done::of(waiting);
        assert_eq!((done.code, done.out()), (0, format!("{there}\n")));
        read.elapsed()
    });
    waits.sort_unstable();
    assert!(waits[1] < Duration::from_millis(500), "{waits:?}");
}

#[test]
fn a_wait_ends_when_the_message_ends() {
    let stage = Stage::new();
    let check = |flags: &str, end: &str| {
        let done = stage.run(&format!("send bot x --wait offered {flags}"));
        assert_eq!(done.code, 1, "{}", done.err());
        let says = format!("will not be offered: it is {end}");
        assert!(done.err().contains(&says), "{}", done.err());
        assert_eq!(stage.receipt(&id_of(&done)), end);
    };
    check("--ttl 100ms", "expired");
    let waiting = stage.call(&["send", "bot", "y", "--wait", "offered", "--json"]);
    let waiting = waiting.spawn();
    let id = until("the message", || {
        let inbox = stage.run("inbox bot --json").json();
        Some(inbox.as_array()?.first()?["id"].as_str()?.to_owned())
    });
    stage.run(&format!("cancel {id}")).ok();
    let done = Done::of(waiting);
    let told = done.json();
    assert_eq!((done.code, &told["receipt"]), (1, &json!("cancelled")));
    // With several messages, the wait lasts until the last one.
    let done = stage.run("send bot,other z --wait offered --timeout 100ms --json");
    assert_eq!(done.code, 1);
    let reached = |m: &Value| m["reached"].as_bool().expect("yes or no");
    let told = done.json();
    assert!(!told.as_array().expect("an array").iter().any(reached));
    stage.run("send bot x --timeout 1s").fails(2, "--wait");
    stage
        .run("send bot x --wait delivered")
        .fails(2, "delivered");
    assert!(!stage.facts().contains("session_"));
}

#[test]
fn pause_and_unpause_hold_and_release_mail() {
    let stage = Stage::new();
    stage.run("pause bot").fails(3, "bot has never run");
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    assert_eq!(stage.run("pause bot").ok(), "bot is paused\n");
    let id = stage.send("bot hello");
    stage.until_rule(&id, "paused");
    assert_eq!(stage.why(&id)["release"], "'ph unpause bot'");
    let told = stage.run("pause bot --json").json();
    assert_eq!(told, json!({"name": "bot", "paused": true, "reason": null}));
    let status = stage.run("status bot").ok();
    assert!(
        status.contains("paused     a client asked for a pause"),
        "{status}"
    );
    assert!(stage.run("ls").ok().contains("idle, paused"));
    assert!(agent.heard().is_empty());
    assert_eq!(stage.run("unpause bot").ok(), "bot is no longer paused\n");
    stage.until_receipt(&id, "offered");
    // A person who has the keyboard keeps it.
    let mut person = stage.terminal("attach bot --take", posthaste_lab::pty::Size::USUAL);
    until_so("the keyboard to be taken", || {
        let id = stage.send("bot --ttl 1s anybody");
        stage.rule(&id) == "paused"
    });
    let done = stage.run("unpause bot");
    let says = "bot is still paused: a person has taken the keyboard\n";
    assert_eq!((done.code, done.out().as_str()), (1, says));
    person.type_keys(b"\x1cd");
    person.wait_exit();
    stage.run("stop bot --kill").ok();
    let done = stage.run("unpause bot");
    done.fails(4, "no session of bot is running");
    assert!(
        done.err()
            .contains("hint: its mail waits in the inbox; 'ph restart bot' starts it again")
    );
}

#[test]
fn an_answer_is_typed_unchanged_and_only_into_a_running_program() {
    let stage = Stage::new();
    let done = stage.run("send bot --raw y");
    done.fails(
        4,
        "no session of bot is running: there is no question to answer",
    );
    assert!(!stage.home().exists());
    let agent = stage.agent("bot", "--raw --paste");
    stage.until_activity("bot", "idle");
    agent.keep_busy();
    let done = stage.run("send bot --raw y --wait offered --timeout 30s");
    assert_eq!((done.code, done.err().as_str()), (0, ""));
    agent.until_heard("y\r");
    assert_eq!(agent.heard_text(), "y\r");
    let shown = stage.show(&id_of(&done));
    let evidence = shown["receipts"][2]["evidence"].as_str().expect("a text");
    assert!(evidence.ends_with("dialog unknown"), "{evidence}");
    assert_eq!(shown["priority"], "interrupt");
    let raw = stage.call(&["send", "bot", "--raw", "\u{1b}[B"]).run();
    stage.until_receipt(&id_of(&raw), "offered");
    agent.until_heard("y\r\u{1b}[B\r");
    // Conflicting options are refused, and nothing is stored.
    let facts = stage.facts();
    stage
        .run("send bot,other --raw y")
        .fails(2, "--raw takes only one recipient");
    stage
        .run("send bot --raw --priority idle y")
        .fails(2, "--raw");
    stage.run("send bot --raw --in 1h y").fails(2, "--raw");
    let long = "y".repeat(4_001);
    stage
        .call(&["send", "bot", "--raw", &long])
        .run()
        .fails(4, "at most 4000 bytes");
    assert_eq!(stage.facts(), facts);
}

/// An answer applies only to the question that was open when it was given.
#[test]
fn an_answer_is_never_typed_into_another_program() {
    let stage = Stage::new();
    stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    // A requested pause lets an answer pass; a taken keyboard does not.
    let mut person = stage.terminal("attach bot --take", posthaste_lab::pty::Size::USUAL);
    until_so("the keyboard to be taken", || {
        let status = stage.run("status bot").ok();
        status.contains("a person has taken the keyboard")
    });
    let answer = id_of(&stage.run("send bot --raw y"));
    stage.until_rule(&answer, "paused");
    stage.run("stop bot --kill").ok();
    person.wait_exit();
    let agent = stage.agent("bot", "--raw");
    stage.until_receipt(&answer, "failed");
    let why = stage.run(&format!("why {answer}")).ok();
    let says = "not held   it is failed: it was an answer to a program that has ended";
    assert!(why.starts_with(says), "{why}");
    let next = stage.send("bot next");
    stage.until_receipt(&next, "offered");
    agent.until_heard("next\r");
    assert!(
        !agent.heard_text().contains("y\r"),
        "{:?}",
        agent.heard_text()
    );
}

#[test]
fn a_deadline_promotes_a_message() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    agent.keep_busy();
    let patient = stage.send("bot --priority idle patient");
    let late = stage.send("bot --priority idle --deadline 1s late");
    let why = until("the rule", || {
        let why = stage.why(&late);
        (why["rule"] == "working").then_some(why)
    });
    let release = why["release"].as_str().expect("a text");
    assert!(release.contains("goes as a normal message"), "{release}");
    stage.until_receipt(&late, "offered");
    assert!(agent.is_busy() && stage.receipt(&patient) == "stored");
    let shown = stage.show(&late);
    let offering = shown["receipts"][1]["evidence"].as_str().expect("a text");
    assert!(offering.starts_with("promoted from idle to normal: its deadline was "));
    let waited = millis_between(&shown, "stored", "offering");
    assert!(waited >= 1_000, "{waited} ms");
    assert!(shown["deadline"].is_string(), "{shown}");
    assert_eq!(shown["priority"], "idle");
    // A promoted message is held like a normal one.
    stage.run("pause bot").ok();
    let held = stage.send("bot --priority idle-first --deadline 100ms held");
    let evidence = until("its promotion", || {
        let why = stage.why(&held);
        let evidence = why["evidence"].as_str()?.to_owned();
        evidence.contains("promoted").then_some(evidence)
    });
    assert!(
        evidence.contains("promoted from idle-first to normal"),
        "{evidence}"
    );
    let text = stage.run(&format!("show {held}")).ok();
    assert!(text.contains("deadline   20"), "{text}");
    let bad = stage.run("send bot --ttl 1m --deadline 1h x");
    bad.fails(2, "the message would expire (--ttl) before its --deadline");
}

/// Expiries of all agents while no session ran are recorded by the next session.
#[test]
fn a_session_records_earlier_expiries() {
    let stage = Stage::new();
    let old = stage.send("bot --ttl 1ms old");
    until_so("its time to run out", || stage.receipt(&old) == "expired");
    assert_eq!(stage.receipts(&old), ["stored"]);
    stage.agent("bot", "--raw");
    until_so("the fact", || stage.receipts(&old) == ["stored", "expired"]);
}

/// Return how often an agent was reminded of a message.
fn reminded(stage: &Stage, id: &str) -> usize {
    let receipts = stage.receipts(id);
    receipts.iter().filter(|state| *state == "reminded").count()
}

#[test]
fn an_agent_is_reminded_of_an_expected_reply() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    stage.run("pause bot").ok();
    let id = stage.send("bot --expects-reply 'Is it ready?'");
    let other = stage.send("bot --expects-reply --from alice 'And you?'");
    let quiet = stage.send("bot 'no hurry'");
    stage.run("unpause bot").ok();
    let (id8, other8) = (&id[..8], &other[..8]);
    let header = format!("[ph message from: human id: {id8} (reply expected: ph reply {id8})]");
    agent.until_heard(&header);
    let awaited = stage.run("inbox --awaiting --json").json();
    assert_eq!(awaited[0]["id"], json!(id));
    let listed = stage.run("inbox --awaiting").ok();
    assert!(listed.contains("(reply expected)"), "{listed}");
    // All reminders are one turn, repeated each time the agent becomes idle.
    let remind = |n: u32| {
        format!(
            "[ph reminder {n} of 10: human expects a reply to message {id8}: ph reply {id8}] \
             [ph reminder {n} of 10: alice expects a reply to message {other8}: ph reply {other8}]\r"
        )
    };
    // A message between reminders; without it, the next reminder would have to wait.
    let go_on = || {
        let id = stage.send("bot 'go on'");
        stage.until_receipt(&id, "offered");
    };
    agent.until_heard(&remind(1));
    go_on();
    agent.until_heard(&remind(2));
    let why = stage.run(&format!("why {id}")).ok();
    let says = "reply      expected; reminded ";
    assert!(
        why.contains(says) && why.contains(" of 10 times, last at 20"),
        "{why}"
    );
    // A reply ends the reminders of its message, not those of the other.
    stage.run(&format!("reply {other} --from bot yes")).ok();
    let so_far = reminded(&stage, &other);
    for more in 1..=2 {
        go_on();
        until_so("one more of the other", || {
            reminded(&stage, &id) >= so_far + more
        });
    }
    assert_eq!(reminded(&stage, &other), so_far);
    // The sender can stop expecting a reply.
    stage
        .run(&format!("send bot --closes {id} 'never mind'"))
        .ok();
    let in_all = reminded(&stage, &id) + so_far;
    assert_eq!(
        stage.run("inbox --awaiting").ok(),
        "human awaits no reply\n"
    );
    let shown = stage.show(&id);
    let reply = shown["reply"].as_str().expect("a text");
    assert!(reply.starts_with("answered: in message "), "{reply}");
    assert_eq!(stage.show(&quiet)["reply"], Value::Null);
    agent.until_heard("never mind\r");
    stage.until_activity("bot", "idle");
    let last = stage.send("bot last");
    stage.until_receipt(&last, "offered");
    let heard = agent.heard_text();
    assert_eq!(heard.matches("[ph reminder").count(), in_all, "{heard}");
}

#[test]
fn reminders_stop_while_mail_is_held_and_after_the_end() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    agent.keep_busy();
    let id = stage.send("bot --expects-reply hello");
    stage.until_receipt(&id, "offered");
    stage.run("pause bot").ok();
    agent.let_rest();
    stage.until_activity("bot", "idle");
    stage.run(&format!("archive {id}")).ok();
    let later = stage.send("bot later");
    stage.run("unpause bot").ok();
    stage.until_receipt(&later, "offered");
    stage.until_activity("bot", "idle");
    let last = stage.send("bot last");
    stage.until_receipt(&last, "offered");
    let heard = agent.heard_text();
    assert!(!heard.contains("reminder"), "{heard}");
    let reply = stage.show(&id)["reply"].clone();
    assert_eq!(reply, "no longer expected: the message has ended");
    let eve = stage.run(&format!("send bot --from eve --closes {id} x"));
    eve.fails(4, "eve is neither sender");
    let plain = stage.run(&format!("send bot --closes {later} x"));
    plain.fails(4, "expects no reply");
}

#[test]
fn an_agent_that_does_not_read_is_not_reminded() {
    let stage = Stage::new();
    stage.agent("deaf", "--raw --deaf");
    stage.until_activity("deaf", "idle");
    let id = stage.send("deaf --expects-reply hello");
    stage.until_receipt(&id, "offered");
    stage.until_activity("deaf", "idle");
    let next = stage.send("deaf next");
    stage.until_rule(&next, "not-reading");
    assert_eq!(reminded(&stage, &id), 0);
}

/// Expected replies in the wording of the original.
#[test]
fn the_plain_dialect_supports_expected_replies() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let send = |body: &str, extra: (&str, Value)| {
        let mut request = json!({"type": "send", "priority": "normal", "from": "a", "body": body});
        request[extra.0] = extra.1;
        stage.ask("bot", &request)
    };
    let asked = send("ready?", ("expects_response", json!(true)));
    let id = asked["message_id"].as_str().expect("an id").to_owned();
    agent.until_heard(&format!(
        "(reply expected: ph reply {})] ready?\r",
        &id[..8]
    ));
    let reply = stage.show(&id)["reply"].clone();
    assert!(
        reply
            .as_str()
            .expect("a text")
            .starts_with("expected; reminded ")
    );
    send("never mind", ("er_trigger_id", json!(&id[..8])));
    let reply = stage.show(&id)["reply"].clone();
    assert!(
        reply.as_str().expect("a text").starts_with("answered"),
        "{reply}"
    );
    let unknown = send("x", ("er_trigger_id", json!("ffffffff")));
    assert_eq!(
        unknown["ok"], true,
        "it closes nothing, and goes all the same"
    );
}
