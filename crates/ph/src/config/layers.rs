//! Reads the settings files, the environment and the flags, and keeps the source of each value.

use super::harness::{self, Harnesses};
use super::{Config, SETTINGS, Setting, misspelt};
use crate::cli::times::parse_duration;
use crate::output::note;
use posthaste_client::roster::{self, Roster};
use posthaste_client::settings::{NamedSetting, SettingSource};
use posthaste_core::text;
use posthaste_store::data_file;
use posthaste_store::report::{Report, Result};
use rustix::fs::OFlags;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sections that change the input of agents. A project's file cannot have them.
const PERSON_ONLY_SECTIONS: [&str; 2] = [harness::SECTION, "agents"];
/// Size limits of the files of a home and of a project.
const MAX_HOME_BYTES: u64 = 1 << 20;
const MAX_PROJECT_BYTES: u64 = 64 << 10;
/// Settings that a project's file can make. It may come from a repository, so it cannot make those
/// that run a program or that stop, delay or escalate mail.
const PROJECT_SETTINGS: [&str; 2] = ["output.color", "output.time"];

/// Return whether only a person's own file can make a setting.
fn is_person_only(key: &str) -> bool {
    !PROJECT_SETTINGS.contains(&key) && SETTINGS.iter().any(|setting| setting.key == key)
}

/// A file with settings.
#[derive(Debug)]
pub(crate) enum SettingsFile {
    /// The person's own file.
    Person(PathBuf),
    /// The file of a home that the person has chosen.
    Home(PathBuf),
    /// A project's file: its settings are data and cannot make `ph` run anything.
    Project(PathBuf),
}

impl SettingsFile {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Person(path) | Self::Home(path) | Self::Project(path) => path,
        }
    }

    fn is_project(&self) -> bool {
        matches!(self, Self::Project(_))
    }

    fn read(&self) -> std::io::Result<String> {
        match self {
            Self::Person(path) => std::fs::read_to_string(path),
            Self::Home(path) => data_file::read_own(path, MAX_HOME_BYTES),
            Self::Project(path) => data_file::read(path, OFlags::NOFOLLOW, MAX_PROJECT_BYTES),
        }
    }
}

/// A value as it was written, and its source.
#[derive(Debug, Clone)]
pub(crate) struct SettingText {
    pub(crate) text: String,
    pub(crate) source: SettingSource,
}

/// All settings with their sources.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    /// In the order of [`SETTINGS`].
    values: Vec<SettingText>,
    pub(crate) roster: Roster,
    pub(crate) harnesses: Harnesses,
    /// Settings that have no effect, because a project's file made them.
    pub(crate) ignored: Vec<NamedSetting>,
}

impl Layers {
    pub(crate) fn defaults() -> Self {
        let values = SETTINGS.iter().map(|setting| SettingText {
            text: setting.default.to_owned(),
            source: SettingSource::Default,
        });
        Self {
            values: values.collect(),
            roster: Roster::default(),
            harnesses: Harnesses::default(),
            ignored: Vec::new(),
        }
    }

