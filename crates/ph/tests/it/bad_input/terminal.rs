//! Control characters of other people's texts never reach the terminal.

use super::every_control;
use crate::common::{Ph, path_text};

/// Return the characters that would act on a terminal, except for colours.
fn acting(text: &str) -> Vec<char> {
    let mut rest = text;
    let mut found = Vec::new();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\u{1b}'
            && let Some(end) = rest.strip_prefix('[').and_then(|style| style.find('m'))
            && rest[1..=end]
                .chars()
                .all(|c| c.is_ascii_digit() || c == ';')
        {
            rest = &rest[end + 2..];
            continue;
        }
        let is_bidi = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\n' && c != '\t') || is_bidi {
            found.push(c);
        }
    }
    found
}

/// Run with `--color always`, because removing colours would also remove other escape sequences.
#[test]
fn control_characters_never_reach_the_terminal() {
    assert_eq!(
        acting("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{7}"),
        ['\u{1b}', '\u{7}']
    );
    let ph = Ph::new();
    let control = every_control();
    ph.send("bob plain --subject PLACEHOLDER --key KEY");
    let id = ph.run("inbox bob --json").json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // An import may contain texts that the command line refuses.
    let hostile = serde_json::to_string(&control).unwrap();
    let hostile = hostile.trim_matches('"');
    let line = ph
        .facts()
        .replace("plain", hostile)
        .replace("PLACEHOLDER", hostile)
        .replace("KEY", hostile)
        .replace(&id, "abcd0000-0000-4000-8000-000000000001");
    let twin = line.replace("000000000001", "000000000002");
    let odd = format!(
        r#"{{"seq":9,"origin":"{hostile}","id":"{hostile}","at":"{hostile}","agent":"{hostile}","kind":"{hostile}","data":{{"x":"{hostile}"}}}}"#
    );
    ph.call(&["import", "-"])
        .stdin(format!("{line}{twin}{odd}\n"))
        .run()
        .ok();
    let whole = "abcd0000-0000-4000-8000-000000000001";
    let odd_home = path_text(ph.dir()) + "/" + "\u{1b}[2J\u{9b}";
    let loose_home = path_text(ph.dir()) + "/loose\u{1b}[2J";
    ph.call(&["send", "bob", "hi", "--home", &loose_home])
        .run()
        .ok();
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&loose_home, open_to_all).unwrap();
    let rows: &[&[&str]] = &[
        &["inbox", "bob"],
        &["inbox", "bob", "--prompt"],
        &["inbox", &control],
        &["show", whole],
        &["read", whole],
        &["thread", whole],
        &["why", whole],
        &["read", "abcd"],
        &["read", &control],
        &["search", "abc*"],
        &["search", &control],
        &["log"],
        &["check", "--inject", "bob"],
        &["check", "--inject", &control],
        &["doctor"],
        &["doctor", "--home", &odd_home],
        &["doctor", "--home", &loose_home],
        &["inbox", "bob", "--home", &loose_home],
        &["inbox", "--home", &odd_home],
        &["config", "show", "--home", &odd_home],
        &["send", &control, "hi"],
        &["send", "bob", "hi", "--subject", &control],
        &["send", "bob", "hi", "--key", &control],
        &["send", "bob", "hi", "--ttl", &control],
        &["send", "bob", "hi", "--at", &control],
        &["send", "bob", "hi", "--priority", &control],
        &["send", "bob", "hi", "--from", &control],
        &["send", "bob", "--file", &control],
        &["send", "bob", "-\u{1b}[2J"],
        &["message", "-n", &control, "hi"],
        &["import", &control],
        &["export", &odd_home],
        &["help", &control],
        &["man", &control],
        &["completions", &control],
        &[&control],
        &["--\u{1b}[2J"],
    ];
    for args in rows {
        let done = ph.call(&[&["--color", "always"], *args].concat()).run();
        for text in [done.out(), done.err()] {
            assert_eq!(acting(&text), [], "{args:?}: {text:?}");
        }
        let plain = ph.call(args).env("PH_AGENT", "").run();
        assert_eq!(acting(&(plain.out() + &plain.err())), [], "{args:?}");
    }
    let named = ph
        .call(&["inbox", "--color", "always"])
        .agent(&control)
        .run();
    assert_eq!(named.code, 2);
    assert_eq!(acting(&named.err()), [], "{:?}", named.err());
}
