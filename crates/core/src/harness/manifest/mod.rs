//! Manifests: descriptions of harnesses as files.
//!
//! Each value is validated when it is parsed, so that an error names its line; `check.rs` validates
//! values against each other.

mod check;
mod keys;
mod pattern;
mod template;
pub mod version;
mod wait;

pub use check::ManifestError;
pub use keys::Keys;
pub use pattern::Pattern;
pub(super) use pattern::compile;
pub use template::{Document, Placeholder, Template};
pub use version::Version;
pub use wait::Wait;

use crate::ask::{AskKind, Meaning};
use crate::harness::{Handover, Headless, Hooks, InputBox, Resume, Start};
use serde::{Deserialize, Serialize};

/// Default and maximum number of rows at the bottom of a screen that patterns apply to.
const DEFAULT_SCREEN_ROWS: usize = 20;
pub(super) const MAX_SCREEN_ROWS: usize = 60;
/// Maximum number of patterns in a list, and of kinds of dialogs.
pub(super) const MAX_LIST_LEN: usize = 32;

/// Description of one kind of agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub description: String,
    /// Base names of the commands that select this harness.
    #[serde(default)]
    pub commands: Vec<String>,
    /// How to install the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Delivery routes, best first.
    #[serde(default = "terminal_alone")]
    pub routes: Vec<Route>,
    /// Evidence that proves `accepted`.
    #[serde(default)]
    pub proof: Vec<Proof>,
    #[serde(default)]
    pub start: Start,
    /// How a loop runs the agent, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<Headless>,
    /// The versions that the manifest was tested with, and how to find out a program's version.
    #[serde(default)]
    pub version: Version,
    /// How the program says that another process has its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// How the program resumes a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    #[serde(default)]
    pub activity: ActivitySettings,
    #[serde(default)]
    pub hook: Hooks,
    #[serde(default)]
    pub http: Http,
    #[serde(default, rename = "dialog")]
    pub dialogs: Vec<Dialog>,
    #[serde(default)]
    pub options: OptionPatterns,
    /// The program's input box. Without it, text is typed when the program is idle and asks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_box: Option<InputBox>,
    #[serde(default)]
    pub submit: Submit,
    #[serde(default)]
    pub interrupt: Interrupt,
}

/// The agent's own HTTP API, at `{port}` on loopback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// The protocol of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    OpenCode,
}

/// Sources of evidence for a program's activity, in their default order. Output and silence come
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Hook,
    Osc,
    Title,
    /// The cursor's row.
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
pub struct ActivitySettings {
    /// Silence after which the program is idle, unless better evidence exists.
    pub silence: Wait,
    /// Time after input from which idle claims count even if the program never seemed to work.
    pub shows: Wait,
    /// Order of the sources, best first.
    pub order: Vec<Source>,
    /// Number of rows at the bottom that `screen` patterns apply to.
    pub lines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osc: Option<Osc>,
    pub title: ActivityPatterns,
    pub cursor: ActivityPatterns,
    pub screen: ActivityPatterns,
}

impl Default for ActivitySettings {
    fn default() -> Self {
        Self {
            silence: Wait::millis(2_000),
            shows: Wait::millis(1_000),
            order: Source::ALL.to_vec(),
            lines: DEFAULT_SCREEN_ROWS,
            osc: None,
            title: ActivityPatterns::default(),
            cursor: ActivityPatterns::default(),
            screen: ActivityPatterns::default(),
        }
    }
}

/// Patterns of each activity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActivityPatterns {
    pub working: Vec<Pattern>,
    pub idle: Vec<Pattern>,
    pub blocked: Vec<Pattern>,
}

impl ActivityPatterns {
    pub(crate) fn is_empty(&self) -> bool {
        self.lists().iter().all(|patterns| patterns.is_empty())
    }

    pub(crate) fn lists(&self) -> Lists<'_> {
        [&self.working, &self.idle, &self.blocked]
    }
}

/// The patterns of working, idle and blocked.
pub(crate) type Lists<'a> = [&'a [Pattern]; 3];

/// Patterns over the text that the program sends in an operating system command with this number.
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

/// A question of the program that a person should answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    pub name: String,
    /// Applies to the last rows, joined; its group `what` captures the question.
    pub pattern: Pattern,
    #[serde(default = "usual_lines")]
    pub lines: usize,
    /// Whether the pattern may match only the end of the question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// How an option is chosen. Without it, only attaching answers the dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<ChoosesBy>,
}

impl Dialog {
    pub(crate) fn kind(&self) -> AskKind {
        match self.name.as_str() {
            "permission" => AskKind::Permission,
            _ => AskKind::Question,
        }
    }
}

/// How an option of a dialog is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChoosesBy {
    /// The option's digit chooses it at once.
    Digit,
    /// Arrow keys move a marker, and Enter chooses.
    Arrows,
}

/// Patterns of the labels of options, and of marks where the agent has cut a text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptionPatterns {
    pub allow: Vec<Pattern>,
    pub always: Vec<Pattern>,
    pub deny: Vec<Pattern>,
    pub cut: Vec<Pattern>,
}

