//! Storms between agents are limited, visibly: by the number of hops from the first message, and by
//! the rate. The agents are scripts in real sessions that react to every line.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::Done;
use crate::common::stage::{Stage, until};
use serde_json::Value;

const PH: &str = env!("CARGO_BIN_EXE_ph");

/// An agent that sends a message for each line it reads, and prints failures.
fn relay(stage: &Stage, name: &str, to: &str) {
    let script = format!(
        "stty -echo; echo ready; while read -r line; do {PH} send {to} \"from {name}\" || echo cut; done"
    );
    stage.script(name, &script);
}

/// An agent that replies to each message.
fn replier(stage: &Stage, name: &str) {
    let script = format!(
        "stty -echo; echo ready; while read -r line; do id=${{line#*id: }}; {PH} reply ${{id%%]*}} again || echo cut; done"
    );
    stage.script(name, &script);
}

fn limit(stage: &Stage, hops: u32, rate: u32) {
    std::fs::create_dir_all(stage.home()).expect("a home");
    let settings = format!("[mail]\nmax_hops = {hops}\nmax_rate = {rate}\n");
    std::fs::write(stage.home().join("config.toml"), settings).expect("settings");
}

fn all(stage: &Stage, name: &str) -> Vec<Value> {
    let found = stage.run(&format!("log --agent {name} --json")).out();
    let facts = found
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    facts
        .filter(|fact: &Value| fact["kind"] == "message")
        .collect()
}

/// Wait for the message that ended the storm.
fn cut(stage: &Stage, names: &[&str]) -> Value {
    until("the end of the storm", || {
        let of = |name: &&str| all(stage, name);
        let ids = names.iter().flat_map(of).map(|fact| fact["id"].clone());
        let shown = ids.map(|id| stage.show(id.as_str().expect("an id")));
        shown.into_iter().find(|shown| shown["receipt"] == "failed")
    })
}

