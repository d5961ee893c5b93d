//! Hook events: the manifest's description of them, and their interpretation.
//!
//! Payloads are untrusted data: they are compared and displayed, never executed.

mod history;

pub use history::{Heard, Word};

use crate::ask::MAX_TEXT_BYTES;
use crate::text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of characters of an event's name or text that evidence quotes.
const EVIDENCE_CHARS: usize = 60;
/// Maximum length of an agent's session id; a longer id is ignored.
const MAX_ID_BYTES: usize = 200;

/// Maximum length of a path on Linux, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Names of hook events by meaning. An event may be in several lists; its activity is the first
/// match of: blocked, submitted, tool, working, idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// The program is ready for input.
    pub ready: Vec<Sign>,
    /// A text was submitted, and a turn begins.
    pub submitted: Vec<Sign>,
    /// The model was given a text. If this list is empty, a submitted text counts as given.
    pub given: Vec<Sign>,
    pub working: Vec<Sign>,
    /// The program is about to use a tool.
    pub tool: Vec<Sign>,
    pub idle: Vec<Sign>,
    /// The program asks a question that a person should answer.
    pub blocked: Vec<Sign>,
    /// The conversation continues under another session id, for example after `/clear`.
    pub begins: Vec<Sign>,
    /// The session with this id is over.
    pub ends: Vec<Sign>,
    /// A subagent starts whose hook events do not name it; it runs until [`Self::side_ends`].
    pub side_begins: Vec<Sign>,
    pub side_ends: Vec<Sign>,
    /// The model receives the hook's output for these events, so mail can be delivered with it.
    pub context: Vec<Sign>,
    /// Format of that output.
    pub format: Format,
    /// Payload field with the agent's own session id.
    pub session: String,
    /// Payload field with the submitted text.
    pub prompt: String,
    /// Payload field with the question or the tool.
    pub what: String,
    /// Payload field with all of the request that a question is about.
    pub detail: String,
    /// Payload field that only subagents have; mail must not be delivered to them.
    pub aside: String,
    /// Payload field with the path of the transcript, a JSON Lines file.
    pub transcript: String,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            ready: Vec::new(),
            submitted: Vec::new(),
            given: Vec::new(),
            working: Vec::new(),
            tool: Vec::new(),
            idle: Vec::new(),
            blocked: Vec::new(),
            begins: Vec::new(),
            ends: Vec::new(),
            side_begins: Vec::new(),
            side_ends: Vec::new(),
            context: Vec::new(),
            format: Format::default(),
            session: "session_id".to_owned(),
            prompt: "prompt".to_owned(),
            what: "tool_name".to_owned(),
            detail: "tool_input".to_owned(),
            aside: "agent_id".to_owned(),
            transcript: "transcript_path".to_owned(),
        }
    }
}

/// Format in which a hook passes text to its agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `{"hookSpecificOutput":{"hookEventName":E,"additionalContext":T}}`, for Claude Code, Codex
    /// and Gemini CLI.
    #[default]
    AdditionalContext,
    /// Plain text.
    Text,
}

impl Format {
    /// Return the hook's output for this event.
    pub fn print(self, event: &str, text: &str) -> String {
        match self {
            Self::Text => text.to_owned(),
            Self::AdditionalContext => serde_json::json!({
                "hookSpecificOutput": {"hookEventName": event, "additionalContext": text}
            })
            .to_string(),
        }
    }
}

/// An event's name, optionally with a condition on its payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sign {
    event: String,
    only: Option<Only>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Only {
    /// `field=value`: the field has this value.
    Says { field: String, value: String },
    /// `!object.field`: the object exists and lacks the field.
    Lacks { object: String, field: String },
}

impl Only {
    fn read(said: &str) -> Option<Self> {
        let is_word = |word: &&str| !word.is_empty() && !word.contains(char::is_whitespace);
        if let Some(path) = said.strip_prefix('!') {
            let (object, field) = path.split_once('.')?;
            let [object, field] = [object, field].map(|w| Some(w).filter(is_word));
            return Some(Self::Lacks {
                object: object?.to_owned(),
                field: field?.to_owned(),
            });
        }
        let (field, value) = said.split_once('=')?;
        let field = Some(field).filter(is_word)?;
        (!value.is_empty()).then(|| Self::Says {
            field: field.to_owned(),
            value: value.to_owned(),
        })
    }

