use crate::attach::die_of;
use crate::config::SETTINGS;
use crate::context::Said;
use crate::output::Output;
use crate::report::{Code, Report, Result};
use crate::times;
use anstyle::AnsiColor;
use posthaste_core::AgentName;
use posthaste_store::bell::Ear;
use posthaste_store::{Home, Journal, Listing, Patience};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Show a small exchange between a person and two agents, in a temporary home
///
/// Runs the real commands, prints each with its output, and leaves nothing behind. The agents are
/// two small scripts, each in a real terminal of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph demo")]
pub(super) struct Args {}

/// Stand-ins for coding agents, with nothing to install.
const CODER: &str = include_str!("../../../lab/agents/coder.sh");
const REVIEWER: &str = include_str!("../../../lab/agents/reviewer.sh");
/// How long the agents may take for their part.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether somebody wants this to end.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// One command of the demo, run as the person or as an agent.
struct Stage<'a> {
    out: Output,
    ph: &'a Path,
    home: &'a Path,
    /// The signal that asked for an end; zero before one does.
    asked_to_end: Arc<AtomicUsize>,
}

pub(super) fn run(_: &Args, said: &Said) -> Result<Code> {
    let ph = std::env::current_exe()
        .map_err(|error| Report::storage(format!("cannot find ph itself: {error}")))?;
    let asked_to_end = listen()?;
    let home = tempfile::Builder::new()
        .prefix("posthaste-demo-")
        .tempdir()
        .map_err(|error| Report::storage(format!("cannot make a temporary home: {error}")))?;
    let mut stage = Stage {
        out: Output::new(super::help::color(said)),
        ph: &ph,
        home: home.path(),
        asked_to_end,
    };
    let played = play(&mut stage);
    // However it went, nothing of it stays.
    for agent in ["coder", "reviewer"] {
        stage.quietly(&["stop", "--kill", agent]);
    }
    let signal = stage.asked_to_end.load(Ordering::Relaxed);
    let flushed = stage.out.flush();
    if let Ok(signal @ 1..) = i32::try_from(signal) {
        drop(home);
        die_of(signal);
    }
    played?;
    flushed?;
    Ok(Code::Ok)
}

/// Takes note of the signals that would end this program and leave its agents behind.
fn listen() -> Result<Arc<AtomicUsize>> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, asked.clone(), number)
            .map_err(|error| Report::storage(format!("cannot listen to signals: {error}")))?;
    }
    Ok(asked)
}

fn play(stage: &mut Stage<'_>) -> Result<()> {
    stage.say("A person writes to an agent. Nothing runs yet: the inbox exists all the same.")?;
    let sent = stage.run(
        "human",
        &[
            "send",
            "coder",
            "--subject",
            "login",
            "Please fix the login page.",
        ],
    )?;
    let id8 = sent.get(..8).unwrap_or(&sent).to_owned();
    stage.run("human", &["why", &id8])?;
    stage.say("Two agents start, each in a terminal of its own that no window holds open.")?;
    stage.agent("coder", CODER)?;
    stage.agent("reviewer", REVIEWER)?;
    stage.say(
        "The message is typed into the coder's terminal once it is ready; the coder asks the \
         reviewer, the reviewer answers, and the coder writes back to the person.",
    )?;
    let answer = stage.answer()?;
    stage.run("human", &["ls"])?;
    stage.say("What the two terminals show.")?;
    stage.run("human", &["peek", "coder"])?;
    stage.run("human", &["peek", "reviewer"])?;
    stage.say(
        "The person reads the answer, and sees how far each message is proven to have come.",
    )?;
    stage.run("human", &["read", &answer])?;
    stage.run("human", &["thread", &id8])?;
    stage.run("human", &["show", &id8])?;
    stage.say("An agent that hangs or is killed loses nothing; here they are simply ended.")?;
    stage.run("human", &["stop", "coder"])?;
    stage.run("human", &["stop", "reviewer"])?;
    stage.run("human", &["log"])?;
    stage.say(
        "What happened: each message was in the journal, synced, before its sender was answered; it was \
         typed into its agent's terminal when that was ready, and its receipt says so and no more. The \
         temporary home is removed now. Next: ph run, ph send, ph attach, ph help.",
    )
}

