//! Reader of recordings.
//!
//! Ignores an incomplete last line, which a crash or a full disk leaves, and lines that are not
//! events. Reads one line at a time, and never follows a symbolic link.

use super::recorder::Segments;
use crate::{Screen, Size};
use rustix::fs::OFlags;
use serde::Deserialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum length of a line. Our events are shorter.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// A change of a recorded terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayedChange {
    Output(String),
    Resize(Size),
}

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayEvent {
    /// Time since the start of the session.
    pub at: Duration,
    pub change: ReplayedChange,
}

/// Iterator over the events of one file.
#[derive(Debug)]
pub struct Replay {
    lines: BufReader<File>,
    line: Vec<u8>,
    size: Size,
    offset: Duration,
}

#[derive(Deserialize)]
struct Head {
    width: u16,
    height: u16,
    #[serde(default)]
    offset: f64,
}

/// Open one file of a recording.
pub fn open_recording(path: &Path) -> io::Result<Replay> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let mut replay = Replay {
        lines: BufReader::with_capacity(64 * 1024, file),
        line: Vec::new(),
        size: Size { cols: 80, rows: 24 },
        offset: Duration::ZERO,
    };
    let bad = |_| io::Error::new(io::ErrorKind::InvalidData, "the file is not a recording");
    replay.next_line()?;
    let head: Head =
        serde_json::from_slice(&replay.line).map_err(|error| bad(error.to_string()))?;
    replay.size = Size {
        cols: head.width,
        rows: head.height,
    }
    .sane();
    replay.offset = Duration::try_from_secs_f64(head.offset).unwrap_or_default();
    Ok(replay)
}

/// Return the existing files of a recording, the older first.
pub fn recording_files(dir: &Path, stem: &str) -> Vec<PathBuf> {
    let paths = Segments::of(dir, stem);
    [paths.older, paths.newer]
        .into_iter()
        .filter(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_file()))
        .collect()
}

/// Return the screen at the end of a recording, or `None` if no file is readable.
pub fn last_screen(dir: &Path, stem: &str, scrollback_lines: usize) -> Option<Screen> {
    let mut last: Option<Screen> = None;
    for path in recording_files(dir, stem) {
        let Ok(replay) = open_recording(&path) else {
            continue;
        };
        let size = replay.size();
        let screen = last.get_or_insert_with(|| Screen::new(size, scrollback_lines));
        screen.resize(size);
        for event in replay {
            match event.change {
                ReplayedChange::Output(text) => {
                    screen.feed(text.as_bytes());
                    // The program has ended, so nobody reads the replies.
                    drop(screen.take_replies());
                }
                ReplayedChange::Resize(size) => screen.resize(size),
            }
        }
        screen.stop_sync();
    }
    last
}

impl Replay {
    /// Return the size at the start of the file.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Read the next line. It is empty at the end of the file.
    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        let mut limited = self.lines.by_ref().take(MAX_LINE_BYTES);
        limited.read_until(b'\n', &mut self.line)?;
        Ok(())
    }

    fn event(&self) -> Option<ReplayEvent> {
        let (at, kind, data): (f64, &str, std::borrow::Cow<'_, str>) =
            serde_json::from_slice(&self.line).ok()?;
        let at = self.offset + Duration::try_from_secs_f64(at).ok()?;
        let change = match kind {
            "o" => ReplayedChange::Output(data.into_owned()),
            "r" => {
                let (cols, rows) = data.split_once('x')?;
                let (cols, rows) = (cols.parse().ok()?, rows.parse().ok()?);
                ReplayedChange::Resize(Size { cols, rows }.sane())
            }
            _ => return None,
        };
        Some(ReplayEvent { at, change })
    }
}

impl Iterator for Replay {
    type Item = ReplayEvent;

    fn next(&mut self) -> Option<ReplayEvent> {
        loop {
            self.next_line().ok()?;
            if self.line.is_empty() {
                return None;
            }
            if let Some(event) = self.event() {
                return Some(event);
            }
        }
    }
}

#[cfg(test)]
impl ReplayEvent {
    pub(crate) fn output_at(at: Duration, text: &str) -> Self {
        Self {
            at,
            change: ReplayedChange::Output(text.to_owned()),
        }
    }

    pub(crate) fn output(&self) -> &str {
        match &self.change {
            ReplayedChange::Output(text) => text,
            ReplayedChange::Resize(_) => "",
        }
    }

    pub(crate) fn size(&self) -> Option<Size> {
        match self.change {
            ReplayedChange::Output(_) => None,
            ReplayedChange::Resize(size) => Some(size),
        }
    }
}
