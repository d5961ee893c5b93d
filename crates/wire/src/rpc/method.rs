//! Methods of the JSON-RPC dialect: name, parameters and result in one row.
//!
//! Servers match on [`Call`], so a method without a handler does not compile. The first eight rows
//! equal the original's; the others follow its style.

use crate::ask::{Ask, Outcome};
use crate::fields::{Fields, RawJson};
use crate::param::{Dropped, Enabled, Events, KeyText, Param, Payload, PromptText};
use crate::rpc::Failure;
use crate::topic::Interest;
use crate::{Detail, Message, Status};
use jiff::{SignedDuration, Timestamp};
use posthaste_core::storm::Limits;
use posthaste_core::{AgentName, Body, Draft, Evidence, IdPrefix, MessageId, Priority};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// Parameters of a method.
pub trait Method: Serialize {
    const NAME: &'static str;
    type Reply: Serialize + DeserializeOwned;

    /// Encode a result.
    fn answer(answer: &Self::Reply) -> MethodResult {
        match serde_json::value::to_raw_value(answer) {
            Ok(json) => Ok(EncodedReply(RawJson(json))),
            Err(error) => Err(Failure::internal(error.to_string())),
        }
    }
}

/// Result of a call.
pub type MethodResult = Result<EncodedReply, Failure>;

/// Encoded result of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EncodedReply(pub(crate) RawJson);

