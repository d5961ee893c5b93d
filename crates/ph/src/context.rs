//! What every verb starts from: the home, the settings, who is asking, and where to write.

use crate::config::{Config, Layers};
use crate::output::{Output, Sink, note};
use crate::report::{Report, Result};
use crate::session::place;
use crate::times;
use etcetera::BaseStrategy;
use jiff::Timestamp;
use posthaste_core::{AgentName, Evidence, IdPrefix, Letter};
use posthaste_store::home::PROJECT_DIR;
use posthaste_store::{Home, Journal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// On what grounds a directory is the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeSource {
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

/// What the global flags said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) home: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) color: Option<String>,
    pub(crate) sink: Sink,
}

pub(crate) struct Context {
    pub(crate) home: Home,
    pub(crate) home_source: HomeSource,
    pub(crate) layers: Layers,
    pub(crate) config_files: Vec<PathBuf>,
    pub(crate) config: Config,
    pub(crate) json: bool,
    pub(crate) now: Timestamp,
    pub(crate) out: Output,
    /// What is wrong with the settings, for who would rather know than stop.
    pub(crate) trouble: Option<Report>,
}

impl Context {
    pub(crate) fn new(said: &Said) -> Result<Self> {
        let mut context = Self::with_any_settings(said)?;
        match context.trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(context),
        }
    }

    /// The same on the defaults where the settings are not right.
    pub(crate) fn with_any_settings(said: &Said) -> Result<Self> {
        let (home, home_source) = find_home(said.home.clone())?;
        let user = etcetera::choose_base_strategy()
            .ok()
            .map(|dirs| dirs.config_dir().join("posthaste/config.toml"));
        let config_files: Vec<_> = user.into_iter().chain([home.config()]).collect();
        let read = || -> Result<_> {
            let mut layers = Layers::load(&config_files, said.color.as_deref())?;
            let is_project = is_project(&home, home_source);
            if is_project {
                layers.distrust(&home.config());
            }
            let mut config = Config::of(&layers)?;
            if is_project {
                config.mail.distrust(&layers, &home.config());
            }
            Ok((layers, config))
        };
        let (layers, config, trouble) = match read() {
            Ok((layers, config)) => (layers, config, None),
            Err(trouble) => {
                let layers = Layers::defaults();
                let config = Config::of(&layers)?;
                (layers, config, Some(trouble))
            }
        };
        let out = match said.sink {
            Sink::Stdout => Output::new(config.color),
            Sink::Memory => Output::in_memory(),
        };
        Ok(Self {
            home,
            home_source,
            layers,
            config_files,
            config,
            json: said.json,
            now: times::now(),
            out,
            trouble,
        })
    }

    /// The journal, made if it is not there: for what writes.
    pub(crate) fn journal(&self) -> Result<Journal> {
        Ok(Journal::open(self.home.clone(), self.config.patience)?)
    }

    /// The journal, if anything was ever stored: for what only reads.
    pub(crate) fn reader(&self) -> Result<Option<Journal>> {
        let journal = Journal::open_existing(self.home.clone(), self.config.patience)?;
        if journal.is_none() && matches!(self.home_source, HomeSource::Flag | HomeSource::Env) {
            note(format!(
                "nothing has been stored in {} yet",
                self.home.path().display()
            ));
        }
        Ok(journal)
    }

    /// Who is asking, and on what grounds.
    pub(crate) fn me(&self) -> Result<(AgentName, Evidence)> {
        let said = match std::env::var_os("PH_AGENT").filter(|name| !name.is_empty()) {
            Some(name) => {
                let name = name.to_string_lossy();
                let name = agent_name(&name);
                Some(name.map_err(|r| r.hint("PH_AGENT says which agent is asking"))?)
            }
            None => None,
        };
        // What a process descends from says more than a variable that anybody can set.
        match (said, place::agent_here(&self.home)) {
            (Some(said), Some(born)) if said != born => Err(Report::refused(format!(
                "this runs in the session of {born}; PH_AGENT says {said}"
            ))
            .hint("leave PH_AGENT as the session has set it")),
            (_, Some(born)) => Ok((born, Evidence::Ancestry)),
            (Some(said), None) => Ok((said, Evidence::Env)),
            (None, None) => Ok((AgentName::human(), Evidence::Default)),
        }
    }

    /// Who sends: `--from`, unless this is an agent, which can only be itself.
    pub(crate) fn sender(&self, from: Option<&AgentName>) -> Result<(AgentName, Evidence)> {
        let (me, evidence) = self.me()?;
        match (from, evidence) {
            (None, _) => Ok((me, evidence)),
            (Some(from), _) if *from == me => Ok((me, evidence)),
            (Some(from), Evidence::Env) => Err(Report::refused(format!(
                "this is {me}; it cannot send as {from}"
            ))
            .hint("leave --from out, or unset PH_AGENT if you are not that agent")),
            (Some(from), Evidence::Ancestry) => Err(Report::refused(format!(
                "this is {me}; it cannot send as {from}"
            ))
            .hint("leave --from out")),
            (Some(from), Evidence::Flag | Evidence::Default | Evidence::Provider) => {
                Ok((from.clone(), Evidence::Flag))
            }
        }
    }

    /// The message that an id or its beginning means.
    pub(crate) fn find(&self, journal: Option<&mut Journal>, prefix: &IdPrefix) -> Result<Letter> {
        match journal {
            Some(journal) => Ok(journal.find(prefix)?),
            None => Err(posthaste_store::Error::NotFound(prefix.clone()).into()),
        }
    }
}