    fn fits(&self, fields: &PayloadFields<'_>) -> bool {
        match self {
            Self::Says { field, value } => fields.text(field).as_deref() == Some(value.as_str()),
            Self::Lacks { object, field } => {
                let within = fields.within(object);
                within.is_some_and(|inner| inner.0.get(field).is_none_or(|v| v.get() == "null"))
            }
        }
    }
}

impl TryFrom<String> for Sign {
    type Error = String;

    fn try_from(said: String) -> Result<Self, String> {
        let (event, only) = match said.split_once(' ') {
            None => (said.as_str(), None),
            Some((event, only)) => (event, Some(Only::read(only))),
        };
        let is_word = !event.is_empty() && !event.contains(char::is_whitespace);
        match only {
            None | Some(Some(_)) if is_word => Ok(Self {
                event: event.to_owned(),
                only: only.flatten(),
            }),
            _ => Err(
                "an event is written like Stop, SessionStart source=clear or \
                      AfterTool !tool_response.error"
                    .to_owned(),
            ),
        }
    }
}

impl From<Sign> for String {
    fn from(sign: Sign) -> Self {
        let event = sign.event;
        match sign.only {
            None => event,
            Some(Only::Says { field, value }) => format!("{event} {field}={value}"),
            Some(Only::Lacks { object, field }) => format!("{event} !{object}.{field}"),
        }
    }
}

/// An event's meaning for the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Blocked,
    Submitted,
    Tool,
    Working,
    Idle,
}

/// An event's meaning for subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubagentEvent {
    Begins,
    Ends,
}

/// A hook event, interpreted by a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The event's name, sanitized for display.
    pub(crate) event: String,
    pub(crate) ready: bool,
    pub(crate) begins: bool,
    pub(crate) ends: bool,
    pub(crate) side: Option<SubagentEvent>,
    pub(crate) turn: Option<Turn>,
    pub(crate) session: Option<String>,
    pub(crate) what: Option<String>,
    /// All of the request, if the event reports a question.
    pub(crate) detail: Option<String>,
    /// The submitted text, if the event has one.
    pub(crate) prompt: Option<String>,
    /// The text that the model was given, if the event has one.
    pub(crate) given: Option<String>,
    /// Whether the agent receives the hook's output.
    pub(crate) takes: bool,
    /// The path of the transcript, if the event has one.
    pub(crate) transcript: Option<String>,
    /// A hash that identifies repeated events.
    pub(crate) print: u64,
}

impl Report {
    /// Whether the event submits a text, and the hook's output is delivered with it.
    pub fn is_prompt_that_takes(&self) -> bool {
        self.turn == Some(Turn::Submitted) && self.takes
    }

    /// Whether the program is now in the conversation that the event names: the event belongs to a
    /// turn, or a person began or chose another conversation. At startup, a program may name a
    /// conversation that it never begins.
    pub fn enters_conversation(&self) -> bool {
        self.turn.is_some() || self.begins
    }

    /// Return the agent's own id of the conversation. Untrusted input.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Return the path of the agent's transcript. Untrusted input.
    pub fn transcript(&self) -> Option<&str> {
        self.transcript.as_deref()
    }

    /// Whether the harness does not know the event.
    pub(crate) fn means_nothing(&self) -> bool {
        let says = self.ready || self.begins || self.ends || self.side.is_some();
        !says && self.turn.is_none() && self.given.is_none()
    }
}

/// The text fields of a payload; empty if the payload is not an object.
struct PayloadFields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> PayloadFields<'a> {
    fn of(payload: &'a str) -> Self {
        Self(serde_json::from_str(payload).unwrap_or_default())
    }

    fn text(&self, field: &str) -> Option<String> {
        let value = self.0.get(field)?;
        serde_json::from_str(value.get()).ok()
    }

    /// Return the fields of a field that is an object.
    fn within(&self, field: &str) -> Option<Self> {
        let value = self.0.get(field)?;
        serde_json::from_str(value.get()).ok().map(Self)
    }
}

impl Hooks {
    /// Whether the manifest describes any hook events.
    pub fn is_known(&self) -> bool {
        self.lists().iter().any(|signs| !signs.is_empty())
    }

