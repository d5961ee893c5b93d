//! Views beyond [`State::ALL`](super::State::ALL): views into which nothing may be typed, and
//! unusual input boxes. Each is reached from a fresh start of the agent.

use super::Agent;

/// State that the input box of a view must be recognised as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxKind {
    /// The box is visible and empty.
    Empty,
    /// The box is visible and holds a text.
    Holds,
    /// Nothing may be typed: no box is visible, or it is not the conversation's.
    Hidden,
}

/// Step towards a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Press keys, then wait until the screen is at rest.
    Keys(&'static str),
    /// Press keys, and record the screen after a moment.
    Press(&'static str),
    /// Paste a text in brackets, then wait until the screen is at rest.
    Paste(String),
    /// Paste a line, press Enter, and wait for the request to the model.
    Submit(&'static str),
    /// Wait until the screen contains a text.
    See(&'static str),
    /// Wait until the agent is idle.
    Idle,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub name: &'static str,
    pub input_box: BoxKind,
    /// Text that only this view shows; may be empty.
    pub shows: &'static str,
    /// Whether the view appears by itself, before the first box.
    pub at_start: bool,
    pub args: &'static [&'static str],
    /// Files below the agent's home.
    pub files: &'static [(&'static str, &'static str)],
    pub steps: Vec<Step>,
}

impl View {
    fn new(name: &'static str, input_box: BoxKind, shows: &'static str) -> Self {
        Self {
            name,
            input_box,
            shows,
            at_start: false,
            args: &[],
            files: &[],
            steps: Vec::new(),
        }
    }

    /// Name its files below the directory of a terminal size.
    pub(super) fn file(&self) -> String {
        format!("views/{}", self.name)
    }

    fn at_start(mut self) -> Self {
        self.at_start = true;
        self
    }

    fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    fn files(mut self, files: &'static [(&'static str, &'static str)]) -> Self {
        self.files = files;
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn keys(self, keys: &'static str) -> Self {
        self.step(Step::Keys(keys))
    }

    fn paste(self, text: impl Into<String>) -> Self {
        self.step(Step::Paste(text.into()))
    }

    /// Submit a prompt and wait for the end of the turn.
    fn turn(self, line: &'static str) -> Self {
        self.submit(line).step(Step::Idle)
    }

    fn submit(self, line: &'static str) -> Self {
        self.step(Step::Submit(line))
    }

    fn see(self, text: &'static str) -> Self {
        self.step(Step::See(text))
    }

    /// Type a command of the agent and run it.
    fn command(self, command: &'static str) -> Self {
        self.keys(command).keys(ENTER)
    }
}

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const LEFT: &str = "\x1b[D";
const DOWN: &str = "\x1b[B";
const TAB: &str = "\t";
const SHIFT_TAB: &str = "\x1b[Z";
const FOCUS_OUT: &str = "\x1b[O";
const CTRL_C: &str = "\x03";
const CTRL_O: &str = "\x0f";
const CTRL_P: &str = "\x10";
const CTRL_R: &str = "\x12";
const CTRL_S: &str = "\x13";
const CTRL_T: &str = "\x14";
const F2: &str = "\x1bOQ";

impl Agent {
    /// Return the recorded views of this agent.
    pub fn views(self) -> Vec<View> {
        let own = match self {
            Self::Claude => claude(),
            Self::Codex => codex(),
            Self::OpenCode => opencode(),
            Self::Gemini => gemini(),
        };
        own.into_iter().chain(pastes()).collect()
    }
}

/// Return views of pasted texts with the lengths of messages.
fn pastes() -> Vec<View> {
    let lines = |count: u32| {
        let lines: Vec<String> = (1..=count)
            .map(|line| format!("lab-paste {line}"))
            .collect();
        lines.join("\n")
    };
    let bytes = |count: usize| {
        let words: Vec<String> = (0..count).map(|word| format!("lab-{word:04}")).collect();
        words.join(" ")[..count].to_owned()
    };
    let holds = |name| View::new(name, BoxKind::Holds, "");
    vec![
        holds("pasted-350-bytes").paste(bytes(350)),
        holds("pasted-1500-bytes").paste(bytes(1500)),
        holds("pasted-3-lines").paste(lines(3)),
        holds("pasted-6-lines").paste(lines(6)),
        holds("pasted-50-lines").paste(lines(50)),
    ]
}

const CLAUDE_SETTINGS: &str = ".claude/settings.json";

fn claude() -> Vec<View> {
    use BoxKind::{Empty, Hidden};
    let mut views = claude_boxes();
    views.extend(claude_dialogs());
    views.extend(commands([
        ("model", Hidden, "/model", "Select model"),
        ("config", Hidden, "/config", "Type to filter"),
        (
            "permissions",
            Hidden,
            "/permissions",
            "Claude Code won't ask",
        ),
        ("help", Hidden, "/help", "Claude understands your codebase"),
        ("tasks", Hidden, "/tasks", "No tasks currently running"),
        ("login", Hidden, "/login", "Select login method"),
        ("btw", Hidden, "/btw lines=2", "c to copy"),
        ("status", Hidden, "/status", "Peer address"),
        ("hooks", Hidden, "/hooks", "This menu is read-only"),
        ("memory", Hidden, "/memory", "Auto-memory"),
        ("theme", Hidden, "/theme", "Syntax theme"),
        ("mcp", Empty, "/mcp", "No MCP servers configured"),
        ("unknown-command", Empty, "/no-such-thing", "no-such-thing"),
    ]));
    views.push(
        View::new("resume", Hidden, "Resume session")
            .turn("lines=2")
            .command("/clear")
            .command("/resume"),
    );
    views
}

/// Return variants of the input box.
fn claude_boxes() -> Vec<View> {
    use BoxKind::{Empty, Hidden, Holds};
    const VIM: &[(&str, &str)] = &[(CLAUDE_SETTINGS, r#"{"editorMode":"vim"}"#)];
    let view = View::new;
    vec![
        view("named", Empty, "mine").args(&["-n", "mine"]),
        view("renamed", Empty, "other").command("/rename other"),
        view("cleared", Empty, "").turn("lines=2").command("/clear"),
        view("status-1", Empty, "status row one").files(&[(
            CLAUDE_SETTINGS,
            r#"{"statusLine":{"type":"command","command":"echo status row one"}}"#,
        )]),
        view("status-3", Empty, "status row three").files(&[(
            CLAUDE_SETTINGS,
            r#"{"statusLine":{"type":"command","command":"printf 'status row one\nstatus row two\nstatus row three\n'"}}"#,
        )]),
        view("status-rule", Empty, "status after").files(&[(
            CLAUDE_SETTINGS,
            r#"{"statusLine":{"type":"command","command":"printf '────────────────────\n❯ status\n────────────────────\nstatus after\n'"}}"#,
        )]),
        view("accept-edits", Empty, "accept edits on").keys(SHIFT_TAB),
        view("plan", Empty, "plan mode on").keys(SHIFT_TAB).keys(SHIFT_TAB),
        view("auto", Empty, "auto mode on").keys(SHIFT_TAB).keys(SHIFT_TAB).keys(SHIFT_TAB),
        view("shortcuts", Empty, "shell").keys("?"),
        view("unfocused", Empty, "").keys(FOCUS_OUT),
        view("ctrl-c", Empty, "again to exit").step(Step::Press(CTRL_C)),
        view("escape", Empty, "").turn("lines=2").keys(ESCAPE),
        view("stashed", Empty, "stashed").keys("half a thought").keys(CTRL_S),
        view("api-error", Empty, "API Error").turn("http=400"),
        view("vim-insert", Empty, "-- INSERT").files(VIM),
        view("vim-normal", Empty, "").files(VIM).keys(ESCAPE),
        view("vim-visual", Hidden, "-- VISUAL").files(VIM).keys(ESCAPE).keys("v"),
        view("long-history", Empty, "").turn("lines=60"),
        view("multi-line", Holds, "two").paste("one\ntwo"),
        view("slash", Holds, "/add-dir").keys("/"),
        view("at", Holds, "notes.txt").keys("@"),
        view("shell", Hidden, "! for shell mode").keys("!"),
        view("shell-draft", Hidden, "! for shell mode").keys("!ls"),
    ]
}

/// Return dialogs, panels and the agents view.
fn claude_dialogs() -> Vec<View> {
    use BoxKind::{Empty, Hidden};
    let view = View::new;
    vec![
        view("auto-offer", Hidden, "Make auto mode your default")
            .at_start()
            .files(&[(CLAUDE_SETTINGS, r#"{"permissions":{"defaultMode":"default"}}"#)]),
        view("agents", Hidden, "describe a task for a new session").turn("lines=2").keys(LEFT),
        view("agents-fresh", Hidden, "describe a task for a new session").keys(LEFT),
        view("agents-back", Empty, "").turn("lines=2").keys(LEFT).keys(ESCAPE),
        view("agents-back-dialog", Hidden, "Do you want to proceed?")
            .turn("lines=2")
            .keys(LEFT)
            .keys(ESCAPE)
            .submit("ask=touch denied")
            .see("Do you want to proceed?"),
        view("dialog-named", Hidden, "Do you want to proceed?")
            .args(&["-n", "mine"])
            .submit("ask=touch denied")
            .see("Do you want to proceed?"),
        view("dialog-amend", Hidden, "Yes, and tell Claude what to do n")
            .submit("ask=touch denied")
            .see("Do you want to proceed?")
            .keys("")
            .keys(TAB),
        view("question", Hidden, "Which one")
            .submit(r#"tool=AskUserQuestion:{"questions":[{"question":"Which one?","header":"Pick","multiSelect":false,"options":[{"label":"First","description":"the first"},{"label":"Second","description":"the second"}]}]}"#)
            .see("Which one?"),
        view("plan-approval", Hidden, "Exit plan mode?")
            .keys(SHIFT_TAB)
            .keys(SHIFT_TAB)
            .submit(r##"tool=ExitPlanMode:{"plan":"# Plan\n\nDo it."}"##)
            .keys(""),
        view("subagent", Hidden, "Message @general-purpose")
            .submit(r#"tool=Agent:{"description":"lab agent","prompt":"slow=60","subagent_type":"general-purpose","run_in_background":true}"#)
            .keys("")
            .keys(DOWN)
            .keys(DOWN)
            .keys(ENTER),
        view("background-shell", Empty, "1 shell")
            .submit(r#"tool=Bash:{"command":"sleep 100","description":"sleeps","run_in_background":true}"#)
            .keys("")
            .keys(ENTER)
            .step(Step::Idle),
        view("transcript", Hidden, "Showing detailed transcript").turn("lines=2").keys(CTRL_O),
        view("history-search", Hidden, "earch prompts").turn("lines=2").keys(CTRL_R),
        view("rewind", Hidden, "Restore the code").turn("lines=2").keys(ESCAPE).keys(ESCAPE),
    ]
}

/// Return views that a command opens, from rows of the name, the box, the command, and a text of
/// the view.
fn commands<const N: usize>(
    rows: [(&'static str, BoxKind, &'static str, &'static str); N],
) -> impl Iterator<Item = View> {
    rows.into_iter()
        .map(|(name, input_box, command, shows)| View::new(name, input_box, shows).command(command))
}

fn codex() -> Vec<View> {
    use BoxKind::{Empty, Hidden, Holds};
    let view = View::new;
    let mut views = vec![
        view("help", Empty, "esc close").keys("?"),
        view("escape", Empty, "esc again to edit previous message")
            .turn("lines=2")
            .keys(ESCAPE),
        view("status", Empty, "Collaboration mode").command("/status"),
        view("unfocused", Empty, "").keys(FOCUS_OUT),
        view("plan", Empty, "Plan mode").keys(SHIFT_TAB),
        view("long-history", Empty, "").turn("lines=60"),
        view("vim-normal", Empty, "Vim: Normal")
            .command("/vim")
            .keys(ESCAPE),
        view("multi-line", Holds, "two").paste("one\ntwo"),
        view("slash", Holds, "/permissions").keys("/"),
        view("at", Holds, "Type to search mentions").keys("@"),
        view("shell", Hidden, "Shell mode").keys("!"),
        view("side", Hidden, "Ask a follow-up question")
            .turn("lines=2")
            .command("/side"),
        view("side-turn", Hidden, "Ask a follow-up question")
            .turn("lines=2")
            .command("/side")
            .submit("lines=3")
            .see("line 2 of the reply"),
        view("agents", Hidden, "Agent command center")
            .turn("lines=2")
            .keys(LEFT),
        view("agents-back", Empty, "")
            .turn("lines=2")
            .keys(LEFT)
            .keys(ESCAPE),
        view("backtrack", Hidden, "Browsing")
            .turn("lines=2")
            .keys(ESCAPE)
            .keys(ESCAPE),
        view("details", Empty, "").turn("lines=2").keys(CTRL_T),
        view("history-search", Hidden, "reverse-i-search")
            .turn("lines=2")
            .keys(CTRL_R),
        view("f2", Hidden, "Warnings").turn("lines=2").keys(F2),
        view("resume", Hidden, "Resume a previous session")
            .turn("lines=2")
            .command("/new")
            .command("/resume"),
    ];
    views.extend(commands([
        ("model", Hidden, "/model", "Select Model and Effort"),
        (
            "permissions",
            Hidden,
            "/permissions",
            "Update Model Permissions",
        ),
        ("review", Hidden, "/review", "Select a review preset"),
        ("skills", Hidden, "/skills", "Choose an action"),
        ("theme", Hidden, "/theme", "catppuccin-mocha (current)"),
        ("statusline", Hidden, "/statusline", "Use theme colors"),
        (
            "unknown-command",
            Holds,
            "/no-such-thing",
            "Unrecognized command",
        ),
    ]));
    views
}

fn opencode() -> Vec<View> {
    use BoxKind::{Empty, Hidden, Holds};
    let view = View::new;
    vec![
        view("plan", Empty, "Plan ·").keys(TAB),
        view("multi-line", Holds, "two").paste("one\ntwo"),
        view("slash", Holds, "/models").keys("/"),
        view("at", Holds, "@general").keys("@"),
        view("shell", Hidden, "exit shell mode").keys("!"),
        view("palette", Hidden, "Commands").keys(CTRL_P),
        view("sessions", Hidden, "Sessions")
            .turn("lines=2")
            .command("/sessions"),
        view("models", Hidden, "Select model").command("/models"),
        view("turn-multi-line", Holds, "two")
            .turn("lines=2")
            .paste("one\ntwo"),
        view("turn-slash", Holds, "/export")
            .turn("lines=2")
            .keys("/"),
        view("turn-palette", Hidden, "Commands")
            .turn("lines=2")
            .keys(CTRL_P),
    ]
}

fn gemini() -> Vec<View> {
    use BoxKind::{Empty, Hidden, Holds};
    let view = View::new;
    vec![
        view("two-turns", Empty, "line 2 of the reply")
            .turn("lines=2")
            .turn("lines=3"),
        view("shortcuts", Empty, "Shortcuts See /help").keys("?"),
        view("ctrl-c", Empty, "again to exit").step(Step::Press(CTRL_C)),
        view("mode", Empty, "auto-accept edits").keys(SHIFT_TAB),
        view("multi-line", Holds, "two").paste("one\ntwo"),
        view("slash", Holds, "Clear the screen").keys("/"),
        view("at", Holds, "notes.txt").keys("@"),
        view("shell", Hidden, "shell mode enabled").keys("!"),
        view("settings", Hidden, "Apply To").command("/settings"),
        view("model", Hidden, "Manually select a model").command("/model"),
        view("theme", Hidden, "Select Theme").command("/theme"),
        view("auth", Hidden, "How would you like to authenticate").command("/auth"),
        view("help", Empty, "ard-shortcuts").command("/help"),
        view("resume", Hidden, "Chat Sessions")
            .turn("lines=2")
            .command("/clear")
            .command("/resume"),
        view("history-search", Hidden, "(r:)")
            .turn("lines=2")
            .keys(CTRL_R),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Release, Shot};
    use super::*;
    use crate::pty::Size;
    use std::io::ErrorKind;

    #[test]
    fn every_view_was_recorded() {
        for release in Agent::ALL.into_iter().flat_map(Release::recorded) {
            let agent = release.agent;
            for view in agent.views() {
                for size in [Size::NARROW, Size::USUAL, Size::LARGE, Size::WIDE] {
                    let which = format!("{release} {size} {}", view.name);
                    let shot = match Shot::load_view(&release, size, &view) {
                        Ok(shot) => shot,
                        // An earlier release may lack the view.
                        Err(error)
                            if error.kind() == ErrorKind::NotFound && !release.is_pinned() =>
                        {
                            continue;
                        }
                        Err(error) => panic!("{which}: {error}"),
                    };
                    assert_eq!(shot.screen.len(), usize::from(size.rows), "{which}");
                    assert!(shot.has_wrapped(view.shows), "{which}");
                    assert!(shot.beside.bracketed_paste, "{which}");
                    let empty = agent.has_empty_box(&shot);
                    assert!(empty || view.input_box != BoxKind::Empty, "{which}");
                }
            }
        }
    }

    /// Claude Code's prompt row ends in a no-break space, its agents view in a space.
    #[test]
    fn a_no_break_space_is_kept() {
        let release = Release::pinned(Agent::Claude);
        let views = Agent::Claude.views();
        let row = |name: &str| {
            let view = views.iter().find(|view| view.name == name).unwrap();
            let shot = Shot::load_view(&release, Size::USUAL, view).unwrap();
            shot.screen[shot.beside.cursor.0].clone()
        };
        assert_eq!(row("named"), "❯\u{a0}");
        assert!(row("agents").starts_with("❯ describe"));
    }
}
