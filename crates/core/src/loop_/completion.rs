//! Whether the agent itself has written that all is done.
//!
//! The token stands in prompts and specs too, and agents show those. So it counts only as the
//! agent's last word: alone in its line, with nothing said after it, and not where the line before
//! it is the one before it in the prompt. Holds the end of the output, and no more.

use super::plain::{is_frame, plain};
use serde_json::Value;

/// What an agent writes when all is done and it has no tool to say so.
pub const TOKEN: &str = "<promise>COMPLETE</promise>";

/// How much of the output's end is kept: a last answer with what a program says of its cost.
const TAIL: usize = 256 << 10;
/// Where the formats of headless agents keep what is said.
const SAID: [&str; 5] = ["text", "content", "result", "response", "message"];
/// What a program may say after the agent's last word: Codex's account, of which the number is on
/// the next line.
const ACCOUNT: &str = "tokens used";
/// The line after which Codex shows what it was given.
const GIVEN: &str = "user";

/// Keeps the end of one iteration's output, and looks for the token in it.
#[derive(Debug)]
pub struct Detector {
    /// What stands before each token of the prompt.
    marks: Vec<String>,
    tail: Vec<u8>,
    is_suppressed: bool,
}

impl Detector {
    /// For an agent that was given this prompt.
    pub fn new(prompt: &str) -> Self {
        Self {
            marks: marks(prompt),
            tail: Vec::new(),
            is_suppressed: false,
        }
    }

    /// Takes what the agent has written, in pieces of any size.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.is_suppressed {
            return;
        }
        self.tail.extend_from_slice(bytes);
        // Seldom, so that little is moved.
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// The output has ended: whether its last word is that all is done.
    pub fn finish(&self) -> bool {
        let start = self.tail.len().saturating_sub(TAIL);
        let output = plain(&String::from_utf8_lossy(&self.tail[start..]));
        let mut lines = said(&output);
        lines.retain(|line| !is_account(line));
        let Some(before) = before_last_word(&lines) else {
            return false;
        };
        let begins = before.last().is_none_or(|line| line == GIVEN);
        let before: String = before.iter().map(|line| letters(line)).collect();
        let is_echo = |mark: &String| match mark.is_empty() {
            true => begins || before.is_empty(),
            false => before.ends_with(mark.as_str()),
        };
        !self.marks.iter().any(is_echo)
    }

    /// What is written in interactive mode counts for nothing, then and later.
    pub fn set_interactive(&mut self, is_interactive: bool) {
        self.is_suppressed = is_interactive;
        if is_interactive {
            self.tail.clear();
        }
    }
}

/// The letters of the last line that says something before each token of the prompt, or of the
/// same line as far as it comes before it.
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

/// The lines before the token, where it is what the last ones are. More than one line where a
/// narrow window, or a stream, has broken it.
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

/// Whether a line is a program's account of its work: figures, and no word.
fn is_account(line: &str) -> bool {
    line.starts_with(ACCOUNT) || !line.contains(char::is_alphabetic)
}

/// The lines that say something, without what is drawn around them.
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

/// An object in JSON that begins here, and what follows it.
fn json(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// Adds what a value in JSON says. What a tool was given or gave, and what the person said, is not
/// the agent's word.
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
                gather(value, SAID.contains(&name.as_str()), lines);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A line without frames, marks of emphasis and quotes around it; nothing where that is all.
fn bare(line: &str) -> Option<String> {
    let line = line.trim_matches(|c| is_frame(c) || matches!(c, '*' | '_' | '`' | '"' | '\''));
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests;