/// A name from outside, or what is wrong with it and the nearest right one.
pub(crate) fn agent_name(text: &str) -> Result<AgentName> {
    AgentName::parse(text).map_err(|error| {
        let report = Report::usage(error);
        match AgentName::suggestion(text) {
            Some(name) => report.hint(format!("'{name}' would do")),
            None => report.hint("for example 'coder-1'"),
        }
    })
}

fn find_home(flag: Option<PathBuf>) -> Result<(Home, HomeSource)> {
    if let Some(path) = flag {
        if path.as_os_str().is_empty() {
            return Err(Report::usage("--home cannot be empty"));
        }
        return Ok((absolute(&path)?, HomeSource::Flag));
    }
    if let Some(path) = std::env::var_os("PH_HOME").filter(|path| !path.is_empty()) {
        return Ok((absolute(Path::new(&path))?, HomeSource::Env));
    }
    if let Some(home) = project_home()? {
        return Ok((home, HomeSource::Project));
    }
    let dirs = etcetera::choose_base_strategy().map_err(|_| {
        Report::storage("there is no home directory to keep mail in")
            .hint("set HOME, PH_HOME or --home")
    })?;
    Ok((
        absolute(&dirs.data_dir().join("posthaste"))?,
        HomeSource::Default,
    ))
}

/// Whether this home belongs to a project, whose files may have come from anybody. A session tells
/// its agent the home by name, so how it was found says nothing.
fn is_project(home: &Home, source: HomeSource) -> bool {
    let is_so_called = |path: &Path| path.file_name().is_some_and(|name| name == PROJECT_DIR);
    source == HomeSource::Project
        || is_so_called(home.path())
        || home
            .path()
            .canonicalize()
            .is_ok_and(|path| is_so_called(&path))
}

fn absolute(path: &Path) -> Result<Home> {
    let path = std::path::absolute(path).map_err(|error| {
        Report::storage(format!("cannot tell where {} is: {error}", path.display()))
    })?;
    Ok(Home::at(path))
}

/// The nearest `.posthaste/` at or above the current directory.
fn project_home() -> Result<Option<Home>> {
    let Ok(here) = std::env::current_dir() else {
        return Ok(None);
    };
    for dir in here.ancestors() {
        let candidate = dir.join(PROJECT_DIR);
        let Ok(meta) = candidate.metadata() else {
            continue;
        };
        if !meta.is_dir() {
            continue;
        }
        // Mail must not end up where somebody else put a trap for it.
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(Report::refused(format!(
                "{} belongs to another user",
                candidate.display()
            ))
            .hint("choose a home of your own with --home or PH_HOME"));
        }
        let home = Home::at(candidate);
        // Nor may a journal that came with somebody's files speak to anybody's agents. A home
        // that ph made is private; what is unpacked or checked out usually is not.
        if meta.mode() & 0o077 != 0 && home.has_journal()? {
            let shown = home.path().display();
            return Err(
                Report::refused(format!("{shown} holds a journal and is open to others")).hint(
                    format!("if it is yours, make it private: chmod 700 {shown}"),
                ),
            );
        }
        return Ok(Some(home));
    }
    Ok(None)
}
