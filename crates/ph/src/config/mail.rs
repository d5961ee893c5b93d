//! The settings for the place of the mail: the journal or a script.
//!
//! A script's path is resolved when the mail is used, so that settings with a missing script
//! disable only the mail.

use super::Layers;
use posthaste_client::settings::SettingSource;
use posthaste_provider::ScriptSettings;
use posthaste_store::report::{Report, Result};
use std::path::PathBuf;
use std::time::Duration;

/// The place of the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MailStore {
    Journal,
    Script(NamedScript),
}

/// A script as it is written in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedScript {
    key: &'static str,
    name: String,
    source: SettingSource,
    timeout: Duration,
    tick: Duration,
}

impl MailStore {
    /// Return the script, if one keeps the mail.
    pub(crate) fn script(&self) -> Result<Option<ScriptSettings>> {
        match self {
            Self::Journal => Ok(None),
            Self::Script(named) => named.settings().map(Some),
        }
    }

    /// Return whether a script keeps the mail, valid or not.
    pub(crate) fn is_elsewhere(&self) -> bool {
        match self {
            Self::Journal => false,
            Self::Script(_) => true,
        }
    }

    pub(super) fn of(layers: &Layers) -> Result<Self> {
        let key = layers.get("mail.provider", |text| match text {
            "journal" => Some(None),
            "exec" => Some(Some("mail.script")),
            other => other
                .strip_prefix("exec:")
                .filter(|script| !script.is_empty())
                .map(|_| Some("mail.provider")),
        })?;
        let Some(key) = key else {
            return Ok(Self::Journal);
        };
        let script = layers.get(key, |text| {
            let script = text.strip_prefix("exec:").unwrap_or(text);
            (!script.is_empty() && !script.contains('\0')).then(|| script.to_owned())
        })?;
        Ok(Self::Script(NamedScript {
            key,
            name: script,
            source: layers.source(key).clone(),
            timeout: layers.duration("mail.timeout")?,
            tick: layers.duration("mail.tick")?,
        }))
    }
}

impl NamedScript {
    fn settings(&self) -> Result<ScriptSettings> {
        Ok(ScriptSettings {
            path: self.path()?,
            timeout: self.timeout,
            tick: self.tick,
        })
    }

    /// Resolve the path. A plain name is searched on PATH; a relative path starts at the directory
    /// of the settings file, else at the current directory.
    fn path(&self) -> Result<PathBuf> {
        let Self { key, name, .. } = self;
        if !name.contains('/') {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path)
                .map(|dir| dir.join(name))
                .find(|path| {
                    path.is_absolute() && posthaste_store::live::process::is_program(path)
                });
            return found.ok_or_else(|| {
                Report::usage(format!("{key}: no program '{name}' is on PATH"))
                    .hint("write ./NAME for a script beside the settings file")
            });
        }
        let beside = match &self.source {
            SettingSource::File(file) => file.parent(),
            SettingSource::Default | SettingSource::Env(_) | SettingSource::Flag(_) => None,
        };
        let path = beside.map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
        let path = std::path::absolute(&path).map_err(|error| {
            Report::usage(format!("cannot determine the path of {name}: {error}"))
        })?;
        // Only the directory is resolved: some scripts depend on the name by which they are called.
        let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
        Ok(match (dir, path.file_name()) {
            (Some(dir), Some(name)) => dir.join(name),
            (_, _) => path,
        })
    }
}
