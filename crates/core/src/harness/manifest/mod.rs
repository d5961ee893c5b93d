//! The words of a manifest. Each value is checked where it is read, so that what is wrong can be
//! named with its line; what concerns two values at once is checked in `check.rs`.

mod check;
mod keys;
mod pattern;
mod template;
pub mod version;
mod wait;

pub use check::Fault;
pub use keys::Keys;
pub use pattern::Pattern;
pub(super) use pattern::compile;
pub use template::{Document, Placeholder, Template};
pub use version::Version;
pub use wait::Wait;

use crate::harness::{Handover, Headless, Hooks, InputBox, Resume, Start};
use serde::{Deserialize, Serialize};

/// How many rows at the bottom of a screen are looked at, unless a manifest says otherwise, and
/// at most.
const LINES: usize = 20;
pub(super) const MOST_LINES: usize = 60;
/// How many patterns one list may have, and how many kinds of question.
pub(super) const MOST: usize = 32;

/// What is known of one kind of agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub description: String,
    /// The commands that it is chosen for, by the last part of their path.
    #[serde(default)]
    pub commands: Vec<String>,
    /// How a person gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Ways in, best first.
    #[serde(default = "terminal_alone")]
    pub routes: Vec<Route>,
    /// What shows that a message was accepted.
    #[serde(default)]
    pub proof: Vec<Proof>,
    #[serde(default)]
    pub start: Start,
    /// How a loop runs it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<Headless>,
    /// Which versions it was tested with, and how a program's version is found out.
    #[serde(default)]
    pub version: Version,
    /// How the program says that another process has its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// How the program resumes a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    #[serde(default)]
    pub activity: Activities,
    #[serde(default)]
    pub hook: Hooks,
    #[serde(default)]
    pub http: Http,
    #[serde(default, rename = "dialog")]
    pub dialogs: Vec<Dialog>,
    /// The program's input box. Without it, text is typed when the program is idle and asks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_box: Option<InputBox>,
    #[serde(default)]
    pub submit: Submit,
    #[serde(default)]
    pub interrupt: Interrupt,
}

/// The agent's own HTTP door, at `{port}` on loopback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Whose words it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    OpenCode,
}

/// Where evidence of what a program does comes from; here in the order in which one beats
/// another. What remains is output, and its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Hook,
    Osc,
    Title,
    /// The row that the cursor is in.
    Cursor,
    Screen,
}

impl Source {
    pub const ALL: [Self; 5] = [
        Self::Hook,
        Self::Osc,
        Self::Title,
        Self::Cursor,
        Self::Screen,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Osc => "osc",
            Self::Title => "title",
            Self::Cursor => "cursor",
            Self::Screen => "screen",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Activities {
    /// Without output for so long it is idle, where nothing better says what it does.
    pub silence: Wait,
    /// So long after it was given something to do, that it seems idle is believed again, though it
    /// never seemed to work.
    pub shows: Wait,
    /// Which evidence beats which, the best first.
    pub order: Vec<Source>,
    /// How many rows at the bottom `screen` looks at.
    pub lines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osc: Option<Osc>,
    pub title: Signs,
    pub cursor: Signs,
    pub screen: Signs,
}

impl Default for Activities {
    fn default() -> Self {
        Self {
            silence: Wait::millis(2_000),
            shows: Wait::millis(1_000),
            order: Source::ALL.to_vec(),
            lines: LINES,
            osc: None,
            title: Signs::default(),
            cursor: Signs::default(),
            screen: Signs::default(),
        }
    }
}

/// By what an activity is recognised.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Signs {
    pub working: Vec<Pattern>,
    pub idle: Vec<Pattern>,
    pub blocked: Vec<Pattern>,
}

impl Signs {
    pub(crate) fn is_empty(&self) -> bool {
        self.lists().iter().all(|patterns| patterns.is_empty())
    }

    pub(crate) fn lists(&self) -> Lists<'_> {
        [&self.working, &self.idle, &self.blocked]
    }
}

/// The patterns of work, of rest and of questions.
pub(crate) type Lists<'a> = [&'a [Pattern]; 3];

/// What a program says of itself in an operating system command of this number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Osc {
    pub number: u16,
    #[serde(default)]
    pub working: Vec<Pattern>,
    #[serde(default)]
    pub idle: Vec<Pattern>,
    #[serde(default)]
    pub blocked: Vec<Pattern>,
}

impl Osc {
    pub(crate) fn lists(&self) -> Lists<'_> {
        [&self.working, &self.idle, &self.blocked]
    }
}

/// A question of the program's that a person should answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    pub name: String,
    /// Over the last rows together; a group `what` says what is asked.
    pub pattern: Pattern,
    #[serde(default = "usual_lines")]
    pub lines: usize,
}

/// When text goes in as a bracketed paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paste {
    /// Where the program has asked for it.
    Auto,
    Always,
    Never,
}

