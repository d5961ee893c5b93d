//! The real agents, for the lab: which, in which version, where they are installed, and what each
//! needs to start alone, without a key of anybody's and without a question.
//!
//! Nothing here touches a person's home or reaches further than loopback, but for the
//! installation itself. What each agent does is written in `docs/agents.md`.

mod install;
mod namespace;
mod release;
mod shot;
mod sign;
mod stage;
mod view;

pub use install::{Installed, cache, install};
pub use namespace::{enter, enter_with, interfaces, is_inside, others, started_with};
pub use release::{RELEASES, Release, Wanted};
pub use shot::{Beside, Shot, State};
pub use sign::Sign;
pub use stage::{Stage, Trust};
pub use view::{BoxKind, Step, View};

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

    /// The npm package.
    fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::OpenCode => "opencode-ai",
            Self::Gemini => "@google/gemini-cli",
        }
    }

    /// The pinned version: `docs/agents.md` and the fixtures describe this one, and CI runs it.
    fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.326",
            Self::Codex => "0.169.0",
            Self::OpenCode => "1.18.33",
            Self::Gemini => "0.61.0",
        }
    }

    /// Earlier pinned versions whose fixtures are kept, because people still run them.
    fn earlier(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["2.1.197"],
            Self::Codex => &["0.166.0"],
            Self::OpenCode | Self::Gemini => &[],
        }
    }
}
