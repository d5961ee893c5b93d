//! All manifests: built in, the user's own, and the home's. A later one replaces an earlier one of
//! the same name. Manifests in a project's home are ignored: a manifest starts programs, and a
//! project may come from anyone.
//!
//! A manifest's file is named after its harness, so that an invalid file affects only that harness.

use etcetera::BaseStrategy;
use posthaste_core::harness::Manifest;
use posthaste_core::text;
use posthaste_store::Home;
use posthaste_store::data_file;
use posthaste_store::report::{Report, Result};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The harness that works for any command.
pub const GENERIC_HARNESS: &str = "generic";

const BUILT_IN: [(&str, &str); 5] = [
    ("claude", include_str!("../../harness/claude.toml")),
    ("codex", include_str!("../../harness/codex.toml")),
    ("gemini", include_str!("../../harness/gemini.toml")),
    (GENERIC_HARNESS, include_str!("../../harness/generic.toml")),
    ("opencode", include_str!("../../harness/opencode.toml")),
];
const MAX_MANIFEST_BYTES: u64 = 64 << 10;
/// How many entries of a directory are read.
const MAX_DIR_ENTRIES: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
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
pub struct CatalogueEntry {
    pub name: String,
    pub origin: Origin,
    /// The text of a built-in manifest.
    pub text: Option<&'static str>,
    /// The manifest, or why it is invalid.
    pub manifest: Result<Manifest>,
}

/// The number of rows of the person's status line, by harness.
pub type StatusRows = BTreeMap<String, usize>;

/// All manifests, by name.
#[derive(Debug)]
pub struct Catalogue {
    entries: Vec<CatalogueEntry>,
}

impl Catalogue {
    /// Read all manifests, and apply the person's settings to them.
    pub fn load(home: &Home, status_rows: &StatusRows) -> Result<Self> {
        let mut catalogue = Self::built_in();
        let user = etcetera::choose_base_strategy().ok();
        if let Some(dir) = user.map(|dirs| dirs.config_dir().join("posthaste/harness")) {
            catalogue.add(&dir, |path, most| {
                data_file::read(path, OFlags::empty(), most)
            })?;
        }
        if !home.is_project() && home.is_readable()? {
            catalogue.add(&home.path().join("harness"), data_file::read_own)?;
        }
        catalogue.apply(status_rows);
        Ok(catalogue)
    }

    fn apply(&mut self, status_rows: &StatusRows) {
        let manifests = self.entries.iter_mut();
        for manifest in manifests.filter_map(|entry| entry.manifest.as_mut().ok()) {
            let rows = status_rows.get(&manifest.name);
            if let (Some(rows), Some(input_box)) = (rows, &mut manifest.input_box) {
                input_box.status_rows = *rows;
            }
        }
    }

    pub(crate) fn built_in() -> Self {
        let entries = BUILT_IN.map(|(name, text)| CatalogueEntry {
            name: name.to_owned(),
            origin: Origin::BuiltIn,
            text: Some(text),
            manifest: parse(name, text, &Origin::BuiltIn),
        });
        Self {
            entries: entries.into(),
        }
    }

