use super::*;

const PROMPT: &str = "## Instructions\n1. Check the inbox first.\n2. When every story passes, answer with \
     <promise>COMPLETE</promise> and nothing else.\n\n## Notes\nHe said \"C:\\new\": ä.\n";
/// A spec with the token on its own line, as people often write it.
const SPEC: &str = "# House\nBuild it.\n\nWhen everything passes, print:\n<promise>COMPLETE</promise>\nThen stop.\n";

/// Compare the detector's result for the output, in pieces of several sizes.
fn check(prompt: &str, output: &str, want: bool) {
    for size in [1, 7, usize::MAX] {
        let mut detector = Detector::new(prompt);
        let size = size.min(output.len().max(1));
        for piece in output.as_bytes().chunks(size) {
            detector.feed(piece);
        }
        assert_eq!(detector.finish(), want, "in pieces of {size}: {output}");
    }
}

#[test]
fn the_token_counts_as_the_agent_s_last_line() {
    for output in [
        "<promise>COMPLETE</promise>",
        "All done.\r\n<promise>COMPLETE</promise>\r\n\r\n",
        "**<promise>COMPLETE</promise>**",
        "`<promise>COMPLETE</promise>`",
        "\u{1b}[1m<pro\u{1b}[0mmise>COM\u{1b}]0;title\u{7}PLETE</promise>\u{1b}[?25h",
        "│ <promise>COMP │\r\n│ LETE</promise> │\r\n╰──────╯",
        "codex\nDone.\n<promise>COMPLETE</promise>\ntokens used\n1,234\n",
        r#"{"type":"text","text":"Done.\n\n<promise>COMPLETE</promise>"}"#,
        r#"{"text":"\u003cpromise\u003eCOMPLETE\u003c/promise\u003e"}"#,
        "{\n  \"response\": \"Done.\\n<promise>COMPLETE</promise>\",\n  \"stats\": {\"tokens\": 7}\n}\n",
    ] {
        check(PROMPT, output, true);
        check(SPEC, output, true);
        check("", output, true);
    }
}

#[test]
fn the_token_does_not_count_elsewhere() {
    for output in [
        "",
        "COMPLETE",
        "<promise>complete</promise>",
        "<promise>INCOMPLETE</promise>",
        "<promise>COMPLETE<promise>",
        "<promise>COMPLETE</promis",
        "I will not write <promise>COMPLETE</promise> until it is done.",
        "I will not yet write <promise>COMPLETE</promise>",
        "<promise>COMPLETE</promise>\nMuch is left.",
        "<promise>COMPLETE</promise> is what I shall write.",
        "8\t<promise>COMPLETE</promise>",
        "     8→<promise>COMPLETE</promise>",
        "s.md:8:<promise>COMPLETE</promise>",
        "> <promise>COMPLETE</promise>",
        "+<promise>COMPLETE</promise>",
        r#"{"type":"text","text":"<promise>COMPLETE</promise>\nis for later"}"#,
        r#"{"type":"text","text":"<promise>COMPLETE</promise>"} {"type":"text","text":"Much is left."}"#,
    ] {
        check("", output, false);
        check(PROMPT, output, false);
        check(SPEC, output, false);
    }
}

/// Return a text in the forms in which programs show it.
fn shown(text: &str) -> Vec<String> {
    let quoted = serde_json::to_string(text).unwrap();
    let numbered: String = (1..)
        .zip(text.lines())
        .map(|(n, line)| format!("{n:6}\t{line}\r\n"))
        .collect();
    let framed: Vec<char> = text.chars().filter(|c| *c != '\n').collect();
    let framed = framed.chunks(27).map(|row| {
        let row: String = row.iter().collect();
        format!("\u{1b}[2m│\u{1b}[0m {row} │\r\n")
    });
    vec![
        text.to_owned(),
        format!("user\n{text}\n--------\n"),
        text.replace('\n', "\r\n"),
        text.lines().map(|line| format!("> {line}\n")).collect(),
        format!("\u{1b}[36m{text}\u{1b}[0m"),
        framed.collect(),
        numbered,
        format!("{{\"type\":\"system\",\"text\":{quoted}}}\n"),
        format!("{{\"text\":{}}}\n", serde_json::to_string(&quoted).unwrap()),
    ]
}

