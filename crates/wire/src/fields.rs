//! Reading an object without taking it apart: the fields that are wanted, each as it was written.
//!
//! Keeps no more than was asked for, whatever else a line holds, and never recurses: a value is
//! only looked into by whoever wants it.

use posthaste_core::text;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

#[derive(Debug)]
pub(crate) struct Fields<'a> {
    wanted: &'static [&'static str],
    found: Vec<Option<&'a RawValue>>,
}

impl<'a> Fields<'a> {
    /// Reads one object. Of a field that is there twice, the last counts.
    pub(crate) fn read(text: &'a str, wanted: &'static [&'static str]) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = Wanted(wanted).deserialize(&mut json)?;
        json.end()?;
        Ok(fields)
    }

    /// The value of a field, `null` included.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let place = self.wanted.iter().position(|wanted| *wanted == name)?;
        self.found.get(place).copied().flatten()
    }

    /// The value of a field, if it is not `null`.
    pub(crate) fn said(&self, name: &str) -> Option<&'a RawValue> {
        self.raw(name).filter(|value| !is_null(value))
    }
}

pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// What serde says is wrong, short, harmless, and without the place: people see no columns here.
pub(crate) fn complaint(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let what = said
        .rsplit_once(" at line ")
        .map_or(said.as_str(), |(what, _)| what);
    text::one_line(what, 200)
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
        while let Some(place) = map.next_key_seed(Place(self.0))? {
            match place.and_then(|place| found.get_mut(place)) {
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

/// A key's place among the wanted ones.
struct Place(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Option<usize>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Place {
    type Value = Option<usize>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|wanted| *wanted == key))
    }
}

/// An array's items, as far as they are wanted.
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