    pub(crate) fn lists(&self) -> [&[Sign]; 12] {
        [
            &self.ready,
            &self.submitted,
            &self.given,
            &self.working,
            &self.tool,
            &self.idle,
            &self.blocked,
            &self.begins,
            &self.ends,
            &self.side_begins,
            &self.side_ends,
            &self.context,
        ]
    }

    /// Interpret an event with the JSON `payload`.
    pub fn read(&self, event: &str, payload: &str) -> Report {
        let fields = PayloadFields::of(payload);
        let is_in = |signs: &[Sign]| {
            let fits = |only: &Only| only.fits(&fields);
            let is_it = |sign: &Sign| sign.event == event && sign.only.as_ref().is_none_or(fits);
            signs.iter().any(is_it)
        };
        let turns = [
            (Turn::Blocked, &self.blocked),
            (Turn::Submitted, &self.submitted),
            (Turn::Tool, &self.tool),
            (Turn::Working, &self.working),
            (Turn::Idle, &self.idle),
        ];
        let turn = turns.into_iter().find(|(_, signs)| is_in(signs));
        let turn = turn.map(|(turn, _)| turn);
        let side = match (is_in(&self.side_begins), is_in(&self.side_ends)) {
            (true, _) => Some(SubagentEvent::Begins),
            (false, true) => Some(SubagentEvent::Ends),
            (false, false) => None,
        };
        let shown = |text: String| text::one_line(&text, EVIDENCE_CHARS);
        let mut print = DefaultHasher::new();
        (event, payload).hash(&mut print);
        let prompt = fields.text(&self.prompt).filter(|_| is_in(&self.submitted));
        let given = match self.given.is_empty() {
            true => prompt.clone(),
            false => fields.text(&self.prompt).filter(|_| is_in(&self.given)),
        };
        Report {
            event: shown(event.to_owned()),
            ready: is_in(&self.ready),
            begins: is_in(&self.begins),
            ends: is_in(&self.ends),
            side,
            turn,
            session: fields
                .text(&self.session)
                .filter(|id| !id.is_empty())
                .map(|id| text::head(&id, MAX_ID_BYTES).to_owned()),
            what: fields
                .text(&self.what)
                .map(shown)
                .filter(|what| !what.is_empty()),
            detail: fields
                .0
                .get(&self.detail)
                .filter(|_| turn == Some(Turn::Blocked))
                .and_then(|value| detail(value.get())),
            prompt,
            given,
            takes: is_in(&self.context) && fields.text(&self.aside).is_none(),
            transcript: fields
                .text(&self.transcript)
                .filter(|path| path.len() <= MAX_PATH_BYTES),
            print: print.finish(),
        }
    }
}

