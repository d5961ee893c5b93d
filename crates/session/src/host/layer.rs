//! What a session gives its program beside the command: arguments, variables, and files in a
//! directory of its own that is gone when the session is. What a person gives the same program is
//! kept, with ours added; nobody's own file is ever written to.

use crate::routes::door::{Key, opens};
use posthaste_core::harness::{Placeholder, Start, StartFile, Template, add, take_flag, take_out};
use posthaste_core::text;
use posthaste_store::Home;
use posthaste_store::home::guard::make_dirs;
use posthaste_store::live::place::{Launch, Place, cannot, private_file};
use posthaste_store::report::{Report, Result};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Nobody's settings are longer.
const LONGEST: u64 = 4 << 20;

/// What the child is told of its session.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    pub(crate) home: &'a Home,
    pub(crate) place: &'a Place,
    pub(crate) socket: &'a Path,
    pub(crate) launch: &'a Launch,
    /// The session's, which hooks are known by.
    pub(crate) run: Uuid,
    /// What the program's own door is to be opened with, where it has one.
    pub(crate) door: Option<&'a Key>,
    /// Arguments that resume a conversation. They replace the arguments that the person gave.
    pub(crate) resume: Option<&'a [String]>,
}

impl Told<'_> {
    fn value(&self, blank: Placeholder) -> String {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        match blank {
            Placeholder::Agent => self.launch.name.to_string(),
            Placeholder::Home => text(self.home.path()),
            Placeholder::MessageDir => text(&self.messages()),
            Placeholder::Socket => text(self.socket),
            Placeholder::Ph => this_program(),
            Placeholder::Cwd => text(&self.launch.cwd),
            Placeholder::Layer => text(&self.place.layer()),
            Placeholder::Port => self.door.map_or(0, |door| door.port).to_string(),
            Placeholder::User => self.door.map_or("", |door| &door.user).to_owned(),
            Placeholder::Secret => self.door.map_or("", |door| &door.secret).to_owned(),
        }
    }

    fn messages(&self) -> PathBuf {
        self.home.messages(&self.launch.name)
    }
}

pub(crate) fn this_program() -> String {
    let path = std::env::current_exe();
    path.map_or("ph".to_owned(), |ph| ph.to_string_lossy().into_owned())
}

/// A program's arguments and variables, as they are to be; the files stand for as long as this
/// is kept.
#[derive(Debug)]
pub(crate) struct Outfit {
    /// All of them, behind the command.
    pub(crate) args: Vec<String>,
    /// Those of the manifest.
    pub(crate) env: Vec<(String, String)>,
    /// Those that take the place of a person's.
    pub(crate) merged: Vec<(String, String)>,
    pub(crate) has_hooks: bool,
    layer: Layer,
}

impl Outfit {
    /// Puts away what a session that crashed has left, and writes the files.
    pub(crate) fn prepare(told: &Told<'_>, start: &Start) -> Result<Self> {
        let said = told.launch.command.get(1..).unwrap_or_default();
        let value = |blank| told.value(blank);
        let mut outfit = Self {
            args: told.resume.unwrap_or(said).to_vec(),
            env: Vec::new(),
            merged: Vec::new(),
            has_hooks: start.hooks && start.is_for(said),
            layer: Layer::new(told.place.layer())?,
        };
        if !start.is_for(said) {
            return Ok(outfit);
        }
        // What opens nothing would only take a person's away.
        let opens_door = |template: &Template| {
            template.has(Placeholder::User) || template.has(Placeholder::Secret)
        };
        let is_void = |template: &Template| told.door.is_none() && opens_door(template);
        for (name, template) in start.env.iter().filter(|(_, template)| !is_void(template)) {
            outfit.env.push((name.clone(), template.fill(value)));
        }
        if !start.args.is_empty() || !start.env.is_empty() || !start.files.is_empty() {
            // Some programs look once whether it is there.
            make_dirs(told.home.path(), &told.messages())?;
        }
        // A person who opens the door himself has it where he wants it.
        let args = start.args.iter().filter(|arg| !opens(arg, said));
        let mut ours: Vec<_> = args.map(|arg| arg.fill(value)).collect();
        for file in &start.files {
            ours.extend(outfit.add(told, file)?);
        }
        outfit.args.splice(0..0, ours);
        Ok(outfit)
    }

