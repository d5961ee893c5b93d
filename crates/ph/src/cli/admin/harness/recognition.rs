//! `ph harness match`: what a manifest recognises on a captured screen.
//!
//! Draws the capture on a screen like that of a session, so that both recognise the same. Starts no
//! program.

use crate::cli::prelude::*;
use posthaste_core::harness::{BoxState, Glance, Manifest, Says, Sighting, version};
use posthaste_screen::{Screen, Size};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use unicode_width::UnicodeWidthStr;

/// Limits for a capture.
const MAX_CAPTURE_BYTES: u64 = 1 << 20;
const MAX_CAPTURE_ROWS: usize = 1_000;
const MAX_CAPTURE_COLUMNS: u16 = 1_000;
/// Minimum width of the assumed terminal.
const MIN_TERMINAL_COLUMNS: u16 = 20;
/// Maximum number of characters shown of a text in the input box.
const MAX_SHOWN_CHARS: usize = 200;
/// The hint for an invalid --cursor.
const CURSOR_HINT: &str = "write --cursor as COLUMN,ROW, counted from 0: --cursor 2,21";

/// Show what a harness recognises on a captured screen
///
/// Prints whether the input box is empty, holds a text or is not recognised (and why), which dialog
/// is open, what the screen says about the agent's activity, and the agent's version. FILE is a
/// text with the rows of the screen, without colours.
///
/// Exits with 0 if the input box is recognised as empty, else with 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tmux capture-pane -p | ph harness match claude - --cursor 2,21
  tmux display-message -p '#{cursor_x},#{cursor_y}'
  ph harness match my-agent screen.txt --title '* my-agent' --json")]
pub(super) struct MatchArgs {
    /// Harness name
    #[arg(value_name = "NAME", add = complete_harnesses())]
    pub(super) name: String,
    /// Captured screen; '-' is standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Column and row of the cursor, both counted from 0 [default: the end of the text in the last
    /// row that matches the prompt, or the start of the hint if the box shows one]
    #[arg(long, value_name = "COLUMN,ROW", value_parser = Cursor::parse)]
    cursor: Option<Cursor>,
    /// Treat the cursor as hidden by the program (tmux: #{cursor_flag} is 0)
    #[arg(long)]
    hidden_cursor: bool,
    /// Terminal title
    #[arg(long, value_name = "TEXT", value_parser = plain)]
    title: Option<String>,
    /// Last status note (OSC) of the program, for a harness that reads status notes
    #[arg(long, value_name = "TEXT", value_parser = plain)]
    note: Option<String>,
    /// Terminal width [default: that of the widest row, at least 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_CAPTURE_COLUMNS)))]
    columns: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    column: usize,
    row: usize,
}

impl Cursor {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let (column, row) = text.split_once(',').ok_or(CURSOR_HINT)?;
        let number = |text: &str| text.trim().parse().map_err(|_| CURSOR_HINT.to_owned());
        Ok(Self {
            column: number(column)?,
            row: number(row)?,
        })
    }
}

