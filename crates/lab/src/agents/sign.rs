//! Recognises the state of an agent's terminal for the lab: waiting for a prompt, working, or
//! asking. Pure; tested on every fixture.

use super::{Agent, Shot};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The box accepts a prompt.
    Free,
    Working,
    /// A dialog is open: Enter would answer it.
    Asking,
    /// Unknown; the agent may be starting.
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
        let questions: &[&str] = match self {
            Self::Claude => &["Do you want to proceed?", "Yes, I trust this folder"],
            Self::Codex => &[
                "Would you like to run the following command?",
                "Hooks need review",
            ],
            Self::OpenCode => &["Permission required"],
            Self::Gemini => &[
                "Allow execution of",
                "Do you trust the files in this folder?",
            ],
        };
        questions.iter().any(|question| shot.has_wrapped(question))
    }

    fn works(self, shot: &Shot) -> bool {
        let title = &shot.beside.title;
        match self {
            Self::Claude => shot.has("esc to interrupt") || title.starts_with(is_spinner),
            Self::Codex => title.starts_with(is_spinner),
            // The bar moves beside `esc interrupt`, which a narrow terminal wraps.
            Self::OpenCode => shot.has("⬝") || shot.has("again to"),
            Self::Gemini => shot.has("esc to cancel") || title.contains("Working"),
        }
    }

    fn has_box(self, shot: &Shot) -> bool {
        let begins = |text: &str| shot.screen.iter().any(|line| line.starts_with(text));
        let title = &shot.beside.title;
        match self {
            Self::Claude => begins("❯") && title.starts_with('✳'),
            Self::Codex => begins("›") && shot.beside.osc_7501.is_some(),
            Self::OpenCode => shot.has("ctrl+p"),
            Self::Gemini => begins(" >") && title.contains("Ready"),
        }
    }

    /// Return whether the box is empty: the cursor is at its start, and text there is a hint.
    pub fn has_empty_box(self, shot: &Shot) -> bool {
        let (row, column) = shot.beside.cursor;
        let Some(line) = shot.screen.get(row) else {
            return false;
        };
        match self {
            Self::Claude => line.starts_with('❯') && column == 2,
            Self::Codex => line.starts_with("› ") && column == 2,
            Self::OpenCode => {
                line.chars().position(|c| c == '┃').map(|bar| bar + 3) == Some(column)
            }
            Self::Gemini => line.starts_with(" >") && column == 3,
        }
    }

    /// Return the text after an interrupted reply.
    pub fn interrupted(self) -> &'static str {
        match self {
            Self::Claude => "What should Claude d",
            Self::Codex => "Conversation interrupted",
            Self::OpenCode => "interrupted",
            Self::Gemini => "Request cancelled.",
        }
    }
}

/// Return whether a character is Claude Code's spinner: a turning circle since 2.1.326.
fn is_spinner(c: char) -> bool {
    "◐◓◑◒".contains(c) || ('\u{2800}'..='\u{28ff}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::super::{Release, State};
    use super::*;
    use crate::pty::Size;

    #[test]
    fn every_fixture_is_recognised() {
        for release in Agent::ALL.into_iter().flat_map(Release::recorded) {
            let agent = release.agent;
            for size in [Size::NARROW, Size::USUAL, Size::LARGE, Size::WIDE] {
                for state in State::ALL.into_iter().filter(|s| s.is_known_of(agent)) {
                    let which = format!("{release} {size} {state:?}");
                    let shot = Shot::load(&release, size, state).unwrap();
                    assert_eq!(shot.screen.len(), usize::from(size.rows), "{which}");
                    assert_eq!(agent.sign(&shot), state.sign(), "{which}");
                    let drafts = matches!(state, State::Draft | State::Pasted);
                    let filled = drafts || state.sign() == Sign::Asking;
                    assert_eq!(agent.has_empty_box(&shot), !filled, "{which}");
                    let shows = shot.has(agent.interrupted());
                    assert!(shows || state != State::Interrupted, "{which}");
                    assert!(shot.beside.bracketed_paste, "{which}");
                }
            }
        }
    }

    #[test]
    fn an_empty_terminal_is_unknown() {
        let beside = super::super::Beside {
            title: String::new(),
            cursor: (0, 0),
            cursor_shown: true,
            bracketed_paste: false,
            alternate_screen: false,
            osc_7501: None,
        };
        let screen = vec![String::new(); 24];
        let shot = Shot { screen, beside };
        for agent in Agent::ALL {
            assert_eq!(agent.sign(&shot), Sign::Unknown, "{agent:?}");
        }
    }
}
