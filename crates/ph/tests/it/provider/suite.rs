//! `ph provider test`: a right verdict on scripts that keep to the protocol, and on those that do
//! not.

use super::{ourselves, script};
use crate::common::{Done, Ph, path_text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn test(ph: &Ph, script: &Path, more: &[&str]) -> Done {
    let script = path_text(script);
    let words = [&["provider", "test", "--json", &script], more].concat();
    ph.call(&words).run()
}

#[track_caller]
fn assert_passes(done: &Done) {
    let failed: Vec<Value> = done.json()["cases"]
        .as_array()
        .expect("it is there")
        .iter()
        .filter(|case| case["passed"] != true)
        .cloned()
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!((done.code, done.err().as_str()), (0, ""));
    assert_eq!(done.json()["passed"], 44);
}

#[test]
fn ph_passes_the_suite() {
    let ph = Ph::new();
    let me = ourselves(ph.dir());
    assert_passes(&test(&ph, &me, &[]));
    assert!(!ph.home().exists(), "it has touched nothing of the user's");
}

#[test]
fn the_provider_in_memory_passes_the_suite() {
    let ph = Ph::new();
    assert_passes(&test(&ph, &posthaste_lab::program("lab-provider"), &[]));
}

#[test]
fn each_case_is_printed() {
    let ph = Ph::new();
    let script = path_text(&posthaste_lab::program("lab-provider"));
    let shown = ph.call(&["provider", "test", &script]).run().ok();
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("pass  send: the fields match"));
    assert_eq!(lines.next_back(), Some("44 of 44 passed"));
    assert!(lines.all(|line| line.starts_with("pass  ")), "{shown}");
}

/// Python by itself: something that only finds it is slow to start.
fn python() -> Option<PathBuf> {
    let path = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let path = path.ok().filter(|output| output.status.success());
    match path {
        Some(output) => Some(
            String::from_utf8(output.stdout)
                .expect("it is there")
                .trim()
                .into(),
        ),
        None => {
            crate::common::skip("there is no Python");
            None
        }
    }
}

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/providers");
    root.join(name).canonicalize().expect("an example")
}

/// Like `test`, with a Python first on PATH that skips site packages, which is faster.
fn test_example(ph: &Ph, python: &Path, name: &str, url: &str) -> Done {
    let bin = ph.dir().join("bin");
    std::fs::create_dir(&bin).expect("a directory beside the home");
    let text = format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", path_text(python));
    super::script(&bin, "python3", &text);
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", path_text(&bin));
    let script = path_text(&example(name));
    ph.call(&["provider", "test", "--timeout", "100s", "--json", &script])
        .env("PATH", path)
        .env("MAIL_URL", url)
        .run()
}

#[test]
fn the_maildir_example_passes_the_suite() {
    let Some(python) = python() else { return };
    assert_passes(&test_example(&Ph::new(), &python, "maildir", ""));
}

/// The service that the other example talks to.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_http_example_passes_the_suite() {
    let Some(python) = python() else { return };
    let server = Command::new(&python)
        .arg(example("http-server"))
        .arg("0")
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Service(server.expect("Python runs"));
    let mut url = String::new();
    BufReader::new(server.0.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    assert_passes(&test_example(&Ph::new(), &python, "http", url.trim()));
}

/// The reasons of the cases that failed.
fn reasons(done: &Done) -> Vec<String> {
    let json = done.json();
    let cases = json["cases"].as_array().expect("it is there");
    let failed = cases.iter().filter(|case| case["passed"] == false);
    failed
        .map(|case| case["reason"].as_str().expect("it is there").to_owned())
        .collect()
}

