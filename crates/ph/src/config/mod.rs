//! Settings, in layers: defaults, the user's file, the home's file, the environment, flags.
//!
//! Every setting is one row of [`SETTINGS`], with its name, default and valid values. Values are parsed
//! in one place, [`Config::of`].

mod harness;
mod mail;

pub(crate) use harness::Harnesses;
pub(crate) use mail::Mail;

use crate::cli::times::{TimeStyle, parse_duration};
use crate::output::note;
use anstream::ColorChoice;
use posthaste_client::roster::{self, Roster};
use posthaste_client::settings::{NamedSetting, SettingSource};
use posthaste_core::{Limits, Priority, text};
use posthaste_store::Patience;
use posthaste_store::data_file;
use posthaste_store::report::{Report, Result};
use rustix::fs::OFlags;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) env: &'static str,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
}

pub(crate) const SETTINGS: [Setting; 11] = [
    Setting {
        key: "journal.lock_timeout",
        env: "PH_JOURNAL_LOCK_TIMEOUT",
        default: "10s",
        help: "timeout for the journal's write lock, such as 10s",
    },
    Setting {
        key: "mail.max_hops",
        env: "PH_MAIL_MAX_HOPS",
        default: "16",
        help: "maximum number of messages between agents in one chain, such as 16",
    },
    Setting {
        key: "mail.max_rate",
        env: "PH_MAIL_MAX_RATE",
        default: "60",
        help: "maximum number of messages per minute from one agent to another, such as 60",
    },
    Setting {
        key: "mail.provider",
        env: "PH_MAIL_PROVIDER",
        default: "journal",
        help: "journal, exec:SCRIPT, or exec with mail.script",
    },
    Setting {
        key: "mail.script",
        env: "PH_MAIL_SCRIPT",
        default: "",
        help: "path of the script if mail.provider is exec",
    },
    Setting {
        key: "mail.tick",
        env: "PH_MAIL_TICK",
        default: "5s",
        help: "interval at which a session asks the script for new mail, such as 5s",
    },
    Setting {
        key: "mail.timeout",
        env: "PH_MAIL_TIMEOUT",
        default: "30s",
        help: "timeout of each call of the script, such as 30s",
    },
    Setting {
        key: "output.color",
        env: "PH_OUTPUT_COLOR",
        default: "auto",
        help: "auto, always or never",
    },
    Setting {
        key: "output.time",
        env: "PH_OUTPUT_TIME",
        default: "local",
        help: "local, utc or relative",
    },
    Setting {
        key: "send.priority",
        env: "PH_SEND_PRIORITY",
        default: "normal",
        help: "interrupt, normal, idle-first or idle",
    },
    Setting {
        key: "session.without_home",
        env: "PH_SESSION_WITHOUT_HOME",
        default: "1m",
        help: "time for which a session continues without its home, such as 1m",
    },
];

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
}

#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) source: SettingSource,
}

/// All settings with their sources, in the order of [`SETTINGS`].
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    values: Vec<Value>,
    roster: Roster,
    harnesses: Harnesses,
    /// Settings of a project's file that only a person's own file can make.
    ignored: Vec<NamedSetting>,
}

/// Parsed settings.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) color: ColorChoice,
    pub(crate) time: TimeStyle,
    pub(crate) priority: Priority,
    pub(crate) patience: Patience,
    pub(crate) limits: Limits,
    /// Time for which a session continues without its home.
    pub(crate) without_home: Duration,
    pub(crate) mail: Mail,
    pub(crate) roster: Roster,
    pub(crate) harnesses: Harnesses,
}

