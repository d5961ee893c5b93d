//! What a headless agent writes as JSON, a line an event, as people read it: its text as text, a
//! line for a tool call and one for what came of it, and how it ended.
//!
//! For the eyes alone: whether the work is done is judged by the agent's own bytes. What stands in
//! the JSON is text from outside: nothing of it acts on the terminal. What is no such line passes
//! as it is.

use posthaste_core::text;
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

/// A longer line is not read.
const LONGEST: usize = 4 << 20;
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Turns one agent's output into what is shown, in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    state: State,
}

/// What the line is that has begun.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// It may be an event, and is kept until it has ended.
    Event,
    /// It is none, and passes.
    Other,
    /// It is too long to be read.
    Skipped(usize),
}

impl Reader {
    /// What is shown of the next bytes, on a terminal of this width.
    pub(super) fn read(&mut self, bytes: &[u8], width: usize) -> Vec<u8> {
        let mut shown = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.take(piece, width, &mut shown);
        }
        shown
    }

    /// What is left of a line that never ended.
    pub(super) fn finish(&mut self, width: usize) -> Vec<u8> {
        let mut shown = Vec::new();
        self.close(width, &mut shown);
        shown
    }

    fn take(&mut self, piece: &[u8], width: usize, shown: &mut Vec<u8>) {
        if self.state == State::Start {
            self.state = match piece.first() {
                Some(b'{') => State::Event,
                Some(_) => State::Other,
                None => return,
            };
        }
        match self.state {
            State::Start => {}
            State::Other => shown.extend_from_slice(piece),
            State::Skipped(length) => self.state = State::Skipped(length + piece.len()),
            State::Event => {
                self.line.extend_from_slice(piece);
                if self.line.len() > LONGEST {
                    self.state = State::Skipped(self.line.len());
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
            State::Start | State::Other => {}
            State::Skipped(length) => note(shown, &format!("(a line of {length} bytes)"), width),
            State::Event => match serde_json::from_slice::<Value>(&line) {
                Ok(event) => tell(&event, width, shown),
                Err(_) => shown.extend_from_slice(&line),
            },
        }
    }
}

fn tell(event: &Value, width: usize, shown: &mut Vec<u8>) {
    match word(event, "type") {
        "assistant" | "user" => {
            let content = &event["message"]["content"];
            for block in content.as_array().into_iter().flatten() {
                tell_block(block, width, shown);
            }
        }
        "result" => note(shown, &result(event), width),
        "system" if word(event, "subtype") == "init" => {
            note(shown, &format!("model {}", word(event, "model")), width);
        }
        // How it gets on in detail; nothing that is said.
        "system" | "stream_event" | "rate_limit_event" => {}
        _ => note(shown, &event.to_string(), width),
    }
}

fn tell_block(block: &Value, width: usize, shown: &mut Vec<u8>) {
    match word(block, "type") {
        "text" => {
            for line in text::lines(word(block, "text").trim()) {
                shown.extend_from_slice(line.as_bytes());
                shown.extend_from_slice(b"\r\n");
            }
        }
        "tool_use" => {
            let input = match &block["input"] {
                Value::Null => String::new(),
                input => input.to_string(),
            };
            note(shown, &format!("> {} {input}", word(block, "name")), width);
        }
        "tool_result" => {
            let error = match block["is_error"].as_bool() {
                Some(true) => "error: ",
                Some(false) | None => "",
            };
            let said = said(&block["content"]);
            note(shown, &format!("< {error}{said}"), width);
        }
        // What it thinks, and what is yet to come.
        _ => {}
    }
}

/// What a tool gave, which may be a text or a list of them.
fn said(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| word(block, "text"));
            texts.collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// How it ended: turns, time and cost as far as they are there; what it says only where it failed,
/// as else it has said so already.
fn result(event: &Value) -> String {
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
        true => format!(": {}", word(event, "result")),
        false => String::new(),
    };
    format!("{}{why}", parts.join(", "))
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// One dim line, no wider than the terminal.
fn note(shown: &mut Vec<u8>, said: &str, width: usize) {
    let line = text::one_line(said, width.max(1));
    let line = cut(&line, width);
    shown.extend_from_slice(format!("{DIM}{line}{PLAIN}\r\n").as_bytes());
}

/// As much of a line as fits, by the columns that it takes.
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

    /// What is shown, however the output is cut.
    fn shown(output: &str, width: usize) -> String {
        let mut all = Vec::new();
        for size in [1, 7, output.len().max(1)] {
            let mut reader = Reader::default();
            let mut shown = Vec::new();
            for piece in output.as_bytes().chunks(size) {
                shown.extend(reader.read(piece, width));
            }
            shown.extend(reader.finish(width));
            all.push(String::from_utf8(shown).unwrap());
        }
        assert!(all.iter().all(|shown| *shown == all[0]), "{all:?}");
        all.remove(0).replace(DIM, "").replace(PLAIN, "")
    }

    #[test]
    fn what_is_said_and_done_is_told() {
        let said = |content: Value| json!({"type": "assistant", "message": {"content": content}});
        let gave = |content: Value| json!({"type": "user", "message": {"content": content}});
        let events = [
            json!({"type": "system", "subtype": "init", "model": "m-1", "tools": ["Bash"]}),
            json!({"type": "system", "subtype": "hook_started"}),
            said(json!([{"type": "thinking", "thinking": "hm"}])),
            said(json!([{"type": "text", "text": "I look.\nThen I build.\n"},
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
    fn nothing_in_it_acts_and_no_line_is_wider_than_the_terminal() {
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
    fn what_is_no_event_passes_as_it_is() {
        for output in [
            "Warning: \u{1b}[1mx\u{1b}[0m\r\nno end",
            "{not JSON}\r\n",
            "{\"cut\": ",
        ] {
            assert_eq!(
                shown(output, 80).replace(DIM, ""),
                output.replace(PLAIN, "")
            );
        }
        let long = format!("{{\"type\":\"{}\"}}\nafter\n", "x".repeat(LONGEST));
        let mut reader = Reader::default();
        let shown = String::from_utf8(reader.read(long.as_bytes(), 80)).unwrap();
        assert!(
            shown.contains("(a line of ") && shown.ends_with("after\n"),
            "{shown}"
        );
    }
}
