//! The address book in the settings: aliases and groups of agents, and the text of each agent's
//! nudge.
//!
//! ```toml
//! [aliases]
//! lead = "coder-1"
//! [groups]
//! reviewers = ["coder-2", "coder-3"]
//! [agents.coder-1]
//! nudge = "Check your mail: ph inbox"
//! ```
//!
//! Every name has an inbox, so a plain name need not be in the roster. A name written as `@name`
//! must be an alias or a group.

use crate::settings::{NamedSetting, SettingSource};
use posthaste_core::AgentName;
use posthaste_store::report::{Report, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum edit distance at which an unknown name counts as a typing error.
const MAX_TYPO_EDITS: usize = 1;
/// Minimum length of both names in that comparison: short names are too similar.
const MIN_TYPO_NAME_BYTES: usize = 4;
/// Maximum length of a nudge's text.
const MAX_NUDGE_BYTES: usize = 1_000;

#[derive(Debug, Clone, Default)]
pub struct Roster {
    aliases: BTreeMap<AgentName, Sourced<Address>>,
    groups: BTreeMap<AgentName, Sourced<Vec<Address>>>,
    nudges: BTreeMap<AgentName, Sourced<String>>,
}

#[derive(Debug, Clone)]
struct Sourced<T> {
    value: T,
    source: SettingSource,
}

/// A recipient as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub name: AgentName,
    /// Written as `@name`: it must be in the roster.
    pub is_listed: bool,
}

impl From<AgentName> for Address {
    fn from(name: AgentName) -> Self {
        Self {
            name,
            is_listed: false,
        }
    }
}

/// Return whether a table of a settings file belongs to the roster.
pub fn is_section(name: &str) -> bool {
    matches!(name, "aliases" | "groups" | "agents")
}

impl Roster {
    /// Add a table of a settings file. Its values replace those of earlier files.
    pub fn add(&mut self, path: &Path, section: &str, value: &toml::Value) -> Result<()> {
        let Some(table) = value.as_table() else {
            return Err(wrong(path, section, "must be a table"));
        };
        for (name, value) in table {
            let key = format!("{section}.{name}");
            let name = AgentName::parse(name)
                .map_err(|error| wrong(path, &key, &format!("is invalid: {error}")))?;
            let source = SettingSource::File(path.to_owned());
            match section {
                "agents" => self.add_agent(path, &key, &name, value)?,
                _ if name.is_human() => {
                    return Err(wrong(path, &key, "is invalid: 'human' is the person"));
                }
                "aliases" => {
                    let value = member(path, &key, value)?;
                    self.groups.remove(&name);
                    self.aliases.insert(name, Sourced { value, source });
                }
                _ => {
                    let members = value.as_array().filter(|members| !members.is_empty());
                    let members = members.ok_or_else(|| {
                        wrong(path, &key, "must be a list of names, such as [\"a\"]")
                    })?;
                    let members = members.iter().map(|value| member(path, &key, value));
                    let value = members.collect::<Result<Vec<_>>>()?;
                    self.aliases.remove(&name);
                    self.groups.insert(name, Sourced { value, source });
                }
            }
        }
        Ok(())
    }

    fn add_agent(
        &mut self,
        path: &Path,
        key: &str,
        name: &AgentName,
        value: &toml::Value,
    ) -> Result<()> {
        let Some(table) = value.as_table() else {
            return Err(wrong(path, key, "must be a table"));
        };
        for (setting, value) in table {
            let key = format!("{key}.{setting}");
            if setting != "nudge" {
                return Err(
                    Report::usage(format!("unknown setting {key} in {}", path.display()))
                        .hint("the settings of an agent are: nudge"),
                );
            }
            let text = value.as_str().map(str::trim);
            let text = text
                .filter(|text| !text.is_empty() && text.len() <= MAX_NUDGE_BYTES && is_line(text));
            let value = text
                .ok_or_else(|| wrong(path, &key, "must be a text of one line"))?
                .to_owned();
            let source = SettingSource::File(path.to_owned());
            self.nudges.insert(name.clone(), Sourced { value, source });
        }
        Ok(())
    }

