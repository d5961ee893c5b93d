//! A value of the settings, and its origin.

use std::path::PathBuf;

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    File(PathBuf),
    Env(&'static str),
    Flag(&'static str),
}

impl std::fmt::Display for SettingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Env(name) => write!(f, "environment: {name}"),
            Self::Flag(name) => write!(f, "flag: {name}"),
        }
    }
}

/// A setting that has a name in its key, for `ph config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSetting {
    pub key: String,
    pub value: String,
    pub source: SettingSource,
}
