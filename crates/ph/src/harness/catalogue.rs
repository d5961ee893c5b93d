//! The manifests there are: those that are built in, the user's own, and the home's. The later
//! ones take the place of the earlier ones of the same name. A project's home brings none: a manifest
//! says how a program is started, and the project may come from anybody.
//!
//! A file is named after its harness, so that one that cannot be read stands in the way of its
//! own name and of no other.

use crate::config::Harnesses;
use crate::data_file;
use crate::report::{Report, Result};
use etcetera::BaseStrategy;
use posthaste_core::harness::Manifest;
use posthaste_core::text;
use posthaste_store::Home;
use rustix::fs::OFlags;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Works for any command.
pub(crate) const GENERIC: &str = "generic";

const BUILT_IN: [(&str, &str); 5] = [
    ("claude", include_str!("../../harness/claude.toml")),
    ("codex", include_str!("../../harness/codex.toml")),
    ("gemini", include_str!("../../harness/gemini.toml")),
    (GENERIC, include_str!("../../harness/generic.toml")),
    ("opencode", include_str!("../../harness/opencode.toml")),
];
/// How large a manifest may be, and how many a directory may hold.
const LARGEST: u64 = 64 << 10;
const MOST: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    BuiltIn,
    File(PathBuf),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => f.write_str(&text::visible(&path.to_string_lossy())),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// Its text, where that is ours.
    pub(crate) text: Option<&'static str>,
    /// Or what is wrong with it.
    pub(crate) manifest: Result<Manifest>,
}

/// All manifests, by name.
#[derive(Debug)]
pub(crate) struct Catalogue {
    entries: Vec<Entry>,
}

impl Catalogue {
    /// Read all manifests, and apply the person's settings to them.
    pub(crate) fn of(home: &Home, settings: &Harnesses) -> Result<Self> {
        let mut catalogue = Self::built_in();
        let user = etcetera::choose_base_strategy().ok();
        if let Some(dir) = user.map(|dirs| dirs.config_dir().join("posthaste/harness")) {
            catalogue.add(&dir, OFlags::empty())?;
        }
        if !home.is_project() {
            catalogue.add(&home.path().join("harness"), OFlags::NOFOLLOW)?;
        }
        let manifests = catalogue.entries.iter_mut();
        for manifest in manifests.filter_map(|entry| entry.manifest.as_mut().ok()) {
            settings.apply(manifest);
        }
        Ok(catalogue)
    }

    pub(crate) fn built_in() -> Self {
        let entries = BUILT_IN.map(|(name, text)| Entry {
            name: name.to_owned(),
            origin: Origin::BuiltIn,
            text: Some(text),
            manifest: parse(name, text, &Origin::BuiltIn),
        });
        Self {
            entries: entries.into(),
        }
    }

    fn add(&mut self, dir: &Path, flags: OFlags) -> Result<()> {
        let cannot = |error: &std::io::Error| {
            Report::storage(format!("cannot read {}: {error}", dir.display()))
        };
        let listed = match std::fs::read_dir(dir) {
            Ok(listed) => listed,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(());
            }
            Err(error) => return Err(cannot(&error)),
        };
        for entry in listed.take(MOST) {
            let path = entry.map_err(|error| cannot(&error))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let Some(name) = stem.filter(|_| path.extension().is_some_and(|e| e == "toml")) else {
                continue;
            };
            let name = name.to_owned();
            let origin = Origin::File(path.clone());
            let read = data_file::read(&path, flags, LARGEST);
            let read = read.map_err(|error| {
                let shown = text::visible(&path.to_string_lossy());
                Report::usage(format!("cannot read {shown}: {error}"))
            });
            let manifest = read.and_then(|text| parse(&name, &text, &origin));
            self.entries.retain(|entry| entry.name != name);
            self.entries.push(Entry {
                name,
                origin,
                text: None,
                manifest,
            });
        }
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The harness that a command is run with where none is named.
    pub(crate) fn chosen_for(&self, program: &str) -> &str {
        let base = Path::new(program)
            .file_name()
            .and_then(|name| name.to_str());
        let fits = |entry: &&Entry| {
            let manifest = entry.manifest.as_ref();
            manifest.is_ok_and(|m| m.commands.iter().any(|c| Some(c.as_str()) == base))
                // One that should be mended is not passed over in silence.
                || (manifest.is_err() && Some(entry.name.as_str()) == base)
        };
        // A user's own before one of ours.
        let of_files = self.entries.iter().filter(|e| e.origin != Origin::BuiltIn);
        let built_in = self.entries.iter().filter(|e| e.origin == Origin::BuiltIn);
        let mut all = of_files.chain(built_in);
        all.find(fits).map_or(GENERIC, |entry| &entry.name)
    }

    /// The manifest of this name.
    pub(crate) fn take(self, name: &str) -> Result<Manifest> {
        self.take_entry(name)?.manifest
    }

