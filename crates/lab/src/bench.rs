//! Support for benchmarks: a table of ratios, limits to compare with, and released programs.
//!
//! Machines are noisy. A time is never judged by itself, only against a limit from the same run
//! whose samples alternate with it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Body of some 400 bytes, as an agent would write.
pub const BODY: &str = "Please have a look at the login page: the form still posts to the old address, and the tests \
    that cover it were switched off in March. When you are done, tell the reviewer, and leave a note of what you \
    learned for whoever comes next. Nothing here is urgent, but it should not be forgotten either. Thank you.";

/// Output of a benchmark: one line per comparison.
#[derive(Debug)]
pub struct Table {
    rows: u32,
    missed: u32,
    /// Directory of the measurement.
    pub dir: tempfile::TempDir,
    /// Deletes `dir` at the end.
    _apart: tempfile::TempDir,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// The row is for information only.
    None,
}

/// Tolerance of a goal: a noisy machine may miss it by this ratio.
const TOLERANCE: f64 = 1.2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    MetWithinTolerance,
    Missed,
    NotJudged,
}

impl Verdict {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetWithinTolerance => "met within 20 %",
            Self::Missed => "MISSED",
            Self::NotJudged => "",
        }
    }
}

impl Goal {
    fn verdict(self, ratio: f64) -> Verdict {
        let (met, nearly) = match self {
            Self::AtMost(most) => (ratio <= most, ratio <= most * TOLERANCE),
            Self::AtLeast(least) => (ratio >= least, ratio >= least / TOLERANCE),
            Self::None => return Verdict::NotJudged,
        };
        match (met, nearly) {
            (true, _) => Verdict::Met,
            (false, true) => Verdict::MetWithinTolerance,
            (false, false) => Verdict::Missed,
        }
    }
}

/// Unit in which two figures are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, shown as microseconds or milliseconds.
    Seconds,
    /// Bytes per second, shown in millions.
    BytesPerSecond,
    PerSecond,
    /// Bytes, shown as MiB.
    Bytes,
}

impl Unit {
    fn show(self, figure: f64) -> String {
        match self {
            Self::Seconds if figure < 0.01 => format!("{:.1} µs", figure * 1e6),
            Self::Seconds => format!("{:.1} ms", figure * 1e3),
            Self::BytesPerSecond => format!("{:.1} MB/s", figure / 1e6),
            Self::PerSecond if figure < 1e6 => format!("{figure:.0}/s"),
            Self::PerSecond => format!("{:.2} M/s", figure / 1e6),
            Self::Bytes => format!("{:.2} MiB", figure / f64::from(1 << 20)),
        }
    }
}

#[allow(
    clippy::unwrap_used,
    clippy::new_without_default,
    reason = "a benchmark that cannot run has nothing to say"
)]
impl Table {
    /// Start a table in the system's temporary directory.
    pub fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    /// Start a table in another directory. The system's temporary directory is often in memory,
    /// where nothing is synced.
    pub fn new_in(dir: &Path) -> Self {
        Self::within(tempfile::tempdir_in(dir).unwrap())
    }

    fn within(apart: tempfile::TempDir) -> Self {
        let _ = keep_apart(apart.path());
        let table = Self {
            rows: 0,
            missed: 0,
            dir: tempfile::tempdir_in(apart.path()).unwrap(),
            _apart: apart,
        };
        table.line(&format!(
            "{:<58} {:>12} {:>12} {:>7}  goal",
            "", "measured", "limit", "ratio"
        ));
        table
    }

    /// Print a line between the rows.
    pub fn line(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).unwrap();
    }

    pub fn row(&mut self, what: &str, measured: Duration, limit: Duration, goal: &Goal) {
        let (measured, limit) = (measured.as_secs_f64(), limit.as_secs_f64());
        let ratio = measured / limit;
        let shown = |figure| format!("{:.1} µs", figure * 1e6);
        self.verdict(what, &shown(measured), &shown(limit), ratio, goal);
    }

    /// Compare medians of samples that alternate, with the range of the middle half of their
    /// ratios.
    pub fn turns(&mut self, what: &str, unit: Unit, ours: &[f64], limit: &[f64], goal: &Goal) {
        let mut ratios: Vec<_> = ours.iter().zip(limit).map(|(a, b)| a / b).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| ratios[part * (ratios.len() - 1) / 4];
        let (ours, limit) = (middle(ours.to_vec()), middle(limit.to_vec()));
        let spread = format!("{:.2}–{:.2}", at(1), at(3));
        let (shown, against) = (unit.show(ours), unit.show(limit));
        self.judge(what, &shown, &against, ours / limit, goal, &spread);
    }

    /// Compare a figure with a constant.
    pub fn fixed(&mut self, what: &str, unit: Unit, ours: f64, limit: f64, goal: &Goal) {
        let (shown, against) = (unit.show(ours), unit.show(limit));
        self.verdict(what, &shown, &against, ours / limit, goal);
    }

    pub fn verdict(&mut self, what: &str, measured: &str, limit: &str, ratio: f64, goal: &Goal) {
        self.judge(what, measured, limit, ratio, goal, "");
    }

    fn judge(
        &mut self,
        what: &str,
        measured: &str,
        limit: &str,
        ratio: f64,
        goal: &Goal,
        spread: &str,
    ) {
        let shown_goal = match goal {
            Goal::AtMost(most) => format!("≤ {most}"),
            Goal::AtLeast(least) => format!("≥ {least}"),
            Goal::None => String::new(),
        };
        let verdict = goal.verdict(ratio);
        self.rows += u32::from(*goal != Goal::None);
        self.missed += u32::from(verdict == Verdict::Missed);
        let verdict = verdict.as_str();
        let line = format!(
            "{what:<58} {measured:>12} {limit:>12} {ratio:>7.3}  {shown_goal:<7} {verdict:<15} {spread}"
        );
        self.line(line.trim_end());
    }

    /// Print the number of missed goals.
    pub fn end(self) {
        if self.missed > 0 {
            self.line(&format!("\n{} of {} goals missed", self.missed, self.rows));
        }
    }
}

