//! Mail to a loop: during an iteration, between two, urgent, and after the end.

use super::stage::Stage;
use crate::common::wait_for;
use serde_json::json;

#[test]
fn an_urgent_message_ends_the_iteration_and_starts_the_next() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let id = looped.ph().send("bot --priority interrupt 'Stop that'");
    let second = looped.prompt(2);
    assert_eq!(second.matches("Stop that").count(), 1, "{second}");
    assert_eq!(looped.outcomes(), ["1 \"interrupted\""]);
    // The message stays unread, and interrupts no further iteration.
    let receipt = || {
        let shown = looped.ph().run(&format!("show --json {id}")).json();
        shown["receipt"].as_str().expect("a word").to_owned()
    };
    wait_for("the offer", || (receipt() == "offered").then_some(()));
    looped.go("true");
    looped.prompt(3);
    assert_eq!(looped.outcomes().len(), 2);
}

#[test]
fn in_interactive_mode_an_urgent_message_waits() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("interactive bot on").ok();
    looped.go("while read -r key < /dev/tty; do [ \"$key\" = end ] && exit; echo \"<$key>\"; done");
    let id = looped.ph().send("bot --priority interrupt 'Stop that'");
    // The replies pass through the runner, which has seen the message long before the last one.
    for key in 0..40 {
        let keys = json!({"data": format!("k{key}\n")});
        let answer = looped.session.ask("write_pty", keys);
        assert_eq!(answer["status"], "forwarded", "{answer}");
        looped.session.wait_for_text(&format!("<k{key}>"));
    }
    assert!(looped.outcomes().is_empty(), "{:?}", looped.outcomes());
    let shown = looped.ph().run(&format!("show --json {id}")).json();
    assert_eq!(shown["receipt"], "stored", "{shown}");
    looped.ph().run("interactive bot off").ok();
    let second = looped.prompt(2);
    assert!(second.contains("Stop that"), "{second}");
    assert_eq!(looped.outcomes(), ["1 \"interrupted\""]);
}

#[test]
fn mail_between_two_iterations_is_in_the_next_prompt() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("checkpoint bot").ok();
    looped.go("true");
    looped.wait_for_status("checkpointed");
    let id = looped.ph().send("bot 'while you pause'");
    let why = looped.ph().run(&format!("why {id} --json")).json();
    assert_eq!(why["rule"], "loop", "{why}");
    let says = why.to_string();
    assert!(says.contains("paused at a checkpoint"), "{why}");
    assert!(says.contains("'ph resume bot'"), "{why}");
    // An urgent message does not end a pause either.
    looped.ph().send("bot --priority interrupt 'and this'");
    looped.ph().run("resume bot").ok();
    let second = looped.prompt(2);
    assert!(
        second.contains("while you pause") && second.contains("and this"),
        "{second}"
    );
}

#[test]
fn mail_after_the_end_waits_for_the_next_loop() {
    let stage = Stage::new().flags(&["--iterations", "1"]);
    let looped = stage.start();
    looped.prompt(1);
    looped.go("true");
    looped.ending();
    let id = looped.ph().send("bot 'are you there'");
    let shown = looped.ph().run(&format!("show --json {id}")).json();
    assert_eq!(shown["receipt"], "stored", "{shown}");
    let again = looped
        .ph()
        .call(&["restart", "bot", "--detach", "--json"])
        .run();
    let ends = crate::common::session::KillOnDrop::processes_of(&again);
    let second = looped.prompt(2);
    assert!(second.contains("are you there"), "{second}");
    looped.go("true");
    wait_for("the end", || {
        (looped.facts("loop_ended").len() == 2).then_some(())
    });
    wait_for("the session's end", || {
        let session = looped.ph().run("status bot --json").json();
        (session["activity"] == "exited").then_some(())
    });
    ends.wait_gone();
}

#[test]
fn hooks_of_a_loop_s_agent_inject_no_mail() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let id = looped.ph().send("bot 'secret'");
    looped.go(r#""$PH" check --inject > "$DIR/told"; echo '{"hook_event_name":"UserPromptSubmit","prompt":"x"}' | "$PH" hook claude >> "$DIR/told""#);
    let second = looped.prompt(2);
    assert!(second.contains("secret"), "{second}");
    let told = std::fs::read_to_string(looped.ph().dir().join("told"));
    assert_eq!(told.expect("they were called"), "");
    let shown = looped.ph().run(&format!("show --json {id}")).json();
    let routes: Vec<_> = shown["receipts"]
        .as_array()
        .expect("receipts")
        .iter()
        .collect();
    assert!(
        routes.iter().all(|step| step["state"] != "shown"),
        "{shown}"
    );
}

#[test]
fn a_long_message_names_the_file_with_the_rest() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let long = "x".repeat(40_000);
    looped.ph().file("long.txt", &long);
    let path = crate::common::path_text(&looped.ph().dir().join("long.txt"));
    let sent = looped.ph().run(&format!("send bot --file {path}"));
    assert_eq!(sent.code, 0, "{}", sent.err());
    looped.go("true");
    let second = looped.prompt(2);
    assert!(
        second.contains("all 40000 bytes are in "),
        "{}",
        &second[..200]
    );
    assert!(second.len() < 30_000);
}

