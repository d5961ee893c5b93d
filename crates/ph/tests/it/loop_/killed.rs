//! Killed loops: what is left, and how they continue.

use super::stage::Stage;
use crate::common::session::{Session, is_alive};
use crate::common::wait_for;
use rustix::process::Signal;

#[test]
fn a_killed_loop_continues_at_the_same_iteration() {
    let stage = Stage::new().prd(r#"{"id": "US-1"}"#);
    let progress = stage.path("progress.txt");
    let mut looped = stage.start();
    for iteration in [1, 2] {
        looped.prompt(iteration);
        looped.go("true");
    }
    looped.prompt(3);
    looped.go("exit 3");
    looped.prompt(3);
    looped.ph().run("inject bot 'Mind the gap'").ok();
    looped.go("echo $$ > \"$DIR/pid\"; sh -c 'trap \"\" HUP TERM; echo $$ > \"$DIR/deep\"; kill -STOP $$'");
    let dir = looped.ph().dir().to_owned();
    let pid = |name: &str| -> u32 {
        wait_for(name, || {
            let text = std::fs::read_to_string(dir.join(name)).ok()?;
            text.trim().parse().ok()
        })
    };
    let (agent, deep) = (pid("pid"), pid("deep"));
    looped.session.signal(Signal::KILL);
    wait_for("the end of it", || {
        (!is_alive(looped.session.pid) && !is_alive(looped.session.child) && !is_alive(agent))
            .then_some(())
    });
    let again = looped
        .ph()
        .call(&["restart", "bot", "--detach", "--json"])
        .run();
    assert_eq!(again.code, 0, "{}", again.err());
    assert!(again.err().contains("crashed"), "{}", again.err());
    use_session(&mut looped.session, &again.json());
    assert!(!is_alive(deep), "what its agent had started is ended");
    let third = looped.prompt(3);
    assert!(third.contains("cut off"), "{third}");
    assert!(third.contains("Mind the gap"), "{third}");
    let outcomes = looped.outcomes();
    assert_eq!(outcomes[3], r#"3 {"failed":"cut_off"}"#, "{outcomes:?}");
    let told = std::fs::read_to_string(&progress).expect("a block");
    assert!(told.contains("FAILURE (Iteration 3)"), "{told}");
    assert!(told.contains("- **Story:** US-1\n"), "{told}");
    assert!(told.contains("- **Consecutive failures:** 2\n"), "{told}");
    looped.go("true");
    let fourth = looped.prompt(4);
    assert!(!fourth.contains("Mind the gap"), "{fourth}");
    assert!(!fourth.contains("cut off"), "{fourth}");
}

#[test]
fn a_repeated_build_continues_with_the_new_options() {
    let mut looped = Stage::new().start();
    looped.prompt(1);
    looped.go("true");
    looped.prompt(2);
    looped.session.signal(Signal::KILL);
    wait_for("the end of it", || {
        (!is_alive(looped.session.pid) && !is_alive(looped.session.child)).then_some(())
    });
    let at = looped.words.iter().position(|word| word == "--spec");
    let mut words = looped.words.clone();
    let at = at.expect("it was said");
    words.splice(at..at, ["--iterations".to_owned(), "7".to_owned()]);
    let again = looped.ph().call(&words).run();
    assert_eq!(again.code, 0, "{}", again.err());
    use_session(&mut looped.session, &again.json());
    let second = looped.prompt(2);
    assert!(second.contains("Iteration: 2 of 7"), "{second}");
    assert_eq!(looped.outcomes()[1], r#"2 {"failed":"cut_off"}"#);
}

/// Use the new session from now on.
fn use_session(session: &mut Session, now: &serde_json::Value) {
    let number = |name: &str| now[name].as_u64().expect("it runs") as u32;
    (session.pid, session.child) = (number("pid"), number("child_pid"));
    session.socket = now["socket"].as_str().expect("a socket").into();
}

#[test]
fn a_restart_of_a_running_loop_ends_the_iteration_and_continues() {
    let mut looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("inject bot 'Mind the gap'").ok();
    looped.go("true");
    assert!(looped.prompt(2).contains("Mind the gap"));
    let again = looped
        .ph()
        .call(&["restart", "bot", "--detach", "--json"])
        .run();
    assert_eq!(again.code, 0, "{}", again.err());
    use_session(&mut looped.session, &again.json());
    assert!(
        looped.prompt(3).contains("Mind the gap"),
        "nor is that lost"
    );
    assert_eq!(looped.outcomes()[1], "2 \"stopped\"");
}

#[test]
fn a_killed_runner_leaves_no_agent() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped
        .go("echo $$ > \"$DIR/pid\"; trap '' HUP TERM; while :; do read x < \"$DIR/orders\"; done");
    let dir = looped.ph().dir().to_owned();
    let agent: u32 = wait_for("its pid", || {
        std::fs::read_to_string(dir.join("pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    });
    let runner = looped.session.child;
    let pid = rustix::process::Pid::from_raw(runner as i32).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("it runs");
    looped.session.wait_gone();
    wait_for("the end of the agent", || (!is_alive(agent)).then_some(()));
    let session = looped.ph().run("status bot --json").json();
    assert_eq!(session["exit"], "signal 9 (KILL)", "{session}");
    assert_eq!(session["loop"]["running"], false, "{session}");
}