#[test]
fn a_hanging_script_ends_the_suite_early() {
    let ph = Ph::new();
    let pid = ph.dir().join("pid");
    let text = format!("#!/bin/sh\necho $$ > {}\nsleep 1000\n", path_text(&pid));
    let hangs = script(ph.dir(), "hangs", &text);
    let done = test(&ph, &hangs, &["--timeout", "200ms"]);
    assert_eq!(done.code, 1);
    assert_eq!(done.json()["passed"], 0);
    let reasons = reasons(&done);
    assert!(
        reasons[0].contains("'send' timed out after 200ms"),
        "{}",
        reasons[0]
    );
    assert_eq!(reasons[3], "skipped: the script hangs");
    let pid: u32 = std::fs::read_to_string(pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    crate::common::wait_for("its end", || {
        (!crate::common::session::is_alive(pid)).then_some(())
    });
}

#[test]
fn invalid_output_fails_cases() {
    let ph = Ph::new();
    let text = "#!/bin/sh\necho '[{\"id\": '\necho \"what is $1?\" >&2\n";
    let rubbish = script(ph.dir(), "rubbish", text);
    let done = test(&ph, &rubbish, &[]);
    assert_eq!(done.code, 1);
    // Only what asks for an exit code alone can be right.
    assert_eq!(done.json()["passed"], 1, "{}", done.out());
    let reasons = reasons(&done);
    assert!(
        reasons[0].contains("standard error: what is send?"),
        "{reasons:?}"
    );
}

#[test]
fn unknown_operations_fail_cases() {
    let ph = Ph::new();
    let ignorant = script(ph.dir(), "ignorant", "#!/bin/sh\nexit 2\n");
    let done = test(&ph, &ignorant, &[]);
    assert_eq!(done.code, 1);
    let json = done.json();
    let passed = json["cases"].as_array().unwrap().iter();
    let passed: Vec<_> = passed
        .filter(|case| case["passed"] == true)
        .map(|case| case["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        passed,
        [
            "an unknown operation exits with 2",
            "ensure-running: exits with 0, or with 2 if it is not supported"
        ]
    );
    assert!(reasons(&done)[0].contains("does not know 'send' (exit 2)"));
}

#[test]
fn servers_end_with_their_case() {
    let ph = Ph::new();
    let pids = ph.dir().join("servers");
    let text = format!(
        "#!/bin/sh\n[ $1 = ensure-running ] || exit 2\nsleep 1000 & echo $! >> '{}'\n",
        path_text(&pids)
    );
    test(&ph, &script(ph.dir(), "starts", &text), &[]);
    let pids = std::fs::read_to_string(pids).unwrap();
    // Once a case, and by the case about it.
    assert_eq!(pids.lines().count(), 45);
    for pid in pids.lines().map(|pid| pid.parse().unwrap()) {
        crate::common::wait_for("its end", || {
            (!crate::common::session::is_alive(pid)).then_some(())
        });
    }
}

#[test]
fn ensure_running_is_called_first() {
    let ph = Ph::new();
    let right = path_text(&posthaste_lab::program("lab-provider"));
    let pids = ph.dir().join("servers");
    // Once a case, and it finds its server by its state.
    let text = format!(
        "#!/bin/sh\nserver=\"$PH_PROVIDER_STATE.server\"\n\
         if [ $1 = ensure-running ]; then\n\
         [ -e $server ] || {{ sleep 1000 & echo $! | tee $server >> '{}'; }}\nexit 0\nfi\n\
         [ -e $server ] || {{ echo 'nobody serves' >&2; exit 1; }}\nexec '{right}' \"$@\"\n",
        path_text(&pids)
    );
    assert_passes(&test(&ph, &script(ph.dir(), "needs", &text), &[]));
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 44);
    for pid in pids.lines().map(|pid| pid.parse().unwrap()) {
        crate::common::wait_for("its end", || {
            (!crate::common::session::is_alive(pid)).then_some(())
        });
    }
}

/// The cases that fail where a provider's answers go through this, in the shell's words.
fn failing(ph: &Ph, filter: &str) -> (Done, Vec<String>) {
    let right = path_text(&posthaste_lab::program("lab-provider"));
    let text = format!("#!/bin/sh\nout=$('{right}' \"$@\") || exit $?\n{filter}\n");
    let done = test(ph, &script(ph.dir(), "filter", &text), &[]);
    assert_eq!(done.code, 1);
    let json = done.json();
    let cases = json["cases"].as_array().expect("cases").iter();
    let failed = cases.filter(|case| case["passed"] == false);
    let failed = failed.map(|case| case["name"].as_str().expect("a name").to_owned());
    let failed = failed.collect();
    (done, failed)
}

#[test]
fn an_empty_list_must_print_nothing() {
    let brackets = "[ -n \"$out\" ] || out='[]'\nprintf '%s' \"$out\"";
    let (done, failed) = failing(&Ph::new(), brackets);
    let reasons = reasons(&done);
    let says = "printed '[]'; an empty list must print nothing";
    assert!(reasons.iter().all(|why| why.contains(says)), "{reasons:#?}");
    let name = "inbox: an empty inbox prints nothing".to_owned();
    assert!(failed.contains(&name), "{failed:?}");
}

#[test]
fn a_thread_must_have_an_id() {
    let ph = Ph::new();
    let without = r#"printf '%s' "$out" | sed 's/,"thread_id":"[^"]*"//g'"#;
    let (_, failed) = failing(&ph, without);
    let name = "reply: is in the same thread".to_owned();
    assert!(failed.contains(&name), "{failed:?}");
}

#[test]
fn a_message_must_not_change() {
    let moody = r#"[ $1 != check ] || out=$(printf '%s' "$out" | sed 's/"created_at":"20/"created_at":"19/')
        printf '%s' "$out""#;
    let (_, failed) = failing(&Ph::new(), moody);
    assert_eq!(failed, ["check: returns unread messages"]);
}

#[test]
fn leftover_processes_fail_cases() {
    let ph = Ph::new();
    let leaving = "if [ $1 = mark-read ]; then sleep 1000 >&- 2>&- & fi\nprintf '%s' \"$out\"";
    let (done, failed) = failing(&ph, leaving);
    assert_eq!(
        failed,
        [
            "mark-read: hides from the inbox",
            "mark-unread: restores to the inbox",
            "count: total and unread",
            "no process is left running"
        ]
    );
    let says = "(exit 0) left processes running";
    let reasons = reasons(&done);
    assert!(reasons.iter().all(|why| why.contains(says)), "{reasons:?}");
    assert_eq!(done.err(), "", "once is enough");
}

/// Runs the example over a Maildir by itself.
fn maildir(root: &Path, words: &[&str], stdin: &str) -> std::process::Output {
    use std::io::Write;
    let mut child = Command::new("python3")
        .arg(example("maildir"))
        .args(words)
        .env("PH_PROVIDER_STATE", root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python runs");
    let mut input = child.stdin.take().expect("a pipe");
    // One that does not want it may be gone already.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    child.wait_with_output().expect("an end")
}

#[test]
fn the_maildir_example_lists_foreign_mail() {
    if python().is_none() {
        return;
    }
    let ph = Ph::new();
    let root = ph.dir().join("mail");
    for part in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(root.join("bob").join(part)).unwrap();
    }
    let put = |name: &str, text: &str| {
        std::fs::write(root.join("bob/new").join(name), text).unwrap();
    };
    put(
        "1.a",
        "From: Ann <ann@example.org>\nTo: Bob <bob@example.org>\nSubject: hi\n\
         Date: Sun, 15 Nov 2026 12:00:00 +0100\n\nfrom outside\n",
    );
    put("2.b", "Subject: no date\n\nnothing else\n");
    put(
        "3.c",
        "Content-Type: text/plain; charset=nonsense\n\n\u{e9}\n",
    );
    put(
        "4.d",
        "X-Created-At: yesterday\nDate: Sun, 15 Nov 2026 12:00:00 +0000\n\nodd\n",
    );
    std::fs::write(root.join("stray"), "x").unwrap();
    std::fs::create_dir(root.join("empty")).unwrap();
    let got = maildir(&root, &["inbox", "bob"], "");
    let said = String::from_utf8_lossy(&got.stderr).into_owned();
    assert!(got.status.success(), "{said}");
    let listed: Value = serde_json::from_slice(&got.stdout).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 4);
    let odd = listed.iter().find(|m| m["id"] == "4.d").unwrap();
    assert_eq!(odd["created_at"], "2026-11-15T12:00:00Z");
    let first = listed.iter().find(|m| m["id"] == "1.a").unwrap();
    assert_eq!(first["created_at"], "2026-11-15T11:00:00Z");
    assert_eq!(first["to"], "bob");
    assert!(maildir(&root, &["get", "1.a"], "").status.success());
    // An error is one line.
    for (words, stdin) in [
        (vec!["get", "nowhere"], ""),
        (vec!["get"], ""),
        (vec!["send", "bob"], "{"),
        (vec!["send", "bob"], "[]"),
        (vec!["send", "bob"], r#"{"from":"a\nb","body":"x"}"#),
        (vec!["send", "bob"], r#"{"from":"a","body":"\ud800"}"#),
        (vec!["send", "bob"], r#"{"from":"a","body":["x"]}"#),
    ] {
        let done = maildir(&root, &words, stdin);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    }
}

#[test]
fn the_http_example_reports_invalid_replies_in_one_line() {
    use std::io::{Read, Write};
    let Some(python) = python() else { return };
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", service.local_addr().unwrap());
    for (answer, says) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
            "with invalid JSON: ",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[",
            "IncompleteRead",
        ),
        ("rubbish\r\n\r\n", "BadStatusLine"),
    ] {
        let child = Command::new(&python)
            .arg(example("http"))
            .args(["inbox", "bob"])
            .env("MAIL_URL", &url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Python runs");
        let (mut asked, _) = service.accept().unwrap();
        let _ = asked.read(&mut [0; 4096]).unwrap();
        asked.write_all(answer.as_bytes()).unwrap();
        drop(asked);
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_path_that_is_not_a_script_is_refused() {
    let ph = Ph::new();
    let plain = ph.file("plain", "#!/bin/sh\n");
    for path in [&plain, &ph.dir().join("nowhere"), &ph.user()] {
        let done = ph.call(&["provider", "test", &path_text(path)]).run();
        done.fails(2, "is not an executable file");
    }
    ph.run("provider test").fails(2, "<SCRIPT>");
    let me = path_text(&ourselves(ph.dir()));
    let done = ph
        .call(&["provider", "test", &me, "--timeout", "soon"])
        .run();
    done.fails(2, "is not a duration");
}
