//! Scripts that do wrong: each gets an error that names the script, the operation and what it said,
//! and nothing is taken for success that was not.

use super::{keep_by, script};
use crate::common::session::is_alive;
use crate::common::{Ph, path_text, wait_for};
use rustix::process::{Pid, Signal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Checks the errors of `ph send bob hi` and `ph inbox bob` while this script keeps the mail.
fn check(text: &str, code: i32, says: &[&str]) {
    check_within("100s", text, code, says);
}

/// Like [`check`] for a script that hangs.
fn check_hanging(text: &str, says: &[&str]) {
    check_within("500ms", text, 5, says);
}

fn check_within(timeout: &str, text: &str, code: i32, says: &[&str]) {
    let ph = Ph::new();
    // Only what is asked for goes wrong, or hangs.
    let text = text.replacen('\n', "\n[ $1 != ensure-running ] || exit 0\n", 1);
    script(ph.dir(), "bad", &text);
    keep_by(&ph, "../bad", &format!("mail.timeout = '{timeout}'"));
    for (line, op) in [("send bob hi", "'send'"), ("inbox bob", "'inbox'")] {
        let done = ph.run(line);
        for says in ["/bad ", op].iter().chain(says) {
            done.fails(code, says);
        }
    }
}

#[test]
fn a_failing_script_is_quoted() {
    check(
        "#!/bin/sh\necho 'the server is gone' >&2\nexit 7\n",
        5,
        &[
            "failed at",
            "(exit 7)",
            "standard error: the server is gone",
        ],
    );
    check("#!/bin/sh\nexit 1\n", 5, &["standard error was empty"]);
}

#[test]
fn a_script_killed_by_a_signal_is_reported() {
    check(
        "#!/bin/sh\necho dying >&2\nkill -9 $$\n",
        5,
        &["ended by signal 9", "standard error: dying"],
    );
}

#[test]
fn a_hanging_script_is_killed() {
    let begun = Instant::now();
    check_hanging(
        "#!/bin/sh\necho 'one moment' >&2\nsleep 1000\n",
        &[
            "timed out after 500ms",
            "standard error: one moment",
            "mail.timeout gives it more time",
        ],
    );
    assert!(begun.elapsed() < Duration::from_secs(100));
    // A script that closes its output is killed too.
    check_hanging("#!/bin/sh\nexec >&- 2>&-\nsleep 1000\n", &["timed out"]);
}

#[test]
fn a_flooding_script_is_killed() {
    check(
        "#!/bin/sh\necho 'here it comes' >&2\nexec cat /dev/zero\n",
        5,
        &["wrote more than 64 MiB", "standard error: here it comes"],
    );
    // Long output on standard error is cut, and is not a failure.
    let ph = Ph::new();
    let text = "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\n";
    script(ph.dir(), "loud", text);
    keep_by(&ph, "../loud", "");
    assert_eq!(ph.run("inbox bob").ok(), "no unread mail for bob\n");
}

#[test]
fn an_invalid_reply_is_quoted() {
    check(
        "#!/bin/sh\necho '{\"id\":\"1\",'\n",
        5,
        &["'{\"id\":\"1\",'", "invalid reply of"],
    );
    check("#!/bin/sh\necho '\"fine\"'\n", 5, &["invalid reply of"]);
    check("#!/bin/sh\nprintf '\\377\\376'\n", 5, &["invalid reply of"]);
    let hidden = "#!/bin/sh\nprintf '\\033]0;owned\\007' >&2\nprintf '\\033[2J'\n";
    let ph = Ph::new();
    script(ph.dir(), "sly", hidden);
    keep_by(&ph, "../sly", "");
    let said = ph.run("inbox bob").err();
    assert!(
        !said.contains('\u{1b}') && !said.contains('\u{7}'),
        "{said:?}"
    );
    // No output instead of a message.
    script(ph.dir(), "mute", "#!/bin/sh\n");
    keep_by(&ph, "../mute", "");
    ph.run("send bob hi").fails(5, "to 'send': no output");
    ph.run("count bob").fails(5, "to 'count': no output");
}

#[test]
fn a_script_that_cannot_run_gets_a_hint() {
    let ph = Ph::new();
    let run = |says: &str, hint: &str| {
        let done = ph.run("inbox bob");
        done.fails(2, says);
        assert!(done.err().contains(hint), "{}", done.err());
    };
    keep_by(&ph, "../nowhere", "");
    run(
        "/nowhere for 'inbox': No such file",
        "mail.provider names the script",
    );
    ph.file("plain", "#!/bin/sh\n");
    keep_by(&ph, "../plain", "");
    run("/plain for 'inbox': Permission denied", "chmod +x");
    ph.file("bare", "echo hello\n");
    keep_by(&ph, "../bare", "");
    run("/bare for 'inbox': Permission denied", "chmod +x");
    keep_by(&ph, "../home", "");
    run("/home for 'inbox': Permission denied", "it is a directory");
    script(ph.dir(), "lost", "#!/no/such/shell\n");
    keep_by(&ph, "../lost", "");
    run(
        "/lost for 'inbox': No such file",
        "interpreter in its first line does not exist",
    );
    // A script without an interpreter line is not run with a shell.
    script(ph.dir(), "shell", "echo hello\n");
    keep_by(&ph, "../shell", "");
    run("/shell for 'inbox'", "such as #!/bin/sh");
}

#[test]
fn a_named_pipe_is_rejected() {
    let stage = super::stage();
    let pipe = stage.dir().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o755);
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    keep_by(&stage, "../pipe", "mail.tick = '50ms'");
    let done = stage.run("inbox bob");
    done.fails(2, "/pipe for 'inbox': Permission denied");
    done.fails(2, "must be a regular file");
    let hook = stage.run_as("bob", "check --inject");
    assert_eq!((hook.code, hook.out().as_str()), (0, ""));
    stage.agent("bot", "");
    wait_for("word of it", || {
        let trouble = stage.status("bot")["mail_trouble"]["what"].clone();
        trouble.as_str().map(str::to_owned)
    });
    stage.run("stop bot").ok();
}

