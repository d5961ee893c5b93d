//! The lab's scripted agent in a session, and the files by which a test speaks with it.

use crate::common::path_text;
use crate::common::stage::{Stage, until, until_so};
use posthaste_lab::pty::{Size, Terminal};
use std::path::PathBuf;

/// Fits `lab-tui`; chosen by its command.
pub(crate) const LAB: &str = r#"
name = "lab"
description = "The lab's scripted agent"
commands = ["lab-tui"]

[activity]
silence = "300ms"

[activity.title]
working = ['^\.\.\. busy']
idle = ['^\* lab']

[[dialog]]
name = "permission"
pattern = 'Do you want to (?<what>.+)\?\n\* 1\. Yes'

[input_box]
top = ['-{20}']
prompt = '> (?<text>.*)'
continuation = '  (?<text>.*)'
bottom = ['-{20}']
hints = ['Type a message']
footer = [{ row = '\? for help|[|/\\-] working, esc to interrupt', required = true }]
"#;

/// [`LAB`] without the description of its input box.
pub(crate) fn lab_without_box(more: &str) -> String {
    let (before, _) = LAB.split_once("[input_box]").expect("a box");
    format!("{before}{more}")
}

/// A manifest like [`LAB`], with more words at the end of it.
pub(crate) fn lab_with(more: &str) -> String {
    format!("{LAB}{more}")
}

/// Puts a manifest into the user's own directory.
pub(crate) fn teach(stage: &Stage, name: &str, manifest: &str) {
    let dir = stage.user().join(".config/posthaste/harness");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join(format!("{name}.toml")), manifest).expect("a file");
}

pub(crate) struct Tui<'a> {
    stage: &'a Stage,
    name: &'static str,
}

impl<'a> Tui<'a> {
    /// Starts one; `flags` are its own.
    pub(crate) fn start(stage: &'a Stage, flags: &[&str]) -> Self {
        let tui = Self { stage, name: "bot" };
        stage.start(tui.name, &tui.command(flags)).ok();
        tui
    }

    /// The same, once it can be written to.
    pub(crate) fn ready(stage: &'a Stage, flags: &[&str]) -> Self {
        let tui = Self::start(stage, flags);
        stage.until_activity(tui.name, "idle");
        tui
    }

    /// The same, in a session that logs what this filter lets through.
    pub(crate) fn logging(stage: &'a Stage, flags: &[&str], filter: &str) -> Self {
        let tui = Self { stage, name: "bot" };
        let run = ["run", "--name", tui.name, "--detach", "--"];
        let call = stage.call(&run).args(&tui.command(flags));
        call.env("PH_LOG", filter).run().ok();
        stage.until_activity(tui.name, "idle");
        tui
    }

    pub(crate) fn command(&self, flags: &[&str]) -> Vec<String> {
        let program = path_text(&posthaste_lab::program("lab-tui"));
        let files = ["log", "do"].map(|kind| [format!("--{kind}"), path_text(&self.file(kind))]);
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        std::iter::once(program)
            .chain(files.into_iter().flatten())
            .chain(flags)
            .collect()
    }

    pub(crate) fn file(&self, kind: &str) -> PathBuf {
        self.stage.dir().join(format!("{}.{kind}", self.name))
    }

    /// Has it do this.
    pub(crate) fn order(&self, orders: &str) {
        let draft = self.file("order");
        std::fs::write(&draft, orders).expect("a file beside the home");
        std::fs::rename(draft, self.file("do")).expect("a file beside the home");
        until_so("its obedience", || !self.file("do").exists());
    }

    /// All that it has noted.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// Waits until it has noted a line that begins so, and gives all back.
    pub(crate) fn until_noted(&self, begin: &str) -> Vec<String> {
        until(&format!("a note of {begin:?}"), || {
            let log = self.log();
            log.iter()
                .any(|line| line.starts_with(begin))
                .then_some(log)
        })
    }

    /// The turns that it was given.
    pub(crate) fn turns(&self) -> Vec<String> {
        let turns = self.log().into_iter();
        turns
            .filter_map(|line| line.strip_prefix("turn ").map(str::to_owned))
            .collect()
    }

    /// A person who sits before it.
    pub(crate) fn person(&self) -> Terminal {
        let mut person = self.stage.terminal("attach bot", Size::USUAL);
        person.wait_for_text("lab-tui");
        person
    }

    /// How a message stands in the log.
    pub(crate) fn turn(id: &str, body: &str) -> String {
        format!("turn \"[ph message from: human id: {}] {body}\"", &id[..8])
    }
}
