//! Detects that another process has taken over a program's conversation.
//!
//! Claude Code moves a conversation to a background process when a person opens its agents view.
//! After that, the session receives no hook events of the conversation, and ending the program does
//! not end the work.

use crate::text;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Placeholder in [`Handover::file`] for the process id of the program.
const PID_PLACEHOLDER: &str = "{pid}";
/// How much of the field's value is kept.
const JOB_CHARS: usize = 40;

/// The file in which a running program records its state, and the field that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// The directory of the program's own files, below the user's home.
    pub dir: String,
    /// The environment variable that names another directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir_variable: Option<String>,
    /// The JSON file below that directory. `{pid}` stands for the program's process id.
    pub file: String,
    /// The field that holds the name of the job that has the conversation.
    pub field: String,
    /// The command with which a person sees and ends that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_by: Option<String>,
}

/// Location of a program's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Here,
    /// This job of another process has it.
    With(String),
}

impl Handover {
    /// Return the path of the file for a program with this process id. `variable` looks up the
    /// program's environment.
    pub fn path(&self, pid: u32, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let dir = match self.dir_variable.as_deref().and_then(set) {
            Some(dir) => PathBuf::from(dir),
            None => Path::new(&set("HOME")?).join(&self.dir),
        };
        Some(dir.join(self.file.replace(PID_PLACEHOLDER, &pid.to_string())))
    }

    /// Parse the text of the file. Returns `None` if the text is not a complete JSON object.
    pub fn read(&self, text: &str) -> Option<Holder> {
        let record: serde_json::Map<_, _> = serde_json::from_str(text).ok()?;
        let job = match record.get(&self.field) {
            None | Some(serde_json::Value::Null) => return Some(Holder::Here),
            Some(serde_json::Value::String(job)) => text::one_line(job, JOB_CHARS),
            Some(_) => return None,
        };
        if job.is_empty() {
            return Some(Holder::Here);
        }
        Some(Holder::With(match &self.listed_by {
            Some(command) => format!("job {job}; '{command}' lists it"),
            None => format!("job {job}"),
        }))
    }

    /// Return why this section is invalid, if it is.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let is_below = |path: &str| {
            let mut parts = Path::new(path).components();
            !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        if !is_below(&self.dir) || !is_below(&self.file) {
            return Some("'dir' and 'file' must be relative paths without '..'");
        }
        if self.field.is_empty() {
            return Some("'field' must not be empty");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handover() -> Handover {
        Handover {
            dir: ".lab".to_owned(),
            dir_variable: Some("LAB_DIR".to_owned()),
            file: "sessions/{pid}.json".to_owned(),
            field: "parkedJobId".to_owned(),
            listed_by: Some("lab agents".to_owned()),
        }
    }

    #[test]
    fn the_program_s_environment_names_the_file() {
        let check = |set: &[(&str, &str)], want: Option<&str>| {
            let variable = |name: &str| {
                let mut set = set.iter();
                let found = set.find(|(other, _)| *other == name);
                found.map(|(_, value)| value.into())
            };
            assert_eq!(
                handover().path(53, variable),
                want.map(PathBuf::from),
                "{set:?}"
            );
        };
        check(
            &[("HOME", "/home/ann")],
            Some("/home/ann/.lab/sessions/53.json"),
        );
        check(
            &[("HOME", "/home/ann"), ("LAB_DIR", "/srv/lab")],
            Some("/srv/lab/sessions/53.json"),
        );
        check(
            &[("HOME", "/home/ann"), ("LAB_DIR", "")],
            Some("/home/ann/.lab/sessions/53.json"),
        );
        check(&[], None);
    }

    #[test]
    fn only_a_complete_record_names_the_conversation_s_holder() {
        let check = |text: &str, want: Option<Holder>| {
            assert_eq!(handover().read(text), want, "{text}");
        };
        let with = |job: &str| Some(Holder::With(format!("{job}; 'lab agents' lists it")));
        check(r#"{"pid":53,"parkedJobId":"2d95"}"#, with("job 2d95"));
        check(r#"{"parkedJobId":"a\u001b[31mb"}"#, with("job a[31mb"));
        for text in [
            r#"{"pid":53}"#,
            r#"{"parkedJobId":null}"#,
            r#"{"parkedJobId":""}"#,
        ] {
            check(text, Some(Holder::Here));
        }
        for text in [r#"{"parkedJobId":7}"#, r#"{"parkedJobId":"2d"#, "[]", ""] {
            check(text, None);
        }
    }

    #[test]
    fn a_path_that_leaves_the_directory_is_a_fault() {
        assert_eq!(handover().fault(), None);
        for file in ["/etc/{pid}", "../{pid}", "a/../../{pid}", ""] {
            let file = file.to_owned();
            assert!(Handover { file, ..handover() }.fault().is_some());
        }
        let dir = "/".to_owned();
        assert!(Handover { dir, ..handover() }.fault().is_some());
        let field = String::new();
        assert!(
            Handover {
                field,
                ..handover()
            }
            .fault()
            .is_some()
        );
    }
}
