//! The real agents, for the lab: which, in which version, where they are installed, and what each
//! needs to start alone, without a key of anybody's and without a question.
//!
//! Nothing here touches a person's home or reaches further than loopback, but for the
//! installation itself. What each agent does is written in `docs/agents.md`.

mod install;
mod namespace;
mod shot;
mod sign;
mod stage;

pub use install::{Installed, cache, install};
pub use namespace::{enter, enter_with, interfaces, is_inside, others, started_with};
pub use shot::{Beside, Shot, State};
pub use sign::Sign;
pub use stage::{Stage, Trust};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    Claude,
    Codex,
    OpenCode,
    Gemini,
}

impl Agent {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::OpenCode, Self::Gemini];

    /// Also the name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// At npm. The version is the one that `docs/agents.md` and the fixtures speak of.
    fn package(self) -> (&'static str, &'static str) {
        match self {
            Self::Claude => ("@anthropic-ai/claude-code", "2.1.197"),
            Self::Codex => ("@openai/codex", "0.166.0"),
            Self::OpenCode => ("opencode-ai", "1.18.33"),
            Self::Gemini => ("@google/gemini-cli", "0.61.0"),
        }
    }

    pub fn version(self) -> &'static str {
        self.package().1
    }
}