#[test]
fn an_echo_of_the_prompt_does_not_count() {
    for prompt in [
        PROMPT,
        SPEC,
        "Say <promise>COMPLETE</promise> when done.",
        "<promise>COMPLETE</promise> is what you write in the end.",
        "<promise>COMPLETE</promise>\nis what you write in the end.",
        "In the end: <promise>COMPLETE</promise>",
        "In the end, and not before:\n\n    <promise>COMPLETE</promise>\n",
        "完成后请输出以下标记: <promise>COMPLETE</promise>。",
    ] {
        for echo in shown(prompt) {
            check(prompt, &echo, false);
            check(prompt, &format!("{echo}{echo}"), false);
            // Text after the echo counts.
            for word in [
                "codex\nI have finished.\n<promise>COMPLETE</promise>\n",
                "{\"text\":\"ok\\n<promise>COMPLETE</promise>\"}\n",
            ] {
                check(prompt, &format!("{echo}\n{word}"), true);
            }
        }
    }
}

#[test]
fn an_echo_of_a_part_of_the_spec_does_not_count() {
    let prompt = format!("## Context\n- The spec says:\n    {SPEC}\n## Instructions\nBegin.\n");
    let end = SPEC.find("Then").unwrap();
    // Cut off after the token, so that the token is last.
    for echo in shown(&SPEC[..end]) {
        check(&prompt, &echo, false);
    }
    for line in ["4-When everything passes, print:", "…print:"] {
        check(&prompt, &format!("{line}\n5:{TOKEN}\n"), false);
    }
}

/// Claude Code's stream format.
fn stream(tool: &str, answer: &str) -> String {
    let quote = |text: &str| serde_json::to_string(text).unwrap();
    let (tool, answer) = (quote(tool), quote(answer));
    format!(
        r#"{{"type":"system","subtype":"init","tools":["Read"]}}
{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"tool_use","name":"Write","input":{{"content":{tool}}}}}]}}}}
{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","content":{tool}}}]}}}}
{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":{answer}}}],"usage":{{"output_tokens":7}}}}}}
{{"type":"result","subtype":"success","is_error":false,"result":{answer},"session_id":"0a","usage":{{"output_tokens":7}}}}
{{"type":"system","subtype":"idle"}}
"#
    )
}

#[test]
fn the_last_answer_of_a_json_stream_counts() {
    let prompt = format!("- The spec says:\n{SPEC}");
    let numbered = "     5→<promise>COMPLETE</promise>";
    for tool in [SPEC, numbered, TOKEN] {
        check(&prompt, &stream(tool, "I have begun; much is left."), false);
        check(&prompt, &stream(tool, &format!("Done.\n\n{TOKEN}")), true);
        check(&prompt, &stream(tool, TOKEN), true);
        // The stream ended before any answer.
        let cut = stream(tool, "x");
        let cut: Vec<&str> = cut.lines().take(3).collect();
        check(&prompt, &cut.join("\n"), false);
    }
}

#[test]
fn a_prompt_of_only_the_token_is_ignored() {
    check(TOKEN, TOKEN, false);
    // In Codex's format.
    let shown = format!("user\n {TOKEN} \n--------\n");
    check(&format!(" {TOKEN} "), &shown, false);
    check(
        TOKEN,
        &format!("{shown}codex\n{TOKEN}\ntokens used\n12\n"),
        true,
    );
}

#[test]
fn output_in_interactive_mode_does_not_count() {
    let mut detector = Detector::new(PROMPT);
    detector.feed(TOKEN.as_bytes());
    detector.set_interactive(true);
    detector.feed(TOKEN.as_bytes());
    detector.set_interactive(false);
    assert!(!detector.finish());
    detector.feed(b"\r\n");
    assert!(!detector.finish());
    detector.feed(TOKEN.as_bytes());
    assert!(detector.finish());
}

#[test]
fn long_output_uses_bounded_memory() {
    let mut detector = Detector::new(SPEC);
    let noise = "{\"a\":\n<promise>\u{1b}]0;".repeat(2_000) + "\\u00" + &"<".repeat(9_000);
    for _ in 0..50 {
        detector.feed(noise.as_bytes());
        assert!(detector.tail.len() <= 2 * TAIL_BYTES);
    }
    detector.feed(b"\x07\x1b\\\n");
    assert!(!detector.finish());
    detector.feed(TOKEN.as_bytes());
    assert!(detector.finish());
}

proptest::proptest! {
    /// An echo of any prompt, in any form, does not count; the agent's own token after it does.
    #[test]
    fn no_echo_counts_and_every_own_token_does(
        before in "[a-z A-Z.\\n\"\\\\äß<>/]{0,60}",
        after in "[a-z A-Z.\\n\"\\\\<>/]{0,60}",
        way in 0..9_usize,
    ) {
        let prompt = format!("{before} {TOKEN} {after}");
        let echo = shown(&prompt).swap_remove(way);
        let mut detector = Detector::new(&prompt);
        detector.feed(echo.as_bytes());
        proptest::prop_assert!(!detector.finish(), "{echo}");
        detector.feed(b"\nEverything is finished now, 1234567890.\n<promise>COMPLETE</promise>");
        proptest::prop_assert!(detector.finish());
    }
}
