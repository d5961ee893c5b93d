//! Invalid command lines: the error to print, its hint, and the exit code.

use crate::cli::prelude::*;
use crate::output;
use anstream::ColorChoice;
use anstream::adapter::strip_str;
use anstyle::AnsiColor;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Print the error in `words`, or the help text that they request.
pub(crate) fn tell(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(choice) = color(&words) {
        choice.write_global();
    }
    if !error.use_stderr() {
        output::to_stdout(&error.render().ansi().to_string());
        return Code::Ok.into();
    }
    if verb(&words) == Some("hook") && !std::io::stderr().is_terminal() {
        // The caller is an agent, which must neither fail nor see an error.
        return Code::Ok.into();
    }
    let code = match split_text(error, &words) {
        Some(report) => output::show(&report),
        None => {
            output::to_stderr(&parser_message(error, &words));
            Code::Usage.into()
        }
    };
    let is_hook = match verb(&words) {
        Some("check") => words.iter().any(|word| word == "--inject"),
        verb => verb == Some("hook"),
    };
    if is_hook {
        // An agent must never fail because of its mail, even if its hook command is invalid.
        return Code::Ok.into();
    }
    let is_script = verb(&words) == Some("provider") && !words.iter().any(|word| word == "test");
    if is_script {
        // In the protocol of mail providers, exit code 2 means an unknown operation.
        return ExitCode::FAILURE;
    }
    code
}

/// Convert the error to a report, for a caller in this process.
pub(crate) fn report(error: &clap::Error) -> Report {
    // The invalid value may be long and have several lines: the parser's message is enough.
    let message = match std::error::Error::source(error) {
        Some(complaint) => complaint.to_string(),
        None => error.render().to_string(),
    };
    let (first, rest) = message.split_once("\n\n").unwrap_or((&message, ""));
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let report = Report::usage(text::one_line(first, 300));
    match rest.trim_start().strip_prefix("tip: ") {
        Some(rest) => report.hint(rest.lines().next().unwrap_or_default()),
        None => report,
    }
}

/// Return the parser's message. It repeats the typed words, which must not act on a terminal.
fn parser_message(error: &clap::Error, words: &[String]) -> String {
    if words.iter().all(|word| text::visible(word) == *word) {
        return with_hints(&error.render().ansi().to_string());
    }
    with_hints(&text::visible(&error.render().to_string()))
}

/// Turn the parser's tips into `hint:` lines, directly below the error.
fn with_hints(message: &str) -> String {
    let cyan = AnsiColor::Cyan.on_default();
    let mut lines: Vec<String> = Vec::new();
    for line in message.lines() {
        let plain = strip_str(line).to_string();
        match plain.trim_start().strip_prefix("tip: ") {
            Some(tip) => {
                lines.pop_if(|before| before.is_empty());
                lines.push(format!("{cyan}hint:{cyan:#} {tip}"));
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Report a message text that the parser took apart: text that begins with '-', or several words
/// without quotes. The parser's own tips fit neither.
fn split_text(error: &clap::Error, words: &[String]) -> Option<Report> {
    let dash = match verb(words)? {
        "send" | "reply" => "text that begins with '-' goes after '--', or in -m",
        "message" => "text that begins with '-' goes after '--'",
        _ => return None,
    };
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::UnknownArgument || flag.starts_with("--") {
        return None;
    }
    let whole = words.iter().find(|word| word.starts_with(flag.as_str()))?;
    let shown = text::one_line(whole, 40);
    let hint = if whole.starts_with('-') {
        dash
    } else {
        "put text of several words in quotes"
    };
    Some(Report::usage(format!("unexpected argument '{shown}'")).hint(hint))
}

fn verb(words: &[String]) -> Option<&str> {
    let mut words = words.iter().skip(1);
    loop {
        match words.next()?.as_str() {
            "--home" | "--color" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return Some(word),
        }
    }
}

/// Find --color in a command line that is otherwise invalid.
fn color(words: &[String]) -> Option<ColorChoice> {
    let at = words.iter().position(|word| word.starts_with("--color"))?;
    let choice = match words[at].strip_prefix("--color=") {
        Some(choice) => choice,
        None => words.get(at + 1)?,
    };
    match choice {
        "always" => Some(ColorChoice::Always),
        "never" => Some(ColorChoice::Never),
        _ => None,
    }
}
