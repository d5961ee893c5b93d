//! Parameter types: how each is read, and the error if it is invalid.
//!
//! The named types are those for which the original has its own rule or error text.

use crate::fields::{self, Items, RawJson};
use crate::rpc::Failure;
use crate::topic::Interest;
use posthaste_core::IdPrefix;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;

pub trait Param: Sized {
    /// Read the value of the field; `None` if the field is missing.
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure>;

    /// Return whether a missing field means the same.
    fn is_absent(&self) -> bool {
        false
    }
}

/// Decode a value. JSON that only fails when decoded (a lone surrogate, too deep nesting) makes the
/// line invalid, not the parameter.
fn decode<T: DeserializeOwned>(field: &'static str, value: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(value.get()).map_err(|error| match error.classify() {
        Category::Data => Failure::invalid_params(format!(
            "Invalid '{field}' parameter: {}",
            fields::error_text(&error)
        )),
        Category::Syntax | Category::Eof | Category::Io => Failure::parse(),
    })
}

macro_rules! required_params {
    ($($type:ty),*) => {
        $(impl Param for $type {
            fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
                let missing = || format!("Missing '{field}' parameter");
                let value = value.ok_or_else(|| Failure::invalid_params(missing()))?;
                decode(field, value)
            }
        })*
    };
}

required_params!(String, u64, IdPrefix, Vec<IdPrefix>);

/// Null counts as missing.
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

/// Missing means false.
impl Param for bool {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        Ok(Option::read(field, value)?.unwrap_or(false))
    }

    fn is_absent(&self) -> bool {
        !self
    }
}

/// Required text that is not empty.
fn some_text(
    field: &'static str,
    value: Option<&RawValue>,
    holds: impl Fn(&str) -> bool,
) -> Result<String, Failure> {
    let wrong = || Failure::invalid_params(format!("Missing or empty '{field}' parameter"));
    let value = value.ok_or_else(wrong)?;
    match decode::<String>(field, value) {
        Ok(text) if holds(&text) => Ok(text),
        Err(failure) if failure.code == Failure::PARSE_ERROR => Err(failure),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

/// Instructions for the next prompt: trimmed and not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PromptText(pub String);

impl Param for PromptText {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        let text = some_text(field, value, |text| !text.trim().is_empty())?;
        Ok(Self(text.trim().to_owned()))
    }
}

/// Keys as typed: not trimmed, and not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct KeyText(pub String);

impl Param for KeyText {
    fn read(field: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        some_text(field, value, |text| !text.is_empty()).map(Self)
    }
}

/// Required boolean.
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

/// A hook's JSON payload in its original form; only its harness interprets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Payload(RawJson);

impl Payload {
    /// Replace line breaks by spaces, so that the payload fits into a line. JSON has line breaks
    /// only between tokens.
    pub fn new(json: &str) -> serde_json::Result<Self> {
        let line = json.trim().replace(['\n', '\r'], " ");
        RawValue::from_string(line).map(|value| Self(RawJson(value)))
    }

    /// Payload of a hook without data.
    pub fn null() -> Self {
        Self::keep(RawValue::NULL)
    }

    pub(crate) fn keep(value: &RawValue) -> Self {
        Self(RawJson::keep(value))
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl Param for Payload {
    /// An empty payload is null.
    fn read(_: &'static str, value: Option<&RawValue>) -> Result<Self, Failure> {
        Ok(Self::keep(value.unwrap_or(RawValue::NULL)))
    }

    fn is_absent(&self) -> bool {
        *self == Self::null()
    }
}

/// Events to subscribe to. One unknown name rejects all of them.
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

/// Events to unsubscribe from. Unknown names are ignored.
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

/// Return the entries of a list of event names: the text of each, and its meaning if it is known.
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
