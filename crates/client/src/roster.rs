//! The address book in the settings: other names for agents, groups of them, and what an agent is
//! nudged with.
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
//! Every agent's name has an inbox, so a name that stands nowhere is no mistake by itself; one
//! that is written `@name` must stand here.

use crate::settings::{Row, Source};
use posthaste_core::AgentName;
use posthaste_store::report::{Report, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// How near a name is to one of the book's before it is taken for a slip.
const NEAR: usize = 1;
/// How long both are at least: of short names, every other is as near.
const TELLING: usize = 4;
/// How long what an agent is nudged with may be.
const NUDGE: usize = 1_000;

#[derive(Debug, Clone, Default)]
pub struct Book {
    aliases: BTreeMap<AgentName, Entry<Address>>,
    groups: BTreeMap<AgentName, Entry<Vec<Address>>>,
    nudges: BTreeMap<AgentName, Entry<String>>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    value: T,
    source: Source,
}

/// Somebody that a message is for, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub name: AgentName,
    /// Written `@name`: it must stand in the book.
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

/// Whether a table of a settings file is a part of the book.
pub fn is_section(name: &str) -> bool {
    matches!(name, "aliases" | "groups" | "agents")
}

impl Book {
    /// Takes in one such table of a file; what it says goes before what was there.
    pub fn add(&mut self, path: &Path, section: &str, value: &toml::Value) -> Result<()> {
        let Some(table) = value.as_table() else {
            return Err(wrong(path, section, "is a table"));
        };
        for (name, value) in table {
            let key = format!("{section}.{name}");
            let name = AgentName::parse(name)
                .map_err(|error| wrong(path, &key, &format!("cannot be: {error}")))?;
            let source = Source::File(path.to_owned());
            match section {
                "agents" => self.add_agent(path, &key, &name, value)?,
                _ if name.is_human() => {
                    return Err(wrong(path, &key, "cannot be: 'human' is the person"));
                }
                "aliases" => {
                    let value = member(path, &key, value)?;
                    self.groups.remove(&name);
                    self.aliases.insert(name, Entry { value, source });
                }
                _ => {
                    let members = value.as_array().filter(|members| !members.is_empty());
                    let members = members
                        .ok_or_else(|| wrong(path, &key, "is a list of names, such as [\"a\"]"))?;
                    let members = members.iter().map(|value| member(path, &key, value));
                    let value = members.collect::<Result<Vec<_>>>()?;
                    self.aliases.remove(&name);
                    self.groups.insert(name, Entry { value, source });
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
            return Err(wrong(path, key, "is a table"));
        };
        for (setting, value) in table {
            let key = format!("{key}.{setting}");
            if setting != "nudge" {
                return Err(
                    Report::usage(format!("unknown setting {key} in {}", path.display()))
                        .hint("an agent has: nudge"),
                );
            }
            let text = value.as_str().map(str::trim);
            let text = text.filter(|text| !text.is_empty() && text.len() <= NUDGE && is_line(text));
            let value = text
                .ok_or_else(|| wrong(path, &key, "is a text of one line"))?
                .to_owned();
            let source = Source::File(path.to_owned());
            self.nudges.insert(name.clone(), Entry { value, source });
        }
        Ok(())
    }

    /// Whether everything in it leads to agents. To be asked when all files are read.
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
                    Report::usage(format!("'{name}' leads back to itself ({source})"))
                        .hint("an alias or group cannot be a member of itself"),
                );
            }
        }
        Ok(())
    }

    /// Those that an address means, each once.
    pub fn resolve(&self, addresses: &[Address]) -> Result<Vec<AgentName>> {
        let mut found = Vec::new();
        for address in addresses {
            if !self.knows(address) {
                return Err(self.unknown(&address.name));
            }
            // Checked when the settings were read.
            let _ = self.collect(&address.name, &mut vec![], &mut found);
        }
        Ok(found)
    }

    /// The one agent that a name means, for who asks about one.
    pub fn agent(&self, address: &Address) -> Result<AgentName> {
        let name = &address.name;
        if self.is_group(name) {
            return Err(Report::usage(format!("'{name}' is a group, not an agent"))
                .hint("name one of its members: 'ph config show' lists them"));
        }
        let found = self.resolve(std::slice::from_ref(address))?;
        Ok(found.into_iter().next().unwrap_or_else(|| name.clone()))
    }

    /// Whether an address can be: one that is written `@name` must be an alias or a group.
    fn knows(&self, address: &Address) -> bool {
        !address.is_listed || self.has(&address.name)
    }

    /// Whether a name is an alias or a group.
    pub fn has(&self, name: &AgentName) -> bool {
        self.aliases.contains_key(name) || self.groups.contains_key(name)
    }

    /// Whether a name stands for several by its nature, however many they are.
    pub fn is_group(&self, name: &AgentName) -> bool {
        match self.aliases.get(name) {
            // Checked when the settings were read: this comes to an end.
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

    /// The name in the book that this one is a slip of, if it looks like one.
    pub fn nearest(&self, name: &AgentName) -> Option<&AgentName> {
        let names = self.aliases.keys().chain(self.groups.keys());
        let is_telling = |name: &AgentName| name.as_str().len() >= TELLING;
        names
            .filter(|known| *known != name && is_telling(known) && is_telling(name))
            .find(|known| strsim::osa_distance(known.as_str(), name.as_str()) <= NEAR)
    }

    fn unknown(&self, name: &AgentName) -> Report {
        let report = Report::usage(format!("no alias or group is called '{name}'"));
        match self.nearest(name) {
            Some(known) => report.hint(format!("did you mean @{known}?")),
            None => report.hint("'ph config show' lists them; an agent's name goes without '@'"),
        }
    }

    /// All aliases and groups.
    pub fn names(&self) -> Vec<AgentName> {
        self.aliases
            .keys()
            .chain(self.groups.keys())
            .cloned()
            .collect()
    }

    /// What this agent is nudged with, where nothing else is said.
    pub fn nudge(&self, name: &AgentName) -> Option<&str> {
        self.nudges.get(name).map(|entry| entry.value.as_str())
    }

    pub fn rows(&self) -> Vec<Row> {
        let aliases = self.aliases.iter().map(|(name, entry)| Row {
            key: format!("aliases.{name}"),
            value: entry.value.name.to_string(),
            source: entry.source.clone(),
        });
        let groups = self.groups.iter().map(|(name, entry)| Row {
            key: format!("groups.{name}"),
            value: entry
                .value
                .iter()
                .map(|member| member.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            source: entry.source.clone(),
        });
        let nudges = self.nudges.iter().map(|(name, entry)| Row {
            key: format!("agents.{name}.nudge"),
            value: entry.value.clone(),
            source: entry.source.clone(),
        });
        nudges.chain(aliases).chain(groups).collect()
    }
}

fn member(path: &Path, key: &str, value: &toml::Value) -> Result<Address> {
    let said = value
        .as_str()
        .ok_or_else(|| wrong(path, key, "names agents"))?;
    let listed = said.strip_prefix('@');
    let name = AgentName::parse(listed.unwrap_or(said));
    let name = name.map_err(|error| wrong(path, key, &format!("cannot be so: {error}")))?;
    Ok(Address {
        name,
        is_listed: listed.is_some(),
    })
}

/// Whether a text is one line, and nothing but text.
pub fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn wrong(path: &Path, key: &str, what: &str) -> Report {
    Report::usage(format!("{key} in {} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(text: &str) -> Result<Book> {
        let table: toml::Table = text.parse().unwrap();
        let mut book = Book::default();
        for (section, value) in &table {
            book.add(Path::new("config.toml"), section, value)?;
        }
        book.check()?;
        Ok(book)
    }

    fn found(book: &Book, words: &[&str]) -> std::result::Result<Vec<String>, String> {
        let addresses: Vec<_> = words
            .iter()
            .map(|word| Address {
                name: AgentName::parse(word.trim_start_matches('@')).unwrap(),
                is_listed: word.starts_with('@'),
            })
            .collect();
        let names = book.resolve(&addresses);
        names
            .map(|names| names.iter().map(ToString::to_string).collect())
            .map_err(|report| report.message().to_owned())
    }

    #[test]
    fn addresses_lead_to_agents_each_once() {
        let book = book(
            "[aliases]\nlead = 'a'\n[groups]\nteam = ['lead', 'b']\nall-of-us = ['@team', 'a', 'c']\n",
        )
        .unwrap();
        let check = |words: &[&str], want: &[&str]| {
            let want: Vec<String> = want.iter().map(ToString::to_string).collect();
            assert_eq!(found(&book, words), Ok(want), "{words:?}");
        };
        check(&["x"], &["x"]);
        check(&["lead"], &["a"]);
        check(&["@team"], &["a", "b"]);
        check(&["all-of-us", "b", "human"], &["a", "b", "c", "human"]);
        assert_eq!(
            found(&book, &["@teem"]),
            Err("no alias or group is called 'teem'".to_owned())
        );
        assert!(book.nearest(&AgentName::parse("teem").unwrap()).is_some());
        assert!(book.nearest(&AgentName::parse("team").unwrap()).is_none());
        assert!(book.nearest(&AgentName::parse("tea").unwrap()).is_none());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let check = |text: &str, want: &str| {
            let report = book(text).unwrap_err();
            assert!(report.message().contains(want), "{}", report.message());
        };
        check("aliases = 3\n", "aliases in config.toml is a table");
        check("[aliases]\na = 'a'\n", "'a' leads back to itself");
        check("[groups]\na = ['b']\nb = ['a']\n", "leads back to itself");
        check("[groups]\na = 'b'\n", "groups.a in config.toml is a list");
        check("[groups]\na = []\n", "groups.a in config.toml is a list");
        check(
            "[groups]\na = [3]\n",
            "groups.a in config.toml names agents",
        );
        check("[groups]\na = ['B']\n", "starts with a-z or 0-9");
        check("[groups]\n'A b' = ['b']\n", "groups.A b");
        check("[groups]\nhuman = ['b']\n", "'human' is the person");
        check("[aliases]\nhuman = 'b'\n", "'human' is the person");
        check("[agents.a]\nnudge = ''\n", "agents.a.nudge");
        check("[agents.a]\nnudge = \"a\\nb\"\n", "is a text of one line");
        check("[groups]\na = ['@b']\n", "no alias or group is called 'b'");
        check("[aliases]\na = '@b'\n", "no alias or group is called 'b'");
        check(
            "[agents.a]\nnoodge = 'x'\n",
            "unknown setting agents.a.noodge",
        );
    }
}