    /// Check that every alias and group resolves to agents. Call this after all files are read.
    pub fn check(&self) -> Result<()> {
        let aliases = self.aliases.iter();
        let aliases =
            aliases.map(|(name, entry)| (name, &entry.source, std::slice::from_ref(&entry.value)));
        let groups = self.groups.iter();
        let groups = groups.map(|(name, entry)| (name, &entry.source, entry.value.as_slice()));
        for (name, source, members) in aliases.chain(groups) {
            if let Some(member) = members.iter().find(|member| !self.knows(member)) {
                let report = self.unknown(&member.name);
                return Err(report.after(&format!("'{name}' in the settings ({source}):")));
            }
            let mut found = Vec::new();
            if self.collect(name, &mut vec![], &mut found).is_err() {
                return Err(
                    Report::usage(format!("'{name}' refers to itself ({source})"))
                        .hint("an alias or group cannot be a member of itself"),
                );
            }
        }
        Ok(())
    }

    /// Resolve addresses to agents, without duplicates.
    pub fn resolve(&self, addresses: &[Address]) -> Result<Vec<AgentName>> {
        let mut found = Vec::new();
        for address in addresses {
            if !self.knows(address) {
                return Err(self.unknown(&address.name));
            }
            // `check` has rejected cycles.
            let _ = self.collect(&address.name, &mut vec![], &mut found);
        }
        Ok(found)
    }

    /// Resolve an address that must name one agent.
    pub fn agent(&self, address: &Address) -> Result<AgentName> {
        let name = &address.name;
        if self.is_group(name) {
            return Err(Report::usage(format!("'{name}' is a group, not an agent"))
                .hint("name one of its members: 'ph config show' lists them"));
        }
        let found = self.resolve(std::slice::from_ref(address))?;
        Ok(found.into_iter().next().unwrap_or_else(|| name.clone()))
    }

    /// Return whether an address is valid: one written as `@name` must be an alias or a group.
    fn knows(&self, address: &Address) -> bool {
        !address.is_listed || self.has(&address.name)
    }

    /// Return whether a name is an alias or a group.
    pub fn has(&self, name: &AgentName) -> bool {
        self.aliases.contains_key(name) || self.groups.contains_key(name)
    }

    /// Return whether a name is a group, of any size, or an alias of one.
    pub fn is_group(&self, name: &AgentName) -> bool {
        match self.aliases.get(name) {
            // `check` has rejected cycles, so this ends.
            Some(alias) => self.is_group(&alias.value.name),
            None => self.groups.contains_key(name),
        }
    }

    fn collect(
        &self,
        name: &AgentName,
        above: &mut Vec<AgentName>,
        found: &mut Vec<AgentName>,
    ) -> std::result::Result<(), ()> {
        if above.contains(name) {
            return Err(());
        }
        above.push(name.clone());
        if let Some(alias) = self.aliases.get(name) {
            self.collect(&alias.value.name, above, found)?;
        } else if let Some(group) = self.groups.get(name) {
            for member in &group.value {
                self.collect(&member.name, above, found)?;
            }
        } else if !found.contains(name) {
            found.push(name.clone());
        }
        above.pop();
        Ok(())
    }

    /// Return the alias or group that `name` may be a typing error for.
    pub fn nearest(&self, name: &AgentName) -> Option<&AgentName> {
        let names = self.aliases.keys().chain(self.groups.keys());
        let is_long_enough = |name: &AgentName| name.as_str().len() >= MIN_TYPO_NAME_BYTES;
        names
            .filter(|known| *known != name && is_long_enough(known) && is_long_enough(name))
            .find(|known| strsim::osa_distance(known.as_str(), name.as_str()) <= MAX_TYPO_EDITS)
    }

    fn unknown(&self, name: &AgentName) -> Report {
        let report = Report::usage(format!("no alias or group is named '{name}'"));
        match self.nearest(name) {
            Some(known) => report.hint(format!("did you mean @{known}?")),
            None => report.hint("'ph config show' lists them; write an agent's name without '@'"),
        }
    }

    /// Return all aliases and groups.
    pub fn names(&self) -> Vec<AgentName> {
        self.aliases
            .keys()
            .chain(self.groups.keys())
            .cloned()
            .collect()
    }

    /// Return the agent's default nudge text.
    pub fn nudge(&self, name: &AgentName) -> Option<&str> {
        self.nudges.get(name).map(|entry| entry.value.as_str())
    }