    fn add(
        &mut self,
        dir: &Path,
        read: impl Fn(&Path, u64) -> std::io::Result<String>,
    ) -> Result<()> {
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
        for entry in listed.take(MAX_DIR_ENTRIES) {
            let path = entry.map_err(|error| cannot(&error))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let Some(name) = stem.filter(|_| path.extension().is_some_and(|e| e == "toml")) else {
                continue;
            };
            let name = name.to_owned();
            let origin = Origin::File(path.clone());
            let read = read(&path, MAX_MANIFEST_BYTES).map_err(|error| {
                let shown = text::visible(&path.to_string_lossy());
                Report::usage(format!("cannot read {shown}: {error}"))
            });
            let manifest = read.and_then(|text| parse(&name, &text, &origin));
            self.entries.retain(|entry| entry.name != name);
            self.entries.push(CatalogueEntry {
                name,
                origin,
                text: None,
                manifest,
            });
        }
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    pub fn entries(&self) -> &[CatalogueEntry] {
        &self.entries
    }

    /// Return the harness that is used for a command if the user names none.
    pub fn default_for(&self, program: &str) -> &str {
        let base = Path::new(program)
            .file_name()
            .and_then(|name| name.to_str());
        let fits = |entry: &&CatalogueEntry| {
            let manifest = entry.manifest.as_ref();
            manifest.is_ok_and(|m| m.commands.iter().any(|c| Some(c.as_str()) == base))
                // An invalid manifest must cause an error, not be ignored.
                || (manifest.is_err() && Some(entry.name.as_str()) == base)
        };
        // The user's manifests take precedence over built-in ones.
        let of_files = self.entries.iter().filter(|e| e.origin != Origin::BuiltIn);
        let built_in = self.entries.iter().filter(|e| e.origin == Origin::BuiltIn);
        let mut all = of_files.chain(built_in);
        all.find(fits).map_or(GENERIC_HARNESS, |entry| &entry.name)
    }

    pub fn take(self, name: &str) -> Result<Manifest> {
        self.take_entry(name)?.manifest
    }

    pub fn take_entry(self, name: &str) -> Result<CatalogueEntry> {
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

fn parse(name: &str, source: &str, origin: &Origin) -> Result<Manifest> {
    let invalid = |line: Option<usize>, what: &str| {
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        let what = text::one_line(what, 300);
        Report::usage(format!(
            "the harness {name} ({origin}{line}) is invalid: {what}"
        ))
        .hint("'ph harness show generic' shows all keys")
    };
    let manifest: Manifest = toml::from_str(source).map_err(|error| {
        let before = error.span().and_then(|span| source.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        invalid(line, error.message())
    })?;
    manifest
        .check()
        .map_err(|fault| invalid(line_of(source, &fault.key), &fault.to_string()))?;
    if manifest.name != name {
        let what = format!(
            "its name is {}, but its file is named {name}",
            manifest.name
        );
        return Err(invalid(line_of(source, "name"), &what));
    }
    Ok(manifest)
}

/// Guess the line of a key: the line of its last part, or else of its table.
fn line_of(source: &str, key: &str) -> Option<usize> {
    let parts: Vec<&str> = key.rsplit('.').collect();
    parts.iter().find_map(|part| {
        let has_part = |line: &str| {
            let line = line.trim_start().trim_start_matches('[');
            let rest = line.strip_prefix(part);
            rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
        };
        source.lines().position(has_part).map(|at| at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_rows_apply_to_the_harness_that_they_name() {
        let rows = [("codex".to_owned(), 3), (GENERIC_HARNESS.to_owned(), 2)];
        let check = |name: &str, want: Option<usize>| {
            let mut catalogue = Catalogue::built_in();
            catalogue.apply(&rows.clone().into());
            let input_box = catalogue.take(name).unwrap().input_box;
            assert_eq!(
                input_box.map(|input_box| input_box.status_rows),
                want,
                "{name}"
            );
        };
        check("codex", Some(3));
        check("claude", Some(0));
        check(GENERIC_HARNESS, None);
    }

    const HEAD: &str = "name = \"x\"\ndescription = \"d\"\n";

    fn parsed(more: &str) -> Result<Manifest> {
        parse("x", &format!("{HEAD}{more}"), &Origin::BuiltIn)
    }

    #[test]
    fn omitted_keys_have_the_generic_values() {
        let generic = Catalogue::built_in().take(GENERIC_HARNESS).unwrap();
        assert_eq!(generic, Manifest::generic());
        let mut minimal = parsed("").unwrap();
        assert!(!minimal.looks() && !minimal.knows_dialogs());
        minimal.name.clone_from(&generic.name);
        minimal.description.clone_from(&generic.description);
        assert_eq!(minimal, generic);
        // A printed manifest parses to the same manifest.
        let shown = toml::to_string(&generic).unwrap();
        assert_eq!(
            parse(GENERIC_HARNESS, &shown, &Origin::BuiltIn).unwrap(),
            generic
        );
    }

    #[test]
    fn an_error_names_its_line() {
        let check = |more: &str, line: usize, says: &str| {
            let report = parsed(more).unwrap_err();
            let message = report.message();
            let prefix = format!("the harness x (built in, line {line}) is invalid: ");
            let what = message.strip_prefix(&prefix);
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
        let input_box = |prompt: &str, top: &str| {
            format!("[input_box]\nprompt = '{prompt}'\ntop = {top}\nbottom = ['-+']")
        };
        check(&input_box("> (", "['-']"), 4, "unclosed group");
        check(&input_box("> .*", "['-']"), 4, "(?<text>.*)");
        check(
            &input_box("> (?<text>.*)", "[]"),
            3,
            "at least one pattern each",
        );
        check("[broken", 3, "");
        let other = parse("y", HEAD, &Origin::BuiltIn).unwrap_err();
        assert!(
            other
                .message()
                .contains("its name is x, but its file is named y")
        );
    }
}
