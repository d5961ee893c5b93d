//! What can be told from an agent's terminal, as far as the lab needs it: whether it waits for a
//! prompt, works, or asks something. Pure, and tried on every fixture.

use super::{Agent, Shot};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Its box takes a prompt.
    Free,
    Working,
    /// A dialog is open: Enter would be an answer.
    Asking,
    /// Nothing that we know; it may be starting.
    Unknown,
}

impl Agent {
    pub fn sign(self, shot: &Shot) -> Sign {
        if self.asks(shot) {
            Sign::Asking
        } else if self.works(shot) {
            Sign::Working
        } else if self.has_box(shot) {
            Sign::Free
        } else {
            Sign::Unknown
        }
    }

    fn asks(self, shot: &Shot) -> bool {
        match self {
            Self::Claude => shot.has("Do you want to proceed?"),
            Self::Codex => shot.has("Would you like to run the following command?"),
            Self::OpenCode => shot.has("Permission required"),
            Self::Gemini => shot.has("Allow execution of"),
        }
    }

    fn works(self, shot: &Shot) -> bool {
        let title = &shot.beside.title;
        match self {
            Self::Claude => shot.has("esc to interrupt") || !title.starts_with('✳'),
            Self::Codex => title.starts_with(is_spinner),
            Self::OpenCode => shot.has("esc interrupt") || shot.has("esc again to interrupt"),
            Self::Gemini => shot.has("esc to cancel") || title.contains("Working"),
        }
    }

    fn has_box(self, shot: &Shot) -> bool {
        let begins = |text: &str| shot.screen.iter().any(|line| line.starts_with(text));
        match self {
            Self::Claude => begins("❯"),
            Self::Codex => begins("›") && shot.beside.osc_7501.is_some(),
            Self::OpenCode => shot.has("ctrl+p commands"),
            Self::Gemini => begins(" >") && shot.beside.title.contains("Ready"),
        }
    }

    /// Whether nothing stands in its box: the cursor is at its beginning. What is shown there may
    /// be a hint.
    pub fn has_empty_box(self, shot: &Shot) -> bool {
        let (row, column) = shot.beside.cursor;
        let Some(line) = shot.screen.get(row) else {
            return false;
        };
        match self {
            Self::Claude => line == "❯",
            Self::Codex => line.starts_with("› ") && column == 2,
            Self::OpenCode => line.trim_start().starts_with('┃') && column <= 6,
            Self::Gemini => line.starts_with(" >") && column == 3,
        }
    }

    /// What it shows when it was interrupted in the middle of an answer.
    pub fn interrupted(self) -> &'static str {
        match self {
            Self::Claude => "Interrupted · What should Claude do instead?",
            Self::Codex => "Conversation interrupted",
            Self::OpenCode => "interrupted",
            Self::Gemini => "Request cancelled.",
        }
    }
}

fn is_spinner(c: char) -> bool {
    ('\u{2800}'..='\u{28ff}').contains(&c)
}