impl Layers {
    pub(crate) fn defaults() -> Self {
        let values = SETTINGS.iter().map(|s| Value {
            text: s.default.to_owned(),
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
            let read = match file {
                SettingsFile::Person(path) => std::fs::read_to_string(path),
                SettingsFile::Home(path) => data_file::read_own(path, MAX_HOME_BYTES),
                SettingsFile::Project(path) => {
                    data_file::read(path, OFlags::NOFOLLOW, MAX_PROJECT_BYTES)
                }
            };
            match (read, file) {
                (Ok(text), SettingsFile::Person(_) | SettingsFile::Home(_)) => {
                    layers.add_file(file, &text)?;
                }
                (Ok(text), SettingsFile::Project(_)) => layers.add_project(file, &text),
                (Err(error), _)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                (Err(error), SettingsFile::Project(path)) => {
                    note(format!("ignored {}: {error}", path.display()));
                }
                (Err(error), SettingsFile::Person(path) | SettingsFile::Home(path)) => {
                    return Err(Report::storage(format!(
                        "cannot read the settings in {}: {error}",
                        path.display()
                    ))
                    .hint("check the owner of the file, or choose another home with --home or PH_HOME"));
                }
            }
        }
        layers.roster.check()?;
        for (index, setting) in SETTINGS.iter().enumerate() {
            if let Some(text) = std::env::var_os(setting.env).filter(|text| !text.is_empty()) {
                let text = text.to_string_lossy().into_owned();
                layers.values[index] = Value {
                    text,
                    source: SettingSource::Env(setting.env),
                };
            }
        }
        if let Some(color) = color_flag {
            layers.set(
                "output.color",
                color.to_owned(),
                SettingSource::Flag("--color"),
            );
        }
        Ok(layers)
    }

    fn set(&mut self, key: &str, text: String, source: SettingSource) -> bool {
        match SETTINGS.iter().position(|setting| setting.key == key) {
            Some(index) => {
                self.values[index] = Value { text, source };
                true
            }
            None => false,
        }
    }

    /// Add a project's file, or ignore all of it if it is invalid: a repository must not stop `ph`.
    fn add_project(&mut self, file: &SettingsFile, text: &str) {
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
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
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
        })?;
        let is_project = matches!(file, SettingsFile::Project(_));
        if is_project {
            self.ignore_person_only(path, &mut table);
        }
        let sections: Vec<_> = table.keys().cloned().collect();
        for section in sections.iter().filter(|name| roster::is_section(name)) {
            if let Some(value) = table.remove(section) {
                self.roster.add(path, section, &value)?;
            }
        }
        if let Some(value) = table.remove(harness::SECTION) {
            self.harnesses.add(path, &value)?;
        }
        let mut found = Vec::new();
        flatten("", &table, &mut found);
        // Keys are compared as they are used below: TOML has several spellings of one key.
        found.retain(|(key, _)| !is_project || !is_person_only(key));
        for (key, value) in found {
            let Some(text) = value else {
                return Err(Report::usage(format!(
                    "{key} in {} is not a plain value",
                    path.display()
                )));
            };
            if !self.set(&key, text, SettingSource::File(path.to_owned())) {
                return Err(unknown(&key, path));
            }
        }
        Ok(())
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Record the settings in a project's table that only a person's own file can make, and remove
    /// their sections.
    fn ignore_person_only(&mut self, path: &Path, table: &mut toml::Table) {
        let mut found = Vec::new();
        flatten("", table, &mut found);
        for (key, value) in found {
            let section = key.split('.').next().unwrap_or_default();
            if !PERSON_ONLY_SECTIONS.contains(&section) && !is_person_only(&key) {
                continue;
            }
            self.ignored.push(NamedSetting {
                key: text::one_line(&key, 80),
                value: value.unwrap_or_else(|| "not a plain value".to_owned()),
                source: SettingSource::File(path.to_owned()),
            });
        }
        for section in PERSON_ONLY_SECTIONS {
            table.remove(section);
        }
    }

    /// Settings that have no effect, because a project's file made them.
    pub(crate) fn ignored(&self) -> &[NamedSetting] {
        &self.ignored
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

    pub(crate) fn harnesses(&self) -> &Harnesses {
        &self.harnesses
    }

    /// Return the source of a setting.
    pub(crate) fn source(&self, key: &str) -> Option<&SettingSource> {
        let mut rows = self.rows();
        rows.find(|(setting, _)| setting.key == key)
            .map(|(_, value)| &value.source)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Setting, &Value)> {
        SETTINGS.iter().zip(&self.values)
    }

    fn length(&self, key: &str) -> Result<Duration> {
        self.get(key, |text| parse_duration(text).ok()?.try_into().ok())
    }

    fn get<T>(&self, key: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let (setting, value) = self
            .rows()
            .find(|(setting, _)| setting.key == key)
            .expect("every requested key is a row of SETTINGS");
        read(&value.text).ok_or_else(|| {
            Report::usage(format!(
                "{key} cannot be '{}' ({})",
                value.text, value.source
            ))
            .hint(format!("{key}: {}", setting.help))
        })
    }
}

impl Config {
    pub(crate) fn of(layers: &Layers) -> Result<Self> {
        Ok(Self {
            color: layers.get("output.color", |text| match text {
                "auto" => Some(ColorChoice::Auto),
                "always" => Some(ColorChoice::Always),
                "never" => Some(ColorChoice::Never),
                _ => None,
            })?,
            time: layers.get("output.time", |text| match text {
                "local" => Some(TimeStyle::Local),
                "utc" => Some(TimeStyle::Utc),
                "relative" => Some(TimeStyle::Relative),
                _ => None,
            })?,
            priority: layers.get("send.priority", |text| text.parse().ok())?,
            patience: Patience(layers.length("journal.lock_timeout")?),
            limits: Limits {
                hops: layers.get("mail.max_hops", |text| text.parse().ok())?,
                rate: layers.get("mail.max_rate", |text| text.parse().ok())?,
            },
            without_home: layers.length("session.without_home")?,
            mail: Mail::of(layers)?,
            roster: layers.roster.clone(),
            harnesses: layers.harnesses.clone(),
        })
    }
}

/// Collect the values of a table under their dotted keys. A value that is a list is `None`.
fn flatten(prefix: &str, table: &toml::Table, found: &mut Vec<(String, Option<String>)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, found),
            toml::Value::String(text) => found.push((key, Some(text.clone()))),
            toml::Value::Integer(number) => found.push((key, Some(number.to_string()))),
            toml::Value::Boolean(value) => found.push((key, Some(value.to_string()))),
            toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Array(_) => {
                found.push((key, None));
            }
        }
    }
}