    pub fn rows(&self) -> Vec<NamedSetting> {
        let aliases = self.aliases.iter().map(|(name, entry)| NamedSetting {
            key: format!("aliases.{name}"),
            value: entry.value.name.to_string(),
            source: entry.source.clone(),
        });
        let groups = self.groups.iter().map(|(name, entry)| NamedSetting {
            key: format!("groups.{name}"),
            value: entry
                .value
                .iter()
                .map(|member| member.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            source: entry.source.clone(),
        });
        let nudges = self.nudges.iter().map(|(name, entry)| NamedSetting {
            key: format!("agents.{name}.nudge"),
            value: entry.value.clone(),
            source: entry.source.clone(),
        });
        nudges.chain(aliases).chain(groups).collect()
    }
}

fn member(path: &Path, key: &str, value: &toml::Value) -> Result<Address> {
    let text = value
        .as_str()
        .ok_or_else(|| wrong(path, key, "must name agents"))?;
    let listed = text.strip_prefix('@');
    let name = AgentName::parse(listed.unwrap_or(text));
    let name = name.map_err(|error| wrong(path, key, &format!("is invalid: {error}")))?;
    Ok(Address {
        name,
        is_listed: listed.is_some(),
    })
}

/// Return whether a text is one line without control characters.
pub fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn wrong(path: &Path, key: &str, what: &str) -> Report {
    Report::usage(format!("{key} in {} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(text: &str) -> Result<Roster> {
        let table: toml::Table = text.parse().unwrap();
        let mut roster = Roster::default();
        for (section, value) in &table {
            roster.add(Path::new("config.toml"), section, value)?;
        }
        roster.check()?;
        Ok(roster)
    }

    fn found(roster: &Roster, words: &[&str]) -> std::result::Result<Vec<String>, String> {
        let addresses: Vec<_> = words
            .iter()
            .map(|word| Address {
                name: AgentName::parse(word.trim_start_matches('@')).unwrap(),
                is_listed: word.starts_with('@'),
            })
            .collect();
        let names = roster.resolve(&addresses);
        names
            .map(|names| names.iter().map(ToString::to_string).collect())
            .map_err(|report| report.message().to_owned())
    }

    #[test]
    fn addresses_resolve_to_agents_without_duplicates() {
        let roster = roster(
            "[aliases]\nlead = 'a'\n[groups]\nteam = ['lead', 'b']\nall-of-us = ['@team', 'a', 'c']\n",
        )
        .unwrap();
        let check = |words: &[&str], want: &[&str]| {
            let want: Vec<String> = want.iter().map(ToString::to_string).collect();
            assert_eq!(found(&roster, words), Ok(want), "{words:?}");
        };
        check(&["x"], &["x"]);
        check(&["lead"], &["a"]);
        check(&["@team"], &["a", "b"]);
        check(&["all-of-us", "b", "human"], &["a", "b", "c", "human"]);
        assert_eq!(
            found(&roster, &["@teem"]),
            Err("no alias or group is named 'teem'".to_owned())
        );
        assert!(roster.nearest(&AgentName::parse("teem").unwrap()).is_some());
        assert!(roster.nearest(&AgentName::parse("team").unwrap()).is_none());
        assert!(roster.nearest(&AgentName::parse("tea").unwrap()).is_none());
    }

    #[test]
    fn an_error_names_the_invalid_setting() {
        let check = |text: &str, want: &str| {
            let report = roster(text).unwrap_err();
            assert!(report.message().contains(want), "{}", report.message());
        };
        check("aliases = 3\n", "aliases in config.toml must be a table");
        check("[aliases]\na = 'a'\n", "'a' refers to itself");
        check("[groups]\na = ['b']\nb = ['a']\n", "refers to itself");
        check(
            "[groups]\na = 'b'\n",
            "groups.a in config.toml must be a list",
        );
        check(
            "[groups]\na = []\n",
            "groups.a in config.toml must be a list",
        );
        check(
            "[groups]\na = [3]\n",
            "groups.a in config.toml must name agents",
        );
        check("[groups]\na = ['B']\n", "starts with a-z or 0-9");
        check("[groups]\n'A b' = ['b']\n", "groups.A b");
        check("[groups]\nhuman = ['b']\n", "'human' is the person");
        check("[aliases]\nhuman = 'b'\n", "'human' is the person");
        check("[agents.a]\nnudge = ''\n", "agents.a.nudge");
        check(
            "[agents.a]\nnudge = \"a\\nb\"\n",
            "must be a text of one line",
        );
        check("[groups]\na = ['@b']\n", "no alias or group is named 'b'");
        check("[aliases]\na = '@b'\n", "no alias or group is named 'b'");
        check(
            "[agents.a]\nnoodge = 'x'\n",
            "unknown setting agents.a.noodge",
        );
    }
}
