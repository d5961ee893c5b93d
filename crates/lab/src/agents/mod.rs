//! The real agents: versions, installation, and the settings with which each starts alone, without
//! a real key and without asking.
//!
//! Never touches a person's home, and contacts only loopback except for the installation.
//! `docs/agents.md` describes the behaviour of each agent.

mod install;
mod namespace;
mod release;
mod run;
mod shot;
mod sign;
mod stage;
mod view;

pub use install::{Installed, cache, install};
use namespace::enter;
pub use namespace::{interfaces, is_inside, others, started_with};
use release::RELEASES;
pub use release::{Release, Wanted};
pub use run::{is_requested, run_inside};
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

    /// Return the agent's name, which is also that of its program.
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

    /// Return the npm package.
    fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::OpenCode => "opencode-ai",
            Self::Gemini => "@google/gemini-cli",
        }
    }

    /// Return the pinned version, which `docs/agents.md` and the fixtures describe and CI runs.
    fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.326",
            Self::Codex => "0.169.0",
            Self::OpenCode => "1.18.33",
            Self::Gemini => "0.61.0",
        }
    }

    /// Return earlier pinned versions whose fixtures are kept, because people still run them.
    fn earlier(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["2.1.197"],
            Self::Codex => &["0.166.0"],
            Self::OpenCode | Self::Gemini => &[],
        }
    }
}