impl Stage<'_> {
    fn say(&mut self, text: &str) -> Result<()> {
        let style = AnsiColor::Green.on_default().bold();
        self.out.line(format!("\n{style}# {text}{style:#}"))
    }

    /// Starts an agent in the background.
    fn agent(&mut self, name: &str, script: &str) -> Result<()> {
        let path = self.home.join(format!("{name}.sh"));
        std::fs::write(&path, script).map_err(|error| {
            Report::storage(format!("cannot write {}: {error}", path.display()))
        })?;
        let path = path.to_string_lossy().into_owned();
        self.run(
            "human",
            &["run", "--name", name, "--detach", "--", "sh", &path],
        )?;
        Ok(())
    }

    /// Waits for the answer to the person, and gives back its id.
    fn answer(&mut self) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut journal = Journal::open(Home::at(self.home), Patience::DEFAULT)?;
        let ear = Ear::on(journal.home(), Some(&AgentName::human()))?;
        loop {
            let unread = journal.inbox(&AgentName::human(), Listing::Unread, times::now())?;
            if let Some(letter) = unread.first() {
                return Ok(letter.message.id.id8());
            }
            if Instant::now() > deadline {
                return Err(Report::storage("the demo's agents did not answer in time"));
            }
            self.go_on()?;
            ear.wait(LOOK_AGAIN);
        }
    }

    fn command(&self, who: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.ph);
        command
            .args(args)
            .env("PH_HOME", self.home)
            // The agents call it by its name; and their sockets are to be found in one place.
            .env("PATH", with_ph_first(self.ph))
            .env_remove("XDG_RUNTIME_DIR")
            // The user's own settings are none of the demo's.
            .env("XDG_CONFIG_HOME", self.home)
            .env_remove("PH_AGENT")
            // What is typed at the terminal is for us: a command that is cut off could leave
            // something behind.
            .process_group(0)
            .stdin(Stdio::null());
        for setting in &SETTINGS {
            command.env_remove(setting.env);
        }
        if who != "human" {
            command.env("PH_AGENT", who);
        }
        command
    }

    /// Fails where somebody wants this to end.
    fn go_on(&self) -> Result<()> {
        match self.asked_to_end.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Report::refused(format!("ended by signal {signal}"))),
        }
    }

    /// Runs `ph` without a word.
    fn quietly(&self, args: &[&str]) {
        let _ = self.command("human", args).output();
    }

    /// Runs `ph` for real, shows the command and what it printed, and gives back its output.
    fn run(&mut self, who: &str, args: &[&str]) -> Result<String> {
        self.go_on()?;
        let style = AnsiColor::Cyan.on_default();
        let words: Vec<_> = args.iter().map(|word| quoted(word)).collect();
        self.out
            .line(format!("{style}{who}$ ph {}{style:#}", words.join(" ")))?;
        self.out.flush()?;
        let done = self
            .command(who, args)
            .output()
            .map_err(|error| Report::storage(format!("cannot run ph: {error}")))?;
        let shown = String::from_utf8_lossy(&done.stdout);
        self.out.text(&shown)?;
        self.out.text(String::from_utf8_lossy(&done.stderr))?;
        if done.status.success() {
            Ok(shown.trim().to_owned())
        } else {
            Err(Report::storage(format!(
                "'ph {}' failed in the demo: {}",
                words.join(" "),
                done.status
            )))
        }
    }
}

/// The directories to look for commands in, with the one that holds `ph` first.
fn with_ph_first(ph: &Path) -> std::ffi::OsString {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let dirs = ph.parent().map(Path::to_owned).into_iter();
    std::env::join_paths(dirs.chain(std::env::split_paths(&before))).unwrap_or(before)
}

/// A word as one would type it in a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ',');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
