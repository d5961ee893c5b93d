use super::*;

const PROMPT: &str = "## Instructions\n1. Check the inbox first.\n2. When every story passes, answer with \
     <promise>COMPLETE</promise> and nothing else.\n\n## Notes\nHe said \"C:\\new\": ä.\n";

/// Whether the agent has said so, however the output is cut.
fn check(prompt: &str, output: &str, want: bool) {
    for size in [1, 2, 3, 7, 64, usize::MAX] {
        let mut detector = Detector::new(prompt);
        let size = size.min(output.len().max(1));
        for piece in output.as_bytes().chunks(size) {
            detector.feed(piece);
        }
        assert_eq!(detector.finish(), want, "in pieces of {size}: {output}");
    }
}

#[test]
fn the_agent_s_own_word_counts() {
    for output in [
        "<promise>COMPLETE</promise>",
        "All done.\n<promise>COMPLETE</promise>\n",
        "**<promise>COMPLETE</promise>**",
        "\u{1b}[1m<pro\u{1b}[0mmise>COM\u{1b}]0;title\u{7}PLETE</promise>",
        "│ <promise>COMP │\r\n│ LETE</promise> │",
        "<promise>\r\n  COMPLETE\r\n</promise>",
        r#"{"type":"text","text":"Done.\n\n<promise>COMPLETE</promise>"}"#,
        r#"{"text":"\u003cpromise\u003eCOMPLETE\u003c/promise\u003e"}"#,
        r#"{"text":"<promise>COMPLETE<\/promise>"}"#,
        "<promise>COMPLETE<promise>COMPLETE</promise>",
        "<<promise>COMPLETE</promise>",
    ] {
        check(PROMPT, output, true);
        check("", output, true);
    }
}

#[test]
fn what_is_not_the_token_does_not() {
    for output in [
        "",
        "COMPLETE",
        "<promise>complete</promise>",
        "<promise>INCOMPLETE</promise>",
        "<promise>COMPLETE<promise>",
        "</promise>COMPLETE<promise>",
        "<promise>COMPLETE, almost</promise>",
        "<promise>COMPLETE</promis",
    ] {
        check("", output, false);
        check(PROMPT, output, false);
    }
}

/// The prompt as programs print it.
fn echoes(prompt: &str) -> Vec<String> {
    let quoted = serde_json::to_string(prompt).unwrap();
    let ascii: String = quoted
        .chars()
        .flat_map(|c| match c {
            '<' | '>' | '/' => format!("\\u{:04x}", u32::from(c)).chars().collect(),
            c if c.is_ascii() => vec![c],
            c => format!("\\u{:04X}", u32::from(c)).chars().collect(),
        })
        .collect();
    let letters: Vec<char> = prompt.chars().filter(|c| *c != '\n').collect();
    let wrapped: Vec<String> = letters
        .chunks(17)
        .map(|row| {
            format!(
                "\u{1b}[2m│\u{1b}[0m {} │\r\n",
                row.iter().collect::<String>()
            )
        })
        .collect();
    vec![
        prompt.to_owned(),
        format!("user\n{prompt}\n--------\n"),
        prompt.replace('\n', "\r\n"),
        prompt.lines().map(|line| format!("> {line}\n")).collect(),
        format!("\u{1b}[36m{prompt}\u{1b}[0m"),
        wrapped.concat(),
        format!("{{\"type\":\"user\",\"text\":{quoted}}}\n"),
        format!("{{\"text\":{}}}\n", serde_json::to_string(&quoted).unwrap()),
        format!("{{\"text\":{ascii}}}\n"),
    ]
}

