//! JSON in its original form: one value, selected fields of an object, the first items of an array.
//!
//! Never keeps other fields and never recurses: the caller decodes the values it needs.

use posthaste_core::text;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A value as it was written. Two values are equal if their texts are.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct RawJson(pub(crate) Box<RawValue>);

impl RawJson {
    pub(crate) fn keep(value: &RawValue) -> Self {
        Self(value.to_owned())
    }

    pub(crate) fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

#[derive(Debug)]
pub(crate) struct Fields<'a> {
    wanted: &'static [&'static str],
    found: Vec<Option<&'a RawValue>>,
}

impl<'a> Fields<'a> {
    /// Read one object. The last of repeated fields counts.
    pub(crate) fn read(text: &'a str, wanted: &'static [&'static str]) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = Wanted(wanted).deserialize(&mut json)?;
        json.end()?;
        Ok(fields)
    }

    /// Return the value of a field, including `null`.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let index = self.wanted.iter().position(|wanted| *wanted == name)?;
        self.found.get(index).copied().flatten()
    }

    /// Return the value of a field unless it is `null`.
    pub(crate) fn non_null(&self, name: &str) -> Option<&'a RawValue> {
        self.raw(name).filter(|value| !is_null(value))
    }
}

pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Return a short text of a serde error without its position, which would not help people.
pub(crate) fn error_text(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let text = message
        .rsplit_once(" at line ")
        .map_or(message.as_str(), |(text, _)| text);
    text::one_line(text, 200)
}

struct Wanted(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = Fields<'de>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Fields<'de>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Wanted {
    type Value = Fields<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut found = vec![None; self.0.len()];
        while let Some(index) = map.next_key_seed(KeyIndex(self.0))? {
            match index.and_then(|index| found.get_mut(index)) {
                Some(slot) => *slot = Some(map.next_value::<&'de RawValue>()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Fields {
            wanted: self.0,
            found,
        })
    }
}

/// Index of a key in the list of wanted fields.
struct KeyIndex(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyIndex {
    type Value = Option<usize>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIndex {
    type Value = Option<usize>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|wanted| *wanted == key))
    }
}

/// The first items of an array.
#[derive(Debug)]
pub(crate) struct Items<'a> {
    pub(crate) first: Vec<&'a RawValue>,
    pub(crate) has_more: bool,
}

impl<'a> Items<'a> {
    pub(crate) fn read(text: &'a str, at_most: usize) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let items = AtMost(at_most).deserialize(&mut json)?;
        json.end()?;
        Ok(items)
    }
}

struct AtMost(usize);

impl<'de> DeserializeSeed<'de> for AtMost {
    type Value = Items<'de>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Items<'de>, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for AtMost {
    type Value = Items<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
        let mut first = Vec::new();
        while first.len() < self.0 {
            match seq.next_element::<&'de RawValue>()? {
                Some(item) => first.push(item),
                None => {
                    return Ok(Items {
                        first,
                        has_more: false,
                    });
                }
            }
        }
        let mut has_more = false;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            has_more = true;
        }
        Ok(Items { first, has_more })
    }
}
