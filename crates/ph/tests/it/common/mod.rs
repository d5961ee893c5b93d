//! Runs the real `ph` with a home and an environment of its own, and redacts its output for
//! snapshots. Touches nothing outside its temporary directory.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "many tests are for Linux only")
)]

pub(crate) mod session;
pub(crate) mod stage;
pub(crate) mod tui;

use posthaste_lab::TempHome;
use regex::{Captures, Regex};
use rustix::process::{Resource, Rlimit};
use serde_json::Value;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A time in any format that `ph` prints, or an id: complete, or its first eight digits.
static TIME_OR_ID: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?x)
        \b (?:
            [0-9]{8}-[0-9]{6}
          | [0-9]{4}-[0-9]{2}-[0-9]{2} \x20 [0-9]{2}:[0-9]{2}:[0-9]{2}
          | [0-9]{4}-[0-9]{2}-[0-9]{2} T [0-9]{2}:[0-9]{2}:[0-9]{2} (?:\.[0-9]+)? (?:Z|[+-][0-9]{4})
          | (?<id> [0-9a-f]{8} (?:-[0-9a-f]{4}){3} -[0-9a-f]{12} | [0-9a-f]{8}) \b
        )";
    Regex::new(pattern).expect("a valid pattern")
});

/// Timeout of every wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A temporary home and user. Numbers the ids in the output in the order in which they appear.
pub(crate) struct Ph {
    dir: TempHome,
    seen: RefCell<Vec<String>>,
}

/// A `ph` command that has not started yet.
pub(crate) struct Call {
    command: Command,
    stdin: Option<Vec<u8>>,
    stdout: Stdio,
}

/// Exit code and output of a finished `ph` command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Ph {
    pub(crate) fn new() -> Self {
        let dir = TempHome::new();
        std::fs::create_dir(dir.beside().join("user")).expect("a new directory");
        Self {
            dir,
            seen: RefCell::default(),
        }
    }

    /// Return the home's path. The home does not exist until something is stored.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path()
    }

    /// Return the user's `HOME`.
    pub(crate) fn user(&self) -> PathBuf {
        self.dir.beside().join("user")
    }

    /// Return the temporary directory, which contains the home and the user's `HOME`.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.beside()
    }

    /// Write a file below [`Self::dir`].
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir().join(name);
        let parent = path.parent().expect("it is in the directory");
        std::fs::create_dir_all(parent).expect("a directory beside the home");
        std::fs::write(&path, content).expect("a file beside the home");
        path
    }

    pub(crate) fn call<A: AsRef<OsStr>>(&self, args: &[A]) -> Call {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ph"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.user())
            .env("PH_HOME", self.home())
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .current_dir(self.user());
        Call {
            command,
            stdin: None,
            stdout: Stdio::piped(),
        }
    }

    /// Run `ph` with the words of `line` as a person. Single quotes group words; `{1}` stands for
    /// the first id that was seen.
    pub(crate) fn run(&self, line: &str) -> Done {
        self.call(&self.words(line)).run()
    }

    /// Like [`Self::run`], as an agent.
    pub(crate) fn run_as(&self, agent: &str, line: &str) -> Done {
        self.call(&self.words(line)).agent(agent).run()
    }

    /// Run `ph send` and return the message's id.
    pub(crate) fn send(&self, line: &str) -> String {
        let done = self.run(&format!("send {line}"));
        let id = done.ok().trim().to_owned();
        self.number(&id);
        id
    }

    /// Return all facts of the journal, as `ph log --json` prints them.
    pub(crate) fn facts(&self) -> String {
        self.run("log --json").ok()
    }

    pub(crate) fn words(&self, line: &str) -> Vec<String> {
        let mut line = line.to_owned();
        for (index, id) in self.seen.borrow().iter().enumerate() {
            line = line.replace(&format!("{{{}}}", index + 1), id);
        }
        words(&line)
    }

    /// Run commands and return them with their redacted output. Each line has the arguments of
    /// `ph`; `NAME$ ` before them runs the command as that agent.
    pub(crate) fn transcript(&self, lines: &[&str]) -> String {
        let mut shown = String::new();
        for line in lines {
            let (who, typed) = line.split_once("$ ").unwrap_or(("", line));
            let done = if who.is_empty() {
                self.run(typed)
            } else {
                self.run_as(who, typed)
            };
            let typed = self.words(typed).join(" ");
            shown.push_str(&self.redact(&format!("{who}$ ph {typed}\n{}", done.shown())));
        }
        shown
    }

    /// Replace ids by `[id1]`, `[id2]` in the order in which they appear, times by `[time]`, and
    /// temporary paths by `[home]` and `[dir]`. Filters of insta cannot number the ids, and a
    /// snapshot must show which ids are equal.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = text
            .replace(&path_text(&self.home()), "[home]")
            .replace(&path_text(self.dir()), "[dir]");
        let name = |found: &Captures<'_>| match found.name("id") {
            Some(id) => format!("[id{}]", self.number(id.as_str())),
            None => "[time]".to_owned(),
        };
        TIME_OR_ID.replace_all(&text, name).into_owned()
    }

    /// Return the number of an id. A new id gets the next number.
    fn number(&self, id: &str) -> usize {
        let id8 = &id[..8];
        let mut seen = self.seen.borrow_mut();
        match seen.iter().position(|known| known == id8) {
            Some(index) => index + 1,
            None => {
                seen.push(id8.to_owned());
                seen.len()
            }
        }
    }

    /// Return all message files in the home with their content, sorted by path.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut dirs = vec![self.home().join("messages")];
        while let Some(dir) = dirs.pop() {
            let Ok(entries) = std::fs::read_dir(&dir) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("a directory entry").path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    found.push((path_text(&path), std::fs::read(&path).expect("a file")));
                }
            }
        }
        found.sort();
        found
    }
}

