//! A message counts as shown only if it was printed for its own agent.

use crate::common::session::{BOT, Session, run};
use crate::common::{Call, Ph, wait_for};
use serde_json::{Value, json};
use std::fs::File;
use std::process::Stdio;

const REPEAT: &str = "(repeat: may have been shown before)";

fn check_of(ph: &Ph, agent: &str) -> Call {
    ph.call(&["check", "--inject"]).agent(agent)
}

/// A hook that a person has installed: only its `--agent` names the agent.
fn installed(ph: &Ph, agent: &str) -> Call {
    let payload = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hi"});
    let call = ph.call(&["hook", "claude", "--agent", agent]);
    call.stdin(payload.to_string()).env("PH_LOG", "1")
}

fn full_device() -> Option<Stdio> {
    match File::options().write(true).open("/dev/full") {
        Ok(file) => Some(file.into()),
        Err(_) => {
            posthaste_lab::skip_or_fail("there is no /dev/full");
            None
        }
    }
}

/// Return the writer of a pipe whose reader is closed.
fn closed_pipe() -> Option<Stdio> {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    Some(writer.into())
}

fn steps(ph: &Ph, id: &str) -> (String, Vec<String>) {
    let shown = ph.run(&format!("show {id} --json")).json();
    let steps = shown["receipts"].as_array().expect("receipts").iter();
    let state = |receipt: &Value| receipt["state"].as_str().expect("a word").to_owned();
    (
        shown["receipt"].as_str().expect("a word").to_owned(),
        steps.map(state).collect(),
    )
}

#[test]
fn mail_that_could_not_be_printed_is_repeated_with_a_mark() {
    type Hook = fn(&Ph, &str) -> Call;
    for hook in [check_of as Hook, installed] {
        for broken in [full_device as fn() -> Option<Stdio>, closed_pipe] {
            let ph = Ph::new();
            let id = ph.send("bob 'fix the login page'");
            let Some(to) = broken() else { return };
            let done = hook(&ph, "bob").stdout(to).run();
            assert_eq!(done.code, 0, "an agent must not fail: {}", done.err());
            assert!(done.err().contains("note: "), "{}", done.err());
            let (receipt, before) = steps(&ph, &id);
            assert_eq!(receipt, "uncertain");
            assert_eq!(before, ["stored", "offering", "uncertain"]);
            let why = ph.run(&format!("why {id} --json")).json();
            assert_eq!(why["rule"], "uncertain");
            let evidence = why["evidence"].as_str().expect("a text");
            assert!(evidence.starts_with("a hook could not print it: "), "{why}");
            let again = hook(&ph, "bob").run().ok();
            assert!(again.contains("fix the login page"), "{again}");
            assert!(again.contains(REPEAT), "{again}");
            assert_eq!(hook(&ph, "bob").run().ok(), "", "and then no more");
            let again = ["offering".into(), "offered".into()];
            assert_eq!(steps(&ph, &id).1, [&before[..], &again].concat());
        }
    }
}

/// The null device replaces a closed standard output. Writing to it succeeds, but nobody sees the
/// mail.
#[test]
fn mail_is_not_offered_if_the_output_is_discarded() {
    for to in [">&-", ">/dev/null"] {
        for command in ["check --inject", "hook claude --agent bob"] {
            let ph = Ph::new();
            let id = ph.send("bob 'fix the login page'");
            let prompt = r#"{"hook_event_name":"UserPromptSubmit","prompt":"hi"}"#;
            let ph_itself = env!("CARGO_BIN_EXE_ph");
            let done = std::process::Command::new("/bin/sh")
                .args([
                    "-c",
                    &format!("echo '{prompt}' | {ph_itself} {command} {to}"),
                ])
                .env_clear()
                .env("PH_HOME", ph.home())
                .env("HOME", ph.dir())
                .env("PH_AGENT", "bob")
                .env("PH_LOG", "1")
                .output()
                .expect("a shell");
            assert!(done.status.success(), "{command} {to}");
            let errors = String::from_utf8_lossy(&done.stderr);
            let why = "standard output is closed or is /dev/null";
            assert!(errors.contains(why), "{command} {to}: {errors}");
            assert_eq!(steps(&ph, &id).1, ["stored"], "{command} {to}");
            let shown = check_of(&ph, "bob").run().ok();
            assert!(shown.contains("fix the login page"), "{shown}");
            assert!(!shown.contains(REPEAT), "{shown}");
        }
    }
}

#[test]
fn a_session_types_what_a_hook_could_not_print() {
    let ph = Ph::new();
    let call = run(&ph, BOT, &[], &["/bin/sh", "-c", "echo ready; exec cat"]);
    let session = Session::begin(ph, call);
    session.wait_for_activity("idle");
    let ph = &session.ph;
    ph.run("pause bot").ok();
    let id = ph.send("bot 'fix the login page'");
    let broken = check_of(ph, BOT).stdout(closed_pipe().expect("a pipe"));
    assert_eq!(broken.run().code, 0);
    assert_eq!(steps(ph, &id).0, "uncertain");
    ph.run("unpause bot").ok();
    wait_for("an offer", || (steps(ph, &id).0 == "offered").then_some(()));
    session.wait_for_text(REPEAT);
}

#[test]
fn only_one_of_several_concurrent_hooks_gets_a_message() {
    let ph = Ph::new();
    let id = ph.send("bob 'fix the login page'");
    let calls: Vec<_> = (0..8).map(|_| check_of(&ph, "bob").spawn()).collect();
    let outputs = calls.into_iter().map(crate::common::Done::of);
    let printed: Vec<_> = outputs.map(|done| done.ok()).collect();
    let given = printed.iter().filter(|text| text.contains(&id[..8]));
    assert_eq!(given.count(), 1, "{printed:?}");
    assert_eq!(steps(&ph, &id).1, ["stored", "offering", "offered"]);
}

#[test]
fn a_persons_check_does_not_count_as_shown_to_the_agent() {
    let ph = Ph::new();
    let id = ph.send("bob 'fix the login page'");
    let before = ph.facts();
    for _ in 0..2 {
        let looked = ph.run("check bob --inject");
        assert_eq!(looked.code, 0);
        assert!(looked.out().contains("fix the login page"));
        assert!(!looked.out().contains(REPEAT));
        let says = "shown to you, not recorded as shown to bob; a hook of bob sets PH_AGENT=bob";
        assert!(looked.err().contains(says), "{}", looked.err());
    }
    assert_eq!(ph.facts(), before);
    // A hook that a person has installed for bob counts as bob's.
    let shown = installed(&ph, "bob").run().ok();
    assert!(shown.contains("fix the login page"), "{shown}");
    assert_eq!(steps(&ph, &id).1, ["stored", "offering", "offered"]);
    assert_eq!(installed(&ph, "bob").run().ok(), "");
    assert_eq!(ph.run("check bob --inject").ok(), "");
}

#[test]
fn the_persons_own_mail_is_shown_once() {
    let ph = Ph::new();
    ph.run_as("bob", "send human 'all done'").ok();
    assert!(ph.run("check --inject").ok().contains("all done"));
    assert_eq!(ph.run("check --inject human").ok(), "");
}
