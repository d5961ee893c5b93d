//! The methods of the JSON-RPC dialect: a name, what it takes, and what it answers, in one row.
//!
//! Whoever serves them matches on [`Call`]; a method without a handler does not compile. The
//! first eight rows are the original's, to the letter; the others are ours, in the same style.

use crate::fields::Fields;
use crate::param::{Dropped, Enabled, Events, Keys, Param, Payload, Prompt};
use crate::rpc::Failure;
use crate::topic::Interest;
use crate::{Detail, Message, Status};
use jiff::Timestamp;
use posthaste_core::{AgentName, Evidence, IdPrefix, MessageId, Priority};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::time::Duration;

/// A row of the table, from its parameters' side.
pub trait Method: Serialize {
    const NAME: &'static str;
    type Answer: Serialize + DeserializeOwned;

    /// The answer, ready to be sent.
    fn answer(answer: &Self::Answer) -> Outcome {
        match serde_json::value::to_raw_value(answer) {
            Ok(json) => Ok(Answer(json)),
            Err(error) => Err(Failure::internal(error.to_string())),
        }
    }
}

/// What becomes of a call.
pub type Outcome = Result<Answer, Failure>;

/// What a method answered, as JSON.
#[derive(Debug, Clone)]
pub struct Answer(pub(crate) Box<RawValue>);

impl Answer {
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Answer {}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

macro_rules! methods {
    ($(
        $(#[$about:meta])*
        $name:literal $Method:ident { $( $(#[$note:meta])* $field:ident: $type:ty, )* } -> $answer:ty;
    )*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
            pub struct $Method {
                $(
                    $(#[$note])*
                    #[serde(skip_serializing_if = "Param::is_absent")]
                    pub $field: $type,
                )*
            }

            impl Method for $Method {
                const NAME: &'static str = $name;
                type Answer = $answer;
            }

            impl $Method {
                const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];

                fn read(params: Option<&RawValue>) -> Result<Self, Failure> {
                    let _fields = object(params, Self::FIELDS)?;
                    Ok(Self {
                        $($field: Param::read(stringify!($field), _fields.raw(stringify!($field)))?,)*
                    })
                }
            }
        )*

        /// A call that was understood.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Call {
            $($Method($Method),)*
        }

        impl Call {
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Method(_) => $name,)*
                }
            }

            pub(crate) fn read(name: &str, params: Option<&RawValue>) -> Result<Self, Failure> {
                match name {
                    $($name => $Method::read(params).map(Self::$Method),)*
                    _ => Err(Failure::unknown_method(name)),
                }
            }
        }
    };
}

/// For how long after it was asked for something is typed that is not to be typed later. A session
/// that could not answer by then leaves it: whoever asked is told that it was not done.
pub const GOOD_FOR: Duration = Duration::from_secs(3);

/// Parameters that are no object count as none, as in the original.
fn object<'a>(
    params: Option<&'a RawValue>,
    wanted: &'static [&'static str],
) -> Result<Fields<'a>, Failure> {
    let text = params
        .map(RawValue::get)
        .filter(|text| text.starts_with('{'))
        .unwrap_or("{}");
    Fields::read(text, wanted).map_err(|_| Failure::parse())
}

