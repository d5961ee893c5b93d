//! Releases of the agents: the pinned one, the newest one, and earlier ones whose fixtures are
//! kept.

use super::{Agent, install, is_inside};
use std::ffi::OsString;
use std::fmt::Write as _;

/// Environment variable that tells the inside of the namespace, which has no network, the releases
/// that were chosen outside.
pub(super) const RELEASES: &str = "PH_LAB_RELEASES";

/// One version of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub agent: Agent,
    pub version: String,
}

/// Selection of releases for a run of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Pinned version, which decides CI.
    Pinned,
    /// Newest version on npm.
    Newest,
    /// Earlier pinned versions, because people still run them.
    Earlier,
}

impl Wanted {
    /// Return the releases to run. If the newest version is the pinned one, the agent is omitted,
    /// and its name is passed to `skipped`.
    pub fn releases(
        self,
        agents: &[Agent],
        mut skipped: impl FnMut(Agent),
    ) -> Result<Vec<Release>, String> {
        if is_inside() {
            return Release::decode();
        }
        let mut releases = Vec::new();
        for agent in agents {
            let pinned = Release::pinned(*agent);
            if self == Self::Earlier {
                releases.extend(Release::recorded(*agent).into_iter().skip(1));
                continue;
            }
            let newest = match self {
                Self::Pinned | Self::Earlier => pinned.version.clone(),
                Self::Newest => install::newest(agent.package())?,
            };
            if self == Self::Newest && newest == pinned.version {
                skipped(*agent);
                continue;
            }
            let (agent, version) = (*agent, newest);
            releases.push(Release { agent, version });
        }
        Ok(releases)
    }
}

impl Release {
    pub fn pinned(agent: Agent) -> Self {
        let version = agent.version().to_owned();
        Self { agent, version }
    }

    /// Return the pinned release, then the earlier ones: every release that has fixtures.
    pub fn recorded(agent: Agent) -> Vec<Self> {
        let earlier = agent.earlier().iter().map(|version| Self {
            agent,
            version: (*version).to_owned(),
        });
        std::iter::once(Self::pinned(agent))
            .chain(earlier)
            .collect()
    }

    pub fn is_pinned(&self) -> bool {
        self.version == self.agent.version()
    }

    /// Name the folder with the fixtures of this release.
    pub fn folder(&self) -> String {
        if self.is_pinned() {
            return self.agent.name().to_owned();
        }
        format!("{}-{}", self.agent.name(), self.version)
    }

    /// Encode releases for [`RELEASES`].
    pub(super) fn encode(releases: &[Self]) -> OsString {
        let mut text = String::new();
        for Self { agent, version } in releases {
            let _ = writeln!(text, "{} {version}", agent.name());
        }
        text.into()
    }

    fn decode() -> Result<Vec<Self>, String> {
        let text = std::env::var(RELEASES).map_err(|error| format!("{RELEASES}: {error}"))?;
        let parse = |line: &str| {
            let (agent, version) = line.split_once(' ')?;
            let (agent, version) = (Agent::named(agent)?, version.to_owned());
            Some(Self { agent, version })
        };
        let releases: Option<Vec<Self>> = text.lines().map(parse).collect();
        releases.ok_or_else(|| format!("{RELEASES} is invalid: {text:?}"))
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.agent.name(), self.version)
    }
}