    pub(crate) fn load<'a>(
        files: impl IntoIterator<Item = &'a SettingsFile>,
        color_flag: Option<&str>,
    ) -> Result<Self> {
        let mut layers = Self::defaults();
        for file in files {
            let path = file.path().display();
            match file.read() {
                Ok(text) if file.is_project() => layers.add_project_file(file, &text),
                Ok(text) => layers.add_file(file, &text)?,
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) if file.is_project() => note(format!("ignored {path}: {error}")),
                Err(error) => {
                    return Err(Report::storage(format!(
                        "cannot read the settings in {path}: {error}"
                    ))
                    .hint("check the owner of the file, or choose another home with --home or PH_HOME"));
                }
            }
        }
        layers.roster.check()?;
        for setting in SETTINGS {
            if let Some(text) = std::env::var_os(setting.env).filter(|text| !text.is_empty()) {
                let text = text.to_string_lossy().into_owned();
                layers.set(setting.key, text, SettingSource::Env(setting.env));
            }
        }
        if let Some(color) = color_flag {
            let source = SettingSource::Flag("--color");
            layers.set("output.color", color.to_owned(), source);
        }
        Ok(layers)
    }

    /// Set a value. Return false if there is no such setting.
    fn set(&mut self, key: &str, text: String, source: SettingSource) -> bool {
        let index = SETTINGS.iter().position(|setting| setting.key == key);
        if let Some(index) = index {
            self.values[index] = SettingText { text, source };
        }
        index.is_some()
    }

    /// Add a project's file, or ignore all of it if it is invalid: a repository must not stop `ph`.
    fn add_project_file(&mut self, file: &SettingsFile, text: &str) {
        let mut trial = self.clone();
        let added = trial
            .add_file(file, text)
            .and_then(|()| trial.roster.check())
            .and_then(|()| Config::of(&trial).map(drop));
        match added {
            Ok(()) => *self = trial,
            Err(report) => note(format!(
                "ignored the settings in {}: {}",
                file.path().display(),
                report.message()
            )),
        }
    }

    fn add_file(&mut self, file: &SettingsFile, text: &str) -> Result<()> {
        let path = file.path();
        let source = || SettingSource::File(path.to_owned());
        let mut values = Vec::new();
        for (section, value) in &parse(path, text)? {
            let is_ignored = file.is_project() && PERSON_ONLY_SECTIONS.contains(&section.as_str());
            match section.as_str() {
                harness::SECTION if !is_ignored => self.harnesses.add(path, value)?,
                name if roster::is_section(name) && !is_ignored => {
                    self.roster.add(path, name, value)?;
                }
                _ => flatten(section.clone(), value, &mut values),
            }
        }
        for (key, value) in values {
            // Keys are compared as they are used: TOML has several spellings of one key.
            let section = key.split('.').next().unwrap_or_default();
            let is_person_only = PERSON_ONLY_SECTIONS.contains(&section) || is_person_only(&key);
            if file.is_project() && is_person_only {
                self.ignored.push(NamedSetting {
                    key: text::one_line(&key, 80),
                    value: value.unwrap_or_else(|| "not a plain value".to_owned()),
                    source: source(),
                });
                continue;
            }
            let Some(text) = value else {
                return Err(Report::usage(format!(
                    "{key} in {} is not a plain value",
                    path.display()
                )));
            };
            if !self.set(&key, text, source()) {
                return Err(misspelt::unknown_setting(&key, path));
            }
        }
        Ok(())
    }

    /// Tell the person which settings of a project have no effect.
    pub(crate) fn note_ignored(&self) {
        let Some(first) = self.ignored.first() else {
            return;
        };
        let keys: Vec<&str> = self.ignored.iter().map(|row| row.key.as_str()).collect();
        note(format!(
            "ignored {} in {}: only your own config.toml can set that",
            keys.join(", "),
            first.source
        ));
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Setting, &SettingText)> {
        SETTINGS.iter().zip(&self.values)
    }

    fn row(&self, key: &str) -> (&'static Setting, &SettingText) {
        let mut rows = self.rows();
        let row = rows.find(|(setting, _)| setting.key == key);
        row.expect("every requested key is a row of SETTINGS")
    }

    pub(super) fn source(&self, key: &str) -> &SettingSource {
        &self.row(key).1.source
    }

    pub(super) fn duration(&self, key: &str) -> Result<Duration> {
        self.get(key, |text| parse_duration(text).ok()?.try_into().ok())
    }

    /// Parse the value of a setting.
    pub(super) fn get<T>(&self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let (setting, SettingText { text, source }) = self.row(key);
        parse(text).ok_or_else(|| {
            Report::usage(format!("{key} cannot be '{text}' ({source})"))
                .hint(format!("{key}: {}", setting.help))
        })
    }
}

fn parse(path: &Path, text: &str) -> Result<toml::Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let report = Report::usage(format!(
            "the settings in {} are not TOML: {}",
            path.display(),
            error.message()
        ));
        match error.span().and_then(|span| text.get(..span.start)) {
            Some(before) => {
                report.hint(format!("look at line {}", before.matches('\n').count() + 1))
            }
            None => report,
        }
    })
}

