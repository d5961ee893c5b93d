//! Renders an agent's stream-json output as text: messages, one line per tool call and result, and
//! the final status.
//!
//! Only for display: completion is judged from the raw bytes. Control characters in the JSON are
//! removed. Other lines pass unchanged.

use posthaste_core::text;
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

/// Longer lines are not parsed.
const MAX_LINE_BYTES: usize = 4 << 20;
const DIM_STYLE: &str = "\x1b[2m";
const PLAIN_STYLE: &str = "\x1b[0m";

/// Renders the output of one agent, in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct JsonRenderer {
    line: Vec<u8>,
    state: LineState,
}

/// The state of the current line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LineState {
    #[default]
    Start,
    /// Possibly an event: buffered until its end.
    Event,
    /// Not an event: forwarded.
    Other,
    /// Too long: skipped, with the number of bytes.
    Skipped(usize),
}

impl JsonRenderer {
    /// Render the next bytes for a terminal of `width` columns.
    pub(super) fn render(&mut self, bytes: &[u8], width: usize) -> Vec<u8> {
        let mut shown = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.feed(piece, width, &mut shown);
        }
        shown
    }

    /// Render the rest of an unfinished line.
    pub(super) fn finish(&mut self, width: usize) -> Vec<u8> {
        let mut shown = Vec::new();
        self.close(width, &mut shown);
        shown
    }

    fn feed(&mut self, piece: &[u8], width: usize, shown: &mut Vec<u8>) {
        if self.state == LineState::Start {
            self.state = match piece.first() {
                Some(b'{') => LineState::Event,
                Some(_) => LineState::Other,
                None => return,
            };
        }
        match self.state {
            LineState::Start => {}
            LineState::Other => shown.extend_from_slice(piece),
            LineState::Skipped(length) => self.state = LineState::Skipped(length + piece.len()),
            LineState::Event => {
                self.line.extend_from_slice(piece);
                if self.line.len() > MAX_LINE_BYTES {
                    self.state = LineState::Skipped(self.line.len());
                    self.line = Vec::new();
                }
            }
        }
        if piece.ends_with(b"\n") {
            self.close(width, shown);
        }
    }

    fn close(&mut self, width: usize, shown: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.state) {
            LineState::Start | LineState::Other => {}
            LineState::Skipped(length) => {
                push_note(shown, &format!("(a line of {length} bytes)"), width);
            }
            LineState::Event => match serde_json::from_slice::<Value>(&line) {
                Ok(event) => render_event(&event, width, shown),
                Err(_) => shown.extend_from_slice(&line),
            },
        }
    }
}

fn render_event(event: &Value, width: usize, shown: &mut Vec<u8>) {
    match field(event, "type") {
        "assistant" | "user" => {
            let content = &event["message"]["content"];
            for block in content.as_array().into_iter().flatten() {
                render_block(block, width, shown);
            }
        }
        "result" => push_note(shown, &final_status(event), width),
        "system" if field(event, "subtype") == "init" => {
            push_note(shown, &format!("model {}", field(event, "model")), width);
        }
        // Progress in detail, without text.
        "system" | "stream_event" | "rate_limit_event" => {}
        _ => push_note(shown, &event.to_string(), width),
    }
}

fn render_block(block: &Value, width: usize, shown: &mut Vec<u8>) {
    match field(block, "type") {
        "text" => {
            for line in text::lines(field(block, "text").trim()) {
                shown.extend_from_slice(line.as_bytes());
                shown.extend_from_slice(b"\r\n");
            }
        }
        "tool_use" => {
            let input = match &block["input"] {
                Value::Null => String::new(),
                input => input.to_string(),
            };
            push_note(shown, &format!("> {} {input}", field(block, "name")), width);
        }
        "tool_result" => {
            let error = match block["is_error"].as_bool() {
                Some(true) => "error: ",
                Some(false) | None => "",
            };
            let result = tool_result(&block["content"]);
            push_note(shown, &format!("< {error}{result}"), width);
        }
        // Thinking, and types of later versions.
        _ => {}
    }
}

/// Return the text of a tool's result, which is a text or a list of texts.
fn tool_result(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| field(block, "text"));
            texts.collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Return the final status with turns, time and cost. The result's text is added only after a
