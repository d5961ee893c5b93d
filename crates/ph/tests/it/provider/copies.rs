//! Copies of a script's mail: listed while they wait, and found without the script.

use super::{keep_by, script};
use crate::common::Ph;
use std::path::PathBuf;

/// A script that lists the messages in a file, one per line. Fails while the file does not exist.
struct Listed(PathBuf);

impl Listed {
    fn behind(ph: &Ph) -> Self {
        let file = ph.dir().join("listed");
        let text = format!(
            "#!/bin/sh\n[ -e '{file}' ] || {{ echo 'the door is shut' >&2; exit 1; }}\n\
             case $1 in\ncheck|inbox|all) [ ! -s '{file}' ] || echo \"[$(cat '{file}')]\";;\n\
             count) echo '{{\"total\":0,\"unread\":0}}';;\n\
             get) echo gc-mail-error:not-found >&2; exit 1;;\nesac\n",
            file = file.display()
        );
        script(ph.dir(), "lists", &text);
        keep_by(ph, "../lists", "");
        std::fs::write(&file, "").expect("a file beside the home");
        Self(file)
    }

    fn lists(&self, text: &str) {
        std::fs::write(&self.0, text).expect("a file beside the home");
    }
}

fn one(id: &str, second: u32, body: &str) -> String {
    format!(
        r#"{{"id":"{id}","from":"alice","to":"bob","body":"{body}","created_at":"2026-11-15T12:00:{second:02}Z"}}"#
    )
}

fn bodies(ph: &Ph, line: &str) -> Vec<String> {
    let listed = ph.run(line).json();
    let listed = listed.as_array().expect("a list").iter();
    let bodies = listed.map(|message| message["body"].as_str().expect("a text").to_owned());
    bodies.collect()
}

#[test]
fn a_waiting_copy_that_is_not_listed_is_shown() {
    let ph = Ph::new();
    let there = Listed::behind(&ph);
    there.lists(&one("1", 1, "the first"));
    ph.run("inbox bob --prompt").ok();
    // A message that both the script and the journal have is listed once.
    assert_eq!(bodies(&ph, "inbox bob --json"), ["the first"]);
    assert_eq!(ph.run("check bob").ok(), "1 unread message(s) for bob\n");
    there.lists(&one("2", 2, "the second"));
    let both = ["the second", "the first"];
    assert_eq!(bodies(&ph, "inbox bob --json"), both);
    assert_eq!(bodies(&ph, "inbox bob --all --json"), both);
    assert_eq!(ph.run("check bob").ok(), "2 unread message(s) for bob\n");
    there.lists("");
    assert_eq!(ph.run("count bob").ok(), "1 in total, 1 unread\n");
    assert!(ph.run("inbox bob --prompt").ok().contains("the first"));
    // Once the agent has a message, only the script lists it.
    let shown = ph.run_as("bob", "check --inject").ok();
    assert!(shown.contains("the first"), "{shown}");
    assert_eq!(ph.run("inbox bob").ok(), "no unread mail for bob\n");
    assert_eq!(ph.run("count bob").ok(), "0 in total, 0 unread\n");
}

#[test]
fn why_works_without_the_script() {
    let ph = Ph::new();
    let there = Listed::behind(&ph);
    there.lists(&one("x-1", 1, "the first"));
    ph.run("inbox bob --prompt").ok();
    std::fs::remove_file(&there.0).unwrap();
    ph.run("show x-1").fails(5, "the door is shut");
    let why = ph.run("why x-1 --json").json();
    assert_eq!(why["held"], true, "{why}");
    ph.run("why x-2").fails(5, "the door is shut");
    // Nor does it need the script to have the message.
    there.lists("");
    assert_eq!(ph.run("why x-1").code, 0);
    ph.run("why x-2").fails(3, "did not find the message");
}

#[test]
fn another_time_is_the_same_message_with_a_note() {
    let ph = Ph::new();
    let there = Listed::behind(&ph);
    for second in 1..4 {
        there.lists(&one("1", second, "the first"));
        let done = ph.run("inbox bob --prompt");
        assert!(done.out().contains("the first"), "{}", done.out());
        let says = "message '1' changed its time; treated as the same message";
        assert_eq!(done.err().contains(says), second > 1, "{}", done.err());
    }
    assert_eq!(ph.facts().matches("\"kind\":\"message\"").count(), 1);
}

#[test]
fn an_invalid_message_hides_no_other() {
    let ph = Ph::new();
    let there = Listed::behind(&ph);
    let bad = one("bad-1", 1, "x").replace("2026-11-15T", "yesterday ");
    let [good, strange] = [
        one("2", 2, "good"),
        one("3", 3, "x").replace("bob", "carol"),
    ];
    there.lists(&format!("{bad},{good},{strange}"));
    for line in ["inbox bob", "inbox bob --all", "inbox bob --prompt"] {
        let done = ph.run(line);
        assert_eq!(done.code, 0, "{line}: {}", done.err());
        assert!(done.out().contains("good"), "{line}: {}", done.out());
        for says in ["message 'bad-1': ", "'3' is a message to 'carol'"] {
            assert!(done.err().contains(says), "{line}: {}", done.err());
        }
    }
    assert_eq!(ph.run("check bob").out(), "1 unread message(s) for bob\n");
}
