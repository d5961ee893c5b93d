//! Validation of a manifest's values against each other.

use super::{ActivityPatterns, MAX_LIST_LEN, MAX_SCREEN_ROWS, Manifest, Osc, Proof, Route};
use crate::harness::start::{StartFile, is_variable};
use crate::harness::{Handover, InputBox, Resume};
use crate::name::AgentName;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ManifestError {
    pub key: String,
    pub what: String,
}

fn fault(key: impl Into<String>, what: impl Into<String>) -> Result<(), ManifestError> {
    Err(ManifestError {
        key: key.into(),
        what: what.into(),
    })
}

/// Check the files and variables given to a program in the section `key`.
fn check_given<'a>(
    key: &str,
    mut names: impl Iterator<Item = &'a String>,
    files: &[StartFile],
) -> Result<(), ManifestError> {
    if !names.all(|name| is_variable(name)) {
        let what = "a variable's name contains no '=' and does not begin with PH_";
        fault(format!("{key}.env"), what)?;
    }
    if let Some(what) = files.iter().find_map(StartFile::fault) {
        fault(format!("{key}.file"), what)?;
    }
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    if has_twins(&names) || names.len() > MAX_LIST_LEN {
        fault(
            format!("{key}.file"),
            format!("at most {MAX_LIST_LEN} files, each with its own name"),
        )?;
    }
    Ok(())
}

impl Manifest {
    pub fn check(&self) -> Result<(), ManifestError> {
        if AgentName::parse(&self.name).is_err() {
            fault(
                "name",
                "a harness's name is made of a-z, 0-9, '.', '_' and '-'",
            )?;
        }
        let is_base = |name: &String| !name.is_empty() && !name.contains(['/', '\0']);
        if !self.commands.iter().all(is_base) {
            fault("commands", "give each command without its directory")?;
        }
        if !self.routes.contains(&Route::Terminal) || has_twins(&self.routes) {
            fault("routes", "each once, and 'terminal' among them")?;
        }
        if has_twins(&self.proof) {
            fault("proof", "each once")?;
        }
        if self.proof.contains(&Proof::Hook) && self.hook.submitted.is_empty() {
            let what = "'hook' needs an event in [hook] submitted";
            fault("proof", what)?;
        }
        if has_twins(&self.activity.order) {
            fault("activity.order", "each once")?;
        }
        let start = &self.start;
        check_given("start", start.env.keys(), &start.files)?;
        if let Some(headless) = &self.headless {
            check_given("headless", headless.env.keys(), &headless.files)?;
            if let Some(what) = headless.fault() {
                fault("headless", what)?;
            }
            if self.commands.is_empty() {
                fault("headless", "needs 'commands' to know which program to run")?;
            }
        }
        if let Some(what) = self.handover.as_ref().and_then(Handover::fault) {
            fault("handover", what)?;
        }
        if let Some(what) = self.resume.as_ref().and_then(Resume::fault) {
            fault("resume", what)?;
        }
        self.check_sizes()?;
        self.check_input_box()
    }

    fn check_sizes(&self) -> Result<(), ManifestError> {
        let lines = [("activity.lines", self.activity.lines)];
        let dialogs = self.dialogs.iter().map(|d| ("dialog.lines", d.lines));
        for (key, lines) in lines.into_iter().chain(dialogs) {
            if !(1..=MAX_SCREEN_ROWS).contains(&lines) {
                fault(key, format!("between 1 and {MAX_SCREEN_ROWS}"))?;
            }
        }
        if self.dialogs.len() > MAX_LIST_LEN {
            fault("dialog", format!("at most {MAX_LIST_LEN}"))?;
        }
        if self.dialogs.iter().any(|d| d.name.trim().is_empty()) {
            fault("dialog.name", "must not be empty")?;
        }
        let activity = &self.activity;
        let signs = [&activity.title, &activity.cursor, &activity.screen];
        let osc = activity.osc.iter();
        let options = self.options.lists();
        let lists = signs
            .into_iter()
            .flat_map(ActivityPatterns::lists)
            .chain(osc.flat_map(Osc::lists))
            .chain(options);
        for list in lists {
            if list.len() > MAX_LIST_LEN {
                fault("patterns", format!("at most {MAX_LIST_LEN} in one list"))?;
            }
        }
        if self
            .hook
            .lists()
            .iter()
            .any(|list| list.len() > MAX_LIST_LEN)
        {
            fault("hook", format!("at most {MAX_LIST_LEN} in one list"))?;
        }
        Ok(())
    }

    fn check_input_box(&self) -> Result<(), ManifestError> {
        let Some(input_box) = &self.input_box else {
            return Ok(());
        };
        let InputBox {
            top,
            prompt,
            continuation,
            bottom,
            hints,
            pasted,
            footer,
            exceptions,
            ..
        } = input_box;
        if !prompt.has_text() || continuation.as_ref().is_some_and(|more| !more.has_text()) {
            fault(
                "input_box.prompt",
                "'prompt' and 'continuation' must capture the text in a group: (?<text>.*)",
            )?;
        }
        if top.is_empty() || bottom.is_empty() {
            fault(
                "input_box",
                "'top' and 'bottom' need at least one pattern each",
            )?;
        }
        let lengths = [top.len(), bottom.len(), hints.len(), pasted.len()];
        let others = [footer.len(), exceptions.len()];
        if lengths
            .into_iter()
            .chain(others)
            .any(|length| length > MAX_LIST_LEN)
        {
            fault("input_box", format!("at most {MAX_LIST_LEN} in one list"))?;
        }
        Ok(())
    }
}

fn has_twins<T: PartialEq>(list: &[T]) -> bool {
    (1..list.len()).any(|at| list[..at].contains(&list[at]))
}
