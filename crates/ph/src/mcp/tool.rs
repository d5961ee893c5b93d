//! The tools and their arguments. One table is both the schema for agents and the rules by which
//! arguments are checked.

use super::table;
use posthaste_core::text;
use posthaste_store::report::{Report, Result};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    InboxList,
    InboxMarkRead,
    ReadMessage,
    SendMessage,
    Reply,
    WaitForMessage,
    SearchMessages,
    ListAgents,
    TaskAdd,
    TaskStatus,
    TaskList,
    NoteAdd,
    NoteList,
    SessionComplete,
}

/// A tool as agents see it.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) fields: &'static [Field],
    /// Whether the tool changes nothing.
    pub(super) is_read_only: bool,
}

pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    need: Need,
    description: &'static str,
}

pub(super) enum Kind {
    Text,
    Choice(&'static [&'static str]),
    /// A whole number with its minimum and maximum.
    Number(u64, u64),
    Flag,
}

#[derive(PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

const SESSION: Field = Field {
    name: "session_name",
    kind: Kind::Text,
    need: Need::Optional,
    description: "Your own session's name. Omit it: it is known. Another session's name is refused.",
};

pub(super) const fn text(name: &'static str, description: &'static str) -> Field {
    Field {
        name,
        kind: Kind::Text,
        need: Need::Required,
        description,
    }
}

pub(super) const fn maybe(name: &'static str, kind: Kind, description: &'static str) -> Field {
    Field {
        name,
        kind,
        need: Need::Optional,
        description,
    }
}

pub(super) const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    description: &'static str,
) -> Field {
    Field {
        name,
        kind: Kind::Choice(words),
        need: Need::Required,
        description,
    }
}

/// Maximum and default time that a call waits, in seconds.
pub(super) const LONGEST_WAIT: u64 = 3_600;
pub(super) const USUAL_WAIT: u64 = 30;
/// Default and maximum size of a text in one reply, in bytes.
pub(super) const USUAL_READ: u64 = 32 << 10;
pub(super) const LONGEST_READ: u64 = 1 << 20;
pub(super) const USUAL_FINDS: u64 = 20;

impl Tool {
    pub(super) const ALL: [Self; 14] = [
        Self::InboxList,
        Self::InboxMarkRead,
        Self::ReadMessage,
        Self::SendMessage,
        Self::Reply,
        Self::WaitForMessage,
        Self::SearchMessages,
        Self::ListAgents,
        Self::TaskAdd,
        Self::TaskStatus,
        Self::TaskList,
        Self::NoteAdd,
        Self::NoteList,
        Self::SessionComplete,
    ];

    pub(super) fn find(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|tool| tool.row().name == name);
        found.ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|tool| tool.row().name).collect();
            Report::usage(format!("unknown tool '{}'", text::one_line(name, 80)))
                .hint(format!("the tools are: {}", all.join(", ")))
        })
    }

    pub(super) fn row(self) -> &'static Row {
        match self {
            Self::InboxList => &table::INBOX_LIST,
            Self::InboxMarkRead => &table::INBOX_MARK_READ,
            Self::ReadMessage => &table::READ_MESSAGE,
            Self::SendMessage => &table::SEND_MESSAGE,
            Self::Reply => &table::REPLY,
            Self::WaitForMessage => &table::WAIT_FOR_MESSAGE,
            Self::SearchMessages => &table::SEARCH_MESSAGES,
            Self::ListAgents => &table::LIST_AGENTS,
            Self::TaskAdd => &table::TASK_ADD,
            Self::TaskStatus => &table::TASK_STATUS,
            Self::TaskList => &table::TASK_LIST,
            Self::NoteAdd => &table::NOTE_ADD,
            Self::NoteList => &table::NOTE_LIST,
            Self::SessionComplete => &table::SESSION_COMPLETE,
        }
    }

    /// Return the JSON schema of the arguments.
    pub(super) fn schema(self) -> Map<String, Value> {
        let fields = || std::iter::once(&SESSION).chain(self.row().fields);
        let properties: Map<String, Value> = fields()
            .map(|field| (field.name.to_owned(), field.schema()))
            .collect();
        let required: Vec<_> = fields()
            .filter(|field| field.need == Need::Required)
            .map(|field| field.name)
            .collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// Check the arguments of a call.
    pub(super) fn given(self, arguments: Option<Map<String, Value>>) -> Result<Given> {
        let row = self.row();
        let fields = || std::iter::once(&SESSION).chain(row.fields);
        let mut arguments = arguments.unwrap_or_default();
        // A null counts as a missing argument.
        arguments.retain(|_, value| !value.is_null());
        for (name, value) in &arguments {
            let Some(field) = fields().find(|field| field.name == name) else {
                let shown = text::one_line(name, 80);
                let all: Vec<_> = fields().map(|field| field.name).collect();
                return Err(
                    Report::usage(format!("{} has no argument '{shown}'", row.name))
                        .hint(format!("its arguments are: {}", all.join(", "))),
                );
            };
            field.check(value)?;
        }
        let missing = fields()
            .find(|field| field.need == Need::Required && !arguments.contains_key(field.name));
        match missing {
            Some(field) => Err(Report::usage(format!("{} required", field.name))
                .hint(format!("'{}': {}", field.name, field.description))),
            None => Ok(Given(arguments)),
        }
    }
}

