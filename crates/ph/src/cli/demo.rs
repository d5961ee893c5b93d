use crate::config::SETTINGS;
use crate::context::Said;
use crate::output::Output;
use crate::report::{Code, Report, Result};
use anstyle::AnsiColor;
use std::path::Path;
use std::process::{Command, Stdio};

/// Show a small exchange between a person and an agent, in a temporary home
///
/// Runs the real commands, prints each with its output, and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph demo")]
pub(super) struct Args {}

/// One command of the demo, run as the person or as an agent.
struct Stage<'a> {
    out: Output,
    ph: &'a Path,
    home: &'a Path,
}

pub(super) fn run(_: &Args, said: &Said) -> Result<Code> {
    let ph = std::env::current_exe()
        .map_err(|error| Report::storage(format!("cannot find ph itself: {error}")))?;
    let home = tempfile::Builder::new()
        .prefix("posthaste-demo-")
        .tempdir()
        .map_err(|error| Report::storage(format!("cannot make a temporary home: {error}")))?;
    let mut stage = Stage {
        out: Output::new(super::help::color(said)),
        ph: &ph,
        home: home.path(),
    };
    play(&mut stage)?;
    stage.out.flush()?;
    Ok(Code::Ok)
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
            "Please fix the login page first.",
        ],
    )?;
    stage.say("Two more, one of them urgent. A key makes a repeat harmless.")?;
    stage.run(
        "human",
        &[
            "send",
            "coder",
            "--priority",
            "interrupt",
            "Stop pushing: main is broken.",
        ],
    )?;
    stage.run(
        "human",
        &["send", "coder", "--key", "lunch", "Back at two."],
    )?;
    stage.run(
        "human",
        &["send", "coder", "--key", "lunch", "Back at two."],
    )?;
    stage.say("The agent's inbox, and the block that a loop puts into its prompt.")?;
    stage.run("coder", &["inbox"])?;
    stage.run("coder", &["inbox", "--prompt"])?;
    stage.say("What its hook would tell it at the next prompt, once: most urgent first.")?;
    stage.run("coder", &["check", "--inject"])?;
    stage.say("The agent reads the first message and answers it, in the same thread.")?;
    let id8 = sent.get(..8).unwrap_or(&sent).to_owned();
    stage.run("coder", &["read", &id8])?;
    let answer = stage.run(
        "coder",
        &["reply", &id8, "Done: the form posts to /session now."],
    )?;
    stage.say("The person asks why the answer lies where it lies, then reads the thread.")?;
    let answer8 = answer.get(..8).unwrap_or(&answer).to_owned();
    stage.run("human", &["why", &answer8])?;
    stage.run("human", &["thread", &id8])?;
    stage.run("human", &["mark-read", &answer8])?;
    stage.say(
        "Every message's receipts: what is proven of it, and by whom. Nothing more is claimed.",
    )?;
    stage.run("human", &["show", &id8])?;
    stage.run("human", &["log"])?;
    stage.say(
        "What happened: each message was in the journal, synced, before 'ph send' answered; the agent never \
         ran, and nothing was lost. The temporary home is removed now. Next: ph send, ph inbox, ph help.",
    )
}

impl Stage<'_> {
    fn say(&mut self, text: &str) -> Result<()> {
        let style = AnsiColor::Green.on_default().bold();
        self.out.line(format!("\n{style}# {text}{style:#}"))
    }

    /// Runs `ph` for real, shows the command and what it printed, and gives back its output.
    fn run(&mut self, who: &str, args: &[&str]) -> Result<String> {
        let style = AnsiColor::Cyan.on_default();
        let words: Vec<_> = args.iter().map(|word| quoted(word)).collect();
        self.out
            .line(format!("{style}{who}$ ph {}{style:#}", words.join(" ")))?;
        self.out.flush()?;
        let mut command = Command::new(self.ph);
        command
            .args(args)
            .env("PH_HOME", self.home)
            // The user's own settings are none of the demo's.
            .env("XDG_CONFIG_HOME", self.home)
            .env_remove("PH_AGENT")
            .stdin(Stdio::null());
        for setting in &SETTINGS {
            command.env_remove(setting.env);
        }
        if who != "human" {
            command.env("PH_AGENT", who);
        }
        let done = command
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

/// A word as one would type it in a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ',');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
