//! Starting a session: the side of whoever asks for it.
//!
//! The session is a process of its own that this one starts and leaves alone. It says once, on
//! its standard output, whether it runs; from then on there is only its socket.

use super::place::{Launch, Place, Record};
use crate::report::{Report, Result};
use posthaste_store::{Home, Patience};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The first argument that makes this program a session instead of a command.
pub(crate) const HOST: &str = "__session";

/// What a session is told on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) home: PathBuf,
    pub(crate) patience: Duration,
    pub(crate) launch: Launch,
    pub(crate) audience: Audience,
}

/// Whether somebody is about to look at a session that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Audience {
    /// It waits a moment for them, also where its program has ended already.
    Expected,
    None,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Runs {
        record: Box<Record>,
        /// What became of the session before it, where there is something to say.
        note: Option<String>,
    },
    Failed(Report),
}

#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) record: Record,
    pub(crate) note: Option<String>,
}

pub(crate) fn start(
    home: &Home,
    patience: Patience,
    launch: Launch,
    audience: Audience,
) -> Result<Started> {
    let place = Place::of(home, &launch.name);
    place.prepare()?;
    let log = place.log()?;
    let cannot =
        |error: std::io::Error| Report::storage(format!("cannot start a session: {error}"));
    let ph = std::env::current_exe().map_err(cannot)?;
    let mut host = Command::new(ph)
        .arg(HOST)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(cannot)?;
    let orders = Orders {
        home: home.path().to_owned(),
        patience: patience.0,
        launch,
        audience,
    };
    let told = serde_json::to_vec(&orders)
        .map_err(|error| Report::storage(format!("cannot start a session: {error}")))?;
    if let Some(mut stdin) = host.stdin.take() {
        stdin.write_all(&told).map_err(cannot)?;
    }
    let mut line = String::new();
    if let Some(stdout) = host.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(cannot)?;
    }
    match serde_json::from_str(&line) {
        Ok(Answer::Runs { record, note }) => Ok(Started {
            record: *record,
            note,
        }),
        Ok(Answer::Failed(report)) => {
            let _ = host.wait();
            Err(report)
        }
        Err(_) => {
            let _ = host.wait();
            let log = place.log_file();
            Err(Report::storage("the session ended before it had begun")
                .hint(format!("its log may say why: {}", log.display())))
        }
    }
}
