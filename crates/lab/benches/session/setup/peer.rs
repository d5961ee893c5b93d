//! Other programs that keep a terminal alive, for comparison.

use super::stage::{Player, Stage};
use super::window::{COLS, ROWS};
use posthaste_lab::bench::Table;
use std::path::PathBuf;
use std::process::Command;

/// Return whether a peer is installed, and report if it is not.
fn is_there(table: &Table, stage: &Stage, name: &str, flag: &str) -> bool {
    let is_there = stage.command(name).arg(flag).status().is_ok();
    if !is_there {
        table.line(&format!("{name} is not installed; skipped"));
    }
    is_there
}

/// A tmux server with one session, which ends when dropped.
pub(crate) struct Tmux {
    end: Command,
    pub(crate) player: Player,
}

impl Tmux {
    pub(crate) fn start(table: &Table, stage: &mut Stage) -> Option<Self> {
        if !is_there(table, stage, "tmux", "-V") {
            return None;
        }
        let (script, cue) = stage.script();
        let started = Self::command(stage, &["new-session", "-d", "-s", "bench"])
            .args(["-x", &COLS.to_string(), "-y", &ROWS.to_string()])
            .args(script)
            // The status line would take a row of the screen.
            .args([";", "set-option", "-g", "status", "off"])
            .status()
            .unwrap();
        assert!(started.success(), "tmux does not start");
        Some(Self {
            end: Self::command(stage, &["kill-server"]),
            player: cue.player(),
        })
    }

    pub(crate) fn command(stage: &Stage, args: &[&str]) -> Command {
        let mut command = stage.command("tmux");
        command.args(["-f", "/dev/null", "-L", "bench"]).args(args);
        command
    }

    pub(crate) fn attach(stage: &Stage) -> Command {
        Self::command(stage, &["attach-session", "-t", "bench"])
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.end.status();
    }
}

/// A dtach with one session. It ends with its program.
pub(crate) struct Dtach {
    socket: PathBuf,
    pub(crate) player: Player,
}

impl Dtach {
    pub(crate) fn start(table: &Table, stage: &mut Stage) -> Option<Self> {
        if !is_there(table, stage, "dtach", "--help") {
            return None;
        }
        let (script, cue) = stage.script();
        let socket = stage.dir().join("dtach.sock");
        let mut start = stage.command("dtach");
        let started = start.arg("-n").arg(&socket).args(script).status().unwrap();
        assert!(started.success(), "dtach does not start");
        let player = cue.player();
        Some(Self { socket, player })
    }

    pub(crate) fn attach(&self, stage: &Stage) -> Command {
        let mut command = stage.command("dtach");
        command.arg("-a").arg(&self.socket).args(["-r", "none"]);
        command
    }
}