impl Field {
    fn schema(&self) -> Value {
        let description = self.description;
        match self.kind {
            Kind::Text => json!({"type": "string", "description": description}),
            Kind::Choice(words) => {
                json!({"type": "string", "enum": words, "description": description})
            }
            Kind::Number(least, u64::MAX) => {
                json!({"type": "integer", "minimum": least, "description": description})
            }
            Kind::Number(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most, "description": description})
            }
            Kind::Flag => json!({"type": "boolean", "description": description}),
        }
    }

    fn check(&self, value: &Value) -> Result<()> {
        let wanted = match self.kind {
            Kind::Text if value.is_string() => return Ok(()),
            Kind::Text => "a string".to_owned(),
            Kind::Choice(words) => match value.as_str() {
                Some(word) if words.contains(&word) => return Ok(()),
                _ => format!("one of {}", words.join(", ")),
            },
            Kind::Number(least, most) => match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => return Ok(()),
                _ if most == u64::MAX => format!("a whole number from {least} on"),
                _ => format!("a whole number from {least} to {most}"),
            },
            Kind::Flag if value.is_boolean() => return Ok(()),
            Kind::Flag => "true or false".to_owned(),
        };
        let said = text::one_line(text::head(&value.to_string(), 400), 60);
        Err(
            Report::usage(format!("'{}' must be {wanted}, not {said}", self.name))
                .hint(format!("'{}': {}", self.name, self.description)),
        )
    }
}

/// Arguments that were checked against the table.
#[derive(Debug)]
pub(super) struct Given(Map<String, Value>);

impl Given {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// Return a required text.
    pub(super) fn must(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::table::{NOTE_TYPES, PRIORITIES};
    use super::*;
    use posthaste_core::{NoteType, Priority, TaskStatus};
    use std::collections::BTreeSet;

    #[test]
    fn every_tool_is_found_by_its_name_and_has_descriptions() {
        for tool in Tool::ALL {
            let row = tool.row();
            assert_eq!(Tool::find(row.name).unwrap(), tool);
            assert!(row.description.len() > 20, "{}", row.name);
            assert!(!row.description.contains("  "), "{}", row.description);
            for field in row.fields {
                assert!(field.description.len() > 8, "{}.{}", row.name, field.name);
            }
        }
        let names: BTreeSet<_> = Tool::ALL.iter().map(|tool| tool.row().name).collect();
        assert_eq!(names.len(), Tool::ALL.len());
    }

    #[test]
    fn choices_are_parsed_by_the_core() {
        let sorted = |words: &[&str]| {
            words
                .iter()
                .map(|w| (*w).to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(
            sorted(NOTE_TYPES),
            sorted(&NoteType::ALL.map(NoteType::as_str))
        );
        assert_eq!(
            sorted(PRIORITIES),
            sorted(&Priority::ALL.map(Priority::as_str))
        );
        let Kind::Choice(statuses) = Tool::TaskStatus.row().fields[1].kind else {
            panic!("a status is a choice");
        };
        assert_eq!(
            sorted(statuses),
            sorted(&TaskStatus::ALL.map(TaskStatus::as_str))
        );
    }

    #[test]
    fn arguments_are_checked() {
        let check = |tool: Tool, arguments: Value, want: std::result::Result<(), &str>| {
            let Value::Object(map) = arguments.clone() else {
                panic!("an object");
            };
            let got = tool.given(Some(map)).map(|_| ());
            let got = got.map_err(|report| report.message().to_owned());
            assert_eq!(got, want.map_err(str::to_owned), "{arguments}");
        };
        check(Tool::TaskList, json!({}), Ok(()));
        check(Tool::TaskList, json!({"session_name": null}), Ok(()));
        check(
            Tool::TaskList,
            json!({"session_name": 7}),
            Err("'session_name' must be a string, not 7"),
        );
        check(Tool::TaskAdd, json!({}), Err("content required"));
        check(
            Tool::TaskAdd,
            json!({"content": null}),
            Err("content required"),
        );
        check(
            Tool::TaskAdd,
            json!({"content": "x", "status": "blocked"}),
            Ok(()),
        );
        check(
            Tool::TaskAdd,
            json!({"content": "x", "status": "completed"}),
            Err("'status' must be one of remaining, blocked, not \"completed\""),
        );
        check(
            Tool::TaskAdd,
            json!({"content": "x", "colour": 1}),
            Err("task_add has no argument 'colour'"),
        );
        check(
            Tool::WaitForMessage,
            json!({"timeout_seconds": 3601}),
            Err("'timeout_seconds' must be a whole number from 0 to 3600, not 3601"),
        );
        check(
            Tool::WaitForMessage,
            json!({"timeout_seconds": -1}),
            Err("'timeout_seconds' must be a whole number from 0 to 3600, not -1"),
        );
        check(
            Tool::SendMessage,
            json!({"to": "a", "body": "b", "expects_reply": "yes"}),
            Err("'expects_reply' must be true or false, not \"yes\""),
        );
        check(
            Tool::ReadMessage,
            json!({"id": ["a\u{1b}"]}),
            Err("'id' must be a string, not [\"a\\u001b\"]"),
        );
    }
}
