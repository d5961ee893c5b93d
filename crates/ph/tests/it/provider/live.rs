//! Live sessions where a script keeps the mail: it is asked without anybody waiting for it, what it
//! has is delivered once, and it is told what was read.

use super::{Provider, keep_by, script, stage};
use crate::common::stage::{Stage, kill, until, until_so};
use posthaste_core::offer::OfferReport;
use posthaste_core::{AgentName, Timestamp};
use posthaste_store::operation::RecordDelivery;
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

/// The facts of a kind, in the order of the journal.
fn facts(stage: &Stage, kind: &str) -> Vec<serde_json::Value> {
    let log = stage.run("log --json").out();
    let facts = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is there"));
    let of = |fact: &serde_json::Value| fact["kind"] == kind;
    facts.filter(of).collect()
}

#[test]
fn mail_is_imported_and_delivered_once() {
    let stage = stage();
    let provider = Provider::behind(&stage, "mail.tick = '50ms'");
    stage
        .run("send bot --from alice --subject login 'fix it'")
        .ok();
    let agent = stage.agent("bot", "");
    agent.until_heard("[login] fix it");
    // It is looked at again and again, and stays one message.
    let seen = provider.count("check bot");
    until_so("more looks", || provider.count("check bot") > seen + 3);
    assert_eq!(agent.heard_text().matches("fix it").count(), 1);
    let messages = facts(&stage, "message");
    assert_eq!(messages.len(), 1);
    let key = messages[0]["data"]["key"].as_str().unwrap();
    assert!(key.starts_with("exec:") && key.ends_with(":m1"), "{key}");
    assert_eq!(messages[0]["data"]["from_evidence"], "provider");
    // So it does after a restart.
    stage.run("stop bot --kill");
    let seen = provider.count("check bot");
    let again = stage.agent("bot", "");
    until_so("more looks", || provider.count("check bot") > seen + 3);
    assert_eq!(facts(&stage, "message").len(), 1);
    assert_eq!(again.heard_text().matches("fix it").count(), 1);
}

#[test]
fn the_agent_reads_and_replies_by_our_id() {
    let stage = stage();
    let provider = Provider::behind(&stage, "mail.tick = '50ms'");
    stage.agent("bot", "");
    stage.run("send bot --from alice hello").ok();
    let id = until("the message", || {
        let id = facts(&stage, "message").first()?["id"].as_str()?.to_owned();
        Some(id)
    });
    stage.until_receipt(&id[..8], "offered");
    assert_eq!(
        stage.show("m1")["receipts"],
        stage.show(&id[..8])["receipts"]
    );
    let reply = stage.run_as("bot", &format!("reply {} done", &id[..8]));
    assert_eq!(reply.ok(), "m2\n");
    assert_eq!(stage.run("inbox alice --json").json()[0]["reply_to"], "m1");
    let read = stage.run_as("bot", &format!("read {} --json", &id[..8]));
    assert_eq!(read.json()["id"], "m1");
    assert_eq!(provider.count("read m1"), 1);
    // Both sides agree.
    assert_eq!(facts(&stage, "read").len(), 1);
}

#[test]
fn a_read_message_is_marked_in_the_script() {
    let stage = stage();
    let provider = Provider::behind(&stage, "mail.tick = '50ms'");
    stage.agent("bot", "");
    stage.run("send bot --from alice hello").ok();
    let id = until("the message", || {
        Some(facts(&stage, "message").first()?["id"].clone())
    });
    stage.rpc("bot", "mark_read", &json!({"ids": [id]}));
    until_so("word of it", || provider.count("mark-read m1") == 1);
    assert_eq!(stage.run("inbox bot --json").ok(), "[]\n");
    let seen = provider.count("check bot");
    until_so("more looks", || provider.count("check bot") > seen + 3);
    assert_eq!(provider.count("mark-read m1"), 1);
}

#[test]
fn an_accepted_message_is_marked_in_the_script() {
    let stage = stage();
    let provider = Provider::behind(&stage, "mail.tick = '50ms'");
    stage.agent("bot", "");
    stage.run("send bot --from alice hello").ok();
    let id = until("the offer", || {
        let offered = facts(&stage, "offered");
        Some(offered.first()?["data"]["message"].as_str()?.to_owned())
    });
    assert_eq!(provider.count("mark-read m1"), 0);
    // As its harness would say it.
    let accepted = RecordDelivery {
        now: Timestamp::now(),
        agent: AgentName::parse("bot").unwrap(),
        ids: vec![id.parse().unwrap()],
        report: OfferReport::Accepted {
            route: "terminal".to_owned(),
            evidence: "its transcript shows it".to_owned(),
        },
    };
    stage.journal().commit(accepted).unwrap().unwrap();
    until_so("word of it", || provider.count("mark-read m1") == 1);
    assert_eq!(stage.run("inbox bot --json").ok(), "[]\n");
}