#[test]
fn unread_input_is_a_failure() {
    let ph = Ph::new();
    let body = "x".repeat(10 << 20);
    let answer =
        r#"{"id":"1","from":"human","to":"bob","body":"hi","created_at":"2026-11-15T12:00:00Z"}"#;
    let text = format!("#!/bin/sh\n[ $1 = send ] || exit 2\necho deaf >&2\necho '{answer}'\n");
    script(ph.dir(), "deaf", &text);
    keep_by(&ph, "../deaf", "");
    let done = ph.call(&["send", "bob", "--file", "-"]).stdin(body).run();
    assert_eq!(done.out(), "");
    done.fails(5, "it is not known whether it was sent to bob:");
    done.fails(5, "/deaf exited with 0 without reading its input");
    done.fails(5, "standard error: deaf");
    // A short input fits into the pipe, so the script may have read it.
    assert_eq!(ph.run("send bob hi").ok(), "1\n");
}

/// The number that a script has written there.
fn pid_in(path: &Path) -> u32 {
    wait_for("a process", || {
        let text = std::fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    })
}

/// A script whose calls leave what this starts, whose number it writes to a file.
fn leaving(ph: &Ph, start: &str) -> PathBuf {
    let child = ph.dir().join("child");
    let text = format!(
        "#!/bin/sh\n[ $1 = ensure-running ] && exit 0\necho 'all is well' >&2\n\
         {start} echo $! > '{}'\n[ $1 = send ] && echo '{}'\nexit 0\n",
        path_text(&child),
        r#"{"id":"1","from":"human","to":"bob","body":"hi","created_at":"2026-11-15T12:00:00Z"}"#,
    );
    script(ph.dir(), "parent", &text);
    keep_by(ph, "../parent", "");
    child
}

#[test]
fn leftover_processes_are_killed_and_fail_the_call() {
    let check = |start: &str, calls: &[(&str, &str)]| {
        let ph = Ph::new();
        let child = leaving(&ph, start);
        for (line, op) in calls {
            let done = ph.run(line);
            assert_eq!(done.out(), "", "{line}");
            done.fails(5, &format!("'{op}' failed: "));
            done.fails(5, "/parent (exit 0) left processes running (sleep (pid ");
            done.fails(5, "; standard error: all is well");
            done.fails(5, "only 'ensure-running' may leave a server");
            let pid = pid_in(&child);
            wait_for("its end", || (!is_alive(pid)).then_some(()));
            std::fs::remove_file(&child).unwrap();
        }
    };
    let calls = [
        ("inbox bob", "inbox"),
        ("count bob", "count"),
        ("send bob hi", "send"),
        ("archive 1", "archive"),
    ];
    // With its output open, or not; in its group, or not.
    check("sleep 1000 &", &calls);
    check("sleep 1000 >/dev/null 2>&1 &", &calls[..1]);
    if cfg!(target_os = "linux") {
        check("setsid sleep 1000 &", &calls[..1]);
        check("setsid sleep 1000 >/dev/null &", &calls[..1]);
    }
}

