//! Describes what a program is given at its start, and merges it with the person's own settings.
//! Reads no files.

mod headless;
mod resume;

pub use headless::{Headless, Output, PromptWay};
pub use resume::{Resume, ResumeArgs};

use crate::harness::{Document, Template};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Additions to a program's start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Start {
    /// Arguments between the command and the person's own arguments.
    pub args: Vec<Template>,
    pub env: BTreeMap<String, Template>,
    /// Subcommands and flags with which the program is not an interactive agent and is given
    /// nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Whether the program is given our hooks, so that installed ones stay silent.
    pub hooks: bool,
    #[serde(rename = "file", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StartFile>,
}

impl Start {
    /// Whether the program is an interactive agent with these arguments, as far as can be
    /// determined. The word after a flag may be its value and is ignored.
    pub fn is_for(&self, said: &[String]) -> bool {
        let own = said.iter().take_while(|arg| *arg != "--");
        let mut is_value = false;
        for arg in own {
            let is_flag = arg.starts_with('-');
            if !is_value || is_flag {
                if self.except.contains(arg) {
                    return false;
                }
                if !is_flag {
                    return true;
                }
            }
            is_value = is_flag && !arg.contains('=');
        }
        true
    }
}

/// A file in the session's own directory, which is deleted with the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartFile {
    /// The name, without a directory.
    pub name: String,
    /// The contents. Inserted values are escaped for the inside of a JSON string.
    pub text: Document,
    /// The flag that gives the file to the program. The person's own value, a file or JSON, is
    /// merged with ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// The environment variable that gives the file to the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The file that the program reads if the variable is not set; its contents are merged too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<String>,
    /// Whether the variable holds the contents instead of the path.
    #[serde(default)]
    pub inline: bool,
    /// JSON pointers to settings that the person's own cannot override.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
}

impl StartFile {
    /// Return why this section is invalid, if it is.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let is_plain = !self.name.is_empty()
            && !self.name.starts_with('.')
            && !self.name.contains(['/', '\0']);
        if !is_plain {
            return Some(
                "'name' must be a file name without a directory that does not begin with a dot",
            );
        }
        if !self.own.iter().all(|at| at.starts_with('/')) {
            return Some("'own' must contain JSON pointers, such as /mcp/ph");
        }
        match (&self.flag, &self.variable) {
            (Some(_), Some(_)) => Some("use 'flag' or 'variable', not both"),
            (Some(flag), None) if !flag.starts_with("--") || flag.contains('=') => {
                Some("'flag' must be a flag, such as --settings")
            }
            (None, Some(name)) if !is_variable(name) => {
                Some("'variable' must not contain '=' or begin with PH_")
            }
            (Some(_) | None, None) if self.usual.is_some() || self.inline => {
                Some("'usual' and 'inline' need 'variable'")
            }
            (Some(_) | None, None) | (None, Some(_)) => None,
        }
    }
}

/// Whether a manifest may set the variable.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !name.starts_with("PH_")
}

/// Merge our settings into the person's. The person's value wins; lists contain the person's
/// entries first.
pub fn add(theirs: Value, ours: Value) -> Value {
    match (theirs, ours) {
        (Value::Object(mut theirs), Value::Object(ours)) => {
            for (key, ours) in ours {
                let both = match theirs.remove(&key) {
                    Some(theirs) => add(theirs, ours),
                    None => ours,
                };
                theirs.insert(key, both);
            }
            Value::Object(theirs)
        }
        (Value::Array(mut theirs), Value::Array(ours)) => {
            theirs.extend(ours);
            Value::Array(theirs)
        }
        (theirs, _) => theirs,
    }
}

/// Remove the value at a JSON pointer from the person's settings.
pub fn take_out(settings: &mut Value, pointer: &str) {
    let Some((above, key)) = pointer.rsplit_once('/') else {
        return;
    };
    let above = settings.pointer_mut(above).and_then(Value::as_object_mut);
    if let Some(above) = above {
        above.remove(&key.replace("~1", "/").replace("~0", "~"));
    }
}

/// Whether the arguments contain the flag before any `--`.
pub fn gives_flag(args: &[String], flag: &str) -> bool {
    let own = args.iter().take_while(|arg| *arg != "--");
    let name = |arg: &str| {
        arg.split_once('=')
            .map_or(arg.to_owned(), |(f, _)| f.to_owned())
    };
    own.into_iter().any(|arg| name(arg) == flag)
}

