//! How an agent is run without a terminal of its own to talk in: one prompt in, work, the end.
//! Words of a manifest; who runs it is elsewhere.

use super::{Start, StartFile};
use crate::harness::Template;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a loop runs this agent. What a manifest does not say here it cannot do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headless {
    /// Behind the command, before what a person has said.
    pub args: Vec<Template>,
    pub env: BTreeMap<String, Template>,
    #[serde(rename = "file", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StartFile>,
    /// The flag by which it is told its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub prompt: PromptWay,
    pub output: Output,
}

/// What it writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// What people read.
    #[default]
    Text,
    /// A line of JSON for each event, in Claude Code's words: people are shown it as text.
    StreamJson,
}

/// How it gets its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptWay {
    /// All of its standard input.
    #[default]
    Stdin,
    /// Its last argument.
    Argument,
}

impl Headless {
    /// What is added when it is started. It is given no hooks, and those that a person has
    /// installed keep still: a loop's mail is in its prompt.
    pub fn start(&self, model: Option<&str>) -> Start {
        let mut args = self.args.clone();
        if let (Some(flag), Some(model)) = (&self.model, model) {
            args.extend([Template::literal(flag), Template::literal(model)]);
        }
        Start {
            args,
            env: self.env.clone(),
            except: Vec::new(),
            hooks: true,
            files: self.files.clone(),
        }
    }

    /// What is wrong with it, if anything.
    pub(in crate::harness) fn fault(&self) -> Option<&'static str> {
        if let Some(flag) = &self.model
            && (!flag.starts_with('-') || flag.contains(['=', '\0', ' ']))
        {
            return Some("model: a flag, written like --model");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_goes_by_its_flag_and_is_no_template() {
        let headless: Headless =
            serde_json::from_value(json!({"args": ["-p"], "model": "--model"})).unwrap();
        let words = |model| -> Vec<String> {
            let start = headless.start(model);
            start
                .args
                .iter()
                .map(|arg| arg.fill(|_| "filled".to_owned()))
                .collect()
        };
        assert_eq!(words(None), ["-p"]);
        assert_eq!(words(Some("{home}{{")), ["-p", "--model", "{home}{{"]);
    }

    #[test]
    fn a_flag_is_one() {
        let fault = |flag: &str| {
            let headless = Headless {
                model: Some(flag.to_owned()),
                ..Headless::default()
            };
            headless.fault().is_some()
        };
        assert!(!fault("--model") && !fault("-m"));
        assert!(fault("model") && fault("--model=x") && fault("--a b") && fault(""));
    }
}
