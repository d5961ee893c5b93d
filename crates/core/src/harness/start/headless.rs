//! Describes how a loop runs an agent without a terminal: one prompt in, work, exit.

use super::{Start, StartFile};
use crate::harness::Template;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a loop runs this agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headless {
    /// Arguments between the command and the person's own arguments.
    pub args: Vec<Template>,
    pub env: BTreeMap<String, Template>,
    #[serde(rename = "file", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StartFile>,
    /// The flag that selects the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub prompt: PromptWay,
    pub output: Output,
}

/// Format of the program's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Text for people.
    #[default]
    Text,
    /// Claude Code's stream of JSON events, one per line; people see it as text.
    StreamJson,
}

/// How the program receives its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptWay {
    /// As its whole standard input.
    #[default]
    Stdin,
    /// As its last argument.
    Argument,
}

impl Headless {
    /// Return the additions to the command line. No hooks are given, and installed ones stay
    /// silent: a loop's mail is in its prompt.
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

    /// Return why this section is invalid, if it is.
    pub(in crate::harness) fn fault(&self) -> Option<&'static str> {
        if let Some(flag) = &self.model
            && (!flag.starts_with('-') || flag.contains(['=', '\0', ' ']))
        {
            return Some("'model' must be a flag, such as --model");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_model_is_given_by_its_flag_and_is_not_a_template() {
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
    fn the_model_s_flag_must_be_a_flag() {
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