    /// Writes one file and says by which arguments the program gets it.
    fn add(&mut self, told: &Told<'_>, file: &StartFile) -> Result<Vec<String>> {
        let ours = file.text.fill(|blank| told.value(blank));
        let given = Given::of(told.launch, file, &mut self.args);
        let text = match given.settings(&told.launch.cwd)? {
            Some(mut theirs) => {
                file.own.iter().for_each(|at| take_out(&mut theirs, at));
                let ours = serde_json::from_str(&ours).map_err(|error| {
                    Report::usage(format!("start.file {}: it is no JSON: {error}", file.name))
                })?;
                add(theirs, ours).to_string()
            }
            None => ours,
        };
        let path = self.layer.write(&file.name, &text)?;
        if let Some(name) = &file.variable {
            let value = if file.inline { text } else { path.clone() };
            self.merged.push((name.clone(), value));
        }
        Ok(match &file.flag {
            Some(flag) => vec![flag.clone(), path],
            None => Vec::new(),
        })
    }
}

/// What a person gives the program where we do.
#[derive(Debug)]
enum Given {
    /// A file or JSON itself, by a flag or a variable of this name.
    Said {
        by: String,
        value: String,
    },
    /// JSON itself, by a variable of this name that holds nothing else.
    Content {
        by: String,
        value: String,
    },
    /// By a file that is there for all, if it is.
    Usual(PathBuf),
    Nothing,
}

impl Given {
    /// The flag is taken out of the arguments: ours takes its place.
    fn of(launch: &Launch, file: &StartFile, args: &mut Vec<String>) -> Self {
        let said = match (&file.flag, &file.variable) {
            (Some(flag), _) => take_flag(args, flag).map(|value| (flag, value)),
            (None, Some(name)) => {
                let said = launch.env.iter().rfind(|(said, _)| said == name);
                let value = match said {
                    Some((_, value)) => Some(value.clone()),
                    None => std::env::var(name).ok(),
                };
                value.map(|value| (name, value))
            }
            (None, None) => None,
        };
        match (said, &file.usual) {
            (Some((by, value)), _) if !value.is_empty() => {
                let by = by.clone();
                match file.inline {
                    true => Self::Content { by, value },
                    false => Self::Said { by, value },
                }
            }
            (_, Some(path)) => Self::Usual(path.into()),
            (_, None) => Self::Nothing,
        }
    }

    fn settings(&self, cwd: &Path) -> Result<Option<Value>> {
        let (by, text) = match self {
            Self::Nothing => return Ok(None),
            Self::Content { by, value } => (by.clone(), value.clone()),
            Self::Said { by, value } if value.trim_start().starts_with('{') => {
                (by.clone(), value.clone())
            }
            Self::Said { by, value } => {
                let path = cwd.join(value);
                let text = read(&path).map_err(|error| unreadable(&path, &error))?;
                (format!("{by} {}", shown(&path)), text)
            }
            Self::Usual(path) => match read(path) {
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
            "what {by} gives is no JSON object{fault}, and ours cannot be added to it"
        ))
        .hint("comments are none of JSON; or run it with --harness generic, without our hooks"))
    }
}

fn shown(path: &Path) -> String {
    text::one_line(&path.to_string_lossy(), 200)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Report {
    Report::usage(format!("cannot read {}: {error}", shown(path)))
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// The directory; removed with all that is in it.
#[derive(Debug)]
struct Layer {
    dir: PathBuf,
}

impl Layer {
    fn new(dir: PathBuf) -> Result<Self> {
        let layer = Self { dir };
        layer
            .clear()
            .map_err(|error| cannot("remove", &layer.dir, &error))?;
        Ok(layer)
    }

    fn write(&self, name: &str, text: &str) -> Result<String> {
        make_dirs(self.dir.parent().unwrap_or(&self.dir), &self.dir)?;
        let path = self.dir.join(name);
        let write = || -> std::io::Result<()> {
            let mut file = private_file().write(true).create_new(true).open(&path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| cannot("write", &path, &error))?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn clear(&self) -> std::io::Result<()> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}