/// failure, because otherwise it repeats the last message.
fn final_status(event: &Value) -> String {
    let has_failed = event["is_error"].as_bool() == Some(true);
    let how = if has_failed { "failed" } else { "done" };
    let mut parts = vec![how.to_owned()];
    if let Some(turns) = event["num_turns"].as_u64() {
        parts.push(format!("{turns} turns"));
    }
    if let Some(took) = event["duration_ms"].as_f64() {
        parts.push(format!("{:.1} s", took / 1_000.0));
    }
    if let Some(cost) = event["total_cost_usd"].as_f64() {
        parts.push(format!("${cost:.4}"));
    }
    let why = match has_failed {
        true => format!(": {}", field(event, "result")),
        false => String::new(),
    };
    format!("{}{why}", parts.join(", "))
}

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Add one dim line, no wider than the terminal.
fn push_note(shown: &mut Vec<u8>, note: &str, width: usize) {
    let line = text::one_line(note, width.max(1));
    let line = cut(&line, width);
    shown.extend_from_slice(format!("{DIM_STYLE}{line}{PLAIN_STYLE}\r\n").as_bytes());
}

/// Return the beginning of a line that fits into `width` columns.
fn cut(line: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &line[..at];
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Render the output in pieces of several sizes, and check that the result is the same.
    fn shown(output: &str, width: usize) -> String {
        let mut all = Vec::new();
        for size in [1, 7, output.len().max(1)] {
            let mut renderer = JsonRenderer::default();
            let mut shown = Vec::new();
            for piece in output.as_bytes().chunks(size) {
                shown.extend(renderer.render(piece, width));
            }
            shown.extend(renderer.finish(width));
            all.push(String::from_utf8(shown).unwrap());
        }
        assert!(all.iter().all(|shown| *shown == all[0]), "{all:?}");
        all.remove(0)
            .replace(DIM_STYLE, "")
            .replace(PLAIN_STYLE, "")
    }

    #[test]
    fn messages_tools_and_status_are_shown() {
        let assistant =
            |content: Value| json!({"type": "assistant", "message": {"content": content}});
        let gave = |content: Value| json!({"type": "user", "message": {"content": content}});
        let events = [
            json!({"type": "system", "subtype": "init", "model": "m-1", "tools": ["Bash"]}),
            json!({"type": "system", "subtype": "hook_started"}),
            assistant(json!([{"type": "thinking", "thinking": "hm"}])),
            assistant(json!([{"type": "text", "text": "I look.\nThen I build.\n"},
                {"type": "tool_use", "name": "Bash", "input": {"command": "ls\n-l"}}])),
            gave(json!([{"type": "tool_result", "content": "a\nb\nc"}])),
            gave(json!([{"type": "tool_result", "is_error": true,
                "content": [{"type": "text", "text": "no such file"}]}])),
            json!({"type": "result", "is_error": false, "num_turns": 3, "duration_ms": 1250,
                "total_cost_usd": 0.01234, "result": "Then I build."}),
            json!({"type": "result", "is_error": true, "result": "no credit"}),
            json!({"odd": 1}),
        ];
        let output: String = events.iter().map(|event| format!("{event}\r\n")).collect();
        let want = "model m-1\r\n\
            I look.\r\nThen I build.\r\n\
            > Bash {\"command\":\"ls\\n-l\"}\r\n\
            < a b c\r\n\
            < error: no such file\r\n\
            done, 3 turns, 1.2 s, $0.0123\r\n\
            failed: no credit\r\n\
            {\"odd\":1}\r\n";
        assert_eq!(shown(&output, 80), want);
    }

    #[test]
    fn control_characters_are_removed_and_notes_fit_the_terminal() {
        let bad = "\u{1b}[2J\u{7}\u{9b}x\r\u{1b}]0;t\u{7}漢字漢字漢字漢字漢字漢字";
        let event = json!({"type": "assistant", "message": {"content": [
            {"type": "text", "text": bad},
            {"type": "tool_use", "name": bad, "input": {"a": bad}}]}});
        let result = json!({"type": "result", "is_error": true, "result": bad});
        let shown = shown(&format!("{event}\n{result}\n"), 20);
        let acts = |c: char| c.is_control() && c != '\r' && c != '\n';
        assert!(!shown.contains(acts), "{shown:?}");
        let mut lines = shown.lines().rev();
        let widths = lines.by_ref().take(2).map(|line| {
            let width: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
            (line.to_owned(), width)
        });
        for (line, width) in widths {
            assert!((1..=20).contains(&width), "{width}: {line}");
        }
    }

    #[test]
    fn lines_that_are_not_events_pass_unchanged() {
        for output in [
            "Warning: \u{1b}[1mx\u{1b}[0m\r\nno end",
            "{not JSON}\r\n",
            "{\"cut\": ",
        ] {
            assert_eq!(
                shown(output, 80).replace(DIM_STYLE, ""),
                output.replace(PLAIN_STYLE, "")
            );
        }
        let long = format!("{{\"type\":\"{}\"}}\nafter\n", "x".repeat(MAX_LINE_BYTES));
        let mut renderer = JsonRenderer::default();
        let shown = String::from_utf8(renderer.render(long.as_bytes(), 80)).unwrap();
        assert!(
            shown.contains("(a line of ") && shown.ends_with("after\n"),
            "{shown}"
        );
    }
}