impl OptionPatterns {
    /// Return the meaning of a label. A label that fits two meanings has none.
    pub(crate) fn meaning(&self, label: &str) -> Meaning {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.is_in(label));
        match (fits(&self.allow), fits(&self.always), fits(&self.deny)) {
            (true, false, false) => Meaning::Allow,
            (false, true, false) => Meaning::AllowAlways,
            (false, false, true) => Meaning::Deny,
            _ => Meaning::Other,
        }
    }

    pub(crate) fn lists(&self) -> [&[Pattern]; 4] {
        [&self.allow, &self.always, &self.deny, &self.cut]
    }
}

/// When text is typed as a bracketed paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paste {
    /// If the program has requested it.
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

/// How text is submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Submit {
    pub paste: Paste,
    pub enter: Keys,
    /// Delay between the text and Enter.
    pub delay: Wait,
    /// Maximum wait for the text to appear in the box before Enter.
    pub seen_within: Wait,
    /// Number of further Enters if the box still holds the text.
    pub retries: u8,
    pub retry_after: Wait,
    /// Whether normal messages are typed while the program works. A question may open between the
    /// look and Enter, so a program that would only queue the text gains nothing by it.
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
    /// Keys that dismiss a question, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dismiss: Option<Keys>,
    /// Whether the keys would end an idle program. They are then pressed only if better evidence
    /// than output shows that it works.
    pub quits_when_idle: bool,
    /// Maximum wait for the program to become idle before the keys are pressed again.
    pub wait: Wait,
    /// Maximum wait for an idle program to put the prompt back into its box.
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
    /// The context of the agent's own hook.
    Hook,
    /// The agent's own queue.
    Queue,
    /// The agent's own HTTP API.
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
    /// A hook event with the submitted text.
    Hook,
    Transcript,
}

fn terminal_alone() -> Vec<Route> {
    vec![Route::Terminal]
}

fn usual_lines() -> usize {
    DEFAULT_SCREEN_ROWS
}

impl Manifest {
    /// The harness for an unknown program.
    pub fn generic() -> Self {
        Self {
            name: "generic".to_owned(),
            description: "Any program; its activity is judged by its output".to_owned(),
            commands: Vec::new(),
            install: None,
            routes: terminal_alone(),
            proof: Vec::new(),
            start: Start::default(),
            headless: None,
            version: Version::default(),
            handover: None,
            resume: None,
            activity: ActivitySettings::default(),
            hook: Hooks::default(),
            http: Http::default(),
            dialogs: Vec::new(),
            options: OptionPatterns::default(),
            input_box: None,
            submit: Submit::default(),
            interrupt: Interrupt::default(),
        }
    }

    /// Return how to install `program`, if this harness is for it.
    pub fn install_of(&self, program: &str) -> Option<&str> {
        let base = program.rsplit('/').next().unwrap_or(program);
        let is_known = self.commands.iter().any(|command| command == base);
        self.install.as_deref().filter(|_| is_known)
    }

    /// Whether any pattern needs the screen.
    pub fn looks(&self) -> bool {
        let activity = &self.activity;
        !self.dialogs.is_empty()
            || self.input_box.is_some()
            || activity.osc.is_some()
            || [&activity.title, &activity.cursor, &activity.screen]
                .iter()
                .any(|signs| !signs.is_empty())
    }

    /// Whether the screen can show that no question is open.
    pub fn knows_dialogs(&self) -> bool {
        !self.dialogs.is_empty()
    }

    /// Whether a pattern or event shows that the program is ready.
    pub fn awaits_sign(&self) -> bool {
        self.input_box.is_some() || !self.hook.ready.is_empty()
    }

    /// Whether any evidence can prove `accepted`.
    pub fn has_proof(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Return the settings that have no effect in this version.
    pub fn unused(&self) -> Vec<String> {
        let routes = self.routes.iter().filter_map(|route| match route {
            Route::Hook if self.hook.context.is_empty() => {
                Some("routes: 'hook' needs an event in [hook] context".to_owned())
            }
            Route::Http if self.http.api.is_none() => {
                Some("routes: 'http' needs [http] api".to_owned())
            }
            Route::Http if self.routes.first() != Some(&Route::Http) => {
                Some("routes: 'http' has an effect only as the first route".to_owned())
            }
            Route::Queue => Some(
                "routes: 'queue' is not supported; mail is delivered through the terminal"
                    .to_owned(),
            ),
            Route::Hook | Route::Http | Route::Terminal => None,
        });
        let proof = self.proof.iter().filter_map(|proof| match proof {
            Proof::Transcript if !self.hook.is_known() => {
                Some("proof: 'transcript' needs a hook that names the transcript".to_owned())
            }
            Proof::Transcript | Proof::Hook => None,
        });
        routes.chain(proof).collect()
    }

    /// Return the number of rows at the bottom of a screen that patterns apply to.
    pub fn lines(&self) -> usize {
        let dialogs = self.dialogs.iter().map(|dialog| dialog.lines);
        let input_box = self.input_box.as_ref().map(|_| MAX_SCREEN_ROWS);
        let others = [Some(self.activity.lines), input_box];
        dialogs
            .chain(others.into_iter().flatten())
            .max()
            .unwrap_or(DEFAULT_SCREEN_ROWS)
    }
}