fn plain(text: &str) -> std::result::Result<String, String> {
    match text.chars().any(char::is_control) {
        true => Err("the value contains a control character".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// A captured screen.
struct Capture {
    rows: Vec<String>,
    columns: u16,
    cursor: Cursor,
    is_cursor_assumed: bool,
}

pub(super) fn run(context: &mut Context, manifest: &Manifest, args: &MatchArgs) -> Result<Code> {
    if args.note.is_some() && manifest.activity.osc.is_none() {
        return Err(Report::usage(format!(
            "harness {} does not read OSC status notes",
            manifest.name
        ))
        .hint("leave --note out, or add [activity.osc] to the harness"));
    }
    let capture = Capture::read(manifest, args)?;
    let screen = capture.draw();
    let (lines, cursor) = screen.foot(manifest.lines());
    let sighting = manifest.recognise(&Glance {
        title: args.title.as_deref(),
        osc: args.note.as_deref(),
        lines: &lines,
        cursor,
        before: &screen.before_cursor(),
        cursor_shown: !args.hidden_cursor,
        columns: capture.columns.into(),
        output: 0,
    });
    print(context, manifest, &capture, &sighting)?;
    Ok(match sighting.input_box {
        BoxState::Empty => Code::Ok,
        BoxState::Undescribed | BoxState::Unrecognised(_) | BoxState::Holds(_) => Code::No,
    })
}

impl Capture {
    fn read(manifest: &Manifest, args: &MatchArgs) -> Result<Self> {
        let (name, text) = read_file(&args.file)?;
        let rows = rows_of(&name, &text)?;
        let input_box = manifest.input_box.as_ref();
        let likely = input_box.and_then(|input_box| input_box.likely_cursor(&rows));
        let cursor = args.cursor.unwrap_or_else(|| {
            let last = rows.iter().rposition(|row| !row.trim().is_empty());
            let last = last.unwrap_or_default();
            let (row, column) = likely.unwrap_or((last, rows[last].width()));
            Cursor { column, row }
        });
        if cursor.row >= rows.len() {
            return Err(Report::usage(format!(
                "--cursor row {} is outside {name}: its last row is {}",
                cursor.row,
                rows.len() - 1
            ))
            .hint(CURSOR_HINT));
        }
        let columns = columns_of(&name, &rows, cursor, args.columns)?;
        if cursor.column >= usize::from(columns) && args.cursor.is_some() {
            return Err(Report::usage(format!(
                "--cursor column {} is outside the screen: it has {columns} columns",
                cursor.column
            ))
            .hint(CURSOR_HINT));
        }
        Ok(Self {
            rows,
            columns,
            cursor,
            is_cursor_assumed: args.cursor.is_none(),
        })
    }

    fn draw(&self) -> Screen {
        let rows = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let cols = self.columns;
        let mut screen = Screen::new(Size { cols, rows }, 0);
        for (row, text) in (1..).zip(&self.rows) {
            screen.feed(format!("\x1b[{row};1H{text}").as_bytes());
        }
        let Cursor { column, row } = self.cursor;
        screen.feed(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
        screen
    }
}

/// Read the capture. Return its display name and its text.
fn read_file(path: &Path) -> Result<(String, String)> {
    let is_stdin = path == Path::new("-");
    let name = match is_stdin {
        true => "standard input".to_owned(),
        false => text::visible(&path.to_string_lossy()),
    };
    let mut bytes = Vec::new();
    let read = if is_stdin {
        let input = std::io::stdin().lock();
        input.take(MAX_CAPTURE_BYTES + 1).read_to_end(&mut bytes)
    } else {
        let opened = OpenOptions::new().read(true).open(path);
        opened.and_then(|file| file.take(MAX_CAPTURE_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        let report = Report::usage(format!("cannot read {name}: {error}"));
        match error.kind() {
            ErrorKind::NotFound => report.hint("'-' reads a screen from standard input"),
            _ => report,
        }
    })?;
    if bytes.len() as u64 > MAX_CAPTURE_BYTES {
        return Err(too_large(
            &name,
            &format!("{} MiB", MAX_CAPTURE_BYTES >> 20),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to() + 1;
        Report::usage(format!("{name} is not UTF-8: see byte {byte}"))
    })?;
    Ok((name, text))
}

fn too_large(name: &str, limit: &str) -> Report {
    Report::usage(format!("{name} has more than {limit}"))
        .hint("capture only the visible screen: tmux capture-pane -p")
}

fn rows_of(name: &str, text: &str) -> Result<Vec<String>> {
    let rows: Vec<String> = text.lines().map(str::to_owned).collect();
    if rows.is_empty() {
        return Err(Report::usage(format!("{name} is empty"))
            .hint("capture the screen first: tmux capture-pane -p > FILE"));
    }
    if rows.len() > MAX_CAPTURE_ROWS {
        return Err(too_large(name, &format!("{MAX_CAPTURE_ROWS} rows")));
    }
    for (at, row) in rows.iter().enumerate() {
        if let Some(control) = row.chars().find(|c| c.is_control()) {
            return Err(Report::usage(format!(
                "row {at} of {name} has a control character ({})",
                control.escape_unicode()
            ))
            .hint("capture plain text: 'tmux capture-pane -p' without '-e'"));
        }
    }
    Ok(rows)
}

/// Return the terminal width, which no row may exceed.
fn columns_of(name: &str, rows: &[String], cursor: Cursor, given: Option<u16>) -> Result<u16> {
    let widths = rows.iter().map(|row| row.width()).enumerate();
    let (at, widest) = widths.max_by_key(|(_, width)| *width).unwrap_or_default();
    let limit = given.unwrap_or(MAX_CAPTURE_COLUMNS);
    if widest > usize::from(limit) {
        return Err(Report::usage(format!(
            "row {at} of {name} is {widest} columns wide, and the screen has at most {limit}"
        ))
        .hint("--columns N sets the terminal width"));
    }
    let least = widest.max(
        cursor
            .column
            .min(MAX_CAPTURE_COLUMNS.into())
            .saturating_add(1),
    );
    let least = u16::try_from(least).unwrap_or(MAX_CAPTURE_COLUMNS);
    Ok(given.unwrap_or(least.clamp(MIN_TERMINAL_COLUMNS, MAX_CAPTURE_COLUMNS)))
}

fn activity_name(says: Says) -> &'static str {
    match says {
        Says::Working => "working",
        Says::Idle => "idle",
        Says::Blocked => "blocked",
    }
}

fn print(
    context: &mut Context,
    manifest: &Manifest,
    capture: &Capture,
    sighting: &Sighting,
) -> Result<()> {
    let (input_box, input_box_json) = describe_box(&sighting.input_box);
    let Cursor { column, row } = capture.cursor;
    let is_assumed = capture.is_cursor_assumed;
    let version = manifest.version.on_screen(&capture.rows);
    if context.json {
        let claims = sighting.claims.iter().map(|claim| {
            json!({
                "source": claim.source.as_str(), "says": activity_name(claim.says),
                "evidence": claim.evidence,
            })
        });
        let mut value = json!({
            "harness": manifest.name,
            "columns": capture.columns,
            "cursor": { "column": column, "row": row, "assumed": is_assumed },
            "input_box": input_box_json,
            "dialog": sighting.dialog,
            "claims": claims.collect::<Vec<_>>(),
            "version": version,
        });
        if version.is_some_and(|version| manifest.version.is_untested(&version)) {
            value["untested"] = json!(true);
        }
        return context.out.json(&value);
    }
    let assumed = if is_assumed { " (assumed)" } else { "" };
    let mut lines = vec![
        ("input box", input_box),
        ("cursor", format!("{column},{row}{assumed}")),
        (
            "dialog",
            sighting.dialog.clone().unwrap_or_else(|| "none".to_owned()),
        ),
    ];
    lines.extend(sighting.claims.iter().map(|claim| {
        let activity = format!("{}: {}", activity_name(claim.says), claim.evidence);
        ("activity", activity)
    }));
    if sighting.claims.is_empty() {
        lines.push(("activity", "no claim".to_owned()));
    }
    let tested = manifest.version.tested_instead(version.as_deref());
    let version = version.map(|version| version::described(&version, tested));
    lines.push(("version", version.unwrap_or_else(|| "not shown".to_owned())));
    let lines = lines.into_iter().map(|(name, value)| (name, Some(value)));
    fields(context, lines)
}

/// Describe the state of the input box in words and as JSON.
fn describe_box(state: &BoxState) -> (String, Value) {
    match state {
        BoxState::Undescribed => (
            "undescribed: the harness has no [input_box]".to_owned(),
            json!({ "state": "undescribed" }),
        ),
        BoxState::Unrecognised(mismatch) => (
            format!("unrecognised: {mismatch}"),
            json!({
                "state": "unrecognised", "expected": mismatch.expected, "found": mismatch.found,
            }),
        ),
        BoxState::Empty => ("empty".to_owned(), json!({ "state": "empty" })),
        BoxState::Holds(held) => {
            let start = if held.is_scrolled { "… " } else { "" };
            let text = text::one_line(&held.text, MAX_SHOWN_CHARS);
            (
                format!("holds: {start}{text}"),
                json!({ "state": "holds", "text": held.text, "scrolled": held.is_scrolled }),
            )
        }
    }
}