#[test]
fn marking_is_retried_a_few_times() {
    let stage = stage();
    let dir = stage.dir().join("there");
    let one = |id: &str| {
        format!(r#"{{"id":"{id}","from":"a","to":"bot","created_at":"2026-11-15T12:00:00Z"}}"#)
    };
    let text = format!(
        "#!/bin/sh\necho \"$1 $2\" >> '{}'\ncase $1 in\n\
            check) printf '%s' '[{},{}]';;\n\
            mark-read) echo 'not now' >&2; exit 1;;\nesac\n",
        dir.display(),
        one("1"),
        one("2"),
    );
    script(stage.dir(), "stubborn", &text);
    keep_by(&stage, "../stubborn", "mail.tick = '50ms'");
    stage.agent("bot", "");
    let ids = until("both messages", || {
        let facts = facts(&stage, "message");
        (facts.len() == 2).then(|| facts.iter().map(|f| f["id"].clone()).collect::<Vec<_>>())
    });
    stage.rpc("bot", "mark_read", &json!({"ids": ids}));
    let count = |call: &str| {
        let calls = std::fs::read_to_string(&dir).unwrap();
        calls.lines().filter(|line| *line == call).count()
    };
    until_so("the last try", || count("mark-read 2") == 5);
    let seen = count("check bot");
    until_so("more looks", || count("check bot") > seen + 3);
    assert_eq!((count("mark-read 1"), count("mark-read 2")), (5, 5));
}

#[test]
fn a_killed_session_leaves_no_call() {
    let stage = stage();
    let provider = Provider::behind(&stage, "");
    provider.delay(100_000);
    stage.agent("bot", "");
    until_so("a call", || !provider.calls().is_empty());
    kill(stage.pid("bot"), Signal::KILL);
    stage.until_nothing_runs();
}

#[test]
fn a_nudge_or_a_message_triggers_a_check() {
    let stage = stage();
    // Not by the clock, in the time that a test has.
    let provider = Provider::behind(&stage, "mail.tick = '1h'");
    let agent = stage.agent("bot", "");
    stage.until_activity("bot", "idle");
    let seen = provider.count("check bot");
    stage.run("nudge bot 'look at your mail'").ok();
    agent.until_heard("look at your mail");
    until_so("a look", || provider.count("check bot") > seen);
    stage.run("send bot --from alice 'here it is'").ok();
    agent.until_heard("here it is");
}

#[test]
fn a_slow_script_delays_nobody() {
    let stage = stage();
    let provider = Provider::behind(&stage, "mail.tick = '50ms'");
    provider.delay(30_000);
    let agent = stage.agent("bot", "");
    until_so("a call", || provider.count("ensure-running ") == 1);
    stage.until_activity("bot", "idle");
    stage.run("nudge bot 'still there?'").ok();
    agent.until_heard("still there?");
    // Mail that arrives by other ways is delivered meanwhile.
    stage.rpc(
        "bot",
        "send",
        &json!({"from": "alice", "body": "by the socket"}),
    );
    agent.until_heard("by the socket");
    let done = stage.run_as("bot", "check --inject");
    assert_eq!((done.code, done.err().as_str()), (0, ""));
    // All that was while one call went on.
    assert_eq!(provider.calls(), ["ensure-running "]);
    stage.run("stop bot").ok();
    stage.until_nothing_runs();
    assert_eq!(provider.calls(), ["ensure-running "]);
}

#[test]
fn a_hook_waits_briefly_for_the_script() {
    let stage = stage();
    let provider = Provider::behind(&stage, "");
    stage
        .run("send bot --from alice --subject login 'fix it'")
        .ok();
    let shown = stage.run_as("bot", "check --inject").ok();
    assert!(shown.contains("from alice [login]: fix it"), "{shown}");
    // Once, as always.
    assert_eq!(stage.run_as("bot", "check --inject").ok(), "");
    stage.run("send bot --from alice 'and this'").ok();
    provider.delay(30_000);
    let hook = Instant::now();
    let done = stage.run_as("bot", "check --inject");
    assert_eq!((done.code, done.out().as_str()), (0, ""));
    assert!(done.err().contains("'check' timed out"), "{}", done.err());
    assert!(
        hook.elapsed() < Duration::from_secs(20),
        "{:?}",
        hook.elapsed()
    );
}

#[test]
fn a_hook_calls_ensure_running() {
    let stage = stage();
    let server = stage.dir().join("server");
    let one =
        r#"[{"id":"1","from":"a","to":"bot","body":"hello","created_at":"2026-11-15T12:00:00Z"}]"#;
    let text = format!(
        "#!/bin/sh\ncase $1 in\nensure-running) touch '{0}'; exec sleep $(cat '{0}.slow');;\n\
         check) [ -e '{0}' ] && echo '{one}';;\nesac\n",
        server.display()
    );
    script(stage.dir(), "needs", &text);
    keep_by(&stage, "../needs", "");
    // One that takes too long over it leaves time for the mail.
    std::fs::write(stage.dir().join("server.slow"), "1000").unwrap();
    let shown = stage.run_as("bot", "check --inject").ok();
    assert!(shown.contains("hello"), "{shown}");
}

#[test]
fn an_invalid_message_delays_no_other() {
    let stage = stage();
    let good = r#"{"id":"2","from":"The Boss","to":"bot","body":"a good one","created_at":"2026-11-15T12:00:00Z"}"#;
    let listed = format!(
        "[{{\"id\":7}},{good},{}]",
        good.replace("\"2\"", "\"a\\tb\"")
    );
    let text = format!("#!/bin/sh\n[ $1 = check ] || exit 2\nprintf '%s' '{listed}'\n");
    script(stage.dir(), "mixed", &text);
    keep_by(&stage, "../mixed", "mail.tick = '50ms'");
    let agent = stage.agent("bot", "");
    agent.until_heard("[ph message from: the-boss id:");
    agent.until_heard("a good one");
    let log = stage.home().join("sessions/bot/log");
    until_so("word of the others", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("lists an invalid message")
    });
    assert_eq!(facts(&stage, "message").len(), 1);
}