/// Return a JSON value as rows for a person: a text as it is, an object as its fields. `None` if the
/// value is empty or too long.
fn detail(json: &str) -> Option<String> {
    let row = |(name, value): (String, serde_json::Value)| match value {
        serde_json::Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    let rows = match serde_json::from_str(json).ok()? {
        serde_json::Value::String(text) => text,
        serde_json::Value::Object(fields) => {
            fields.into_iter().map(row).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    (!rows.is_empty() && rows.len() <= MAX_TEXT_BYTES).then_some(rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hook events of Claude Code, with a subagent that is not named.
    pub(crate) fn like_claude() -> Hooks {
        let signs = |all: &[&str]| -> Vec<Sign> {
            let sign = |text: &&str| (*text).to_owned().try_into().unwrap();
            all.iter().map(sign).collect()
        };
        Hooks {
            ready: signs(&["SessionStart"]),
            submitted: signs(&["UserPromptSubmit"]),
            working: signs(&["PostToolUse"]),
            tool: signs(&["PreToolUse"]),
            idle: signs(&["Stop", "Notification kind=idle_prompt"]),
            blocked: signs(&["PermissionRequest", "Notification kind=permission_prompt"]),
            begins: signs(&["SessionStart source=clear", "SessionStart source=compact"]),
            ends: signs(&["SessionEnd"]),
            side_begins: signs(&["PreToolUse tool_name=Within"]),
            side_ends: signs(&["PostToolUse tool_name=Within"]),
            context: signs(&["UserPromptSubmit", "PostToolUse"]),
            ..Hooks::default()
        }
    }

    #[test]
    fn a_sign_is_a_name_with_an_optional_condition() {
        let check = |said: &str, is_one: bool| {
            let sign = Sign::try_from(said.to_owned());
            assert_eq!(sign.is_ok(), is_one, "{said:?}");
            if let Ok(sign) = sign {
                assert_eq!(String::from(sign), said);
            }
        };
        check("Stop", true);
        check("SessionStart source=clear", true);
        check("session.status type=a b=c", true);
        check("AfterTool !tool_response.error", true);
        for bad in [
            "",
            " ",
            "Stop ",
            "Stop x",
            "Stop =x",
            "Stop x=",
            " x=y",
            "Stop !x",
            "Stop !x.",
            "Stop !.x",
            "Stop !x.y z",
        ] {
            check(bad, false);
        }
    }

    #[test]
    fn an_event_is_interpreted() {
        let hooks = like_claude();
        let check = |event: &str, payload: &str, want: &str| {
            let report = hooks.read(event, payload);
            let mut words: Vec<String> = Vec::new();
            words.extend(report.turn.map(|turn| format!("{turn:?}")));
            words.extend(report.ready.then(|| "ready".to_owned()));
            words.extend(report.begins.then(|| "begins".to_owned()));
            words.extend(report.ends.then(|| "ends".to_owned()));
            words.extend(report.session.map(|id| format!("of {id}")));
            words.extend(report.what.map(|what| format!("on {what}")));
            words.extend(report.prompt.map(|prompt| format!("<{prompt}>")));
            assert_eq!(words.join(" "), want, "{event} {payload}");
        };
        check("Stop", r#"{"session_id":"a"}"#, "Idle of a");
        check("Stop", "null", "Idle");
        check("Stop", "no JSON", "Idle");
        check("stop", "{}", "");
        let prompt = r#"{"session_id":"a","prompt":"hi\nyou"}"#;
        check("UserPromptSubmit", prompt, "Submitted of a <hi\nyou>");
        // Only a submitted text is a prompt.
        check("PreToolUse", prompt, "Tool of a");
        check("UserPromptSubmit", r#"{"prompt":["hi"]}"#, "Submitted");
        let asks = r#"{"tool_name":"Ba\u001b[2J sh","session_id":""}"#;
        check("PermissionRequest", asks, "Blocked on Ba[2J sh");
        check("SessionStart", r#"{"source":"startup"}"#, "ready");
        check("SessionStart", r#"{"source":"clear"}"#, "ready begins");
        check("Notification", r#"{"kind":"idle_prompt"}"#, "Idle");
        check("Notification", r#"{"kind":"permission_prompt"}"#, "Blocked");
        check("Notification", r#"{"kind":1}"#, "");
        // Nesting depth does not matter.
        let deep = format!(
            r#"{{"session_id":"a","x":{}{}}}"#,
            "[".repeat(9_000),
            "]".repeat(9_000)
        );
        check("Stop", &deep, "Idle of a");
    }

    #[test]
    fn an_event_that_would_drop_its_mail_takes_none() {
        let sign = |text: &str| vec![Sign::try_from(text.to_owned()).unwrap()];
        let hooks = Hooks {
            context: sign("AfterTool !tool_response.error"),
            ..Hooks::default()
        };
        let check = |payload: &str, takes: bool| {
            assert_eq!(hooks.read("AfterTool", payload).takes, takes, "{payload}");
        };
        check(r#"{"tool_response":{"llmContent":"x"}}"#, true);
        check(r#"{"tool_response":{"error":null}}"#, true);
        check(r#"{"tool_response":{"error":{"message":"no"}}}"#, false);
        // The payload was too long to be passed on, or is not an object.
        check("{}", false);
        check(r#"{"tool_response":"x"}"#, false);
        check("null", false);
    }

    proptest! {
        #[test]
        fn no_payload_causes_a_panic(event in "\\PC{0,80}", payload in "\\PC{0,200}") {
            let report = like_claude().read(&event, &payload);
            prop_assert!(report.event.chars().count() <= EVIDENCE_CHARS + 1);
            prop_assert_eq!(&text::visible(&report.event), &report.event);
        }
    }
}