impl Paste {
    pub fn applies(self, is_asked_for: bool) -> bool {
        match self {
            Self::Auto => is_asked_for,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How text is put before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Submit {
    pub paste: Paste,
    pub enter: Keys,
    /// How long after the text Enter is pressed.
    pub delay: Wait,
    /// How long Enter waits for the text, where the box still shows none.
    pub seen_within: Wait,
    /// How often Enter is pressed again where the box still holds the text.
    pub retries: u8,
    pub retry_after: Wait,
    /// Whether a normal message is typed while it works. A question may open between the look and
    /// Enter; a program that would only let the text wait gains nothing by it.
    pub while_working: bool,
}

impl Default for Submit {
    fn default() -> Self {
        Self {
            paste: Paste::Auto,
            enter: Keys::enter(),
            delay: Wait::millis(50),
            seen_within: Wait::millis(0),
            retries: 1,
            retry_after: Wait::millis(1_000),
            while_working: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Interrupt {
    pub keys: Keys,
    /// What dismisses a question, where that is another key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dismiss: Option<Keys>,
    /// Whether the keys would end a program that does nothing. They are then pressed only where
    /// better evidence than output shows that it works.
    pub quits_when_idle: bool,
    /// How long it may take to be idle, before the keys are pressed again.
    pub wait: Wait,
    /// How long it may take, once it is idle, to put the prompt back into its box.
    pub settle: Wait,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self {
            keys: Keys::ctrl_c(),
            dismiss: None,
            quits_when_idle: false,
            wait: Wait::millis(5_000),
            settle: Wait::millis(0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// The agent's own hook takes it into its context.
    Hook,
    /// The agent's own queue.
    Queue,
    /// The agent's own HTTP door.
    Http,
    Terminal,
}

impl Route {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Queue => "queue",
            Self::Http => "http",
            Self::Terminal => "terminal",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// A hook that shows the text that was submitted.
    Hook,
    Transcript,
}

fn terminal_alone() -> Vec<Route> {
    vec![Route::Terminal]
}

fn usual_lines() -> usize {
    LINES
}

impl Manifest {
    /// For a program of which nothing is known.
    pub fn generic() -> Self {
        Self {
            name: "generic".to_owned(),
            description: "Any program, judged by when it writes to its terminal".to_owned(),
            commands: Vec::new(),
            install: None,
            routes: terminal_alone(),
            proof: Vec::new(),
            start: Start::default(),
            headless: None,
            version: Version::default(),
            handover: None,
            resume: None,
            activity: Activities::default(),
            hook: Hooks::default(),
            http: Http::default(),
            dialogs: Vec::new(),
            input_box: None,
            submit: Submit::default(),
            interrupt: Interrupt::default(),
        }
    }

    /// How a person gets this program, where it is one that the harness is for.
    pub fn install_of(&self, program: &str) -> Option<&str> {
        let base = program.rsplit('/').next().unwrap_or(program);
        let is_known = self.commands.iter().any(|command| command == base);
        self.install.as_deref().filter(|_| is_known)
    }

    /// Whether a screen tells anything about such a program, so that looking at it is worth it.
    pub fn looks(&self) -> bool {
        let activity = &self.activity;
        !self.dialogs.is_empty()
            || self.input_box.is_some()
            || activity.osc.is_some()
            || [&activity.title, &activity.cursor, &activity.screen]
                .iter()
                .any(|signs| !signs.is_empty())
    }

    /// Whether it can be told that no question stands open.
    pub fn knows_dialogs(&self) -> bool {
        !self.dialogs.is_empty()
    }

    /// Whether it shows by a sign that it can be written to.
    pub fn awaits_sign(&self) -> bool {
        self.input_box.is_some() || !self.hook.ready.is_empty()
    }

    /// Whether anything can prove that a message was accepted.
    pub fn has_proof(&self) -> bool {
        !self.proof.is_empty()
    }

    /// What it says that this version does nothing with.
    pub fn unused(&self) -> Vec<String> {
        let routes = self.routes.iter().filter_map(|route| match route {
            Route::Hook if self.hook.context.is_empty() => {
                Some("routes: 'hook' needs an event in [hook] context, and has none".to_owned())
            }
            Route::Http if self.http.api.is_none() => {
                Some("routes: 'http' needs [http] api, and there is none".to_owned())
            }
            Route::Http if self.routes.first() != Some(&Route::Http) => {
                Some("routes: 'http' has an effect only as the first".to_owned())
            }
            Route::Queue => Some(
                "routes: 'queue' is not supported; mail goes by way of the terminal".to_owned(),
            ),
            Route::Hook | Route::Http | Route::Terminal => None,
        });
        let proof = self.proof.iter().filter_map(|proof| match proof {
            Proof::Transcript if !self.hook.is_known() => Some(
                "proof: 'transcript' needs a hook that names the transcript, and none is known"
                    .to_owned(),
            ),
            Proof::Transcript | Proof::Hook => None,
        });
        routes.chain(proof).collect()
    }

    /// How many rows at the bottom of a screen are to be looked at.
    pub fn lines(&self) -> usize {
        let dialogs = self.dialogs.iter().map(|dialog| dialog.lines);
        let input_box = self.input_box.as_ref().map(|_| MOST_LINES);
        let others = [Some(self.activity.lines), input_box];
        dialogs
            .chain(others.into_iter().flatten())
            .max()
            .unwrap_or(LINES)
    }
}
