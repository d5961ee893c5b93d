//! Mail providers: `ph` as a script for other systems, scripts that keep the mail of `ph`, and errors of
//! scripts.

mod answer;
mod broken;
mod copies;
mod live;
mod replies;
mod suite;
mod tools;
mod twice;
mod verbs;

use crate::common::stage::Stage;
use crate::common::{Ph, executable, path_text};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The lab's provider script, which keeps the mail of a home.
struct Provider {
    state: PathBuf,
}

impl Provider {
    /// Let the lab's provider keep the mail of this home.
    fn behind(ph: &Ph, settings: &str) -> Self {
        let state = ph.dir().join("provider");
        std::fs::create_dir_all(&state).expect("a file beside the home");
        let text = format!(
            "#!/bin/sh\nPH_PROVIDER_STATE='{}' exec '{}' \"$@\"\n",
            path_text(&state),
            path_text(&posthaste_lab::program("lab-provider")),
        );
        script(ph.dir(), "mail", &text);
        keep_by(ph, "../mail", settings);
        Self { state }
    }

    /// Return all calls of the script, in order.
    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.state.join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn count(&self, call: &str) -> usize {
        self.calls().iter().filter(|line| *line == call).count()
    }

    /// Delay each call of the script from now on.
    fn delay(&self, millis: u64) {
        std::fs::write(self.state.join("delay"), millis.to_string())
            .expect("a file beside the home");
    }

    fn is_broken(&self, why: Option<&str>) {
        let file = self.state.join("broken");
        match why {
            Some(why) => std::fs::write(file, why).expect("a file beside the home"),
            None => std::fs::remove_file(file).expect("a file beside the home"),
        }
    }
}

/// A stage on which a quiet agent soon counts as idle.
fn stage() -> Stage {
    let stage = Stage::new();
    let usual = include_str!("../../../../session/harness/generic.toml");
    let brisk = usual.replace("silence = \"2s\"", "silence = \"200ms\"");
    assert_ne!(brisk, usual);
    stage.file("home/harness/generic.toml", brisk);
    // Manifests that other users can write are ignored.
    for dir in [stage.home(), stage.home().join("harness")] {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).expect("our own");
    }
    stage
}

/// Let a script keep the mail of this home.
fn keep_by(ph: &Ph, script: &str, settings: &str) {
    let settings = format!("mail.provider = 'exec:{script}'\n{settings}\n");
    ph.file("home/config.toml", settings);
}

/// Create a script.
fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    executable(&path, text);
    path
}

/// Create a link to `ph` with the name of a provider script.
fn ourselves(dir: &Path) -> PathBuf {
    let path = dir.join("ph-mail-provider");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ph"), &path).expect("a file beside the home");
    path
}