/// Spread directories that are created in this one over the disk. Beside thousands of files that
/// the last run removed, ext4 without a journal searches long for an inode. Failure only makes the
/// figures worse.
#[cfg(target_os = "linux")]
fn keep_apart(dir: &Path) -> rustix::io::Result<()> {
    use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, open};
    let dir = open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    ioctl_setflags(&dir, ioctl_getflags(&dir)? | IFlags::TOPDIR)
}

#[cfg(not(target_os = "linux"))]
fn keep_apart(_: &Path) -> rustix::io::Result<()> {
    Ok(())
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Released builds of the programs to measure and of their limits. `PH_BENCH_PROGRAMS` names a
/// directory with other builds to compare.
#[derive(Debug)]
pub enum Programs {
    /// Cargo's messages about the build, one JSON object per line.
    Built(String),
    Given(PathBuf),
}

#[allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
impl Programs {
    pub fn build() -> Self {
        if let Some(dir) = std::env::var_os("PH_BENCH_PROGRAMS") {
            return Self::Given(dir.into());
        }
        let target = released_target();
        let target: Vec<_> = target.iter().flat_map(|name| ["--target", name]).collect();
        let bins = ["-p", "posthaste", "-p", "posthaste-lab", "--bins"];
        Self::Built(build(&[&target[..], &bins].concat()))
    }

    /// Return the path of a program.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Given(dir) => dir.join(name),
            Self::Built(messages) => executable(messages, name),
        }
    }
}

/// Target of releases for Linux (musl). If it cannot be built here, everything links with the
/// system's C library, and standard error says so.
#[allow(clippy::print_stderr, reason = "beside the table, and not part of it")]
fn released_target() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let run = |program: &str, args: &[&str]| Command::new(program).args(args).output().ok();
    let library = run("rustc", &["--print", "target-libdir", "--target", &target]);
    let library = library.and_then(|out| String::from_utf8(out.stdout).ok());
    let has_library = library.is_some_and(|dir| Path::new(dir.trim()).is_dir());
    let compiler = run("musl-gcc", &["--version"]);
    if has_library && compiler.is_some_and(|out| out.status.success()) {
        return Some(target);
    }
    eprintln!(
        "All programs are linked with the system's C library. To measure them as they are released: \
         rustup target add {target}, and musl-gcc (in Debian's musl-tools)."
    );
    None
}

/// Build a package in release mode and return cargo's messages.
#[allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
fn build(what: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let built = Command::new(cargo)
        .current_dir(root.unwrap())
        .args(["build", "--profile", "dist"])
        .args(["--message-format", "json"])
        .args(what)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(built.status.success(), "the programs do not build");
    String::from_utf8(built.stdout).unwrap()
}

/// Return the path at which cargo has put a program.
#[allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
fn executable(built: &str, name: &str) -> PathBuf {
    let end = format!("/{name}\"");
    let line = built.lines().find_map(|line| {
        let path = line.split_once("\"executable\":\"")?.1;
        path.starts_with('/')
            .then_some(path)
            .filter(|path| path.contains(&end))
    });
    PathBuf::from(line.unwrap().split('"').next().unwrap())
}

/// Limit of every durable write: one row, one transaction, one fdatasync.
#[derive(Debug)]
pub struct SyncedCommit {
    conn: rusqlite::Connection,
}

#[allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has nothing to say"
)]
impl SyncedCommit {
    pub fn new(path: &Path) -> Self {
        let conn = rusqlite::Connection::open(path).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT)",
        )
        .unwrap();
        Self { conn }
    }

    pub fn commit(&mut self, body: &str) -> Duration {
        time(|| {
            self.conn
                .prepare_cached("INSERT INTO t(body) VALUES (?1)")
                .unwrap()
                .execute([body])
                .unwrap();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_within_a_fifth_of_its_goal_is_met() {
        let check = |goal: Goal, ratio, want| assert_eq!(goal.verdict(ratio).as_str(), want);
        check(Goal::AtMost(2.0), 2.0, "met");
        check(Goal::AtMost(2.0), 2.3, "met within 20 %");
        check(Goal::AtMost(2.0), 2.5, "MISSED");
        check(Goal::AtLeast(4.0), 4.0, "met");
        check(Goal::AtLeast(4.0), 3.4, "met within 20 %");
        check(Goal::AtLeast(4.0), 3.3, "MISSED");
        check(Goal::None, 9.0, "");
    }
}