/// Variables of Posthaste that are not settings.
const OTHER_VARIABLES: [&str; 10] = [
    "PH_AGENT",
    "PH_HOME",
    "PH_SOCKET",
    "PH_ITERATION",
    "PH_COMPLETE",
    "PH_HOOKS",
    "PH_LOG",
    "PH_MAIL_ASKING",
    "PH_PROGRAM",
    "PH_PROVIDER_STATE",
];

/// Return one notice for each environment variable that looks like a misspelt one of Posthaste. This is not
/// an error: other programs may use the prefix `PH_`.
pub(crate) fn misspelt_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| misspelt(&name)).collect()
}

fn misspelt(name: &str) -> Option<String> {
    /// Maximum edit distance for names of at least [`LONG_NAME_BYTES`]; 1 for shorter ones.
    const MAX_EDITS: usize = 2;
    const LONG_NAME_BYTES: usize = 12;
    let known = SETTINGS
        .iter()
        .map(|setting| setting.env)
        .chain(OTHER_VARIABLES);
    // Every command runs this, so distances are computed only for unknown variables.
    if !name.starts_with("PH_") || known.clone().any(|known| known == name) {
        return None;
    }
    let distance = |known: &'static str| (strsim::osa_distance(name, known), known);
    let (slips, nearest) = known.map(distance).min()?;
    let most = if nearest.len() < LONG_NAME_BYTES {
        1
    } else {
        MAX_EDITS
    };
    (slips <= most).then(|| format!("the variable {name} is unknown; did you mean {nearest}?"))
}

fn unknown(key: &str, path: &Path) -> Report {
    let nearest = SETTINGS
        .iter()
        .map(|setting| (strsim::jaro_winkler(key, setting.key), setting.key))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(nearness, _)| *nearness > 0.7);
    let shown = text::one_line(key, 80);
    let report = Report::usage(format!("unknown setting {shown} in {}", path.display()));
    match nearest {
        Some((_, known)) => report.hint(format!("did you mean {known}?")),
        None => report.hint("'ph config show' lists all settings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(mail, Mail::Journal, "{text}");
            assert_ne!(layers.ignored(), [], "{text}");
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
            let source = layers.source(setting.key).unwrap();
            let is_set = matches!(source, SettingSource::File(_));
            assert_eq!(is_set, is_of_project, "{}", setting.key);
            assert_eq!(
                layers.ignored().is_empty(),
                is_of_project,
                "{}",
                setting.key
            );
        }
    }

    #[test]
    fn a_misspelt_variable_is_reported() {
        let check = |name: &str, want: Option<&str>| {
            let got = misspelt(name);
            let want =
                want.map(|want| format!("the variable {name} is unknown; did you mean {want}?"));
            assert_eq!(got, want, "{name}");
        };
        check("PH_SEND_PRIORTY", Some("PH_SEND_PRIORITY"));
        check("PH_OUTPUT_COLOUR", Some("PH_OUTPUT_COLOR"));
        check("PH_HOEM", Some("PH_HOME"));
        check("PH_SEND_PRIORITY", None);
        check("PH_MAIL_TICK", None);
        check("PH_HOME", None);
        check("PH_CODE", None);
        check("PH_BALANCE_OF_THE_POOL", None);
        check("PHP_HOME", None);
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
