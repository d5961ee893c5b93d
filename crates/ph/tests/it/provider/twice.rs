//! A script's mail is neither lost nor duplicated: reused ids, two scripts with the same ids, and a
//! home that would call itself.

use super::{keep_by, ourselves, script, stage};
use crate::common::stage::{Stage, until_so};
use std::path::PathBuf;

/// A script that lists the messages in a file, and records its calls.
struct Listed {
    file: PathBuf,
    calls: PathBuf,
}

impl Listed {
    fn behind(stage: &Stage, name: &str) -> Self {
        let listed = Self {
            file: stage.dir().join(format!("{name}.listed")),
            calls: stage.dir().join(format!("{name}.calls")),
        };
        listed.lists("");
        let text = format!(
            "#!/bin/sh\necho \"$1 $2\" >> '{}'\ncase $1 in check|inbox) cat '{}';; esac\n",
            listed.calls.display(),
            listed.file.display(),
        );
        script(stage.dir(), name, &text);
        keep_by(stage, &format!("../{name}"), "mail.tick = '50ms'");
        listed
    }

    fn lists(&self, text: &str) {
        let draft = self.file.with_extension("draft");
        std::fs::write(&draft, text).expect("a file beside the home");
        std::fs::rename(draft, &self.file).expect("a file beside the home");
    }

    fn count(&self, call: &str) -> usize {
        let calls = std::fs::read_to_string(&self.calls).unwrap_or_default();
        calls.lines().filter(|line| *line == call).count()
    }

    fn until_looked_at(&self) {
        let seen = self.count("check bot");
        until_so("more looks", || self.count("check bot") > seen + 3);
    }
}

fn one(id: &str, second: u32, body: &str) -> String {
    format!(
        r#"[{{"id":"{id}","from":"alice","to":"bot","body":"{body}","created_at":"2026-11-15T12:00:{second:02}Z"}}]"#
    )
}

