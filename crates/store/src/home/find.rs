//! Finds the home directory. Every home that is found is checked when it is opened.

use crate::home::{Discovered, Home, PROJECT_DIR};
use crate::report::{Report, Result};
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// Why a directory is the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeSource {
    Flag,
    Env,
    Project,
    Default,
}

impl std::fmt::Display for HomeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flag => "--home",
            Self::Env => "PH_HOME",
            Self::Project => "the nearest .posthaste directory",
            Self::Default => "the XDG data directory",
        })
    }
}

#[derive(Debug)]
pub struct FoundHome {
    pub home: Home,
    pub source: HomeSource,
    /// A `.posthaste` directory that is not a home and only has settings, such as that of a clone.
    pub project_settings_dir: Option<PathBuf>,
}

/// Find the home: `flag`, else `PH_HOME`, else the nearest project's, else the default one.
pub fn find(flag: Option<&Path>) -> Result<FoundHome> {
    let named = |path: &Path, source| {
        Ok(FoundHome {
            home: open(path)?,
            source,
            project_settings_dir: None,
        })
    };
    if let Some(path) = flag {
        if path.as_os_str().is_empty() {
            return Err(Report::usage("--home cannot be empty"));
        }
        return named(path, HomeSource::Flag);
    }
    if let Some(path) = std::env::var_os("PH_HOME").filter(|path| !path.is_empty()) {
        return named(Path::new(&path), HomeSource::Env);
    }
    let mut project = None;
    if let Ok(here) = std::env::current_dir() {
        for dir in here.ancestors() {
            match Home::discover(dir, state_dir().as_deref())? {
                Discovered::Home(home) => {
                    return Ok(FoundHome {
                        home,
                        source: HomeSource::Project,
                        project_settings_dir: project,
                    });
                }
                Discovered::Settings => {
                    project.get_or_insert_with(|| dir.join(PROJECT_DIR));
                }
                Discovered::Nothing => {}
            }
        }
    }
    let dirs = etcetera::choose_base_strategy().map_err(|_| {
        Report::storage("cannot choose a home: HOME is not set")
            .hint("set HOME or PH_HOME, or name a home with --home")
    })?;
    Ok(FoundHome {
        home: open(&dirs.data_dir().join("posthaste"))?,
        source: HomeSource::Default,
        project_settings_dir: project,
    })
}

/// Open a home that the person has named.
pub fn open(path: &Path) -> Result<Home> {
    Ok(Home::open(path, state_dir().as_deref())?)
}

/// Accept a home that was copied, cloned or unpacked.
pub fn trust(path: &Path) -> Result<Home> {
    Ok(Home::trust(path, state_dir().as_deref())?)
}

/// Return the person's XDG state directory.
fn state_dir() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.state_dir()?.join("posthaste"))
}
