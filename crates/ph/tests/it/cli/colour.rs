//! Only terminals get colour, and no text from outside controls a terminal.

use crate::common::{Ph, path_text};
use std::process::{Command, Stdio};

#[test]
fn a_pipe_gets_no_colour_unless_requested() {
    let ph = Ph::new();
    ph.send("bob hi");
    let lines = [
        "inbox bob",
        "show {1}",
        "show ffff",
        "doctor",
        "--help",
        "nonsense",
        "inbox BOB",
    ];
    for line in lines {
        let done = ph.run(line);
        let said = done.out() + &done.err();
        assert!(!said.contains('\u{1b}'), "{line}: {said:?}");
        let done = ph.run(&format!("--color always {line}"));
        let said = done.out() + &done.err();
        assert!(said.contains("\u{1b}["), "{line}: {said:?}");
    }
    let by_setting = ph
        .call(&["inbox", "bob"])
        .env("PH_OUTPUT_COLOR", "always")
        .run();
    assert!(by_setting.ok().contains("\u{1b}["));
}

/// Run a shell line on a real terminal, and return what it shows.
fn on_terminal(ph: &Ph, line: &str) -> Option<String> {
    let output = Command::new("script")
        .args(["-qec", line, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PH", env!("CARGO_BIN_EXE_ph"))
        .env("HOME", ph.user())
        .env("PH_HOME", ph.home())
        .env("TZ", "UTC")
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .current_dir(ph.user())
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => Some(String::from_utf8(output.stdout).expect("a terminal's text is UTF-8")),
        Err(_) => {
            posthaste_lab::skip_or_fail("there is no 'script' to make a terminal with");
            None
        }
    }
}

#[test]
fn a_terminal_gets_colour_unless_it_is_turned_off() {
    let ph = Ph::new();
    ph.send("bob hi");
    let Some(seen) = on_terminal(&ph, "$PH inbox bob; $PH show ffff") else {
        return;
    };
    assert!(
        seen.contains("\u{1b}[1m") && seen.contains("\u{1b}[31m"),
        "{seen:?}"
    );
    for line in [
        "NO_COLOR=1 $PH inbox bob; NO_COLOR=1 $PH show ffff; NO_COLOR=1 $PH --help",
        "TERM=dumb $PH inbox bob",
        "$PH --color never inbox bob; $PH inbox BOB --color=never; $PH --color never --help",
        "PH_OUTPUT_COLOR=never $PH inbox bob",
        "$PH inbox bob | cat",
    ] {
        let seen = on_terminal(&ph, line).unwrap();
        assert!(!seen.contains('\u{1b}'), "{line}: {seen:?}");
        assert!(!seen.is_empty());
    }
    // Standard output is a terminal, standard error is not.
    let errors = ph.dir().join("errors");
    on_terminal(&ph, &format!("$PH show ffff 2> {}", path_text(&errors)));
    let errors = std::fs::read_to_string(errors).unwrap();
    assert!(errors.starts_with("error: no message ffff"), "{errors:?}");
}

#[test]
fn a_terminal_is_not_controlled_by_a_body_or_json() {
    let ph = Ph::new();
    let body: String = (1..0xa0)
        .filter_map(char::from_u32)
        .chain(['\u{202e}'])
        .collect();
    let sent = ph
        .call(&["send", "bob", "--file", "-"])
        .stdin(body.clone())
        .run()
        .ok();
    ph.redact(&sent);
    let id = sent.trim();
    for what in [
        "read --body",
        "show --json",
        "inbox bob --json",
        "log --json",
    ] {
        let line = match what {
            "inbox bob --json" | "log --json" => format!("$PH {what} --color never"),
            _ => format!("$PH {what} {id} --color never"),
        };
        let Some(seen) = on_terminal(&ph, &line) else {
            return;
        };
        let acting: Vec<char> = seen
            .chars()
            .filter(|c| (c.is_control() && !"\r\n\t".contains(*c)) || *c == '\u{202e}')
            .collect();
        assert!(acting.is_empty(), "{line}: {acting:?} in {seen:?}");
        if what == "show --json" {
            let shown: serde_json::Value = serde_json::from_str(&seen).unwrap();
            assert_eq!(shown["body"], body, "and it is the same body");
        }
    }
}