#[test]
fn mail_is_shortened_to_fit_an_argument() {
    const TAKES: &str = r#"printf %s "$1" > "$DIR/coming"; mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"; IFS= read -r order < "$DIR/orders"; eval "$order""#;
    let check = |extra: usize, count: usize, length: usize, all: bool| {
        let stage = Stage::new().command(&["/bin/sh", "-c", TAKES, "sh", "{prompt}"]);
        let looped = stage.flags(&["--extra", &"z".repeat(extra)]).start();
        looped.prompt(1);
        looped.ph().file("text", "y".repeat(length));
        let path = crate::common::path_text(&looped.ph().dir().join("text"));
        let ids: Vec<_> = (0..count)
            .map(|_| looped.ph().send(&format!("bot --file {path}")))
            .collect();
        looped.go("true");
        let second = looped.prompt(2);
        assert_eq!(looped.outcomes(), ["1 \"ended\""]);
        let told = ids.iter().filter(|id| second.contains(&id[..8])).count();
        assert!(told > 0 && (told == count) == all, "{told} of {count}");
        let more = format!("({} more unread messages are omitted)", count - told);
        assert_eq!(second.contains(&more), !all);
        assert!(second.contains(&format!("all {length} bytes are in ")));
    };
    check(1, 12, 16_000, true);
    // Other parts use nearly the whole prompt.
    check(90_000, 150, 300, false);
}

#[test]
fn urgent_messages_come_first_and_are_marked() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("checkpoint bot").ok();
    looped.go("true");
    looped.wait_for_status("checkpointed");
    for words in ["one", "two", "--priority interrupt three"] {
        looped.ph().send(&format!("bot {words}"));
    }
    looped.ph().run("resume bot").ok();
    let second = looped.prompt(2);
    let at = |text: &str| {
        second
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {second}"))
    };
    assert!(at(": URGENT: three\n") < at(": one\n"), "{second}");
    assert!(at(": one\n") < at(": two\n"), "{second}");
    assert_eq!(second.matches("URGENT").count(), 1, "{second}");
}

#[test]
fn injected_text_survives_an_interrupted_iteration() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("inject bot 'Mind the gap'").ok();
    looped.go("true");
    assert!(looped.prompt(2).contains("Mind the gap"));
    looped.ph().send("bot --priority interrupt 'Stop that'");
    assert!(looped.prompt(3).contains("Mind the gap"));
    looped.go("true");
    assert!(!looped.prompt(4).contains("Mind the gap"));
}

#[test]
fn injected_text_survives_an_unread_prompt() {
    // More than the capacity of a pipe.
    let extra = "x".repeat(100_000);
    let stage = Stage::new().flags(&["--extra", &extra]);
    let script = r#"
        if [ "$PH_ITERATION" = 2 ]; then IFS= read -r order < "$DIR/orders"; exit 0; fi
        cat > "$DIR/coming"; mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"
        IFS= read -r order < "$DIR/orders"; eval "$order""#;
    let looped = stage.command(&["/bin/sh", "-c", script]).start();
    looped.prompt(1);
    looped.ph().run("inject bot 'Mind the gap'").ok();
    for ended in [1, 2] {
        looped.go("true");
        looped.wait_for_outcomes(ended);
    }
    assert!(looped.prompt(3).contains("Mind the gap"));
    looped.go("true");
    assert!(!looped.prompt(4).contains("Mind the gap"));
    let ends = looped.facts("iteration_ended");
    let unread: Vec<_> = ends.iter().map(|end| &end["data"]["is_unread"]).collect();
    assert_eq!(*unread[1], true, "{ends:?}");
    assert!(unread[0].is_null() && unread[2].is_null(), "{ends:?}");
}

#[test]
fn why_names_interactive_mode_and_the_wait_after_a_failure() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("interactive bot on").ok();
    let why = |id: &str, part: &str| {
        wait_for(part, || {
            let why = looped.ph().run(&format!("why {id}")).ok();
            why.contains(part).then_some(why)
        })
    };
    let id = looped.ph().send("bot hello");
    why(&id, "'ph interactive bot off'");
    looped.ph().run("interactive bot off").ok();
    // The wait grows with each failure; the third is eight seconds.
    for failures in 1..=3 {
        looped.go("exit 3");
        looped.wait_for_outcomes(failures);
    }
    let id = looped.ph().send("bot 'and this'");
    let told = why(&id, "the loop waits until ");
    assert!(told.contains("iteration 1 failed: exit 3"), "{told}");
}

#[test]
fn why_reports_the_last_iteration() {
    let looped = Stage::new().flags(&["--iterations", "2"]).start();
    looped.prompt(1);
    let why = |id: &str, parts: [&str; 2]| {
        let told = looped.ph().run(&format!("why {id}")).ok();
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    };
    let id = looped.ph().send("bot hello");
    looped.ph().run("checkpoint bot").ok();
    why(&id, ["after this iteration", "'ph resume bot'"]);
    looped.ph().run("resume bot").ok();
    looped.go("true");
    looped.prompt(2);
    let id = looped.ph().send("bot 'too late'");
    why(
        &id,
        ["the last one that the loop is allowed", "'ph restart bot'"],
    );
    looped.session.ask("stop", serde_json::json!({}));
    why(&id, ["asked to stop", "'ph restart bot'"]);
    looped.go("true");
    assert_eq!(looped.ending(), "\"stopped\"");
}