#[test]
fn a_call_that_leaves_processes_is_uncertain() {
    let ph = Ph::new();
    leaving(&ph, "sleep 1000 &");
    let unknown = "it is not known whether it was sent to bob:";
    ph.run("send bob hi").fails(5, unknown);
    // A hook shows the mail of the journal, and never fails.
    let hook = ph.run_as("bob", "check --inject");
    assert_eq!((hook.code, hook.out().as_str()), (0, ""));
    assert!(hook.err().contains("'check' failed"), "{}", hook.err());
}

#[test]
fn a_failure_that_leaves_processes_is_uncertain() {
    let ph = Ph::new();
    script(
        ph.dir(),
        "parent",
        "#!/bin/sh\n[ $1 = send ] || exit 2\nsleep 1000 &\necho full >&2\nexit 1\n",
    );
    keep_by(&ph, "../parent", "");
    let done = ph.run("send bob hi");
    done.fails(5, "it is not known whether it was sent to bob:");
    done.fails(5, "(exit 1) left processes running (sleep");
    done.fails(5, "standard error: full");
}

#[test]
fn a_process_that_exits_in_time_is_not_left_over() {
    let ph = Ph::new();
    let text = "#!/bin/sh\n[ $1 = inbox ] || exit 2\n(exec 3>&1; exec true) &\n";
    script(ph.dir(), "brief", text);
    keep_by(&ph, "../brief", "");
    assert_eq!(ph.run("inbox bob").ok(), "no unread mail for bob\n");
}

#[test]
fn a_timeout_kills_the_script_and_its_children() {
    let ph = Ph::new();
    let child = ph.dir().join("child");
    let text = format!(
        "#!/bin/sh\nsleep 1000 & echo $! > '{}'\nwait\n",
        path_text(&child)
    );
    script(ph.dir(), "parent", &text);
    keep_by(&ph, "../parent", "mail.timeout = '300ms'");
    ph.run("inbox bob").fails(5, "'inbox' timed out");
    let pid = pid_in(&child);
    wait_for("its end", || (!is_alive(pid)).then_some(()));
}

#[test]
fn an_interrupt_kills_the_scripts_children() {
    // After a kill nobody is left to do that: then the script itself goes, and no more is claimed.
    for signal in [Signal::INT, Signal::TERM] {
        let ph = Ph::new();
        let child = ph.dir().join("child");
        let text = format!(
            "#!/bin/sh\nsh -c 'echo $$ > {}; sleep 1000; true'\ntrue\n",
            path_text(&child)
        );
        script(ph.dir(), "parent", &text);
        keep_by(&ph, "../parent", "");
        let mut run = ph.call(&["inbox", "bob"]).spawn();
        let pid = pid_in(&child);
        let ours = Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
        rustix::process::kill_process(ours, signal).unwrap();
        run.wait().unwrap();
        wait_for("its end", || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn a_server_of_ensure_running_stays() {
    let ph = Ph::new();
    let server = ph.dir().join("server");
    let text = format!(
        "#!/bin/sh\n[ $1 = ensure-running ] || exit 0\nsleep 1000 & echo $! > '{}'\n",
        path_text(&server)
    );
    script(ph.dir(), "starter", &text);
    keep_by(&ph, "../starter", "");
    assert_eq!(ph.run("inbox bob").ok(), "no unread mail for bob\n");
    let pid = pid_in(&server);
    assert!(is_alive(pid));
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn an_interrupt_kills_the_script() {
    use std::os::unix::process::ExitStatusExt;
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let ph = Ph::new();
        let own = ph.dir().join("pid");
        let text = format!(
            "#!/bin/sh\necho $$ > '{}'\nexec sleep 1000\n",
            path_text(&own)
        );
        script(ph.dir(), "slow", &text);
        keep_by(&ph, "../slow", "");
        let mut child = ph.call(&["inbox", "bob"]).spawn();
        let pid = pid_in(&own);
        let ours = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(ours, signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
        wait_for("the script's end", || (!is_alive(pid)).then_some(()));
    }
}