fn message_count(stage: &Stage) -> usize {
    let log = stage.run("log --json").out();
    log.matches(r#""kind":"message""#).count()
}

#[test]
fn a_reused_id_is_another_message() {
    let stage = stage();
    let there = Listed::behind(&stage, "forgetful");
    let agent = stage.agent("bot", "");
    there.lists(&one("1", 1, "the first"));
    agent.until_heard("the first");
    // The service restarts, and counts from one again.
    there.lists(&one("1", 2, "the second"));
    agent.until_heard("the second");
    // A message with another time is still that message.
    there.lists(&one("1", 3, "the second"));
    there.until_looked_at();
    assert_eq!(message_count(&stage), 2);
    assert_eq!(there.count("mark-read 1"), 0);
    let log = std::fs::read_to_string(stage.home().join("sessions/bot/log")).unwrap();
    assert!(
        log.contains("its id was used by an earlier message"),
        "{log}"
    );
}

#[test]
fn a_read_mark_does_not_cover_a_reused_id() {
    let stage = stage();
    let there = Listed::behind(&stage, "forgetful");
    let agent = stage.agent("bot", "");
    there.lists(&one("1", 1, "the first"));
    agent.until_heard("the first");
    let inbox = stage.rpc("bot", "inbox", &serde_json::json!({}));
    let listed = inbox.get("messages").unwrap_or(&inbox);
    let id = listed[0]["id"].as_str().expect("a message");
    stage.rpc("bot", "mark_read", &serde_json::json!({"ids": [id]}));
    until_so("word of it", || there.count("mark-read 1") == 1);
    there.lists(&one("1", 2, "the second"));
    agent.until_heard("the second");
    there.until_looked_at();
    assert_eq!(there.count("mark-read 1"), 1, "the second is unread");
}

#[test]
fn our_id_never_names_another_message() {
    let stage = stage();
    let [file, calls] = ["one", "calls"].map(|name| stage.dir().join(name));
    let text = format!(
        "#!/bin/sh\necho \"$1 $2\" >> '{}'\ncase $1 in\n\
         inbox) printf '[%s]' \"$(cat '{file}')\";;\n\
         get|read|reply) cat '{file}' 2>/dev/null || {{ echo gc-mail-error:not-found >&2; exit 1; }};;\n\
         thread) exit 1;;\nesac\n",
        calls.display(),
        file = file.display(),
    );
    script(stage.dir(), "forgetful", &text);
    keep_by(&stage, "../forgetful", "");
    let kept = |second: u32, body: &str| {
        let listed = one("1", second, body);
        std::fs::write(&file, listed.trim_matches(['[', ']'])).unwrap();
        let block = stage.run("inbox bot --prompt").out();
        block.split(['[', ']']).nth(1).expect("an id").to_owned()
    };
    let first = kept(1, "the first");
    let second = kept(2, "the second");
    assert_ne!(first, second);
    let count = |call: &str| {
        let calls = std::fs::read_to_string(&calls).unwrap_or_default();
        calls.lines().filter(|line| *line == call).count()
    };
    // The script's id now names the second message, so only our copy of the first is left.
    assert_eq!(stage.show(&first)["body"], "the first");
    let thread = stage.run(&format!("thread {first} --json")).json();
    assert_eq!(thread[0]["body"], "the first");
    let reply = stage.run_as("bot", &format!("reply {first} done"));
    reply.fails(4, "no longer has the message");
    let read = stage.run_as("bot", &format!("read {first} --body"));
    assert_eq!(read.ok(), "the first");
    stage.run(&format!("archive {first}")).ok();
    for call in ["read 1", "archive 1", "reply 1"] {
        assert_eq!(count(call), 0, "{call}");
    }
    assert_eq!(stage.show(&second)["read"], false);
    // Our copy is also used if the script no longer has the message.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(stage.show(&second)["body"], "the second");
    stage.run(&format!("delete {second}")).ok();
    stage.run("show 1").fails(3, "did not find the message");
}

#[test]
fn invented_times_do_not_duplicate_mail() {
    let stage = stage();
    let calls = stage.dir().join("calls");
    // Several calls get the same time, because it has whole seconds.
    let text = format!(
        "#!/bin/sh\n[ $1 = check ] || exit 0\necho >> '{0}'\nn=$(($(wc -l < '{0}') / 3 % 60))\n\
         printf '[{{\"id\":\"1\",\"from\":\"a\",\"to\":\"bot\",\"body\":\"hi\",\
         \"created_at\":\"2026-11-15T12:00:%02dZ\"}}]' $n\n",
        calls.display()
    );
    script(stage.dir(), "moody", &text);
    keep_by(&stage, "../moody", "mail.tick = '50ms'");
    stage.agent("bot", "");
    until_so("many looks", || {
        std::fs::read(&calls).is_ok_and(|calls| calls.len() > 12)
    });
    assert_eq!(message_count(&stage), 1);
}

#[test]
fn the_same_id_of_two_scripts_is_two_messages() {
    let stage = stage();
    for (name, body) in [("one", "from one"), ("other", "from the other")] {
        let there = Listed::behind(&stage, name);
        there.lists(&one("1", 1, body));
        let agent = stage.agent("bot", "");
        agent.until_heard(body);
        stage.run("stop bot --kill");
    }
    // Equal messages of two scripts are two messages too.
    let third = Listed::behind(&stage, "third");
    third.lists(&one("1", 1, "from one"));
    stage.agent("bot", "");
    until_so("the third", || message_count(&stage) == 3);
}

#[test]
fn a_home_does_not_call_itself() {
    let stage = stage();
    ourselves(stage.dir());
    keep_by(&stage, "../ph-mail-provider", "mail.tick = '50ms'");
    let says = "calls ph for the same home";
    stage.run("send bot 'just once'").fails(5, says);
    stage.run("inbox bot").fails(5, says);
    // Nor through a script that clears the environment.
    let me = stage.dir().join("ph-mail-provider");
    let text = format!(
        "#!/bin/sh\necho \"$1\" >> '{}'\nexec env -i PH_HOME='{}' '{}' \"$@\"\n",
        stage.dir().join("calls").display(),
        stage.home().display(),
        me.display(),
    );
    script(stage.dir(), "round", &text);
    keep_by(&stage, "../round", "mail.tick = '50ms'");
    stage.run("send bot 'just once'").ok();
    stage.agent("bot", "");
    let looks = || {
        let calls = std::fs::read_to_string(stage.dir().join("calls")).unwrap_or_default();
        calls.lines().filter(|line| *line == "check").count()
    };
    until_so("many looks", || looks() > 10);
    assert_eq!(message_count(&stage), 2, "the message, and our copy of it");
}

#[test]
fn a_script_that_calls_verbs_of_ph_ends() {
    let stage = stage();
    let text = format!(
        "#!/bin/sh\nexec '{}' \"$1\" \"$2\" hi\n",
        env!("CARGO_BIN_EXE_ph")
    );
    script(stage.dir(), "circle", &text);
    keep_by(&stage, "../circle", "");
    let says = "calls ph for the same home";
    stage.run("send bot hi").fails(5, says);
}