impl Call {
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: &[A]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn agent(self, name: &str) -> Self {
        self.env("PH_AGENT", name)
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    pub(crate) fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.stdout = to.into();
        self
    }

    /// Run as another user. Only root can do this.
    pub(crate) fn user(mut self, id: u32) -> Self {
        std::os::unix::process::CommandExt::uid(&mut self.command, id);
        self
    }

    pub(crate) fn within(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn spawn(mut self) -> Child {
        let stdin = match self.stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let mut child = self
            .command
            .stdin(stdin)
            .stdout(self.stdout)
            .stderr(Stdio::piped())
            .spawn()
            .expect("ph can be started");
        if let (Some(bytes), Some(mut stdin)) = (self.stdin, child.stdin.take()) {
            // Written by a thread, because `ph` may print before it has read all of its input.
            std::thread::spawn(move || stdin.write_all(&bytes));
        }
        child
    }

    /// Start `ph` with pipes for standard input and output, for a dialogue with it.
    pub(crate) fn spawn_talking(mut self) -> Child {
        let command = self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
            .stderr(Stdio::null())
            .spawn()
            .expect("ph can be started")
    }

    pub(crate) fn run(self) -> Done {
        Done::of(self.spawn())
    }
}

impl Done {
    pub(crate) fn of(child: Child) -> Self {
        let output = child.wait_with_output().expect("ph can be waited for");
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: output.stderr,
        }
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("the output is UTF-8")
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8(self.stderr.clone()).expect("the errors are UTF-8")
    }

    /// Assert that the command succeeded without printing an error, and return its output.
    pub(crate) fn ok(&self) -> String {
        assert_eq!((self.code, self.err().as_str()), (0, ""), "{}", self.out());
        self.out()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).expect("the output is JSON")
    }

    /// Assert that the command failed with this exit code and error text, and printed nothing to
    /// standard output.
    pub(crate) fn fails(&self, code: i32, says: &str) {
        let err = self.err();
        assert_eq!(self.code, code, "{err}");
        assert!(err.contains(says), "{err:?} should say {says:?}");
        assert_eq!(self.out(), "");
    }

    fn shown(&self) -> String {
        let mut shown = self.out();
        for line in self.err().lines() {
            shown.push_str(format!("! {line}").trim_end());
            shown.push('\n');
        }
        if self.code != 0 {
            shown.push_str(&format!("[exit {}]\n", self.code));
        }
        shown
    }
}

/// Write an executable file. A shell writes it, not this process: a child that another test forks
/// meanwhile would inherit the descriptor open for writing, and executing the file would fail with
/// ETXTBSY.
pub(crate) fn executable(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell can be started");
    let mut stdin = shell.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("the shell reads");
    drop(stdin);
    let written = shell.wait().expect("the shell can be waited for");
    assert!(written.success(), "{} cannot be written", path.display());
}

/// Report why a test cannot run here. In CI, fail instead.
pub(crate) fn skip(reason: &str) {
    posthaste_lab::skip_or_fail(reason);
}

/// Run a script in a mount namespace of its own. The script mounts a file system at `$DISK`, and
/// exits with 9 if it cannot; `$PH` is the program. Skip the test and return `None` if this machine
/// does not allow mounts.
pub(crate) fn with_own_disk(ph: &Ph, script: &str) -> Option<Output> {
    let disk = ph.dir().join("disk");
    std::fs::create_dir(&disk).expect("the temporary directory can be written");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", ph.user())
        .env("PH", env!("CARGO_BIN_EXE_ph"))
        .env("DISK", &disk)
        .current_dir(ph.dir())
        .output();
    let Ok(output) = output else {
        skip("there is no 'unshare' to mount a disk with");
        return None;
    };
    if matches!(output.status.code(), None | Some(1 | 9)) {
        // Containers often forbid mounts, and no package changes that.
        skip("this machine lets nobody mount a disk");
        return None;
    }
    Some(output)
}

/// Raise this process's limit of open files to its maximum, and return whether it is at least
/// `files`. No other test depends on a low limit.
pub(crate) fn raise_open_file_limit(files: u64) -> bool {
    let limits = rustix::process::getrlimit(Resource::Nofile);
    let more = Rlimit {
        current: limits.maximum,
        ..limits
    };
    rustix::process::setrlimit(Resource::Nofile, more).expect("as many as there may be");
    limits.maximum.is_none_or(|most| most >= files)
}

/// Return whether the system has a time zone database; skip the test if not.
pub(crate) fn has_time_zones() -> bool {
    let is_there = Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists();
    if !is_there {
        skip("there is no time zone database");
    }
    is_there
}

/// Poll until `ask` returns a value.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        // Leaves the processor to the process that is waited for.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Split a line into words at blanks. Single quotes group words.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

pub(crate) fn path_text(path: &Path) -> String {
    path.to_str().expect("a temporary path is UTF-8").to_owned()
}
