//! The types of a tool's arguments: the schema for agents, and the parsing of a value.

use posthaste_core::text;
use posthaste_core::{NoteType, Priority, TaskStatus};
use posthaste_store::report::{Report, Result};
use serde_json::{Map, Value, json};

/// The type of an argument.
pub(super) trait Argument: Sized {
    /// Return the JSON schema, without a description.
    fn schema() -> Value;

    /// Name the valid values, for an error.
    fn valid_values() -> String;

    fn parse(value: &Value) -> Option<Self>;

    /// Return the value of an omitted argument; `None` if the argument is required.
    fn omitted() -> Option<Self> {
        None
    }
}

impl Argument for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn valid_values() -> String {
        "a string".to_owned()
    }

    fn parse(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Argument for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }

    fn valid_values() -> String {
        "true or false".to_owned()
    }

    fn parse(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn omitted() -> Option<Self> {
        Some(false)
    }
}

impl<T: Argument> Argument for Option<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn valid_values() -> String {
        T::valid_values()
    }

    fn parse(value: &Value) -> Option<Self> {
        T::parse(value).map(Some)
    }

    fn omitted() -> Option<Self> {
        Some(None)
    }
}

/// A whole number with its minimum and maximum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number<const MIN: u64, const MAX: u64>(pub(super) u64);

impl<const MIN: u64, const MAX: u64> Argument for Number<MIN, MAX> {
    fn schema() -> Value {
        match MAX {
            u64::MAX => json!({"type": "integer", "minimum": MIN}),
            _ => json!({"type": "integer", "minimum": MIN, "maximum": MAX}),
        }
    }

    fn valid_values() -> String {
        match MAX {
            u64::MAX => format!("a whole number from {MIN} on"),
            _ => format!("a whole number from {MIN} to {MAX}"),
        }
    }

    fn parse(value: &Value) -> Option<Self> {
        let number = value.as_u64()?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }
}

/// Defines an argument that is one of some words, which the core parses.
macro_rules! choice {
    ($Choice:ident($Value:ty): $($word:literal),*) => {
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $Choice(pub(super) $Value);

        impl $Choice {
            const WORDS: &[&str] = &[$($word),*];
        }

        impl Argument for $Choice {
            fn schema() -> Value {
                json!({"type": "string", "enum": Self::WORDS})
            }

            fn valid_values() -> String {
                format!("one of {}", Self::WORDS.join(", "))
            }

            fn parse(value: &Value) -> Option<Self> {
                let word = value.as_str().filter(|word| Self::WORDS.contains(word))?;
                word.parse().ok().map(Self)
            }
        }
    };
}

choice!(MailPriority(Priority): "interrupt", "normal", "idle-first", "idle");
choice!(FirstStatus(TaskStatus): "remaining", "blocked");
choice!(NewStatus(TaskStatus): "in_progress", "completed", "blocked", "remaining");
choice!(Category(NoteType): "learning", "stuck", "tip", "decision");

/// The name and description of an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArgumentDoc {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
}

impl ArgumentDoc {
    /// Create a field from the name of a Rust field and its doc comment.
    pub(super) fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name: name.trim_start_matches("r#"),
            description: description.trim_start(),
        }
    }

    pub(super) fn schema<T: Argument>(self) -> Value {
        let mut schema = T::schema();
        schema["description"] = json!(self.description);
        schema
    }

    /// Parse the argument of a call. A null counts as an omitted argument.
    pub(super) fn parse<T: Argument>(self, arguments: &Map<String, Value>) -> Result<T> {
        let Self { name, description } = self;
        let invalid = |why: String| Report::usage(why).hint(format!("'{name}': {description}"));
        match arguments.get(name).filter(|value| !value.is_null()) {
            Some(value) => T::parse(value).ok_or_else(|| {
                let shown = text::one_line(text::head(&value.to_string(), 400), 60);
                let valid = T::valid_values();
                invalid(format!("'{name}' must be {valid}, not {shown}"))
            }),
            None => T::omitted().ok_or_else(|| invalid(format!("{name} required"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn choices_are_parsed_by_the_core() {
        fn check<T>(words: &[&str], all: &[&str], parse: impl Fn(&Value) -> Option<T>) {
            let sorted = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
            let (words, all): (BTreeSet<String>, BTreeSet<String>) = (sorted(words), sorted(all));
            assert_eq!(words, all);
            assert!(words.iter().all(|word| parse(&json!(word)).is_some()));
        }
        let all = NoteType::ALL.map(NoteType::as_str);
        check(Category::WORDS, &all, Category::parse);
        let all = Priority::ALL.map(Priority::as_str);
        check(MailPriority::WORDS, &all, MailPriority::parse);
        let all = TaskStatus::ALL.map(TaskStatus::as_str);
        check(NewStatus::WORDS, &all, NewStatus::parse);
        let all = TaskStatus::FIRST.map(TaskStatus::as_str);
        check(FirstStatus::WORDS, &all, FirstStatus::parse);
    }
}
