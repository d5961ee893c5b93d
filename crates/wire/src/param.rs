//! What a method takes: how each kind of parameter is read, and what is said if it is wrong.
//!
//! The type of a parameter says all of it. The ones with names here are those for which the
//! original has a rule or a text of its own.

use crate::fields::{self, Items};
use crate::rpc::Failure;
use crate::topic::Interest;
use posthaste_core::IdPrefix;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

pub trait Param: Sized {
    /// Reads it from the field's value, if the field was there at all.
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure>;

    /// Whether leaving the field away says the same.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A value whose JSON is broken only on closer look (a lone surrogate, too deep a nest) is no
/// wrong parameter but a line that cannot be read.
fn decode<T: DeserializeOwned>(field: &'static str, value: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(value.get()).map_err(|error| match error.classify() {
        Category::Data => Failure::invalid_params(format!(
            "Invalid '{field}' parameter: {}",
            fields::complaint(&error)
        )),
        Category::Syntax | Category::Eof | Category::Io => Failure::parse(),
    })
}

fn required<T: DeserializeOwned>(
    field: &'static str,
    value: Option<&RawValue>,
) -> Result<T, Failure> {
    match value {
        Some(value) => decode(field, value),
        None => Err(Failure::invalid_params(format!(
            "Missing '{field}' parameter"
        ))),
    }
}

impl Param for String {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        required(field, value)
    }
}

impl Param for u64 {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        required(field, value)
    }
}

impl Param for IdPrefix {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        required(field, value)
    }
}

impl Param for Vec<IdPrefix> {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        required(field, value)
    }
}

/// Null says nothing.
impl<T: DeserializeOwned> Param for Option<T> {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        value
            .filter(|value| !fields::is_null(value))
            .map(|value| decode(field, value))
            .transpose()
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// Not said is no.
impl Param for bool {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        Ok(Option::read(field, value)?.unwrap_or(false))
    }

    fn is_absent(&self) -> bool {
        !self
    }
}

/// A text that must be there and hold something.
fn some_text(
    field: &'static str,
    value: Option<&RawValue>,
    holds: impl Fn(&str) -> bool,
) -> Result<String, Failure> {
    let wrong = || Failure::invalid_params(format!("Missing or empty '{field}' parameter"));
    let value = value.ok_or_else(wrong)?;
    match decode::<String>(field, value) {
        Ok(text) if holds(&text) => Ok(text),
        Err(failure) if failure.code == Failure::PARSE => Err(failure),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

/// Instructions for the next prompt, trimmed, not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Prompt(pub String);

impl Param for Prompt {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        let text = some_text(field, value, |text| !text.trim().is_empty())?;
        Ok(Self(text.trim().to_owned()))
    }
}

/// Keys as they were struck: not trimmed, not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Keys(pub String);

impl Param for Keys {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        some_text(field, value, |text| !text.is_empty()).map(Self)
    }
}

/// Yes or no, and it must be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Enabled(pub bool);

impl Param for Enabled {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        match value.map(RawValue::get) {
            Some("true") => Ok(Self(true)),
            Some("false") => Ok(Self(false)),
            Some(_) | None => Err(Failure::invalid_params(format!(
                "Missing or invalid '{field}' parameter (must be bool)"
            ))),
        }
    }
}

/// A hook's own JSON, kept as it was written: what it means is for its harness to say.
#[derive(Debug, Clone)]
pub struct Payload(Box<RawValue>);

impl Payload {
    /// Takes JSON in any layout. It is to go into a line, so its line breaks become spaces; in
    /// JSON they can only stand between tokens.
    pub fn new(json: &str) -> serde_json::Result<Self> {
        let line = json.trim().replace(['\n', '\r'], " ");
        RawValue::from_string(line).map(Self)
    }

    /// Of a hook that says nothing.
    pub fn null() -> Self {
        Self::keep(RawValue::NULL)
    }

    pub(crate) fn keep(value: &RawValue) -> Self {
        Self(value.to_owned())
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Payload {}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl Param for Payload {
    /// A hook that says nothing says null.
    fn read(_: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        Ok(Self::keep(value.unwrap_or(RawValue::NULL)))
    }

    fn is_absent(&self) -> bool {
        fields::is_null(&self.0)
    }
}

/// What to subscribe to. All of it is known, or none of it is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Events(pub Vec<Interest>);

impl Param for Events {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        let mut events = Vec::new();
        for (name, interest) in names(field, value)? {
            events.push(interest.ok_or_else(|| {
                let valid = Interest::ALL.map(Interest::as_str).join(", ");
                Failure::invalid_params(format!("Invalid event type: '{name}'. Valid: {valid}"))
            })?);
        }
        Ok(Self(events))
    }

    fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

/// What to hear no more of. Unknown names are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Dropped(pub Vec<Interest>);

impl Param for Dropped {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        let known = names(field, value)?.filter_map(|(_, interest)| interest);
        Ok(Self(known.collect()))
    }

    fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

/// The entries of a list of event names: each as it is shown, and what it means, if anything.
fn names<'a>(
    field: &'static str,
    value: Option<&'a RawValue>,
) -> Result<impl Iterator<Item = (String, Option<Interest>)> + 'a, Failure> {
    let list = value.map_or("[]", RawValue::get);
    if !list.starts_with('[') {
        return Err(Failure::invalid_params(format!("'{field}' must be a list")));
    }
    let items = Items::read(list, usize::MAX).map_err(|_| Failure::parse())?;
    Ok(items
        .first
        .into_iter()
        .map(|item| match serde_json::from_str::<String>(item.get()) {
            Ok(name) => {
                let interest = Interest::from_name(&name);
                (name, interest)
            }
            Err(_) => (item.get().to_owned(), None),
        }))
}
