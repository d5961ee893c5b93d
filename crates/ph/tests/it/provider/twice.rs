//! Nothing lost and nothing doubled where a script keeps the mail: an id that is given twice, two
//! scripts with the same ids, a home that would ask itself.

use super::{keep_by, ourselves, script, stage};
use crate::common::stage::{Stage, until_so};
use std::path::PathBuf;

/// A script that lists what stands in a file, and every call of it.
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
fn an_id_that_is_given_twice_is_two_messages() {
    let stage = stage();
    let there = Listed::behind(&stage, "forgetful");
    let agent = stage.agent("bot", "");
    there.lists(&one("1", 1, "the first"));
    agent.until_heard("the first");
    // Its service was started anew, and counts from one again.
    there.lists(&one("1", 2, "the second"));
    agent.until_heard("the second");
    // The same words at another time are the same message.
    there.lists(&one("1", 3, "the second"));
    there.until_looked_at();
    assert_eq!(message_count(&stage), 2);
    assert_eq!(there.count("mark-read 1"), 0);
    let log = std::fs::read_to_string(stage.home().join("sessions/bot/log")).unwrap();
    assert!(log.contains("another had its id before"), "{log}");
}

#[test]
fn what_was_read_is_not_what_came_after_it() {
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
    assert_eq!(there.count("mark-read 1"), 1, "nobody has read the second");
}

#[test]
fn an_id_of_ours_is_never_taken_for_another_message() {
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
    // The script means the second by that id, so that of the first there is our copy alone.
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
    // So it is where the script has dropped it.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(stage.show(&second)["body"], "the second");
    stage.run(&format!("delete {second}")).ok();
    stage
        .run("show 1")
        .fails(3, "found no such message at 'get'");
}

#[test]
fn a_script_that_makes_up_times_has_its_mail_come_once() {
    let stage = stage();
    let calls = stage.dir().join("calls");
    // Each is told several times, as one is that is made of whole seconds.
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
fn two_scripts_with_one_id_are_two_messages() {
    let stage = stage();
    for (name, body) in [("one", "from one"), ("other", "from the other")] {
        let there = Listed::behind(&stage, name);
        there.lists(&one("1", 1, body));
        let agent = stage.agent("bot", "");
        agent.until_heard(body);
        stage.run("stop bot --kill");
    }
    // Even where they say the same.
    let third = Listed::behind(&stage, "third");
    third.lists(&one("1", 1, "from one"));
    stage.agent("bot", "");
    until_so("the third", || message_count(&stage) == 3);
}

#[test]
fn a_home_does_not_ask_itself() {
    let stage = stage();
    ourselves(stage.dir());
    keep_by(&stage, "../ph-mail-provider", "mail.tick = '50ms'");
    let says = "is kept by a script that asks that very home";
    stage.run("send bot 'just once'").fails(5, says);
    stage.run("inbox bot").fails(5, says);
    // Nor by a way round, with nothing of ours in the environment.
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
fn a_script_that_calls_our_verbs_comes_to_an_end() {
    let stage = stage();
    let text = format!(
        "#!/bin/sh\nexec '{}' \"$1\" \"$2\" hi\n",
        env!("CARGO_BIN_EXE_ph")
    );
    script(stage.dir(), "circle", &text);
    keep_by(&stage, "../circle", "");
    let says = "is kept by a script that asks that very home";
    stage.run("send bot hi").fails(5, says);
}
