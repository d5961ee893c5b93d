//! The context of every verb: the home, the settings, the calling agent, and the output.

use crate::config::{Config, Layers, SettingsFile};
use crate::output::{Output, Sink, note};
use etcetera::BaseStrategy;
use jiff::Timestamp;
use posthaste_client::roster::Address;
use posthaste_core::{AgentName, Evidence, IdPrefix, MessageState};
use posthaste_store::home::find::{self as home, FoundHome, HomeSource};
use posthaste_store::live::process_notes;
use posthaste_store::report::{Report, Result};
use posthaste_store::times;
use posthaste_store::{Home, Journal};
use std::path::{Path, PathBuf};

/// The global options.
#[derive(Debug, Clone, Default)]
pub(crate) struct GlobalOptions {
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
    /// The error in the settings, for verbs that work with the defaults in spite of it.
    pub(crate) trouble: Option<Report>,
}

impl Context {
    pub(crate) fn new(said: &GlobalOptions) -> Result<Self> {
        let mut context = Self::with_any_settings(said)?;
        match context.trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(context),
        }
    }

    /// Like `new`, but with the default settings if the settings are invalid.
    pub(crate) fn with_any_settings(said: &GlobalOptions) -> Result<Self> {
        let FoundHome {
            home,
            source: home_source,
            project_settings_dir,
        } = home::find(said.home.as_deref())?;
        let user = etcetera::choose_base_strategy().ok();
        let user = user.map(|dirs| dirs.config_dir().join("posthaste/config.toml"));
        let own = match home.is_project() {
            true => SettingsFile::Project(home.config()),
            false => SettingsFile::Home(home.config()),
        };
        let project = project_settings_dir.as_ref();
        let project = project.map(|dir| SettingsFile::Project(dir.join("config.toml")));
        let user = user.map(SettingsFile::Person);
        let files: Vec<_> = user.into_iter().chain([own]).chain(project).collect();
        let read = || -> Result<_> {
            // Before a home exists, another user may be able to create its directory.
            let is_readable = home.is_readable()?;
            let is_safe =
                |file: &&SettingsFile| is_readable || !matches!(file, SettingsFile::Home(_));
            let layers = Layers::load(files.iter().filter(is_safe), said.color.as_deref())?;
            let config = Config::of(&layers)?;
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
        layers.note_ignored();
        note_ignored_manifests(&home, project_settings_dir.as_deref());
        let out = match said.sink {
            Sink::Stdout => Output::new(config.color),
            Sink::Memory => Output::in_memory(),
        };
        Ok(Self {
            home,
            home_source,
            layers,
            config_files: files.iter().map(|file| file.path().to_owned()).collect(),
            config,
            json: said.json,
            now: times::now(),
            out,
            trouble,
        })
    }

    /// Open the journal for writing. Creates it if it does not exist.
    pub(crate) fn journal(&self) -> Result<Journal> {
        Ok(Journal::open(self.home.clone(), self.config.patience)?)
    }

    /// Open the journal for reading. Return `None` if nothing has been stored yet.
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

    /// Return the calling agent, and the evidence for it.
    pub(crate) fn me(&self) -> Result<(AgentName, Evidence)> {
        let said = match std::env::var_os("PH_AGENT").filter(|name| !name.is_empty()) {
            Some(name) => {
                let name = name.to_string_lossy();
                let name = agent_name(&name);
                Some(name.map_err(|r| r.hint("PH_AGENT names the agent that runs ph"))?)
            }
            None => None,
        };
        // The ancestry of a process is stronger evidence than a variable, which anybody can set.
        match (said, process_notes::agent_here(&self.home)) {
            (Some(said), Some(born)) if said != born => Err(Report::refused(format!(
                "this runs in the session of {born}, but PH_AGENT is {said}"
            ))
            .hint("do not change PH_AGENT inside of a session")),
            (_, Some(born)) => Ok((born, Evidence::Ancestry)),
            (Some(said), None) => Ok((said, Evidence::Env)),
            (None, None) => Ok((AgentName::human(), Evidence::Default)),
        }
    }

    /// Return the owner of an inbox: the agent of an address, by default the caller.
    pub(crate) fn owner(&self, address: Option<&Address>) -> Result<AgentName> {
        match address {
            Some(address) => self.config.roster.agent(address),
            None => Ok(self.me()?.0),
        }
    }

    /// Return the sender: `--from`, unless the caller is an agent, which can only send as itself.
    pub(crate) fn sender(&self, from: Option<&AgentName>) -> Result<(AgentName, Evidence)> {
        let (me, evidence) = self.me()?;
        match (from, evidence) {
            (None, _) => Ok((me, evidence)),
            (Some(from), _) if *from == me => Ok((me, evidence)),
            (Some(from), Evidence::Env) => Err(Report::refused(format!(
                "this is {me}; it cannot send as {from}"
            ))
            .hint("omit --from, or unset PH_AGENT if you are not that agent")),
            (Some(from), Evidence::Ancestry) => Err(Report::refused(format!(
                "this is {me}; it cannot send as {from}"
            ))
            .hint("omit --from")),
            (Some(from), Evidence::Flag | Evidence::Default | Evidence::Provider) => {
                Ok((from.clone(), Evidence::Flag))
            }
        }
    }

    /// Find a message by its id or an id prefix.
    pub(crate) fn find(
        &self,
        journal: Option<&mut Journal>,
        prefix: &IdPrefix,
    ) -> Result<MessageState> {
        match journal {
            Some(journal) => Ok(journal.find(prefix)?),
            None => Err(posthaste_store::Error::NotFound(prefix.clone()).into()),
        }
    }
}

/// Tell the person which manifests of a project have no effect.
fn note_ignored_manifests(home: &Home, settings_dir: Option<&Path>) {
    let own = home.is_project().then_some(home.path());
    for dir in [settings_dir, home.project_dir(), own]
        .into_iter()
        .flatten()
    {
        let dir = dir.join("harness");
        if dir.symlink_metadata().is_ok() {
            note(format!(
                "ignored the manifests in {}: a project cannot define harnesses",
                dir.display()
            ));
        }
    }
}

/// Parse an agent's name. The error suggests a valid name.
pub(crate) fn agent_name(text: &str) -> Result<AgentName> {
    AgentName::parse(text).map_err(|error| {
        let report = Report::usage(error);
        match AgentName::suggestion(text) {
            Some(name) => report.hint(format!("'{name}' is a valid name")),
            None => report.hint("for example 'coder-1'"),
        }
    })
}
