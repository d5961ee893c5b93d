//! Prepares the launch of a session's program: arguments, environment variables, and files in a
//! directory that is removed with the session. Merges the user's own settings into these files.
//! Never writes to a file of the user.

use crate::routes::http::{HttpApi, sets_port};
use posthaste_core::harness::{Placeholder, Start, StartFile, Template, add, take_flag, take_out};
use posthaste_core::text;
use posthaste_store::error::io;
use posthaste_store::home::guard::make_dirs;
use posthaste_store::home::write_private;
use posthaste_store::live::{Launch, SessionDir};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, data_file};
use rustix::fs::OFlags;
use serde_json::Value;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Maximum size of a settings file of the user.
const MAX_SETTINGS_BYTES: u64 = 4 << 20;

/// Facts about a session that its program's arguments, variables and files may contain.
#[derive(Debug)]
pub(crate) struct LaunchContext<'a> {
    pub(crate) home: &'a Home,
    pub(crate) session_dir: &'a SessionDir,
    pub(crate) socket: &'a Path,
    pub(crate) launch: &'a Launch,
    /// Identifies the hooks of this run.
    pub(crate) run: Uuid,
    /// The HTTP API that the program is to open, if it has one.
    pub(crate) http: Option<&'a HttpApi>,
    /// Arguments that resume a conversation. They replace the user's arguments.
    pub(crate) resume: Option<&'a [String]>,
}

impl LaunchContext<'_> {
    fn value(&self, placeholder: Placeholder) -> String {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        match placeholder {
            Placeholder::Agent => self.launch.name.to_string(),
            Placeholder::Home => text(self.home.path()),
            Placeholder::MessageDir => text(&self.messages()),
            Placeholder::Socket => text(self.socket),
            Placeholder::Ph => ph_path(),
            Placeholder::Cwd => text(&self.launch.cwd),
            Placeholder::Layer => text(&self.session_dir.layer()),
            Placeholder::Port => self.http.map_or(0, |http| http.port).to_string(),
            Placeholder::User => self.http.map_or("", |http| &http.user).to_owned(),
            Placeholder::Secret => self.http.map_or("", |http| &http.secret).to_owned(),
        }
    }

    fn messages(&self) -> PathBuf {
        self.home.messages(&self.launch.name)
    }
}

/// Return the value of a variable that a program gets: given with `--env`, or inherited.
pub(crate) fn variable(env: &[(String, String)], name: &str) -> Option<OsString> {
    match env.iter().rfind(|(known, _)| known == name) {
        Some((_, value)) => Some(value.into()),
        None => std::env::var_os(name),
    }
}

/// Return the path of the `ph` that runs.
pub(crate) fn ph_path() -> String {
    let path = std::env::current_exe();
    path.map_or("ph".to_owned(), |ph| ph.to_string_lossy().into_owned())
}

/// A program's arguments and variables. Its files are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PreparedLaunch {
    /// All arguments after the command.
    pub(crate) args: Vec<String>,
    /// Variables of the manifest. The user's variables replace them.
    pub(crate) env: Vec<(String, String)>,
    /// Variables that replace the user's, and contain the user's settings.
    pub(crate) overriding_env: Vec<(String, String)>,
    pub(crate) has_hooks: bool,
    files: LaunchFiles,
}

impl PreparedLaunch {
    /// Remove the files of a crashed session, and write the files of this one.
    pub(crate) fn prepare(context: &LaunchContext<'_>, start: &Start) -> Result<Self> {
        let user_args = context.launch.command.get(1..).unwrap_or_default();
        let value = |placeholder| context.value(placeholder);
        let mut prepared = Self {
            args: context.resume.unwrap_or(user_args).to_vec(),
            env: Vec::new(),
            overriding_env: Vec::new(),
            has_hooks: start.hooks && start.is_for(user_args),
            files: LaunchFiles::new(context.session_dir.layer())?,
        };
        if !start.is_for(user_args) {
            return Ok(prepared);
        }
        // Without an HTTP API of ours, empty credentials would replace the user's.
        let is_credential = |template: &Template| {
            template.has(Placeholder::User) || template.has(Placeholder::Secret)
        };
        for (name, template) in &start.env {
            if context.http.is_some() || !is_credential(template) {
                prepared.env.push((name.clone(), template.fill(value)));
            }
        }
        if !start.args.is_empty() || !start.env.is_empty() || !start.files.is_empty() {
            // Some programs check only once whether the directory exists.
            make_dirs(context.home.path(), &context.messages())?;
        }
        // A port that the user has chosen is kept.
        let args = start.args.iter().filter(|arg| !sets_port(arg, user_args));
        let mut added: Vec<_> = args.map(|arg| arg.fill(value)).collect();
        for file in &start.files {
            added.extend(prepared.add(context, file)?);
        }
        prepared.args.splice(0..0, added);
        Ok(prepared)
    }

