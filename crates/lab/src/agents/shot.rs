//! Snapshot of an agent's terminal, and its file format: `fixtures/agents` has the states of each
//! agent as its real screen showed them.

use super::{Agent, BoxKind, Release, Sign, View};
use crate::pty::{Size, Terminal};
use alacritty_terminal::term::TermMode;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// State of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Asks whether to trust the directory, before anything else.
    Trust,
    /// Started and idle.
    Idle,
    /// A line is in the box.
    Draft,
    /// A paste of fifty lines is in the box.
    Pasted,
    /// A turn has ended.
    Answered,
    /// The model was asked and has not replied yet.
    Waiting,
    /// The model is replying.
    Busy,
    /// The model is replying, and a submitted line waits for the end of the reply.
    Queued,
    /// A reply was interrupted.
    Interrupted,
    /// Asks whether it may run a command.
    Dialog,
    /// The command was denied.
    Denied,
    /// The command was allowed and runs.
    Tool,
}

impl State {
    pub const ALL: [Self; 12] = [
        Self::Trust,
        Self::Idle,
        Self::Draft,
        Self::Pasted,
        Self::Answered,
        Self::Waiting,
        Self::Busy,
        Self::Queued,
        Self::Interrupted,
        Self::Dialog,
        Self::Denied,
        Self::Tool,
    ];

    /// Return whether an agent has this state. OpenCode trusts every directory, and Codex restarts
    /// its turn with text that is submitted meanwhile.
    pub fn is_known_of(self, agent: Agent) -> bool {
        let unknown = [(Self::Trust, Agent::OpenCode), (Self::Queued, Agent::Codex)];
        !unknown.contains(&(self, agent))
    }

    /// Return the activity that its screen must be recognised as.
    pub fn sign(self) -> Sign {
        match self {
            Self::Idle
            | Self::Draft
            | Self::Pasted
            | Self::Answered
            | Self::Interrupted
            | Self::Denied => Sign::Free,
            Self::Waiting | Self::Busy | Self::Queued | Self::Tool => Sign::Working,
            Self::Trust | Self::Dialog => Sign::Asking,
        }
    }

    /// Return the state that its input box must be recognised as.
    pub fn input_box(self) -> BoxKind {
        match self {
            Self::Idle
            | Self::Answered
            | Self::Waiting
            | Self::Busy
            | Self::Queued
            | Self::Interrupted
            | Self::Denied
            | Self::Tool => BoxKind::Empty,
            Self::Draft | Self::Pasted => BoxKind::Holds,
            Self::Trust | Self::Dialog => BoxKind::Hidden,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Idle => "idle",
            Self::Draft => "draft",
            Self::Pasted => "pasted",
            Self::Answered => "answered",
            Self::Waiting => "waiting",
            Self::Busy => "busy",
            Self::Queued => "queued",
            Self::Interrupted => "interrupted",
            Self::Dialog => "dialog",
            Self::Denied => "denied",
            Self::Tool => "tool",
        }
    }
}

/// The screen, and terminal state that is not on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shot {
    pub screen: Vec<String>,
    pub beside: Beside,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    pub title: String,
    /// Row and column, counted from 0.
    pub cursor: (usize, usize),
    pub cursor_shown: bool,
    pub bracketed_paste: bool,
    pub alternate_screen: bool,
    /// Latest OSC 7501 of the program, if any.
    pub osc_7501: Option<String>,
}

impl Shot {
    pub fn of(terminal: &Terminal) -> Self {
        let mode = terminal.mode();
        let beside = Beside {
            title: terminal.title().to_owned(),
            cursor: terminal.cursor(),
            cursor_shown: mode.contains(TermMode::SHOW_CURSOR),
            bracketed_paste: mode.contains(TermMode::BRACKETED_PASTE),
            alternate_screen: mode.contains(TermMode::ALT_SCREEN),
            osc_7501: last_osc(terminal.output(), "7501"),
        };
        Self {
            screen: terminal.screen(),
            beside,
        }
    }

    /// Return whether a row contains a text.
    pub fn has(&self, text: &str) -> bool {
        self.screen.iter().any(|line| line.contains(text))
    }

    /// Return whether the screen contains a text, possibly wrapped over several rows of a frame.
    pub fn has_wrapped(&self, text: &str) -> bool {
        let is_frame = |c: char| c.is_whitespace() || "│┃".contains(c);
        let rows = self.screen.iter().map(|row| row.trim_matches(is_frame));
        rows.collect::<Vec<_>>().join(" ").contains(text)
    }

    /// Read a snapshot from its file format.
    pub fn load(release: &Release, size: Size, state: State) -> std::io::Result<Self> {
        Self::read(release, size, state.name())
    }

    pub fn load_view(release: &Release, size: Size, view: &View) -> std::io::Result<Self> {
        Self::read(release, size, &view.file())
    }

    pub fn keep(&self, release: &Release, size: Size, state: State) -> std::io::Result<()> {
        self.write(release, size, state.name())
    }

    pub fn keep_view(&self, release: &Release, size: Size, view: &View) -> std::io::Result<()> {
        self.write(release, size, &view.file())
    }

    fn read(release: &Release, size: Size, name: &str) -> std::io::Result<Self> {
        let (screen, beside) = files(release, size, name);
        let screen = std::fs::read_to_string(screen)?;
        let beside = serde_json::from_str(&std::fs::read_to_string(beside)?)?;
        Ok(Self {
            screen: screen.lines().map(str::to_owned).collect(),
            beside,
        })
    }

    fn write(&self, release: &Release, size: Size, name: &str) -> std::io::Result<()> {
        let (screen, beside) = files(release, size, name);
        std::fs::create_dir_all(screen.parent().unwrap_or(&screen))?;
        std::fs::write(screen, self.screen.join("\n") + "\n")?;
        std::fs::write(beside, serde_json::to_string_pretty(&self.beside)? + "\n")
    }
}

fn files(release: &Release, size: Size, name: &str) -> (PathBuf, PathBuf) {
    let fixtures = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/agents"));
    let folder = fixtures.join(release.folder()).join(size.to_string());
    let file = folder.join(name);
    (file.with_extension("txt"), file.with_extension("json"))
}

fn last_osc(output: &[u8], number: &str) -> Option<String> {
    let output = String::from_utf8_lossy(output);
    let begin = format!("\x1b]{number};");
    let (_, text) = output.rsplit_once(&begin)?;
    let end = text.find(['\x07', '\x1b'])?;
    Some(text[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_osc_counts() {
        let output = b"\x1b]7501;state=idle\x07x\x1b]7501;state=working\x1b\\\x1b]0;title\x07";
        assert_eq!(last_osc(output, "7501").as_deref(), Some("state=working"));
        assert_eq!(last_osc(b"\x1b]7501;cut", "7501"), None);
        assert_eq!(last_osc(b"plain", "7501"), None);
    }
}