/// Remove a flag and its value from the arguments before any `--`, and return the last value, which
/// is the one that programs use.
pub fn take_flag(args: &mut Vec<String>, flag: &str) -> Option<String> {
    let mut taken = None;
    let mut kept = Vec::with_capacity(args.len());
    let mut rest = std::mem::take(args).into_iter();
    while let Some(arg) = rest.next() {
        let value = arg.strip_prefix(flag).and_then(|v| v.strip_prefix('='));
        if arg == "--" {
            kept.push(arg);
            kept.extend(rest.by_ref());
        } else if let Some(value) = value {
            taken = Some(value.to_owned());
        } else if arg == flag {
            match rest.next() {
                Some(value) => taken = Some(value),
                // Without a value: the program itself reports the error.
                None => kept.push(arg),
            }
        } else {
            kept.push(arg);
        }
    }
    *args = kept;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_person_s_settings_win() {
        let check = |theirs: Value, ours: Value, want: Value| {
            assert_eq!(add(theirs.clone(), ours.clone()), want, "{theirs} {ours}");
        };
        check(json!({}), json!({"a": 1}), json!({"a": 1}));
        check(json!({"a": 2}), json!({"a": 1}), json!({"a": 2}));
        check(
            json!({"hooks": {"Stop": ["his"]}, "model": "m"}),
            json!({"hooks": {"Stop": ["ours"], "Start": ["ours"]}}),
            json!({"hooks": {"Stop": ["his", "ours"], "Start": ["ours"]}, "model": "m"}),
        );
        // A value of another type wins too.
        check(json!({"a": "x"}), json!({"a": {"b": 1}}), json!({"a": "x"}));
        check(json!({"a": null}), json!({"a": [1]}), json!({"a": null}));
    }

    #[test]
    fn our_own_settings_are_removed_from_the_person_s() {
        let check = |pointer: &str, want: Value| {
            let mut settings = json!({"mcp": {"ph": {"a": [1]}, "mine": {}}, "list": [1]});
            take_out(&mut settings, pointer);
            assert_eq!(settings, want, "{pointer}");
        };
        let whole = json!({"mcp": {"ph": {"a": [1]}, "mine": {}}, "list": [1]});
        check("/mcp/ph", json!({"mcp": {"mine": {}}, "list": [1]}));
        check("/mcp", json!({"list": [1]}));
        for none in ["/mcp/other", "/none/ph", "/list/0", "", "mcp"] {
            check(none, whole.clone());
        }
    }

    #[test]
    fn a_subcommand_is_the_first_word_that_is_not_a_flag() {
        let start = Start {
            except: ["auth", "models", "--version"].map(str::to_owned).into(),
            ..Start::default()
        };
        let check = |args: &[&str], want: bool| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(start.is_for(&args), want, "{args:?}");
        };
        check(&[], true);
        check(&["auth", "login"], false);
        check(&["--log=x", "models"], false);
        check(&["--log", "x", "models"], false);
        check(&["-c", "--version"], false);
        check(&["--prompt", "models"], true);
        check(&["dir", "models"], true);
        check(&["--", "models"], true);
    }

    #[test]
    fn the_last_value_of_a_flag_counts() {
        let check = |args: &[&str], taken: Option<&str>, kept: &[&str]| {
            let mut rest: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(take_flag(&mut rest, "--set").as_deref(), taken, "{args:?}");
            assert_eq!(rest, kept, "{args:?}");
        };
        check(&[], None, &[]);
        check(&["-p", "hi"], None, &["-p", "hi"]);
        check(&["--set", "f", "hi"], Some("f"), &["hi"]);
        check(&["a", "--set=f", "b"], Some("f"), &["a", "b"]);
        check(&["--set=f", "--set", "g"], Some("g"), &[]);
        check(&["--set="], Some(""), &[]);
        check(&["--settle", "x"], None, &["--settle", "x"]);
        check(&["x", "--set"], None, &["x", "--set"]);
        check(&["--", "--set", "f"], None, &["--", "--set", "f"]);
    }

    #[test]
    fn a_flag_has_its_value_inside_or_behind_it() {
        let check = |args: &[&str], want: bool| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(gives_flag(&args, "--port"), want, "{args:?}");
        };
        check(&["run", "--port", "1"], true);
        check(&["--port=1"], true);
        check(&[], false);
        check(&["--ports", "1", "port"], false);
        check(&["--", "--port"], false);
    }

    #[test]
    fn a_file_has_a_plain_name_and_one_way_to_the_program() {
        let check = |said: Value, want: Option<&str>| {
            let mut file = json!({"name": "a.json", "text": ""});
            for (key, value) in said.as_object().unwrap() {
                file[key] = value.clone();
            }
            let fault = serde_json::from_value::<StartFile>(file).unwrap().fault();
            match want {
                Some(part) => assert!(fault.is_some_and(|f| f.contains(part)), "{said}: {fault:?}"),
                None => assert_eq!(fault, None, "{said}"),
            }
        };
        check(json!({}), None);
        check(json!({"flag": "--settings"}), None);
        check(
            json!({"variable": "X", "usual": "/etc/x", "inline": true}),
            None,
        );
        for bad in ["", ".x", "a/b", "../x"] {
            check(json!({"name": bad}), Some("name"));
        }
        check(json!({"flag": "--a", "variable": "X"}), Some("both"));
        check(json!({"flag": "settings"}), Some("--settings"));
        check(json!({"variable": "PH_X"}), Some("PH_"));
        check(json!({"usual": "/etc/x"}), Some("variable"));
        check(json!({"flag": "--a", "inline": true}), Some("variable"));
        check(json!({"own": ["/mcp/ph"]}), None);
        check(json!({"own": ["mcp.ph"]}), Some("own"));
    }
}