    /// Write one file. Return the arguments by which the program gets it.
    fn add(&mut self, context: &LaunchContext<'_>, file: &StartFile) -> Result<Vec<String>> {
        let ours = file.text.fill(|placeholder| context.value(placeholder));
        let theirs = UserSettings::of(context.launch, file, &mut self.args);
        let text = match theirs.parse(&context.launch.cwd)? {
            Some(mut theirs) => {
                file.own.iter().for_each(|at| take_out(&mut theirs, at));
                let ours = serde_json::from_str(&ours).map_err(|error| {
                    Report::usage(format!("start.file {} is not JSON: {error}", file.name))
                })?;
                add(theirs, ours).to_string()
            }
            None => ours,
        };
        let path = self.files.write(&file.name, &text)?;
        if let Some(name) = &file.variable {
            let value = if file.inline { text } else { path.clone() };
            self.overriding_env.push((name.clone(), value));
        }
        Ok(match &file.flag {
            Some(flag) => vec![flag.clone(), path],
            None => Vec::new(),
        })
    }
}

/// The user's settings that a file of ours replaces for this program.
#[derive(Debug)]
enum UserSettings {
    /// A path or JSON, given by the flag or variable `source`.
    PathOrJson {
        source: String,
        value: String,
    },
    /// JSON, given by the variable `source`.
    Json {
        source: String,
        value: String,
    },
    /// The program's default settings file, which may not exist.
    DefaultFile(PathBuf),
    None,
}

impl UserSettings {
    /// Find the user's settings, and remove their flag from the arguments.
    fn of(launch: &Launch, file: &StartFile, args: &mut Vec<String>) -> Self {
        let given = match (&file.flag, &file.variable) {
            (Some(flag), _) => take_flag(args, flag).map(|value| (flag, value)),
            (None, Some(name)) => {
                let value = variable(&launch.env, name);
                value.and_then(|value| Some((name, value.into_string().ok()?)))
            }
            (None, None) => None,
        };
        match (given, &file.usual) {
            (Some((source, value)), _) if !value.is_empty() => {
                let source = source.clone();
                match file.inline {
                    true => Self::Json { source, value },
                    false => Self::PathOrJson { source, value },
                }
            }
            (_, Some(path)) => Self::DefaultFile(path.into()),
            (_, None) => Self::None,
        }
    }

    /// Read and parse the settings, if there are any.
    fn parse(&self, cwd: &Path) -> Result<Option<Value>> {
        let (source, text) = match self {
            Self::None => return Ok(None),
            Self::Json { source, value } => (source.clone(), value.clone()),
            Self::PathOrJson { source, value } if value.trim_start().starts_with('{') => {
                (source.clone(), value.clone())
            }
            Self::PathOrJson { source, value } => {
                let path = cwd.join(value);
                let text = read(&path).map_err(|error| unreadable(&path, &error))?;
                (format!("{source} {}", shown(&path)), text)
            }
            Self::DefaultFile(path) => match read(path) {
                Ok(text) => (shown(path), text),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(unreadable(path, &error)),
            },
        };
        let fault = match serde_json::from_str(&text) {
            Ok(settings @ Value::Object(_)) => return Ok(Some(settings)),
            Ok(_) => String::new(),
            Err(error) => format!(" ({error})"),
        };
        Err(Report::usage(format!(
            "{source} is not a JSON object{fault}, so the settings of Posthaste cannot be added to it"
        ))
        .hint("remove comments, which JSON does not allow, or use --harness generic, which adds no settings"))
    }
}

fn shown(path: &Path) -> String {
    text::one_line(&path.to_string_lossy(), 200)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Report {
    Report::usage(format!("cannot read {}: {error}", shown(path)))
}

fn read(path: &Path) -> std::io::Result<String> {
    data_file::read(path, OFlags::empty(), MAX_SETTINGS_BYTES)
}

/// Directory of a session's launch files. Dropping this removes the directory.
#[derive(Debug)]
struct LaunchFiles {
    dir: PathBuf,
}

impl LaunchFiles {
    fn new(dir: PathBuf) -> Result<Self> {
        let files = Self { dir };
        files.clear().map_err(io("remove", &files.dir))?;
        Ok(files)
    }

    fn write(&self, name: &str, text: &str) -> Result<String> {
        make_dirs(self.dir.parent().unwrap_or(&self.dir), &self.dir)?;
        let path = self.dir.join(name);
        write_private(&path, text.as_bytes()).map_err(io("write", &path))?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn clear(&self) -> std::io::Result<()> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for LaunchFiles {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}
