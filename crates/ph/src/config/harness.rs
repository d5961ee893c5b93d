//! The settings of each kind of agent, under the name of its harness.
//!
//! ```toml
//! [harness.codex]
//! status_rows = 1
//! ```
//!
//! A project's file cannot set `status_rows`: the project may come from an untrusted author, and
//! every allowed row weakens the check before typing. The names are not checked here: the harnesses
//! are files of their own, which few commands read.

use posthaste_client::settings::{NamedSetting, SettingSource};
use posthaste_core::text;
use posthaste_session::harness::StatusRows;
use posthaste_store::report::{Report, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The table of a settings file that holds these settings.
pub(super) const SECTION: &str = "harness";
const STATUS_ROWS: &str = "status_rows";
const MUST_BE_TABLE: &str = "must be a table, such as [harness.codex]";
/// Maximum number of rows of a person's status line.
const MAX_STATUS_ROWS: i64 = 20;

/// Settings about harnesses, by the harness's name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Harnesses {
    status_rows: BTreeMap<String, RowCount>,
}

#[derive(Debug, Clone)]
struct RowCount {
    count: usize,
    source: SettingSource,
}

impl Harnesses {
    /// Add the table of one file. Its values replace those of earlier files.
    pub(super) fn add(&mut self, path: &Path, value: &toml::Value) -> Result<()> {
        let Some(table) = value.as_table() else {
            return Err(wrong(path, SECTION, MUST_BE_TABLE));
        };
        for (name, value) in table {
            let key = format!("{SECTION}.{name}");
            let Some(table) = value.as_table() else {
                return Err(wrong(path, &key, MUST_BE_TABLE));
            };
            for (setting, value) in table {
                let key = format!("{key}.{setting}");
                if setting != STATUS_ROWS {
                    return Err(unknown(path, &key, setting));
                }
                let count = value.as_integer();
                let count = count.filter(|count| (0..=MAX_STATUS_ROWS).contains(count));
                let count = count.and_then(|count| usize::try_from(count).ok());
                let what = format!("must be a whole number from 0 to {MAX_STATUS_ROWS}");
                let count = count.ok_or_else(|| wrong(path, &key, &what))?;
                let source = SettingSource::File(path.to_owned());
                let rows = RowCount { count, source };
                self.status_rows.insert(name.clone(), rows);
            }
        }
        Ok(())
    }

    /// Rows of the person's status line, by harness.
    pub(crate) fn status_rows(&self) -> StatusRows {
        let rows = self.status_rows.iter();
        rows.map(|(name, rows)| (name.clone(), rows.count))
            .collect()
    }

    /// The harnesses that the settings name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.status_rows.keys().map(String::as_str)
    }

    /// The settings, for `ph config show`.
    pub(crate) fn rows(&self) -> Vec<NamedSetting> {
        let rows = self.status_rows.iter().map(|(name, rows)| NamedSetting {
            key: format!("{SECTION}.{}.{STATUS_ROWS}", text::one_line(name, 40)),
            value: rows.count.to_string(),
            source: rows.source.clone(),
        });
        rows.collect()
    }
}

fn wrong(path: &Path, key: &str, what: &str) -> Report {
    let key = text::one_line(key, 80);
    Report::usage(format!("{key} in {} {what}", path.display()))
}

fn unknown(path: &Path, key: &str, setting: &str) -> Report {
    let key = text::one_line(key, 80);
    let report = Report::usage(format!("unknown setting {key} in {}", path.display()));
    match strsim::jaro_winkler(setting, STATUS_ROWS) > 0.7 {
        true => report.hint(format!("did you mean {STATUS_ROWS}?")),
        false => report.hint(format!("the settings of a harness are: {STATUS_ROWS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harnesses(files: &[&str]) -> Result<Harnesses> {
        let mut harnesses = Harnesses::default();
        for text in files {
            let table: toml::Table = text.parse().unwrap();
            harnesses.add(Path::new("config.toml"), &table[SECTION])?;
        }
        Ok(harnesses)
    }

    #[test]
    fn the_later_file_wins_for_the_harness_that_it_names() {
        let files = [
            "[harness.codex]\nstatus_rows = 1\n[harness.lab]\nstatus_rows = 2\n",
            "harness.codex.status_rows = 3\n",
        ];
        let harnesses = harnesses(&files).unwrap();
        let want = [("codex".to_owned(), 3), ("lab".to_owned(), 2)];
        assert_eq!(harnesses.status_rows(), want.into());
        let rows = harnesses.rows();
        let rows: Vec<_> = rows.iter().map(|row| (&*row.key, &*row.value)).collect();
        let want = [
            ("harness.codex.status_rows", "3"),
            ("harness.lab.status_rows", "2"),
        ];
        assert_eq!(rows, want);
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let check = |text: &str, want: &str, hint: &str| {
            let report = harnesses(&[text]).unwrap_err();
            assert!(report.message().contains(want), "{}", report.message());
            assert_eq!(report.advice().unwrap_or_default(), hint, "{text}");
        };
        let count = "harness.a.status_rows in config.toml must be a whole number from 0 to 20";
        check("[harness.a]\nstatus_rows = -1\n", count, "");
        check("[harness.a]\nstatus_rows = 21\n", count, "");
        check("[harness.a]\nstatus_rows = '1'\n", count, "");
        let table = "harness in config.toml must be a table, such as [harness.codex]";
        check("harness = 1\n", table, "");
        let table = "harness.a in config.toml must be a table, such as [harness.codex]";
        check("harness.a = 1\n", table, "");
        check(
            "[harness.a]\nstatus_row = 1\n",
            "unknown setting harness.a.status_row in config.toml",
            "did you mean status_rows?",
        );
        check(
            "[harness.a]\nzebra = 1\n",
            "unknown setting harness.a.zebra in config.toml",
            "the settings of a harness are: status_rows",
        );
    }
}