    pub(crate) fn take_entry(self, name: &str) -> Result<Entry> {
        let nearest = self.nearest(name);
        let entry = self.entries.into_iter().find(|entry| entry.name == name);
        match entry {
            Some(entry) => Ok(entry),
            None => {
                let shown = text::one_line(name, 40);
                let report = Report::not_found(format!("no harness is called '{shown}'"));
                Err(match nearest {
                    Some(known) => report.hint(format!("did you mean {known}?")),
                    None => {
                        report.hint("'ph harness ls' lists them; 'generic' works for any command")
                    }
                })
            }
        }
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let near = self
            .entries
            .iter()
            .map(|entry| (strsim::jaro_winkler(name, &entry.name), &entry.name));
        let best = near.max_by(|a, b| a.0.total_cmp(&b.0));
        let is_near = |known: &str| strsim::osa_distance(name, known) <= 2;
        let (_, known) = best.filter(|(near, known)| *near > 0.7 || is_near(known))?;
        Some(known.clone())
    }
}

fn parse(name: &str, said: &str, origin: &Origin) -> Result<Manifest> {
    let wrong = |line: Option<usize>, what: &str| {
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        let what = text::one_line(what, 300);
        Report::usage(format!(
            "the harness {name} ({origin}{line}) is not right: {what}"
        ))
        .hint("'ph harness show generic' shows every word there is")
    };
    let manifest: Manifest = toml::from_str(said).map_err(|error| {
        let before = error.span().and_then(|span| said.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        wrong(line, error.message())
    })?;
    manifest
        .check()
        .map_err(|fault| wrong(line_of(said, &fault.key), &fault.to_string()))?;
    if manifest.name != name {
        let what = format!("its name is {}, and its file's {name}", manifest.name);
        return Err(wrong(line_of(said, "name"), &what));
    }
    Ok(manifest)
}

/// Where a key is likely to stand: the line of its last part, else of its table.
fn line_of(said: &str, key: &str) -> Option<usize> {
    let parts: Vec<&str> = key.rsplit('.').collect();
    parts.iter().find_map(|part| {
        let stands = |line: &str| {
            let line = line.trim_start().trim_start_matches('[');
            let rest = line.strip_prefix(part);
            rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
        };
        said.lines().position(stands).map(|at| at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"x\"\ndescription = \"d\"\n";

    fn parsed(more: &str) -> Result<Manifest> {
        parse("x", &format!("{HEAD}{more}"), &Origin::BuiltIn)
    }

    #[test]
    fn what_is_left_out_is_generic() {
        let generic = Catalogue::built_in().take(GENERIC).unwrap();
        assert_eq!(generic, Manifest::generic());
        let mut least = parsed("").unwrap();
        assert!(!least.looks() && !least.knows_dialogs());
        least.name.clone_from(&generic.name);
        least.description.clone_from(&generic.description);
        assert_eq!(least, generic);
        // What is shown of one says the same.
        let shown = toml::to_string(&generic).unwrap();
        assert_eq!(parse(GENERIC, &shown, &Origin::BuiltIn).unwrap(), generic);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let check = |more: &str, line: usize, says: &str| {
            let report = parsed(more).unwrap_err();
            let message = report.message();
            let where_ = format!("the harness x (built in, line {line}) is not right: ");
            let what = message.strip_prefix(&where_);
            let is_said = what.is_some_and(|what| what.contains(says));
            assert!(is_said, "{more:?}: {message}");
            assert!(report.advice().is_some());
        };
        check("colour = 1", 3, "unknown field `colour`");
        check("\n[version]\ntestd = []", 5, "unknown field `testd`");
        check("[version]\ntested = 'x'", 4, "expected a sequence");
        check("[activity.title]\nidle = ['x', '(']", 4, "unclosed group");
        check("[submit]\nenter = 'return'", 4, "unknown key 'return'");
        check("[submit]\ndelay = '2'", 4, "50ms, 2s or 1m");
        check("[submit]\npaste = 'often'", 4, "unknown variant `often`");
        check("[start]\nargs = ['{body}']", 4, "{message_dir}");
        check("[start.env]\nPH_HOME = '/'", 3, "begin with PH_");
        check("[activity]\norder = ['nose']", 4, "unknown variant `nose`");
        check("[activity]\norder = ['osc', 'osc']", 4, "each once");
        check("routes = ['hook']", 3, "'terminal' among them");
        check("proof = ['screen']", 3, "unknown variant `screen`");
        check("proof = ['hook']", 3, "an event in [hook] submitted");
        check(
            "[hook]\nidle = ['Stop now']",
            4,
            "SessionStart source=clear",
        );
        check("[hook]\nsleeping = []", 4, "unknown field `sleeping`");
        check("commands = ['/bin/x']", 3, "without its directory");
        check("[[dialog]]\nname = 'ask'\n", 3, "missing field `pattern`");
        check(
            "[[dialog]]\nname = ''\npattern = 'x'",
            1,
            "must not be empty",
        );
        check(
            "[[dialog]]\nname = 'a'\npattern = 'x'\nlines = 0",
            6,
            "between 1 and 60",
        );
        let boxed = |prompt: &str, top: &str| {
            format!("[input_box]\nprompt = '{prompt}'\ntop = {top}\nbottom = ['-+']")
        };
        check(&boxed("> (", "['-']"), 4, "unclosed group");
        check(&boxed("> .*", "['-']"), 4, "(?<text>.*)");
        check(
            &boxed("> (?<text>.*)", "[]"),
            3,
            "at least one pattern each",
        );
        check("[broken", 3, "");
        let other = parse("y", HEAD, &Origin::BuiltIn).unwrap_err();
        assert!(other.message().contains("its name is x, and its file's y"));
    }
}