impl EncodedReply {
    pub fn get(&self) -> &str {
        self.0.get()
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
                type Reply = $answer;
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

        /// A valid call.
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

/// Time for which a request to type something is valid. A session that is late drops it, and tells the
/// caller that it was not carried out.
pub const TYPING_REQUEST_VALIDITY: Duration = Duration::from_secs(3);

/// Read parameters. Parameters that are not an object count as empty, as in the original.
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
    /// Return the session's state with its last lines of output.
    "get_status" GetStatus {} -> Status;

    /// Ask the program to end.
    "stop" Stop {} -> Stopping;

    /// Pause after this turn or iteration.
    "checkpoint" Checkpoint {} -> Checkpointing;

    /// Add instructions to the agent's next prompt.
    "inject_prompt" InjectPrompt { prompt: PromptText, } -> Injected;

    /// Give the keyboard to the person, or take it back.
    "set_interactive_mode" SetInteractiveMode { enabled: Enabled, } -> InteractiveMode;

    /// Send keys to the program in interactive mode.
    "write_pty" WritePty { data: KeyText, } -> Written;

    "subscribe" Subscribe { events: Events, } -> Subscribed;

    "unsubscribe" Unsubscribe { events: Dropped, } -> Subscribed;

    /// Store a message. The reply follows when it is on disk.
    #[derive(Default)]
    "send" Send {
        /// Chosen by the sender, so that a message that is sent twice is stored once.
        id: Option<MessageId>,
        from: Option<AgentName>,
        from_evidence: Option<Evidence>,
        /// Recipient; by default this agent.
        to: Option<AgentName>,
        subject: Option<String>,
        body: String,
        priority: Option<Priority>,
        reply_to: Option<IdPrefix>,
        key: Option<String>,
        ttl_ms: Option<u64>,
        not_before: Option<Timestamp>,
        /// Maximum time for which a due message waits for an idle agent.
        deadline_ms: Option<u64>,
        /// Remind the recipient until it has replied.
        expects_reply: bool,
        /// Message whose reply is no longer expected.
        closes: Option<IdPrefix>,
        allow_self: bool,
        /// Type the body unchanged, then Enter.
        raw: bool,
        /// Time of a raw request, which expires after [`TYPING_REQUEST_VALIDITY`].
        asked_at: Option<Timestamp>,
    } -> Sent;

    /// Return all data of a message.
    "show" Show { id: IdPrefix, } -> Detail;

    /// Return the reason why a message is held.
    "why" Why { id: IdPrefix, } -> crate::Why;

    /// Return this agent's messages.
    "inbox" Inbox {
        /// Include read messages.
        all: bool,
    } -> Vec<Message>;

    /// Return the open asks of this agent, or the latest ones with the closed ones.
    "asks" Asks {
        /// Include closed asks.
        all: bool,
    } -> Vec<Ask>;

    /// Answer an ask of this agent. The reply follows when the effect of the answer is known.
    "answer" Answer {
        ask: IdPrefix,
        /// The fingerprint of the question that was shown.
        fingerprint: String,
        /// `allow`, `always`, `deny`, or the key of an option.
        choice: String,
        from: Option<AgentName>,
        from_evidence: Option<Evidence>,
        /// The face through which the answer comes.
        via: Option<String>,
        /// Time of the request, which expires after [`GOOD_FOR`].
        asked_at: Option<Timestamp>,
    } -> Outcome;

    "mark_read" MarkRead { ids: Vec<IdPrefix>, } -> Marked;

    /// Type a text without storing or retrying it.
    "nudge" Nudge {
        text: KeyText,
        /// Time of the request, which expires after [`TYPING_REQUEST_VALIDITY`].
        asked_at: Option<Timestamp>,
    } -> Nudged;

    /// Ask the provider's script for mail now, if a script keeps the mail.
    "check_mail" CheckMail {} -> Noted;

    /// Hold deliveries.
    "pause" Pause {} -> Paused;

    "resume" Resume {} -> Paused;

    "session" Session {} -> crate::Session;

    /// Return the rows of the screen.
    "peek" Peek {
        /// Return only this many rows from the end.
        lines: Option<u64>,
        /// Include colours.
        ansi: bool,
    } -> ScreenText;

    /// Report an event of the agent's hook.
    "hook_event" HookEvent {
        harness: Option<String>,
        event_name: String,
        payload: Payload,
        /// The hook can pass mail to the agent and confirms it with `hook_taken`.
        takes_context: bool,
        /// Run of the session that started the agent, if the hook knows it.
        run: Option<String>,
    } -> Hooked;

    /// Confirm that the mail of the last `hook_event` on this connection was passed to the agent.
    "hook_taken" HookTaken { offer: u64, } -> Noted;

    /// Kill the program.
    "kill" Kill {} -> Killed;
}

impl Send {
    /// Create a message to the agent whose socket gets it.
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            ..Self::default()
        }
    }

    /// Convert to what is stored.
    pub fn into_draft(self, resolved: Resolved) -> Draft {
        let millis = |count| SignedDuration::from_millis(i64::try_from(count).unwrap_or(i64::MAX));
        Draft {
            id: resolved.id,
            from: resolved.from,
            from_evidence: resolved.from_evidence,
            to: resolved.to,
            subject: self.subject,
            body: Body::Inline(self.body),
            priority: match self.raw {
                true => Priority::Interrupt,
                false => self.priority.unwrap_or(Priority::Normal),
            },
            reply_to: resolved.reply_to,
            key: self.key,
            ttl: self.ttl_ms.map(millis),
            not_before: self.not_before,
            deadline: self.deadline_ms.map(millis),
            expects_reply: self.expects_reply,
            closes: resolved.closes,
            allow_self: self.allow_self,
            raw: self.raw,
            answers: None,
            limits: resolved.limits,
        }
    }
}

/// The parts of a [`Send`] that the request may omit or abbreviate.
#[derive(Debug)]
pub struct Resolved {
    pub id: MessageId,
    pub from: AgentName,
    pub from_evidence: Evidence,
    pub to: AgentName,
    pub reply_to: Option<MessageId>,
    pub closes: Option<MessageId>,
    pub limits: Limits,
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
    /// The original's reply if nobody has taken the keyboard.
    pub fn not_interactive() -> Self {
        Self::Ignored {
            reason: "not in interactive mode".to_owned(),
        }
    }

    /// Reply in interactive mode between two iterations of a loop.
    pub fn to_nobody() -> Self {
        Self::Ignored {
            reason: "no iteration runs".to_owned(),
        }
    }
}

/// All current subscriptions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribed {
    pub subscribed: Vec<Interest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    #[serde(flatten)]
    pub message: Message,
    /// False if the journal already had the message, by its id or key.
    pub is_new: bool,
    /// Reason why the message's file could not be written, although the message is stored.
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
    /// Reason why deliveries are still held after `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenText {
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

/// Reply to a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooked {
    #[serde(flatten)]
    pub noted: Noted,
    /// Text that the hook prints unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Number of the offer in `output`.
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
