//! The recording of a session on disk: asciicast v2, bounded.
//!
//! Two files at most, the newer `<stem>.cast` and the older `<stem>.1.cast`; each stands for
//! itself: it begins with the screen as it then was. Output is buffered until it is flushed, and a
//! flood beyond the buffer is not written but replaced by a redraw. Recording never stops a
//! session: a failed write is told once and tried again later, in a new file.

use crate::output::SplitChar;
use crate::{Screen, Size, redraw};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is kept between two flushes; more is skipped.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;
/// How long after a failed write the next one is tried.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// What a recording says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub size: Size,
    /// Unix time, in seconds.
    pub started: i64,
    pub command: String,
    pub title: String,
}

/// Where the two files of a recording are.
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
    about: About,
    /// A file that has reached this length is the older one from then on.
    half: u64,
    /// `None` after a failed write.
    file: Option<File>,
    written: u64,
    /// When the file was begun, since the session began.
    begun: Duration,
    buffer: Vec<u8>,
    /// A character that the end of a chunk has cut.
    split_char: SplitChar,
    skipped: bool,
    retry: Duration,
    /// Whether the failure that lasts has been told.
    told: bool,
}

impl Recorder {
    /// Begins a recording, in place of an earlier one of that name. `limit_bytes` is for both
    /// files together.
    pub fn create(dir: &Path, stem: &str, limit_bytes: u64, about: About) -> io::Result<Self> {
        let paths = Segments::of(dir, stem);
        gone(fs::remove_file(&paths.older))?;
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
            told: false,
        };
        recorder.head();
        recorder.write_out()?;
        Ok(recorder)
    }

    /// Notes output as a [`Sieve`](super::Sieve) hands it on: without questions, which nobody
    /// should answer again, and in pieces between which a redraw may stand. `at` is the time since
    /// the session began.
    pub fn output(&mut self, at: Duration, mut bytes: &[u8]) {
        if self.file.is_none() || self.skipped {
            return;
        }
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.skipped = true;
            return;
        }
        let before = self.buffer.len();
        let begun = self.split_char.complete(&mut bytes);
        let (char, len) = begun.unwrap_or_default();
        let whole = self.split_char.hold(bytes);
        if len + whole.len() > 0 {
            let at = at.saturating_sub(self.begun);
            event(&mut self.buffer, at, 'o', |out| {
                escape(out, &char[..len]);
                escape(out, whole);
            });
        }
        // Escaped, a byte may have become six.
        if self.buffer.len() > BUFFER_BYTES {
            self.buffer.truncate(before);
            self.skipped = true;
        }
    }

    /// Notes that the terminal has another size.
    pub fn resize(&mut self, at: Duration, size: Size) {
        self.about.size = size;
        if self.file.is_some() && !self.skipped {
            self.note_size(at);
        }
    }

    /// Writes what has been noted. `screen` is as the program has left it by now, and `at` when
    /// that is. An error is told once, until writing has worked again.
    pub fn flush(&mut self, screen: &mut Screen, at: Duration) -> io::Result<()> {
        let Err(error) = self.try_flush(screen, at) else {
            return Ok(());
        };
        self.file = None;
        self.buffer = Vec::new();
        self.split_char = SplitChar::default();
        self.retry = at + RETRY_INTERVAL;
        let told = std::mem::replace(&mut self.told, true);
        if told { Ok(()) } else { Err(error) }
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

    /// Makes the newer file the older one, and begins another with the screen as it is.
    fn turn(&mut self, screen: &mut Screen, at: Duration) -> io::Result<()> {
        self.file = None;
        gone(fs::rename(&self.paths.newer, &self.paths.older))?;
        self.file = Some(begin(&self.paths.newer)?);
        self.written = 0;
        self.begun = at;
        self.skipped = false;
        self.about.size = screen.size();
        self.buffer.clear();
        self.head();
        self.note_screen(screen, at);
        self.write_out()?;
        self.told = false;
        Ok(())
    }

    fn head(&mut self) {
        let About {
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
        event(
            &mut self.buffer,
            at.saturating_sub(self.begun),
            'r',
            |out| {
                out.extend_from_slice(format!("{cols}x{rows}").as_bytes());
            },
        );
    }

    fn note_screen(&mut self, screen: &mut Screen, at: Duration) {
        // What follows continues an update that the model may still hold back.
        screen.stop_sync();
        let drawn = redraw(screen);
        let at = at.saturating_sub(self.begun);
        event(&mut self.buffer, at, 'o', |out| escape(out, &drawn));
    }

    fn write_out(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.buffer)?;
            self.written += self.buffer.len() as u64;
        }
        self.buffer.clear();
        // Not for the sake of one large screen.
        self.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }
}

/// A new file that only this user may read, in place of one that is there.
fn begin(path: &Path) -> io::Result<File> {
    gone(fs::remove_file(path))?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// What was not there need not be moved or removed.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn event(out: &mut Vec<u8>, at: Duration, kind: char, data: impl FnOnce(&mut Vec<u8>)) {
    let (secs, micros) = (at.as_secs(), at.subsec_micros());
    out.extend_from_slice(format!("[{secs}.{micros:06},\"{kind}\",\"").as_bytes());
    data(out);
    out.extend_from_slice(b"\"]\n");
}

/// Writes bytes as the inside of a JSON string; what is no text becomes U+FFFD.
pub(super) fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        escape_text(out, chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

fn escape_text(out: &mut Vec<u8>, text: &[u8]) {
    let mut from = 0;
    for (at, &byte) in text.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                let digit = |n: u8| b"0123456789abcdef"[usize::from(n)];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    out.extend_from_slice(&text[from..]);
}