#[test]
fn why_asks_the_session() {
    let stage = stage();
    let one = r#"{"id":"1","from":"a","to":"bot","body":"b","created_at":"2026-11-15T12:00:00Z"}"#;
    let text = format!(
        "#!/bin/sh\ncase $1 in\nget) echo '{one}';;\n\
            check) echo 'the door is shut' >&2; exit 1;;\nesac\n"
    );
    script(stage.dir(), "half", &text);
    keep_by(&stage, "../half", "mail.tick = '50ms'");
    assert_eq!(
        stage.why("1")["release"],
        "its session starts, or the agent reads it"
    );
    stage.agent("bot", "");
    until_so("word of it", || {
        !stage.status("bot")["mail_trouble"].is_null()
    });
    let why = stage.why("1");
    let reason = why["reason"].as_str().unwrap();
    assert!(reason.contains("the door is shut"), "{why}");
    let release = why["release"].as_str().unwrap();
    assert!(release.contains("it is asked again"), "{why}");
    assert!(stage.run("why 1").ok().contains("the door is shut"));
}

#[test]
fn a_failing_script_delays_only_its_mail() {
    let stage = stage();
    let provider = Provider::behind(&stage, "mail.tick = '50ms'");
    provider.is_broken(Some("the server is gone"));
    let agent = stage.agent("bot", "");
    stage.rpc(
        "bot",
        "send",
        &json!({"from": "alice", "body": "by the socket"}),
    );
    agent.until_heard("by the socket");
    let log = stage.home().join("sessions/bot/log");
    until_so("word of it", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("failed at 'check' (exit 1); standard error: the server is gone")
    });
    // The status names the error.
    let trouble = stage.status("bot")["mail_trouble"].clone();
    let what = trouble["what"].as_str().unwrap_or_default();
    assert!(what.contains("the server is gone"), "{trouble}");
    let status = stage.run("status bot").ok();
    assert!(status.contains("the server is gone"), "{status}");
    let doctor = stage.run("doctor").out();
    assert!(doctor.contains("bot gets no mail"), "{doctor}");
    provider.is_broken(None);
    stage.run("send bot --from alice 'by the script'").ok();
    agent.until_heard("by the script");
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("the server is gone").count(), 1, "{log}");
}

#[test]
fn a_check_that_leaves_processes_fails() {
    let stage = stage();
    let [leaves, calls] = ["leaves", "calls"].map(|name| stage.dir().join(name));
    std::fs::write(&leaves, "").unwrap();
    let one =
        r#"[{"id":"1","from":"a","to":"bot","body":"hello","created_at":"2026-11-15T12:00:00Z"}]"#;
    let text = format!(
        "#!/bin/sh\n[ $1 = check ] || exit 2\nif [ -e '{}' ]; then sleep 1000 & fi\n\
         echo '{one}'\necho $1 >> '{}'\n",
        leaves.display(),
        calls.display(),
    );
    script(stage.dir(), "parent", &text);
    keep_by(&stage, "../parent", "mail.tick = '50ms'");
    let agent = stage.agent("bot", "");
    let trouble = until("word of it", || {
        let trouble = stage.status("bot")["mail_trouble"]["what"].clone();
        trouble.as_str().map(str::to_owned)
    });
    let says = "(exit 0) left processes running (sleep (pid ";
    assert!(trouble.contains(says), "{trouble}");
    let looks = || std::fs::read_to_string(&calls).map_or(0, |calls| calls.lines().count());
    let seen = looks();
    until_so("more looks", || looks() > seen + 1);
    assert_eq!(facts(&stage, "message").len(), 0);
    // Nothing is lost by it, and nothing comes twice.
    std::fs::remove_file(&leaves).unwrap();
    agent.until_heard("hello");
    let seen = looks();
    until_so("more looks", || looks() > seen + 3);
    assert_eq!(facts(&stage, "message").len(), 1);
    assert_eq!(agent.heard_text().matches("hello").count(), 1);
    assert!(stage.status("bot")["mail_trouble"].is_null());
}