methods! {
    /// The session's state, with its last lines of output.
    "get_status" GetStatus {} -> Status;

    /// Ends the child gracefully.
    "stop" Stop {} -> Stopping;

    /// Pauses after this turn, or iteration.
    "checkpoint" Checkpoint {} -> Checkpointing;

    /// Adds instructions to what the agent is told next.
    "inject_prompt" InjectPrompt { prompt: Prompt, } -> Injected;

    /// Gives the keyboard to the person, or back.
    "set_interactive_mode" SetInteractiveMode { enabled: Enabled, } -> InteractiveMode;

    /// Keys to the program, in interactive mode.
    "write_pty" WritePty { data: Keys, } -> Written;

    "subscribe" Subscribe { events: Events, } -> Subscribed;

    "unsubscribe" Unsubscribe { events: Dropped, } -> Subscribed;

    /// Stores a message, and answers when it is on disk.
    "send" Send {
        /// The sender's own choice, so that the same message over two ways is one.
        id: Option<MessageId>,
        from: Option<AgentName>,
        from_evidence: Option<Evidence>,
        /// This agent, if not said.
        to: Option<AgentName>,
        subject: Option<String>,
        body: String,
        priority: Option<Priority>,
        reply_to: Option<IdPrefix>,
        key: Option<String>,
        ttl_ms: Option<u64>,
        not_before: Option<Timestamp>,
        /// How long after it is due it waits for an idle agent at most.
        deadline_ms: Option<u64>,
        /// Its recipient is reminded of it until it has answered.
        expects_reply: bool,
        /// The message to which no reply is expected any more.
        closes: Option<IdPrefix>,
        allow_self: bool,
        /// The body's bytes as they are, then Enter.
        raw: bool,
        /// Of a raw one: when its sender asked, see [`GOOD_FOR`]. It is as old as that.
        asked_at: Option<Timestamp>,
    } -> Sent;

    /// Everything about a message.
    "show" Show { id: IdPrefix, } -> Detail;

    /// What holds a message.
    "why" Why { id: IdPrefix, } -> crate::Why;

    /// This agent's mail.
    "inbox" Inbox {
        /// Read ones too.
        all: bool,
    } -> Vec<Message>;

    "mark_read" MarkRead { ids: Vec<IdPrefix>, } -> Marked;

    /// Text without a message: not stored, not retried.
    "nudge" Nudge {
        text: Keys,
        /// When its sender asked, see [`GOOD_FOR`].
        asked_at: Option<Timestamp>,
    } -> Nudged;

    /// Asks the script that keeps the mail now, where one does.
    "check_mail" CheckMail {} -> Noted;

    /// Holds deliveries back.
    "pause" Pause {} -> Paused;

    "resume" Resume {} -> Paused;

    "session" Session {} -> crate::Session;

    /// What the terminal shows.
    "peek" Peek {
        /// The last ones only.
        lines: Option<u64>,
        /// With their colours.
        ansi: bool,
    } -> Screen;

    /// The agent's own hook has something to say.
    "hook_event" HookEvent {
        harness: Option<String>,
        event_name: String,
        payload: Payload,
        /// It can hand mail to the agent, and says so by `hook_taken`.
        takes_context: bool,
        /// The run of the session that the agent was started in, where the hook knows it.
        run: Option<String>,
    } -> Hooked;

    /// What the last answer to `hook_event` on this connection gave was passed on to the agent.
    "hook_taken" HookTaken { offer: u64, } -> Noted;

    /// Ends the child at once.
    "kill" Kill {} -> Killed;
}

impl Send {
    /// A message to the agent whose socket it is sent to.
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            id: None,
            from: None,
            from_evidence: None,
            to: None,
            subject: None,
            body: body.into(),
            priority: None,
            reply_to: None,
            key: None,
            ttl_ms: None,
            not_before: None,
            deadline_ms: None,
            expects_reply: false,
            closes: None,
            allow_self: false,
            raw: false,
            asked_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Stopping {
    StopRequested,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Checkpointing {
    CheckpointRequested,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Injected {
    PromptInjected { prompt: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractiveMode {
    pub interactive_mode: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Written {
    Forwarded,
    Ignored { reason: String },
}

impl Written {
    /// The original's answer where nobody has taken the keyboard.
    pub fn not_interactive() -> Self {
        Self::Ignored {
            reason: "not in interactive mode".to_owned(),
        }
    }

    /// In interactive mode, between two iterations of a loop.
    pub fn to_nobody() -> Self {
        Self::Ignored {
            reason: "no iteration runs".to_owned(),
        }
    }
}

/// Everything that is subscribed to now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribed {
    pub subscribed: Vec<Interest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    #[serde(flatten)]
    pub message: Message,
    /// False if it stood in the journal already, under its id or key.
    pub is_new: bool,
    /// Why its file could not be written, though it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfiled: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marked {
    pub marked: Vec<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Nudged {
    Nudged,
    Held { reason: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub paused: bool,
    /// What still holds deliveries back, where that was to end and has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Screen {
    pub lines: Vec<String>,
    pub cols: u16,
    pub rows: u16,
    pub title: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Noted {
    Noted,
}

/// What a hook is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooked {
    #[serde(flatten)]
    pub noted: Noted,
    /// To be printed to the byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The number of the offer that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<u64>,
}

impl Hooked {
    pub fn noted() -> Self {
        Self {
            noted: Noted::Noted,
            output: None,
            offer: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Killed {
    Killed,
}
