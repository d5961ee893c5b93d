//! Asks: questions of an agent's program that wait for a person.
//!
//! An ask of an agent's program is a pair of facts, `ask_opened` and `ask_closed`. An answer is a raw message that names its
//! ask ([`AskAnswer`]), so its receipts say how far it came. Never reads a screen and types nothing.

mod choice;
mod rules;
mod state;
#[cfg(test)]
pub(crate) mod tests;

pub use choice::{Choice, ChoiceError};
pub use rules::{AskRefusal, CloseReason, accept, close, end_run, open};
pub use state::{AskState, Claim, Closed};

use crate::fact::{Odd, parse_data};
use crate::id::AskId;
use crate::name::AgentName;
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

pub const OPENED_KIND: &str = "ask_opened";
pub const CLOSED_KIND: &str = "ask_closed";
pub const SEEN_KIND: &str = "ask_seen";

/// Limit for the text of an ask. A longer text is cut, and the ask is partial.
pub const MAX_TEXT_BYTES: usize = 32 * 1024;

/// What waits for a person, in the order of need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// The agent wants to do something that needs permission.
    Permission,
    /// Any other dialog: a choice, a login, trust in a directory.
    Question,
    /// Something has failed or cannot go on.
    Trouble,
    /// Unread mail to the person.
    Mail,
}

impl AskKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Trouble => "trouble",
            Self::Mail => "mail",
        }
    }

    /// Whether an option of the agent's program answers asks of this kind.
    pub fn is_dialog(self) -> bool {
        matches!(self, Self::Permission | Self::Question)
    }
}

impl fmt::Display for AskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    Allow,
    /// Allow this and further requests.
    AllowAlways,
    Deny,
    Other,
}

impl Meaning {
    /// Return the word by which a person chooses an option of this meaning.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "always",
            Self::Deny => "deny",
            Self::Other => "",
        }
    }

    /// Whether choosing the option lets the agent do something.
    pub fn allows(self) -> bool {
        matches!(self, Self::Allow | Self::AllowAlways)
    }
}

/// An option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskOption {
    /// Name of the option for people: the digit that the dialog shows, else its position.
    pub key: String,
    pub label: String,
    pub meaning: Meaning,
}

/// Data of `ask_opened`. The id of the ask is the id of this fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskOpened {
    /// The run of the session whose program asks.
    pub run: Uuid,
    pub kind: AskKind,
    /// One line for lists.
    pub summary: String,
    /// The whole question, as far as it is known.
    pub text: String,
    /// The agent has cut the text, so nobody has seen all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// Empty if the harness cannot choose an option: the person must attach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<AskOption>,
    /// Identifies the text and the options. An answer names the fingerprint that its face showed.
    pub fingerprint: String,
}

impl AskOpened {
    /// Return the first option with a meaning.
    pub fn option(&self, meaning: Meaning) -> Option<&AskOption> {
        self.options.iter().find(|option| option.meaning == meaning)
    }
}

/// Data of `ask_closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskClosed {
    pub ask: AskId,
    pub how: AskEnd,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentName>,
    /// The face through which the answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Label of the chosen option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskEnd {
    /// A person has answered, through a face or in the terminal.
    Answered,
    /// The question is gone, or its session has ended.
    Withdrawn,
    /// Another question has replaced it.
    Superseded,
}

impl fmt::Display for AskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Answered => "answered",
            Self::Withdrawn => "withdrawn",
            Self::Superseded => "superseded",
        })
    }
}

/// Data of `ask_seen`: a person has put something aside that waits without being an ask, such as a
/// failed message or a crashed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskSeen {
    /// The id of the message or of the run.
    pub what: Uuid,
    pub by: AgentName,
}

/// A change of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskFact {
    Opened(AskOpened),
    Closed(AskClosed),
    Seen(AskSeen),
}

impl AskFact {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Opened(_) => OPENED_KIND,
            Self::Closed(_) => CLOSED_KIND,
            Self::Seen(_) => SEEN_KIND,
        }
    }

    pub(crate) fn data(&self) -> serde_json::Result<String> {
        match self {
            Self::Opened(opened) => serde_json::to_string(opened),
            Self::Closed(closed) => serde_json::to_string(closed),
            Self::Seen(seen) => serde_json::to_string(seen),
        }
    }

    /// Parse the data of a fact. `None` if the kind is not about asks.
    pub(crate) fn read(kind: &str, data: &str) -> Option<Result<Self, Odd>> {
        match kind {
            OPENED_KIND => Some(parse_data("ask", data).map(Self::Opened)),
            CLOSED_KIND => Some(parse_data("end of an ask", data).map(Self::Closed)),
            SEEN_KIND => Some(parse_data("seen ask", data).map(Self::Seen)),
            _ => None,
        }
    }
}

/// Part of an answer's message: the ask, as its face showed it, and the choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskAnswer {
    pub ask: AskId,
    pub fingerprint: String,
    /// Key of the chosen option.
    pub key: String,
    /// Label of the chosen option.
    pub choice: String,
    /// The face through which the answer came.
    pub via: String,
}

/// Return the fingerprint of a question. White space does not count, because a terminal of another
/// width wraps the same text elsewhere.
pub fn fingerprint(text: &str, options: &[AskOption]) -> String {
    const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const FNV_PRIME: u64 = 0x0100_0000_01b3;
    let parts = options.iter().flat_map(|option| {
        [
            option.key.as_str(),
            option.label.as_str(),
            option.meaning.word(),
        ]
    });
    let mut hash = FNV_OFFSET;
    for part in std::iter::once(text).chain(parts) {
        let bytes = part.bytes().filter(|byte| !byte.is_ascii_whitespace());
        // The zero byte separates the parts.
        for byte in bytes.chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
    }
    format!("{hash:016x}")
}
