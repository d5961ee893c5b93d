//! The log of a session: one line per decision, so that a person can see why the session acted.
//!
//! The log file is the standard error of the session's process, so a panic is in it too. Only the
//! session that holds the agent's name rotates the file. Lines that cannot be written are dropped:
//! a full disk or a home that is gone never stops a session. Output, keys and frames are never
//! logged.

use posthaste_core::{MessageId, text};
use posthaste_store::home::private as private_file;
use posthaste_store::live::{KnownFile, SessionDir};
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The environment variable with the log filter.
pub(crate) const LOG_VARIABLE: &str = "PH_LOG";

/// Target of lines about the start and the end of the session, and about its home.
pub(crate) const SESSION: &str = "ph::session";
/// Target of lines about messages that are delivered, held, answered or accepted.
pub(crate) const DELIVERY: &str = "ph::delivery";
/// Target of lines about calls of the agent's hooks.
pub(crate) const HOOKS: &str = "ph::hooks";
/// Target of lines about attached terminals and other connections.
pub(crate) const VIEWERS: &str = "ph::viewers";
/// Target of lines about the script that keeps the mail.
pub(crate) const MAIL: &str = "ph::mail";
const TARGETS: [&str; 5] = [SESSION, DELIVERY, HOOKS, VIEWERS, MAIL];

/// Size at which the log is renamed to `log.1`.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// A log that cannot be renamed may grow to this many times [`MAX_LOG_BYTES`]. Then it is emptied.
const MAX_LOG_OVERRUN: u64 = 2;
const MAX_LINE_CHARS: usize = 2_000;
/// Maximum number of message ids in one line.
const MAX_LOGGED_IDS: usize = 100;

/// Start logging to standard error, filtered by `PH_LOG`.
pub(crate) fn start() -> Arc<Log> {
    let log = Arc::new(Log::default());
    let (filter, trouble) = match filter(std::env::var_os(LOG_VARIABLE).as_deref()) {
        Ok(filter) => (filter, None),
        Err(trouble) => (default_filter(), Some(trouble)),
    };
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Line)
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(log.clone());
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    // This fails only if a subscriber is already set, and a process runs at most one session.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(trouble) = trouble {
        tracing::warn!(target: SESSION, "{trouble}; using the default: info");
    }
    log
}

fn default_filter() -> Targets {
    Targets::new().with_default(LevelFilter::INFO)
}

/// Read a filter such as `debug` or `warn,ph::delivery=trace`.
fn filter(value: Option<&OsStr>) -> Result<Targets, String> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(default_filter());
    };
    let invalid = |why: &dyn fmt::Display| {
        let value = text::one_line(&value.to_string_lossy(), 80);
        format!("{LOG_VARIABLE}={value} is invalid: {why}")
    };
    let directives = value.to_str().ok_or_else(|| invalid(&"it is not UTF-8"))?;
    let filter: Targets = directives.parse().map_err(|error| invalid(&error))?;
    for (target, _) in &filter {
        if !TARGETS.iter().any(|known| known.starts_with(target)) {
            let target = text::one_line(target, 80);
            let known = TARGETS.join(", ");
            let why = format!("{target} is neither a level nor one of the targets {known}");
            return Err(invalid(&why));
        }
    }
    // The parser reads the number 1 as the level 'error', but a user who writes `PH_LOG=1` only
    // wants a log.
    let level = |directive: &str| directive.rsplit('=').next().map(str::trim).map(str::parse);
    if let Some(number) = directives.split(',').find_map(|d| level(d)?.ok()) {
        let number: u64 = number;
        return Err(invalid(&format!(
            "{number} is not a level; levels are off, error, warn, info, debug, trace"
        )));
    }
    match filter.default_level() {
        Some(_) => Ok(filter),
        None => Ok(filter.with_default(LevelFilter::INFO)),
    }
}

/// The ids of messages, as the log shows them.
pub(crate) struct Ids<'a>(pub(crate) &'a [MessageId]);

impl fmt::Display for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, id) in self.0.iter().take(MAX_LOGGED_IDS).enumerate() {
            if index > 0 {
                f.write_char(',')?;
            }
            f.write_str(&id.id8())?;
        }
        match self.0.len().saturating_sub(MAX_LOGGED_IDS) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Formats an event as one line: its time in UTC, level, target and fields.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = String::new();
        context.format_fields(Writer::new(&mut fields), event)?;
        let fields = text::one_line(&fields, MAX_LINE_CHARS);
        let metadata = event.metadata();
        let target = metadata.target().trim_start_matches("ph::");
        let (now, level) = (posthaste_store::times::now(), metadata.level());
        writeln!(writer, "{now:.3} {level} {target}: {fields}")
    }
}

/// Writes the log's lines to standard error, and rotates the file behind it.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// `None` until this session holds the agent's name: before that, the file may belong to
    /// another session.
    file: Mutex<Option<LogFile>>,
}

impl Log {
    /// Redirect standard error to the log file in `dir`, and rotate the file from now on.
    pub(crate) fn take(&self, dir: &SessionDir) -> posthaste_store::report::Result<()> {
        let file = LogFile {
            path: dir.log_file(),
            file: dir.log()?,
            max_bytes: MAX_LOG_BYTES,
        };
        let _ = rustix::stdio::dup2_stderr(&file.file);
        if let Ok(mut kept) = self.file.lock() {
            *kept = Some(file);
        }
        Ok(())
    }
}