/// Collect the values below a key under their dotted keys. A value that is a list is `None`.
fn flatten(key: String, value: &toml::Value, found: &mut Vec<(String, Option<String>)>) {
    let text = match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                flatten(format!("{key}.{name}"), value, found);
            }
            return;
        }
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(value) => Some(value.to_string()),
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Array(_) => None,
    };
    found.push((key, text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::times::TimeStyle;
    use crate::config::MailStore;
    use anstream::ColorChoice;
    use posthaste_core::Priority;

    fn load(text: &str) -> Result<Layers> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Layers::load(&[SettingsFile::Person(path)], None)
    }

    #[test]
    fn a_file_overrides_a_default_and_is_its_source() {
        let layers = load("[output]\ntime = 'utc'\n").unwrap();
        let (_, value) = layers.rows().find(|(s, _)| s.key == "output.time").unwrap();
        assert_eq!(value.text, "utc");
        assert!(matches!(value.source, SettingSource::File(_)));
        assert_eq!(Config::of(&layers).unwrap().time, TimeStyle::Utc);
    }

    #[test]
    fn an_error_names_the_invalid_setting() {
        let check = |text: &str, want: &str| {
            let report = load(text)
                .and_then(|layers| Config::of(&layers).map(drop))
                .unwrap_err();
            assert!(
                report.message().contains(want),
                "{text:?}: {}",
                report.message()
            );
        };
        check(
            "[output]\ncolour = 'never'\n",
            "unknown setting output.colour",
        );
        check(
            "[output]\ncolor = 'blue'\n",
            "output.color cannot be 'blue'",
        );
        check("[output]\ncolor = ['a']\n", "output.color in");
        check("output = 3\n", "unknown setting output");
        check("[send\n", "are not TOML");
        check(
            "[send]\npriority = 'urgent'\n",
            "send.priority cannot be 'urgent'",
        );
        check(
            "[journal]\nlock_timeout = 10\n",
            "journal.lock_timeout cannot be '10'",
        );
    }

    #[test]
    fn a_project_cannot_set_a_program_in_any_spelling_of_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for text in [
            "mail.provider = 'exec:./x'\n",
            "[mail]\nprovider = 'exec:./x'\n",
            "mail = { provider = 'exec:./x' }\n",
            "'mail.provider' = 'exec:./x'\n",
            "\"mail\".\"provider\" = 'exec:./x'\n",
            "\"mail.\\u0070rovider\" = 'exec:./x'\n",
            "'mail.provider' = 'exec'\n'mail.script' = './x'\n",
        ] {
            std::fs::write(&path, text).unwrap();
            let layers = Layers::load(&[SettingsFile::Project(path.clone())], None).unwrap();
            let mail = Config::of(&layers).unwrap().mail;
            assert_eq!(mail, MailStore::Journal, "{text}");
            assert_ne!(layers.ignored, [], "{text}");
        }
    }

    #[test]
    fn a_project_can_only_set_how_output_looks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for setting in SETTINGS {
            let is_of_project = ["output.color", "output.time"].contains(&setting.key);
            std::fs::write(&path, format!("{} = '{}'\n", setting.key, setting.default)).unwrap();
            let layers = Layers::load(&[SettingsFile::Project(path.clone())], None).unwrap();
            let source = layers.source(setting.key);
            let is_set = matches!(source, SettingSource::File(_));
            assert_eq!(is_set, is_of_project, "{}", setting.key);
            assert_eq!(layers.ignored.is_empty(), is_of_project, "{}", setting.key);
        }
    }

    #[test]
    fn the_later_file_wins() {
        let dir = tempfile::tempdir().unwrap();
        let [user, project] = ["user.toml", "project.toml"].map(|name| dir.path().join(name));
        std::fs::write(&user, "[send]\npriority = 'idle'\n[output]\ntime = 'utc'\n").unwrap();
        std::fs::write(&project, "output.time = 'relative'\n").unwrap();
        let config = Config::of(
            &Layers::load(
                &[SettingsFile::Person(user), SettingsFile::Project(project)],
                Some("never"),
            )
            .unwrap(),
        )
        .unwrap();
        assert_eq!(config.priority, Priority::Idle);
        assert_eq!(config.time, TimeStyle::Relative);
        assert_eq!(config.color, ColorChoice::Never);
    }
}
