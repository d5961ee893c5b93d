//! Typing errors and unusual situations: the errors are correct and suggest what to do.

use crate::common::Ph;

#[test]
fn a_thread_without_its_first_message_is_shown() {
    let ph = Ph::new();
    let root = ph.send("bob question");
    let reply = ph.run(&format!("reply {root} answer --from bob")).ok();
    let reply = reply.trim();
    ph.run(&format!("delete {root}")).ok();
    let ids = |id: &str| {
        let shown = ph.run(&format!("thread {id} --json")).json();
        let ids = shown.as_array().unwrap().iter();
        ids.map(|m| m["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for id in [&root, &root[..8], reply] {
        assert_eq!(ids(id), [reply], "{id}");
    }
    // A thread without messages does not exist.
    ph.run(&format!("delete {reply}")).ok();
    for id in [&root, reply] {
        ph.run(&format!("thread {id}")).fails(3, "no message");
    }
    // Neither does a thread whose only message is deleted.
    let alone = ph.send("bob alone");
    ph.run(&format!("delete {alone}")).ok();
    ph.run(&format!("thread {alone}")).fails(3, "no message");
}

#[test]
fn a_fact_number_beyond_the_last_is_refused() {
    let ph = Ph::new();
    let hint = "'ph log' prints all facts with their numbers";
    for line in ["log --after 9", "log --follow --after 9"] {
        let done = ph.run(line);
        done.fails(2, "there is no fact 9: the journal has no facts yet");
        assert!(done.err().contains(hint), "{}", done.err());
    }
    assert!(!ph.home().exists());
    ph.send("bob hi");
    for line in [
        "log --after 2",
        "log --follow --after 2",
        "log -f --after 9999 --json",
    ] {
        ph.run(line).fails(2, "the last one is 1");
    }
    assert_eq!(ph.run("log --after 1").ok(), "");
}

#[test]
fn hints_fit_their_error() {
    let ph = Ph::new();
    let dir = ph.dir().to_str().unwrap().to_owned();
    let check = |args: &[&str], code: i32, says: &str, hint: &str| {
        let done = ph.call(args).run();
        done.fails(code, says);
        let hinted = done.err().contains(&format!("\nhint: {hint}"));
        assert!(hinted, "{args:?}: {}", done.err());
        assert!(!done.err().contains("tip:"), "{args:?}: {}", done.err());
    };
    // A text is distinguished from a duration.
    check(
        &["send", "bob", "-5 degrees"],
        2,
        "unexpected argument '-5 degrees'",
        "text that begins with '-' goes after '--'",
    );
    check(
        &["run", "--detach", "--name", "bot", "--", &dir],
        2,
        "is a directory, not a command",
        "name a program in it",
    );
    check(
        &["stop", "human"],
        3,
        "human has never run",
        "'human' is the person",
    );
    check(
        &["send", "bob", "hi", "--reply-to", "zzzz"],
        2,
        "an id is made of",
        "'ph inbox' lists ids",
    );
    let would = |args: &[&str]| check(args, 2, "an agent's name", "'a' is a valid name");
    would(&["send", "bob", "hi", "--from", "A"]);
    would(&["run", "--name", "A", "true"]);
    would(&["log", "--agent", "A"]);
    check(
        &["send", "bob", "hi", "--subjct", "x"],
        2,
        "unexpected argument '--subjct'",
        "a similar argument exists: '--subject'",
    );
    // Control characters in an argument do not reach the terminal.
    let done = ph.call(&["send", "bob", "hi", "--from", "A\x1b[2J"]).run();
    assert!(!done.err().contains('\x1b'), "{:?}", done.err());
}

#[test]
fn a_negative_duration_is_refused() {
    let ph = Ph::new();
    let check = |args: &[&str], flag: &str| {
        let says = format!("invalid value '-5s' for '{flag}': a duration must be more than zero");
        ph.call(&[args, &["-5s"]].concat()).run().fails(2, &says);
    };
    check(&["send", "bob", "hi", "--ttl"], "--ttl <D>");
    check(&["send", "bob", "hi", "--in"], "--in <D>");
    check(&["send", "bob", "hi", "--deadline"], "--deadline <D>");
    check(&["replay", "bob", "--max-pause"], "--max-pause <D>");
    let limit = ["harness", "test", "generic", "--for"];
    check(&limit, "--for <DURATION>");
}

#[test]
fn a_misspelt_variable_is_noted() {
    let ph = Ph::new();
    let send = |name: &str| ph.call(&["send", "bob", "hi"]).env(name, "idle").run();
    let slip = send("PH_SEND_PRIORTY");
    assert_eq!(slip.code, 0);
    assert_eq!(
        slip.err(),
        "note: the variable PH_SEND_PRIORTY is unknown; did you mean PH_SEND_PRIORITY?\n"
    );
    for other in [
        "PH_OTHER_PROGRAM_S",
        "PHP_SEND_PRIORITY",
        "PH_SEND_PRIORITY",
    ] {
        let done = send(other);
        done.ok();
        assert_eq!(done.err(), "", "{other}");
    }
    // A hook prints no such note.
    let hook = ph.call(&["check", "--inject"]).agent("bob");
    assert_eq!(hook.env("PH_SEND_PRIORTY", "x").run().err(), "");
}

/// A home on a read-only file system, in its own mount namespace.
#[test]
#[cfg(target_os = "linux")]
fn a_home_on_a_read_only_mount_is_reported() {
    const SCRIPT: &str = r#"
        mount -t tmpfs -o size=1m none "$DISK" || exit 9
        export PH_HOME="$DISK/home"
        "$PH" send bob first > /dev/null || exit 10
        mount -o remount,ro "$DISK" || exit 9
        "$PH" send bob second 2> errors-send
        echo "code $?"
        "$PH" run --detach --name bot -- true 2> errors-run
        echo "code $?"
    "#;
    let ph = Ph::new();
    let Some(output) = crate::common::with_own_disk(&ph, SCRIPT) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "code 5\ncode 5\n");
    let read = |name: &str| std::fs::read_to_string(ph.dir().join(name)).unwrap();
    let (send, run) = (read("errors-send"), read("errors-run"));
    assert!(!send.contains("journal in"), "{send}");
    assert!(
        send.contains("read-only") && send.contains("hint: "),
        "{send}"
    );
    assert!(
        run.contains(
            "hint: check the permissions of the home, and the mount options of its file system"
        ),
        "{run}"
    );
}