#[test]
fn an_echo_of_the_prompt_is_not_the_agent_s_word() {
    for prompt in [
        PROMPT,
        "Say <promise>COMPLETE</promise> when done.",
        "<promise>COMPLETE</promise> is what you write in the end.",
        "In the end: <promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise> once, <promise>COMPLETE</promise> twice, or <promise>COMPLETE</promise>",
        "完成后请输出以下标记表示所有任务都已经完成并且通过了测试没有遗漏任何事项: <promise>COMPLETE</promise>。",
    ] {
        for echo in echoes(prompt) {
            check(prompt, &echo, false);
            check(prompt, &format!("{echo}{echo}"), false);
            // And what comes after it is.
            check(
                prompt,
                &format!("{echo}codex\nI have finished. <promise>COMPLETE</promise>\n"),
                true,
            );
            check(
                prompt,
                &format!("{echo}\n<promise>COMPLETE</promise>"),
                true,
            );
            let json = r#"{"text":"ok\n<promise>COMPLETE</promise>"}"#;
            check(prompt, &format!("{echo}\n{json}\n"), true);
        }
    }
}

#[test]
fn a_quotation_of_the_prompt_s_own_line_is_an_echo_too() {
    let quoted =
        "As told: when every story passes, answer with <promise>COMPLETE</promise>, later.";
    check(PROMPT, &quoted.replace("when", "When"), false);
    // A part of a prompt that was cut off in the middle.
    check(
        PROMPT,
        &PROMPT[30..PROMPT.find(" and nothing").unwrap()],
        false,
    );
}

#[test]
fn a_prompt_that_is_the_token_alone_tells_nothing() {
    check(TOKEN, TOKEN, false);
}

#[test]
fn it_is_known_as_soon_as_it_is_said() {
    let mut detector = Detector::new(PROMPT);
    assert!(!detector.feed(PROMPT.as_bytes()));
    assert!(!detector.feed(b"done <promise>COMPLETE</promise"));
    assert!(detector.feed(b">"));
    assert!(detector.feed(b" and more"));
    assert!(detector.is_complete());
}

#[test]
fn in_interactive_mode_it_counts_for_nothing() {
    let mut detector = Detector::new(PROMPT);
    detector.set_interactive(true);
    assert!(!detector.feed(TOKEN.as_bytes()));
    detector.set_interactive(false);
    assert!(!detector.feed(b"going on"));
    assert!(!detector.finish());
    assert!(detector.feed(TOKEN.as_bytes()));
    // One that is in doubt when it is turned on does not count afterwards either.
    let mut detector = Detector::new("<promise>COMPLETE</promise> is the word");
    detector.feed(TOKEN.as_bytes());
    detector.set_interactive(true);
    detector.set_interactive(false);
    assert!(!detector.finish());
}

#[test]
fn a_flood_is_held_in_little() {
    let mut detector =
        Detector::new("<promise>COMPLETE</promise> is the word. <promise>COMPLETE</promise>");
    let noise = "<promise>\u{1b}]0;".repeat(2_000) + "\\u00" + &"<".repeat(9_000);
    for _ in 0..50 {
        assert!(!detector.feed(noise.as_bytes()));
        detector.feed(b"\x07\x1b\\");
    }
    let Detector { window, watch, .. } = &detector;
    assert!(window.recent.len() <= TOKEN.len() && window.words.len() <= LETTERS + CONTEXT);
    assert!(watch.doubts.len() <= 2);
    assert!(detector.feed(TOKEN.as_bytes()) || detector.finish());
}

#[test]
fn the_token_s_letters_are_counted_right() {
    assert_eq!(TOKEN.chars().filter(|c| tells(*c)).count(), LETTERS);
    assert!(TOKEN.is_ascii());
}

proptest::proptest! {
    /// Any prompt, printed in any of the ways, says nothing; and the agent's word after it counts.
    #[test]
    fn no_echo_fires_and_every_word_does(
        before in "[a-z A-Z.\\n\"\\\\äß<>/]{0,60}",
        after in "[a-z A-Z.\\n\"\\\\<>/]{0,60}",
        way in 0..9_usize,
    ) {
        let prompt = format!("{before} {TOKEN} {after}");
        let echo = echoes(&prompt).swap_remove(way);
        let mut detector = Detector::new(&prompt);
        detector.feed(echo.as_bytes());
        let has_text = format!("{before}{after}").contains(|c: char| c.is_alphanumeric());
        proptest::prop_assert!(!detector.finish(), "{echo}");
        if has_text {
            detector.feed(b"\nEverything is finished now, 1234567890, and more: <promise>COMPLETE</promise>");
            proptest::prop_assert!(detector.finish());
        }
    }
}