fn check_ring(stage: &Stage, names: &[&str]) {
    for name in names {
        stage.until_activity(name, "idle");
    }
    let first = stage.send(&format!("{} go", names[0]));
    let failed = cut(stage, names);
    assert_eq!(failed["hops"], 5, "{failed}");
    let reason = failed["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with(
            "storm between agents: hop count 5 exceeds the limit of 4 (mail.max_hops)"
        ),
        "{reason}"
    );
    let receipts = failed["receipts"].as_array().expect("an array");
    let states: Vec<_> = receipts
        .iter()
        .map(|r| r["state"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(states, ["stored", "failed"]);
    // Its sender got an error, and the storm ends there, after the person's message and one per
    // hop.
    let sender = failed["from"].as_str().expect("a name");
    stage.until_shown(sender, "cut");
    let count: usize = names.iter().map(|name| all(stage, name).len()).sum();
    assert_eq!(count, 1 + 5);
    assert_eq!(stage.show(&first)["hops"], 0);
    let id = failed["id"].as_str().expect("an id");
    let why = stage.run(&format!("why {id}")).ok();
    assert!(
        why.starts_with("not held   it is failed: storm between agents: hop count 5"),
        "{why}"
    );
    let inbox = stage.run(&format!(
        "inbox {} --all --json",
        failed["to"].as_str().unwrap_or("")
    ));
    assert!(inbox.out().contains(id), "it can be seen");
}

#[test]
fn a_ping_pong_between_two_agents_is_cut() {
    let stage = Stage::new();
    limit(&stage, 4, 1_000);
    relay(&stage, "a", "b");
    relay(&stage, "b", "a");
    check_ring(&stage, &["a", "b"]);
    // Each message names its cause, back to the person's message.
    let mut shown = cut(&stage, &["a", "b"]);
    for hops in (0..5).rev() {
        let cause = shown["cause"].as_str().expect("a cause").to_owned();
        shown = stage.show(&cause);
        assert_eq!(shown["hops"], hops);
    }
    assert_eq!(
        (&shown["from"], &shown["cause"]),
        (&"human".into(), &Value::Null)
    );
}

#[test]
fn a_ring_of_three_agents_is_cut() {
    let stage = Stage::new();
    limit(&stage, 4, 1_000);
    for (name, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        relay(&stage, name, next);
    }
    check_ring(&stage, &["a", "b", "c"]);
}

#[test]
fn replies_to_replies_are_cut() {
    let stage = Stage::new();
    limit(&stage, 4, 1_000);
    replier(&stage, "a");
    replier(&stage, "b");
    for name in ["a", "b"] {
        stage.until_activity(name, "idle");
    }
    stage.run("send a --from b hello").ok();
    let failed = cut(&stage, &["a", "b"]);
    assert_eq!(failed["hops"], 5, "{failed}");
    // A person's reply starts at zero hops.
    let id = failed["id"].as_str().expect("an id");
    let mine = stage.run(&format!("reply {id} 'enough of this'")).ok();
    assert_eq!(stage.show(mine.trim())["hops"], 0);
}

#[test]
fn a_storm_of_many_senders_is_limited() {
    let stage = Stage::new();
    limit(&stage, 16, 20);
    let send = || {
        let call = stage.call(&["send", "bob", "spam", "--from", "alice", "--json"]);
        call.spawn()
    };
    let senders: Vec<_> = (0..30).map(|_| send()).collect();
    let done: Vec<Done> = senders.into_iter().map(Done::of).collect();
    let sent = done.iter().filter(|done| done.code == 0).count();
    let (cut, other): (Vec<_>, Vec<_>) = done
        .iter()
        .filter(|d| d.code != 0)
        .partition(|d| d.code == 4);
    assert_eq!((sent, cut.len(), other.len()), (20, 10, 0));
    let told = cut[0].json();
    let id = told["id"].as_str().expect("an id");
    let says = format!(
        "message {id} was stored but will not be delivered: storm between agents: alice sent bob 20 messages in a minute, and the limit is 20 (mail.max_rate)"
    );
    let hint = format!("hint: 'ph show {}' shows its receipts", &id[..8]);
    for says in [says, hint] {
        assert!(cut[0].err().contains(&says), "{}", cut[0].err());
    }
    assert_eq!(told["receipt"], "failed");
    assert_eq!(stage.run("count bob --json").json()["unread"], 20);
    assert_eq!(all(&stage, "bob").len(), 30, "all of them are kept");
    // Other senders are not limited, and people never are.
    for line in [
        "send bob --from carol hi",
        "send bob hi",
        "send human --from alice hi",
    ] {
        assert_eq!(stage.run(line).code, 0, "{line}");
    }
}

#[test]
fn a_live_session_limits_a_storm() {
    let stage = Stage::new();
    limit(&stage, 16, 3);
    let agent = stage.agent("bot", "--raw --paste");
    let done: Vec<Done> = (0..5)
        .map(|_| stage.run("send bot --from alice x"))
        .collect();
    let codes: Vec<i32> = done.iter().map(|done| done.code).collect();
    assert_eq!(codes, [0, 0, 0, 4, 4]);
    assert!(
        done[3].err().contains("and the limit is 3 (mail.max_rate)"),
        "{}",
        done[3].err()
    );
    assert!(
        done[3].err().contains(done[3].out().trim()),
        "it names its id"
    );
    let plain =
        serde_json::json!({"type": "send", "priority": "normal", "from": "alice", "body": "x"});
    let reply = stage.ask("bot", &plain);
    assert_eq!(reply["ok"], false);
    assert!(
        reply["error"]
            .as_str()
            .unwrap_or("")
            .contains("storm between agents: "),
        "{reply}"
    );
    agent.until_heard("x\u{1b}[201~\r");
    let heard = agent.heard_text();
    assert_eq!(heard.matches("from: alice").count(), 3, "{heard}");
    let bad = stage
        .call(&["send", "bot", "x"])
        .env("PH_MAIL_MAX_RATE", "lots")
        .run();
    bad.fails(2, "mail.max_rate cannot be 'lots'");
}