impl io::Write for &Log {
    /// Write one whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Ok(mut file) = self.file.lock() {
            match file.as_mut() {
                Some(file) => {
                    if file.make_room(line.len()) {
                        let _ = rustix::stdio::dup2_stderr(&file.file);
                    }
                    let _ = file.file.write_all(line);
                }
                None => drop(io::stderr().write_all(line)),
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log file of limited size. A full log is renamed to `log.1` and replaces the previous `log.1`.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    /// Open for appending: other writers to standard error append too.
    file: File,
    max_bytes: u64,
}

impl LogFile {
    /// Rotate the file if `bytes` more do not fit. Return whether the file was replaced.
    fn make_room(&mut self, bytes: usize) -> bool {
        let Ok(meta) = self.file.metadata() else {
            return false;
        };
        let size = meta
            .len()
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if meta.len() == 0 || size <= self.max_bytes {
            return false;
        }
        if self.rotate().is_ok() {
            return true;
        }
        if size > self.max_bytes * MAX_LOG_OVERRUN {
            let _ = self.file.set_len(0);
        }
        false
    }

    fn rotate(&mut self) -> io::Result<()> {
        // The home may be gone, or its path may lead to another home.
        let known = KnownFile::at(&self.path).ok_or(io::ErrorKind::NotFound)?;
        if !known.is(&self.file) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Open the new file first: if that fails, nothing has changed.
        let fresh = self.path.with_extension("new");
        let _ = std::fs::remove_file(&fresh);
        let file = private_file().append(true).create_new(true).open(&fresh)?;
        std::fs::rename(&self.path, self.path.with_extension("1"))?;
        std::fs::rename(&fresh, &self.path)?;
        self.file = file;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    const MAX: u64 = 100;

    fn log_in(dir: &Path) -> LogFile {
        let path = dir.join("log");
        let file = private_file().append(true).create(true).open(&path);
        LogFile {
            path,
            file: file.unwrap(),
            max_bytes: MAX,
        }
    }

    fn write(log: &mut LogFile, line: &str) -> bool {
        let is_rotated = log.make_room(line.len());
        log.file.write_all(line.as_bytes()).unwrap();
        is_rotated
    }

    #[test]
    fn a_full_log_is_kept_once_and_loses_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log_in(dir.path());
        let lines: Vec<String> = (0..25).map(|n| format!("line {n:03}\n")).collect();
        let mut rotated = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            if write(&mut log, line) {
                rotated.push(index);
            }
        }
        // Each line has 9 bytes, so 11 of them fit.
        assert_eq!(rotated, [11, 22]);
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("log.1"), lines[11..22].concat());
        assert_eq!(read("log"), lines[22..].concat());
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["log", "log.1"]);
    }

    #[test]
    fn lines_of_other_processes_count_and_a_long_line_is_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log_in(dir.path());
        let long = "x".repeat(300);
        assert!(!write(&mut log, &long), "an empty log is not rotated");
        assert!(write(&mut log, "a\n"));
        let mut other = private_file().append(true).open(&log.path).unwrap();
        other.write_all(&[b'y'; 99]).unwrap();
        assert!(write(&mut log, "b\n"));
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "b\n");
    }

    #[test]
    fn a_log_whose_path_is_lost_is_emptied_at_twice_its_size() {
        let check = |spoil: &dyn Fn(&Path)| {
            let dir = tempfile::tempdir().unwrap();
            let mut log = log_in(dir.path());
            spoil(dir.path());
            let mut largest = 0;
            for _ in 0..100 {
                assert!(!write(&mut log, "123456789\n"), "it was rotated");
                largest = largest.max(log.file.metadata().unwrap().len());
            }
            assert_eq!(largest, MAX * MAX_LOG_OVERRUN);
            assert!(!dir.path().join("log.1").exists());
        };
        check(&|dir| fs::remove_dir_all(dir).unwrap());
        check(&|dir| {
            fs::remove_file(dir.join("log")).unwrap();
            fs::write(dir.join("log"), "another session's").unwrap();
        });
    }

    #[test]
    fn a_filter_enables_the_targets_and_levels_that_it_names() {
        let check = |value: &str, on: &[(&str, tracing::Level)], off: &[(&str, tracing::Level)]| {
            let filter = filter(Some(OsStr::new(value))).unwrap();
            for (target, level) in on {
                assert!(filter.would_enable(target, level), "{value} {target}");
            }
            for (target, level) in off {
                assert!(!filter.would_enable(target, level), "{value} {target}");
            }
        };
        use tracing::Level as L;
        check("", &[(SESSION, L::INFO)], &[(SESSION, L::DEBUG)]);
        check("debug", &[(HOOKS, L::DEBUG)], &[(HOOKS, L::TRACE)]);
        check("off", &[], &[(SESSION, L::ERROR)]);
        check(
            "ph::delivery=trace",
            &[(DELIVERY, L::TRACE), (SESSION, L::INFO)],
            &[(SESSION, L::DEBUG)],
        );
        check(
            "off,ph::hooks=debug",
            &[(HOOKS, L::DEBUG)],
            &[(SESSION, L::ERROR)],
        );
    }

    #[test]
    fn an_invalid_filter_is_explained() {
        let check = |value: &str, why: &str| {
            let trouble = filter(Some(OsStr::new(value))).unwrap_err();
            assert!(trouble.contains(why), "{value:?}: {trouble}");
        };
        check("debgu", "debgu is neither a level nor one of the targets");
        check("delivery=debug", "delivery is neither a level");
        check("ph::delivery=loud", "is invalid");
        check("1", "1 is not a level");
        check("ph::delivery=5", "5 is not a level");
    }

    #[test]
    fn ids_beyond_the_maximum_are_counted() {
        let ids: Vec<MessageId> = (0..102_u128)
            .map(|n| MessageId(uuid::Uuid::from_u128(n << 96)))
            .collect();
        assert_eq!(Ids(&ids[1..3]).to_string(), "00000001,00000002");
        assert!(Ids(&ids).to_string().ends_with("00000063 and 2 more"));
    }
}
