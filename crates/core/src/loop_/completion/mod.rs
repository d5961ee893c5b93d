//! Detects that the agent itself has written the completion token.
//!
//! Prompts and specs contain the token too, and agents echo them. So the token counts only as the
//! agent's last line, alone, and not after the line that precedes it in the prompt. Keeps only the
//! end of the output.

mod plain;

use plain::{is_frame, plain};
use serde_json::Value;

/// The text that an agent without a completion tool writes when all work is done.
pub const TOKEN: &str = "<promise>COMPLETE</promise>";

/// Number of kept bytes at the end of the output: room for a last answer and a program's usage
/// summary.
const TAIL_BYTES: usize = 256 << 10;
/// JSON fields in which headless agents' formats have their text.
const TEXT_FIELDS: [&str; 5] = ["text", "content", "result", "response", "message"];
/// Begins Codex's usage summary after the last answer; the figure is on the next line.
const USAGE_LINE: &str = "tokens used";
/// The line after which Codex shows its prompt.
const PROMPT_LINE: &str = "user";

/// Keeps the end of one iteration's output and searches it for the token.
#[derive(Debug)]
pub struct Detector {
    /// The lines before each token of the prompt.
    marks: Vec<String>,
    tail: Vec<u8>,
    is_suppressed: bool,
}

impl Detector {
    /// For an agent that was given `prompt`.
    pub fn new(prompt: &str) -> Self {
        Self {
            marks: marks(prompt),
            tail: Vec::new(),
            is_suppressed: false,
        }
    }

    /// Add output, in pieces of any size.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.is_suppressed {
            return;
        }
        self.tail.extend_from_slice(bytes);
        // Trim rarely, so that little is copied.
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
    }

    /// Whether the finished output ends with the completion token.
    pub fn finish(&self) -> bool {
        let start = self.tail.len().saturating_sub(TAIL_BYTES);
        let output = plain(&String::from_utf8_lossy(&self.tail[start..]));
        let mut lines = said(&output);
        lines.retain(|line| !is_account(line));
        let Some(before) = before_last_word(&lines) else {
            return false;
        };
        let begins = before.last().is_none_or(|line| line == PROMPT_LINE);
        let before: String = before.iter().map(|line| letters(line)).collect();
        let is_echo = |mark: &String| match mark.is_empty() {
            true => begins || before.is_empty(),
            false => before.ends_with(mark.as_str()),
        };
        !self.marks.iter().any(is_echo)
    }

    /// Ignore output in interactive mode, permanently.
    pub fn set_interactive(&mut self, is_interactive: bool) {
        self.is_suppressed = is_interactive;
        if is_interactive {
            self.tail.clear();
        }
    }
}

/// Return the letters of the last line of text before each token of the prompt, or of the token's
/// own line up to the token.
fn marks(prompt: &str) -> Vec<String> {
    let before = |at: usize| {
        let lines = prompt[..at].lines().rev().map(letters);
        let mut lines = lines.filter(|line| !line.is_empty());
        lines.next().unwrap_or_default()
    };
    let tokens = prompt.match_indices(TOKEN);
    tokens.map(|(at, _)| before(at)).collect()
}

fn letters(line: &str) -> String {
    line.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Return the lines before the token if the output ends with it. A narrow window or a stream can
/// break the token over several lines.
fn before_last_word(lines: &[String]) -> Option<&[String]> {
    let mut word = String::new();
    for (at, line) in lines.iter().enumerate().rev() {
        word.insert_str(0, line);
        if word == TOKEN {
            return Some(&lines[..at]);
        }
        if !TOKEN.ends_with(&word) {
            return None;
        }
    }
    None
}

/// Whether a line of a usage summary has figures and no words.
fn is_account(line: &str) -> bool {
    line.starts_with(USAGE_LINE) || !line.contains(char::is_alphabetic)
}

/// Return the lines of text, without the frames around them.
fn said(output: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = output;
    while !rest.is_empty() {
        rest = rest.trim_start();
        if let Some((value, after)) = json(rest) {
            gather(&value, false, &mut lines);
            rest = after;
            continue;
        }
        let (line, after) = rest.split_once(['\n', '\r']).unwrap_or((rest, ""));
        lines.extend(bare(line));
        rest = after;
    }
    lines
}

/// Parse the JSON object at the beginning of a text; return it and the rest.
fn json(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// Collect the agent's text from a JSON value. Tool input, tool results and the person's text do
/// not count.
fn gather(value: &Value, is_said: bool, lines: &mut Vec<String>) {
    match value {
        Value::String(text) if is_said => {
            let text = plain(text);
            lines.extend(text.split(['\n', '\r']).filter_map(bare));
        }
        Value::Array(values) => {
            for value in values {
                gather(value, is_said, lines);
            }
        }
        Value::Object(fields) => {
            let word = |name| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            let is_other = |who: &str| who == "user" || who.contains("tool");
            if is_other(word("type")) || is_other(word("role")) {
                return;
            }
            for (name, value) in fields {
                gather(value, TEXT_FIELDS.contains(&name.as_str()), lines);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Return a line without frames, emphasis and quotes; `None` if nothing is left.
fn bare(line: &str) -> Option<String> {
    let line = line.trim_matches(|c| is_frame(c) || matches!(c, '*' | '_' | '`' | '"' | '\''));
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests;
