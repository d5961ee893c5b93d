//! The lab's scripted agent in a session, and the files with which a test controls it.

use crate::common::path_text;
use crate::common::stage::{Stage, until, until_so};
use posthaste_lab::pty::{Size, Terminal};
use std::path::PathBuf;

/// Manifest for `lab-tui`, selected by its command.
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

/// Return [`LAB`] without its input box, followed by `more`.
pub(crate) fn lab_without_box(more: &str) -> String {
    let (before, _) = LAB.split_once("[input_box]").expect("a box");
    format!("{before}{more}")
}

/// Return [`LAB`] followed by `more`.
pub(crate) fn lab_with(more: &str) -> String {
    format!("{LAB}{more}")
}

/// Write a manifest into the user's configuration directory.
pub(crate) fn install_manifest(stage: &Stage, name: &str, manifest: &str) {
    let dir = stage.user().join(".config/posthaste/harness");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join(format!("{name}.toml")), manifest).expect("a file");
}

pub(crate) struct Tui<'a> {
    stage: &'a Stage,
    name: &'static str,
}

impl<'a> Tui<'a> {
    /// Start `lab-tui` with these flags in a session of `bot`.
    pub(crate) fn start(stage: &'a Stage, flags: &[&str]) -> Self {
        let tui = Self { stage, name: "bot" };
        stage.start(tui.name, &tui.command(flags)).ok();
        tui
    }

    /// Like [`Self::start`], and wait until the agent is idle.
    pub(crate) fn ready(stage: &'a Stage, flags: &[&str]) -> Self {
        let tui = Self::start(stage, flags);
        stage.until_activity(tui.name, "idle");
        tui
    }

    /// Like [`Self::ready`], in a session with `PH_LOG` set to `filter`.
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

    /// Make the agent carry out these lines, and wait until it has read them.
    pub(crate) fn order(&self, orders: &str) {
        let draft = self.file("order");
        std::fs::write(&draft, orders).expect("a file beside the home");
        std::fs::rename(draft, self.file("do")).expect("a file beside the home");
        until_so("its obedience", || !self.file("do").exists());
    }

    /// Return the complete lines of the agent's log.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// Wait for a log line that begins with `begin`, and return all lines.
    pub(crate) fn until_logged(&self, begin: &str) -> Vec<String> {
        until(&format!("a note of {begin:?}"), || {
            let log = self.log();
            log.iter()
                .any(|line| line.starts_with(begin))
                .then_some(log)
        })
    }

    /// Return the submitted turns, as quoted in the log.
    pub(crate) fn turns(&self) -> Vec<String> {
        let turns = self.log().into_iter();
        turns
            .filter_map(|line| line.strip_prefix("turn ").map(str::to_owned))
            .collect()
    }

    /// Attach a terminal to the session, like a person.
    pub(crate) fn person(&self) -> Terminal {
        let mut person = self.stage.terminal("attach bot", Size::USUAL);
        person.wait_for_text("lab-tui");
        person
    }

    /// Return the log line of a turn that is a message from the person.
    pub(crate) fn turn(id: &str, body: &str) -> String {
        format!("turn \"[ph message from: human id: {}] {body}\"", &id[..8])
    }
}
