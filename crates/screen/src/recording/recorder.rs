//! Recorder of a session's terminal: asciicast v2 files of bounded size.
//!
//! Keeps at most two files, `<stem>.cast` and the older `<stem>.1.cast`; each begins with a redraw
//! of the screen. Output is buffered until a flush; output beyond the buffer is replaced by a
//! redraw. Never stops a session: a failed write is reported once and retried later in a new file.

use crate::output::SplitChar;
use crate::{Screen, Size, redraw};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limit for the output between two flushes. More is skipped.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;
/// Delay between a failed write and its retry.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Metadata of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingInfo {
    pub size: Size,
    /// Unix time in seconds.
    pub started: i64,
    pub command: String,
    pub title: String,
}

/// Paths of the two files of a recording.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    pub(crate) newer: PathBuf,
    pub(crate) older: PathBuf,
}

impl Segments {
    pub(crate) fn of(dir: &Path, stem: &str) -> Self {
        Self {
            newer: dir.join(format!("{stem}.cast")),
            older: dir.join(format!("{stem}.1.cast")),
        }
    }
}

/// Writes one recording.
#[derive(Debug)]
pub struct Recorder {
    paths: Segments,
    about: RecordingInfo,
    /// Size at which a file becomes the older one, in bytes.
    half: u64,
    /// `None` after a failed write.
    file: Option<File>,
    written: u64,
    /// Start of the current file, relative to the start of the session.
    begun: Duration,
    buffer: Vec<u8>,
    /// Character that the end of a chunk has cut.
    split_char: SplitChar,
    skipped: bool,
    retry: Duration,
    /// Whether the current failure has been reported.
    is_reported: bool,
}

impl Recorder {
    /// Start a recording and replace an earlier one with this stem. `limit_bytes` covers both
    /// files.
    pub fn create(
        dir: &Path,
        stem: &str,
        limit_bytes: u64,
        about: RecordingInfo,
    ) -> io::Result<Self> {
        let paths = Segments::of(dir, stem);
        ignore_missing(fs::remove_file(&paths.older))?;
        let file = begin(&paths.newer)?;
        let mut recorder = Self {
            paths,
            about,
            half: limit_bytes / 2,
            file: Some(file),
            written: 0,
            begun: Duration::ZERO,
            buffer: Vec::new(),
            split_char: SplitChar::default(),
            skipped: false,
            retry: Duration::ZERO,
            is_reported: false,
        };
        recorder.head();
        recorder.write_out()?;
        Ok(recorder)
    }

    /// Record output of a [`QueryFilter`](crate::QueryFilter): without queries, which no terminal
    /// should answer again, and in pieces between which a redraw may be inserted. `at` is the time
    /// since the start of the session.
    pub fn output(&mut self, at: Duration, mut bytes: &[u8]) {
        if self.file.is_none() || self.skipped {
            return;
        }
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.skipped = true;
            return;
        }
        let before = self.buffer.len();
        let (char, len) = self.split_char.complete(&mut bytes).unwrap_or_default();
        let text = [&char[..len], self.split_char.hold(bytes)].concat();
        if !text.is_empty() {
            self.event(at, 'o', &text);
        }
        // Escaping may have increased the length sixfold.
        if self.buffer.len() > BUFFER_BYTES {
            self.buffer.truncate(before);
            self.skipped = true;
        }
    }

    /// Record a new size of the terminal.
    pub fn resize(&mut self, at: Duration, size: Size) {
        self.about.size = size;
        if self.file.is_some() && !self.skipped {
            self.note_size(at);
        }
    }

    /// Write the buffered events. `screen` is the state at the time `at`. An error is returned
    /// once, until a write succeeds again.
    pub fn flush(&mut self, screen: &mut Screen, at: Duration) -> io::Result<()> {
        let Err(error) = self.try_flush(screen, at) else {
            return Ok(());
        };
        self.file = None;
        self.buffer = Vec::new();
        self.split_char = SplitChar::default();
        self.retry = at + RETRY_INTERVAL;
        let was_reported = std::mem::replace(&mut self.is_reported, true);
        if was_reported { Ok(()) } else { Err(error) }
    }

    fn try_flush(&mut self, screen: &mut Screen, at: Duration) -> io::Result<()> {
        if self.file.is_none() {
            return if at < self.retry {
                Ok(())
            } else {
                self.turn(screen, at)
            };
        }
        if self.skipped {
            self.skipped = false;
            self.split_char = SplitChar::default();
            self.note_size(at);
            self.note_screen(screen, at);
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_out()?;
        if self.written >= self.half {
            self.turn(screen, at)?;
        }
        Ok(())
    }

    /// Make the newer file the older one, and start another with a redraw of the screen.
    fn turn(&mut self, screen: &mut Screen, at: Duration) -> io::Result<()> {
        self.file = None;
        ignore_missing(fs::rename(&self.paths.newer, &self.paths.older))?;
        self.file = Some(begin(&self.paths.newer)?);
        self.written = 0;
        self.begun = at;
        self.skipped = false;
        self.about.size = screen.size();
        self.buffer.clear();
        self.head();
        self.note_screen(screen, at);
        self.write_out()?;
        self.is_reported = false;
        Ok(())
    }

    fn head(&mut self) {
        let RecordingInfo {
            size,
            started,
            command,
            title,
        } = &self.about;
        let head = serde_json::json!({
            "version": 2,
            "width": size.cols,
            "height": size.rows,
            "timestamp": started + i64::try_from(self.begun.as_secs()).unwrap_or(0),
            "offset": self.begun.as_secs_f64(),
            "command": command,
            "title": title,
            "env": { "TERM": "xterm-256color" },
        });
        self.buffer.extend_from_slice(head.to_string().as_bytes());
        self.buffer.push(b'\n');
    }

    fn note_size(&mut self, at: Duration) {
        let Size { cols, rows } = self.about.size;
        self.event(at, 'r', format!("{cols}x{rows}").as_bytes());
    }

    fn note_screen(&mut self, screen: &mut Screen, at: Duration) {
        // The following output may continue a synchronized update that the model holds back.
        screen.stop_sync();
        self.event(at, 'o', &redraw(screen));
    }

    /// Append an event to the buffer. Invalid UTF-8 in `data` becomes U+FFFD.
    fn event(&mut self, at: Duration, kind: char, data: &[u8]) {
        let at = at.saturating_sub(self.begun);
        let (secs, micros) = (at.as_secs(), at.subsec_micros());
        let data = serde_json::Value::from(String::from_utf8_lossy(data));
        let _ = writeln!(self.buffer, "[{secs}.{micros:06},\"{kind}\",{data}]");
    }

    fn write_out(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)?;
            self.written += self.buffer.len() as u64;
        }
        self.buffer.clear();
        // A large screen must not keep its memory allocated.
        self.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }
}

/// Create a file that only this user can read, in place of an existing one.
fn begin(path: &Path) -> io::Result<File> {
    ignore_missing(fs::remove_file(path))?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Treat a missing file as success.
fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
